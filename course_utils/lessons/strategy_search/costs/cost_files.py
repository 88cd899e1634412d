"""Measured times, kept on the disk: they hold for one machine, one version of torch, and one number of ranks."""

import contextlib
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch

from course_utils import system
from course_utils.home import course_home

VERSION = 2
"""Of the way in which times are measured: what was measured in another way does not count."""


def machine() -> str:
    """What the times depend on beside the parts themselves: the node, its processor and torch."""
    model = system.processor() or platform.machine()
    return f"{platform.node()}, {model}, {os.cpu_count()} cores, torch {torch.__version__}"


def _file(ranks: int) -> Path:
    name = hashlib.sha256(f"{machine()}, {ranks} ranks, {VERSION}".encode()).hexdigest()[:16]
    return course_home() / "operator_costs" / f"{name}.json"


def kept_times(ranks: int) -> dict[str, list[float]]:
    """(seconds forward, backward, spread) by the signature of a part; nothing where the file cannot be read."""
    try:
        found = json.loads(_file(ranks).read_text())["times"]
        return {str(key): [float(seconds) for seconds in value] for key, value in found.items() if len(value) == 3}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def keep_times(times: Mapping[str, list[float]], ranks: int) -> None:
    """Add times to the file, at once or not at all; where that is not possible, they are measured again next time."""
    file = _file(ranks)
    text = json.dumps({"machine": machine(), "ranks": ranks, "times": {**kept_times(ranks), **times}}, indent=1)
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=file.parent)  # of mode 0600
        try:
            with os.fdopen(handle, "w") as stream:
                stream.write(text)
            os.replace(beside, file)
        except OSError:
            os.unlink(beside)
            raise


def forget_times(ranks: int) -> None:
    """Measure again next time."""
    with contextlib.suppress(OSError):
        _file(ranks).unlink()
