"""Decoding with a cache, over ranks, in batches and with a draft gives what the large model alone gives; its costs."""

import itertools

import numpy as np
import pytest
import torch

from course_utils.errors import CourseError
from course_utils.lessons.inference import sentences
from course_utils.lessons.inference.batching import (
    TextRequest,
    continuous_batch,
    static_batch,
    waiting_steps,
)
from course_utils.lessons.inference.cached_model import read_again, read_tokens, write_greedily
from course_utils.lessons.inference.decode_step import layer_part
from course_utils.lessons.inference.experiments import (
    decode_steps_beside_one_process,
    decoded_beside_one_process,
    distribution_of,
    drawn_tokens,
    first_layers,
    pair_counts,
    pair_probabilities,
    token_seconds,
)
from course_utils.lessons.inference.kv_cache import KVCache, kv_cache_bytes
from course_utils.lessons.inference.prefill_placement import Prefill, break_even, place_prefill
from course_utils.lessons.inference.queueing import mean_waiting_steps, random_requests
from course_utils.lessons.inference.request_server import cut_over_ranks, double_model, drawn_prompts, serve
from course_utils.lessons.inference.speculation import (
    accept_or_resample,
    acceptance,
    chi_square,
    expected_tokens,
    speculative_round,
)
from course_utils.lessons.model_parallel.collective_counts import collectives_in

COSTS = Prefill(token_seconds=1e-3, cache_bytes=1000, alpha=5e-3, beta=1e-6)


# --- the cache ------------------------------------------------------------------------------------------------------


def test_the_formula_is_what_the_cache_holds() -> None:
    model = double_model(width=32, heads=4, depth=3)
    cache = KVCache.of(model)
    read_tokens(model, [torch.arange(5)], [cache])
    assert cache.tokens == 5
    assert cache.nbytes == kv_cache_bytes([5], 3, 4, 8, itemsize=8) == cache.stacked().nbytes
    again = KVCache.unstacked(cache.stacked())
    assert again.nbytes == cache.nbytes and again.tokens == 5
    again.drop_after(2)
    assert again.tokens == 2 and cache.tokens == 5


def test_llama_3_8b_keeps_128_kib_a_token() -> None:
    assert kv_cache_bytes([1], 32, 8, 128) == 128 * 1024


@pytest.mark.parametrize(("ranks", "heads"), [(1, 8), (2, 4), (4, 2), (8, 1), (16, 1)])
def test_ranks_divide_the_heads_until_one_is_left(ranks, heads) -> None:
    assert kv_cache_bytes([3, 4], 2, 8, 16, world_size=ranks) == 2 * 2 * heads * 16 * 2 * 7
    assert kv_cache_bytes([], 2, 8, 16, world_size=ranks) == 0


def test_heads_that_cannot_be_divided_are_rejected() -> None:
    with pytest.raises(CourseError, match="cannot be divided"):
        kv_cache_bytes([1], 2, 8, 16, world_size=3)
    with pytest.raises(CourseError, match="cannot be divided"):
        layer_part(double_model()[1], 0, 3)
    with pytest.raises(CourseError, match="empty"):
        KVCache(2).stacked()


@pytest.mark.parametrize(("prompt", "answer"), [(1, 8), (7, 1), (20, 12)])
def test_a_cache_changes_nothing(prompt, answer) -> None:
    model = double_model()
    text = drawn_tokens(prompt + answer)
    cache = KVCache.of(model)
    rows = [read_tokens(model, [text[:prompt]], [cache])]
    rows += [read_tokens(model, [token[None]], [cache]) for token in text[prompt:]]
    assert (torch.cat(rows) - read_again(model, text)).abs().max().item() <= 1e-12


def test_a_batch_of_texts_is_each_text_alone() -> None:
    model = double_model()
    texts = [torch.arange(start, start + length) for start, length in ((0, 3), (10, 1), (20, 6))]
    alone, together = ([KVCache.of(model) for _ in texts] for _ in range(2))
    wanted = torch.cat([read_tokens(model, [text], [cache]) for text, cache in zip(texts, alone, strict=True)])
    assert (read_tokens(model, texts, together) - wanted).abs().max() <= 1e-12
    # Then a prompt's next piece beside single tokens.
    more = [torch.tensor([5]), torch.tensor([6, 7, 8]), torch.tensor([9])]
    wanted = torch.cat([read_tokens(model, [text], [cache]) for text, cache in zip(more, alone, strict=True)])
    assert (read_tokens(model, more, together) - wanted).abs().max() <= 1e-12


def test_what_does_not_fit_is_rejected() -> None:
    model = double_model(context=8)
    cache = KVCache.of(model)
    read_tokens(model, [torch.arange(6)], [cache])
    with pytest.raises(CourseError, match="text of 9 tokens is too long"):
        read_tokens(model, [torch.arange(3)], [cache])
    with pytest.raises(CourseError, match="a cache of its own"):
        read_tokens(model, [torch.arange(3)], [])


