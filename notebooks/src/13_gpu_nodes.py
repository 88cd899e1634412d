# The lesson on launchers and nodes with GPUs. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # From four processes to forty GPUs?
#
# After this lesson you can **start** one training program in three ways, **judge** how well it uses its network, and
# **bring it back** when a process dies, the time is up, or the launch fails.
#
# *60 minutes · builds on [lesson 7](07_overlap.ipynb) · 4 ranks*

# %%
import tempfile
from pathlib import Path
from statistics import median

import course_utils as course
from course_utils.lessons.gpu_nodes import training_folder

ranks = course.start(4, link="100 Mbit/s")
ranks.load_torch()
checkpoints = tempfile.TemporaryDirectory(dir=training_folder())
folder = Path(checkpoints.name)

# %% [markdown]
# Forty GPUs are ten computers, **nodes**, with four each. A **launcher** starts forty processes, all with the *same*
# program, and tells each
#
# - its **rank**, and the **world size**;
# - its **local rank**: which one it is *on its node*, so which GPU is its own;
# - the **master**: the node where rank 0 waits for the others, and the *port* there. (A port is a number by which a
#   computer knows for which program a message is.)
#
# **Predict.** A process on the eighth node, `gpu08`, has local rank 2. What is its rank? What is the world size?

# %%
course.predict("forty", rank=..., world_size=...)

# %% tags=["nbval-check-output"]
from course_utils.lessons.gpu_nodes import example_environment, find_launch, pictures

process = {"node": 7, "local_rank": 2, "nodes": 10, "gpus": 4}  # nodes count from 0
torchrun = example_environment("torchrun", **process)
srun = example_environment("srun", **process)
found = find_launch(srun)
print(found)

# %% tags=["figure:13_forty"]
course.answer("forty", rank=found.rank, world_size=found.world_size)
nodes = [f"gpu{node:02}" for node in range(1, 11) for _ in range(4)]
pictures.seats(nodes, "Forty GPUs", marked=[found.rank])

# %% [markdown]
# `find_launch` read that from **environment variables**: texts with a name, which a process gets from the program that
# starts it.
# `torchrun` comes with PyTorch, and starts the processes of *one* node. `srun` comes with **Slurm**, the program that
# shares out a cluster's nodes, and starts them on *all*.
#
# Both say the same, under different names:

# %% tags=["figure:13_variables"]
both = {"torchrun": torchrun, "srun": srun}
pictures.launchers(both, "One process of forty, told twice")

# %% [markdown]
# Under `srun` nobody names a port. But all ranks must know the *same* port before they can talk. So each rank computes
# it from the job's number.
#
# ## One program
#
# The program trains on handwritten digits with lesson 7's DDP. Its heart:
#
# ```
# with training_of(settings) as training:   # find_launch, meet, DDP
#     while progress.epoch < settings.epochs:  # how far the training is
#         training.sampler.set_epoch(progress.epoch)  # lesson 6
#         for batch in training.batches():
#             training.step(batch, progress)
# ```
#
# **NCCL**, NVIDIA's library, adds gradients up on GPUs, and needs one for each rank. **gloo** adds them up on
# processors. Each rank tells the others which GPUs it sees. Then either every rank gets a GPU of its own, or none does.
# The first line of the program's output says which, and why.
#
# **First way: this notebook's ranks.** Two of them, for a few seconds:

# %%
from course_utils.lessons.gpu_nodes import Settings, train_ddp

settings = Settings(str(folder / "ranks"), epochs=12, batch_size=256)
run = ranks.run(train_ddp, settings, ranks=2, backend="gloo")
losses = {"ranks": run.results[0].losses}

# %% [markdown]
# **Predict.** Now `torchrun` starts two fresh processes with the same program, which have never heard of this notebook.
# Their final loss is …

# %%
choices = {
    "a": "the same to four digits",
    "b": "near, but different: other processes draw other random numbers",
    "c": "better: torchrun uses the processor better",
}
course.predict("three_ways", answer=..., choices=choices)  # "a", "b" or "c"

