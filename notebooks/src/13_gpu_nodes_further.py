# The optional second notebook of lesson 13. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: from four processes to forty GPUs?
#
# While Llama 3 was trained on 16,384 GPUs, something unexpected interrupted it 419 times in 54 days, which is about
# once in three hours ([Grattafiori and others 2024](https://arxiv.org/abs/2407.21783), section 3.3.4). At this size, a
# training run needs more than a launcher. You have to know what the network will do before you pay for it, how often to
# save and how, where messages travel between two nodes, and what to read when the run doesn't start.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, because each of them stands alone. If a section complains that its ranks were stopped, run
# the first code cell again.
#
# 1. *Forty GPUs, before they are paid for*: what the network between nodes does to the speed
# 2. *How often should you save?*: the cost of a checkpoint against the cost of a failure
# 3. *The ranks save while they train*: sharded checkpoints that are written in the background
# 4. *Whole or sharded, on a GPU*: the memory of DDP and FSDP2, counted and recorded
# 5. *When the launch fails*: how to find the cause among the complaints of forty processes
# 6. *torchrun on several nodes*: the batch script, and one variable that it needs
# 7. *From GPU to GPU, between two nodes*: GPUDirect RDMA, rails, and the variables that choose a network card
# 8. *nccl-tests on two nodes*: the command, its columns, and a published line
# 9. *What else keeps a long run alive*: spare nodes, restarts without a new job, and wrong results without an error
# 10. *bfloat16 in narrow and in wide layers*: what `torch.autocast` gains on your computer
#
# *75 minutes · optional, after [lesson 13](13_gpu_nodes.ipynb) · 4 ranks, 3 to 10 minutes for each section*

# %%
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

import course_utils as course
from course_utils.lessons.gpu_nodes import pictures, training_folder

ranks = course.start(4, link="100 Mbit/s")
ranks.load_torch()
temporary = tempfile.TemporaryDirectory(dir=training_folder())
folder = Path(temporary.name)

# %% [markdown]
# ## Forty GPUs, before they are paid for
#
# Would forty GPUs train forty times as many images per second as one GPU? You can find out before you rent them,
# because a step of data parallelism has only two parts whose times you need to know. First every GPU computes, and then
# an all-reduce adds up the gradients. **Virtual ranks** (lesson 5) run such a step on clocks that we move forward
# ourselves. Computing moves a rank's clock by the time that we tell it, and a message moves it by the latency and the
# bytes of the links that it crosses.
#
# We start with the computing. On the H100 whose measurements the [second page](13_gpu_nodes_part_2.ipynb) shows, the
# fastest way to train VGG-11 with 512 images per step took 2.6 ms. If this computer has a GPU, the next cell measures
# yours instead, which takes a minute or two. Then put its time in place of our 2.6 ms in the calculation below.

# %%
from course_utils.lessons.gpu_nodes import climb_here

climbed = climb_here()
alone = median(climbed.seconds["+ CUDA graph"])
print(f"a step on one GPU: {1000 * alone:.1f} ms. {climbed.origin}")

# %% [markdown]
# Now the all-reduce. VGG-11 has 9.2 million weights, so its gradients in float32 take 37 MB. Forty GPUs are ten nodes
# with four GPUs each, and lesson 5's hierarchical all-reduce works on two levels:
#
# - *Inside a node*, a reduce-scatter gives each GPU the sum of a quarter of the gradients. At the end, an all-gather
#   gives the complete sums to all four GPUs. In both, a GPU sends three quarters of the 37 MB. We assume 300 GB/s, so
#   each of the two takes 28 MB ÷ 300 GB/s = 0.09 ms.
# - *Between the nodes*, each GPU adds up its quarter with the same quarter of the nine other nodes. All four GPUs share
#   the link of their node. Together they send $\frac{2 \cdot 9}{10}$ of the 37 MB over it, which is 66 MB.
#
# Let's do one network in full. If the link of a node carries 400 Gbit/s, which is 50 GB/s, then 66 MB take 1.3 ms. We
# also assume a latency of 5 µs between nodes and 3 µs inside, and the ring of ten nodes needs 2 · 9 = 18 rounds, which
# adds 0.1 ms. If the GPUs first compute and then send, a step takes 2.6 + 0.2 + 1.3 + 0.1 = 4.2 ms. One GPU would need
# 40 · 2.6 ms for these images, so forty GPUs are 40 · 2.6 ÷ 4.2 = 25 times as fast.
#
# **Predict.** How many times as fast is it with a link of 25 Gbit/s for each node? And with 1,600 Gbit/s, the rate of
# four cards of 400 Gbit/s?

# %%
course.predict("forty_virtual", within=1.3, ethernet=..., four_cards=...)

# %%
from course_utils.lessons.allreduce import hierarchical_allreduce, two_level
from course_utils.lessons.gpu_nodes import compute_for
from course_utils.vgg import parameter_count, vgg11


def timed_step(comm, compute_seconds, numbers):
    from mpi4py import MPI

    gradient = np.ones(numbers, np.float32)
    comm.Barrier()
    began = MPI.Wtime()
    compute_for(comm, compute_seconds)  # only takes this time, and computes nothing
    hierarchical_allreduce(comm, gradient, node_size=min(4, comm.size))
    seconds = MPI.Wtime() - began
    assert (gradient == comm.size).all()  # the gradients were really added up
    return seconds


def nodes_of_four(gpus, gbit):
    between = (5e-6, 8e-9 / gbit)  # seconds of latency, and seconds per byte
    inside = (3e-6, 1 / 300e9)
    return two_level(gpus, 4, between, inside)


weights = parameter_count(vgg11())
numbers = 9_200  # we send these, and each stands for about 1,000
virtual = course.start(
    40, where="nowhere", network=nodes_of_four(40, 25), scale=weights / numbers
)


def times_one(gpus, gbit, compute_seconds=alone):
    network = nodes_of_four(gpus, gbit)
    run = virtual.run(timed_step, compute_seconds, numbers, ranks=gpus, network=network)
    return gpus * compute_seconds / max(run.results)


# %% tags=["figure:13_forty_played"]
from course_utils.lessons.gpu_nodes import virtual_nodes_text