# --- over ranks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_decoding_over_ranks_is_one_process(world_size, four_ranks) -> None:
    run = four_ranks.run(decoded_beside_one_process, ranks=world_size, backend="gloo")
    assert max(run.results) <= 1e-12
    if world_size > 1:
        moved = [event.bytes for event in collectives_in(run.events, "token")]
        assert moved == [64 * 8] * (4 * 2 * 2)  # four tokens, two layers, two sums each
        assert [event.bytes for event in collectives_in(run.events, "prefill")] == [12 * 64 * 8] * 4


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_a_decode_step_is_one_process_with_two_sums_a_layer(world_size, four_ranks) -> None:
    run = four_ranks.run(decode_steps_beside_one_process, ranks=world_size, backend="gloo")
    assert max(run.results) <= 1e-12
    assert run.collectives == 6 * 2 * 2


def test_a_step_is_timed_with_and_without_messages(four_ranks) -> None:
    run = four_ranks.run(token_seconds, texts=2, rounds=2, width=32, heads=4, depth=2, backend="gloo")
    assert all(set(own) == {"with", "without"} and len(own["with"]) == 2 for own in run.results)


def served_by_all(requests, slots, batching):
    model = cut_over_ranks(double_model())
    return serve(model, drawn_prompts(len(requests)), requests, slots, batching)


@pytest.mark.parametrize("batching", [continuous_batch, static_batch])
@pytest.mark.parametrize("world_size", [1, 4])
def test_a_server_gives_each_request_the_answer_it_gets_alone(world_size, batching, four_ranks) -> None:
    requests = [TextRequest(0, 5), TextRequest(0, 2), TextRequest(1, 4), TextRequest(9, 3), TextRequest(30, 1)]
    run = four_ranks.run(served_by_all, requests, 2, batching, ranks=world_size, backend="gloo")
    model = double_model()
    for number, (prompt, request) in enumerate(zip(drawn_prompts(5), requests, strict=True)):
        wanted = write_greedily(model, prompt, request.tokens)
        assert all(torch.equal(answers[number], wanted) for answers in run.results)


# --- batches and queues ---------------------------------------------------------------------------------------------


def test_a_slot_is_taken_as_soon_as_it_is_free() -> None:
    requests = [(0, 2), (0, 3), (0, 3), (0, 8), (0, 4)]
    assert continuous_batch(requests, 4) == [(0, 0, 2), (1, 0, 3), (2, 0, 3), (3, 0, 8), (0, 2, 6)]
    assert static_batch(requests, 4) == [(0, 0, 2), (1, 0, 3), (2, 0, 3), (3, 0, 8), (0, 8, 12)]
    assert waiting_steps(requests, continuous_batch(requests, 4)) == [0, 0, 0, 0, 2]


@pytest.mark.parametrize("batching", [continuous_batch, static_batch])
@pytest.mark.parametrize("slots", [1, 2, 5])
def test_no_slot_holds_two_requests_and_nobody_overtakes(batching, slots) -> None:
    requests = random_requests(np.random.default_rng(slots), 60, 0.4, [1, 2, 7, 12])
    stays = batching(requests, slots)
    for request, stay in zip(requests, stays, strict=True):
        slot, begins, ends = stay
        assert begins >= request.arrives and ends - begins == request.tokens
        assert 0 <= slot < slots
    for (slot, begins, ends), (other_slot, other_begins, _) in itertools.combinations(stays, 2):
        assert begins <= other_begins
        assert slot != other_slot or ends <= other_begins


def test_continuous_batching_step_by_step() -> None:
    """The same as a simulation that looks at every step."""
    for seed in range(20):
        requests = random_requests(np.random.default_rng(seed), 30, 0.5, [1, 3, 9])
        slots, held, found, queue, step = 3, {}, {}, list(enumerate(requests)), 0
        while queue or held:
            held = {slot: number for slot, number in held.items() if found[number][2] > step}
            for slot in range(slots):
                if slot not in held and queue and queue[0][1].arrives <= step:
                    number, request = queue.pop(0)
                    held[slot] = number
                    found[number] = (slot, step, step + request.tokens)
            step += 1
        assert continuous_batch(requests, slots) == [found[number] for number in range(30)]


@pytest.mark.parametrize("bad", [([(0, 1)], 0), ([(0, 0)], 1), ([(3, 1), (2, 1)], 1)])
@pytest.mark.parametrize("batching", [continuous_batch, static_batch])
def test_bad_requests_are_rejected(batching, bad) -> None:
    with pytest.raises(CourseError):
        batching(*bad)
    assert batching([], 2) == []


@pytest.mark.parametrize("lengths", [[10], [1, 19], [5, 10, 15]])
@pytest.mark.parametrize("utilisation", [0.3, 0.7, 0.9])
def test_the_queue_waits_as_long_as_the_formula_says(lengths, utilisation) -> None:
    probability = utilisation / np.mean(lengths)
    requests = random_requests(np.random.default_rng(7), 100_000, probability, lengths)
    waited = np.mean(waiting_steps(requests, continuous_batch(requests, 1)))
    assert waited == pytest.approx(mean_waiting_steps(probability, lengths), rel=0.08)


