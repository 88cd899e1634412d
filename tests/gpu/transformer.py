"""Lessons 11 and 13: which share of a product's rate a transformer's step reaches, and what the planner predicts."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from course_utils.lessons.gpu_nodes.ladder import DATA_SHEETS, LADDER, Rung
from course_utils.lessons.gpu_nodes.product_rate import mean_seconds, product_rate
from course_utils.lessons.gpu_nodes.transformer_step import (
    BY_MEMORY,
    ON_PROCESSORS,
    TransformerTrainer,
    TransformerWork,
    network_rates,
    slice_of,
)
from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel
from gpu.ladder import needs_triton
from gpu.registry import Missing, Where, check
from workshop.bench.rows import Row, value_row

ENOUGH = 60
"""Percent of a product's rate that the transformer's step should reach on a GPU whose data sheet is known."""
KEPT = (4, 4, 8)
"""Bytes of each parameter: it, its gradient and AdamW's state, all in float32."""


def memory_of(where: Where) -> int:
    """Bytes of the first GPU's memory."""
    return torch.cuda.get_device_properties(0).total_memory if where.cuda else 0


def known_gpu(where: Where, name: str) -> bool:
    """Whether the GPU's name has this in it."""
    return where.cuda and name in torch.cuda.get_device_name(0)


@check(13, shows="a transformer's step reaches a far larger share of a product's rate than VGG-11's", seconds=180)
def transformer_mfu(where: Where):
    if where.cuda:
        needs_triton()
        work = next(work for least, work in BY_MEMORY.items() if memory_of(where) >= least)
        found = network_rates(LADDER["+ larger batch"], work)
    else:
        work = ON_PROCESSORS
        found = network_rates(Rung(kept=True), work, "cpu", batch=2, rounds=3, steps=1)
    for name, share in found.product_shares().items():
        rates = [found.flops[name] / seconds / 1e12 for seconds in found.seconds[name]]
        yield value_row("gpu", name, rates, "TFLOP/s", better="higher")
        enough = ENOUGH if name == work.name and any(known_gpu(where, known) for known in DATA_SHEETS) else None
        values = [100 * value for value in share.values]
        yield value_row("gpu", f"{name}, of the product", values, "%", better="higher", target=enough)
    causal = work.causal_flops / work.flops
    values = [100 * causal * value for value in found.product_shares()[work.name].values]
    yield value_row("gpu", f"{work.name}, of the product, half of attention counted", values, "%", better="higher")
    yield value_row("gpu", "the product, by turns with them", [one / 1e12 for one in found.peaks], "TFLOP/s")


def _llama(layers: int, width: int, heads: int, key_heads: int, hidden: int, vocabulary: int) -> LanguageModel:
    sizes = {"width": width, "heads": heads, "key_heads": key_heads, "hidden": hidden, "vocabulary": vocabulary}
    return slice_of("Llama 3 8B", layers, **sizes)


UNSEEN = (
    TransformerWork("2 layers of Llama 3 70B", _llama(2, 8192, 64, 8, 28672, 32000), 2, 4096),
    TransformerWork("4 layers of Llama 2 13B, not compiled", _llama(4, 5120, 40, 40, 13824, 32000), 4, 2048, False),
    TransformerWork("28 layers, 3,072 wide, done again", _llama(28, 3072, 24, 8, 8192, 32000), 4, 2048, again=True),
    TransformerWork("12 layers, 1,024 wide, a long text", _llama(12, 1024, 16, 16, 2816, 32000), 1, 16384),
    TransformerWork("22 layers, 2,048 wide, short texts", _llama(22, 2048, 32, 4, 5632, 32000), 16, 512),
)
"""Steps to which no rate of the planner was fitted. Each takes less than 70 GB."""
TINY = (
    TransformerWork("tiny", _llama(2, 64, 4, 2, 96, 100), 2, 32),
    TransformerWork("tiny, not compiled, done again", _llama(2, 64, 4, 4, 96, 100), 1, 64, False, True),
)


@dataclass(frozen=True)
class Predicted:
    """What the planner predicts of a step: seconds, and bytes of the GPU's memory."""

    seconds: float
    memory: float


def predicted(work: TransformerWork, gpu: str) -> Predicted:
    """A step on one "h100" or "h200"; the loss is fused if the step is compiled."""
    from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import CLUSTERS
    from course_utils.lessons.hybrid_and_sharded.planner.layout_search import judge
    from course_utils.lessons.hybrid_and_sharded.planner.training_layout import FULL, NOTHING, Layout, TrainingProgram

    compiled = {"compiled": work.compiled, "fused_loss": work.compiled}
    program = TrainingProgram(fused=True, hopper=True, kept=KEPT, **compiled)
    again = FULL if work.again else NOTHING
    layout = Layout(1, 1, 1, 0, again, work.texts, 1, program=program)
    choice = judge(work.shape, CLUSTERS[gpu](1), layout, work.length)
    return Predicted(choice.step, choice.needed)


def measured_step(where: Where, work: TransformerWork) -> tuple[list[float], int]:
    """Seconds of a step, in rounds, and the most bytes that the allocator held."""
    if where.cuda:
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.compiler.reset()  # a graph of other sizes must not make the next one a graph of any size
    trainer = TransformerTrainer(work, where.device)
    mean_seconds(trainer.step, 3, where.device)
    rounds, steps = where.pick((5, 5), (2, 1))
    seconds = [mean_seconds(trainer.step, steps, where.device) for _ in range(rounds)]
    if not torch.stack(trainer.losses).isfinite().all():
        raise FloatingPointError(f"{work.name}: a loss is not a number")
    return seconds, torch.cuda.max_memory_reserved() if where.cuda else 0


@check(11, 13, shows="five steps on one GPU that the planner was not fitted to: predicted beside measured", seconds=300)
def planner_steps(where: Where) -> Iterator[Row | Missing]:
    if where.cuda:
        needs_triton()
    gpu = "h200" if known_gpu(where, "H200") else "h100"
    on_paper = known_gpu(where, "H200") or known_gpu(where, "H100")
    works = where.pick(UNSEEN, TINY)
    off: list[float] = []
    for work in works:
        guess = predicted(work, gpu)
        if where.cuda and guess.memory > 0.9 * memory_of(where):
            yield Missing(work.name, f"a GPU with {guess.memory / 1e9:.0f} GB")
            continue
        seconds, held = measured_step(where, work)
        yield value_row("gpu", f"{work.name}, measured", [1e3 * one for one in seconds], "ms")
        yield Row("gpu", f"{work.name}, predicted", 1e3 * guess.seconds, "ms", "lower", None, 0.0, 1)
        rates = [work.flops / one / product_rate(where.device) for one in seconds[:3]]
        yield value_row("gpu", f"{work.name}, of a product", [100 * one for one in rates], "%", better="higher")
        if on_paper:
            errors = [100 * (guess.seconds / one - 1) for one in seconds]
            off.append(abs(sorted(errors)[len(errors) // 2]))
            yield value_row("gpu", f"{work.name}, predicted beside measured", errors, "%")
            apart = 100 * (guess.memory / held - 1)
            yield Row("gpu", f"{work.name}, memory predicted beside held", apart, "%", "lower", None, 0.0, 1)
    if off:
        yield value_row("gpu", "how far predictions are off, median", [sorted(off)[len(off) // 2]], "%")
    if not on_paper:
        yield Missing("how far predictions are off", "an H100 or H200 GPU")