networks = {"25 Gbit/s": 25, "400 Gbit/s": 400, "4 × 400 Gbit/s": 1600}
gpus = [4, 8, 20, 40]
times = {name: [times_one(P, gbit) for P in gpus] for name, gbit in networks.items()}
ethernet, four_cards = times["25 Gbit/s"][-1], times["4 × 400 Gbit/s"][-1]
course.answer("forty_virtual", ethernet=ethernet, four_cards=four_cards)
title, finding = virtual_nodes_text(gpus, times)
course.draw.over_numbers(
    gpus,
    times,
    title,
    finding,
    across="virtual GPUs, four on each node",
    up="images per second, compared with one GPU",
    unit="{:.2g}".format,
)

# %% [markdown]
# At 25 Gbit/s the messages take 21 ms, and the recorded H100 computes for only 2.6 ms. So two nodes can be slower than
# one, because one node sends nothing over this link. Should you therefore always pay for the fast network? That
# conclusion would be wrong, because it depends on two conditions of our example. We have a small network with a very
# short step, and we don't hide any communication behind the backward pass (lesson 7). The next cell changes both. First
# each GPU computes ten times as long before the gradients are added up, for example with ten micro-batches. Then it
# calculates the best that overlapping could do, a step that takes only as long as the longer of its two parts.

# %%
for name, gbit in networks.items():
    step = 40 * alone / times_one(40, gbit)
    overlapped = 40 * alone / max(alone, step - alone)
    longer = times_one(40, gbit, compute_seconds=10 * alone)
    print(
        f"{name:15} as above {40 * alone / step:4.1f}, everything possible hidden "
        f"{overlapped:4.1f}, ten times the computing {longer:4.1f}"
    )

# %% [markdown]
# What decides is how long a GPU computes for each byte that it has to send. Large language models compute for seconds
# between two updates and still need fast networks, since their gradients are thousands of times larger. So put your own
# step time and your own gradients into this cell before you choose.
#
# ### Can you trust these clocks?
#
# The clocks know only what we told them. A real network has more latencies than two, and other people's messages on its
# links. What you can check is whether the rule for adding up the times is right. For this, the same function runs on
# four virtual ranks with links of 100 Mbit/s and, if your system can emulate such links, on the four real ranks of this
# notebook. Each rank waits for 50 ms instead of computing, and then all-reduces 100,000 numbers.

# %%
from course_utils.measuring import is_busy
from course_utils.words import seconds_text

four = course.start(4, where="nowhere", link="100 Mbit/s")
on_clocks = max(four.run(timed_step, 0.05, 100_000).results)
print("a step on 4 virtual ranks:", seconds_text(on_clocks))
if not ranks.facts["network"]:
    print(
        "Your real ranks have no emulated links, so a comparison would mean nothing here."
    )
else:
    measured = [max(ranks.run(timed_step, 0.05, 100_000).results) for _ in range(5)]
    print("a step on 4 real ranks:   ", seconds_text(median(measured)))
    if is_busy([measured]):
        print("The machine was busy, so the comparison means nothing here.")
    else:
        print(f"The real ranks took {100 * (median(measured) / on_clocks - 1):+.0f}%.")

# %% [markdown]
# On paper, the ring of four sends 1.5 · 400 KB over each link of 12.5 MB/s. That is 48 ms, and with the 50 ms of
# waiting it makes 98 ms. Real ranks also need a little time for their Python code and for waking up.
#
# ## How often should you save?
#
# If you save often, you spend your time writing. If you save rarely, you lose a lot of work in every failure. In
# between there is a best interval, and you can calculate it.
#
# Take Llama 3's rate of 419 unexpected interruptions in 54 days. (There were 466 interruptions in all. The other 47
# were planned, such as updates.) That is one in 54 · 24 · 60 ÷ 419 = 186 minutes. We assume that a restart takes 5
# minutes, and that all GPUs wait while a checkpoint is written, which takes 1 minute. The **goodput** is the share of
# the time that goes into work that is kept. Let's calculate what an interval of one hour costs:
#
# - *Writing.* In every hour of work, one minute goes into a checkpoint, which is 1 ÷ 60 = 1.7%.
# - *Lost work.* A failure comes at any moment of the interval, so on average it destroys half of it, 30 minutes. Every
#   186 minutes this happens once, so it costs 30 ÷ 186 = 16%.
# - *Restarts* cost 5 ÷ 186 = 2.7%, whatever the interval is.
#
# In general, let $t$ be the interval, $C$ the time that all wait for a checkpoint, and $M$ the mean time between
# failures of the whole run (**MTBF**). The first cost is about $C/t$ and the second one about $t/2M$. If you make $t$
# longer, the first falls and the second rises. For two such terms the sum is smallest when both are equal.
#
# **Predict.** How many minutes of work between two checkpoints are best? And how many percent is the goodput then?

# %%
course.predict("interval", within=1.3, minutes=..., goodput=...)

# %%
from course_utils.lessons.gpu_nodes import best_interval, goodput

hours = 54 * 24 / 419  # from one failure to the next
mtbf = 3600 * hours
best = best_interval(save_seconds=60, node_hours=2048 * hours, nodes=2048)
share = goodput(best, save_seconds=60, mean_seconds=mtbf, restart_seconds=300)
course.answer("interval", minutes=best / 60, goodput=100 * share)

# %% [markdown]
# The two costs are equal if $C/t = t/2M$, so the best interval is $t = \sqrt{2\,C M}$ ([Young
# 1974](https://doi.org/10.1145/361147.361115)). `best_interval` calculates it, and `goodput` is a more exact formula by
# [Daly (2006)](https://doi.org/10.1016/j.future.2004.11.016), which also knows that a restart can fail. The failure of
# any node stops the run. So $M$ is the MTBF of one node divided by the number of nodes, which is 2,048 here, with 8
# GPUs each. With four times as many nodes you have to save twice as often.
#
# ### Training goes on while the files are written
#
# Many training libraries can write a checkpoint **asynchronously**. All GPUs wait only until their state has been
# *copied* to the host memory. Then they continue to train, and the copy is written to the disk in the background. The
# next section does this with `torch.distributed.checkpoint.async_save`. In our formula, $C$ is now the time of the
# copy. Say that it takes 5 s instead of 60.
#
# **Predict.** What is the best interval now, in minutes? (How does a square root change if $C$ is 12 times smaller?)

