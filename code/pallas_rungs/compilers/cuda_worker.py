"""The process in which the CUDA compiler compiles. Its environment is set by `cuda.py`.

It has no GPU and runs nothing: what it compiles is thrown away, but for what was written about it.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from pallas_rungs.compilers.cuda_report import Reports, nvdisasm
from pallas_rungs.compilers.exported import compile_in_stages, peak_memory
from pallas_rungs.compilers.wire import read_frame, write_frame


def main(request_fd: int, reply_fd: int) -> None:
    """Import jax and the plugin, say so, then compile what comes until the end of the stream."""
    faulthandler.disable()  # an abort of the compiler says what was wrong; Python's stack adds none
    folder = Path(tempfile.mkdtemp(prefix="dumps-"))
    os.environ.update(dump_settings(folder))
    import jax
    import jax.experimental.topologies
    import jax.export

    write_frame(reply_fd, {"jax": jax.__version__})
    seen = Reports()
    while (frame := read_frame(request_fd)) is not None:
        header, blob = frame
        write_frame(reply_fd, compile_program(header, blob, folder, seen))
        for file in folder.iterdir():
            file.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def dump_settings(folder: Path) -> dict[str, str]:
    """Return the variables that make XLA and Mosaic GPU write about what they compile."""
    settings = {
        "XLA_FLAGS": f"--xla_dump_to={folder} --xla_dump_emitter_re=ptx",
        "MOSAIC_GPU_DUMP_TO": str(folder),
        "MOSAIC_GPU_DUMP_PTX": "1",
        "MOSAIC_GPU_DUMP_PTXAS": "1",
    }
    if (tool := nvdisasm()) is not None:
        settings["MOSAIC_GPU_DUMP_SASS"] = "1"
        settings["MOSAIC_GPU_CUDA_ROOT"] = str(tool.parent.parent)
    return settings


def compile_program(
    request: dict[str, Any], serialized: bytes, folder: Path, seen: Reports
) -> dict[str, Any]:
    """Compile one exported program.

    Args:
      request: `target`, the GPU's description; `topologies`, a list of [devices, name] from small
        to large; `listings`, true to have PTX and machine code in the answer.
      serialized: what `jax.export.Exported.serialize` gave, for the platform `cuda`.
      folder: where the compilers dump what they write.
      seen: the reports on kernels that this process has compiled.

    Returns:
      JSON data: `kind` ("compiled", "refused" or "unavailable"), `error_type`, `message`, `stage`,
      `seconds`, `peak_memory_bytes` of this process so far, `analysis` with the `kernels`.
    """

    def topology(name: str) -> Any:
        from jax.experimental import topologies

        return topologies.get_topology_desc(
            platform="cuda", target_config=request["target"], topology=name
        )

    answer, found = compile_in_stages(serialized, request["topologies"], topology)
    if found is not None:
        executable = found.executable.runtime_executable().serialize()
        answer["analysis"] = {
            "device_kind": found.devices[0].device_kind,
            "devices": len(found.devices),
            "kernels": [
                report.to_json(bool(request.get("listings")))
                for report in seen.of(folder, executable, found.exported.mlir_module())
            ],
        }
    return {**answer, "peak_memory_bytes": peak_memory()}
