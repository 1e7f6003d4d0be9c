"""The rungs: one module each, and `attempt`, which tries a problem on one of them."""

from pallas_rungs.ladder.rungs.attempting import attempt
from pallas_rungs.ladder.rungs.export import ExportedProgram, export_program
from pallas_rungs.ladder.rungs.simulate import simulator_settings
from pallas_rungs.ladder.rungs.tracing import machine_of

__all__ = ["ExportedProgram", "attempt", "export_program", "machine_of", "simulator_settings"]
