# The lesson on profiling. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Where did the time go?
#
# On one GPU, a training step takes 80 ms. Then you train on four GPUs and give each of them as many images as the
# single GPU had. Each computes as much as before, and yet the step takes 120 ms. Where do the other 40 ms go? Perhaps
# the network is slow. Perhaps one of the four is late in every step and the others wait for it, or all four wait for
# images from the disk. A network twice as fast would help in the first case and be wasted money in the other two. And a
# stopwatch can't tell you which case you have, because all of them take 120 ms.
#
# A profile can. After this lesson you can record what each rank does and when, put the records of all ranks on one
# clock, and find out why a program is slow *before* you change a line of it.
#
# *55 minutes · builds on lessons [3](03_hardware.ipynb) and [7](07_overlap.ipynb) · 4 ranks*

# %%
import json
import tempfile
import time
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

import course_utils as course

ranks = course.start(4, link="400 Mbit/s")
ranks.load_torch()

# %% [markdown]
# As in lesson 7, each rank plays the part of a node whose network link carries 400 million bits per second, which is 50
# MB per second. If your system doesn't allow emulated links, a line under the cell says so, and messages arrive sooner.
#
# ## Reading a timeline by hand
#
# We begin with ten made-up seconds of one rank, simple enough to count by hand. It computes from 0 to 4 s and from 6 to
# 9 s. One message is in flight from 2 to 6 s, and another from 5 to 7 s.

# %% tags=["figure:14_by_hand"]
from course_utils.lessons.profiling import Lanes, pictures

computing = [(0, 4), (6, 9)]
messages = [(2, 6), (5, 7)]
made_up = Lanes(0, 0, 10, computing, messages, {})  # rank 0, 0 to 10 s, no named parts
pictures.profile([made_up], "Ten made-up seconds of one rank")

# %% [markdown]
# From lesson 7 you know that communication is *hidden* while the rank computes, and *exposed* while the rank can only
# wait for it. In the lower lane, hidden communication is pale and exposed communication dark. In the upper lane the
# waiting is grey. A rank is **idle** if neither computing nor communication is recorded, and then the upper lane is
# almost white. So computing, waiting and idle time add up to the whole, and the last two can be cut without touching
# the computation.
#
# Let's count the first six seconds. The rank computes for 4 of them. Communication is in flight for 4 s as well, from 2
# to 6 s. In half of this time, from 2 to 4 s, the rank computes, so 50% of the communication is hidden. From 5 s on
# there are two messages, but each moment counts only once.
#
# **Predict.** In all ten seconds, what percentage of the communication is hidden? What percentage of the ten seconds is
# idle?

# %%
course.predict("profile_by_hand", hidden=..., idle=...)  # 0 to 100

# %% tags=["nbval-check-output"]
from course_utils.lessons.profiling import idle_share, overlap_share

hidden = overlap_share(computing, messages)
idle = idle_share(computing, messages, begin=0, end=10)
print(f"hidden: {hidden:.0%} of the communication, idle: {idle:.0%} of the time")

# %%
course.answer("profile_by_hand", hidden=round(100 * hidden), idle=round(100 * idle))

# %% [markdown]
# Communication is in flight from 2 to 7 s, or 5 s in all. For 3 of those the rank computes, from 2 to 4 s and from 6 to
# 7 s, and 3 of 5 is 60%. It is idle only from 9 to 10 s. The functions `overlap_share` and `idle_share` are your first
# two [exercises](../exercises/14_profiling.ipynb).
#
# ## A profiler records one rank
#
# PyTorch's profiler, `torch.profiler`, makes such lists for you. It records when each of torch's **operators** begins
# and ends. An operator is a function of torch's library. `aten::addmm`, for example, computes a fully connected layer:
# it multiplies the inputs by the weights and adds the bias. Each record is an **event**, with a name, a start time and
# a duration.
#
# In the next cell, `training_step` builds lesson 7's small VGG-11, whose weights take 2.3 MB, and 32 random images, and
# returns a function that performs one training step. With several ranks, `exchange` will average the gradients, and on
# a single rank we pass `unsynchronised`, which does nothing. The `schedule` treats the first two steps as a warm-up:
# the profiler runs but discards what it records, because it takes time to get going. It keeps the next three steps and
# then calls `write`, which writes the events to a file. Only `profiler.step()` tells the profiler where one step ends
# and the next begins.

