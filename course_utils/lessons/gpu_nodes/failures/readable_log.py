"""A log for people: without the launcher's own remarks, and with long lines cut."""

import re

from course_utils.lessons.gpu_nodes.failures.explain import shortened

NOISE = re.compile(
    r"torch/distributed/run\.py:\d+\]|Unable to resolve hostname|^(\d+: )?(\[rank\d+\]:)?\s*(\^+|-+|=+)\s*$"
    r"|_internal\.py:\d+\].*Profiler"
)
"""What torchrun says about threads, gloo about the machine's name, and rulers."""
_INSIDE = re.compile(r'^\s+File "[^"]*/(site-packages|lib/python[\d.]+)/')
_BUILT = re.compile(r"\[/\S*/(\w+\.(?:cc|cpp|h):\d+)\]")
"""Where a line of C++ lay on the machine that built PyTorch."""


def readable(log: str, width: int = 104) -> str:
    """The lines that say something, each at most `width` letters long.

    Of a traceback, calls inside Python and its packages are left out, and of a place in C++ its folders.
    """
    kept, inside = [], False
    for line in log.splitlines():
        if _INSIDE.match(line):
            inside = True
        elif not (inside and line.startswith("    ")):
            inside = False
            if line.strip() and not NOISE.search(line):
                kept.append(shortened(_BUILT.sub(r"[\1]", line), width))
    return "\n".join(kept)
