"""What a profile was recorded on: machines, and GPUs if any are at work in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from course_utils.lessons.profiling import event_kinds
from course_utils.lessons.profiling.chrome_trace import Trace


class GpuMaker(Enum):
    """Whose GPUs, or other devices, are at work."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"
    OTHER = ""


_WORDS = {GpuMaker.NVIDIA: ("NVIDIA", "Tesla", "GeForce", "Quadro", "TITAN"), GpuMaker.AMD: ("AMD", "Radeon")}
"""What the names of their GPUs have in them."""


@dataclass(frozen=True)
class ProfiledHardware:
    """What a profile was recorded on.

    Attributes:
        machines: their names, as far as the files tell.
        gpus: the names of their GPUs, as far as the files tell; none if none of them is at work.
        maker: whose these are; None if no GPU is at work.
    """

    machines: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    maker: GpuMaker | None = None


def hardware_of(traces: Sequence[Trace]) -> ProfiledHardware:
    """Return what the ranks' traces were recorded on."""
    machines = tuple(dict.fromkeys(str(trace["course"].get("machine") or "") for trace in traces))
    with_gpu = [trace for trace in traces if event_kinds.uses_gpu(trace["traceEvents"])]
    names = tuple(dict.fromkeys(name for trace in with_gpu for name in _device_names(trace)))
    maker = _maker(names, with_gpu) if with_gpu else None
    return ProfiledHardware(tuple(filter(None, machines)), names, maker)


def _device_names(trace: Trace) -> Iterable[str]:
    """The names of all GPUs that a rank saw."""
    devices = trace.get("deviceProperties")
    for device in devices if isinstance(devices, list) else []:
        name = device.get("name") if isinstance(device, dict) else None
        if isinstance(name, str) and name and name.isprintable():
            yield name


def _maker(names: Sequence[str], traces: Sequence[Trace]) -> GpuMaker:
    """Whose GPUs they are: as their names tell, or those of the calls to their driver."""
    for maker, words in _WORDS.items():
        if any(word in name for name in names for word in words):
            return maker
    for trace in traces:
        for event in trace["traceEvents"]:
            if event["ph"] == "X" and event_kinds.is_call(event):
                if event["name"].startswith("hip"):
                    return GpuMaker.AMD
                if event["name"].startswith("cu"):
                    return GpuMaker.NVIDIA
    return GpuMaker.OTHER