# %%
from course_utils.lessons.profiling import training_step


def profile_steps(exchange):
    step = training_step(exchange, batch=32)
    plan = schedule(wait=0, warmup=2, active=3, repeat=1)
    cpu = [ProfilerActivity.CPU]  # on a GPU, also ProfilerActivity.CUDA
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"

        def write(profiler):
            profiler.export_chrome_trace(str(path))

        with profile(activities=cpu, schedule=plan, on_trace_ready=write) as profiler:
            for _ in range(5):
                step()
                profiler.step()
        trace = json.loads(path.read_text())
    rows = []
    for row in profiler.key_averages():  # the events, added up by name
        times = row.self_cpu_time_total, row.cpu_time_total
        rows.append((row.key, row.count, *times))
    return rows, trace


# %% [markdown]
# Operators call other operators. For instance, `aten::conv2d` calls `aten::convolution`, which calls
# `aten::_convolution`, which calls the operator that does the work. An operator's **self time** is the time it takes
# itself, excluding the operators that it calls, which its *total* includes. Sorted by self time, a table shows you
# where the work is done.
#
# Most of the work of a VGG is in its convolutions. In the forward pass a convolution computes one product, of its input
# with its weights. From lesson 2 you know that the backward pass computes the gradient of the weights and, for the
# preceding layer, the gradient of the input. Each is a product of about the same size.
#
# **Predict.** Which operator has the most self time? (`mkldnn` is the old name of oneDNN, a library of fast operators
# that torch uses on CPUs.)

# %%
operators = {
    "a": "aten::mkldnn_convolution",  # forward
    "b": "aten::convolution_backward",
    "c": "aten::native_batch_norm",  # forward
    "d": "aten::addmm",  # a fully connected layer, forward
}
course.predict("profile_operator", answer=..., choices=operators)  # "a" to "d"

# %%
from course_utils.lessons.data_parallel import unsynchronised
from course_utils.lessons.profiling import convolutions_text, operators_table

run = ranks.run(profile_steps, unsynchronised, backend="gloo", ranks=1)
rows, trace = run.results[0]
self_times = {name: self_time for name, _, self_time, _ in rows}
longest = max(operators, key=lambda letter: self_times.get(operators[letter], 0))
course.measured("profile_operator", answer=longest)
print(operators_table(rows), convolutions_text(rows), sep="\n\n")

# %% [markdown]
# Don't expect exactly twice the time. The first layer doesn't need the gradient of its input, the images, oneDNN need
# not be equally fast at all three products, and an operator's time includes any wait for a core. `ProfilerStep*` is the
# profiler's own mark for a whole step.
#
# The table totals three steps. It shows *what* takes the time, but not *when*, and so not who waits for whom. That is
# in the file. Together, the events of a rank make up its **trace**. Here is one event:

# %%
events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
convolution = next(event for event in events if event["name"] == "aten::conv2d")
print(f"{len(events):,} events that have a duration, for example:")
for field in ("name", "ts", "dur", "pid", "tid"):
    print(f"  {field:5}{convolution[field]}")
print("ts is counted from", trace["baseTimeNanoseconds"], "ns after the start of 1970")