# %% [markdown]
# **Second way: `torchrun`**, as you type it into a terminal. `--standalone` says that there is no other node, so
# torchrun chooses a port by itself. (No password protects that port. On a machine that strangers use, take the first
# way.)

# %%
from shlex import quote

from course_utils.lessons.gpu_nodes import losses_of, run_command

program = "-m course_utils.lessons.gpu_nodes.train_ddp --epochs 12 --batch-size 256"
command = f"{program} --folder {quote(str(folder))}"  # each way adds its own folder
log = run_command(f"torchrun --standalone --nproc-per-node=2 {command}/torchrun")
losses["torchrun"] = losses_of(log)

# %% [markdown]
# **Third way: Slurm.** Nobody types into forty terminals at three in the morning. You hand in a **batch script**, and
# Slurm runs it when the nodes are free. The `#SBATCH` lines ask for what the job needs; `srun` starts its processes.
# This script asks for two nodes, with a process on each. (*The time is up*, below, explains `--signal`, `--requeue` and
# the lines after `srun`.)

# %%
from course_utils.lessons.gpu_nodes import hand_in, slurm_script

script = slurm_script(f"python {command}/srun", nodes=2, minutes=10)
print(script.replace(str(folder), "runs"))
log = hand_in(script, folder / "srun")  # where there is a Slurm
if log:
    losses["srun"] = losses_of(log)

# %% tags=["figure:13_ways"]
from course_utils.lessons.gpu_nodes import same_loss, ways_text

assert same_loss(losses), losses
course.measured("three_ways", answer="a" if same_loss(losses) else "b")
course.draw.loss_curves(losses, ways_text(losses), x="epoch")

# %% [markdown]
# The launcher tells a process *who it is*, and nothing else. The ranks, the seed and the batches are the same, so the
# curve is the same. Exercises: [`train_ddp`, `slurm_script`](../exercises/13_gpu_nodes.ipynb).
#
# A notebook can use a cluster, too. The first line asks Slurm for two nodes with four GPUs each, and waits for them.
# Then eight ranks are yours, each with a GPU:
#
# ```
# ranks = course.start(8, where="slurm", nodes=2, gpus_per_node=4)
# ranks.run(train_ddp, settings, backend="gloo")
# ```
#
# (gloo is for what the ranks agree on. Their gradients still go over NCCL.)
#
# Does your centre have **Open OnDemand**, a web page for its cluster? Then the course's app opens JupyterLab on a
# compute node, and this page runs there: [ondemand/README](../ondemand/README.md).

# %% [markdown]
# ## How well is the network used?
#
# An all-reduce of $n$ bytes in $t$ seconds has the **algorithm bandwidth** $\frac{n}{t}$. But a ring sends
# $\frac{2(P-1)}{P}\,n$ bytes through each rank's link (lesson 5). The rate of the *link* is the **bus bandwidth**:
#
# $$\frac{n}{t} \cdot \frac{2(P-1)}{P}$$
#
# **Predict.** Each of 4 ranks has a link of 100 Mbit/s, 12.5 MB/s. What are both bandwidths, in MB/s?

# %%
course.predict("bandwidths", within=1.25, algorithm=..., bus=...)  # MB/s, 4 ranks

# %%
from course_utils.lessons.allreduce import algorithm_bandwidth, bus_bandwidth
from course_utils.lessons.gpu_nodes import collective_seconds
from course_utils.measuring import is_busy

n, world_sizes = 400_000, [2, 3, 4]
algorithm, bus = [], []
for P in world_sizes:
    run = ranks.run(collective_seconds, [n], ranks=P, backend="gloo")
    backend, taken = run.results[0]
    times = taken["all_reduce"][0]
    algorithm.append([algorithm_bandwidth(n, t) for t in times])
    bus.append([bus_bandwidth("all_reduce", P, n, t) for t in times])
on_4 = {"algorithm": median(algorithm[-1]) / 1e6, "bus": median(bus[-1]) / 1e6}
busy = is_busy(algorithm)  # do the runs scatter too much?
course.measured("bandwidths", busy=busy, **on_4)