# %%
course.predict("async_interval", within=1.3, minutes=...)

# %% tags=["figure:13_interval"]
from course_utils.lessons.gpu_nodes import intervals_text, simulated_goodput
from course_utils.words import percent

best = {}
for name, waiting in {"all wait 60 s": 60, "all wait 5 s": 5}.items():
    best[name] = best_interval(waiting, node_hours=2048 * hours, nodes=2048) / 60
course.answer("async_interval", minutes=best["all wait 5 s"])

minutes = [2, 4, 8, 16, 32, 64, 128]
on_paper, simulated = {}, {}
for name, waiting in {"all wait 60 s": 60, "all wait 5 s": 5}.items():
    on_paper[name] = [goodput(60 * t, waiting, mtbf, 300) for t in minutes]
    simulated[name] = [
        [simulated_goodput(60 * t, waiting, mtbf, 300, seed=seed) for seed in range(5)]
        for t in minutes
    ]
title, finding = intervals_text(minutes, simulated, best)
course.draw.over_numbers(
    minutes,
    simulated,
    title,
    finding,
    across="minutes of work between two checkpoints",
    up="goodput",
    unit=percent,
    predicted=on_paper,
    limits=(0.5, 1),
    dots="simulated",
)

# %% [markdown]
# Both curves are flat near their maximum. If all wait 60 s, half or twice the best interval raises the two costs
# together only from 10.4% to 13%. With a short wait you save more often and lose less in a failure, because the copy is
# the only thing that stops the GPUs. Two costs are missing in our formula. A checkpoint that is still being written
# when a failure comes is useless, so the run has to go back to the one before it. If the writing takes a minute, this
# costs another 1 ÷ 186 = 0.5%, and an interval can't be shorter than the writing. And the copy needs room in the host
# memory.
#
# Goodput is a number that large runs report. For the largest Gemini job it rose from 85% to 97%, its authors write,
# when they kept redundant copies of the state in memory instead of only writing it to storage ([Gemini Team
# 2023](https://arxiv.org/abs/2312.11805), section 3). The [exercise](../exercises/13_gpu_nodes.ipynb) `best_interval`
# belongs to this section.
#
# ## The ranks save while they train
#
# The main page's program lets rank 0 write everything, which is right for DDP, because every rank has the same state.
# With FSDP2 each rank has a different part. The second page of [lesson 11](11_hybrid_and_sharded_part_2.ipynb) showed
# that such ranks can write a **sharded checkpoint**, and that fewer ranks can read it again. Here we look at two things
# that it left out. How many bytes does each rank write? And how can the ranks train while they are written?
#
# The model is small, and four ranks divide it with FSDP2. After one step, Adam has two averages for each weight, so
# there are three tensors per weight in the checkpoint.
#
# **Predict.** The three layers have 64 · 256, 256 · 256 and 256 · 8 weights without biases, in float32. How many KB (of
# 1,000 bytes) of tensors does each of the four ranks write?

# %%
course.predict("shard_bytes", within=1.05, kilobytes=...)


# %%
def sharded_model():
    torch.manual_seed(0)
    sizes = [(64, 256), (256, 256), (256, 8)]
    model = nn.Sequential(*[nn.Linear(*size, bias=False) for size in sizes])
    for layer in [*model, model]:
        fully_shard(layer)
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def train_step(model, optimizer):
    optimizer.zero_grad()
    inputs = torch.linspace(-1, 1, 8 * 64).reshape(8, 64)
    model(inputs).square().mean().backward()
    optimizer.step()


def full_tensors(model):
    return {name: weight.full_tensor() for name, weight in model.state_dict().items()}


def save_together(path):
    model, optimizer = sharded_model()
    train_step(model, optimizer)
    weights, averages = get_state_dict(model, optimizer)
    checkpoint.save({"model": weights, "adam": averages}, checkpoint_id=path)
    local = [weight.to_local() for weight in model.parameters()]
    for state in optimizer.state.values():
        local += [state["exp_avg"].to_local(), state["exp_avg_sq"].to_local()]
    return full_tensors(model), sum(tensor.nbytes for tensor in local)


saved = ranks.run(save_together, str(folder / "together"), backend="gloo").results
course.measured("shard_bytes", kilobytes=saved[0][1] / 1000)
for rank, (_, nbytes) in enumerate(saved):
    size = (folder / "together" / f"__{rank}_0.distcp").stat().st_size
    print(f"rank {rank} has {nbytes:,} bytes of tensors; its file has {size:,}")

# %% [markdown]
# The model has 83,968 weights. Three numbers of 4 bytes for each make 1,008 KB, and a quarter of that is 252 KB. The
# files are larger because each tensor in them also has a header. An additional file, `.metadata`, lists which part of
# which tensor is in which file. Without it the checkpoint can't be read, and it is written last. With eight ranks, each
# file would be half as large, and eight disks or network cards could write at the same time.
#
# Now the same in the background. A real checkpoint may take a minute, but ours would be written in an instant. So we
# let the writer sleep for one second first. The function returns how long the training had to wait, and which weights
# it had when it called `async_save`. Then it trains for five more steps while the files are being written.
#
# **Predict.** Which weights will the checkpoint contain?

# %%
choices = {
    "a": "those that the model had when async_save was called",
    "b": "those after the five steps, because the writer starts late",
    "c": "a mixture, because the weights change while they are written",
}
course.predict("async_weights", answer=..., choices=choices)


# %%
import torch.distributed as dist


class SlowDisk(checkpoint.FileSystemWriter):
    def write_data(self, plan, planner):
        time.sleep(1)
        return super().write_data(plan, planner)


def save_and_train(path):
    model, optimizer = sharded_model()
    train_step(model, optimizer)
    weights, averages = get_state_dict(model, optimizer)
    state = {"model": weights, "adam": averages}
    before = full_tensors(model)
    background = dist.new_group(backend="gloo")  # the writers' messages, not the steps'
    waited = {}

    began = time.perf_counter()
    checkpoint.save(state, storage_writer=SlowDisk(path + "_waiting"))
    waited["save"] = time.perf_counter() - began

    began = time.perf_counter()
    writing = checkpoint.async_save(
        state, storage_writer=SlowDisk(path), process_group=background
    )
    waited["async_save"] = time.perf_counter() - began
    for _ in range(5):
        train_step(model, optimizer)
    after = full_tensors(model)
    writing.result()  # wait until the files are complete
    return before, after, waited


