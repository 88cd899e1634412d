"""Lesson 16: experts on ranks compute, and train, what one process does; bytes are counted beside the formulas."""

from functools import partial

import pytest
import torch
import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.lessons.experts import pictures, sentences
from course_utils.lessons.experts.all_to_all import (
    all_to_all,
    all_to_all_by_messages,
    balanced_bytes,
    counted_bytes,
    exchanged,
)
from course_utils.lessons.experts.experiments import one_layer
from course_utils.lessons.experts.expert_capacity import capacity, dropped_share
from course_utils.lessons.experts.expert_gradients import expert_gradients
from course_utils.lessons.experts.expert_layer import (
    combine,
    dispatch,
    experts_in_one_process,
    own_experts,
    run_experts,
)
from course_utils.lessons.experts.gate import balancing_loss, imbalance, load_of, next_bias, route
from course_utils.lessons.experts.two_levels import (
    crossing,
    flat_all_to_all,
    levels,
    two_level_all_to_all,
)
from course_utils.lessons.model_parallel.transformer import Mlp
from course_utils.ranks.run import per_rank
from course_utils.trace.events import Event

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def test_the_largest_shares_win_and_the_gate_keeps_its_gradient() -> None:
    scores = torch.tensor([[0.0, 2.0, 1.0], [1.0, 1.0, 1.0]], requires_grad=True)
    experts, weights = route(scores, 2)
    assert experts.tolist() == [[1, 2], [0, 1]]  # of equal ones the lower number
    assert torch.allclose(weights[0], scores[0].softmax(dim=0)[[1, 2]])
    route(scores, 1)[1].sum().backward()
    assert scores.grad.abs().max() > 0.1


def test_the_bias_changes_the_choice_and_not_the_weight() -> None:
    scores = torch.tensor([[0.0, 2.0, 1.0]])
    experts, weights = route(scores, 1, torch.tensor([5.0, 0.0, 0.0]))
    assert experts.tolist() == [[0]] and torch.allclose(weights, scores.softmax(dim=-1)[:, :1])


@pytest.mark.parametrize("k", [0, 4, -1])
def test_there_must_be_k_experts(k) -> None:
    with pytest.raises(CourseError, match="Choose k from 1 to 3"):
        route(torch.zeros(2, 3), k)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_gate_works_in_half_precision(dtype) -> None:
    experts, weights = route(torch.tensor([[30.0, -30.0, 1.0]], dtype=dtype), 2)
    assert experts.tolist() == [[0, 2]] and weights.dtype == dtype and weights[0, 0] == 1


def test_capacity_keeps_first_choices_and_earlier_tokens() -> None:
    experts = torch.tensor([[0, 1], [0, 1], [0, 1], [1, 0]])
    assert capacity(experts, 2, 0.5).tolist() == [[0, 1], [0, -1], [-1, -1], [1, -1]]
    assert capacity(experts, 2, 2.0).tolist() == experts.tolist()
    assert dropped_share(capacity(experts, 2, 0.5)) == 0.5
    assert capacity(experts[:0], 2, 1.0).shape == (0, 2)
    assert capacity(torch.zeros(8, 1, dtype=torch.int64), 4, 1.0).flatten().tolist() == [0, 0, *[-1] * 6]


@pytest.mark.parametrize("factor", [0, -1.0])
def test_a_capacity_of_zero_is_rejected(factor) -> None:
    with pytest.raises(CourseError, match="every token is dropped"):
        capacity(torch.zeros(2, 1, dtype=torch.int64), 2, factor)