# %% tags=["figure:13_bandwidths"]
from course_utils.lessons.gpu_nodes import bandwidth_text, link_text
from course_utils.words import bytes_text

link = 12.5e6 if ranks.facts["network"] and backend == "gloo" else None
rate = link or max(map(max, bus))  # without a known link, the best that we measured
points = {"algorithm bandwidth": algorithm, "bus bandwidth": bus}
lines = {"algorithm bandwidth": [rate * P / (2 * (P - 1)) for P in world_sizes]}
lines["bus bandwidth"] = [rate] * 3
look = {"across": "ranks", "up": "bytes per second", "unit": bytes_text}
title = bandwidth_text(world_sizes, algorithm, bus)
finding = link_text(backend, n, P, bus[-1], link)
course.draw.over_numbers(world_sizes, points, title, finding, predicted=lines, **look)

# %% [markdown]
# With two ranks the factor is 1. With more ranks it grows, and the algorithm bandwidth falls, though no link is slower.
# The bus bandwidth can be compared with the link's data sheet, whatever $P$. NVIDIA's program for such measurements,
# nccl-tests, prints both (`algbw`, `busbw`), for many sizes and for all collectives.
#
# **Where switches add** (lesson 5), the formula no longer holds: a rank sends its vector about once. So on a node of
# H100s, whose links carry 450 GB/s, nccl-tests prints a `busbw` of 480 GB/s (its issues 212 and 272). The node is
# healthy. There `busbw` compares machines, and is not the rate of a link.
#
# We, too, try other sizes, from 1 KB on, and other collectives. The line is what latency and link allow together
# (lesson 4). We take the latency from the smallest vector.

# %%
from course_utils.lessons.gpu_nodes import allowed_rates, sweep_text

operations = ["all_reduce", "all_gather", "reduce_scatter"]
KB, repeat = [1, 8, 64, 512, 4096], {"runs": 3, "warm_ups": 1}
if backend == "nccl":  # GPUs are fast: larger vectors, more calls
    KB += [32_768, 262_144]
    repeat = {"runs": 3, "warm_ups": 5, "calls": 20}
sizes = [1000 * size for size in KB]
run = ranks.run(collective_seconds, sizes, operations, **repeat, backend="gloo")
taken = run.results[0][1]  # collective → for each size, seconds
P = ranks.world_size
rates = {
    name: [[bus_bandwidth(name, P, n, t) for t in times] for n, times in zip(sizes, runs)]
    for name, runs in taken.items()
}
rate = link or max(max(map(max, runs)) for runs in rates.values())
allowed = {name: allowed_rates(name, P, sizes, taken[name], rate) for name in operations}
look = {"across": "vector, in KB", "up": "bus bandwidth, per second", "unit": bytes_text}
title, finding = sweep_text(sizes, rates, backend, P)
course.draw.over_numbers(KB, rates, title, finding, predicted=allowed, log=True, **look)

# %% [markdown]
# A small vector takes hardly longer than its latency. So thousands of them never fill a link, and gradients travel in
# buckets (lesson 7). Only large vectors reach the rate of a data sheet. (gloo makes its reduce-scatter from an
# all-reduce, so that one reaches half of its line at most.)
#
# With the bus bandwidth you can also predict. Take forty GPUs, 14 GB of gradients (7 billion numbers of 16 bits), and a
# bus bandwidth of 40 GB/s. A step's all-reduce takes $\frac{14}{40} \cdot \frac{2 \cdot 39}{40} \approx 0.7$ s, if
# nothing is hidden. Exercise: `bus_bandwidth`.

# %% [markdown]
# ## What does NCCL say?
#
# There are several ways between two GPUs:
#
# - **NVLink**: wires between the GPUs of a node, past the processors;
# - the node's memory, which all its processes share;
# - **InfiniBand**: a fast network between nodes;
# - TCP, the ordinary network. A program uses it through *sockets*, and every byte passes the processors.
#
# NCCL takes the best that it finds. Did it find the one that you paid for? `NCCL_DEBUG=INFO` makes it tell. Here is a
# real start of two ranks; we keep the lines that matter. **Predict** from them: which way do these ranks' messages
# take?

