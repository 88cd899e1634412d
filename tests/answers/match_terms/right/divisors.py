"""By what the sum over all images is divided, against the number of images."""

from course_utils.lessons.read_the_manual.framework_terms import Step


def match_terms(framework, settings, ranks):
    if framework in ("tf.distribute", "JAX"):
        images, passes = settings["batch"], settings.get("every_k_schedule", 1)
        total = images * passes
        unscaled = settings.get("loss") == "reduce_mean" or settings.get("collective") == "psum"
        divisor = total / ranks if unscaled else total
        return Step(images // ranks, passes, total, total / divisor)
    if framework == "DeepSpeed":
        total = settings.get("train_batch_size")
        micro = settings.get("train_micro_batch_size_per_gpu")
        passes = settings.get("gradient_accumulation_steps")
        if total is None:
            total = micro * (passes or 1) * ranks
        if passes is None:
            passes = total // (micro * ranks) if micro else 1
        return Step(total // (passes * ranks), passes, total, 1)
    micro = settings["batch_size"]
    passes = settings["no_sync"] + 1 if framework == "torch.distributed" else settings["backward_passes_per_step"]
    total = micro * passes * ranks
    divisor = ranks * (1 if settings.get("reduction") == "sum" else micro)
    if settings.get("op") == "Sum":
        divisor = micro
    return Step(micro, passes, total, total / divisor)