def load_again(path):
    model, optimizer = sharded_model()
    weights, averages = get_state_dict(model, optimizer)
    checkpoint.load({"model": weights, "adam": averages}, checkpoint_id=path)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=averages)
    return full_tensors(model), len(next(model.parameters()).to_local())


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


path = str(folder / "background")
before, after, waited = ranks.run(save_and_train, path, backend="gloo").results[0]
for name, seconds in waited.items():
    print(f"{name:10} stopped the training for {seconds:.2f} s")
loaded, rows = ranks.run(load_again, path, ranks=2, backend="gloo").results[0]
if same(loaded, before):
    answer = "a"
else:
    answer = "b" if same(loaded, after) else "c"
course.measured("async_weights", answer=answer)
assert same(loaded, before) and not same(before, after)
assert same(loaded, saved[0][0])  # those that checkpoint.save wrote in the first run
print(f"written by 4 ranks, loaded by 2: {rows} of the first layer's 256 rows on rank 0")

# %% [markdown]
# `async_save` copies the tensors before it returns, so the optimizer can't change them under the writer's hands. The
# checkpoint is exactly the one that `save` writes, and two ranks can load it.
#
# There are three things to know before you use it. The ranks exchange messages in the background, too, so give them a
# process group of their own. Otherwise their messages and those of your training steps share one group, and the ranks
# may call its collectives in different orders. The group also needs a backend for the CPU, because the copies are in
# host memory. `new_group(backend="gloo")`, as in the cell above, makes such a group even if you train over NCCL. (The
# default group of `init_process_group("cpu:gloo,cuda:nccl")` has one, too, but your steps use it.) And wait for
# `result()` before you start the next checkpoint or end the program, because only then is there a checkpoint. In torch
# 2.13 the documentation still calls `async_save` experimental.
#
# ## Whole or sharded, on a GPU
#
# How much memory does FSDP2 save? Lesson 11 counted the tensors of a small model. A GPU shows a second number, the most
# bytes that PyTorch's allocator had given out at any moment, and it is this number that decides whether a run stops
# with "out of memory". This section compares the two numbers.
#
# The tensors that take most of the memory belong to two groups. The first are the weights, their gradients and Adam's
# two averages (three colours in the picture below), which FSDP2 (lesson 11) divides among the ranks.  The second are
# the **activations**, which each rank keeps for its backward pass (lesson 9). Every rank has examples of its own, so
# the activations aren't divided. By default, DDP also keeps a second copy of the gradients in its buckets (lesson 7).
# The course avoids it with `gradient_as_bucket_view=True`.
#
# Here is an example. Suppose that a rank with DDP keeps 12 MB of weights, gradients and averages and 4 MB of
# activations. With FSDP2 on four ranks it keeps 12 ÷ 4 = 3 MB of the first group and still 4 MB of the second. That is
# 25% of the first group, and 7 ÷ 16 = 44% of everything.
#
# **Predict.** The next cell trains a small transformer (lesson 9) on our four ranks, and with DDP 27% of a rank's bytes
# are activations. What percentage of DDP's bytes does a rank keep with FSDP2? First of weights, gradients and averages,
# and then of everything.

# %%
course.predict("rank_memory", within=1.1, model=..., everything=...)  # percent

# %%
from course_utils.lessons.gpu_nodes import TextModel, kept_shares, kept_text
from course_utils.lessons.gpu_nodes import memory_by_way

kept = memory_by_way(ranks, TextModel())  # trains two steps with DDP, two with FSDP2
parts = {way: memory.counted.parts() for way, memory in kept.items()}
on_paper = {way: memory.formula.total for way, memory in kept.items()}
course.measured("rank_memory", **kept_shares(kept["DDP"], kept["FSDP2"]))
panel = course.draw.SharesPanel("kept by each rank, counted", parts, on_paper)
course.draw.shares([panel], kept_text(kept))

# %% [markdown]
# That was the count of what *stays*. Some tensors live for a moment only, such as the weights that FSDP2 has just
# gathered for one layer, gradients before they are reduce-scattered, and the work space of libraries. The allocator of
# a GPU counts these as well, and `torch.cuda.max_memory_allocated()` gives you the maximum. We recorded it once, for a
# larger transformer with 8 blocks of width 1,024, which have 100 million weights. Its two ranks shared one GPU, and
# each counted its own memory. *Without sharding* means that each rank kept everything, as with DDP, but all-reduced the
# gradients without buckets.

# %%
from course_utils.lessons.gpu_nodes import recorded_memory, recorded_memory_text

print(recorded_memory_text(recorded_memory()))

# %% [markdown]
# Without sharding the maximum is a little below the formula. The formula adds all gradients to all activations, but
# they don't all exist at the same time, because the backward pass releases activations while it makes gradients. With
# FSDP2 the maximum is a little above the formula, probably because of the gathered weights, which the formula leaves
# out.
#
# ## When the launch fails
#
# Suppose that `srun` has started forty ranks, and one of them stops with an exception. Slurm usually lets the other 39
# go on, and they wait for the missing rank in their next collective. With NCCL, PyTorch gives up after ten minutes by
# default, if nothing notices the lost rank earlier. Most of the 39 then write that a collective took too long, and the
# rest that they lost a connection. The log ends with these complaints, and none of them tells you what happened. The
# line that does is far above them, or in a different file. The option `--kill-on-bad-exit=1` of `srun` at least saves
# the ten minutes, because Slurm then ends all ranks as soon as one exits with an error.
#
# It helps to sort the lines by what they can tell you. A line that reports a failure is one of three things:
#
# - A *cause* explains why a rank failed, for example an exception in its program.
# - A *sign* shows that a rank failed, but not why, for example an exit code.
# - A *consequence* shows that a rank couldn't go on because another rank failed, for example a timeout.
#
# In this made-up example there are four ranks, and most of the log is left out. `reports_of` finds the lines that
# report a failure, and the picture shows when they were written. A line without a time gets that of the line before it.