# %%
from course_utils.lessons.gpu_nodes import lines_that_matter, nccl_start, ways

start = nccl_start()
print(start.origin, "", *lines_that_matter(start.log), sep="\n")

# %%
choices = {
    "a": "NVLink, from GPU to GPU",
    "b": "the node's memory",
    "c": "InfiniBand",
    "d": "TCP, through the processors",
}
course.predict("nccl_way", answer=..., choices=choices)  # "a" to "d"

# %%
course.answer("nccl_way", answer=ways(start.log))

# %% [markdown]
# Read what comes after `via`:
#
# | `via` | Which way | For you |
# |---|---|---|
# | `P2P/…` | GPU to GPU, over NVLink or PCIe, a slower bus | within a node: good |
# | `SHM` | through the node's memory | within a node: slower |
# | `NET/IB` | InfiniBand (or the like over Ethernet) | between nodes: good |
# | `NET/Socket` | TCP | between nodes that have InfiniBand: something is wrong |
#
# `nNodes` must be the number of your nodes. (Here it is 2, though there was one node. NCCL allows one rank for each
# GPU, and we had one GPU. So our two ranks claimed to be on two nodes.)
#
# `nvidia-smi topo -m` shows what there *is*. `NV18` between two GPUs means 18 NVLinks; `SYS` means a way through both
# processors.

# %% [markdown]
# ## Two switches
#
# - `--bf16`: matrix products in **bfloat16**, 16 bits for a number instead of 32. Processors with units for it multiply
#   faster; weights stay in 32 bits.
# - `--compile`: **torch.compile** looks at the whole network first. Then it makes *kernels* (pieces of work for a
#   processor or a GPU) that do several operations in one go.
#
# **Predict.** On this machine, how many times as fast is a step with bfloat16 as a step with float32? First with 64
# hidden units in a layer, then with 1024. (A number below 1 means slower. All ways run by turns, lesson 3.)

# %%
course.predict("bf16_gain", within=1.3, narrow=..., wide=...)

# %%
from dataclasses import replace

from course_utils.lessons.gpu_nodes import compared, step_seconds

patient = False  # True: torch.compile too; it may take half a minute to make kernels
taken = {}
for width in (64, 1024):
    plain = replace(settings, hidden=width)
    ways = {"float32": plain, "bfloat16": replace(plain, bf16=True)}
    if patient:
        ways["compiled"] = replace(plain, compile=True)
    run = ranks.run(step_seconds, ways, ranks=1, backend="gloo")
    first, taken[width] = run.results[0]  # seconds of the first step, and of the others
narrow, wide = (compared(own, "float32", "bfloat16") for own in taken.values())
busy = narrow.is_busy or wide.is_busy
course.measured("bf16_gain", busy=busy, narrow=narrow.times, wide=wide.times)

# %% tags=["figure:13_switches"]
from course_utils.lessons.gpu_nodes import by_width, compiling_text, widths_text

if patient:
    print(compiling_text(first["compiled"], taken[1024], "float32", "compiled"))
title, bars = widths_text(taken, "float32"), by_width(taken)
course.draw.measured_bars(bars, title, "One step of 256 images", x="time of a step")

# %% [markdown]
# Each number is converted once, and a layer of width 1024 then multiplies it 1024 times. So the wider the layer, the
# more bfloat16 can save. A processor without units for bfloat16 saves nothing. (An H100 was slower with bfloat16 at
# *both* widths: for a GPU such layers are next to no work, and converting is extra work.) The compiler takes seconds
# before the first step: use it for long trainings.

