"""A layout that fits on the GPUs and trains a model about as fast as possible, found by trying all of them."""

from itertools import product

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import judge
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import EVERY_OTHER, FULL, MODERN, NOTHING, Layout
from course_utils.lessons.read_the_manual.large_training.training_tasks import TrainingTask


def plan_run(task: TrainingTask) -> Layout:
    """Return a layout in which the model fits on the task's GPUs and reaches the task's goal.

    `judge(task.model, task.cluster, layout, task.length)` is lesson 11's estimate for a layout.
    Its `fits` tells whether the model fits into nine tenths of each GPU's memory, and its
    `peak_share` is the MFU.

    Args:
        task: the model, the cluster, the texts in one step, the tokens of a text, and the goal.

    Returns:
        A layout that uses all GPUs of the cluster and exactly `task.batch` texts in one step. Its
        program is `MODERN`, and what the exercise's table does not name keeps its default.
    """
    fastest, most = None, 0.0
    gpus, node = task.cluster.gpus, task.cluster.node
    sizes, texts = (1, 2, 4, 8, 16, 32), (1, 2, 4, 8)
    for tensor, pipeline, micro_batch in product(sizes, sizes, texts):
        # What is left of the GPUs are replicas, and each of them takes its share of the texts.
        data = gpus // (tensor * pipeline)
        if tensor > node or data * tensor * pipeline != gpus or task.batch % (data * micro_batch):
            continue
        if task.model.heads % tensor or pipeline > task.model.layers:
            continue
        micro_batches = task.batch // data // micro_batch
        for zero, again in product(range(4), (NOTHING, EVERY_OTHER, FULL)):
            layout = Layout(data, tensor, pipeline, zero, again, micro_batch, micro_batches, program=MODERN)
            choice = judge(task.model, task.cluster, layout, task.length)
            if choice.fits and choice.peak_share > most:
                fastest, most = layout, choice.peak_share
    if fastest is None:
        raise CourseError("The model fits on these GPUs in no layout. Take more GPUs.")
    return fastest
