"""Errors that a docstring promises, as values that results are compared with."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Raises:
    """What is expected of a call that must be rejected; and how a call ended, as `cases.how_it_ended` has it.

    Attributes:
        error: the name of the error; "" for a call that returned. A class of the learner's own, or of a library, counts
            as the error of Python or of the course that it is.
        has_message: whether the error must say something, or does.
        returned: what came back instead, in words.
        own_name: of the class that was raised.
        message: what the error says.
        line: where it was raised, in words.
    """

    error: str
    has_message: bool = field(default=False, compare=False)
    returned: str = field(default="", compare=False)
    own_name: str = field(default="", compare=False)
    message: str = field(default="", compare=False)
    line: str = field(default="", compare=False)
