# The optional second notebook of lesson 14. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: where did the time go?
#
# On the first page, four ranks waited for each other, and the rank that began its messages last was easy to see. A real
# run has hundreds of messages. Which rank would you have to make faster to shorten the whole run, and by how much would
# it help? And what do you do if the run hangs, so that the profiler never gets to write its file?
#
# The second half of this notebook is about a GPU. If you have none, it shows what we recorded on an H100.  There, a
# training step that launches its kernels one by one leaves the GPU idle for most of the time, as long as the profiler
# watches.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, but section 2 builds on section 1. If a section complains that its ranks were stopped, run
# the first code cell again.
#
# 1. *Which rank would have to be faster?*: the critical path of a run
# 2. *What changed between two runs?*: the difference of two traces, name by name
# 3. *When nothing moves any more*: PyTorch's Flight Recorder
# 4. *Kernel launches*: what a GPU waits for
# 5. *When does a step need the most memory?*: every allocation as an event
# 6. *Is the GPU kept fed?*: who makes the batches, and how they get to the GPU
# 7. *Other people's tools*: the same traces in TensorBoard, Perfetto and others
#
# *40 minutes · optional, after [lesson 14](14_profiling.ipynb) · 4 ranks, about 6 minutes for each section*

# %%
from functools import partial

import torch
import torch.distributed as dist

import course_utils as course
from course_utils.lessons.profiling import Lanes, critical_path, pictures, profile_program
from course_utils.lessons.profiling import profile_ranks, training_step

ranks = course.start(4, link="400 Mbit/s")
ranks.load_torch()

# %% [markdown]
# ## Which rank would have to be faster?
#
# Two ranks work for eight seconds. Rank 0 computes from 0 to 3 s and then waits in an all-reduce. Rank 1 computes from
# 0 to 5 s and then joins in. The numbers travel from 5 to 6 s. After that, rank 0 computes until 8 s, and rank 1 until
# 7 s.
#
# What decides that the run takes eight seconds? Start at the end and walk back in time. Rank 0 ends last, and from 6 to
# 8 s it did its own work. At 6 s it had been waiting in an all-reduce, so we ask which rank came last to it. That was
# rank 1, at 5 s. So the second from 5 to 6 s belongs to the transfer, and there we jump to rank 1. From 5 s back to the
# beginning, rank 1 did its own work. This chain of own work and transfers, 5 + 1 + 2 = 8 s, is called the **critical
# path**, and the next picture draws it as a black line. Rank 0's first three seconds are not on it. They could take
# five without slowing the run down.

# %%
two = [
    Lanes(0, 0, 8, [(0, 3), (6, 8)], [(3, 6)], {}),
    Lanes(1, 0, 7, [(0, 5), (6, 7)], [(5, 6)], {}),
]
all_reduces = [
    {0: (3, 6), 1: (5, 6)}
]  # one all-reduce: when it is in flight on each rank
path = critical_path.critical_path(two, all_reduces)
for piece in path:
    print(f"{piece.begin} to {piece.end} s: {piece.kind} of rank {piece.rank}")
pictures.critical(two, path, "The critical path jumps to the rank that comes last")

# %% [markdown]
# Now take slow program 4 from the first page. A batch has 16 texts, ordered from short to long, and each of the four
# ranks takes a quarter of them, rank 0 the first four and so on. The time for a text is proportional to its number of
# letters. Each step ends with two all-reduces, first of the loss and then of the gradient. The ranks wait for each
# other in the first, so the second is short. A rank's *own work* is all of its time outside the all-reduces, even if it
# is idle.
#
# **Predict.** Which rank's own work has the largest share of the critical path?

# %%
course.predict("profile_path", rank=...)  # 0 to 3

# %% tags=["figure:14_critical"]
from course_utils.lessons.profiling import critical_text, path_shares_text

slow_4 = profile_program(ranks, 4)
collectives = critical_path.collectives_of(slow_4.trace)
path = critical_path.critical_path(slow_4.lanes, collectives.times)
own = critical_path.share_of_ranks(path, range(4))
course.measured("profile_path", rank=own.index(max(own)))
finding = f"Share of each rank's own work: {path_shares_text(path, range(4))}"
pictures.critical(slow_4.lanes, path, critical_text(path, range(4)), finding)

