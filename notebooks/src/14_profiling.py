# The lesson on profiling. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Where did the time go?
#
# After this lesson you can **count** what a timeline says, **make** one of all ranks with torch's profiler, and
# **name** the one reason why a program is slow before you change a line of it.
#
# *60 minutes · builds on lessons [3](03_hardware.ipynb) and [7](07_overlap.ipynb) · 4 ranks*

# %%
import statistics
import time
from functools import partial

import torch
import torch.distributed as dist

import course_utils as course

ranks = course.start(4, link="400 Mbit/s")
ranks.load_torch()

# %% [markdown]
# Four nodes, each behind an emulated link of 400 million bits a second, as in lesson 7. (Where your system
# forbids such links, a line says so.)
#
# ## A timeline, counted by hand
#
# We begin with ten seconds of a single rank, made up. It computes from 0 to 4 and from 6 to 9. One message is under
# way from 2 to 6, another from 5 to 7.

# %% tags=["figure:14_by_hand"]
from course_utils.lessons.profiling import Lanes, pictures

computing = [(0, 4), (6, 9)]
communication = [(2, 6), (5, 7)]
rank_0 = Lanes(0, 0, 10, computing, communication, {})  # rank 0, from 0 to 10
pictures.profile([rank_0], "Ten seconds, made up to be counted")

# %% [markdown]
# Three words. **Hidden**: communication while the rank computes; pale in our pictures. **Exposed**: communication while
# it does not, so the rank waits; dark. **Idle**: neither computing nor communication.
#
# **Predict**, by counting seconds in the picture. What percentage of the communication is hidden? What percentage
# of the ten seconds is idle?

# %%
course.predict("profile_by_hand", hidden=..., idle=...)  # 0 to 100

# %% tags=["nbval-check-output"]
from course_utils.lessons.profiling import idle_share, overlap_share

hidden = overlap_share(computing, communication)
idle = idle_share(computing, communication, begin=0, end=10)
print(f"hidden: {hidden:.0%} of the communication, idle: {idle:.0%} of the time")

# %%
course.answer("profile_by_hand", hidden=round(100 * hidden), idle=round(100 * idle))

# %% [markdown]
# Two messages at once count once: from 2 to 7 something is under way, 5 seconds. The rank computes in 3 of them (2
# to 4, 6 to 7): 60 % hidden. From 4 to 6 it waits, and only from 9 to 10 it is idle.
#
# A step is computing, exposed communication and idle time, and nothing else. So the last two say what can be gained.
# Your first two exercises are [`overlap_share` and `idle_share`](../exercises/14_profiling.ipynb).
#
# ## One rank
#
# `torch.profiler` notes when each **operator** of torch begins and ends: an **event**. Operators call operators:
# `aten::conv2d` calls `aten::convolution`, and so on, down to the one that does the work. (`aten` is torch's library of
# operators. `mkldnn` in a name is Intel's library of fast ones, which torch uses.) An operator's time without what it
# calls is its **self time**. (On a GPU an operator only starts the work. The work itself is a **kernel**, an event in
# a row of its own.)
#
# **Predict.** In one step of lesson 7's small VGG-11 on one rank, which operator has the most self time?

# %%
operators = {
    "a": "aten::mkldnn_convolution",  # forward
    "b": "aten::convolution_backward",
    "c": "aten::native_batch_norm",  # forward
    "d": "aten::addmm",  # a fully connected layer, forward
}
course.predict("profile_operator", answer=..., choices=operators)  # "a" to "d"

# %%
from torch.profiler import ProfilerActivity, profile

from course_utils.lessons.data_parallel import unsynchronised
from course_utils.lessons.profiling import training_step


def profile_one_step():
    step = training_step(unsynchronised, batch=32)
    step()  # the first step is never like the others
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        step()
    found = seen.key_averages()  # the events, summed up by name
    return [
        (one.key, one.count, one.self_cpu_time_total, one.cpu_time_total) for one in found
    ]


# %%
from course_utils.lessons.profiling import convolutions_text, operators_table

