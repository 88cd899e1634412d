"""What surrounds every action of a run: its phase in the trace, its pace, weight gradients that are put aside."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import nn

from course_utils.lessons.pipeline.actions import BACKWARD, INPUT, WEIGHT, Action
from course_utils.lessons.pipeline.split_backward import Later, Stage
from course_utils.lessons.pipeline.stage_pace import Pace, at_work


class Work:
    """A rank's stages at work.

    A `Stage` puts the gradients of its weights aside. Here they are fetched: at once in a whole backward pass (B), in
    the action W where the pass was cut in two.
    """

    def __init__(self, stages: Mapping[int, nn.Module], pace: Pace | None = None) -> None:
        """With a pace every computation lasts as long as it says, see `course_utils.lessons.pipeline.stage_pace`."""
        self.stages, self.pace = stages, pace
        self.later: dict[tuple[int, int], list[Later]] = {}

    @contextmanager
    def on(self, action: Action) -> Iterator[None]:
        """Around what the rank does for an action; all there is to W, and nothing for a message."""
        if not action.computes:
            yield
            return
        key = action.stage, action.micro_batch
        with at_work(action, self.pace):
            yield
            if action.kind in (BACKWARD, INPUT):
                stage = self.stages[action.stage]
                self.later[key] = stage.take() if isinstance(stage, Stage) else []
            if action.kind in (BACKWARD, WEIGHT):
                for work in self.later.pop(key):
                    work()
