"""The share of messages over the model's width, in a sentence; and nn.DataParallel without GPUs is the plain module."""

import inspect

import torch
from torch import nn

from course_utils.lessons.overlap.sentences import width_text
from course_utils.lessons.overlap.step_times import ALONE, StepTimes


def test_a_change_is_told_only_where_rounds_agree() -> None:
    told = "From 4 to 16 channels, messages go from 50% to 25% of a step"
    assert width_text([4, 8, 16], [[0.5] * 5, [0.4] * 5, [0.25] * 5]) == told
    assert "no clear" in width_text([4, 8], [[0.5, 0.5, 0.5], [0.6, 0.2, 0.6]])
    assert "no clear" in width_text([4, 8], [[0.5] * 5, [0.51] * 5])


def test_the_share_of_each_round_is_beyond_the_step_that_sends_nothing_and_not_below_zero() -> None:
    times = StepTimes({ALONE: [1.0, 1.0, 3.0], "DDP": [2.0, 4.0, 2.0]})
    assert times.exposed_shares("DDP") == [0.5, 0.75, 0.0]


def test_data_parallel_does_its_four_things_in_each_forward_pass_and_none_without_gpus() -> None:
    source = inspect.getsource(nn.DataParallel.forward)
    assert all(f"self.{name}(" in source for name in ("scatter", "replicate", "parallel_apply", "gather"))
    if not torch.cuda.is_available():
        model, x = nn.Linear(3, 2), torch.ones(4, 3)
        wrapped = nn.DataParallel(model)
        assert wrapped.device_ids == [] and torch.equal(wrapped(x), model(x))
