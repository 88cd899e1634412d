"""Experts on four ranks: equal to one process, bytes exact, how crowded the busiest is, and the all-to-all's time.

Chosen by words: `course bench experts equal`, `bytes`, `balance`, `time`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from course_utils.lessons.model_parallel.text import character_text, text_batches
from course_utils.measuring import by_turns
from workshop.bench.parts import chosen_parts
from workshop.bench.ranks import ranks_of
from workshop.bench.rows import Row, ratio_row, value_row

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

RANKS = 4
SAME = 1e-10
"""In float64: the largest difference from one process."""
BALANCED = 1.3
"""Rows of the busiest expert, in multiples of its fair share, in the last steps of a training run."""
TOKENS, WIDTH = 512, 128
LAYERS = {
    "4 experts, k = 1": {"number": 4, "k": 1},
    "8 experts, k = 2": {"number": 8, "k": 2},
    "all tokens to one expert": {"number": 4, "k": 1, "crowd": 1.0},
    "capacity factor 1": {"number": 4, "k": 1, "crowd": 0.85, "factor": 1.0},
}
STEPS, LAST = 60, 10


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every part, or those of these names."""
    parts: dict[str, Callable[[Ranks, int], list[Row]]] = {
        "equal": equal,
        "bytes": sent_bytes,
        "balance": balance,
        "time": times,
    }
    chosen = chosen_parts("experts", parts, only)
    with ranks_of(RANKS) as ranks:
        ranks.load_torch()
        return [row for part in chosen.values() for row in part(ranks, runs)]


def equal(ranks: "Ranks", runs: int) -> list[Row]:
    """Layers beside one process that has all experts."""
    from course_utils.lessons.experts.experiments import one_layer

    rows = []
    for name, settings in LAYERS.items():
        found = ranks.run(partial(one_layer, TOKENS, 32, **settings), backend="gloo").results
        gaps = [result.error for result in found]
        rows.append(Row("experts", f"{name}: far from one process, at most", max(gaps), "", "lower", SAME, 0.0, 1))
    return rows


def sent_bytes(ranks: "Ranks", runs: int) -> list[Row]:
    """Bytes of the messages against those that the routing counts say; both directions."""
    from course_utils.lessons.experts.all_to_all import counted_bytes
    from course_utils.lessons.experts.experiments import rows_by_messages

    went = ranks.run(rows_by_messages, TOKENS, WIDTH, 8, 2, backend="gloo")
    there = sum(counted_bytes(sent, rank, WIDTH, 8) for rank, sent in enumerate(went.results))
    counted = sum(event.bytes for event in went.events if event.kind == "send")
    return [Row("experts", "bytes of messages / of the routing counts", counted / (2 * there), "×", "lower", 1, 0.0, 1)]


def balance(ranks: "Ranks", runs: int) -> list[Row]:
    """How crowded the busiest expert is at the end of a training run, with each method of balancing."""
    from course_utils.lessons.experts.character_experts import character_experts
    from course_utils.lessons.experts.expert_training import Recipe, train_experts

    texts = character_text()
    batches = text_batches(texts.training, 64, 16, STEPS)
    rows = []
    for method in ("nothing", "loss", "bias"):
        given = {"data": 1, "expert": RANKS}, partial(character_experts, 4), batches, Recipe(balance=method)
        crowded = ranks.run(train_experts, *given, backend="gloo").results[0].imbalances[-LAST:]
        target = None if method == "nothing" else BALANCED
        name = f"balanced by {method}: busiest expert ÷ its fair share"
        rows.append(value_row("experts", name, crowded, "×", target=target))
    return rows


def times(ranks: "Ranks", runs: int) -> list[Row]:
    """The collective all-to-all against the same by plain messages."""
    found = ranks.run(_seconds, runs, backend="gloo").results
    taken = {name: [max(turn) for turn in zip(*(result[name] for result in found), strict=True)] for name in found[0]}
    return [
        ratio_row("experts", "all_to_all_single / plain messages, seconds", taken["collective"], taken["messages"]),
    ]


def _seconds(runs: int) -> dict[str, list[float]]:
    """On each rank: seconds of every way, by turns, from a common start."""
    import time

    import torch
    import torch.distributed as dist

    from course_utils.lessons.experts.all_to_all import all_to_all, all_to_all_by_messages

    each = [TOKENS // RANKS] * RANKS
    rows = torch.randn(TOKENS, WIDTH)

    ways = {
        "collective": partial(all_to_all, rows, each, each),
        "messages": partial(all_to_all_by_messages, rows, each, each),
    }

    def timed(work: Callable[[], object]) -> float:
        dist.barrier()
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return by_turns({name: partial(timed, work) for name, work in ways.items()}, runs, warm_ups=1)
