"""The sentences of lesson 6 are chosen by the numbers."""

from types import SimpleNamespace

import numpy as np

from course_utils.lessons.data_parallel import sentences, training
from course_utils.lessons.data_parallel.timed_steps import last_step
from course_utils.ranks.run import Run
from course_utils.trace.events import Event


def phase(rank: int, name: str, start: float, end: float, kind: str = "phase") -> Event:
    return Event(rank, name, kind, None, None, 0, start, end)


def test_the_phases_of_one_rank_are_listed_step_by_step():
    events = [phase(0, "communication", 1, 3), phase(1, "communication", 1, 9), phase(0, "forward", 3, 4)]
    events += [phase(0, "communication", 4, 5), phase(0, "communication", 5, 9, kind="collective")]
    assert sentences.phase_durations(events, "communication") == [2, 1]


def test_the_quickest_run_is_that_which_spans_the_least_time():
    slow, quick = (SimpleNamespace(events=[phase(0, "a", 5, 6), phase(1, "b", 1, end)]) for end in (9, 7))
    assert sentences.quickest([slow, quick]) is quick


def test_the_last_step_of_each_rank_begins_with_its_forward_pass():
    later = [phase(0, "forward", 4, 5), phase(0, "all_reduce", 5, 7, kind="collective"), phase(1, "forward", 3.5, 6)]
    earlier = [phase(0, "forward", 1, 2), phase(0, "step", 2, 4), phase(1, "forward", 1, 3), phase(1, "step", 3, 3.5)]
    run = Run(results=[None, None], events=[*earlier, *later], seconds=9.0)
    assert last_step(run).events == later and last_step(run).seconds == run.seconds


def test_the_exchange_is_compared_only_where_it_differs():
    six, one = [0.03, 0.028, 0.032], [0.009, 0.01, 0.011]
    said = sentences.exchange_text({"six": six, "one": one})
    assert said == (
        "Communication in a step: six: 30 ms (from 28 ms to 32 ms); one: 10 ms (from 9 ms to 11 ms). "
        "The first takes 3 times as long"
    )
    assert sentences.exchange_text({"six": one, "one": six}).endswith("No clear difference")


def test_what_the_kernel_counted_is_told_in_vectors():
    run = SimpleNamespace(way="ring", sent=[30, 30, 30, 30], gradient_bytes=10, steps=2)
    said = sentences.sent_text(run)
    assert said == "ring: ranks 0 to 3 send 1.50, 1.50, 1.50, 1.50 gradients in a step, 6.0 in total"
    run.sent = []
    assert "share one memory" in sentences.sent_text(run)


def test_who_waits_is_told_only_where_somebody_does():
    assert "4 times as long" in sentences.waiting_text([0.4, 0.4, 0.4, 0.1], late=3)
    assert "all ranks wait" in sentences.waiting_text([0.4, 0.105, 0.4, 0.1], late=3)


def test_the_loss_of_the_whole_batch_is_the_mean_of_the_shares():
    histories = [training.History([1.0, 2.0], 0.5, None), training.History([3.0, 6.0], 0.5, None)]
    assert training.mean_losses(histories) == [2.0, 4.0]


def test_the_best_rates_of_two_batches_are_compared():
    losses = np.array([[[0.3, 0.1, 0.2], [0.4, 0.3, 0.2]], [[0.3, 0.2, 0.2], [0.1, 0.3, 0.2]]])
    said = sentences.best_rates_text("SGD", [0.1, 0.2, 0.4], losses)
    assert said == "SGD's best rate is 0.2 for 32 images and 0.4 for 128, 2 times as large"
    assert sentences.best_rates_text("SGD", [0.1, 0.2, 0.4], losses[:, ::-1][:, [1, 1]]).endswith(
        "and the same for 128"
    )


def test_phases_become_a_bar_for_each_rank():
    events = [phase(1, "forward", 0, 2), phase(0, "forward", 0, 1), phase(0, "step", 1, 3), phase(0, "forward", 3, 4)]
    assert sentences.phase_bars(events) == {"rank 0": {"forward": 2, "step": 2}, "rank 1": {"forward": 2}}