# %% tags=["figure:13_story"]
from course_utils.lessons.gpu_nodes import explain_failure, lines_of, reports_of

example_log = """\
2026-11-22 12:00:01 [rank2]: step 41
[rank2]: Traceback (most recent call last):
[rank2]:   File "train.py", line 31, in <module>
[rank2]:     label = example["label"]
[rank2]: KeyError: 'label'
2026-11-22 12:10:02 [rank0]: Watchdog caught collective operation timeout: ALLREDUCE ran for 600012 ms
2026-11-22 12:10:02 [rank3]: Watchdog caught collective operation timeout: ALLREDUCE ran for 600020 ms
2026-11-22 12:10:03 [rank1]: Watchdog caught collective operation timeout: ALLREDUCE ran for 600031 ms
"""
pictures.story(
    reports_of(lines_of(example_log)), 4, "Three ranks wait ten minutes for rank 2"
)

# %% [markdown]
# Three questions turn these reports into a story:
#
# 1. *Which rank explains its own failure?* Rank 2 does. The timeouts follow from its KeyError, because a rank that has
#    stopped never arrives at the next collective.
# 2. *Which ranks report this cause?* Only rank 2. So you look at what only this rank has, such as its part of the data.
#    If every rank of one node reported it, you would look at that node, and if every rank of the job did, at the
#    program.
# 3. *Which ranks does no report mention?* None here. But if the KeyError were missing, rank 2 would be the only rank
#    that doesn't complain, and you would know where to look although no line gives a cause.
#
# The next cell prints two real logs, in which no rank waits for ten minutes. Both runs used CPUs and `backend="gloo"`.
# This backend notices a closed connection at once, and torchrun ends the other ranks of its node within seconds. The
# first log is from two ranks on one node. We added its last line from the log of the kernel (`dmesg`). In the second
# log, each line begins with the task's number. Each of the two nodes runs one task, so it is the node's number too.
#
# **Predict.** What caused each failure?

# %%
from course_utils.lessons.gpu_nodes import readable, recording
from course_utils.words import wrapped

logs = [recording(number) for number in (1, 2)]
for number, record in enumerate(logs, start=1):
    print(f"--- log {number}\n\n{readable(record.log, width=92)}\n")

# %%
choices = {
    "a": "the network, which closed a connection of rank 0",
    "b": "the program of rank 1, which raised an exception",
    "c": "the computer's memory, which ran out, so that the kernel killed process 9457",
    "d": "rank 0, which never wrote the checkpoint",
    "e": "the nodes, which don't share the folder /mnt/runs",
}
course.predict("causes", first=..., second=..., choices=choices)

# %% [markdown]
# `explain_failure` asks the three questions. The next cell also prints the reports of the first log with their lines.

# %%
reports = [reports_of(lines_of(record.log)) for record in logs]
causes = [explain_failure(each, world_size=2).cause.failure for each in reports]
letters = {"out of memory": "c", "no shared files": "e"}
course.answer("causes", first=letters[causes[0]], second=letters[causes[1]])
for report in reports[0]:
    print(f"rank {report.rank}: {report.kind.name}, {report.failure}")
    print("    " + readable(report.line.text.strip(), width=84))
for number, record in enumerate(logs, start=1):
    print(wrapped(f"\nLog {number}: {record.origin}"))

# %% [markdown]
# In the first log, no rank explains its own failure. Rank 0 complains first, but its exception is about rank 1, which
# closed the connection, so it is only a consequence. So is the exit code −15, because torchrun ended rank 0 with signal
# 15 after rank 1 had failed. The exit code −9 means that signal 9 killed rank 1, and a process killed this way cannot
# print anything. So what torchrun calls the *Root Cause (first observed failure)* is only a sign.
#
# The kernel's line gives the reason. It names process 9457, which is rank 1 in torchrun's block (`pid: 9457`). The
# kernel killed it before rank 0 complained, but its clock counts seconds since the computer started, so we left the
# line at the end. With `dmesg -T` it would have a date and time, though not always the exact one. What ran out is the
# computer's main memory. Slurm usually gives a job a fixed amount of it on each node, which its tasks there share. If a
# GPU runs out of memory, you get an exception instead. Under Slurm, look for `oom_kill` or `oom-kill` in a message of
# `slurmstepd`, or for the state `OUT_OF_MEMORY` in `sacct`.
#
# In the second log, rank 1 doesn't find a file that rank 0 has already written. Most likely, each node has a folder
# `/mnt/runs` of its own, and `ls /mnt/runs` on both nodes would confirm it.
#
# ### A file for each rank
#
# With many ranks, a log is easier to read if each of them writes to a file of its own:
#
# - `srun --output=logs/%t.out` writes a file for each task, if the folder `logs` exists. If the task is a torchrun,
#   that is a file for each node.
# - `torchrun --log-dir logs --redirects 3` writes a `stdout.log` and a `stderr.log` for each rank, in folders below
#   `logs` that are named after the *local* rank. So give each node a different folder. The ranks then print nothing to
#   the terminal. With `--tee 3` instead of `--redirects 3`, their lines go to both.
#
# The command `course doctor --log logs` reads all these files together and prints the story. The next cell writes a
# file for each rank of our made-up example, and calls the functions behind the command.

# %%
from contextlib import chdir

from course_utils.lessons.gpu_nodes import log_report, log_report_text, read_logs

(folder / "logs").mkdir(exist_ok=True)
for rank in range(4):
    own_lines = [line for line in example_log.splitlines() if f"[rank{rank}]" in line]
    (folder / "logs" / f"{rank}.out").write_text("\n".join(own_lines))
with chdir(folder):
    print(wrapped(log_report_text(log_report(read_logs(["logs"]).lines))))