# %% [markdown]
# ## A ladder for one GPU
#
# Before forty GPUs, look at one. It trains VGG-11 (lesson 3), with 512 small images in a step. We make it faster rung
# by rung. Each rung of the ladder adds one change, and keeps the changes above it in this table:
#
# | Rung | What changes |
# |---|---|
# | float32 | nothing: each step copies its images to the GPU |
# | pinned memory (lesson 14) | the GPU copies the images by itself, and nobody waits for it |
# | data on the GPU | the images lie there from the beginning |
# | **TF32** | products of float32 round their inputs to 10 binary digits |
# | bfloat16 | products take 16 bits |
# | channels last | a pixel's channels lie side by side in memory |
# | torch.compile | fewer, larger kernels |
# | **CUDA graph** | a whole step is recorded once, then played: *one* order, where there were hundreds |
#
# The MFU (lesson 11) is the share of the GPU's peak that the network's own arithmetic takes. As the
# peak we take what the GPU reaches in one large product of bfloat16.
#
# **Predict** for an H100: how many times as fast is the last rung as the first? And what is its MFU, in percent? (With
# a GPU, measuring takes a minute, or two with `patient = True`. Without one, the page shows what we recorded.)

# %%
course.predict("ladder", within=1.5, factor=..., mfu=...)

# %% tags=["figure:13_ladder"]
from course_utils.lessons.gpu_nodes import climb_here, ladder_bars, ladder_text

climbed = climb_here(patient)
top = list(climbed.seconds)[-1]  # the last rung's name
busy, mfu = is_busy(climbed.seconds.values()), 100 * climbed.mfu()[top]
course.measured("ladder", busy=busy, factor=climbed.factor, mfu=mfu)
title, finding = ladder_text(climbed), f"{climbed.origin}. In brackets: MFU"
course.draw.measured_bars(ladder_bars(climbed), title, finding, x="time of a step")

# %% [markdown]
# On the recorded H100 two rungs gain most: TF32, and the CUDA graph. Pinned memory is enough to hide the copies: where
# the images lie on the GPU already, a step is no shorter. After TF32, bfloat16 gains next to nothing, and
# the compiler without a graph loses. Why? The GPU finishes a kernel in a few microseconds, and Python needs as long to
# order the next. So the GPU *waits for orders*, and faster kernels do not help. A single order for the whole step does.
# Lesson 14 shows that wait in a picture.
#
# On the last rung the GPU still reaches only a quarter of its peak: these images are small, and so are the matrices.
# PaLM has large matrices, and reached 46 % (lesson 11).

# %% [markdown]
# ## Forty GPUs, before they are paid for
#
# Would forty such GPUs do forty times the work? **Virtual ranks** (lesson 5) tell before you pay. Each first lets as
# much time pass on its clock as a step took on the last rung (the last bar above). Then lesson 5's two levels add up
# VGG-11's gradients, 37 MB, and nothing overlaps. We assume 300 GB/s and 3 µs inside a node, and 5 µs between nodes.
# For the rate between nodes we try three networks.
#
# **Predict.** How many times as many images a second do forty GPUs train on as one GPU does? First with one link of 25
# Gbit/s for each node, then with four cards of 400 Gbit/s in each node.

# %%
course.predict("forty_played", within=1.5, ethernet=..., four_cards=...)

# %%
from course_utils.lessons.allreduce import two_level
from course_utils.lessons.gpu_nodes import on_nodes, played_step
from course_utils.vgg import vgg11

alone = median(climbed.seconds[top])  # seconds of a step on one GPU
weights = sum(parameter.numel() for parameter in vgg11().parameters())
numbers = 9_200  # that we really send; each stands for about 1,000


def cluster(P, Gbit):  # between nodes of 4, then inside: seconds, and seconds per byte
    return two_level(P, 4, (5e-6, 8e-9 / Gbit), (3e-6, 1 / 300e9))


# %%
nowhere = course.start(
    40, where="nowhere", network=cluster(40, 25), scale=weights / numbers
)


def times_one(P, Gbit):
    options = {"ranks": P, "network": cluster(P, Gbit)}
    run = nowhere.run(played_step, alone, numbers, on_nodes, **options)
    return P * alone / max(run.results)[0]


# %% tags=["figure:13_forty_played"]
from course_utils.lessons.gpu_nodes import played_text

