"""A log for people: without the launcher's own remarks, and with long lines cut."""

import re
from collections.abc import Iterable, Iterator

NOISE = re.compile(
    r"torch/distributed/run\.py:\d+\]|Unable to resolve hostname|hostname of the client socket cannot be retrieved"
    r"|^(\d+: )?(\[rank\d+\]:)?\s*(\^+|-+|=+)\s*$"
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
    return "\n".join(readable_lines(log.splitlines(), width))


def readable_lines(lines: Iterable[str], width: int = 104) -> Iterator[str]:
    """Yield those of the lines that say something as they arrive, shortened as in `readable`."""
    inside = False
    for line in lines:
        if _INSIDE.match(line):
            inside = True
        elif not (inside and line.startswith("    ")):
            inside = False
            if line.strip() and not NOISE.search(line):
                yield shortened(_BUILT.sub(r"[\1]", line.rstrip("\n")), width)


def shortened(line: str, width: int = 240) -> str:
    """The line, or its beginning if it is long."""
    return line if len(line) <= width else line[: width - 1] + "…"