# %% [markdown]
# The start time `ts` and the duration `dur` are in microseconds, and `pid` and `tid` are the numbers of the process and
# of the thread. Add `ts` to the base time, which can be weeks ago, and you have the time on the rank's clock.
# [Further](14_profiling_further.ipynb) shows tools that can draw this format.
#
# ## Four ranks have four clocks
#
# Now all four ranks record three steps. In each of them, one all-reduce after the backward pass averages all gradients
# as one vector, as in lesson 6. The clocks of different machines rarely agree to the microsecond. Ours do, because all
# four ranks run on one machine, so we simulate four machines by moving the base times. As a step's length depends on
# your machine, we pretend that rank 1's clock is 0.6 of a step ahead of rank 0's, rank 2's is 0.4 of a step behind, and
# rank 3's a whole step ahead.
#
# To draw the four traces together, `merge` measures all events from the same base time, subtracts the number of seconds
# by which we think a rank's clock is ahead, and gives each rank its own `pid`. For now we assume that all clocks are
# right:
# %%
def merge(traces, ahead):
    first = min(trace["baseTimeNanoseconds"] for trace in traces)
    events = []
    for rank, trace in enumerate(traces):
        shift = (trace["baseTimeNanoseconds"] - first) / 1000  # microseconds
        shift -= 1e6 * ahead[rank]
        for event in trace["traceEvents"]:
            if event["ph"] == "X":  # has a duration
                events.append(event | {"pid": rank, "ts": event["ts"] + shift})
    return {"traceEvents": events}


# %% tags=["figure:14_clocks"]
from course_utils.lessons.data_parallel import all_reduce_flat
from course_utils.lessons.profiling import lanes_of

no_correction = [0.0, 0.0, 0.0, 0.0]
run = ranks.run(profile_steps, all_reduce_flat, backend="gloo")
traces = [trace for rows, trace in run.results]
step = lanes_of(merge(traces, no_correction))[0].seconds / 3

simulated = [0.0, 0.6 * step, -0.4 * step, step]  # seconds ahead of rank 0
four_machines = []
for trace, seconds in zip(traces, simulated, strict=True):
    base = trace["baseTimeNanoseconds"] + round(1e9 * seconds)
    four_machines.append(trace | {"baseTimeNanoseconds": base})
lanes = lanes_of(merge(four_machines, no_correction))
pictures.profile(lanes, "With four clocks, the ranks don't seem to work together")

# %% [markdown]
# `lanes_of` puts each rank's operators into the computing lane, and gloo's all-reduces, waiting included, into the
# messages lane. Blue includes waits for a core, so if your machine has fewer free cores than we have ranks, the same
# work can take one rank several times as long as another.
#
# But uneven cores can't explain this picture. Compare the first dark bars of ranks 2 and 3. In an all-reduce every rank
# needs the numbers of every other, so it can't end on rank 2 before rank 3 has begun it. Until the clocks agree, you
# can compare durations, but no comparison of *moments* on different ranks means anything.
#
# ## A round trip compares two clocks
#
# How far ahead is each clock? Lesson 4's ping-pong can tell us. Rank 0 asks rank 1 for the time, and notes on its own
# clock when it asked and when the answer arrived. Suppose rank 0 asks at 100 ms and has the answer at 108 ms, and the
# answer is 150 ms. When did rank 1 read its clock? We only know that it was between the question and the answer. If it
# was right after 100 ms, rank 1's clock is 50 ms ahead, and if it was just before 108 ms, it is 42 ms ahead. We take
# the middle, 46 ms, which is wrong by at most half the round trip, 4 ms. In the picture on the right, a second round
# trip took only 2 ms:

# %% tags=["figure:14_round_trips"]
trips = [(0.100, 0.150, 0.108), (0.200, 0.247, 0.202)]  # asked, clock, answered
pictures.round_trips(trips, "The shorter round trip tells you more: ± 1 ms, not ± 4 ms")

# %% [markdown]
# Either message may be held up, and we can't tell which. But a short round trip leaves little room for delay, so we
# make twenty round trips and trust the shortest, as Cristian did in 1989. Clocks also drift, so for a long run you
# would ask before and after it.
#
# **Predict.** Two more round trips. In the first, rank 0 asks at 300 ms, rank 2's clock reads 290 ms, and the answer
# arrives at 310 ms. In the second, rank 0 asks at 400 ms, rank 2's clock reads 385 ms, and the answer arrives at 404
# ms. How many milliseconds *behind* is rank 2's clock, and how far off could that answer be?