# %% [markdown]
# The shares also tell you how much you could gain at most. If rank 3's work makes up 90% of the path, then a rank 3
# that is twice as fast saves at most 45% of the time, and less if another rank takes its place on the path. The method
# is from Yang and Miller (1988), *Critical path analysis for the execution of parallel and distributed programs*.
#
# ## What changed between two runs?
#
# You have made a program faster, and have a trace of the slow run and of the fast one. Where was the time saved? A
# trace has thousands of events that lie inside each other, so you can't just add up durations. We need to give every
# moment of a rank to exactly one name. If the rank computes, the moment belongs to the operator that began last,
# because the operators around it have called it and wait. If the rank doesn't compute but something is in flight, it
# belongs to exposed communication, and otherwise to *idle*. Then the seconds of all names add up to the length of the
# run, and their changes add up to the change of that length.
#
# In the faster version of program 4, the ranks share the letters as evenly as possible.
#
# **Predict.** What shrinks the most, on average over the four ranks?

# %%
kinds = {"a": "operators", "b": "exposed communication", "c": "idle"}
course.predict("profile_changed", answer=..., choices=kinds)  # "a" to "c"

# %% tags=["figure:14_changed"]
from course_utils.lessons.profiling import changed_most, changes, changes_text, together

better_4 = profile_program(ranks, 4, fast=True)
found = changes(slow_4.trace, better_4.trace)
course.measured("profile_changed", answer=changed_most(found))
about = "From slow program 4 to the faster version, one run of each"
pictures.changed(together(found, 6), changes_text(found), about)

# %% [markdown]
# Computing is *emulated by waiting* in this program, since your computer may not have a core for each rank. All ranks
# together compute as many letters as before, so on average over the ranks their computing can't shrink much. What can
# go away is the time that three of them spend waiting for the fourth. Both traces are of a single run, so on a busy
# computer other bars may be long as well.
#
# ## When nothing moves any more
#
# A profiler writes its file at the end, and a run that hangs has no end. For this case, each of torch's processes keeps
# a list of its last 2,000 collectives in memory, with their sizes and states. This list is called the **Flight
# Recorder**, after the device in an aeroplane. With NCCL, the lists are written to files when a collective times out.
# The program `torchfrtrace`, which comes with torch, then compares them.
#
# It begins at the top of the lists, takes the entry of the lowest rank and compares it with the entries of the others.
# If they agree, it goes on to the next line. Suppose these are the lists of two ranks:
#
# | | rank 0 | rank 1 |
# |---|---|---|
# | 1 | all_reduce, 1000 numbers | all_reduce, 1000 numbers |
# | 2 | broadcast, 10 numbers | all_reduce, 5 numbers |
# | 3 | all_reduce, 5 numbers | |
#
# Line 1 agrees. In line 2, rank 0 has a broadcast, and rank 1, which hasn't called a third collective yet, has
# something else. So rank 1 is called the culprit, whether it has left out the broadcast or rank 0 was wrong to begin
# it.
#
# In the next cell, four ranks all-reduce 1,000 numbers three times. Then all but rank 2 do a fourth, and finally all
# should meet in a barrier.
#
# **Predict.** Which rank will `torchfrtrace` blame?

# %%
culprits = {"a": "rank 2", "b": "one of the others", "c": "no rank"}
course.predict("profile_culprit", answer=..., choices=culprits)  # "a" to "c"


# %%
from course_utils.home import course_home
from course_utils.lessons.profiling import both_reports_text, culprit_letter
from course_utils.lessons.profiling import flight_recorder


def one_left_out():
    for _ in range(3):
        dist.all_reduce(torch.ones(1000))
    if dist.get_rank() != 2:
        dist.all_reduce(torch.ones(5, 3))
    dist.barrier()


report, dumps = flight_recorder.stuck(ranks, one_left_out)
mismatch = flight_recorder.compared(dumps, course_home() / "flight_recorder")
course.measured("profile_culprit", answer=culprit_letter(mismatch, 2))
print(both_reports_text(mismatch, report))