def test_a_full_queue_has_no_mean() -> None:
    with pytest.raises(CourseError, match="grows for ever"):
        mean_waiting_steps(0.1, [10])


# --- prefill and decode apart ---------------------------------------------------------------------------------------


def test_a_prompt_goes_where_it_causes_less_waiting() -> None:
    def place(prompts, running):
        return place_prefill(prompts, running, *COSTS)

    # 100 tokens: read in 0.1 s, moved in 0.105 s. With one running answer it stays, with two it goes.
    assert place([100], 1) == [False] and place([100], 2) == [True]
    assert break_even(COSTS, 100) == pytest.approx(1.05)
    # The second waits for the first on the other rank: 0.1 + 0.105 s, against 0.2 s here.
    assert place([100, 100], 2) == [True, False]
    assert place([], 3) == []
    assert place_prefill([4], 1, 1.0, 1, 0.0, 1.0) == [False]  # equal: it stays
    for bad in (([0], 1), ([4], -1)):
        with pytest.raises(CourseError):
            place(*bad)


# --- speculation ----------------------------------------------------------------------------------------------------


def likeliest(drafted, draft, target, generator):
    """A wrong rule: the draft stays if the large model likes it at least as well as half the time."""
    return (drafted, True) if target[drafted] >= 0.5 * target.max() else (int(target.argmax()), False)


def resampled_from_target(drafted, draft, target, generator):
    """A wrong rule that people write: what is rejected is drawn from the large model's whole distribution."""
    if generator.random() * draft[drafted] < target[drafted]:
        return drafted, True
    return int(generator.choice(len(target), p=target)), False


def small_models():
    model = double_model(characters=6, width=16, heads=2, depth=3, context=12, seed=1)
    return distribution_of(first_layers(model, 1), 0.25), distribution_of(model, 0.25)


def test_speculation_has_the_large_models_distribution() -> None:
    draft, target = small_models()
    wanted = pair_probabilities([0, 3], target)
    assert wanted.sum() == pytest.approx(1)
    p_values = {}
    for rule in (accept_or_resample, likeliest, resampled_from_target):
        counts = pair_counts([0, 3], draft, target, 3, 2500, np.random.default_rng(5), 6, rule)
        p_values[rule.__name__] = chi_square(counts, wanted)[1]
    assert p_values["accept_or_resample"] > 0.01
    assert max(p_values["likeliest"], p_values["resampled_from_target"]) < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_accept_or_resample_gives_exactly_the_target(seed) -> None:
    generator = np.random.default_rng(seed)
    draft, target = generator.dirichlet(np.ones(5), 2)
    drafted = generator.choice(5, 20_000, p=draft)
    found = [accept_or_resample(int(token), draft, target, generator) for token in drafted]
    counts = np.bincount([token for token, _ in found], minlength=5)
    assert chi_square(counts, target)[1] > 1e-3
    assert np.mean([accepted for _, accepted in found]) == pytest.approx(acceptance(draft, target), abs=0.02)


def test_equal_models_accept_everything() -> None:
    generator = np.random.default_rng(0)
    target = np.array([0.2, 0.0, 0.8])
    assert all(accept_or_resample(2, target, target, generator) == (2, True) for _ in range(200))
    assert speculative_round([1], lambda _: target, lambda _: target, 4, generator)[4:] != []


def test_the_expected_tokens_are_those_of_many_rounds() -> None:
    draft, target = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
    generator = np.random.default_rng(1)
    rounds = [speculative_round([], lambda _: draft, lambda _: target, 3, generator) for _ in range(20_000)]
    accepted = acceptance(draft, target)
    assert accepted == pytest.approx(0.7)
    assert np.mean([len(added) for added in rounds]) == pytest.approx(expected_tokens(accepted, 3), rel=0.01)
    assert expected_tokens(0.7, 3) == pytest.approx((1 - 0.7**4) / 0.3)


def test_the_chi_square_of_a_textbook() -> None:
    statistic, p_value = chi_square(np.array([16.0, 18, 16, 14, 12, 12]), np.full(6, 1 / 6))
    assert statistic == pytest.approx(2.0) and p_value == pytest.approx(0.8491, abs=1e-4)


def test_a_step_is_judged_by_what_messages_add_however_the_short_step_scatters() -> None:
    computing = [0.001, 0.004, 0.002, 0.001, 0.006]
    text = sentences.step_text({"with": [0.2 + own for own in computing], "without": computing}, 0.21)
    assert text == "A token waits 200 ms for messages, 99% of its time, as the line predicts"


def test_the_link_that_is_fast_enough_lies_between_the_measured_ones() -> None:
    even = {rate: 32 / rate for rate in (12.5, 25, 50, 100)}
    assert sentences.apart_text(even).startswith("From about 32 Gbit/s on, moving the cache pays")
    assert sentences.apart_text({50: 0.6, 100: 0.3}).startswith("Even at 50 Gbit/s")
    assert sentences.apart_text({10: 3.2}) == "At 10 Gbit/s, moving the cache pays from 3.2 running answers on"