# %% [markdown]
# Add the line `(folder / "logs" / "2.out").write_text("")` above `with`, so that rank 2 has printed nothing, and run
# the cell again. The command can no longer know the cause, but it tells you to look at rank 2, which reports nothing.
# In the [exercise](../exercises/13_gpu_nodes.ipynb) `explain_failure` you write the function that asks the three
# questions.
#
# Some failures leave no line at all. With `--gpus-per-task=1`, Slurm shows each process only one GPU. A program that
# expects as many GPUs as processes, as `meet.py` does, then silently trains on the CPU. So let every rank print its
# device when it starts.
#
# ## torchrun on several nodes
#
# On the main page, torchrun started the processes of one machine, and `srun` those of several nodes. You can also
# combine them. Slurm starts one torchrun on each node, and each torchrun starts one process for every GPU of its node.
# The advantage is that torchrun can start all processes again after a failure without asking Slurm. Here is the script
# for two nodes with four GPUs and 32 cores each, which we only print:

# %%
from course_utils.lessons.gpu_nodes import torchrun_script

command = "-m course_utils.lessons.gpu_nodes.train_ddp --epochs 12 --folder runs"
print(torchrun_script(command, nodes=2, gpus_per_node=4, cores_per_task=32, restarts=3))

# %% [markdown]
# The torchruns have to meet before they can number the ranks. This is called a **rendezvous**, and `--rdzv-endpoint`
# names the node and the port where it takes place. One torchrun has to keep a small key-value store there. By itself,
# each torchrun compares this name and its IP addresses with those of its own host. That can fail if the host's own name
# doesn't resolve to the same address, but to that of a different network card or to 127.0.1.1. So the script decides
# it: `PET_RDZV_CONF` sets torchrun's option `--rdzv-conf`, in which `is_host` is 1 for the job's first task only.
#
# The port of this meeting is 20,000 plus the last four digits of the job's number. Every node can calculate it without
# asking another one, and two jobs rarely get the same port. They do if their numbers differ by a multiple of 10,000. If
# both also have their rank 0 on the same node, the second one stops with "address already in use". So the script keeps
# a `MASTER_PORT` that is set already, and you can choose one yourself.
#
# The variable `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1` is there for restarts. Without it, torch 2.13 lets the processes
# that it starts use the torchruns' own store. In our tests, the second attempt then found addresses of the dead
# processes of the first one in the store, and waited for them. With the variable, each attempt gets a store of its own.
#
# torchrun also replaces every exit code of the program by 1. So Slurm doesn't see the 75 that means "try again" on the
# main page. The script's `-eq 75` is never true here, and the job isn't queued again by itself. You submit the script
# once more, and the training continues from its checkpoint.
#
# ## From GPU to GPU, between two nodes
#
# Suppose that you have rented two nodes with eight network cards of 400 Gbit/s each, and your training run gets a third
# of that. There may be no error message at all. Perhaps the messages take a detour through the host memory, or all GPUs
# share one of the eight cards. You can see both in NCCL's log, if you know how such a node is built.
#
# A node for training often has eight GPUs and eight network cards (**NICs**). The picture shows two such nodes. Inside
# a node, NVLink connects every GPU to every other one. A GPU also has a PCIe connection to a switch, and next to it on
# the same switch is a NIC. Look at GPU 2 of the upper node. **RDMA** (remote direct memory access) means that a NIC
# reads and writes the memory of a program by itself, without the CPU. With **GPUDirect RDMA** this memory can be the
# GPU's. So NIC 2 reads from the GPU's memory directly and sends what it reads, and the NIC of the other node writes
# directly into a GPU's memory. The bytes never enter the host memory, which is why it isn't in the picture. Without
# GPUDirect RDMA they have to be copied to the host memory first and from there to the NIC, and on the other side again.
#
# NIC 2 of every node is connected to the same switch, called rail switch 2. A **rail** consists of all GPUs and NICs
# with the same number and their switch ([NVIDIA's
# description](https://docs.nvidia.com/networking/display/ibclusterbringupprocedure/setting+the+infiniband+cluster+topology)).
# A message from GPU 2 to GPU 2 of a different node therefore passes one switch. From GPU 5 to GPU 2 it is more
# complicated, because their NICs are on different rails. It could leave through NIC 5 and go from rail switch 5 to rail
# switch 2 through a third switch that connects them. (The picture leaves it out.) For messages from one GPU to one
# other, NCCL avoids that by default. It moves the bytes over NVLink to GPU 2 of the sender's own node, and then sends
# them along rail 2. This is called **PXN**, which stands for *PCI × NVLink*. Here is the rule as a program:


# %%
def path(sender, receiver):
    (node, gpu), (to_node, to_gpu) = sender, receiver
    if node == to_node:
        return [("GPU", node, gpu), ("GPU", node, to_gpu)]  # NVLink
    hops = [("GPU", node, gpu)]
    if gpu != to_gpu:
        hops.append(("GPU", node, to_gpu))  # PXN: first over NVLink, to the right rail
    hops += [("NIC", node, to_gpu), ("switch", None, to_gpu)]
    return [*hops, ("NIC", to_node, to_gpu), ("GPU", to_node, to_gpu)]


straight = path((0, 2), (1, 2))
over_nvlink = path((0, 5), (1, 2))
pictures.rails({"GPU 2 to GPU 2": straight, "GPU 5 to GPU 2": over_nvlink})

# %% [markdown]
# Let's count with two nodes of two GPUs. Each of the four GPUs sends one message to every other GPU, which makes 12
# messages. GPU 0 of the first node sends to GPU 1 of its own node over NVLink, to GPU 0 of the other node along its own
# rail, and to GPU 1 of the other node over NVLink first. So a third of the messages stay inside a node, a third travel
# along the sender's own rail, and a third have to change the rail.
#
# **Predict.** Two nodes have eight GPUs each, and each GPU sends a message to every other one, as in an all-to-all. How
# many of the 240 messages stay inside a node, how many travel along the sender's own rail, and how many have to change
# the rail?

# %%
course.predict("rails", inside=..., own_rail=..., change=...)

# %% tags=["nbval-check-output"]
everyone = [(node, gpu) for node in range(2) for gpu in range(8)]
kinds = {"inside": 0, "own_rail": 0, "change": 0}
for sender in everyone:
    for receiver in everyone:
        hops = len(path(sender, receiver))
        if sender == receiver:
            continue
        kinds["inside" if hops == 2 else "own_rail" if hops == 5 else "change"] += 1
course.answer("rails", **kinds)

