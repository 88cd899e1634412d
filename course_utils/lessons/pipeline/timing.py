"""When everything in a schedule happens: by simulation before a run, from the trace after one.

A rank does one thing at a time, in the order of its list. A message leaves when it is sent and the ones before it have
left; its rank goes on meanwhile. A receive waits for its message.
Nothing here runs a model.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import (
    BACKWARD,
    FORWARD,
    INPUT,
    RECV_B,
    RECV_F,
    SEND_B,
    SEND_F,
    WEIGHT,
    Action,
    parse,
    rank_of_stages,
)
from course_utils.lessons.pipeline.send_and_receive import other_end, with_messages
from course_utils.trace.events import Event

PerStage = float | Sequence[float]
"""A number for all stages, or one for each."""


def number_for(index: int, numbers: PerStage) -> float:
    """The number of one stage, or of one rank."""
    return numbers if isinstance(numbers, int | float) else numbers[index]


@dataclass(frozen=True, slots=True)
class Timed:
    """An action with its rank, its start and its end, in seconds (or in whatever unit the stage times have)."""

    rank: int
    action: Action
    start: float
    end: float


@dataclass(frozen=True)
class Timing:
    """When every computation of a schedule began and ended.

    Attributes:
        ranks: P.
        entries: the computations, in order of their start.
    """

    ranks: int
    entries: tuple[Timed, ...]

    @property
    def seconds(self) -> float:
        """From the first start to the last end."""
        return max(entry.end for entry in self.entries) - min(entry.start for entry in self.entries)

    def busy(self, rank: int) -> float:
        """How long the rank computed."""
        return sum(entry.end - entry.start for entry in self.entries if entry.rank == rank)

    def window(self, rank: int) -> float:
        """From the rank's own first start to its own last end."""
        own = [entry for entry in self.entries if entry.rank == rank]
        return max(entry.end for entry in own) - min(entry.start for entry in own) if own else 0.0

    @property
    def idle_share(self) -> float:
        """The share of all ranks' time, from the first start to the last end, in which they did not compute."""
        return 1 - sum(map(self.busy, range(self.ranks))) / (self.ranks * self.seconds)

    @property
    def bubble_share(self) -> float:
        """The idle share inside the longest window of a rank: what is lost if the next batch begins right behind.

        Source: Qi et al. 2023, §5.1, "bubble rate".
        """
        longest = max(range(self.ranks), key=self.window)
        return 1 - self.busy(longest) / self.window(longest)


class Stuck(CourseError):
    """No rank can go on. `waiting` holds for each stuck rank the action that cannot begin."""

    def __init__(self, waiting: dict[int, Action]) -> None:
        self.waiting = waiting
        named = "; ".join(f"rank {rank} at {action}" for rank, action in waiting.items())
        super().__init__(f"Deadlock: {named}. Each waits for something that comes after what another waits for.")


def simulate_schedule(
    schedule: Sequence[Sequence[Action]],
    forward: PerStage = 1.0,
    input_gradient: PerStage = 1.0,
    weight_gradient: PerStage = 1.0,
    latency: float = 0.0,
    message: float = 0.0,
    synchronous: bool = False,
) -> Timing:
    """Predict when everything happens.

    Args:
        schedule: with or without messages; without, they are put in by `with_messages`.
        forward, input_gradient, weight_gradient: how long each takes, for all stages or for each. A whole backward pass
            takes as long as its two halves together.
        latency: until a message that has left arrives.
        message: how long a message occupies its sender's link.
        synchronous: sends wait until the other side receives, as large MPI messages do.

    Raises:
        Stuck: the ranks wait for each other.

    Source: Culler et al. 1993, "LogP", §3: latency is L, message the gap g.
    """
    ahead = {FORWARD: forward, INPUT: input_gradient, WEIGHT: weight_gradient}

    def duration(action: Action) -> float:
        if action.kind == BACKWARD:
            return number_for(action.stage, input_gradient) + number_for(action.stage, weight_gradient)
        return number_for(action.stage, ahead[action.kind])

    complete = any(not action.computes for actions in schedule for action in actions)
    program = schedule if complete else with_messages(schedule)
    return _Walk(program, duration, latency, message, synchronous).timing()


def timing_of(events: Iterable[Event], ranks: int) -> Timing:
    """The same of a run on real ranks: the trace's phases that are named after computations, `2F0`."""
    entries = []
    for event in events:
        if event.kind == "phase":
            try:
                action = parse(event.name)
            except CourseError:
                continue  # a phase with another name
            if action.computes:
                entries.append(Timed(event.rank, action, event.start, event.end))
    if not entries:
        raise CourseError("No phase of this run is named after an action of a schedule, such as 2F0.")
    return Timing(ranks, tuple(sorted(entries, key=lambda entry: entry.start)))