rows = ranks.run(profile_one_step, backend="gloo", ranks=1).results[0]
own = {name: own_time for name, _, own_time, _ in rows}
longest = max(operators, key=lambda letter: own.get(operators[letter], 0))
course.measured("profile_operator", answer=longest)
print(operators_table(rows), convolutions_text(rows), sep="\n\n")

# %% [markdown]
# The backward pass should take longer. Where the forward pass computes one product, the backward pass computes two: the
# gradient for the layer before, and the gradient of the weights (lesson 2).
#
# Such a table says *what* takes long. It does not say *when*: with several ranks, who waits for whom? The events
# themselves say so.
#
# ## All ranks
#
# Every rank profiles three steps. In each, one all-reduce follows the backward pass: it adds up all gradients as one
# vector, as in lesson 6.

# %%
from course_utils.lessons.data_parallel import all_reduce_flat
from course_utils.lessons.profiling import profile_ranks

flat = profile_ranks(ranks, training_step, all_reduce_flat, 32, steps=3)
for rank, trace in enumerate(flat.rank_traces):
    print(f"rank {rank}: {len(trace['traceEvents']):,} events")

# %% [markdown]
# A rank's file is a **trace**. Its times come from the rank's own clock. The clocks of two machines differ: nobody sets
# them to the microsecond.
#
# Our nodes share this machine and its clock, so we **play** four machines. Against rank 0's clock, rank 1's is 0.6 of a
# step ahead, rank 2's is 0.4 of a step behind, and rank 3's is a whole step ahead. Their files, side by side:

# %% tags=["figure:14_clocks"]
step = flat.lanes[0].seconds / 3
ahead = [0.0, 0.6 * step, -0.4 * step, step]  # seconds, played
title = "Four clocks: on rank 2 a message ends before rank 3 begins it"
pictures.profile(flat.lanes_by_clocks(ahead), title, "Rank 0's clock is right")

# %% [markdown]
# No all-reduce can end on one rank while another has not begun it. So nothing read *across* ranks in this picture is
# true.
#
# The cure is lesson 4's ping-pong. Rank 0 asks for the time, and notes when it asked and when the answer came. The
# other clock was read in between. We take the middle, which is wrong by at most half of the round trip. So of 20 round
# trips we believe the *shortest*. (Cristian, 1989.)


# %%
def ask_for_the_time(ahead):
    rank, number = dist.get_rank(), torch.zeros(1, dtype=torch.float64)
    found = {other: [] for other in range(1, dist.get_world_size())}
    for other in 20 * list(found):  # 1, 2, 3, 1, 2, 3, …
        if rank == 0:
            sent = time.perf_counter()
            dist.send(number, other)
            dist.recv(number, other)
            found[other].append((sent, number.item(), time.perf_counter()))
        elif rank == other:
            dist.recv(number, 0)
            dist.send(number.fill_(time.perf_counter() + ahead[rank]), 0)
    return found


# %%
from course_utils.words import seconds_text

asked = ranks.run(ask_for_the_time, ahead, backend="gloo").results[0]
left = [0.0]  # by how much each clock is still wrong
for rank, answers in asked.items():
    sent, there, back = min(answers, key=lambda answer: answer[2] - answer[0])
    measured, error = there - (sent + back) / 2, (back - sent) / 2
    left.append(ahead[rank] - measured)
    answer = f"{1000 * measured:+.2f} ms, wrong by {seconds_text(error)} at most"
    print(f"rank {rank} is ahead by {answer}; played: {1000 * ahead[rank]:+.2f} ms")

# %% [markdown]
# On rank 0's clock, all traces become *one*. (`profile_ranks` has already done that, with nothing to correct on one
# machine.) The picture shows the three steps that you profiled a minute ago:

# %% tags=["figure:14_merged"]
from course_utils.lessons.profiling import profile_text

lanes = flat.lanes_by_clocks(left)
pictures.profile(lanes, profile_text(lanes), "Three steps, an all-reduce after each")

