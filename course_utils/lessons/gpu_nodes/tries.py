"""The starts of one training run, read from its log: where each began, how far it got, and how it ended."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_EPOCH = re.compile(r"^epoch (\d+) of \d+: loss (\S+)$")
_KILLED = re.compile(r"^rank (\d+) kills itself after step (\d+)")
_RESUMED = re.compile(r"^resumes after step (\d+),")
_STARTED = re.compile(r"^\d+ ranks? on \d+ nodes? ")


@dataclass
class Try:
    """One start of all processes.

    Attributes:
        began: the step after which it resumed; 0 for the beginning.
        steps, losses: at the end of each epoch, the steps done in all and the loss.
        died: the step after which a rank was killed; None where none was.
        rank: which one.
    """

    began: int = 0
    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    died: int | None = None
    rank: int | None = None

    @property
    def ended(self) -> int:
        """The last step that it did."""
        return self.died if self.died is not None else (self.steps or [self.began])[-1]


def tries_of(log: str, steps_per_epoch: int) -> list[Try]:
    """Return the tries that the log of a training run shows."""
    tries: list[Try] = []
    for line in log.splitlines():
        if _STARTED.match(line):
            tries.append(Try())
        elif not tries:
            continue
        elif found := _EPOCH.match(line):
            tries[-1].steps.append(int(found[1]) * steps_per_epoch)
            tries[-1].losses.append(float(found[2]))
        elif found := _KILLED.match(line):
            tries[-1].rank, tries[-1].died = int(found[1]), int(found[2])
        elif found := _RESUMED.match(line):
            tries[-1].began = int(found[1])
    return tries


def repeated_steps(tries: Sequence[Try]) -> int:
    """Return how many steps were done twice, because no checkpoint included them."""
    return sum(max(0, before.ended - after.began) for before, after in zip(tries, tries[1:], strict=False))


def tries_text(tries: Sequence[Try], undisturbed: float) -> str:
    """Return what the failure cost, and how the final loss compares with that of an undisturbed run."""
    end = tries[-1].losses[-1]
    difference = abs(end - undisturbed)
    is_same = difference <= 1e-4 * abs(undisturbed)
    same = f"the same, {end:.4f}" if is_same else f"different: {end:.4f} instead of {undisturbed:.4f}"
    if len(tries) == 1:
        return f"No process was killed, and the loss at the end is {same}"
    return f"{repeated_steps(tries)} steps were done twice, and the loss at the end is {same}"
