"""The pictures of deck 11: meshes, two kinds of parallelism in one network, replicas that drift, ZeRO, and plans."""

from functools import cache

from matplotlib.figure import Figure

import course_utils as course
from course_utils.draw import SharesPanel, style
from course_utils.lessons.data_parallel.sentences import quickest
from course_utils.lessons.hybrid_and_sharded import pictures
from course_utils.lessons.hybrid_and_sharded.experiments import (
    MESHES,
    RATE,
    count_meshes,
    count_stages,
    most_saved,
    small_batches,
    small_model,
)
from course_utils.lessons.hybrid_and_sharded.mesh_training import train_on_mesh, train_serially
from course_utils.lessons.hybrid_and_sharded.planner import pictures as planner_pictures
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import H100
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import plan
from course_utils.lessons.hybrid_and_sharded.report_network import RankTraining, train_network
from course_utils.lessons.hybrid_and_sharded.sentences import (
    distances,
    drift_text,
    mixtures_text,
    saved_text,
    stages_text,
)
from course_utils.lessons.hybrid_and_sharded.zero_stages import train_sharded
from course_utils.lessons.model_parallel.activation_checkpointing import checkpointed

STEPS = 66  # of the report's network
TEXT_STEPS = 80
MIXTURES = tuple(MESHES)
GPUS = (8, 64, 512)
MODELS = ("GPT-2 1.5B", "Llama 7B", "Llama 3 70B", "GPT-3 175B", "Megatron 1T")
RUNS = 3  # of what is drawn over time; the quickest is shown
PIECES = 64  # of text in a batch whose activations are counted
DRAFT = {"STEPS": 4, "TEXT_STEPS": 2, "MIXTURES": ("4 data", "2 data × 2 stages"), "GPUS": (8,), "RUNS": 1, "PIECES": 8}


@cache
def four():
    """The ranks that all pictures of this deck run on."""
    return course.start(4)


@cache
def trained(way: str, ranks: int = 4) -> list[RankTraining]:
    """The report's network, trained one way."""
    data = course.data.digits("float64")
    return four().run(train_network, data, way, STEPS, ranks=ranks, backend="gloo").results


def cube() -> Figure:
    """Eight ranks, three axes."""
    return pictures.mesh({"data": 2, "pipeline": 2, "tensor": 2})


def hybrid_step() -> Figure:
    """One step of the hybrid."""
    data = course.data.digits("float64")
    runs = [four().run(train_network, data, "hybrid", 1, backend="gloo") for _ in range(RUNS)]
    return quickest(runs).timeline("Convolutions everywhere, fully connected layers on rank 0")


def hybrid() -> Figure:
    """The hybrid beside one process."""
    lines = {"one process": trained("serial", 1)[0].losses, "hybrid": trained("hybrid")[0].losses}
    return course.draw.loss_curves(lines, "Two kinds of parallelism in one network")


def report() -> Figure:
    """The losses that the report's version shows."""
    lines = {f"rank {rank}": one.losses for rank, one in enumerate(trained("report"))}
    lines = {"one process": trained("serial", 1)[0].losses} | lines
    return course.draw.loss_curves(lines, "The report's version, each rank's loss on its own images")


def drift() -> Figure:
    """How far its replicas are from each other."""
    title = drift_text(trained("report"))
    return course.draw.loss_curves(distances(trained("report")), title, y="distance from rank 0's layers")


def text() -> Figure:
    """Two by two ranks beside one process, on text."""
    batches = small_batches(TEXT_STEPS)
    one = four().run(train_serially, small_model, batches, RATE, ranks=1, backend="gloo").results[0]
    square = four().run(train_on_mesh, MESHES["2 data × 2 tensor"], small_model, batches, 1, RATE, backend="gloo")
    lines = {"one process": one.losses, "2 × 2": square.results[-1].losses}
    return course.draw.loss_curves(lines, "Data × tensor: a transformer learns characters")


def mixtures() -> Figure:
    """Bytes of five mixtures."""
    sent = count_meshes(four(), small_batches(3), {name: MESHES[name] for name in MIXTURES}).sent
    return course.draw.shares([SharesPanel("sent by rank 1 in a step", sent)], mixtures_text(sent))


def sharded(stage: int, title: str) -> Figure:
    """A step with one stage of ZeRO."""
    batches = small_batches(1)
    runs = [four().run(train_sharded, stage, small_model, batches, RATE, backend="gloo") for _ in range(RUNS)]
    return quickest(runs).timeline(title)


def stages() -> Figure:
    """What each stage keeps and sends."""
    counted = count_stages(four(), small_batches(3))
    panels = [
        SharesPanel("kept by each rank", counted.kept, counted.kept_on_paper),
        SharesPanel("sent in a step", counted.sent, counted.sent_on_paper),
    ]
    return course.draw.shares(panels, stages_text(counted.kept, counted.sent))


def activations() -> Figure:
    """Two more ways to save memory."""
    x, y = small_batches(1)[0]
    batches = [(x[:PIECES], y[:PIECES])]
    saved = {
        "as it is": most_saved(small_model(), batches, 1),
        "4 micro-batches": most_saved(small_model(), batches, 4),
        "checkpointing": most_saved(checkpointed(small_model()), batches, 1),
        "both": most_saved(checkpointed(small_model()), batches, 4),
    }
    return course.draw.shares([SharesPanel("kept for the backward pass, at most", saved)], saved_text(saved))


def plans() -> Figure:
    """What fits on how many GPUs, on paper."""
    choices = {gpus: {name: plan(name, H100(gpus)) for name in MODELS} for gpus in GPUS}
    return planner_pictures.plans(choices, width=style.SLIDE_WIDTH)


FIGURES = {
    "11_mesh": cube,
    "11_hybrid_step": hybrid_step,
    "11_hybrid": hybrid,
    "11_report": report,
    "11_drift": drift,
    "11_text": text,
    "11_mixtures": mixtures,
    "11_zero1": lambda: sharded(1, "Stage 1: all that stage 0 sends, in two halves"),
    "11_fsdp": lambda: sharded(3, "Stage 3: weights come when they are needed"),
    "11_stages": stages,
    "11_activations": activations,
    "11_plans": plans,
}
