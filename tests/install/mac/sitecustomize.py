"""What a Mac has not is taken from every Python process of the session: see `as_on_a_mac.py`.

Python runs this file when it starts, for its folder is on the PYTHONPATH: in pytest, in kernels, and in ranks.
"""

import fcntl
import importlib.abc
import importlib.machinery
import multiprocessing
import os
import resource
import socket
import sys

LONGEST = 103
"""Bytes of a Unix socket's path on a Mac, of which the 104th ends it."""
ABSENT = {
    os: "sched_getaffinity sched_setaffinity sched_yield memfd_create posix_fadvise pipe2 eventfd pidfd_open setns",
    fcntl: "F_ADD_SEALS F_SEAL_SEAL F_SEAL_SHRINK F_SEAL_GROW",
    resource: "prlimit",
    socket: "SO_PEERCRED TCP_INFO",
}
HIDDEN = ("sh", "dash", "bash")
"""Programs of the system, whose environment a Mac shows to nobody."""


def take_away() -> None:
    """Remove the names that Python does not have on a Mac, and what forks."""
    for module, names in ABSENT.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    if multiprocessing.get_start_method(allow_none=True) is None:
        multiprocessing.set_start_method("spawn")
    for name in ("bind", "connect"):
        setattr(socket.socket, name, short_path(getattr(socket.socket, name)))


def short_path(call):
    """Reject the long paths that a Mac rejects."""

    def checked(self, address, *rest):
        if self.family == socket.AF_UNIX and len(os.fsencode(address)) > LONGEST:
            raise OSError("AF_UNIX path too long")
        return call(self, address, *rest)

    return checked


class OnImport(importlib.abc.MetaPathFinder):
    """Lets one module of the course ask on which system it is, and psutil do what it does on a Mac."""

    def find_spec(self, name, path, target=None):
        if name not in ("course_utils.system", "psutil"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            if name == "psutil":
                load(module)
                as_on_a_mac(module)
                return
            here, sys.platform = sys.platform, "darwin"
            try:
                load(module)
            finally:
                sys.platform = here

        spec.loader.exec_module = exec_module
        return spec


def as_on_a_mac(psutil) -> None:
    """Let psutil read what is hidden from all others, for a Mac's kernel tells it there; and hide what a Mac hides."""
    psutil.PROCFS_PATH = os.environ["MAC_PROC"]
    environ = psutil.Process.environ
    psutil.Process.environ = lambda process: {} if process.name() in HIDDEN else environ(process)


sys.meta_path.insert(0, OnImport())
take_away()
