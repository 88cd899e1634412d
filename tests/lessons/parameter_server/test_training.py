"""What is measured about servers, stale gradients and local training, and the sentences that are chosen from it."""

import itertools

import numpy as np
import pytest
import torch

import course_utils as course
from course_utils.lessons.parameter_server import pictures
from course_utils.lessons.parameter_server import sentences as said
from course_utils.lessons.parameter_server.digits_trainings import (
    Curve,
    Pace,
    Served,
    own_gradients,
    train_in_rounds,
    train_locally,
)
from course_utils.lessons.parameter_server.experiments import served
from course_utils.lessons.parameter_server.outer_optimizer import AdamW, outer_step
from course_utils.lessons.parameter_server.pictures import loss_over_bytes
from course_utils.measuring import BUSY
from course_utils.trace.events import phase_seconds


def curve(*points: tuple[float, float]) -> Curve:
    """A training with these (seconds, accuracy); an epoch takes a tenth of a second."""
    return Curve([10 * s for s, _ in points], [s for s, _ in points], [a for _, a in points], [])


FAST, SLOW, NEVER = curve((0.1, 0.5), (0.2, 0.96)), curve((0.1, 0.2), (0.8, 0.97)), curve((0.1, 0.5), (0.3, 0.6))


def test_a_curve_knows_when_it_reached_an_accuracy_first() -> None:
    wavy = curve((0.1, 0.5), (0.2, 0.96), (0.3, 0.9), (0.4, 0.97))
    assert wavy.reached(0.95) == 0.2 and wavy.epochs_to(0.95) == 2.0
    assert NEVER.reached(0.95) is None and NEVER.epochs_to(0.95) is None


def one_gradient(comm, data, pace: Pace) -> np.ndarray:
    gradient = own_gradients(comm, data, pace=pace, batch_size=8)
    return gradient(np.zeros(2410))


def test_workers_have_images_of_their_own_and_leave_a_phase_each(four_ranks) -> None:
    run = four_ranks.run(one_gradient, course.data.digits_arrays(), Pace(0.01, straggler=2, factor=3))
    _, *gradients = run.results
    assert all(not np.allclose(one, other) for one, other in zip(gradients, gradients[1:], strict=False))
    seconds = phase_seconds(run.events)
    assert set(seconds) == {(rank, "gradient") for rank in range(4)}
    assert seconds[2, "gradient"] >= 0.03


