"""Packages of the course's environment that others on the PYTHONPATH come before, as after loading a site's modules."""

import os
import pkgutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from course_utils.machine import ranks_python

VARIABLE = "PYTHONPATH"
_OWN = ("course_utils", "workshop")
"""The course itself may well be on it."""
_SECONDS = 120.0
_TRIED = ("cloudpickle", "ipykernel", "ipyparallel", "matplotlib", "numpy", "psutil", "torch", "zmq")


@dataclass(frozen=True)
class ShadowedPackage:
    """A package that is imported from the PYTHONPATH, and not from the environment.

    Attributes:
        name: by which it is imported.
        folder: on the PYTHONPATH.
    """

    name: str
    folder: str


def shadowed_packages() -> list[ShadowedPackage]:
    """The packages, in the order of the PYTHONPATH. Nothing is imported."""
    folders = [folder for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    foreign = {os.path.realpath(folder) for folder in folders}
    own = [path for path in sys.path if path and os.path.realpath(path) not in foreign]
    found: dict[str, ShadowedPackage] = {}
    for folder in folders:
        for module in pkgutil.iter_modules([folder]):
            name = module.name
            theirs, ours = PathFinder.find_spec(name, [folder]), PathFinder.find_spec(name, own)
            if name in found or name in _OWN or not (theirs and theirs.origin and ours and ours.origin):
                continue
            if os.path.realpath(theirs.origin) != os.path.realpath(ours.origin):
                found[name] = ShadowedPackage(name, folder)
    return list(found.values())


def import_error() -> str:
    """What Python says when it imports what the course needs, with this PYTHONPATH; "" where it imports all of it."""
    command = [ranks_python(), "-P", "-c", f"import {', '.join(_TRIED)}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=Path("/"))
    except subprocess.TimeoutExpired:
        return f"no answer after {_SECONDS:.0f} s"
    if done.returncode == 0:
        return ""
    return (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
