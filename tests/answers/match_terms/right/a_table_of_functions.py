"""One small function for each framework, in a table."""

from course_utils.lessons.read_the_manual.framework_terms import Step


def torch_ddp(s, ranks):
    sums = s["batch_size"] if s["reduction"] == "sum" else 1
    return s["batch_size"], s["no_sync"] + 1, sums * (s["no_sync"] + 1)


def horovod(s, ranks):
    passes = s["backward_passes_per_step"]
    return s["batch_size"], passes, passes * {"Average": 1, "Sum": ranks}[s["op"]]


def deepspeed(s, ranks):
    missing = {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"} - set(s)
    passes = s.get("gradient_accumulation_steps", 1)
    if missing == {"gradient_accumulation_steps"}:
        passes = s["train_batch_size"] // (ranks * s["train_micro_batch_size_per_gpu"])
    if "train_micro_batch_size_per_gpu" in missing:
        return s["train_batch_size"] // (ranks * passes), passes, 1
    return s["train_micro_batch_size_per_gpu"], passes, 1


def tensorflow(s, ranks):
    return s["batch"] // ranks, 1, {"compute_average_loss": 1, "reduce_mean": ranks}[s["loss"]]


def jax(s, ranks):
    return s["batch"] // ranks, s["every_k_schedule"], {"pmean": 1, "psum": ranks}[s["collective"]]


READERS = {
    "torch.distributed": torch_ddp,
    "Horovod": horovod,
    "DeepSpeed": deepspeed,
    "tf.distribute": tensorflow,
    "JAX": jax,
}


def match_terms(framework, settings, ranks):
    micro_batch, passes, times_mean = READERS[framework](settings, ranks)
    return Step(micro_batch, passes, micro_batch * passes * ranks, times_mean)
