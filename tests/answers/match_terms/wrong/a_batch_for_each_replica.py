"""Refused with: Does this manual's batch belong to one rank, or to all of them?"""

from course_utils.lessons.read_the_manual.framework_terms import Step


def match_terms(framework, settings, ranks):
    times_mean = 1
    if framework == "torch.distributed":
        micro_batch, passes = settings["batch_size"], settings["no_sync"] + 1
        times_mean = passes * (micro_batch if settings["reduction"] == "sum" else 1)
    elif framework == "Horovod":
        micro_batch, passes = settings["batch_size"], settings["backward_passes_per_step"]
        times_mean = passes * (ranks if settings["op"] == "Sum" else 1)
    elif framework == "DeepSpeed":
        batch = settings.get("train_batch_size")
        micro_batch = settings.get("train_micro_batch_size_per_gpu")
        passes = settings.get("gradient_accumulation_steps")
        if passes is None:
            passes = batch // (micro_batch * ranks) if batch and micro_batch else 1
        if micro_batch is None:
            micro_batch = batch // (passes * ranks)
    elif framework == "tf.distribute":
        micro_batch, passes = settings["batch"], 1
        times_mean = ranks if settings["loss"] == "reduce_mean" else 1
    else:
        micro_batch, passes = settings["batch"] // ranks, settings["every_k_schedule"]
        times_mean = ranks if settings["collective"] == "psum" else 1
    return Step(micro_batch, passes, micro_batch * passes * ranks, times_mean)
