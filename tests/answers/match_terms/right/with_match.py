"""A `match` statement, and a helper for DeepSpeed's product."""

from course_utils.lessons.read_the_manual.framework_terms import Step


def completed(given, ranks):
    batch = given.get("train_batch_size")
    micro = given.get("train_micro_batch_size_per_gpu")
    steps = given.get("gradient_accumulation_steps")
    if micro is None:
        steps = steps or 1
        micro = batch // steps // ranks
    elif steps is None:
        steps = 1 if batch is None else batch // micro // ranks
    return micro, steps


def match_terms(framework, settings, ranks):
    match framework:
        case "torch.distributed":
            micro, passes = settings["batch_size"], 1 + settings["no_sync"]
            times = passes * micro if settings["reduction"] == "sum" else passes
        case "Horovod":
            micro, passes = settings["batch_size"], settings["backward_passes_per_step"]
            times = passes * ranks if settings["op"] == "Sum" else passes
        case "DeepSpeed":
            micro, passes = completed(settings, ranks)
            times = 1.0
        case "tf.distribute":
            micro, passes = settings["batch"] // ranks, 1
            times = 1.0 if settings["loss"] == "compute_average_loss" else float(ranks)
        case "JAX":
            micro, passes = settings["batch"] // ranks, settings["every_k_schedule"]
            times = 1.0 if settings["collective"] == "pmean" else float(ranks)
    return Step(micro_batch=micro, passes=passes, global_batch=ranks * passes * micro, times_mean=times)