# %%
course.predict("profile_clock", behind=..., wrong_by=...)

# %%
round_trips = [(300, 290, 310), (400, 385, 404)]
asked, clock, answered = min(round_trips, key=lambda trip: trip[2] - trip[0])
behind = (asked + answered) / 2 - clock
course.answer("profile_clock", behind=behind, wrong_by=(answered - asked) / 2)

# %% [markdown]
# The second trip is shorter, at 4 ms. Its middle is 402 ms, when rank 2's clock read 385 ms, so it is 17 ms behind,
# give or take 2 ms.
#
# Now let rank 0 ask for real. Each of the other ranks adds its simulated offset to its clock:


# %%
def ask_for_the_time(simulated):
    rank, P = dist.get_rank(), dist.get_world_size()
    number = torch.zeros(1, dtype=torch.float64)
    trips = {other: [] for other in range(1, P)}
    for other in trips:
        for _ in range(20):
            if rank == 0:
                asked = time.time()
                dist.send(number, other)
                dist.recv(number, other)
                trips[other].append((asked, number.item(), time.time()))
            elif rank == other:
                dist.recv(number, 0)
                number.fill_(time.time() + simulated[rank])
                dist.send(number, 0)
    return trips


# %%
from course_utils.lessons.profiling import clock_text

ahead = [0.0]
trips = ranks.run(ask_for_the_time, simulated, backend="gloo").results[0]
for rank, round_trips in trips.items():
    asked, clock, answered = min(round_trips, key=lambda trip: trip[2] - trip[0])
    ahead.append(clock - (asked + answered) / 2)
    error = (answered - asked) / 2
    print(clock_text(rank, ahead[rank], error, simulated[rank]))

# %% [markdown]
# With these four numbers `merge` puts all events on the clock of rank 0:

# %% tags=["figure:14_merged"]
from course_utils.lessons.profiling import profile_text

flat = lanes_of(merge(four_machines, ahead))
pictures.profile(
    flat, profile_text(flat), "Three steps, each with an all-reduce at its end"
)

# %% [markdown]
# ## Waiting for the last rank looks like communication
#
# Suppose four ranks begin an all-reduce at 100, 112, 104 and 131 ms, and it ends on all of them at 161 ms. On rank 0
# the dark bar is 61 ms long. But the all-reduce can't get far before rank 3 joins in at 131 ms, so for the first 31 ms
# rank 0 mostly waits for rank 3. Only the remaining 30 ms are the **transfer**, the time in which the numbers travel. A
# faster network could shorten those 30 ms, and not the 31. The next cell calculates both for the second all-reduce in
# the picture, and how long the gradient needs in a ring of four. `communication` lists when each all-reduce began and
# ended:

# %%
from course_utils.lessons.overlap import small_vgg

begins = [own.communication[1][0] for own in flat]  # of the second all-reduce
last = max(begins)
for own in flat:
    begin, end = own.communication[1]
    waited, transfer = 1000 * (last - begin), 1000 * (end - last)
    print(f"rank {own.rank}: {waited:5.1f} ms for the last rank, {transfer:.1f} ms after")

size = sum(parameter.nbytes for parameter in small_vgg(seed=0).parameters())
needed = 2 * 3 / 4 * size / 50e6  # seconds
print(f"{size / 1e6:.1f} MB of gradients need {1000 * needed:.0f} ms at 50 MB/s")

# %% [markdown]
# The rank with 0 ms came last. In such a picture, find that rank first. Until it begins, the others are mostly waiting,
# and only what comes after can be the price of the network. The ranks don't end at quite the same time, because each is
# done when its own last piece has arrived, and on a busy machine they may need far longer than calculated.
#
# ## What does overlap change?
#
# Now we send the gradients in lesson 7's buckets of half a megabyte, each as soon as it is full, during the backward
# pass. The ranks share one clock this time, so there is nothing to correct. The title compares how much is hidden now
# and before. If it says that the machine was busy, look only at where messages begin, or run the cell again.