def test_the_balancing_loss_is_one_where_all_are_equally_busy() -> None:
    shares = torch.full((8, 4), 0.25, requires_grad=True)
    assert balancing_loss(shares, torch.tensor([2, 2, 2, 2])).item() == pytest.approx(1.0)
    crowded = torch.tensor([[1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    loss = balancing_loss(crowded, torch.tensor([2, 0]))
    loss.backward()
    assert loss.item() == 2.0 and crowded.grad[0].tolist() == [1.0, 0.0]
    assert balancing_loss(shares, torch.zeros(4, dtype=torch.int64)).item() == 0.0


def test_the_bias_rises_for_who_had_too_little() -> None:
    bias = next_bias(torch.zeros(3), torch.tensor([4, 2, 0]), rate=0.5)
    assert bias.tolist() == [-0.5, 0.0, 0.5]
    assert imbalance(torch.tensor([4, 2, 0])) == 2.0 and imbalance(torch.zeros(3)) == 1.0
    assert load_of(torch.tensor([[0, -1], [2, 0]]), 4).tolist() == [2, 0, 1, 0]


def test_bytes_by_the_formula() -> None:
    assert balanced_bytes(tokens=64, k=2, width=16, itemsize=8, ranks=4) == 12_288
    assert balanced_bytes(tokens=64, k=2, width=16, itemsize=8, ranks=1) == 0
    assert counted_bytes([3, 1, 0, 4], rank=0, width=10, itemsize=2) == 100


def uneven(way: str):
    """Rank r sends s − r + 4 rows to rank s, backward as well; and what came, by the collective or by messages."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    sent, received = [s - rank + 4 for s in range(ranks)], [rank - s + 4 for s in range(ranks)]
    sent[rank] = received[rank] = 0
    rows = (100.0 * rank + torch.arange(float(sum(sent)))).double().unsqueeze(1).requires_grad_()
    if way == "messages":
        return all_to_all_by_messages(rows.detach(), sent, received).flatten().tolist(), sent
    came = exchanged(rows, sent, received)
    came.backward(came.detach())
    assert torch.equal(rows.grad, rows.detach())  # there and back
    assert torch.equal(came.detach(), all_to_all(rows.detach(), sent, received))
    return came.flatten().tolist(), sent


def test_messages_bring_what_the_collective_brings_and_are_counted(four_ranks) -> None:
    together, apart = (four_ranks.run(uneven, way, backend="gloo") for way in ("collective", "messages"))
    assert [came for came, _ in together.results] == [came for came, _ in apart.results]
    for rank, (_, sent) in enumerate(apart.results):
        assert apart.bytes_per_rank[rank] == counted_bytes(sent, rank, width=1, itemsize=8)


def layer_beside_one(tokens, experts, weights, number: int, dtype=torch.float64, dropped: bool = False):
    """The largest difference between experts on ranks and all of them here: outputs and gradients, forward and back."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    whole = torch.nn.ModuleList(Mlp(tokens[0].shape[1]).to(dtype) for _ in range(number))
    mine = own_experts(whole)
    here = [one[rank].to(dtype) if one[rank].is_floating_point() else one[rank] for one in (tokens, experts, weights)]
    x, chosen, shares = here[0].requires_grad_(), here[1], here[2].requires_grad_()
    way = dispatch(x, chosen, number // ranks)
    y = combine(run_experts(way.rows, way.expert, mine), shares, way)
    y.backward(torch.ones_like(y))
    got = [y.detach(), x.grad, shares.grad, *(one.grad.clone() for one in mine.parameters())]
    whole.zero_grad()
    all_x, all_shares = (torch.cat(list(one)).detach().to(dtype).requires_grad_() for one in (tokens, weights))
    wanted_y = experts_in_one_process(all_x, torch.cat(list(experts)), all_shares, whole)
    wanted_y.backward(torch.ones_like(wanted_y))
    cut = [len(one) for one in tokens]
    wanted = [one.split(cut)[rank] for one in (wanted_y.detach(), all_x.grad, all_shares.grad)]
    wanted += [one.grad for one in own_experts(whole).parameters()]
    return max((float((a - b).abs().max()) for a, b in zip(got, wanted, strict=True) if a.numel()), default=0.0)


def routed(number: int, k: int, lengths: list[int], how: str = "any", width: int = 6):
    """Tokens of four ranks, their experts and weights."""
    torch.manual_seed(1)
    tokens = [torch.randn(n, width, dtype=torch.float64) for n in lengths]
    scores = [torch.randn(n, number, dtype=torch.float64) for n in lengths]
    for one in scores:
        if how == "all to one":
            one[:, number - 1] += 100
        if how == "one gets nothing":
            one[:, 1] -= 100
    both = [route(one, k) for one in scores]
    experts = [chosen for chosen, _ in both]
    if how == "dropped":
        experts = [capacity(chosen, number, 0.5) for chosen in experts]
    return tokens, experts, [weights for _, weights in both]


@pytest.mark.parametrize(
    ("number", "k", "lengths", "how"),
    [
        (4, 1, [5, 5, 5, 5], "any"),
        (8, 2, [5, 0, 7, 2], "any"),
        (4, 2, [6, 6, 6, 6], "dropped"),
        (4, 1, [4, 4, 4, 4], "all to one"),
        (4, 2, [4, 4, 4, 4], "one gets nothing"),
        (4, 4, [3, 3, 3, 3], "any"),
    ],
)
def test_experts_on_four_ranks_compute_what_one_process_does(four_ranks, number, k, lengths, how) -> None:
    run = four_ranks.run(layer_beside_one, *routed(number, k, lengths, how), number, backend="gloo")
    assert max(run.results) <= 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_they_do_in_less_precision(four_ranks, dtype) -> None:
    run = four_ranks.run(layer_beside_one, *routed(4, 2, [5, 4, 3, 6]), 4, dtype, backend="gloo")
    assert max(run.results) <= TOLERANCE[dtype]


def test_one_rank_is_one_process(four_ranks) -> None:
    tokens, experts, weights = routed(3, 2, [5])
    run = four_ranks.run(layer_beside_one, tokens, experts, weights, 3, backend="gloo", ranks=1)
    assert max(run.results) <= 1e-12


def test_the_bytes_are_those_of_the_formula_where_experts_are_equally_busy(four_ranks) -> None:
    def balanced():
        tokens = torch.randn(16, 5, dtype=torch.float64)
        experts = torch.arange(32).view(16, 2) % 4
        way = dispatch(tokens, experts, 1)
        combine(way.rows, torch.ones(16, 2, dtype=torch.float64), way)
        return counted_bytes(way.sent, dist.get_rank(), 5, 8)

    run = four_ranks.run(balanced, backend="gloo")
    assert run.results == [balanced_bytes(16, 2, 5, 8, 4)] * 4
    counts, there, back = [event.bytes for event in run.events if event.rank == 0 and event.kind == "collective"]
    assert (counts, there, back) == (4 * 8, 32 * 5 * 8, 32 * 5 * 8)  # with what stays on the rank


def test_experts_that_are_not_there_are_rejected(four_ranks) -> None:
    def rejected():
        said = []
        for tokens, experts in ((3, [[4], [0], [0]]), (3, [[-2], [0], [0]]), (2, [[0], [0], [0]])):
            try:
                dispatch(torch.zeros(tokens, 2), torch.tensor(experts), 1)
            except CourseError as error:
                said.append(str(error))
        try:
            own_experts([torch.nn.Linear(1, 1)] * 6)
        except CourseError as error:
            said.append(str(error))
        return said

    said = four_ranks.run(rejected, backend="gloo").results[0]
    words = "no expert 4: they are 0 to 3", "no expert -2", "choices for 3", "Take a multiple of 4"
    assert all(word in line for word, line in zip(words, said, strict=True))


def test_gradients_are_those_of_the_mean_over_all_ranks(four_ranks) -> None:
    def summed(gradient, data):
        rank = dist.get_rank()
        pairs = [dist.new_group(pair) for pair in ((0, 2), (1, 3))]
        parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
        parameters[0].grad = torch.full((2,), gradient)
        parameters[1].grad = None if gradient == 1.0 else torch.full((2,), gradient)
        expert_gradients(parameters[:1], parameters[1:], pairs[rank % 2])
        return [one.grad.tolist() for one in parameters]

    results = four_ranks.run(summed, per_rank([1.0, 2.0, 4.0, 8.0]), None, backend="gloo").results
    assert results == [[[3.75] * 2, [own] * 2] for own in (1.0, 2.5, 1.0, 2.5)]  # rank 0's expert got nothing


@pytest.mark.parametrize("node_size", [1, 2, 4])
def test_two_levels_bring_what_one_brings(four_ranks, node_size) -> None:
    def both(size):
        blocks = torch.randn(4, 3, 2, dtype=torch.float64)
        return torch.equal(two_level_all_to_all(blocks, levels(size)), flat_all_to_all(blocks))

    assert four_ranks.run(both, node_size, backend="gloo").results == [True] * 4


def test_nodes_must_be_full(four_ranks) -> None:
    with pytest.raises(CourseError, match="do not fill nodes of 3"):
        four_ranks.run(partial(levels, 3), backend="gloo")


def test_sentences_follow_the_numbers() -> None:
    assert sentences.computing_gap([1.0, 1.0, 4.0, 1.0]) == 0.75 and sentences.computing_gap([0.0]) == 0.0
    assert "spend 75% less time computing" in sentences.skew_text([1, 1, 8], [1.0, 1.0, 4.0])
    assert "much longer" in sentences.skew_text([1, 1, 8], [5.0, 1.0, 4.0])
    sent = sentences.sent_text([900, 1102], 1000)
    assert sent.startswith("a rank sends 900 to 1,102 bytes in each direction, 1,001 on average")
    assert sent.endswith("with evenly spread tokens it would be 1,000")
    assert sentences.sent_text([9], 5).startswith("a rank sends 9 bytes in")
    assert sentences.sent_text([9]).startswith("a rank sends 9 B in")
    assert "400% of its fair share" in sentences.capacity_text([1.0, 4.0], [50.0, 0.0], [100.0, 400.0])
    assert "of each other" in sentences.better_text({"dense": 2.0, "loss": 2.001, "bias": 2.4})
    assert "“loss” ends 5.0" in sentences.better_text({"dense": 2.0, "loss": 1.9, "bias": 2.2})
    assert "higher than that of “dense”" in sentences.better_text({"dense": 2.0, "loss": 2.2})
    curves = {"one process": [4.0, 2.0], "a": [4.0, 2.0], "b": [4.0, 2.02]}
    text = sentences.gradients_text({"a": 1e-13, "b": 0.1}, curves)
    assert text == "The loss curves differ by at most 1.0%, but only “a” matches one process"
    assert sentences.gradients_text({"b": 0.1}, curves).endswith("no version matches one process")
    assert sentences.gradients_text({"a": 0.0}, curves).endswith("every version matches one process")
    assert sentences.levels_text({"flat": (2, 16), "two levels": (1, 16)}).endswith(
        "two levels: 1 message of 16 B to the other node"
    )


def test_the_run_says_which_was_faster() -> None:
    short, long = ([Event(0, "send", "send", 1, 0, 8, 1.0, end)] for end in (1.044, 1.097))
    told = sentences.faster_text({"on two levels": long, "plain": short})
    assert told == "In this run, “plain” is faster than “on two levels”: 44 ms and 97 ms"
    assert sentences.faster_text({"a": short, "b": short}).startswith("In this run, both take about as long")


def test_a_balance_that_helps_is_said_to_help_and_a_tie_is_not() -> None:
    helped = sentences.balance_text({"no balancing": [[3.0], [2.0]], "balancing bias": [[3.0], [1.2]]})
    assert helped.endswith("2 times its fair share with no balancing, but only 1.2 times with a balancing bias")
    tie = sentences.balance_text({"no balancing": [[1.22]], "balancing bias": [[1.2]]})
    assert "only" not in tie


def test_tokens_are_drawn_where_they_are() -> None:
    tokens, rows = [[0, 1], [10, 11]], [[0, 10, 11], [1]]
    answers = [[100, 201], [110, 111]]
    there = pictures.tokens_there_and_back(tokens, rows, answers).alt_text
    assert there.startswith("Experts get 1 to 3 tokens each, and every answer returns to its own rank")
    assert "rank 0: 0a\n→0, 0b\n→1" in there
    swapped = pictures.tokens_there_and_back(tokens, rows, answers[::-1]).alt_text
    assert "not every answer is back" in swapped
    assert pictures.crowd(rows).alt_text.startswith("The expert of rank 0 gets 3 of 4 tokens")
    across = [[0, 10], [1, 11]]
    assert pictures.two_level_blocks(across, across).alt_text.startswith("After two levels, each rank has the blocks")
    assert pictures.two_level_blocks(across, across[::-1]).alt_text.startswith("Not every block")


def test_a_rank_has_the_mean_load_of_its_experts() -> None:
    loads = {"large experts": [16, 6, 10, 8], "small experts": [5, 5, 5, 5, 6, 4, 4, 6]}
    title, subtitle = sentences.load_text(loads, ranks=2)
    assert title == "The busiest rank has 1.10 fair shares with large experts and 1.00 with small experts"
    assert subtitle == "The busiest expert has 1.60 fair shares with large experts and 1.20 with small experts"
    drawn = pictures.expert_loads(loads, 2, title, subtitle)
    large, small = drawn.axes
    assert [round(bar.get_height(), 2) for bar in large.patches] == [1.6, 0.6, 1.0, 0.8]
    assert large.get_ylim() == small.get_ylim()
    assert "large experts: experts 0.6 to 1.6 times their fair share, ranks 0.9 to 1.1 times" in drawn.alt_text
    assert "0.00 fair shares" in sentences.load_text({"no token": [0, 0]}, ranks=2)[0]


def test_one_layer_drops_and_crowds(four_ranks) -> None:
    run = four_ranks.run(one_layer, 40, 4, 4, 1, 1.0, 0.5, backend="gloo")
    assert [one.rows for one in run.results] == [0, 0, 20, 0]
    assert all(one.error <= 1e-12 and one.dropped == 35 / 40 for one in run.results)


def test_messages_between_nodes_are_counted(four_ranks) -> None:
    def exchange(way):
        blocks = torch.ones(4, 2)
        if way == "flat":
            return flat_all_to_all(blocks, all_to_all_by_messages)
        return two_level_all_to_all(blocks, levels(2), all_to_all_by_messages)

    counted = [crossing(four_ranks.run(exchange, way, backend="gloo").events, 2) for way in ("flat", "two levels")]
    assert counted == [(2, 16), (1, 16)]
