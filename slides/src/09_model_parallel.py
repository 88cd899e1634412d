"""The pictures of deck 9: ranks that take turns, a layer cut three ways, Megatron's pair, seeds, and memory."""

from functools import cache, partial

import torch
from matplotlib.figure import Figure
from torch import nn
from torch.nn.functional import gelu

import course_utils as course
from course_utils.lessons.data_parallel.sentences import quickest
from course_utils.lessons.model_parallel import pictures
from course_utils.lessons.model_parallel.collective_counts import moved_text
from course_utils.lessons.model_parallel.experiments import (
    CUTS,
    OWN_SEEDS,
    beside_serial,
    cut_layer,
    ranks_apart,
    step_memory,
)
from course_utils.lessons.model_parallel.memory_parts import Parallelism
from course_utils.lessons.model_parallel.parallel_block import parallelise_block
from course_utils.lessons.model_parallel.sentences import apart_text, cuts_text, idle_text, sizes_text
from course_utils.lessons.model_parallel.split_layers import split_layers
from course_utils.lessons.model_parallel.text import CHARACTERS, character_text, text_batches
from course_utils.lessons.model_parallel.training_memory import training_memory
from course_utils.lessons.model_parallel.transformer import character_model
from course_utils.lessons.pipeline.pictures import pipelines
from course_utils.lessons.pipeline.run_schedule import run_schedule, split_model
from course_utils.lessons.pipeline.schedules import gpipe_schedule
from course_utils.lessons.pipeline.timing import timing_of
from course_utils.words import bytes_text

WIDTH, DEPTH = 128, 8  # of the model whose layers take turns
LAYER = (16, 1152, 512)  # examples, inputs, outputs
EXAMPLES = (8, 32, 128, 512, 2048)
STEPS = 8  # of the ranks whose seeds differ
BLOCKS = 4  # of the model whose memory is counted
DRAFT = {"WIDTH": 32, "DEPTH": 4, "EXAMPLES": (8, 512), "STEPS": 2, "BLOCKS": 1}


@cache
def ranks():
    """The ranks that all pictures of this deck run on."""
    return course.start(4)


@cache
def texts() -> torch.Tensor:
    """Python's help, as numbers."""
    return character_text().training


def in_turns() -> Figure:
    """One batch through a model whose layers lie on four ranks."""
    layers = character_model(len(CHARACTERS), width=WIDTH, depth=DEPTH)
    sizes = split_layers([sum(one.numel() for one in layer.parameters()) for layer in layers], 4)
    stages = course.per_rank([{rank: stage} for rank, stage in enumerate(split_model(layers, sizes))])
    ((x, target),) = text_batches(texts(), 16, 64, 1)

    def loss(y: torch.Tensor, _: int) -> torch.Tensor:
        return nn.functional.cross_entropy(y.flatten(0, 1), target.flatten())

    step = partial(ranks().run, run_schedule, gpipe_schedule(4, 1), stages, [x], loss)
    step()  # the first one finds memory and connections
    timing = timing_of(quickest([step() for _ in range(3)]).events, 4)
    return pipelines({"One batch": timing}, idle_text(timing.idle_share, 4), in_seconds=["One batch"])


def cuts() -> Figure:
    """A linear layer cut by batch, by column and by row."""
    examples, inputs, outputs = LAYER
    x, weight = torch.randn(examples, inputs), torch.randn(outputs, inputs)
    drawn, moved = {}, {}
    for way in CUTS:
        run = ranks().run(cut_layer, way, x, weight, backend="gloo")
        messages = [moved_text(run.events, part) for part in ("forward", "backward")]
        drawn[way] = pictures.Cut(*(tuple(one.shape) for one in run.results[0]), *messages)
        moved[way] = run.bytes_per_rank[0]
    whole = pictures.Cut((examples, inputs), (outputs, inputs), (examples, outputs), "", "")
    return pictures.matrix_cuts(drawn, whole, 4, cuts_text(moved, examples))


def examples() -> Figure:
    """Bytes of the three cuts over the number of examples."""
    weight = torch.randn(128, 288)
    lines: dict[str, list[float]] = {
        way: [
            ranks().run(cut_layer, way, torch.randn(n, 288), weight, backend="gloo").bytes_per_rank[0] for n in EXAMPLES
        ]
        for way in CUTS
    }
    predicted = {"by batch": [4 * 288 * 128 for _ in EXAMPLES], "by column": [4 * 288 * n for n in EXAMPLES]}
    predicted["by row"] = [4 * 128 * n for n in EXAMPLES]
    look = {"across": "examples", "up": "bytes that a rank puts in", "unit": bytes_text}
    return course.draw.over_numbers(EXAMPLES, lines, sizes_text(EXAMPLES, lines), predicted=predicted, log=True, **look)


def gelus() -> Figure:
    """The gelu of a sum is not the sum of gelus."""
    a = torch.linspace(-3, 3, 7)
    lines = {"gelu(a) + gelu(−a)": (gelu(a) + gelu(-a)).tolist(), "gelu(a − a)": gelu(a - a).tolist()}
    title = "The terms a and −a: gelu of their sum is 0, the sum of their gelus is not"
    return course.draw.over_numbers(a.tolist(), lines, title, across="a", up="")


def block() -> Figure:
    """A whole block, cut over four ranks."""
    step = partial(ranks().run, beside_serial, parallelise_block, dropout=0.1, passes=1, backend="gloo")
    run = quickest([step() for _ in range(4)])
    return run.timeline(f"A block on 4 ranks: {run.collectives} collectives, forward and backward")


def seeds() -> Figure:
    """How far copies of the same weights drift apart."""
    lines = {place: ranks().run(ranks_apart, place, STEPS, backend="gloo").results[0] for place in OWN_SEEDS}
    look = {"across": "steps", "up": "largest difference between two ranks"}
    return course.draw.over_numbers(list(range(1, STEPS + 1)), lines, apart_text(lines), **look)


def memory() -> Figure:
    """Memory of one rank, computed and counted."""
    model = character_model(len(CHARACTERS), width=64, depth=BLOCKS, dropout=0.1)
    (batch,) = text_batches(texts(), 4, 64, 1)
    ways = {
        "one rank": (1, False, False),
        "4 ranks": (4, False, False),
        "4 ranks, sequence cut": (4, True, False),
        "4 ranks, checkpointing": (4, False, True),
    }
    computed, counted = {}, {}
    for way, (tensor, sequence, again) in ways.items():
        cut = Parallelism(tensor=tensor, sequence=sequence)
        computed[way] = training_memory(model, 4, 64, parallelism=cut, checkpointing=again)
        run = ranks().run(step_memory, model, batch, sequence, again, ranks=tensor, backend="gloo")
        counted[way] = run.results[0]
    return pictures.memory(computed, counted)


FIGURES = {
    "09_in_turns": in_turns,
    "09_cuts": cuts,
    "09_examples": examples,
    "09_gelu": gelus,
    "09_block": block,
    "09_seeds": seeds,
    "09_memory": memory,
}
