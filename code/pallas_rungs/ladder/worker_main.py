"""The process in which a reader's file is loaded and tried, one rung at a time.

It answers seven requests. `load` executes the file and makes its problems; `machine` names the
machine that a problem is for; `settings` the simulator settings to try; `attempt` tries one problem
on one rung and target; `estimate_compiled` estimates what the last attempt compiled; `trace` traces
a problem for an estimate, and `estimate` estimates the time of what was traced on a chip. An answer
may hold `escalate`: why the same should be tried with the chip named before the file is imported,
which needs a fresh process.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import faulthandler
import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pallas_rungs.compilers.wire import read_frame, write_frame
from pallas_rungs.ladder.loading import (
    LoadError,
    check_arguments_fit,
    check_names_fit,
    find_symbol,
    load_file,
    own_files,
)

if TYPE_CHECKING:
    from pallas_rungs.ladder.estimate_beside import Compiled
    from pallas_rungs.ladder.problem import Problem
    from pallas_rungs.ladder.program import Program
    from pallas_rungs.ladder.status import Rung
    from pallas_rungs.ladder.verdict import Verdict


def main(request_fd: int, reply_fd: int) -> None:
    """Import jax and the rungs, say so, then answer requests until the end of the stream."""
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    if machine := os.environ.pop("PALLAS_RUNGS_WARM_COMPILER", ""):
        from pallas_rungs.compilers import by_chip, dumps
        from pallas_rungs.compilers.chips import GPU, TPU

        if machine == "TPU, dumping":
            dumps.warm_up()
        else:
            by_chip.warm_up(GPU if machine == GPU.name else TPU)
    import jax
    import jax.experimental.pallas.tpu

    # Not inherited by what the file starts, and out of the way of a file that closes low numbers.
    request_fd, reply_fd = _out_of_the_way(request_fd), _out_of_the_way(reply_fd)
    write_frame(reply_fd, {"jax": jax.__version__, "stack_signal": True})
    session, own = _Session(), os.getpid()
    while (frame := read_frame(request_fd)) is not None:
        answer = session.answer(frame[0])
        if os.getpid() != own:  # a child that the file forked and let go on
            os._exit(0)
        write_frame(reply_fd, answer)
    session.close()


def _out_of_the_way(fd: int) -> int:
    """Move a pipe to a high number that a new program does not inherit."""
    import fcntl

    with contextlib.suppress(OSError):
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
        os.close(fd)
        return moved
    return fd


class _Session:
    """The loaded file and its problems."""

    def __init__(self) -> None:
        self._problems: list[Any] = []
        self._modules: dict[Path, ModuleType] = {}
        self._level = 0
        self._path = Path()
        self._stack = contextlib.ExitStack()
        self._compiled: tuple[Compiled, str] | None = None
        self._traced: tuple[Problem, Program] | None = None

    def close(self) -> None:
        """Take back what was pretended."""
        self._stack.close()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request."""
        if request["op"] == "load":
            try:
                return self._load(request)
            except LoadError as error:
                return {"error": str(error)}
            except Exception as error:  # not the reader's: what the file does is reported above
                where = Path(request["path"])
                said = "the ladder itself failed before it was tried; please report it"
                return {"error": _says(f"{where.name}: {said}", error, where)}
        if request["op"] == "machine":
            from pallas_rungs.ladder.rungs import machine_of

            return {"machine": machine_of(self._problems[request["problem"]]).name}
        if request["op"] == "settings":
            from pallas_rungs.ladder.rungs import simulator_settings

            problem = self._problems[request["problem"]]
            return {"settings": list(simulator_settings(problem, request["chip"]))}
        if request["op"] == "attempt":
            return self._attempt(request)
        if request["op"] == "estimate_compiled":
            return self._estimate_compiled()
        if request["op"] == "trace":
            return self._trace(request)
        if request["op"] == "estimate":
            return self._estimate(request)
        raise ValueError(f"unknown request {request['op']!r}")

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        from pallas_rungs.ladder.pretend import Pretend
        from pallas_rungs.ladder.protocol import problem_from_module

        self._level = int(request["pretend_level"])
        if self._level:
            pretend = Pretend(request["pretend_chip"], self._level)
            self._stack.enter_context(pretend.applied())
        path = self._path = Path(request["path"])
        module = self._modules.get(path)
        try:
            module = module or load_file(path)
        except BaseException as error:
            return self._import_failed(path, error)
        self._modules[path] = module
        find_symbol(module, request["symbol"])
        reference = _reference(module, path, request)
        args, kwargs = _arguments(request)
        try:
            problems = problem_from_module(module, request["symbol"], args, reference, kwargs)
        except LoadError:
            raise
        except BaseException as error:
            where = _own_line(error, path)
            if where is None and isinstance(error, ValueError):
                return {"error": str(error)}
            raise LoadError(
                _says(f"{path.name}: its cases could not be made", error, path)
            ) from None
        for problem in problems:
            check_names_fit(problem.function, request["symbol"], request["over"])
        by_name = {**kwargs, **dict.fromkeys(request["over"])}
        for problem in problems if args is not None else ():
            check_arguments_fit(problem.function, request["symbol"], args or (), by_name)
        self._problems = [_with_tolerance(problem, request) for problem in problems]
        return {
            "problems": [problem.name for problem in self._problems],
            "files": own_files(path),
        }

    def _import_failed(self, path: Path, error: BaseException) -> dict[str, Any]:
        from pallas_rungs.ladder.diagnose import in_full, kernel_error
        from pallas_rungs.ladder.pretend import machine_asked_for, why_name_the_chip

        message = in_full(kernel_error(error))
        answer = {"error": _says(f"{path.name} could not be imported", error, path)}
        if not self._level and (why := why_name_the_chip(self._level, message)):
            answer["escalate"] = why
            answer["machine"] = machine_asked_for(message).name
        return answer

    def _attempt(self, request: dict[str, Any]) -> dict[str, Any]:
        from pallas_rungs.ladder.diagnose import in_full
        from pallas_rungs.ladder.pretend import why_name_the_chip
        from pallas_rungs.ladder.rungs import attempt
        from pallas_rungs.ladder.status import Rung, Status

        problem = self._problems[request["problem"]]
        rung, target = Rung(request["rung"]), request["target"]
        self._compiled = None

        def keep(compiled: Compiled) -> None:
            self._compiled = compiled, problem.name

        try:
            verdict = attempt(
                problem,
                rung,
                target,
                chip=request["chip"],
                time_limit=request["time_limit"],
                cache=request["cache"],
                on_compiled=keep if request["estimates"] else None,
            )
        except BaseException as error:
            verdict = _escaped(error, rung, target)
        answer: dict[str, Any] = {
            "verdict": verdict.to_json(),
            "estimable": self._compiled is not None and verdict.status is Status.PASSED,
        }
        if not self._level:
            if verdict.status is Status.NO_KERNEL and not verdict.details["kernels"]:
                answer["escalate"] = "no kernel was left in it on this machine"
            elif verdict.status is Status.REFUSED and verdict.error is not None:
                answer["escalate"] = why_name_the_chip(0, in_full(verdict.error))
        return answer

    def _estimate_compiled(self) -> dict[str, Any]:
        from pallas_rungs.ladder.estimate_beside import estimate_compiled

        assert self._compiled is not None
        compiled, self._compiled = self._compiled, None
        return {"estimate": estimate_compiled(*compiled)}

    def _trace(self, request: dict[str, Any]) -> dict[str, Any]:
        from pallas_rungs.compilers.chips import GPU
        from pallas_rungs.ladder.pretend import Pretend
        from pallas_rungs.ladder.protocol import configured
        from pallas_rungs.ladder.rungs.tracing import traced
        from pallas_rungs.performance.sweep import failed

        self._traced = None
        problem = self._problems[request["problem"]]
        problem = configured(problem, ast.literal_eval(request["configuration"]))
        try:
            with Pretend(request["chip"], 1).applied():
                program = traced(problem)
        except BaseException as error:
            return self._not_lowered(error, None)
        if program.features.machines == (GPU,):
            said = (
                "it is written for a GPU, and a time is estimated for TPUs only; "
                f"`climb` tries it on every rung for a GPU, {GPU.default_chip} or another"
            )
            return {"error": said, "kind": "refused", "told": failed(None, ValueError(said)).told()}
        self._traced = problem, program
        return {}

    def _estimate(self, request: dict[str, Any]) -> dict[str, Any]:
        from pallas_rungs.ir.errors import IRError
        from pallas_rungs.ladder.estimate_beside import with_the_eager_named
        from pallas_rungs.performance import EstimateError, estimate
        from pallas_rungs.performance.sweep import failed

        assert self._traced is not None
        problem, program = self._traced
        try:
            found = estimate(
                _named(program.as_function(False), problem.function),
                *program.arrays,
                chip=request["chip"],
                time_limit=request["time_limit"],
            )
        except EstimateError as error:
            told = failed(None, error).told()
            return {"error": str(error), "kind": error.kind, "told": told}
        except IRError as error:
            said = f"the compiler's dump is not as it is known here: {error}"
            return {"error": said, "kind": "", "told": failed(None, error).told()}
        except BaseException as error:
            return self._not_lowered(error, program)
        found = with_the_eager_named(dataclasses.replace(found, name=problem.name), program)
        return {"estimate": found.to_json(), "text": str(found)}

    def _not_lowered(self, error: BaseException, program: Program | None) -> dict[str, Any]:
        from pallas_rungs.ladder.diagnose import in_full, kernel_error
        from pallas_rungs.ladder.pretend import why_name_the_chip
        from pallas_rungs.ladder.rungs.tracing import refused
        from pallas_rungs.ladder.status import Rung
        from pallas_rungs.performance.sweep import failed

        found = kernel_error(error)
        if program is not None:  # its kernels say which line is meant where no frame does
            found = refused(Rung.LOWER, "", error, program, False).error or found
        said = _says("not lowered", error, self._path, importing=False)
        if found.frame is not None and "\n  at " not in said:
            said += f"\n  at {found.frame.file}:{found.frame.line}: {found.frame.source}"
        if found.advice:
            said += f"\n  → {found.advice}"
        told = {"error": said, "kind": "refused", "told": failed(None, error).told()}
        if not self._level:
            told["escalate"] = why_name_the_chip(0, in_full(kernel_error(error)))
        return told


