"""One text on four ranks: equal to one process, bytes exact, the work's imbalance, and what of the messages is exposed.

torch's own context parallelism does not run on processors; attention in blocks is held against torch's own attention of
one process. Chosen by words: `course bench context equal`, `bytes`, `imbalance`, `exposed`, `torch`.
"""

from collections.abc import Callable, Sequence

from course_utils.lessons.long_texts.bytes_sent import Shape, ring_bytes, ulysses_bytes
from course_utils.measuring import by_turns
from workshop.bench.parts import chosen_parts
from workshop.bench.ranks import nodes_of, ranks_of
from workshop.bench.rows import Row, ratio_row, value_row

RANKS, RATE = 4, 100
"""Ranks, and the rate of their links in Mbit/s."""
SAME = 1e-12
EVEN = 1.05
"""Work of the busiest rank ÷ the mean, dealt out in a zig-zag."""
EXPOSED = 0.2
"""Of the ring's time, on links of that rate, with 512 tokens on each rank."""
TOKENS = 2048


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every part, or those of these names."""
    parts: dict[str, Callable[[int], list[Row]]] = {
        "equal": equal,
        "bytes": sent_bytes,
        "imbalance": imbalances,
        "exposed": exposed,
        "torch": beside_torch,
    }
    return [row for part in chosen_parts("context", parts, only).values() for row in part(runs)]


def _ways() -> dict[str, Callable]:
    from course_utils.lessons.long_texts.long_attention import attention_round_the_ring
    from course_utils.lessons.long_texts.ulysses import ulysses_attention

    return {"ring": attention_round_the_ring, "Ulysses": ulysses_attention}


def equal(runs: int) -> list[Row]:
    """Output and gradients beside one process; the ring also for a length that Ulysses rejects."""
    from course_utils.lessons.long_texts.experiments import beside_one_process
    from course_utils.lessons.long_texts.zigzag import zigzag

    rows = []
    with ranks_of(RANKS) as ranks:
        for name, attend in _ways().items():
            gaps = []
            for length in (64, 37) if name == "ring" else (64,):
                found = ranks.run(beside_one_process, attend, zigzag(length, RANKS), backend="gloo").results
                gaps += [gap for result in found for gap in result.values()]
            label = f"{name}: far from one process, at most"
            rows.append(Row("context", label, max(gaps), "", "lower", SAME, 0.0, len(gaps)))
    return rows


def sent_bytes(runs: int) -> list[Row]:
    """Bytes counted against those of the formulas, forward and backward together."""
    from course_utils.lessons.long_texts.experiments import beside_one_process, bytes_in
    from course_utils.lessons.long_texts.zigzag import zigzag

    formulas = {"ring": ring_bytes, "Ulysses": ulysses_bytes}
    to_others = {"ring": 1.0, "Ulysses": (RANKS - 1) / RANKS}  # an all-to-all's own part is traced, too
    rows = []
    with ranks_of(RANKS) as ranks:
        for name, attend in _ways().items():
            went = ranks.run(beside_one_process, attend, zigzag(64, RANKS), backend="gloo")
            formula = formulas[name](Shape(64, heads=4, size=16, number_bytes=8), RANKS)
            counted = sum(bytes_in(went.events, phase, rank=0) for phase in formula) * to_others[name]
            label = f"{name}: bytes counted / predicted"
            rows.append(Row("context", label, counted / sum(formula.values()), "×", "lower", 1.0, 0.0, 1))
    return rows


def imbalances(runs: int) -> list[Row]:
    """Operations of the busiest rank ÷ the mean, counted, in the order of the text and in a zig-zag."""
    from course_utils.lessons.long_texts.experiments import computing
    from course_utils.lessons.long_texts.work import imbalance
    from course_utils.lessons.long_texts.zigzag import in_order, zigzag

    rows = []
    with ranks_of(RANKS) as ranks:
        for name, deal, target in (("in order", in_order, None), ("zig-zag", zigzag, EVEN)):
            found = ranks.run(computing, _ways()["ring"], deal(TOKENS, RANKS), backend="gloo").results
            label = f"{name}: work of the busiest rank / mean"
            rows.append(Row("context", label, imbalance(found), "×", "lower", target, 0.0, 1))
    return rows


def exposed(runs: int) -> list[Row]:
    """The share of the ring's time in which nothing is computed: against the same computing without a message."""
    from course_utils.lessons.long_texts.experiments import ring_without_messages, timed
    from course_utils.lessons.long_texts.zigzag import zigzag
    from course_utils.lessons.overlap.step_times import slowest

    with nodes_of(RANKS, RATE) as ranks:
        ways = {"alone": ring_without_messages, "ring": _ways()["ring"]}
        options = {"heads": 2, "size": 32, "backend": "gloo"}
        seconds = slowest(ranks.run(timed, ways, zigzag(TOKENS, RANKS), runs, **options).results)
    pairs = zip(seconds["ring"], seconds["alone"], strict=True)
    shares = [max(0.0, 1 - computing / ring) for ring, computing in pairs]
    label = f"ring on {RATE} Mbit/s: exposed, of its time"
    return [value_row("context", label, shares, "of 1", target=EXPOSED)]


def beside_torch(runs: int) -> list[Row]:
    """Attention in blocks against torch's own attention, in one process with a thread."""
    with ranks_of(1) as ranks:
        ours, theirs = ranks.run(_one_process, runs, backend="gloo").results[0]
    return [ratio_row("context", "attention in blocks / torch's own, seconds", ours, theirs)]


def _one_process(runs: int) -> tuple[list[float], list[float]]:
    """On a rank: seconds of both, by turns."""
    import time
    from functools import partial

    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from course_utils.lessons.long_texts.block_attention import block_attention
    from course_utils.lessons.long_texts.experiments import drawn_text

    q, k, v = drawn_text(TOKENS, heads=2, size=32, dtype=torch.float32)[:3]
    positions = torch.arange(TOKENS)
    ways = {
        "ours": partial(block_attention, q, k, v, positions, positions),
        "theirs": partial(scaled_dot_product_attention, q, k, v, is_causal=True),
    }

    def timed(attend: Callable[[], object]) -> float:
        began = time.perf_counter()
        attend()
        return time.perf_counter() - began

    taken = by_turns({name: partial(timed, attend) for name, attend in ways.items()}, runs, warm_ups=1)
    return taken["ours"], taken["theirs"]
