# The lesson on what limits one machine. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What limits one machine?
#
# After this lesson you can **measure** what a machine is able to do, **predict** from that how long a layer takes, and
# **say** why more threads, more workers or more files stop helping.
#
# *60 minutes · builds on [lesson 2](02_autodiff_and_optimizers.ipynb) · 2 ranks*

# %%
import os
import statistics
import time
from pathlib import Path

import course_utils as course
from course_utils.machine import allowed_cores
from course_utils.measuring import Measured, compare, is_busy, rate_text, unless_busy

# before torch, so that torch's threads sleep while they wait, and leave the cores to others
from course_utils.lessons.hardware import layer_costs, machine_rates, photos
from course_utils.lessons.hardware import reading_speed, sentences, step_shares, threads
from course_utils.vgg import vgg11
import torch

cores = allowed_cores()
print(f"{cores} of this machine's {os.cpu_count()} cores may be used")

# %% [markdown]
# What can one machine do? Two numbers go a long way: how fast it **computes**, and how fast it
# **moves** numbers between memory and processor, its **bandwidth**. A **FLOP** is one operation on two numbers; a
# GFLOP is a billion.
#
# Others may use this machine too. So we measure nine times, and show the **median** (the value in the middle) and how
# far the values lie apart.
#
# **Predict.** While this machine moves *one* number of 4 bytes, how many operations could it do?

# %%
course.predict("balance", within=2, operations=...)

# %% [markdown]
# A rate is an amount of work, divided by the seconds that it takes. Two matrices of 1024 by 1024, for example, are
# multiplied with 2 · 1024³ operations: 1024² results, each of 1024 products, which are added up.


# %%
def median_rate(work, amount, repeats=9):
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return amount / statistics.median(seconds)


left, right = torch.rand(2, 1024, 1024)
by_hand = median_rate(lambda: left @ right, 2 * 1024**3)
print(f"{by_hand / 1e9:.0f} GFLOP/s")

# %% [markdown]
# All measurements on this page do this. Helpers spare you the loops, use all your cores, and keep all nine values:

# %%
peak = machine_rates.matmul_rate()  # the largest rate that computing reaches
bandwidth = machine_rates.memory_bandwidth()  # two long arrays are added
print("computes:", rate_text(peak, "GFLOP/s"))
print("moves:   ", rate_text(bandwidth, "GB/s"))
busy = is_busy([peak.values, bandwidth.values])  # do the nine scatter too much?
course.measured("balance", busy=busy, operations=4 * peak.median / bandwidth.median)

# %% [markdown]
# The computing rate is called the **peak**. The cores must *use* each fetched number as often as the table above says,
# or they wait for memory. A program that adds arrays waits: it asks for three numbers for one addition, two to read and
# one to write.
#
# Does the machine move only what a program asks for? It moves memory in *lines* of 64 bytes. Many processors fetch a
# line even when the program only overwrites it: **write-allocate**. But `left += right` overwrites lines that
# it has just read. So it moves three numbers for certain, and we measure the others against it.
#
# **Predict.** How many numbers move for each result of a sum into a third array, and of a copy?

# %%
course.predict("moved", within=1.15, sum=..., copy=...)

# %%
moved = machine_rates.numbers_moved()
busy = is_busy(measured.values for measured in moved.values())
course.measured("moved", busy=busy, sum=moved["sum"].median, copy=moved["copy"].median)
print(sentences.moved_sentence(moved))

# %% [markdown]
# Our bandwidth counts three numbers for each sum: what the program *asks* for, as McCalpin's benchmark STREAM does. If
# four moved, memory is a third faster than that, and the roof of the next section is too low.
#
# ## The roof
#
# For any layer, count its FLOPs, and the bytes that it must move at least (read input and weights, write the output).
# Their ratio is its **arithmetic intensity** $I$, in FLOP per byte. A convolution uses each weight at every pixel, a
# linear layer once for each image. (An image has 3 **channels**: red, green and blue. A convolution with 64 filters
# makes 64 channels of them.)

# %% tags=["nbval-check-output"]
from course_utils.lessons.hardware import arithmetic_intensity, roofline_time