def test_a_local_step_more_is_an_all_reduce_less(four_ranks) -> None:
    data = course.data.digits_arrays()
    options = {"pace": Pace(0.0), "batch_size": 16}
    runs = {k: four_ranks.run(train_locally, data, 8 // k, local_steps=k, **options) for k in (1, 4)}
    assert {k: run.collectives for k, run in runs.items()} == {1: 8, 4: 2}
    assert runs[1].bytes_per_rank == [4 * nbytes for nbytes in runs[4].bytes_per_rank] == [8 * 8 * 2410] * 4
    assert runs[1].results[0].epochs[-1] == runs[4].results[0].epochs[-1]


@pytest.mark.parametrize(
    ("server", "ring", "sentence"),
    [
        ([[0.016] * 3, [0.1] * 3], [[0.02] * 3] * 2, "server 0%, ring 0%"),
        ([[0.012] * 3, [0.11] * 3], [[0.03] * 3, [0.021] * 3], "server −25% to +10%, ring +5% to +50%"),
        ([[0.012] * 3, [0.09] * 3], [[0.02] * 3] * 2, "server −25% to −10%, ring 0%"),
    ],
)
def test_server_and_ring_are_both_compared_with_the_calculation(server, ring, sentence) -> None:
    text = said.link_text({"server": server, "ring": ring}, {"server": [0.016, 0.1], "ring": [0.02, 0.02]})
    assert text == f"Measured against calculated: {sentence}"


def test_the_title_of_the_link_names_both_times_of_the_most_workers() -> None:
    title = said.link_title([2, 7], [[0.03] * 3, [0.113] * 3], [[0.008] * 3, [0.014] * 3])
    assert title == "With 7 workers: 113 ms through the server, 14 ms around the ring"


def test_the_mean_staleness_stands_beside_the_prediction() -> None:
    title, oldest = said.staleness_text(3, {"equal": [2, 2, 2, 2], "one slow": [1, 1, 1, 5]})
    assert title == "The mean staleness is 2.00 and 2.00, close to 3 − 1"
    assert oldest == "Staleness of the oldest gradient: 2 (equal) and 5 (one slow)"
    assert said.staleness_text(3, {"equal": [0, 0, 1]})[0].endswith("but 2 was predicted")


def test_the_largest_rate_that_succeeds_is_named_for_each_way() -> None:
    rates, fresh = [0.1, 0.3, 0.6], [0.95, 0.97, 0.2]
    title, scaled = said.rates_text(rates, fresh, [0.9, 0.4, 0.1], [0.8, 0.9, 0.3], 0.85)
    assert title == "Largest rate that succeeds: 0.3 with fresh gradients, 0.1 with old ones"
    assert scaled == ("Success: at least 85%. Rates divided by the staleness: up to 0.3")
    assert said.rates_text(rates, fresh, [0.1] * 3, [0.1] * 3, 0.85)[0].endswith("none with old ones")
    assert said.largest_rate(rates, fresh, 0.85) == 0.3 and said.largest_rate(rates, [0.1] * 3, 0.85) == 0


def test_nobody_is_first_where_the_runs_overlap() -> None:
    between = curve((0.15, 0.5), (0.25, 0.96))
    apart = {"waits": [SLOW] * 3, "does not": [FAST, between, FAST]}
    assert said.first_to(apart, 0.95) == ["does not"]
    tied = {"waits": [FAST, between, SLOW], "does not": [between, FAST, FAST]}
    assert said.first_to(tied, 0.95) == ["does not", "waits"]
    overlapping = {"quick": [curve((0.3, 0.96)), curve((0.32, 0.96)), curve((0.383, 0.96))]}
    overlapping["slower"] = [curve((0.347, 0.96)), curve((0.38, 0.96)), curve((0.45, 0.96))]
    assert said.first_to(overlapping, 0.95) == ["quick", "slower"]
    assert said.first_to({"waits": [NEVER] * 3}, 0.95) == []
    races = said.races_text({"equal": apart, "slow": tied, "never": {"waits": [NEVER] * 3}}, 0.95)
    assert races == (
        "Equal: does not reaches 95% first. Slow: no clear difference to 95% between does not and waits. "
        "Never: none reaches 95%"
    )
    assert said.races_text({"equal": apart}, 0.95, busy=True) == ""


def test_a_straggler_s_price_is_named_with_and_without_waiting() -> None:
    rows = {"equal": {"synchronous": [FAST] * 3, "asynchronous": [FAST] * 3}}
    rows["slow"] = {"synchronous": [SLOW] * 3, "asynchronous": [FAST, FAST, SLOW]}
    times = said.slower(rows)
    assert times == pytest.approx({"synchronous": 4.0, "asynchronous": 1.0})
    text = said.straggler_text(times)
    assert text == "With a straggler, the same work takes 4.0 (synchronous) and 1.0 (asynchronous) times as long"
    assert not said.is_busy_race({"equal": rows["equal"]})
    took = rows["equal"]["synchronous"][0].seconds[-1]
    assert not said.is_busy_race(rows, planned=took) and said.is_busy_race({"equal": rows["equal"]}, planned=took / 2)


def test_most_runs_must_have_reached_the_target() -> None:
    assert said.median_to([FAST, SLOW, NEVER], 0.95) == 0.5
    assert said.median_to([FAST, NEVER, NEVER], 0.95) is None
    table = said.reached_table({"equal": {"waits": [FAST, SLOW, FAST], "does not": [NEVER] * 3}}, 0.95)
    assert "200 ms (200 ms to 800 ms), 2.0 epochs" in table and table.endswith("not reached")


def test_fewer_bytes_are_praised_only_where_the_accuracy_holds() -> None:
    assert said.holds_up_to([1, 8], [0.95, 0.94]) == said.holds_up_to([1, 8, 64], [0.95, 0.94, 0.8]) == 8
    assert "lose no accuracy" in said.local_text([1, 8], [1e6, 125e3], [0.95, 0.94])
    assert "beyond 8 the accuracy falls" in said.local_text([1, 8, 64], [1e6, 125e3, 2e4], [0.95, 0.94, 0.8])


def test_clinics_bytes_and_work_to_an_accuracy() -> None:
    assert said.rounds_to([0.5, 0.9, 0.8], 0.85) == 2 and said.rounds_to([0.5], 0.85) is None
    text = said.clinics_text({1: [0.5, 0.6, 0.86], 20: [0.9, 0.9, 0.9], 5: [0.1] * 3}, 0.85, 20_000)
    assert text == (
        "Up to 85%, 1 local epoch: 60 KB, 3 epochs computed; "
        "20 local epochs: 20 KB, 20 epochs computed; 5 local epochs: not reached in 3 rounds"
    )


@pytest.mark.parametrize(
    ("weighted", "unweighted", "sentence"),
    [(0.97, 0.9, "outweigh"), (0.9, 0.97, "happen to help"), (0.95, 0.945, "no difference")],
)
def test_the_unweighted_mean_is_judged_by_what_it_cost(weighted, unweighted, sentence) -> None:
    assert sentence in said.mean_text(weighted, unweighted)


def test_adamw_is_torch_s() -> None:
    rng = np.random.default_rng(1)
    weights, inner = rng.standard_normal(7), AdamW(7, rate=0.1, decay=0.3)
    theirs = torch.nn.Parameter(torch.tensor(weights))
    optimizer = torch.optim.AdamW([theirs], lr=0.1, weight_decay=0.3)
    for _ in range(5):
        gradient = rng.standard_normal(7)
        inner.step(weights, gradient)
        theirs.grad = torch.tensor(gradient)
        optimizer.step()
    np.testing.assert_allclose(weights, theirs.detach().numpy(), rtol=0, atol=1e-12)


def three_outer_steps(comm, changes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parameters, velocity = np.zeros(5), np.zeros(5)
    started = parameters.copy()
    for step in range(3):
        parameters += changes[step, comm.rank]
        outer_step(comm, parameters, started, velocity)
    return parameters, started


def test_an_outer_step_is_torch_s_nesterov_step_against_the_mean_change(four_ranks) -> None:
    changes = np.random.default_rng(2).standard_normal((3, 4, 5))
    theirs = torch.nn.Parameter(torch.zeros(5, dtype=torch.float64))
    optimizer = torch.optim.SGD([theirs], lr=0.7, momentum=0.9, nesterov=True)
    for of_ranks in changes:
        theirs.grad = torch.tensor(-of_ranks.mean(axis=0))
        optimizer.step()
    for parameters, started in four_ranks.run(three_outer_steps, changes).results:
        np.testing.assert_allclose(parameters, theirs.detach().numpy(), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(parameters, started)


def test_three_ways_to_meet_send_what_they_should_and_say_which_ended_lowest(four_ranks) -> None:
    """With a round of one step, the plain mean after it is not the mean gradient: AdamW is not a linear step."""
    data = course.data.digits_arrays()
    sent, losses = {}, {}
    for way in ("every step", "mean", "outer"):
        run = four_ranks.run(train_in_rounds, data, 4, way, inner_steps=8)
        assert all(one == run.results[0] for one in run.results), "the ranks' weights differ"
        assert run.bytes_per_rank == [8 * 2410 * (32 if way == "every step" else 4)] * 4
        losses[way], sent[way] = run.results[0], [run.bytes_per_rank[0] * share for share in (0.25, 0.5, 0.75, 1)]
    best = min(losses, key=lambda way: losses[way][-1])
    text = said.outer_text(sent, losses)
    assert f"with {best}, for" in text and all(way in text for way in losses)
    assert text in loss_over_bytes(sent, losses, "t", text).alt_text


@pytest.mark.parametrize("workers", [1, 3])
def test_virtual_workers_compute_what_real_ones_do(workers):
    nowhere = course.start(workers + 1, where="nowhere", link="100 Mbit/s")
    run = served(nowhere, course.data.digits_arrays(), workers, Pace(0.008))
    alone = 1 / (0.008 + 2 * 2410 * 8 * 8e-8)
    assert run.rate == pytest.approx(workers * alone, rel=0.05) and run.staleness == pytest.approx(workers - 1)
    assert run.accuracy > 0.8


def test_a_full_link_is_found_and_said():
    virtual = [Served(1, 90.0, 0.0, 0.9), Served(7, 640.0, 6.0, 0.9), Served(200, 648.0, 199.0, 0.1)]
    title, found = said.served_text(virtual, [Served(7, 800.0, 6.0, 0.9)])
    assert "200 virtual workers bring no more updates than 7 do" in title
    assert "20% with 7 workers" in found
    assert "not full yet" in said.served_text(virtual[:2], [])[0]
    assert "virtual, 200: 648 updates per second" in pictures.served(virtual, virtual[:1], title).alt_text


@pytest.mark.parametrize(
    ("all_five", "first_four", "sentence"),
    [(4.0, 2.6, "saves 35% of the time"), (2.6, 2.6, "no time here"), (2.6, 4.0, "no time here")],
)
def test_a_backup_worker_is_praised_only_if_it_saves_time(all_five, first_four, sentence) -> None:
    ways = {"all five": [curve((all_five, 0.9))] * 3, "first four": [curve((first_four, 0.9))] * 3}
    assert sentence in said.backup_text(ways, "all five", "first four")
    assert said.backup_text(ways, "all five", "first four", busy=True) == BUSY


def test_a_straggler_can_be_slow_for_a_share_of_its_gradients() -> None:
    pace = Pace(0.02, straggler=1, factor=5, share=0.25)
    late, other = ([*itertools.islice(pace.gradients_of(rank), 2000)] for rank in (1, 2))
    assert set(late) == {0.02, 0.1} and set(other) == {0.02}
    assert late.count(0.1) / 2000 == pytest.approx(0.25, abs=0.05)
    assert late == [*itertools.islice(pace.gradients_of(1), 2000)], "another run draws other ones"
    assert {*itertools.islice(Pace(0.02, straggler=1).gradients_of(1), 100)} == {0.1}