def _named(function: Callable[..., Any], original: Any) -> Callable[..., Any]:
    """Return a function under the name of what it was made of; the compiler names programs so."""

    def call(*arrays: Any) -> Any:
        return function(*arrays)

    call.__name__ = getattr(original, "__name__", call.__name__)
    return call


def _escaped(error: BaseException, rung: Rung, target: str) -> Verdict:
    """The verdict where an error got past the rung: one that is no Exception, or the ladder's."""
    from pallas_rungs.ladder.diagnose import kernel_error
    from pallas_rungs.ladder.status import Status
    from pallas_rungs.ladder.verdict import Verdict

    found = kernel_error(error)
    said = f"{found.type}: {found.message}"
    if not isinstance(error, Exception):
        return Verdict.of(rung, Status.REFUSED, target, said, error=found)
    gap = "the ladder itself failed on this program; please report it"
    return Verdict(
        rung,
        Status.TOOL_CANNOT,
        target,
        summary=f"{gap}: {said}",
        observed=Status.REFUSED,
        error=found,
        details={"gap": gap, "traceback": traceback.format_exc()},
    )


def _reference(
    module: ModuleType, path: Path, request: dict[str, Any]
) -> Callable[..., Any] | None:
    """The reference that was named, from the same file or from another."""
    if not request["reference_symbol"]:
        return None
    named = Path(request["reference_path"])
    if named != path:
        try:
            module = load_file(named)
        except BaseException as error:
            raise LoadError(_says(f"{named.name} could not be imported", error, named)) from None
    return find_symbol(module, request["reference_symbol"])


