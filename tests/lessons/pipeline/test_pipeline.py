"""Pipeline schedules: written, found wrong, timed, and run on real ranks."""

import functools
import itertools

import pytest
import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.pipeline.actions import Action, parse, parse_schedule, write_schedule
from course_utils.lessons.pipeline.interleaved import interleaved_schedule
from course_utils.lessons.pipeline.run_schedule import run_schedule, split_model
from course_utils.lessons.pipeline.schedules import bubble_fraction, gpipe_schedule, one_f_one_b_schedule
from course_utils.lessons.pipeline.send_and_receive import with_messages
from course_utils.lessons.pipeline.stage_pace import stage_pace
from course_utils.lessons.pipeline.timing import Stuck, simulate_schedule, timing_of
from course_utils.lessons.pipeline.validate import Problem, ProblemKind, peak_in_flight, problems
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule, zb_h2_schedule

EVERY = {
    "GPipe": gpipe_schedule,
    "1F1B": one_f_one_b_schedule,
    "interleaved": functools.partial(interleaved_schedule, chunks=2),
    "ZB-H1": zb_h1_schedule,
    "ZB-H2": zb_h2_schedule,
}
SIZES = [(p, m) for p in (1, 2, 3, 4, 6) for m in (1, p, 2 * p, 3 * p, 4 * p + 1)]


def made(name: str, ranks: int, micro_batches: int):
    """The schedule, or None where there is none of this size."""
    if name == "interleaved" and micro_batches % ranks:
        return None
    return EVERY[name](ranks, micro_batches)


@pytest.mark.parametrize("name", EVERY)
def test_every_schedule_can_be_run_with_and_without_its_messages(name) -> None:
    for ranks, micro_batches in SIZES:
        schedule = made(name, ranks, micro_batches)
        if schedule is not None:
            assert problems(schedule) == []
            assert problems(with_messages(schedule)) == []


@pytest.mark.parametrize("name", ["GPipe", "1F1B"])
def test_the_idle_share_is_the_formulas(name) -> None:
    for ranks, micro_batches in SIZES:
        timing = simulate_schedule(made(name, ranks, micro_batches), 1, 1.5, 0.5)
        assert timing.idle_share == pytest.approx(bubble_fraction(ranks, micro_batches), abs=1e-12)
        assert timing.bubble_share == pytest.approx(timing.idle_share, abs=1e-12)


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_chunks_shrink_the_bubble(chunks) -> None:
    for ranks, groups in itertools.product((1, 2, 4), (1, 2, 3)):
        timing = simulate_schedule(interleaved_schedule(ranks, ranks * groups, chunks))
        assert timing.idle_share == pytest.approx(bubble_fraction(ranks, ranks * groups, chunks), abs=1e-12)


def test_one_chunk_is_1f1b() -> None:
    assert interleaved_schedule(4, 8, 1) == one_f_one_b_schedule(4, 8)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_zero_bubble_waits_for_what_its_paper_says(ranks) -> None:
    micro_batches, forward, first, second = 3 * ranks, 1.0, 1.0, 1.0
    work = micro_batches * (forward + first + second)
    times = (forward, first, second)
    plain = simulate_schedule(one_f_one_b_schedule(ranks, micro_batches), *times)
    h1 = simulate_schedule(zb_h1_schedule(ranks, micro_batches), *times)
    h2 = simulate_schedule(zb_h2_schedule(ranks, micro_batches), *times)
    assert h1.seconds - work == pytest.approx((ranks - 1) * (forward + first - second))
    assert (h1.seconds - work) / (plain.seconds - work) <= 0.40
    assert max(map(h2.window, range(ranks))) == pytest.approx(work), "no rank pauses between its first and last action"
    assert h2.bubble_share == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("ranks", "micro_batches"), SIZES)
def test_what_ranks_keep_is_the_formulas(ranks, micro_batches) -> None:
    assert peak_in_flight(gpipe_schedule(ranks, micro_batches)) == [micro_batches] * ranks
    one = peak_in_flight(one_f_one_b_schedule(ranks, micro_batches))
    assert one == [min(ranks - rank, micro_batches) for rank in range(ranks)]
    assert max(peak_in_flight(zb_h1_schedule(ranks, micro_batches))) <= ranks
    assert max(peak_in_flight(zb_h2_schedule(ranks, micro_batches))) <= 2 * ranks - 1