# %% [markdown]
# An all-to-all, which mixtures of experts need (lesson 16), has to change the rail in nearly half of its messages. The
# hierarchical all-reduce of the first section never does. After the reduce-scatter, each GPU adds up its part with the
# GPUs of the *same number* on the other nodes. That is why rails suit data parallelism so well.
#
# ### What NCCL's log shows
#
# With `NCCL_DEBUG=INFO`, NCCL prints a line for each connection that it makes. Its [source
# code](https://github.com/NVIDIA/nccl/blob/master/src/transport/net.cc) puts the line together like this, where rank 8
# is GPU 0 of the second node. (This shows the pattern and is not a recorded log.)
#
# ```
# Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA
# ```
#
# | after `via` | how the bytes travel |
# |---|---|
# | `NET/IB/0/GDRDMA` | through NIC 0, with GPUDirect RDMA |
# | `NET/IB/0(0)/GDRDMA` | the same, but the rank in brackets sends for the rank at the beginning of the line: PXN |
# | `NET/IB/0` | over InfiniBand or RoCE (RDMA over Ethernet), with a detour through the host memory |
# | `NET/Socket/0` | over TCP, without RDMA |
#
# So `NET/IB` alone isn't good enough. If `/GDRDMA` is missing, the bytes take the detour. In [one
# report](https://github.com/NVIDIA/nccl/issues/1412), this was why a network was slow. NCCL's [troubleshooting
# guide](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html) says what to check. Either the
# kernel module `nvidia-peermem` has to be loaded, or the kernel and the driver have to support DMA-BUF, Linux's
# interface for memory that devices share. And ACS (access control services) of the PCIe switches has to be off, unless
# you use virtual machines, because it redirects messages between devices to the CPU. In a cloud the name after `NET/`
# may be that of a plugin, such as `OFI` or `Libfabric` for Amazon's network EFA.
#
# How near is a GPU to a NIC? `nvidia-smi topo -m` prints a table of all pairs. `PIX` means that they are on the same
# PCIe switch. `PXB` stands for several PCIe switches, `PHB` or `NODE` for a path through one CPU, and `SYS` for a path
# through the connection between two CPUs. Four [environment
# variables](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html) tell NCCL what to do with this:
#
# | Variable | Example | Meaning |
# |---|---|---|
# | `NCCL_SOCKET_IFNAME` | `=ib0`, `^docker` | which IP interfaces NCCL may use |
# | `NCCL_IB_HCA` | `=mlx5_0:1,mlx5_1:1` | which InfiniBand or RoCE cards and ports carry the data |
# | `NCCL_NET_GDR_LEVEL` | `PIX`, `PXB`, `PHB` | up to which distance between GPU and NIC it uses GPUDirect RDMA |
# | `NCCL_CROSS_NIC` | `0`, `1`, `2` | whether a ring may change the rail: no, yes, or only if it is faster (default) |
#
# An `=` in front means that the names are exact. Without it, `mlx5_1` also means `mlx5_10`. With a `^`, the names are
# excluded. NCCL needs an IP interface even if InfiniBand carries the data, because the ranks first find each other over
# IP.
#
# NCCL usually finds good values by itself. If a node has an interface that other nodes can't reach, NCCL may choose it
# and wait. Then you need the first variable.
#
# ## nccl-tests on two nodes
#
# Before you blame your program for a slow network, measure the network without your program. NVIDIA's
# [nccl-tests](https://github.com/NVIDIA/nccl-tests) do this for every collective. Here is how you would start them on
# two nodes with eight GPUs each. *We haven't run this here*, because it needs two such nodes. First you build the
# program with MPI. Then you submit a batch script that starts one process for each GPU. (If your MPI isn't connected to
# Slurm, use `mpirun -np 16 -N 8` instead of `srun --mpi=pmix`.)
#
# ```
# git clone https://github.com/NVIDIA/nccl-tests && cd nccl-tests
# make MPI=1 MPI_HOME=/path/to/mpi CUDA_HOME=/path/to/cuda NCCL_HOME=/path/to/nccl
# ```
#
# ```
# #!/bin/bash
# #SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --exclusive --time=10
# export NCCL_DEBUG=INFO
# srun --mpi=pmix ./build/all_reduce_perf -b 8 -e 8G -f 2 -g 1
# ```
#
# With these options the program begins (`-b`) with a vector of 8 bytes, doubles it (`-f 2`) until it ends (`-e`) at 8
# GiB, and uses one GPU per process (`-g 1`). It prints a line for each size:
#
# | Column | Meaning |
# |---|---|
# | `size`, `count`, `type` | bytes of the vector, its number of elements, and their type |
# | `redop`, `root` | the operation, here `sum`; the root of a broadcast or reduce, here `-1` |
# | `time` | microseconds of one all-reduce, the mean of 20 |
# | `algbw`, `busbw` | algorithm and bus bandwidth in GB/s, as on the second page |
# | `#wrong` | how many elements of the result were wrong. It must be 0 |
#
# The four last columns are there twice. *Out-of-place* means that the result goes to a second vector, and *in-place*
# that it overwrites the first. The last line of the output has the mean of `busbw` over *all* sizes. If you start with
# 8 bytes, it is low for any network, so look at the lines of the large sizes instead.
#
# Here is a line that somebody [published](https://github.com/NVIDIA/nccl/issues/1411) in 2024. We didn't measure it.
# Two nodes took part, each with four H800 GPUs and four NICs, with `NCCL_CROSS_NIC=0` and the ring algorithm. We leave
# out `#wrong` and the second half of the line:
#
# ```
#       size       count   type  redop  root    time  algbw   busbw
#        (B)  (elements)                        (us) (GB/s)  (GB/s)
#  268435456    67108864  float    sum    -1  2946.6  91.10       ?
# ```
#
# To see how the columns belong together, take the line above it in the report. There 134,217,728 bytes took 1,493.1 µs.
# So the algorithm bandwidth was 134.2 MB ÷ 1.4931 ms = 89.9 GB/s. With 8 ranks the factor of the bus bandwidth is
# $\frac{2 \cdot 7}{8} = 1.75$, which makes 157.3 GB/s.
#
# **Predict.** What is at the question mark?

# %%
course.predict("busbw", within=1.02, gigabytes_per_second=...)