# input: images, channels, height, width; weights: channels out, channels in, window
shapes = {
    "conv1": [(32, 3, 32, 32), (64, 3, 3, 3)],
    "conv4": [(32, 256, 8, 8), (256, 256, 3, 3)],
    "linear": [(32, 512), (10, 512)],
}
for name, (x_shape, weight_shape) in shapes.items():
    flops, nbytes, intensity = arithmetic_intensity(x_shape, weight_shape)
    print(f"{name:6} {flops:13,} FLOP {nbytes:10,} bytes {intensity:6.1f} FLOP per byte")

# %% [markdown]
# These are three layers of **VGG-11**, with a batch of 32. A machine computes *while* it moves bytes, so a layer takes
# the longer of the two times:
#
# $$T = \max\left(\frac{\text{FLOPs}}{\text{peak}},\ \frac{\text{bytes}}{\text{bandwidth}}\right)$$
#
# In terms of speed: a layer reaches at most the peak, and at most bandwidth · $I$. Drawn over $I$ this is a slope, then
# a flat line: the **roofline**.
#
# Three kinds of small layers come between the convolutions. **Batch norm** brings each channel to mean 0 and spread 1.
# ReLU you know. **Pooling** keeps the largest of four neighbours.
#
# **Predict.** These do 0.4 % of the arithmetic. What share of the time do they take?

# %%
course.predict(
    "small_layers",
    answer=...,  # "a", "b" or "c"
    choices={"a": "below 2 %", "b": "2 to 10 %", "c": "more than 10 %"},
)

# %%
from course_utils.lessons.hardware import pictures

batch = 32
model = vgg11(seed=0)
images = torch.randn(batch, 3, 32, 32)
timed = layer_costs.time_layers(model, images, peak.median, bandwidth.median)
small = sum(one.measured.median for one in timed if one.kind in ("norm", "relu", "pool"))
share = small / sum(one.measured.median for one in timed)
answer = "a" if share < 0.02 else "b" if share <= 0.1 else "c"
busy = is_busy(one.measured.values for one in timed)
course.measured("small_layers", busy=busy, answer=answer)

ridge = peak.median / bandwidth.median
print(sentences.layers_sentence(timed, ridge))
title = sentences.layers_title(timed, ridge)
pictures.layer_roofline(timed, peak.median, bandwidth.median, title)

# %% [markdown]
# Left of the dashed **ridge** memory is the limit, right of it arithmetic.
#
# A dot far below the roof is a program worth improving. A dot above the roof has one of three causes: the roof was
# measured with something slower, its bandwidth leaves out lines that are fetched to be overwritten, or the numbers
# never left the **cache**, a small fast memory beside the core.
#
# Pooling has hardly any arithmetic, yet takes time. Is that the memory's fault? Try the same numbers in another order,
# all channels of a pixel side by side.
#
# **Which is faster?** Measured times differ even where the program is the same. So we measure **by turns**, A B A B …,
# and divide A's time by B's in each round: a busy moment hits both. A program is *faster* if it won at least four in
# five rounds, and by more than 5 % in the median. Otherwise the two tie. All lessons keep to this rule.

# %% tags=["figure:03_pooling"]
pool, x = torch.nn.MaxPool2d(2), torch.randn(batch, 64, 32, 32)
side_by_side = x.to(memory_format=torch.channels_last)
names = "side by side", "channel by channel"
with torch.no_grad(), machine_rates.using_threads(cores):
    pair = compare(lambda: pool(side_by_side), lambda: pool(x), names=names)
found = sentences.pooling_sentence(pair)
course.draw.measured_bars({"2 × 2 pooling": pair.bars}, pair.title, found)

# %% [markdown]
# (Two [exercises](../exercises/03_hardware.ipynb): `arithmetic_intensity`, `roofline_time`.)
#
# ## A training step
#
# Three students measured VGG-11 in 2020, for the course CS744 in Wisconsin. Their first figure shows *iterations*, each
# of 20 batches in a row (ours: 2 batches). It splits the time of each into **forward**, **backward** and the
# optimizer's **step**. A layer's backward pass computes two products, each as large as the forward product: one for the
# gradient of its weights, and one for the gradient of its input.
#
# **Predict.** How many times as long does backward take as forward?