# %% [markdown]
# Now you can look across ranks. An all-reduce ends on all ranks together. On each rank it begins when that rank is
# ready, so the row of an early rank is dark for longer. **Waiting for the last rank** looks like communication. Find
# the rank whose dark part begins last: only its dark part is the **transfer** itself.
#
# ## What does overlap change?
#
# **Predict.** Now the same step sends lesson 7's buckets, which travel during the backward pass. What percentage of the
# communication is hidden, on average over the ranks?

# %%
course.predict("profile_hidden", within=1.5, percent=...)  # 0 to 100

# %% tags=["figure:14_hidden"]
from course_utils.lessons.overlap import overlapped
from course_utils.lessons.profiling import is_busy_profile, overlap_text

in_buckets = partial(overlapped, bucket_bytes=500_000)
buckets = profile_ranks(ranks, training_step, in_buckets, 32, steps=3)
hidden = statistics.fmean(one.overlap_share for one in buckets.lanes)
busy = is_busy_profile(buckets.lanes)  # do the ranks differ too much?
course.measured("profile_hidden", busy=busy, percent=round(100 * hidden))
finding = overlap_text(flat.lanes, buckets.lanes, "buckets")
pictures.profile(buckets.lanes, profile_text(buckets.lanes), finding)

# %% [markdown]
# Lesson 7's timer never looked into a step: from a step's time it subtracted that of a step without messages. So a
# timer says **how much**, and a trace says **where**. (Beside messages everything else gets slower, too: gradients are
# copied into buckets, and the threads that send need cores. A timer counts that with the messages.)
#
# ## The same files in other people's tools
#
# A trace is JSON, in a format from Google's Chrome: a list of events, each with a name, a beginning `ts` and a duration
# `dur` in microseconds, a process `pid` (here the rank), a row `tid`. Many tools read it.

# %%
from course_utils.home import course_home
from course_utils.lessons.profiling import problems, read_trace

folder = course_home() / "profiles"  # yours; take it away when you like
files = buckets.write_for_tensorboard(folder / "buckets")
merged = buckets.write(folder / "merged" / "all_ranks.pt.trace.json.gz")
for file in [*files, merged]:
    print(f"{file.name}: {file.stat().st_size:,} bytes")
found = problems(read_trace(merged))
print(f"in {folder}: {found or 'nothing wrong with the format of the merged trace'}")
assert not found

# %% [markdown]
# **Perfetto**: open [ui.perfetto.dev](https://ui.perfetto.dev), *Open trace file*, `all_ranks.pt.trace.json.gz`. The
# page comes from the network, the file stays in your browser. Each rank is a process. (We have not tested it there:
# instead, `problems` has checked each event's fields and times, and how the events of a row lie.)
#
# **TensorBoard** shows the files, too. But PyTorch has deprecated its tab (`torch-tb-profiler`): use Perfetto for one
# trace, and Holistic Trace Analysis (HTA) for the traces of many ranks.

# %% [markdown]
# In a terminal in the course's folder (the first line only once; it downloads packages):
#
# ```
# .venv/bin/pip install -c constraints.txt -e ".[tensorboard]"
# .venv/bin/tensorboard --logdir ~/.local/share/course/profiles
# ```
#
# Open the tab PYTORCH_PROFILER. Its run *merged*, view *Trace*, has all ranks on one clock. Its run *buckets* has a
# worker for each rank, and the view *Distributed*. (The tab fetches two scripts from the network; without a network it
# stays empty.)

# %% [markdown]
# **Nsight Systems** is NVIDIA's profiler. It sees kernels by itself. The program tells it by **NVTX** ranges what they
# belong to. In a process that uses a GPU, the course's phases (`forward`, `backward`, `step`) and profiled steps are
# such ranges, so you see them above the kernels:
#
# ```
# nsys profile -t cuda,nvtx -o steps .venv/bin/torchrun --nproc-per-node=1 \
#     course_utils/lessons/gpu_nodes/train_ddp.py --folder runs/nsys
# ```
#
# (We tested this with its sister Nsight Compute, `ncu --nvtx --nvtx-include forward/`, and not with `nsys`. A range
# holds what its own thread orders. torch orders the kernels of a backward pass from another thread, so few are in
# `backward`.)

