"""One training step in the words of five frameworks, and the same in the course's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from course_utils.lessons.read_the_manual.manuals import DEEPSPEED, HOROVOD, TENSORFLOW, TORCH


@dataclass(frozen=True)
class Step:
    """One update of the weights, in the terms of the course.

    Attributes:
        micro_batch: images that one rank takes through the network at a time.
        passes: how many such micro-batches a rank takes before the update.
        global_batch: images of all ranks that have a part in the update.
        times_mean: the gradient that the optimizer gets, as a multiple of the mean of their gradients.
    """

    micro_batch: int
    passes: int
    global_batch: int
    times_mean: float


def match_terms(framework: str, settings: Mapping[str, Any], ranks: int) -> Step:
    """Say in the terms of the course what one step is that a framework's settings describe.

    The loss is the mean over the images of one pass, unless the settings say otherwise.

    Args:
        framework: "torch.distributed" (with DistributedDataParallel), "Horovod" (with torch),
            "DeepSpeed", "tf.distribute" or "JAX".
        settings: in that framework's own words, which the text above the exercise explains.
        ranks: how many processes, GPUs, replicas or devices there are; each has a whole model.

    Returns:
        The step. All its images are whole numbers: what is divided can be divided.

    Source: the manuals, at the addresses in `course_utils.lessons.read_the_manual.manuals`.
    """
    # Frameworks sum or average in different places: how many times the mean their gradient is.
    times_mean = 1
    if framework == TORCH:
        micro_batch, passes = settings["batch_size"], settings["no_sync"] + 1
        times_mean = passes * (micro_batch if settings["reduction"] == "sum" else 1)
    elif framework == HOROVOD:
        micro_batch, passes = settings["batch_size"], settings["backward_passes_per_step"]
        times_mean = passes * (ranks if settings["op"] == "Sum" else 1)
    elif framework == DEEPSPEED:
        # One of the three numbers may be left out, since it follows from the other two.
        whole = settings.get("train_batch_size")
        micro_batch = settings.get("train_micro_batch_size_per_gpu")
        passes = settings.get("gradient_accumulation_steps")
        passes = passes or (whole // (micro_batch * ranks) if whole and micro_batch else 1)
        micro_batch = micro_batch or whole // (passes * ranks)
    elif framework == TENSORFLOW:
        micro_batch, passes = settings["batch"] // ranks, 1
        times_mean = ranks if settings["loss"] == "reduce_mean" else 1
    else:
        micro_batch, passes = settings["batch"] // ranks, settings["every_k_schedule"]
        times_mean = ranks if settings["collective"] == "psum" else 1
    return Step(micro_batch, passes, micro_batch * passes * ranks, times_mean)