# %%
course.predict("backward", within=1.25, times_as_long=...)

# %% tags=["figure:03_shares"]
iterations = 10
training = step_shares.time_training(model, iterations, passes=2, batch=batch)
ratio = training.ratio().median
busy = is_busy([training.epoch().values])
course.measured("backward", busy=busy, times_as_long=ratio)
print(sentences.shares_sentence(training))
title = unless_busy(busy, f"Backward takes {ratio:.1f} times as long as forward")
course.draw.stacked_bars(training.bars, title, "")

# %% [markdown]
# Two products against one: about 2, if arithmetic were all. But there are also layers that wait for memory, and the
# first layer needs no gradient of its input.
#
# How long would an epoch take at this pace, with all 50,000 images of the students? *Their* numbers, from their text
# and first table, stand beside ours. They are hatched, because nobody measured them here.

# %% tags=["figure:03_epoch"]
here = {"CPU": training.epoch()}
if torch.cuda.is_available():
    here["GPU"] = step_shares.time_training(
        vgg11(seed=0), batch=256, device="cuda"
    ).epoch()
bars = step_shares.epoch_bars(here, cores)
found = sentences.epoch_sentence(here, cores)
title = "An epoch of VGG-11 (here: extrapolated)"
course.draw.measured_bars(bars, title, found, published=[step_shares.REPORT])

# %% [markdown]
# ## More threads
#
# A **thread** is a worker inside a process. torch cuts a product into parts, and its threads share them. For their
# second figure the students had 5 cores, and took 1 to 9 threads. We take half as many channels in each layer, to be
# quicker.
#
# **Predict.** With twice as many threads as you have cores, forward and backward are…

# %%
course.predict(
    "threads",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "faster than with one thread for each core",
        "b": "as fast",
        "c": "slower",
    },
)

# %% tags=["figure:03_threads"]
half = vgg11(width=0.5, seed=0)


def forward_and_backward():
    half(images).sum().backward()


times = threads.time_threads(forward_and_backward)
busy = is_busy(measured.values for measured in times.values())
course.measured("threads", busy=busy, answer=sentences.threads_answer(times, cores))
found = sentences.threads_sentence(times, cores) + " " + threads.PUBLISHED
pictures.time_by_threads(times, cores, "Forward and backward, VGG-11 half as wide", found)

# %% [markdown]
# What matters is how many cores you *may use*: a job on a cluster often gets a few of 64. On 4 cores, 64 threads are
# hardly ever faster than 4 threads.
#
# ## How far can it go?
#
# Some tasks need the results of other tasks. **Work** $W$ is how many tasks there are. **Depth** $D$ is how many lie on
# the longest path, on which each task needs the one before. Adding 32 numbers takes 31 additions, as a *chain*, one by
# one, or as a *tree*: neighbours first, then the sums of neighbours.

# %% tags=["nbval-check-output", "here:03_chain_and_tree"]
from course_utils.lessons.hardware import brent_bounds, chain_sum, run_graph, tree_sum

for name, graph in {"chain": chain_sum(32), "tree": tree_sum(32)}.items():
    # with enough workers, only depth counts
    rounds, _ = brent_bounds(graph, processors=1000)
    print(f"{name}: work {len(graph)}, depth {rounds}")

# %% [markdown]
# Let $T_p$ be the time with $p$ workers; one task takes a time of 1. They share the work, so $T_p \ge W/p$. Nobody can
# shorten the longest path: $T_p \ge D$. Both hold, so $T_p$ is at least the *larger* of the two. And if no worker rests
# while a task is ready, not much is lost (Graham 1969; Brent 1974, for work level by level):
#
# $$\max(W/p,\ D)\ \le\ T_p\ \le\ W/p + D$$
#
# **Predict.** The tree has $W = 31$ and $D = 5$. What is $T_4$, and what is $T_{16}$?