def without(schedule, text):
    return [[one for one in actions if str(one) != text] for actions in schedule]


def swapped(schedule, rank, first, second):
    actions = list(schedule[rank])
    actions[first], actions[second] = actions[second], actions[first]
    return [actions if place == rank else list(other) for place, other in enumerate(schedule)]


PLAIN = one_f_one_b_schedule(2, 2)  # 0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1
WRONG = {
    "missing forward": (without(PLAIN, "1F1"), Problem(ProblemKind.NO_FORWARD, action=parse("1F1"))),
    "missing backward": (without(PLAIN, "0B0"), Problem(ProblemKind.NO_BACKWARD, action=parse("0B0"))),
    "twice": ([[*PLAIN[0], Action("F", 0, 0)], PLAIN[1]], Problem(ProblemKind.REPEATED, action=parse("0F0"), number=2)),
    "backward first": (swapped(PLAIN, 1, 0, 1), Problem(ProblemKind.TOO_EARLY, 1, parse("1B0"), parse("1F0"))),
    "half": (parse_schedule(["0F0 0I0"]), Problem(ProblemKind.NO_WEIGHT_GRADIENT, None, parse("0I0"), parse("0W0"))),
    "whole and half": (
        parse_schedule(["0F0 0B0 0W0"]),
        Problem(ProblemKind.WHOLE_AND_HALF, None, parse("0B0"), parse("0W0")),
    ),
    "weights first": (parse_schedule(["0F0 0W0 0I0"]), Problem(ProblemKind.TOO_EARLY, 0, parse("0W0"), parse("0I0"))),
    "two homes": (
        parse_schedule(["0F0 0B0 1F1", "1F0 1B0 0F1 0B1 1B1"]),
        Problem(ProblemKind.ON_TWO_RANKS, 0, 0, number=1),
    ),
    "a word": ([["0F0"]], Problem(ProblemKind.NOT_AN_ACTION, 0, "0F0")),
    "no receive": (
        without(with_messages(PLAIN), "1RECV_F1"),
        Problem(ProblemKind.TOO_EARLY, 1, parse("1F1"), parse("1RECV_F1")),
    ),
    "not sent": (
        without(with_messages(PLAIN), "0SEND_F1"),
        Problem(ProblemKind.NEVER_SENT, None, parse("1RECV_F1"), parse("0SEND_F1")),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name) -> None:
    schedule, problem = WRONG[name]
    assert problem in problems(schedule)


def test_more_than_was_asked_for_and_too_little() -> None:
    assert Problem(ProblemKind.NOT_ASKED_FOR, action=parse("0F1")) in problems(PLAIN, micro_batches=1)
    assert Problem(ProblemKind.NO_FORWARD, action=parse("2F0")) in problems(PLAIN, stages=3)


def test_each_problem_has_its_words() -> None:
    for schedule, problem in WRONG.values():
        assert "{" not in str(problem) and "None" not in str(problem), schedule
    (found,) = problems(parse_schedule(["0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"]))
    assert found.kind == ProblemKind.CIRCULAR_WAIT and str(found).startswith("a deadlock: rank 0 waits at ")


def test_memory_over_budget_names_the_first_action() -> None:
    assert [str(problem) for problem in problems(gpipe_schedule(2, 4), memory=3)] == [
        "rank 0 keeps 4 after 0F3, and has room for 3",
        "rank 1 keeps 4 after 1F3, and has room for 3",
    ]
    assert problems(one_f_one_b_schedule(2, 4), memory=[20, 10], sizes=[10, 10]) == []


def test_sends_that_wait_hang_1f1b_and_not_gpipe() -> None:
    assert problems(gpipe_schedule(3, 4), synchronous=True) == []
    (found,) = problems(one_f_one_b_schedule(3, 4), synchronous=True)
    assert "rank 0 waits at 0SEND_F2, until rank 1 comes to 1RECV_F2" in str(found)
    with pytest.raises(Stuck) as stuck:
        simulate_schedule(one_f_one_b_schedule(3, 4), synchronous=True)
    assert stuck.value.waiting[1] == parse("1SEND_F1")


def test_messages_cost_what_the_link_says() -> None:
    free = simulate_schedule(gpipe_schedule(2, 2))
    slow = simulate_schedule(gpipe_schedule(2, 2), latency=0.25, message=0.5)
    assert free.seconds == 9
    assert slow.seconds == pytest.approx(9 + 2 * 0.75), "the first activation and the last gradient are waited for"
    crowded = simulate_schedule(gpipe_schedule(2, 3), message=5.0)
    assert crowded.entries[-1].end >= 1 + 3 * 5 + 3 * 5, "one message after the other on a rank's link"


def test_a_schedule_is_read_as_it_is_written() -> None:
    schedule = with_messages(zb_h1_schedule(3, 4))
    assert parse_schedule(write_schedule(schedule).splitlines()) == schedule
    for text in ("F0", "0X1", "", "0SEND0", "0F"):
        with pytest.raises(CourseError, match="not an action"):
            parse(text)


@pytest.mark.parametrize("make", EVERY.values())
@pytest.mark.parametrize("size", [(0, 1), (1, 0), (-1, 2), (1.5, 2), (True, 2)])
def test_sizes_that_are_none_are_rejected(make, size) -> None:
    with pytest.raises(CourseError, match="whole number"):
        make(*size)


def layers() -> list[nn.Module]:
    """Eight layers in float64; the same on every rank."""
    torch.manual_seed(0)
    sizes = [5, 7, 6, 8, 4, 3]
    linear = [nn.Linear(a, b, bias=b != 8) for a, b in itertools.pairwise(sizes)]
    norm = nn.LayerNorm(6)
    return [m.double() for m in (linear[0], nn.Tanh(), linear[1], norm, linear[2], nn.ReLU(), linear[3], linear[4])]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(22, 5, dtype=torch.float64, generator=generator)
    return x, torch.randint(3, (22,), generator=generator)


def train(comm, name: str, steps: int) -> tuple[list[float], dict[int, list[torch.Tensor]]]:
    """A few steps with a schedule on this communicator: losses, and the weights of this rank's stages."""
    chunks = 2 if name == "interleaved" else 1
    count, micro = comm.size * chunks, 2 * comm.size
    cuts = [8 // count + (place < 8 % count) for place in range(count)]
    parts = split_model(layers(), cuts)
    mine = {stage: part for stage, part in enumerate(parts) if stage % comm.size == comm.rank}
    x, y = batch()
    xs, ys = x.tensor_split(micro), y.tensor_split(micro)  # of unlike sizes

    def loss(output, index):
        return nn.functional.cross_entropy(output, ys[index], reduction="sum") / len(y)

    schedule = EVERY[name](comm.size, micro)
    optimizer = Sgd([one for part in mine.values() for one in part.parameters()], rate=0.5)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        losses.append(run_schedule(comm, schedule, mine, xs, loss))
        optimizer.step()
    return losses, {stage: [one.detach() for one in part.parameters()] for stage, part in mine.items()}


@pytest.mark.parametrize("name", EVERY)
def test_a_pipeline_is_the_serial_model_step_for_step(four_ranks, name) -> None:
    model = nn.Sequential(*layers())
    optimizer = Sgd(model.parameters(), rate=0.5)
    x, y = batch()
    serial = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        serial.append(loss.item())
        loss.backward()
        optimizer.step()
    for size in (1, 4) if name == "interleaved" else (4,):  # two stages on one rank, and one rank for all
        ranks = four_ranks
        if size == 4:
            results = ranks.run(train, name, 4).results
        else:
            results = [ranks.run(alone, name, 4).results[0]]
        assert max(results, key=lambda one: one[0][0])[0] == pytest.approx(serial, abs=1e-12)
        parts = dict(sorted((stage, part) for _, parts in results for stage, part in parts.items()))
        weights = [one for part in parts.values() for one in part]
        assert len(weights) == len(list(model.parameters()))
        for ours, theirs in zip(weights, model.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs.detach(), rtol=0, atol=1e-12)


def alone(comm, name: str, steps: int):
    """The same on one rank, each by itself."""
    own = comm.Split(color=comm.rank, key=0)
    try:
        return train(own, name, steps)
    finally:
        own.Free()


def paced(comm, schedule, seconds: float):
    """One batch through stages that wait."""
    parts = split_model([nn.Linear(3, 3) for _ in schedule], [1] * len(schedule))
    micro = max(action.micro_batch for action in schedule[0]) + 1
    run_schedule(
        comm,
        schedule,
        {comm.rank: parts[comm.rank]},
        [torch.ones(2, 3)] * micro,
        lambda output, index: output.sum(),
        stage_pace(seconds, seconds, seconds),
    )


def test_a_run_is_timed_by_its_trace_and_does_what_was_planned(four_ranks) -> None:
    schedule = zb_h1_schedule(4, 6)
    run = four_ranks.run(paced, schedule, 0.004)
    timing = timing_of(run.events, 4)
    for rank, planned in enumerate(schedule):
        done = sorted((one for one in timing.entries if one.rank == rank), key=lambda one: one.start)
        assert [one.action for one in done] == planned
        assert timing.busy(rank) >= 18 * 0.004
    assert 0 < timing.idle_share < 1
    assert run.messages == 2 * 3 * 6, "an activation and a gradient for each micro-batch and border"
    with pytest.raises(CourseError, match="No phase"):
        timing_of([], 4)


def test_layers_are_cut_as_asked() -> None:
    parts = split_model(layers(), [3, 5])
    assert [len(part) for part in parts] == [3, 5]
    assert list(parts[0].state_dict()) == list(nn.Sequential(*layers()[:3]).state_dict())
    with pytest.raises(CourseError, match="8 layers cannot be cut"):
        split_model(layers(), [3, 4])


def test_a_rank_that_fails_in_the_middle_leaves_the_others_working(four_ranks) -> None:
    def broken(comm):
        if comm.rank == 2:
            raise ValueError("no stage here")
        paced(comm, gpipe_schedule(4, 2), 0.0)

    with pytest.raises(Exception, match="no stage here"):
        four_ranks.run(broken)
    assert four_ranks.run(paced, gpipe_schedule(4, 2), 0.0).messages == 12


def through_torch(name: str, chunks: int, micro_batches: int):
    """Loss and gradients of torch's own schedule on this rank, and the order that it publishes."""
    import torch.distributed as dist

    from course_utils.lessons.pipeline.torch_pipeline import published_order, run_with_torch, torch_pipeline

    rank, count = dist.get_rank(), 4 * chunks
    cuts = [8 // count] * count
    starts = [sum(cuts[:place]) for place in range(count)]
    mine = {s: nn.Sequential(*layers()[starts[s] : starts[s] + cuts[s]]) for s in range(count) if s % 4 == rank}
    pipeline = torch_pipeline(name, mine, count, micro_batches, nn.functional.cross_entropy)
    x, y = batch()
    loss = run_with_torch(pipeline, x[:16], y[:16])
    gradients = {stage: [one.grad for one in part.parameters()] for stage, part in mine.items()}
    return loss, gradients, published_order(pipeline)


@pytest.mark.parametrize(("name", "chunks"), [("GPipe", 1), ("1F1B", 1), ("interleaved", 2), ("ZB-H1", 1)])
def test_torchs_own_schedules_give_the_same_in_the_same_order(four_ranks, name, chunks) -> None:
    results = four_ranks.run(through_torch, name, chunks, 8, backend="gloo").results
    model = nn.Sequential(*layers())
    x, y = batch()
    loss = nn.functional.cross_entropy(model(x[:16]), y[:16])
    loss.backward()
    assert results[3][0] == pytest.approx(loss.item(), abs=1e-12)
    parts = dict(sorted((stage, part) for _, parts, _ in results for stage, part in parts.items()))
    for ours, one in zip([g for part in parts.values() for g in part], model.parameters(), strict=True):
        torch.testing.assert_close(ours, one.grad, rtol=0, atol=1e-12)
    theirs, ours = results[0][2], EVERY[name](4, 8)
    # torch 2.13 counts the forward passes of the last rank from 1 in what it publishes for 1F1B; it runs them from 0.
    compared = range(3) if name == "1F1B" else range(4)
    for rank in compared:
        assert theirs[rank] == ours[rank]