class _Walk:
    """Every rank's list, and how far it has come."""

    def __init__(
        self,
        program: Sequence[Sequence[Action]],
        duration: Callable[[Action], float],
        latency: float,
        message: float,
        synchronous: bool,
    ) -> None:
        self.program, self.duration = program, duration
        self.latency, self.message, self.synchronous = latency, message, synchronous
        self.rank_of = rank_of_stages(program)
        self.positions = [0] * len(program)
        self.clock = [0.0] * len(program)
        self.link_free = [0.0] * len(program)
        self.done: dict[Action, float] = {}  # when each action ended; for a send, when its message arrives
        self.entries: list[Timed] = []

    def timing(self) -> Timing:
        """Let ranks go on as long as one of them can, until all lists are at their end."""
        while any(self.advance(rank) for rank in range(len(self.program))):
            pass
        waiting = {rank: actions[self.positions[rank]] for rank, actions in enumerate(self.program) if self.left(rank)}
        if waiting:
            raise Stuck(waiting)
        return Timing(len(self.program), tuple(sorted(self.entries, key=lambda entry: entry.start)))

    def left(self, rank: int) -> bool:
        """Whether the rank has something left to do."""
        return self.positions[rank] < len(self.program[rank])

    def advance(self, rank: int) -> bool:
        """Let a rank go as far as it can; whether it moved at all."""
        began = self.positions[rank]
        while self.left(rank) and self.step(rank, self.program[rank][self.positions[rank]]):
            self.positions[rank] += 1
        return self.positions[rank] > began

    def step(self, rank: int, action: Action) -> bool:
        """Do one action, if what it needs is there."""
        now = self.clock[rank]
        if action.computes:
            if not all({need, _as_good(need)} & self.done.keys() for need in needs(action, rank, self.rank_of)):
                return False
            end = self.done[action] = now + self.duration(action)
            self.entries.append(Timed(rank, action, now, end))
            self.clock[rank] = end
        elif action.kind in (SEND_F, SEND_B):
            if not any(need in self.done for need in _made_by(action)):
                return False
            if self.synchronous:
                return self.meet(rank, action)
            leaves = max(now, self.link_free[rank]) + self.message
            self.link_free[rank] = leaves
            self.done[action] = leaves + self.latency
        else:
            sent = other_end(action)
            if sent not in self.done:
                return False
            self.clock[rank] = self.done[action] = max(now, self.done[sent])
        return True

    def meet(self, rank: int, action: Action) -> bool:
        """A synchronous send: done when the receiver has come to its receive, and the message has passed."""
        receive = other_end(action)
        other = self.rank_of.get(receive.stage)
        if other is None or not self.left(other) or self.program[other][self.positions[other]] != receive:
            return False
        self.clock[rank] = max(self.clock[rank], self.clock[other]) + self.message + self.latency
        self.done[action] = self.clock[rank]
        return True


def needs(action: Action, rank: int, rank_of: dict[int, int]) -> list[Action]:
    """What must have happened on this rank before a computation: a message received, or another computation.

    Args:
        rank_of: stage → rank, as `rank_of_stages` gives it.
    """
    stage, index = action.stage, action.micro_batch
    if action.kind == WEIGHT:
        return [Action(INPUT, stage, index)]
    if action.kind == FORWARD:
        if stage - 1 not in rank_of:
            return []
        near = rank_of[stage - 1] == rank
        return [Action(FORWARD, stage - 1, index) if near else Action(RECV_F, stage, index)]
    own = [Action(FORWARD, stage, index)]
    if stage + 1 not in rank_of:
        return own
    if rank_of[stage + 1] != rank:
        return [*own, Action(RECV_B, stage, index)]
    return [*own, Action(action.kind, stage + 1, index)]


def _as_good(need: Action) -> Action:
    """What gives the same: a whole backward pass and its first half both make the gradient of the stage's input."""
    other = {INPUT: BACKWARD, BACKWARD: INPUT}.get(need.kind, need.kind)
    return Action(other, need.stage, need.micro_batch)


def _made_by(send: Action) -> list[Action]:
    """The computations of which one makes what is sent."""
    kinds = (FORWARD,) if send.kind == SEND_F else (BACKWARD, INPUT)
    return [Action(kind, send.stage, send.micro_batch) for kind in kinds]