# %% tags=["figure:14_hidden"]
from course_utils.lessons.overlap import overlapped
from course_utils.lessons.profiling import overlap_text

in_buckets = partial(overlapped, bucket_bytes=500_000)
run = ranks.run(profile_steps, in_buckets, backend="gloo")
buckets = lanes_of(merge([trace for rows, trace in run.results], no_correction))
title = overlap_text(flat, buckets, "buckets")
pictures.profile(buckets, title, profile_text(buckets))

# %% [markdown]
# With a single all-reduce at the end, hardly anything can be hidden, because nothing is left to compute. The buckets
# begin during the backward pass, the later part of a step's blue, so part of their time can be hidden. But the step may
# get shorter by far less, because a bucket is in flight until the last rank has joined in, so part of what is hidden
# may be waiting.
#
# And what is still exposed? Together the buckets hold the same 2.3 MB, for which the links need 70 ms. If the backward
# pass fills buckets faster than the links can carry them, they queue, and some are still on their way when all ranks
# have finished computing. If one rank is still blue, though, the others may be waiting for that rank. Overlap cures
# neither.
#
# ## Five reasons why a program is slow
#
# Each of the five programs in the exercises is correct, and slow for one reason. Here is what the reasons look like,
# with tiny pieces drawn large enough to see. An imbalance needs two ranks, so *d* gets two rows:

# %% tags=["figure:14_reasons"]
short = [(0.25 * k, 0.25 * k + 0.12) for k in range(48)]
before = [(0.5 * k, 0.5 * k + 0.35) for k in range(24)]
after = [(0.5 * k + 0.35, 0.5 * k + 0.5) for k in range(24)]
reasons = {
    "a input pipeline": ([(2, 4), (6, 8), (10, 12)], []),
    "b many small operations": (short, []),
    "c no overlap": ([(0, 3), (6, 9)], [(3, 6), (9, 12)]),
    "d unbalanced, rank 0": ([(0, 1.5), (6, 7.5)], [(1.5, 6), (7.5, 12)]),
    "d unbalanced, rank 1": ([(0, 5), (6, 11)], [(5, 6), (11, 12)]),
    "e waits for a number": (before, after),
}
drawn = [Lanes(0, 0, 12, *times, {}) for times in reasons.values()]
title = "Five reasons why a program is slow, and what each looks like"
pictures.profile(drawn, title, "Made up", names=list(reasons))

# %% [markdown]
# When you look at a real profile, ask these questions in this order:
#
# 1. **Is there much idle time, in long gaps?** Long means far longer than the microseconds that calling an operator
#    takes. Then the rank does or waits for something that isn't recorded, such as reading its data (*a*). Look at how
#    batches are read and prepared.
# 2. **Is the computation cut into tiny slices with gaps between them?** Then each operator does so little that calling
#    it takes longer than its work (*b*). Slices narrower than a pixel blend into a pale blue. Do the same work with
#    fewer, larger operators.
# 3. **Are there many tiny messages, and does the rank wait during each?** Find the call that sends them. If the program
#    asks for a number in every step, such as the mean loss for a log (*e*), ask less often. If it all-reduces each
#    parameter by itself, use buckets (lesson 7). Some can't be avoided, such as the gradient norm for clipping in a
#    sharded model.
# 4. **Do the ranks begin their messages at different times and end them together?** Then look at which rank is last. If
#    it is the same rank in every step, it has more work or is slower (*d*), so share the work more evenly. If the last
#    rank changes, as it may in our pictures of the VGG, the work may vary, or something disturbs the ranks, such as too
#    few cores.
# 5. **Do all ranks start to send at the same moment, and not before they have finished computing?** Then messages and
#    computing take turns (*c*). Begin to send earlier, as in lesson 7. If everything that can overlap already does, and
#    messages are still exposed, send less or get a faster network.
#
# `profile_program` does what you have done above, for a whole run of one of the five programs. Here most of the
# computing time is faked: each rank sleeps for as long as a larger network would compute, as if it had a core of its
# own. Each step all-reduces two tensors, the loss and then the gradient.

