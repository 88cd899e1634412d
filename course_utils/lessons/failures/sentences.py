"""Sentences and titles that lesson 18 makes from numbers of its runs."""

from collections.abc import Mapping, Sequence

from course_utils.lessons.failures.replica_processes import ReplicaRun
from course_utils.measuring import unless_busy
from course_utils.words import count, join, number_text, percent, seconds_text


def goodput_text(sizes: Sequence[int], shares: Mapping[str, Sequence[float]]) -> str:
    """What becomes of the goodput of both ways from the smallest number of GPUs to the largest, as a title."""
    changes = [f"from {percent(line[0])} to {percent(line[-1])} ({name})" for name, line in shares.items()]
    return f"From {sizes[0]:,} to {sizes[-1]:,} GPUs, the goodput goes {join(changes)}"


def lost_text(run: ReplicaRun, then: str = "") -> str:
    """What a death has cost: "Replica 2 dies, and 1 step is lost".

    Args:
        then: what happens after the death: "all start again".
    """
    lost = "1 step is lost" if run.lost_steps == 1 else f"{count(run.lost_steps, 'step')} are lost"
    names = join([str(replica) for replica, _ in run.deaths])
    verb = "Replica {} dies" if len(run.deaths) == 1 else "Replicas {} die" if names else "No replica dies"
    return f"{', '.join(filter(None, [verb.format(names), then]))}, and {lost}"


def stall_text(going_on: ReplicaRun, restarted: ReplicaRun, busy: bool) -> str:
    """For how long a restart of all stopped the training, beside going on with three."""
    ratio, stalls = restarted.stall / going_on.stall, [seconds_text(run.stall) for run in (going_on, restarted)]
    text = f"Going on with three stopped the training for {stalls[0]}, and restarting all four for {stalls[1]}, "
    text += f"which is {number_text(ratio)} times as long."
    return unless_busy(busy, text)


def reads_text(numbers: Sequence[int], whole: int) -> str:
    """How much each rank has read: "The ranks read 1,200, 1,200 and 1,200 of 3,600 numbers"."""
    return f"The ranks read {join([f'{number:,}' for number in numbers])} of {whole:,} numbers"


def silent_text(loss: float, losses: Sequence[float], share: float = 0.01) -> str:
    """How many of the flips can hardly be seen in the loss, as a title."""
    silent = sum(abs(flipped / loss - 1) < share for flipped in losses)
    return f"{silent} of {len(losses)} flips change the loss by less than {100 * share:g}%"