# %%
from course_utils.lessons.allreduce import bus_bandwidth

busbw = bus_bandwidth("all_reduce", 8, 268_435_456, 2946.6e-6)
course.answer("busbw", gigabytes_per_second=busbw / 1e9)

# %% [markdown]
# Is this good? The report says that the four NICs of a node carry 194 GB/s together, and the NVLinks of an H800 165
# GB/s. The ring passes through both, and 159 GB/s is close to the slower of them. But the same report has a surprise.
# With `NCCL_CROSS_NIC=1`, four GPUs in each node were faster than their NVLinks should allow, according to its author.
# So one line only tells you whether the order of magnitude is right. If you want to know more, compare two settings.
#
# Be careful when you compare two nodes with a data sheet. By default NCCL may use an algorithm in which the NVLinks do
# more of the work, and then `busbw` can be *higher* than the rate of the network ([its maintainer's
# explanation](https://github.com/NVIDIA/nccl-tests/issues/196)). With `NCCL_ALGO=RING`, `busbw` is limited by the
# slowest link of the ring. If the NVLinks are faster than the network, unlike in the report above, this is the network.
# Then a node with 400 Gbit/s per NIC should reach 46 to 48 GB/s for each NIC, according to [another
# answer](https://github.com/NVIDIA/nccl-tests/issues/290). And `NCCL_TESTS_SPLIT="MOD 8"` runs eight all-reduces at the
# same time, each among GPUs with the same number, so that all messages cross the network between the nodes.
#
# ## What else keeps a long run alive
#
# Checkpoints and a new job are the simplest answer to a failure, and often they are enough. On thousands of GPUs three
# more things matter.
#
# **Spare nodes and restarts inside the job.** If a node breaks and you have to submit a new job, you wait in the queue
# again. So large jobs ask for a few nodes more than they need. With NVIDIA's [resiliency
# extension](https://github.com/NVIDIA/nvidia-resiliency-ext), a launcher similar to torchrun takes a spare node into
# the run and restarts the processes inside the same job. It can also restart the training function inside the *same
# processes*, which saves the time for starting Python and loading libraries.
#
# **No restart at all.** With data parallelism, every replica has all the weights, so the others could simply continue
# without the replica that failed. [torchft](https://github.com/meta-pytorch/torchft) does this for DDP and for hybrid
# sharding (lesson 11). In each step the replicas agree on who is still there, and a replica that comes back gets the
# weights from a healthy one instead of a disk. Until then, the global batch is usually smaller, which is the price.
#
# **Silent data corruption.** A processor can calculate a wrong result and report no error. Of Llama 3's 419 unexpected
# interruptions, six were put down to this (table 5 of the paper above), and the authors of Gemini expected to see it
# every week or two ([section 3](https://arxiv.org/abs/2312.11805)). How do you notice? In DDP all ranks should have the
# same weights after every step, so you can compare a checksum of them. This finds an error in one rank's optimizer
# step. It doesn't find one in a gradient, because the all-reduce gives the wrong sum to all ranks alike. For this there
# is a second method. If a training run gives exactly the same numbers when you repeat a step, you can repeat a
# suspicious step on a different machine and compare the results. That is a good reason to save random states and the
# position in the data.
#
# ## bfloat16 in narrow and in wide layers
#
# The ladder on the [second page](13_gpu_nodes_part_2.ipynb) has a rung called *bfloat16*. Inside `torch.autocast`,
# matrix products convert their inputs to numbers of 2 bytes. Let's compare this with `float32` on this computer, with a
# small network. If your processor has no units for bfloat16, the step becomes slower, because the conversions are extra
# work.

# %%
from torch.nn.functional import cross_entropy

from course_utils.measuring import by_turns

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_step(hidden, bf16=False, compiled=False):
    torch.manual_seed(0)
    layers = [nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(hidden, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.rand(256, 64, device=device)
    y = torch.arange(256, device=device) % 10
    call = torch.compile(model) if compiled else model

    def step():
        began = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=bf16):
            loss = cross_entropy(call(x), y)
        loss.backward()  # outside: each operation uses the format of its forward pass
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    return step


# %%
from course_utils.lessons.gpu_nodes import by_width, compiling_text, widths_text

patient = False  # True: try torch.compile as well, which may take half a minute


def time_steps(width):
    steps = {"float32": make_step(width), "bfloat16": make_step(width, bf16=True)}
    if patient:
        steps["compiled"] = make_step(width, compiled=True)
    first = {name: step() for name, step in steps.items()}
    return first, by_turns(steps, 15, warm_ups=1)  # A B A B …


taken = {}
for width in (64, 1024):
    run = ranks.run(time_steps, width, ranks=1, backend="gloo")
    first, taken[width] = run.results[0]
if patient:
    print(compiling_text(first["compiled"], taken[1024], "float32", "compiled"))
title, bars = widths_text(taken, "float32"), by_width(taken)
course.draw.measured_bars(bars, title, "One step on 256 examples", x="time of a step")

# %% [markdown]
# The conversions are worth most if each converted number is used often. In a layer, each input is multiplied with as
# many weights as there are hidden units, so a wide layer uses it more often. Each weight is used once for every example
# in the batch, which is 256 times here, whatever the width.
#
# ## What you take with you
#
# A speed-up depends on how long a GPU computes for each byte that it sends, so a statement about a network is always
# one about a model as well. The best interval between checkpoints is $\sqrt{2\,C M}$, and an asynchronous checkpoint
# makes $C$ the time of a copy. In a log, look for a rank that explains its own failure, and for ranks that are silent.
# Between nodes, look for `GDRDMA` in NCCL's log, and run nccl-tests before you rewrite your program.
#
# **To read**
#
# - Grattafiori and others (2024), [*The Llama 3 Herd of Models*](https://arxiv.org/abs/2407.21783), section 3.3.4,
#   lists what interrupted a run on 16,384 GPUs.
# - The page on [`torch.distributed.checkpoint`](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html) has
#   all the options of `save`, `async_save` and `load`.
# - NCCL's [environment variables](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html) are worth reading
#   once in full, because each of them is somebody's problem that was solved.

# %%
ranks.stop()
temporary.cleanup()