# %% [markdown]
# ## Five slow programs
#
# Each is right, and slow for *one* reason:
#
# | | Cause | In the picture |
# |---|---|---|
# | a | input pipeline | idle, no messages |
# | b | many small operations | computing in crumbs |
# | c | no overlap | computing and messages take turns |
# | d | unbalanced ranks | one computes, the others wait |
# | e | waits for a number (a log, in each step) | many tiny messages |
#
# Two are here; the exercises have all five. In program 4, computing is **played by waiting**: a machine with fewer
# cores than ranks could not show it.

# %% tags=["figure:14_slow_4"]
from course_utils.lessons.profiling import CHOICES, letter_of, profile_program, race

slow_4 = profile_program(ranks, 4)
lanes = slow_4.lanes
pictures.profile(lanes, "Slow program 4, a whole run", profile_text(lanes))

# %%
course.predict("profile_slow_4", answer=..., choices=CHOICES)  # "a" to "e"

# %% tags=["figure:14_cured_4"]
from course_utils.lessons.profiling import PROGRAMS, profile_like


def slow_and_better(number):
    taken = race(ranks, number, rounds=5, until=PROGRAMS[number].target)  # A B A B
    # one run of each, as far apart as in the race
    both = profile_like(ranks, number, taken)
    title, names = f"Program {number}: {taken}", ["slow", "better"]
    return pictures.profile(both, title, "Rank 0, one run of each", names=names)


course.answer("profile_slow_4", answer=letter_of(4))
slow_and_better(4)

# %% [markdown]
# The all-reduces end together on all ranks, but begin at different times. That is not a slow network: rank 3 has nearly
# all of the work. A batch goes from short to long texts; each rank takes an equal *number* of them. The cure: equal
# numbers of *letters*.
#
# How? That is your exercise `speed_up_4`. The losses are the same, and both programs ran by turns (lesson 3), so that a
# busy moment hits both.

# %% [markdown]
# ### Which rank would have to be faster?
#
# Start at the end of the run and walk back in time. While a rank did its own work, stay with it. Where it waited in an
# all-reduce, jump to the rank that came last, and go on there. This chain is the **critical path**. Work off this path
# could take longer, and the run would not.
#
# **Predict** for slow program 4. Which rank's own work has the largest share of the path? And which time shrinks most
# with the cure, on average over the ranks?

# %%
course.predict("profile_path", rank=...)  # 0 to 3
kinds = {"a": "operators", "b": "exposed communication", "c": "idle"}
course.predict("profile_changed", answer=..., choices=kinds)  # "a" to "c"

# %% tags=["figure:14_critical"]
from course_utils.lessons.profiling import critical_path, critical_text, path_shares_text

collectives = critical_path.collectives_of(slow_4.trace, 4)
path = critical_path.critical_path(slow_4.lanes, collectives)
own = critical_path.share_of_ranks(path, 4)
course.measured("profile_path", rank=own.index(max(own)))
finding = f"Bold: the critical path. Own work by rank: {path_shares_text(path, 4)}"
pictures.critical(slow_4.lanes, path, critical_text(path, 4), finding)

# %% tags=["figure:14_changed"]
from course_utils.lessons.profiling import changed_most, changes, changes_text, together

better_4 = profile_program(ranks, 4, fast=True)
found = changes(slow_4.trace, better_4.trace)
course.measured("profile_changed", answer=changed_most(found))
about = "Slow program 4 and its cure, one run of each, by name"
pictures.changed(together(found, 6), changes_text(found), about)

# %% [markdown]
# Every moment of a rank has one name here: the operator that began last; otherwise exposed communication; otherwise
# idle. So the bars add up to the change of the run. All ranks together compute the same letters as before: only the
# waiting is gone.
#
# ### The second one