# %% [markdown]
# The first report comes from the course, which stops ranks that wait for each other for good, and the second from
# `torchfrtrace`. It finds the first line where the lists differ, which is where to look in your program. It can't know
# whether the one or the many are wrong.
#
# With gloo no files are written, so `flight_recorder.stuck` asks each process for its list. In torch 2.13 these lists
# lack the names of the groups, and `torchfrtrace` would fail. So `flight_recorder.compared` adds them.
#
# When a job hangs on a cluster, these lists are often all that is left of it. Set `TORCH_FR_DUMP_TEMP_FILE` to the
# beginning of a path, `/scratch/me/dump_` for example, and rank 3 writes its list to `/scratch/me/dump_3`. Older
# versions of torch also need `TORCH_NCCL_TRACE_BUFFER_SIZE=2000` and `TORCH_NCCL_DUMP_ON_TIMEOUT=1`. Copy the files of
# all nodes into one folder, and give it to `dumps_report`, or to `course doctor --log FOLDER` in a terminal. Here it
# reads the four files that the cell above has just written:

# %%
from course_utils.lessons.profiling import dumps_report

print(dumps_report(course_home() / "flight_recorder"))

# %% [markdown]
# On a real job, some ranks may have died before they could write a file, and there are several process groups, for
# example those of tensor and of data parallelism. After a hang nearly all ranks wait, but most of them wait for ranks
# that are waiting themselves. So the report follows the waits through all groups, and begins with the rank at which
# they end. If they lead in a circle instead, it names the ranks of the circle, and it also names the ranks of which
# there is no file. The files may also be from somebody else. `torchfrtrace` lets Python's `pickle` run whatever code
# such a file asks for, while `dumps_report` builds nothing but numbers, texts and lists.
#
# ## Kernel launches
#
# On a GPU, Python usually launches each kernel of a step by itself. Suppose that a launch takes 10 µs, and that the
# kernel it launches runs for 4 µs. Then the GPU works for 4 of every 10 µs, and it is idle for 60% of the time. If the
# kernel ran for 40 µs, Python would be ahead of the GPU instead, and the GPU would hardly ever be idle.
#
# With the **CUDA graph** of lesson 13, all kernels of a step are recorded once, and afterwards a single launch starts
# all of them. The next cell profiles three steps in each of these two ways, with the same kernels. It uses your GPU if
# you have one, and otherwise a recording.

# %%
from course_utils.lessons.profiling import profile_launches

launches, where = profile_launches(ranks)
print(where)
for name, lanes in launches.items():
    step = lanes.seconds / lanes.steps
    busy = step - lanes.idle_share * step
    print(f"{name}: {1e3 * step:.1f} ms per step, busy for {1e3 * busy:.1f} ms")

# %% [markdown]
# **Predict.** For what percentage of the step is the GPU idle, with one launch for each kernel and with the graph?

# %%
course.predict("gpu_idle", one_by_one=..., graph=...)  # 0 to 100

# %% tags=["figure:14_launches"]
from course_utils.lessons.profiling import launches_text

one_by_one, graph = (round(100 * lanes.idle_share) for lanes in launches.values())
course.measured("gpu_idle", one_by_one=one_by_one, graph=graph)
title, names = launches_text(list(launches.values())), list(launches)
pictures.profile(list(launches.values()), title, f"Three steps; {where}", names=names)

