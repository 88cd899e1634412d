"""What a check finds wrong, as a value: what kind of mistake, on which rank, where, what was got and what was expected.

Everything that decides something (which question is asked, a mark, an exit status) compares these fields. The sentence
that people read is made from them in `finding_text`, and nothing reads it back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """What can be wrong with an answer. The values stand in the files of what people write, between backticks."""

    # before anything runs
    SIGNATURE = "signature"  # it cannot be called with the arguments that it gets
    CANNOT_TRAVEL = "cannot travel"  # it uses something of the notebook that cannot be sent to the ranks
    # not every rank came to its end; the first eight are named as `Ending`
    RAISED = "raised"
    DEADLOCK = "deadlock"
    NO_PROGRESS = "no progress"
    NOT_FINISHED = "not finished"
    TOO_BUSY = "too busy"
    STOPPED = "stopped"
    RANK_ENDED = "rank ended"
    UNUSABLE = "unusable"
    UNFINISHED = "unfinished"  # the line that the exercise came with was reached
    # what a rank returned, or left in an argument
    NOTHING = "nothing"
    TYPE = "type"
    SHAPE = "shape"
    DTYPE = "dtype"
    VALUE = "value"
    LENGTH = "length"
    MISSING_ENTRY = "missing entry"
    EXTRA_ENTRY = "extra entry"
    NO_ERROR = "no error"  # a call that the docstring promises to reject came back
    OTHER_ERROR = "other error"  # it was rejected with an error that the docstring does not promise
    NO_MESSAGE = "no message"  # it was rejected with the right error, which says nothing
    ARGUMENT_CHANGED = "argument changed"
    # the result is right
    ROUNDS = "rounds"
    MESSAGES = "messages"
    BYTES = "bytes"
    COLLECTIVES = "collectives"
    UNCOUNTED = "uncounted"  # a call whose cost nobody knows
    BYPASSED = "bypassed"  # what was sent, or what was recorded of it, was not left to the communicator
    MISCOUNTED = "miscounted"  # a rank received what its sender has not recorded
    NEVER_WAITED_FOR = "never waited for"
    BY_LUCK = "by luck"
    # an exercise's own; `Finding.key` says which
    OWN = "own"


RESULT_KINDS = frozenset(
    (Kind.NOTHING, Kind.TYPE, Kind.SHAPE, Kind.DTYPE, Kind.VALUE, Kind.LENGTH, Kind.MISSING_ENTRY, Kind.EXTRA_ENTRY)
    + (Kind.NO_ERROR, Kind.OTHER_ERROR, Kind.NO_MESSAGE)
)
"""What `compare.difference` finds."""
REPORTS = frozenset(
    (Kind.DEADLOCK, Kind.NO_PROGRESS, Kind.NOT_FINISHED, Kind.TOO_BUSY, Kind.STOPPED, Kind.RANK_ENDED, Kind.UNUSABLE)
)
"""Findings whose `words` are the report on the ranks: whole sentences."""


class Key(NamedTuple):
    """The key of a dictionary's entry where it is no text, in `Finding.where`."""

    value: Any


Where = tuple[str | int | Key, ...]
"""The way into a result: names of entries and fields, indices of lists and tuples, other keys."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with an answer.

    Attributes:
        kind: what is wrong.
        rank: the rank on which it was seen; None where it is no single one.
        where: the way into what it returned, or into an argument.
        index: where `got` and `expected` are numbers of an array or a tensor, their index in it.
        got, expected: values, numbers or shapes, as the kind has them; of RAISED, the error.
        key: of an exercise's own finding, which of them: "late-bucket".
        words: of an exercise's own finding, its sentence, with the values' names in braces; of a report, the report.
        values: what stands in the sentence, by name. Two findings are alike when these are.
        measured: the same for times and what depends on them, which differ from run to run.
        context: further words behind the finding: ", in call 2 of your function".
        argument: the name of the argument in which it was seen; "" for what was returned.
        parts: what the entries of the result are called: ("the gradient of a", "the gradient of b").
        calls: if the result is a list of what several calls returned, what each call was: ("for staleness 0",).
        dtype: of the array or tensor in which `got` and `expected` are numbers.
        afterwards: a sentence on what was lost by it; "" where nothing was.
        alone: whether the exercise is one without ranks, so that sentences speak of "your function".

    The last six are for the sentence alone, and two findings are equal whatever they are.
    """

    kind: Kind
    rank: int | None = None
    where: Where = ()
    index: tuple[int, ...] | None = None
    got: Any = None
    expected: Any = None
    key: str = ""
    words: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    context: str = ""
    argument: str = field(default="", compare=False)
    parts: tuple[str, ...] = field(default=(), compare=False)
    calls: tuple[str, ...] = field(default=(), compare=False)
    dtype: str = field(default="", compare=False)
    afterwards: str = field(default="", compare=False)
    alone: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """What files and tests call it: the kind, or an exercise's own key."""
        return self.key or self.kind.value


def own(key: str, words: str, measured: Mapping[str, Any] | None = None, **values: Any) -> Finding:
    """Make an exercise's own finding.

    Args:
        key: names it in the exercise's file: "late-bucket". Stable; people do not read it in a verdict.
        words: its sentence, from a small letter on and without a full stop, with the names of values in braces:
            "rank {rank} sent {sent} bytes; {enough} are enough". {who} is "rank 2", or "your function" in an exercise
            without ranks.
        measured: values that depend on the clock, by name; they take no part when two findings are compared.
        values: the others, by name. `rank`, `got`, `expected` and `where` become the finding's own fields.
    """
    return Finding(
        Kind.OWN,
        rank=values.get("rank"),
        where=values.get("where", ()),
        got=values.get("got"),
        expected=values.get("expected"),
        key=key,
        words=words,
        values=values,
        measured=measured or {},
    )
