"""It adds up gradients that are all 1: what arrives is the multiple of their mean."""

import numpy as np

from course_utils.lessons.read_the_manual.framework_terms import Step


def match_terms(framework, settings, ranks):
    passes, over_images, over_passes, over_ranks = 1, np.mean, np.sum, np.mean
    if framework == "torch.distributed":
        micro, passes = settings["batch_size"], settings["no_sync"] + 1
        over_images = np.sum if settings["reduction"] == "sum" else np.mean
    elif framework == "Horovod":
        micro, passes = settings["batch_size"], settings["backward_passes_per_step"]
        over_ranks = np.sum if settings["op"] == "Sum" else np.mean
    elif framework == "DeepSpeed":
        over_passes = np.mean
        known = dict(settings)
        if len(known) == 1:
            known["gradient_accumulation_steps"] = 1
        micro = known.get("train_micro_batch_size_per_gpu")
        passes = known.get("gradient_accumulation_steps")
        if passes is None:
            passes = known["train_batch_size"] // micro // ranks
        if micro is None:
            micro = known["train_batch_size"] // passes // ranks
    elif framework == "tf.distribute":
        micro, over_ranks = settings["batch"] // ranks, np.sum
        if settings["loss"] == "compute_average_loss":
            over_images = lambda values, axis: values.sum(axis=axis) / settings["batch"]  # noqa: E731
    else:
        micro, passes, over_passes = settings["batch"] // ranks, settings["every_k_schedule"], np.mean
        over_ranks = np.sum if settings["collective"] == "psum" else np.mean
    ones = np.ones((ranks, passes, micro))
    arrived = over_ranks(over_passes(over_images(ones, axis=2), axis=1))
    return Step(micro, passes, ones.size, float(arrived))