GPUs, slow, fast = [4, 8, 20, 40], "25 Gbit/s a node", "4 × 400 Gbit/s a node"
networks = {slow: 25, "400 Gbit/s a node": 400, fast: 1600}
times = {name: [times_one(P, Gbit) for P in GPUs] for name, Gbit in networks.items()}
course.answer("forty_played", ethernet=times[slow][-1], four_cards=times[fast][-1])
look = {
    "across": "virtual GPUs",
    "up": "times the images of one GPU",
    "unit": "{:.2g}".format,
}
title, finding = played_text(GPUs, times)
course.draw.over_numbers(GPUs, times, title, finding, **look)

# %% [markdown]
# At 25 Gbit/s, 37 MB take longer than the step itself. So pay for a network first. Or compute more between two sums,
# with larger batches; and hide a part of the sum (lesson 7).
#
# Can you trust these clocks? Let the same function run on this page's four real ranks, and on four virtual ones behind
# such links:

# %%
from course_utils.words import seconds_text

real = ranks.run(played_step, 0.05, 100_000, on_nodes, runs=5).results
nowhere = course.start(4, where="nowhere", link="100 Mbit/s")
virtual = nowhere.run(played_step, 0.05, 100_000, on_nodes).results
slowest = [max(step) for step in zip(*real)]  # the slowest rank of each step
print("A step on 4 virtual ranks:", seconds_text(max(virtual)[0]))
print("A step on 4 real ranks:   ", seconds_text(median(slowest)))

# %% [markdown]
# ## Whole, or in parts
#
# DDP keeps the whole model on each rank: weights, gradients, Adam's state. FSDP2 (lesson 11) keeps a part, and gathers
# a layer's weights when that layer computes. Each rank also saves **activations** for its backward pass (lesson 9).
#
# A small transformer (lesson 9) trains on our 4 ranks, once each way. With DDP, a bit more than a quarter of a rank's
# bytes are activations. **Predict**: what percentage of DDP's bytes does a rank keep with FSDP2? First of weights,
# gradients and state; then of everything, activations too.

# %%
course.predict("rank_memory", within=1.1, model=..., everything=...)  # percent

# %%
from course_utils.lessons.gpu_nodes import TextModel, kept_shares, kept_text
from course_utils.lessons.gpu_nodes import memory_by_way, recorded_memory
from course_utils.lessons.gpu_nodes import recorded_memory_text

kept = memory_by_way(ranks, TextModel())
parts = {way: memory.counted.parts() for way, memory in kept.items()}
on_paper = {way: memory.formula.total for way, memory in kept.items()}
course.measured("rank_memory", **kept_shares(kept["DDP"], kept["FSDP2"]))
print(recorded_memory_text(recorded_memory()))
panel = course.draw.SharesPanel("kept by each rank, counted", parts, on_paper)
course.draw.shares([panel], kept_text(kept))

# %% [markdown]
# The model is divided by four. Activations are not: each rank has examples of its own.
#
# The picture has the tensors that *stay*. Others live for a moment: the weights that FSDP2 has just gathered, gradients
# before they are dealt out, work space of libraries. On a GPU, `torch.cuda.max_memory_allocated()` counts those, too.
# We recorded it once: that is the text above the picture. The whole model took less than the formula says. The formula
# adds all gradients to all activations, but activations are let go while gradients are made. FSDP2 took more, for the
# gathered weights.

# %% [markdown]
# ## A process dies
#
# On 16,384 GPUs, Llama 3's training broke off 419 times in 54 days (Grattafiori et al. 2024, section 3.3.4). At that
# rate, a training on forty GPUs breaks off every seven or eight weeks.
#
# So every 20 steps rank 0 writes a **checkpoint**: weights, the optimizer's velocities (lesson 1's momentum), the place
# in the data, every rank's random state. It writes a new file beside the old one, then renames it. So nobody ever finds
# half a checkpoint.
#
# With `--max-restarts=1`, when a process dies, torchrun ends the others and starts all again, once. With `--die-at 38`,
# rank 1 kills itself after step 38.
#
# **Predict.** How many steps are done twice? By how many percent does the final loss differ from that of the
# undisturbed training?

# %%
course.predict("killed", steps_twice=..., loss_differs=...)  # steps, percent