# %% [markdown]
# Where it is pale grey, the GPU is idle. The profiler makes these gaps wider than they are, because it records every
# launch, which slows launching down. On the recorded H100, with one launch for each kernel, the GPU was idle for 75% of
# the three steps. The first of them stalled and took 19 ms. In the other two, of 12 and 13 ms, the GPU was idle for
# about 70% of the time. It was busy for 3.9 ms of each step. Without the profiler, a step took 5.9 ms on that GPU
# (lesson 13), so there the GPU was idle for (5.9 - 3.9) ÷ 5.9, about a third of the step. If you see such gaps, give
# each kernel more to do, with a larger batch, or launch fewer of them, with a compiler or a graph.
#
# The time that is *not* grey is roughly what `nvidia-smi` shows as **GPU-Util**. That is the percentage of time in
# which at least one kernel was running, according to [NVIDIA's
# documentation](https://docs.nvidia.com/deploy/nvml-api/api/structnvmlUtilization__t.html), however small a part of the
# GPU it used. So a high GPU-Util doesn't mean that the GPU is used well. With the graph, the recorded H100 ran kernels
# 94% of the time and copied for 1%, and it reached 12% of the peak on its data sheet. This last number is the MFU
# (lesson 11) that you know from [lesson 13](13_gpu_nodes_part_2.ipynb).
#
# ## When does a step need the most memory?
#
# With `profile_memory=True`, the profiler also makes an event of every allocation and every release of memory. The
# trace then gets about twice as large, so the next cell records only one step, on your GPU if you have one, and
# otherwise on the processor.
#
# From lesson 9 you know that the forward pass keeps the activations of every layer, because the backward pass needs
# them. Take three layers with 10 MB of activations each. After the first layer 10 MB are kept, after the second 20 and
# after the third 30 MB. The backward pass begins with the third layer and releases its 10 MB when it is done with them,
# and then those of the second. If nothing else needs memory, the peak is at the end of the forward pass.
#
# **Predict.** When does the step of our VGG need the most memory?

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
from course_utils.lessons.data_parallel import unsynchronised
from course_utils.lessons.profiling import kept_text, memory_of_step, memory_text
from course_utils.lessons.profiling import peak_letter, zero_grad_text

device, batch = ("cuda", 256) if own_seat().gpus else ("cpu", 64)
one_step = partial(training_step, unsynchronised, batch, device=device)
held = ranks.run(memory_of_step, one_step, backend="gloo", ranks=1).results[0]
course.measured("profile_memory", answer=peak_letter(held))
print(zero_grad_text(held))
pictures.memory(held, memory_text(held), kept_text(held))

# %% [markdown]
# A needle in the picture is a **workspace**, memory that an operator takes only while it runs. Workspaces can decide
# where the peak is. We recorded a step with 256 images on an H100. There, a needle of 80 MB made the peak of 243 MB,
# late in the backward pass. If you want to know which line of a program took the memory,
# `torch.cuda.memory._record_memory_history` records it, and [pytorch.org/memory_viz](https://pytorch.org/memory_viz)
# draws it.
#
# ## Is the GPU kept fed?
#
# Images have to come from somewhere. A processor decodes them, shifts and mirrors them, and then they are copied to the
# GPU's memory. This copy can be done in three ways:
#
# - **Pageable** memory is what every program gets. The operating system may move it, so the copy goes through a staging
#   buffer, and Python waits until it is there.
# - **Pinned memory** stays where it is, so the GPU can fetch a batch without the processor. In PyTorch you ask for it
#   with `pin_memory=True` in the `DataLoader` and `non_blocking=True` in the copy.
# - A **prefetched** batch is copied while the GPU still computes on the batch before it.
#
# And who makes the batches? Suppose that a step takes 5 ms once its images are on the GPU, and that a process needs 20
# ms to make a batch. If the training process makes each batch itself before the step, a step takes about 25 ms, five
# times as long. With four workers, a batch is ready every 20 ÷ 4 = 5 ms, just in time, as long as nothing else gets in
# the way.
#
# **Predict.** Let a step take 1 if its images are on the GPU already. The three numbers are for pinned memory. How long
# does a step take if the training process makes each batch? If 4 workers do? And if all batches are ready and only the
# copy is left? (Anything within a factor of 1.3 counts as right. The numbers are of your GPU, or of the recorded H100.)

# %%
course.predict("gpu_fed", within=1.3, this_process=..., four_workers=..., copy=...)

# %%
from course_utils.lessons.profiling import fed_bars, fed_text, fed_times, feed_here
from course_utils.lessons.profiling import is_busy_feed

fed = feed_here()
course.measured("gpu_fed", busy=is_busy_feed(fed), **fed_times(fed))
about = f"Compared with images that are on the GPU already; {fed.origin}; bfloat16"
course.draw.measured_bars(fed_bars(fed), fed_text(fed), about, x="time of a step")