# %%
course.predict("brent", within=1.15, four=..., sixteen=...)

# %% [markdown]
# We let real threads do it. A task is *emulated*: the thread sleeps for 8 ms. Sleeping needs no core, so 16 can work
# at once on any machine. The dashed line is another lower bound, $\min(W/p, D)$, which stands in a report of the
# University of the Witwatersrand (2019). Which of the two lower bounds do the dots follow?

# %% tags=["figure:03_bounds"]
tree, unit, workers = tree_sum(32), 0.008, (1, 2, 4, 8, 16)
runs = {p: [run_graph(tree, p, unit) / unit for _ in range(3)] for p in workers}
measured = {p: Measured(tuple(values)) for p, values in runs.items()}
bounds = {p: brent_bounds(tree, p) for p in workers}
# whoever sleeps is not slower on a slow machine: only other work makes it longer
busy = is_busy(runs.values(), planned=[bounds[p][1] for p in workers])
sixteen = measured[16].median
course.measured("brent", busy=busy, four=measured[4].median, sixteen=sixteen)

printed = {"min(W/p, D)": [min(31 / p, 5) for p in workers]}
found = sentences.brent_sentence(
    bounds, {p: value.median for p, value in measured.items()}
)
title = "Adding 32 numbers as a tree, with p workers"
pictures.between_bounds(measured, bounds, printed, title, found)

# %% [markdown]
# Why not *min*? Sixteen workers: min says "at least 2", though 5 tasks must run one after the other. That is not wrong,
# only weak, as "at least nothing" would be. When two conditions *both* hold, take the max. (Your exercise:
# `brent_bounds`.)
#
# How deep is a network? An entry of a convolution's output adds up $k$ products (channels in, times its window): first
# one step for the products, then a tree of $\lceil \log_2 k \rceil$ steps. For VGG-11:

# %% tags=["nbval-check-output", "here:03_work_and_depth"]
for direction in ("forward", "backward"):
    backward = direction == "backward"
    table = layer_costs.work_and_depth(model, images, backward)
    table.append(("all", sum(row[1] for row in table), sum(row[2] for row in table)))
    print(f"{direction:8} {'work':>14} {'depth':>6} {'W/D':>11}")
    for name, work, depth in table:
        if name in ("conv1", "norm1", "conv6", "linear", "all"):
            print(f"{name:8} {work:14,} {depth:6} {work / depth:11,.0f}")

# %% [markdown]
# The backward pass has twice the products: the gradient of a weight is a sum over all images and pixels, and the
# gradient of an input is a sum over the outputs. $W/D$ is how many workers could be kept busy: tens of millions for the
# whole network. The order of the tasks does not limit us. Bytes do: workers must be fed. That is why the rest of this
# course is about moving numbers.
#
# ## Feeding it
#
# The last limit is where the images come from. SURF, which runs the Dutch supercomputers, says on its slides: *don't
# read many small files, pack samples together into a few large files*. Here are 600 photos of handwritten digits, each
# in a file of its own. (A disk gives every file whole *blocks* of space.)

# %%
folder = photos.working_folder()  # beside the course's data; taken away at the end
count = 600
jpegs = photos.jpeg_digits(count)
paths = photos.write_photos(jpegs, Path(folder.name))
print(f"{count} files, {sum(map(len, jpegs)):,} bytes")
print(f"{photos.disk_bytes(paths):,} bytes of disk, in whole blocks")

# %% [markdown]
# Now the same photos in one file. It holds the number of photos, then where each photo begins (and where the last one
# ends), then the photos. The numbers in front are the **index**: any photo is two jumps away.

# %%
from course_utils.lessons.hardware import pack_samples, read_sample

packed = Path(folder.name) / "photos.packed"
pack_samples(jpegs, packed)
assert read_sample(packed, 123) == jpegs[123]
print(f"{photos.disk_bytes([packed]):,} bytes of disk")

# %% [markdown]
# Linux keeps in memory what it has read, and takes it from there the next time: *warm*. At the start of a training run
# everything is **cold**. We ask the system to forget the files before each round. The disk's own counter then
# says whether the bytes really came from it.
#
# **Predict.** When the files are cold, how many times as long do the single files take as the packed file?