# %% tags=["figure:13_killed"]
from course_utils.lessons.gpu_nodes import repeated_steps, tries_of

options = "--standalone --nproc-per-node=2 --max-restarts=1"
log = run_command(f"torchrun {options} {command}/killed --die-at 38")
undisturbed, ends = losses["torchrun"], losses_of(log)
assert abs(ends[-1] / undisturbed[-1] - 1) < 1e-4
tries = tries_of(log, steps_per_epoch=5)
apart = round(100 * abs(ends[-1] / undisturbed[-1] - 1), 2)
course.measured("killed", steps_twice=repeated_steps(tries), loss_differs=apart)
pictures.tries(tries, undisturbed, "Killed, and brought back")

# %% [markdown]
# (The traceback in between is rank 0's, which could no longer reach rank 1.) The steps after the last checkpoint are
# lost. They are done again, and give the same numbers. Without the velocities the curve would differ. And seed and
# epoch fix the order of the images (lesson 6's `set_epoch`). So a training that goes on after two batches of an epoch
# skips just these two.
#
# On several nodes, one torchrun runs on each node (`torchrun_script` writes that job). With torch 2.13 the job needs
# `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`: otherwise the second try finds the addresses of dead processes, and waits.

# %% [markdown]
# ## How often to save?
#
# Save often and you write much; save rarely and you lose much. Take Llama 3's failures: 419 in 54 days on 2,048 nodes,
# one in about three hours. *Assume* that nobody trains while a checkpoint is written, one minute, or during a restart,
# five minutes. The **goodput** is the share of the time that goes into work that is kept.
#
# **Predict**: how many minutes of work between two checkpoints are best? What is the goodput then, in percent?

# %%
course.predict("interval", within=1.5, minutes=..., goodput=...)

# %% tags=["figure:13_interval"]
from course_utils.lessons.gpu_nodes import best_interval, goodput, intervals_text
from course_utils.lessons.gpu_nodes import simulated_goodput
from course_utils.words import percent

hours = 54 * 24 / 419  # from a failure to the next
best = best_interval(save_seconds=60, node_hours=2048 * hours, nodes=2048) / 60
costs = {"save_seconds": 60, "mean_seconds": 3600 * hours, "restart_seconds": 300}
course.answer("interval", minutes=best, goodput=100 * goodput(60 * best, **costs))
minutes, drawn = [2, 4, 8, 16, 32, 64, 128], {}
for t in minutes:
    drawn[t] = [simulated_goodput(60 * t, **costs, seed=seed) for seed in range(5)]
look = {"across": "minutes between checkpoints", "up": "goodput", "unit": percent}
look["predicted"] = {"drawn": [goodput(60 * t, **costs) for t in minutes]}
title = intervals_text(minutes, list(drawn.values()), best)
finding = "A simulation: failures drawn at random, five trainings each"
look |= {"limits": (0.5, 1), "dots": "simulated"}
course.draw.over_numbers(minutes, {"drawn": list(drawn.values())}, title, finding, **look)

# %% [markdown]
# Let $t$ be the interval, $C$ the seconds for a checkpoint, and $M$ the mean time between failures (MTBF). A share of
# about $\frac{C}{t}$ of the time goes into writing. A failure comes in the middle of an interval on average, so
# $\frac{t}{2M}$ is lost. Their sum is least at $t = \sqrt{2\,C M}$ (Young 1974; Daly 2006). Near the minimum the curve
# is flat: an interval half or twice as long costs little.
#
# $M$ is that of *all* nodes. Four times as many nodes fail four times as often, and want half the interval. (Here
# nothing was trained or killed: a program added up times.) Exercise: `best_interval`.

# %% [markdown]
# ## The time is up
#
# Before a job's time is over, Slurm warns its processes. With `--signal=TERM@60` it sends them **SIGTERM**, a signal of
# the operating system, 60 to 120 s before the end. The program finishes its step, writes a checkpoint, and ends with
# exit code 75, "try again". Then the script puts the job back into the queue (`scontrol requeue`).
#
# Suppose that one rank hears the signal and stops alone. The others would wait for its gradient forever. So all ranks
# agree: they all-reduce one number after each step. Here only rank 1 hears:

# %%
from textwrap import fill

from course_utils.lessons.gpu_nodes import Interrupted, send_sigterm


def signalled(settings, rank_that_hears):
    import torch.distributed as dist

    if dist.get_rank() == rank_that_hears:
        send_sigterm(after=0.3)  # seconds, once the training listens
    try:
        train_ddp(settings)
    except Interrupted as stopped:
        return str(stopped).replace(str(folder), "runs")


slow = replace(settings, folder=str(folder / "stopped"), pause=0.05)
results = ranks.run(signalled, slow, 1, ranks=2, backend="gloo").results
for rank, message in enumerate(results):
    print(fill(f"rank {rank}: {message}", 80))

# %% [markdown]
# Both stopped after the same step, and wrote one checkpoint. We hand the job in again. The training goes on, and the
# result does not show that it ever stopped:

# %%
again = replace(slow, pause=0.0)
ended = ranks.run(train_ddp, again, ranks=2, backend="gloo").results[0]
print(f"went on after step {ended.resumed_at}, loss at the end: {ended.loss:.4f}")
assert ended.resumed_at > 0
assert same_loss({"stopped": ended.losses, "never stopped": losses["ranks"]})

# %% [markdown]
# ## When the launch fails
#
# Forty processes write into one log, each when it can. Most errors in it are *consequences*: one rank failed, and the
# others complain that it is gone. Look for the rank that failed **first**, and for ranks that do *not* complain.
#
# Here are two real logs. The first is of two ranks on one node. The second is of two ranks on two nodes: each line
# begins with its node's number. **Predict** the cause of each.

# %%
from course_utils.lessons.gpu_nodes import readable, recording

first, second = recording("out of memory"), recording("no shared files")
for number, record in enumerate((first, second), start=1):
    print(f"--- {number}: {record.origin}", readable(record.log, width=95), sep="\n\n")

# %%
choices = {
    "a": "a node cannot be reached",
    "b": "a rank had no memory left",
    "c": "ranks called different collectives",
    "d": "the nodes do not see the same files",
}
course.predict("causes", first=..., second=..., choices=choices)

# %% tags=["figure:13_memory"]
from course_utils.lessons.gpu_nodes import explain_failure

causes = [explain_failure(record.log) for record in (first, second)]
letters = {"out of memory": "b", "no shared files": "d"}
answers = [letters[cause.name] for cause in causes]
course.answer("causes", first=answers[0], second=answers[1])
for cause in causes:
    print(fill(f"{cause.name}: {cause.why} → {cause.next}", 95))
pictures.log_map(first.log, "The loudest line is not the cause")

# %% [markdown]
# In the first log rank 0 speaks of a closed connection. Rank 1 says *nothing*. But torchrun's last block names it,
# under *Root Cause (first observed failure)*: rank 1, exit code −9. The operating system killed it, and wrote the
# reason into the last line. In the second log, rank 0 wrote a file that rank 1 does not have: each node has a
# `/mnt/runs` of its own.
#
# `course doctor --log FILE` tells 17 kinds of failure apart. Your exercise `explain_failure` does the same.

# %% [markdown]
# ## What you take with you
#
# You can **start** a program in three ways, because it asks its launcher only who it is. You can **judge** a network by
# its bus bandwidth, whatever the number of ranks, as long as only ranks add. And you can **bring back** a training that
# died: checkpoints, agreed stops, and a log that shows which rank failed first.
#
# Next: [the exercises](../exercises/13_gpu_nodes.ipynb). Then [lesson 14](14_profiling.ipynb): where did the time go?
#
# **To read**
#
# - The [manual of torchrun](https://docs.pytorch.org/docs/stable/elastic/run.html) lists what it tells each process,
#   and how it restarts them.
# - NVIDIA's page on the [performance of
#   nccl-tests](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md) derives the bus bandwidth of each
#   collective.

# %%
ranks.stop()
checkpoints.cleanup()