# %% tags=["figure:14_slow_4"]
from course_utils.lessons.profiling import CHOICES, letter_of, profile_program

lanes = profile_program(ranks, 4).lanes
pictures.profile(lanes, "Slow program 4, a whole run", profile_text(lanes))

# %% [markdown]
# **Predict.** Which of the five reasons makes this program slow? Ask the questions in order.

# %%
course.predict("profile_slow_4", answer=..., choices=CHOICES)  # "a" to "e"

# %% [markdown]
# Once you have changed the program, you have to show that it is faster. The next cell alternates between the slow
# program and a better one (lesson 3), so that if your computer is busy, both suffer. It stops when the result is clear,
# after five rounds at most.

# %% tags=["figure:14_cured_4"]
from course_utils.lessons.profiling import PROGRAMS, cured_texts, profile_like, race


def slow_and_better(number):
    taken = race(ranks, number, rounds=5, until=PROGRAMS[number].target)
    both = profile_like(ranks, number, taken)  # one more run of each, profiled
    title, subtitle = cured_texts(number, taken, both)
    return pictures.profile(both, title, subtitle, names=["slow", "better"])


course.answer("profile_slow_4", answer=letter_of(4))
slow_and_better(4)

# %% [markdown]
# The program trains on texts. Each batch has 16 of them, sorted from shortest to longest. The line
# ```python
# mine = batch[rank * share : (rank + 1) * share]
# ```
#
# gives each rank the same number of texts, but because they are sorted by length, the last rank gets the four longest,
# which have 79% of a batch's letters. A faster network would hardly help, because only the last rank's dark bars could
# shrink, and they are short. The better program shares the *letters* as evenly as it can. The longest text alone has a
# third of them, and the other three ranks share the rest. How to do that is up to you, in exercise `speed_up_4`. Both
# programs compute the same losses, because the ranks' sums are added up and the total is divided by 16.
#
# Here is another program, which runs on a single rank and really computes:

# %% tags=["figure:14_slow_1"]
lanes = profile_program(ranks, 1).lanes
pictures.profile(lanes, "Slow program 1, a whole run", profile_text(lanes))

# %% [markdown]
# If a single block of blue is much wider than all others, that operator probably had to wait for a core.
#
# **Predict.** Which of the reasons makes this one slow? Compare the gaps with the slices of blue, the faint ones
# included.

# %%
course.predict("profile_slow_1", answer=..., choices=CHOICES)  # "a" to "e"

# %% tags=["figure:14_cured_1"]
course.answer("profile_slow_1", answer=letter_of(1))
slow_and_better(1)

# %% [markdown]
# The rank is idle in the picture, and yet its processor was busy. It read photos from files and decoded them, the same
# ones again in every epoch. Decoding is done by a different library, and by default torch's profiler records only
# torch's operators and a few of its own marks. **A profiler sees only what it was built to see**, so treat a gap as a
# question. If you suspect a part of your own program, put `with torch.profiler.record_function("decode"):` around it,
# and it becomes an event.
#
# The better program decodes each photo once, in the pale part at its beginning, where each faint line turns a photo
# into a tensor, and keeps it. If the photos don't fit into memory, the workers of a `DataLoader` can decode the next
# batch while the network trains on this one (lesson 3).

# %% [markdown]
# ## Your own trace
#
# The trace that you most want to read is of your own program, on a machine where you can't run this notebook. Profile
# it as PyTorch's documentation does. `tensorboard_trace_handler` writes a file for each rank, named after the machine
# and the process. On a GPU, add `ProfilerActivity.CUDA` to the activities, for AMD's GPUs too, because otherwise the
# file doesn't contain the GPU's work. Then give the folder to `course.read_profile`:


# %%
from torch.profiler import tensorboard_trace_handler


def train(folder):
    step = training_step(all_reduce_flat, batch=32)
    write = tensorboard_trace_handler(folder)
    plan = schedule(wait=0, warmup=2, active=3, repeat=1)
    cpu = [ProfilerActivity.CPU]
    with profile(activities=cpu, schedule=plan, on_trace_ready=write) as profiler:
        for _ in range(5):
            step()
            profiler.step()


with tempfile.TemporaryDirectory() as folder:
    ranks.run(train, folder, backend="gloo")
    own = course.read_profile(folder)
print(own)

# %% tags=["figure:14_own"]
title = profile_text(own.lanes)
pictures.profile(own.lanes, title, "Four ranks, each read from its own file")

# %% [markdown]
# `read_profile` takes one file or several, compressed or not, from NVIDIA GPUs, AMD GPUs or CPUs, and works out which
# rank wrote each file. In each row of the table, computing, exposed communication, idle time and a GPU's copies add up
# to 100%, apart from rounding. The report names one of the five reasons only if the numbers clearly point to it.
#
# The clocks of different machines can disagree, and nothing in the files says by how much. But no rank can finish an
# all-reduce before every other rank has begun it. So each all-reduce limits how far two clocks can differ, as a round
# trip does. If the times contradict these limits, `read_profile` shifts the clocks until they fit, and the report says
# so. A smaller error can remain.
#
# For your own files, you don't need the notebook. Type one of these lines in a terminal:
#
# ```
# course profile traces/
# course profile traces/ --out merged.json.gz
# ```
#
# The first line prints the report, and the second also writes the merged timeline, for the tools in
# [Further](14_profiling_further.ipynb).

# %%
ranks.stop()

# %% [markdown]
# ## What is different on a GPU
#
# On a GPU, an operator does not do the work itself. It asks the GPU to run a **kernel**, a program that the GPU's many
# cores run together, and usually returns at once. This is a *kernel launch*. The processor can be many launches ahead,
# so only the kernels show how long the work took. With `ProfilerActivity.CUDA` they become events as well, in rows of
# their own. Most messages of NCCL (lesson 13) are kernels, too.
#
# The questions above stay the same, with "kernel" in place of "operator". But the reason for a gap is often in the
# processor's rows. A call such as `loss.item()` waits for the GPU without any message, and the GPU then has nothing to
# do until new launches arrive. And *many small operations* is even more common, because the GPU runs out of work if the
# launches take longer than the kernels.
#
# [Further](14_profiling_further.ipynb) profiles such a step on an H100, and shows at what point a step needs the most
# memory and what it takes to keep a GPU supplied with images. It also shows which of several ranks would have to get
# faster, and what you can find out when a run hangs and never writes a trace.
#
# ## What you take with you
#
# At every moment of a trace, a rank is computing, waiting for exposed communication, or idle, and you can count each of
# the three. Idle means only that nothing was recorded. Before you compare ranks, put their traces on one clock. The
# shortest of many round trips tells you how far ahead a clock is. Waiting for the last rank looks like communication,
# so look for the rank that begins last, and whether it is always the same. Find the reason in the profile before you
# change the program, and afterwards time the old and new versions in turn.
#
# In [the exercises](../exercises/14_profiling.ipynb) you make five slow programs faster. [Lesson
# 15](15_read_the_manual.ipynb) asks whether you can now read the manual of any framework.
#
# **To read**
#
# - The documentation of [`torch.profiler`](https://docs.pytorch.org/docs/stable/profiler.html) lists everything it can
#   record, such as shapes, memory and the lines of your program.
# - [Holistic Trace Analysis](https://github.com/facebookresearch/HolisticTraceAnalysis), by Meta, computes this
#   lesson's shares from the traces of many GPUs.
# - Flaviu Cristian, 1989, [*Probabilistic clock synchronization*](https://doi.org/10.1007/BF01784024), shows how well a
#   clock can be read over a network that may delay any message.