# %% tags=["figure:14_slow_1"]
lanes = profile_program(ranks, 1).lanes
pictures.profile(lanes, "Slow program 1, a whole run", profile_text(lanes))

# %%
course.predict("profile_slow_1", answer=..., choices=CHOICES)  # "a" to "e"

# %% tags=["figure:14_cured_1"]
course.answer("profile_slow_1", answer=letter_of(1))
slow_and_better(1)

# %% [markdown]
# Idle? The processor was at work all the time: it decoded photos, the same ones in every epoch. To torch's profiler
# that is Python, not an operator of torch. **A profiler sees what it was made for.** Gaps say where to look next.
#
# The better program still decodes each photo once. With a `DataLoader` and workers (lesson 3) this work could hide,
# too.

# %% [markdown]
# ## When nothing moves any more
#
# A profiler writes its file at the end. A run that hangs has no end. So torch keeps the last 2,000 collectives of each
# process, the **Flight Recorder**. With GPUs it writes them into files when a collective times out, and the program
# `torchfrtrace` compares the lists.
#
# Here rank 2 leaves out the fourth all-reduce, and all ranks should meet in a barrier. **Predict**: whom will
# `torchfrtrace` call the culprit?

# %%
culprits = {"a": "rank 2", "b": "ranks 0, 1 and 3: they wait", "c": "nobody"}
course.predict("profile_culprit", answer=..., choices=culprits)  # "a" to "c"


# %%
from course_utils.lessons.profiling import both_reports_text, culprit_letter
from course_utils.lessons.profiling import flight_recorder


def one_left_out():
    for _ in range(3):
        dist.all_reduce(torch.ones(1000))
    if dist.get_rank() != 2:
        dist.all_reduce(torch.ones(5, 3))
    dist.barrier()


report, dumps = flight_recorder.stuck(ranks, one_left_out)
told = flight_recorder.compared(dumps, course_home() / "flight_recorder")
course.measured("profile_culprit", answer=culprit_letter(told, 2))
print(both_reports_text(told, report))

# %% [markdown]
# `torchfrtrace` knows the first position at which the lists differ, and who differs there: that is all, and it is
# enough. (torch 2.13 leaves out the name of a gloo group, so the course puts it into the lists.) The lists cannot say
# whether the *one* or the *many* are wrong: look at the line in your program.

# %% [markdown]
# ## And a GPU?
#
# Usually Python starts each of a step's kernels by an *order* of its own. With lesson 13's **CUDA graph**, one order
# starts all of them. Here are three steps of each kind, with the same kernels. (Profiled now where there is a GPU;
# otherwise recorded on an H100.)
#
# **Predict.** While Python gives its orders one by one, for what percentage of a step is the GPU idle? And with the
# graph? (The profiler looks at each order, which slows the orders down.)

# %%
course.predict("gpu_idle", one_by_one=..., graph=...)  # 0 to 100

# %% tags=["figure:14_orders"]
from course_utils.lessons.profiling import orders_text, profile_orders

orders, where = profile_orders(ranks)
lanes = list(orders.values())
one_by_one, graph = (round(100 * kind.idle_share) for kind in lanes)
course.measured("gpu_idle", one_by_one=one_by_one, graph=graph)
pictures.profile(
    lanes, orders_text(lanes), f"Three steps each: {where}", names=list(orders)
)

# %% [markdown]
# Where it is pale grey, the GPU has nothing to do. Each order takes Python and torch some microseconds, and the kernel
# that it starts takes no longer. (Without the profiler, that step took 5.9 ms in lesson 13, and not 15: so the GPU
# was idle for a third of it.) The more a kernel does, the less its order matters: take larger batches, or wider layers.
#
# The time that is not grey is roughly what `nvidia-smi` shows as **GPU-Util**: the percentage of time in which *any*
# kernel ran ([NVIDIA, NVML](https://docs.nvidia.com/deploy/nvml-api/api/structnvmlUtilization__t.html)). It is not the
# MFU (lesson 11): a kernel that uses a small part of the GPU counts in full. With the graph, that H100 ran kernels 94 %
# of the time, and reached 15 % of its peak.
#
# **And memory?** Each time torch takes or frees memory, the profiler can note an event (`profile_memory=True`). The
# trace gets twice as large, so the next cell records a single step: on a GPU where there is one, otherwise on the
# processor.
#
# **Predict.** When in the step is most memory taken?

