"""Sentences and titles that lesson 18 makes from numbers of its runs."""

from collections.abc import Mapping, Sequence

from course_utils.lessons.failures.replica_processes import ReplicaRun
from course_utils.measuring import unless_busy
from course_utils.words import count, join, number_text, percent


def goodput_text(sizes: Sequence[int], shares: Mapping[str, Sequence[float]]) -> str:
    """What becomes of the goodput of both ways from the smallest number of GPUs to the largest, as a title."""
    changes = [f"from {percent(line[0])} to {percent(line[-1])} ({name})" for name, line in shares.items()]
    return f"From {sizes[0]:,} to {sizes[-1]:,} GPUs, the goodput goes {join(changes)}"


def lost_text(run: ReplicaRun) -> str:
    """What a death has cost: "Replica 2 dies, and 1 step is lost"."""
    lost = "1 step is lost" if run.lost_steps == 1 else f"{count(run.lost_steps, 'step')} are lost"
    names = join([str(replica) for replica, _ in run.deaths])
    if len(run.deaths) == 1:
        return f"Replica {names} dies, and {lost}"
    return f"Replicas {names} die, and {lost}" if names else f"No replica dies, and {lost}"


def stall_text(going_on: ReplicaRun, restarted: ReplicaRun, busy: bool) -> str:
    """How much longer a restart of all stopped the training."""
    ratio = restarted.stall / going_on.stall
    text = f"The restart of all stopped the training {number_text(ratio)} times longer than going on with three."
    return unless_busy(busy, text)


def reads_text(numbers: Sequence[int], whole: int) -> str:
    """How much each rank has read: "The ranks read 1,200, 1,200 and 1,200 of 3,600 numbers"."""
    return f"The ranks read {join([f'{number:,}' for number in numbers])} of {whole:,} numbers"


def silent_text(loss: float, losses: Sequence[float], share: float = 0.01) -> str:
    """How many of the flips can hardly be seen in the loss, as a title."""
    silent = sum(abs(flipped / loss - 1) < share for flipped in losses)
    return f"{silent} of {len(losses)} flips change the loss by less than {100 * share:g}%"