# %%
course.predict("files", within=1.5, cold=...)

# %% tags=["figure:03_cold_and_warm"]
read = photos.readers(paths, packed)
time_reading = reading_speed.time_reading
files = {"one file each": paths, "packed": [packed]}
cold = {way: time_reading(read[way], count, files[way], cold=True) for way in read}
warm = {way: time_reading(read[way], count, files[way], cold=False) for way in read}

if all(one.cold for one in cold.values()):
    ratio = cold["one file each"].seconds.median / cold["packed"].seconds.median
    busy = is_busy(one.seconds.values for one in cold.values())
    course.measured("files", busy=busy, cold=ratio)
bars = reading_speed.groups(cold, warm)
found = sentences.reading_sentence(cold, warm)
course.draw.measured_bars(bars, f"{count} photos in a random order", found)

# %% [markdown]
# How large the difference is depends on the disk. On a cluster's shared file system each file is asked for over the
# network, and hundreds of jobs ask at once: there the difference is usually larger.
#
# Photos must also be *decoded*, from a JPEG's bytes to pixels, and that is work for a core. torch's `DataLoader`, which
# makes batches, can give it to **workers**: here, processes of their own. With 0 workers the notebook decodes.
#
# **Predict.** For packed photos, which number of workers is the fastest?

# %%
course.predict(
    "workers",
    answer=...,  # "a", "b", "c" or "d"
    choices={"a": "0", "b": "1", "c": "2", "d": "no clear difference"},
)

# %% tags=["figure:03_workers"]
sets = {
    "one file each": photos.PhotoFiles(paths),
    "packed": photos.PackedPhotos(packed, count),
}
took = {w: {n: reading_speed.time_workers(sets[w], n) for n in (0, 1, 2)} for w in sets}
packed_times = took["packed"]
best = min(packed_times, key=lambda n: packed_times[n].median)
slowest = packed_times[best].high  # a winner is clear where no other comes near
clear = all(packed_times[n].low > slowest for n in packed_times if n != best)
busy = is_busy(each.values for each in packed_times.values())
course.measured("workers", busy=busy, answer="abc"[best] if clear else "d")

bars = {w: {f"workers: {n}": took[w][n] for n in took[w]} for w in took}
found = sentences.workers_sentence(took, cores)
course.draw.measured_bars(bars, f"Read and decode {count} photos", found)

# %% [markdown]
# Nobody shares an open file here: each worker opens the packed file for itself. So do ranks. Two ranks read at the same
# time, each in its own order:

# %%
ranks = course.start(2)


def read_all(comm, path, count):
    order = torch.randperm(count, generator=torch.Generator().manual_seed(comm.rank))
    photos_read = {index: read_sample(path, index) for index in order.tolist()}
    return [photos_read[index] for index in range(count)]


run = ranks.run(read_all, packed, count)
assert run.results == [jpegs, jpegs]
print(f"both ranks have read all {count}, and all are right")

# %% [markdown]
# What if somebody interrupts a copy? A file format shows its worth on the day something breaks:

# %%
packed.write_bytes(packed.read_bytes()[:-1000])
print("sample 0 is whole:", read_sample(packed, 0) == jpegs[0])
try:
    read_sample(packed, count - 1)
except ValueError as error:
    print(str(error).replace(folder.name, "…"))

# %% [markdown]
# Half a photo is never handed out as a whole one. (Your last two exercises: `pack_samples` and `read_sample`, on
# [this page](../exercises/03_hardware.ipynb).)

# %% [markdown]
# ## What you take with you
#
# You can **measure** a machine: medians of several runs, with their spread. You can **predict** a layer's time: the
# larger of arithmetic and bytes. You can **say** what stops helping: threads beyond the cores you may use, workers
# beyond $W/D$ or beyond what decoding needs, files in great number.
#
# Next: [lesson 4](04_messages.ipynb). How do processes talk?

# %%
folder.cleanup()
ranks.stop()