# %%
moments = {
    "a": "early in the forward pass",
    "b": "late in the forward pass, or early in the backward pass",
    "c": "late in the backward pass",
    "d": "in the optimizer's step",
}
course.predict("profile_memory", answer=..., choices=moments)  # "a" to "d"

# %%
from course_utils.gpu_seats import own_seat
from course_utils.lessons.profiling import kept_text, memory_of_step, memory_text
from course_utils.lessons.profiling import peak_letter

device, batch = ("cuda", 256) if own_seat().gpus else ("cpu", 64)
one_step = partial(training_step, unsynchronised, batch, device=device)
held = ranks.run(memory_of_step, one_step, backend="gloo", ranks=1).results[0]
course.measured("profile_memory", answer=peak_letter(held))
pictures.memory(held, memory_text(held), kept_text(held))

# %% [markdown]
# The forward pass keeps each layer's activations (lesson 9), and the backward pass frees them, layer by layer. The drop
# between the two is `zero_grad`: it frees the gradients of the step before. A needle in the picture is a **workspace**:
# memory that an operator takes only while it works. On an H100, with 256 images, a needle of 80 MB made the peak of 243
# MB, late in the backward pass. So a training can run out of memory there, too. (Which line of a program took how much?
# `torch.cuda.memory._record_memory_history` says it, and [pytorch.org/memory_viz](https://pytorch.org/memory_viz) draws
# it.)
#
# **Is the GPU fed?** Images must also come from somewhere. They are decoded, moved, mirrored, and copied into the GPU's
# memory:
#
# - **pageable** memory is what every program gets; the system may move it, so a copy makes a detour, and Python waits
#   for the copy;
# - **pinned memory** stays where it is, so the GPU fetches it alone (`pin_memory=True`, `non_blocking=True`);
# - a **prefetched** batch travels while the GPU computes on the batch before.
#
# **Predict** for that H100. Let a step be 1 when its images lie on the GPU already. How long is the step when the
# training process itself makes each batch, in pinned memory? With 4 worker processes? And when all batches are ready,
# and only the copy is left?

# %%
course.predict("gpu_fed", within=1.3, this_process=..., four_workers=..., copy=...)

# %%
from course_utils.lessons.profiling import fed_bars, fed_text, fed_times, feed_here
from course_utils.lessons.profiling import is_busy_feed

fed = feed_here()
course.measured("gpu_fed", busy=is_busy_feed(fed), **fed_times(fed))
title = f"{fed.origin}; bfloat16"
course.draw.measured_bars(fed_bars(fed), fed_text(fed), title, x="time of a step")

# %% [markdown]
# It matters most who *makes* the batches; more workers help until there are enough. How batches travel matters less:
# pinned beats pageable, and prefetching adds nothing there. A pinned copy of 6 MB takes a tenth of a millisecond, which
# is less than such steps differ from run to run. (So a step with a copy can even come out shorter.)

# %% [markdown]
# ## What you take with you
#
# You can **count**: a step is computing, exposed communication and idle time. You can **make** one timeline of all
# ranks, on one clock, and read who waits for whom. You can **name** the cause: one late rank, messages that take
# turns with computing, gaps, crumbs, tiny messages.
#
# Next: [the exercises](../exercises/14_profiling.ipynb), five slow programs among them. Lesson 15: can I now read any
# framework's manual?
#
# **To read**
#
# - The manual of [torch.profiler](https://docs.pytorch.org/docs/stable/profiler.html) lists what can be recorded.
# - [Holistic Trace Analysis](https://github.com/facebookresearch/HolisticTraceAnalysis) is Meta's tool for traces of
#   many ranks.

# %%
ranks.stop()
