"""What someone who reads numbers from foreign traces has to know about them, as values.

`note_sentences` makes a sentence of each.
"""

from dataclasses import dataclass
from enum import Enum, auto


class NoteKind(Enum):
    """What a note is about."""

    RANKS_FROM_NAMES = auto()
    """The files don't say which rank they are from, their names do."""
    RANKS_COUNTED = auto()
    """Neither the files nor their names say which rank they are from, so they were counted in the names' order."""
    RANKS_MISSING = auto()
    """The run had more ranks than there are files."""
    SEVERAL_RUNS = auto()
    """The files don't agree on how many ranks there were, so they are from different runs."""
    HOURS_APART = auto()
    """The files are from times that are hours apart, so they can't be from one run's same steps."""
    NO_STEPS = auto()
    """No event marks a step, so that the whole file is taken for the steps."""
    CALLS_MISSING = auto()
    """A file has few of the calls that asked for the GPU's work, so that goes by when it ran."""
    CLOCKS_NOT_ALIGNED = auto()
    """The ranks' times are from the clocks of their machines, and nobody has compared these."""
    CLOCKS_UNKNOWN = auto()
    """The files don't say when their times begin, or ranks have nothing in common: their first steps begin together."""
    SEVERAL_FILES = auto()
    """A rank has several files, of which the one that is named here was taken."""
    LEFT_OUT = auto()
    """Files that are not traces."""
    CUT_SHORT = auto()
    """A file ends in the middle; what comes before was read."""
    MENDED = auto()
    """A file is not quite JSON; events that could not be read were left out."""


@dataclass(frozen=True)
class Note:
    """A thing to know about a profile.

    Attributes:
        kind: what it is about.
        ranks: whose traces it concerns.
        files: whose it concerns, by name.
        number: for RANKS_MISSING how many ranks the run had; for MENDED how many events were left out.
    """

    kind: NoteKind
    ranks: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    number: int = 0
