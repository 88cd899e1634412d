"""Schedules with two stages on each rank in the shape of a V: the model goes down the ranks and comes back up.

Rank r holds the stages r and 2P − 1 − r. So rank 0 holds the first stage and the last one and knows the loss itself,
and all ranks keep about equally much in memory.
"""

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, INPUT, WEIGHT, Action, Schedule, whole_number


class _Rank:
    """The list of one rank, built action by action; each call takes the next micro-batch of its kind and stage."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.stages = (rank, 2 * ranks - 1 - rank)  # on the way down, on the way up
        self.actions: list[Action] = []
        self.begun = {(kind, chunk): 0 for kind in (FORWARD, INPUT, WEIGHT) for chunk in (0, 1)}
        self.put_off: list[tuple[int, int]] = []  # (chunk, micro-batch) of each W that is to come

    def do(self, kind: str, chunk: int) -> None:
        """Add F, I or W of the next micro-batch in the stage on the way down (0) or up (1); B is I and W at once."""
        counter = INPUT if kind == BACKWARD else kind
        index = self.begun[counter, chunk]
        self.begun[counter, chunk] += 1
        if kind == BACKWARD:
            self.begun[WEIGHT, chunk] += 1
        elif kind == INPUT:
            self.put_off.append((chunk, index))
        self.actions.append(Action(kind, self.stages[chunk], index))

    def do_oldest_weight(self) -> None:
        """Add the W that was put off first, if there is one."""
        if self.put_off:
            chunk, index = self.put_off.pop(0)
            self.begun[WEIGHT, chunk] += 1
            self.actions.append(Action(WEIGHT, self.stages[chunk], index))


def zb_v_schedule(ranks: int, micro_batches: int) -> Schedule:
    """Return ZB-V: no rank pauses between its first action and its last if F, I and W take equally long.

    In the middle, each rank does F, I and W of the stage on the way down and of the one on the way up, in turn. It
    keeps at most 2P halves of a rank's layers, which is as much as rank 0 keeps with 1F1B.

    Args:
        ranks: P; the stages are 2P.
        micro_batches: m; at least 2P − 1 for the bubble to vanish.

    Source: Qi et al. 2023, "Zero Bubble Pipeline Parallelism", §6 (ZB-V); the order is that of torch's
    `ScheduleZBVZeroBubble`. The family of V-shaped schedules (V-Min, V-Half, V-ZB) is that of Qi et al. 2024, "Pipeline
    Parallelism with Controllable Memory".
    """
    whole_number("ranks", ranks)
    whole_number("micro_batches", micro_batches)
    planned = max(2 * ranks - 1, micro_batches)  # fewer do not fill the V: those beyond m are left out at the end
    schedule = []
    for rank in range(ranks):
        own = _Rank(rank, ranks)
        begun = own.begun
        # Down and back: until the first micro-batch returns, the way down alone; then both.
        for _ in range(2 * (ranks - rank) - 1):
            own.do(FORWARD, 0)
        for _ in range(rank):
            own.do(FORWARD, 1)
            own.do(FORWARD, 0)
        for _ in range(ranks - rank):
            for kind in (FORWARD, INPUT, WEIGHT):
                own.do(kind, 1)
        # One of each, on the way down and on the way up.
        while begun[FORWARD, 1] < begun[FORWARD, 0] or begun[FORWARD, 0] < planned:
            if begun[FORWARD, 0] < planned:
                own.do(FORWARD, 0)
            for kind, chunk in ((INPUT, 0), (WEIGHT, 0), (FORWARD, 1), (INPUT, 1), (WEIGHT, 1)):
                own.do(kind, chunk)
        # The gradients that others wait for come first, the W that were put off at the end.
        for _ in range(rank):
            own.do(INPUT, 0)
            own.do(INPUT, 1)
        for _ in range(ranks - rank):
            own.do(INPUT, 0)
            own.do(WEIGHT, 0)
        for chunk in (1, 0):
            while begun[WEIGHT, chunk] < begun[INPUT, chunk]:
                own.do(WEIGHT, chunk)
        schedule.append([action for action in own.actions if action.micro_batch < micro_batches])
    return schedule


def dual_pipe_v_schedule(ranks: int, micro_batches: int) -> Schedule:
    """Return DualPipe-V, which pairs a forward pass with a backward pass of a different micro-batch.

    In the middle, each rank pairs F on the way down with B on the way up, and then F on the way up with B on the way
    down. On a GPU, the two passes of a pair run at the same time, and the messages of one (such as those of experts,
    lesson 16) hide behind the other. In our lists they come one after the other.

    Args:
        ranks: P; the stages are 2P.
        micro_batches: m, at least 2P.

    Raises:
        CourseError: fewer micro-batches than stages.

    Source: Sea AI Lab 2025, who cut in half the DualPipe of DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", §3.2.1.
    It has been in DeepSeek's repository deepseek-ai/DualPipe since March 2025. The order is that of torch's
    `ScheduleDualPipeV`.
    """
    whole_number("ranks", ranks)
    whole_number("micro_batches", micro_batches)
    if micro_batches < 2 * ranks:
        raise CourseError(f"{micro_batches} micro-batches for {2 * ranks} stages: DualPipe-V takes as many at least.")
    schedule = []
    for rank in range(ranks):
        own, behind = _Rank(rank, ranks), ranks - rank - 1
        # Forward passes until the first micro-batch has come back up.
        for _ in range(2 * behind):
            own.do(FORWARD, 0)
        for _ in range(rank + 1):
            own.do(FORWARD, 0)
            own.do(FORWARD, 1)
        for _ in range(behind):
            own.do(INPUT, 1)
            own.do_oldest_weight()
            own.do(FORWARD, 1)
        # Pairs: forward down with backward up, forward up with backward down.
        for _ in range(micro_batches - 2 * ranks + rank + 1):
            for forward, backward in ((0, 1), (1, 0)):
                own.do(FORWARD, forward)
                own.do(BACKWARD, backward)
        for _ in range(behind):
            own.do(BACKWARD, 1)
            own.do(FORWARD, 1)
            own.do(BACKWARD, 0)
        # From the middle of the last backward passes on, W is put off: others wait for I.
        last = [chunk for _ in range(rank + 1) for chunk in (1, 0)]
        whole = 2 * ((rank + 1) // 2) + (rank % 2 == 0)
        for index, chunk in enumerate(last):
            own.do(BACKWARD if index < whole else INPUT, chunk)
        for _ in range(behind):
            own.do_oldest_weight()
            own.do(INPUT, 0)
        for _ in range(rank + 1):
            own.do_oldest_weight()
        schedule.append(own.actions)
    return schedule