def _arguments(request: dict[str, Any]) -> tuple[tuple[Any, ...] | None, dict[str, Any]]:
    """The arguments given as text, by position and by name; None for those of the file."""
    from pallas_rungs.ladder.arguments import make_inputs, parse_arguments

    if request["args"] is None:
        return None, {}
    import jax

    specs = parse_arguments(request["args"], x64=bool(jax.config.jax_enable_x64))
    try:
        values = make_inputs(specs, request["seed"])
    except MemoryError as error:
        raise LoadError(
            f"the arguments are too large to be made here: {error}; give smaller shapes"
        ) from None
    by_name = {spec.name: value for spec, value in zip(specs, values, strict=True) if spec.name}
    return values[: len(values) - len(by_name)], by_name


def _with_tolerance(problem: Any, request: dict[str, Any]) -> Any:
    changes = {name: request[name] for name in ("rtol", "atol") if request[name] is not None}
    return dataclasses.replace(problem, **changes) if changes else problem


def _says(what: str, error: BaseException, path: Path, *, importing: bool = True) -> str:
    """One or two lines: what failed, the error, and the line of the file that it came from."""
    from pallas_rungs.ladder.source_frames import message_of

    lines = message_of(error).strip().split("\n")
    text = lines[0]
    if text.endswith(":") and len(lines) > 1:  # the first line only announces the second
        text = f"{text} {lines[1].strip()}"
    kind = type(error).__name__
    message = f"{what}: {kind}: {text}" if text else f"{what}: {kind}"
    if isinstance(error, EOFError):
        message += " (it reads standard input, which is empty here)"
    if isinstance(error, SystemExit) and importing:
        message += " (it left by itself; guard what it runs with `if __name__ == '__main__':`)"
    elif isinstance(error, SystemExit):
        message += " (something that it calls ends the process: sys.exit, or exit in a library)"
    if (line := _own_line(error, path)) is not None:
        message += f"\n  at {line}"
    return message


def _own_line(error: BaseException, path: Path) -> str | None:
    """The innermost line of the reader's own folder on the stack."""
    folder = str(path.parent)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folder) and "site-packages" not in frame.filename:
            source = f": {frame.line}" if frame.line else ""
            return f"{frame.filename}:{frame.lineno}{source}"
    return None
