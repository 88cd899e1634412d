"""One line of a log, with what is known of it: where it is, who wrote it, and when."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log.

    Attributes:
        text: without its end, and without the escape sequences of colours.
        number: counted from 1 as an editor counts, so only newlines count.
        file: the name of the file that it is in, as the reader would type it.
        rank: who wrote it; None if the launcher, Slurm or the system did, or if nothing tells.
        node: the name of the machine, or "" if nothing tells.
        time: in seconds since 1970, or None if neither the line nor one before it has a time.
    """

    text: str
    number: int
    file: str = ""
    rank: int | None = None
    node: str = ""
    time: float | None = None
