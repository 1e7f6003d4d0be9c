"""The process that the kernels of a build are forked from, with jax imported already.

Importing jax, Pallas and the kernel's own machinery takes a process two seconds. This one does it
once; a chapter's kernel is then a copy of it that has run nothing yet. No backend of jax is set up
here, so that each kernel starts its own, and nothing of the book is imported, so that a broken
module is found by the chapter that imports it. The kernels end with this process, and it ends with
the build, whose pipe it reads.

Started by `forked_kernels.ForkServer`; its two arguments are the pipes' file descriptors.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from typing import Any

from pallas_rungs.compilers.wire import read_frame, write_frame

PRELOADED = (
    "numpy",
    "jax",
    "jax.export",
    "jax.experimental.pallas",
    "jax.experimental.pallas.tpu",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
)
"""What every chapter imports, or its kernel does."""


def serve(request_fd: int, reply_fd: int) -> None:
    """Fork a kernel for each request, until the end of the stream.

    A request's header has `arguments` (of the kernel's own command line), `folder` and
    `environment` (all variables); the answer's has `pid`. Never returns in a kernel.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the build, which closes the pipe
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # kernels that ended are reaped by the system
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a kernel's collector need not walk what was imported here
    while (frame := read_frame(request_fd)) is not None:
        pid = os.fork()
        if pid == 0:
            os.close(request_fd)
            os.close(reply_fd)
            _become_kernel(**frame[0])
        write_frame(reply_fd, {"pid": pid})


def _become_kernel(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Turn this process, just forked, into the kernel that its command line would have started."""
    import numpy as np
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    np.random.seed()  # otherwise all kernels share the state of their parent
    arguments = [*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]  # it ends with that
    sys.argv = ["ipykernel_launcher", *arguments]
    kernel: Any = IPKernelApp
    kernel.launch_instance(arguments)
    sys.exit()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