# %% [markdown]
# On the recorded H100, it mattered most who makes the batches. With pinned memory, the median step took 27 ms if the
# training process made them, and 7.6 ms with four workers. Pinned instead of pageable memory helped as well. It
# shortened a step from 7.2 to 4.6 ms if all batches were ready, and from 9.4 to 7.6 ms with four workers. Prefetching
# never beat pinned memory, probably because little was left to hide. A batch of 512 images has 6.3 MB, which a bus
# with, say, 50 GB/s carries in 0.13 ms. That is less than these steps differ from run to run, as the thin lines show.
# So if the number for the copy alone is below 1, the copy doesn't make a step faster. It costs too little to be
# measured in this way.
#
# ## Other people's tools
#
# The course's functions read traces in a
# [format](https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU) that Google defined for
# Chrome, and many other tools read it too. The next cell profiles three steps and writes them once with a file for each
# rank, and once merged into a single file. `problems` checks that every event has the fields that the format asks for,
# and that events of one row lie inside each other or apart.

# %%
from course_utils.lessons.overlap import overlapped
from course_utils.lessons.profiling import problems, read_trace

in_buckets = partial(overlapped, bucket_bytes=500_000)
buckets = profile_ranks(ranks, training_step, in_buckets, 32, steps=3)
folder = course_home() / "profiles"  # yours; delete it whenever you like
files = buckets.write_for_tensorboard(folder / "buckets")
merged = buckets.write(folder / "merged" / "all_ranks.pt.trace.json.gz")
for file in [*files, merged]:
    print(f"{file.name}: {file.stat().st_size:,} bytes")
found = problems(read_trace(merged))
print(f"in {folder}: {found or 'nothing wrong with the format of the merged trace'}")
assert not found

# %% [markdown]
# **TensorBoard** can show these files with a plugin, which PyTorch has deprecated by now. The course's tests open our
# traces in it. In a terminal in the course's folder:
#
# ```
# .venv/bin/pip install -c constraints.txt -e ".[tensorboard]"
# .venv/bin/tensorboard --logdir ~/.local/share/course/profiles
# ```
#
# Then open the tab PYTORCH_PROFILER. In its run *merged*, the view *Trace* has all ranks on one clock. Its run
# *buckets* has a worker for each rank, and the view *Distributed*. The tab fetches two scripts from the internet, and
# without a connection it stays empty.
#
# **Perfetto** is what PyTorch recommends for a single trace. On [ui.perfetto.dev](https://ui.perfetto.dev), choose
# *Open trace file*. The file stays in your browser. We haven't opened our files there, and rely on `problems`.
#
# **Holistic Trace Analysis** is made for the traces of many GPUs. The course's tests let it count the shares of hidden
# communication and idle time in traces like ours, and compare the results with ours. It counts only kernels, so the
# tests pass it the operators of a CPU as kernels. In a file from a real GPU, its numbers may differ from those of
# `course.read_profile`, because it counts from the first kernel in the file to the last. The GPU is behind the program,
# so the first kernels may belong to a step before the profiled ones. The course counts from the first profiled step's
# first kernel to the last one's last. Over the same time, the two agree.
#
# **Files from elsewhere** lack what a file of `profile_ranks` has. Nobody compared the clocks of the machines, and
# perhaps no step is marked, because the program never called `profiler.step()`. Then `course.read_profile` takes the
# whole file, with whatever came before and after the training. To find out which messages of different ranks are the
# same all-reduce, it uses the names, groups and sizes that NCCL writes into newer files. Where these are missing, it
# goes by order, and leaves out what doesn't fit. So a critical path through such files is only as good as what the
# report says of their clocks and messages.
#
# **Nsight Systems and Nsight Compute** are NVIDIA's own profilers. Systems draws a timeline of processor and GPU, and
# can sample Python's call stacks (`--python-sampling=true`) and name PyTorch's operators (`--pytorch=autograd-nvtx`).
# Compute measures each kernel closely, but hardly knows what your program was doing, unless it names ranges of time
# with **NVTX**. The course names `forward`, `backward`, `step` and every profiled step in this way, if the process uses
# a GPU. We have tested this with Nsight Compute only (`ncu --nvtx --nvtx-include forward/`). A range holds what its own
# thread launches, and torch launches most kernels of a backward pass from a different thread, so `backward` may hold
# few of them.

# %%
ranks.stop()

# %% [markdown]
# ## To read
#
# - The tutorial on the [Flight Recorder](https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html)
#   shows how to use it with NCCL.
# - [A guide on good usage of `non_blocking` and
#   `pin_memory()`](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html) measures when pinned memory
#   pays, and when it doesn't.
