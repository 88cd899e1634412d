# What lesson 3 leaves out of its page. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: what limits one machine?
#
# You have bought a faster GPU, and the training is as slow as before. The GPU is idle for most of each step, because
# the images don't arrive in time. They are in 50,000 small files, and each of them has to be opened, read and decoded
# by a single core. On the [first page](03_hardware.ipynb) the processor waited for the memory. Here you will see who
# else may have to wait for whom: the memory for lines that nobody needs, a layer for a clumsy program, and a network
# for its images.
#
# Everything here is optional, and nothing later depends on it. Run the first code cell. After that you can go to any
# section you like. Only *Who decodes the photos?* and *Two ranks, one file* need the files that *Many small files or a
# single large one* has written.
#
# 1. *What the memory really moves*: lines that are fetched only to be overwritten
# 2. *The same numbers in a different order*: why pooling is slow
# 3. *The same arithmetic in a different library*
# 4. *How deep is a network?*
# 5. *Many small files or a single large one*
# 6. *Who decodes the photos?*
# 7. *Two ranks, one file*, and a copy that broke off
# 8. *Two reports, redone*: the figures of three students, and a bound that is too low
#
# *45 minutes · optional, after [lesson 3](03_hardware.ipynb) · 2 ranks in section 7*

# %%
from pathlib import Path

import course_utils as course
from course_utils.machine import allowed_cores
from course_utils.measuring import Measured, compare, is_busy, unless_busy

# before torch, so that torch's threads sleep while they wait instead of using up a core
from course_utils.lessons.hardware import layer_costs, machine_rates, photos, pictures
from course_utils.lessons.hardware import reading_speed, sentences, step_shares
from course_utils.vgg import vgg11
import torch

cores = allowed_cores()
torch.set_num_threads(cores)
batch = 32
model = vgg11(seed=0)
images = torch.randn(batch, 3, 32, 32)

# %% [markdown]
# ## What the memory really moves
#
# On the first page we added two arrays into a third, and counted three numbers for each result: two that are read and
# one that is written. This is what the program asks for. The hardware may move more than that.
#
# Memory and cache exchange numbers in **lines**, usually of 64 bytes. When a program writes a number, the processor
# changes it in the cache first. Many processors fetch the whole line into the cache before that, even if the program
# will overwrite all of it. This is called **write-allocate**. It means that a fourth number moves for each result of
# our sum, the old value of the result, which nobody needs.
#
# How could we find out? There is a sum for which we know the answer. The statement `left += right` overwrites lines
# that it has just read, so it moves exactly three numbers for each result, on any processor. We measure by turns how
# long this sum takes, how long the sum into a third array takes, and how long it takes to copy an array. If the sum
# into a third array needs 4/3 of the time of `left += right`, then it moves four numbers.
#
# **Predict.** How many numbers move for each result when two arrays are added into a third? And how many when one array
# is copied into another?

# %%
course.predict("moved", within=1.15, sum=..., copy=...)

# %%
moved = machine_rates.numbers_moved()
busy = is_busy(measured.values for measured in moved.values())
course.measured("moved", busy=busy, sum=moved["sum"].median, copy=moved["copy"].median)
print(sentences.moved_sentence(moved))

# %% [markdown]
# The first page counted three numbers for each sum, as the benchmark STREAM does (McCalpin 1995, [*Memory bandwidth and
# machine balance*](https://www.cs.virginia.edu/stream/)). If your processor moves four, its memory is a third faster
# than we said, and the slope of the roofline lies a third too low. Some programs avoid the extra fetch with special
# instructions that write past the cache. They pay off only if nobody reads the results soon.
#
# ## The same numbers in a different order
#
# On the first page you may have seen that pooling lies far below its roof. It reads a number, compares it with three
# others, and moves on, so its arithmetic can't be what takes the time, and a dot far below the slope means that the
# memory isn't either. What remains is the program, and it depends on the order in which the numbers are stored.
#
# Usually torch stores an image channel by channel. First come all the pixels of channel 0, then those of channel 1, and
# so on. To pool 2 × 2 pixels, a program has to pick two neighbours from one row and two from the next. But one can also
# store the image pixel by pixel, with all the channels of a pixel side by side, which torch calls `channels_last`. Then
# the four pixels of a window are four long stretches of numbers, one for each pixel, and a modern core can compare 8 or
# 16 pairs of neighbouring numbers with a single instruction. Let's compare the two orders, by turns:

# %% tags=["figure:03_pooling"]
pool, x = torch.nn.MaxPool2d(2), torch.randn(batch, 64, 32, 32)
side_by_side = x.to(memory_format=torch.channels_last)
names = "side by side", "channel by channel"
with torch.no_grad():
    pair = compare(lambda: pool(side_by_side), lambda: pool(x), names=names)
found = sentences.pooling_sentence(pair)
course.draw.measured_bars({"2 × 2 pooling": pair.bars}, pair.title, found)

# %% [markdown]
# This is what a roofline is good for. It can't tell you *how* to make a program faster, but it tells you which one is
# worth the effort.
#
# ## The same arithmetic in a different library
#
# torch leaves most of the arithmetic to libraries that know the processor well. On a CPU, convolutions go to oneDNN, if
# it is there. Without it, torch copies the windows of the image into a matrix and multiplies that. Both ways do the
# same arithmetic. Here is the fourth convolution of VGG-11 with oneDNN and without it, by turns:

# %%
conv4, x = model.conv4, torch.randn(batch, 256, 8, 8)


def with_matrices():
    with machine_rates.without_onednn():
        return conv4(x)


with torch.no_grad():
    assert torch.allclose(conv4(x), with_matrices(), atol=1e-4)
    names = "the convolution of oneDNN", "a product of matrices"
    pair = compare(lambda: conv4(x), with_matrices, names=names, rounds=5)
course.draw.measured_bars({"conv4, forward": pair.bars}, pair.title)

# %% [markdown]
# So before you look for a faster machine, make sure that your programs use the libraries that it has. On a cluster they
# often have to be loaded or compiled for its processors.
#
# ## How deep is a network?
#
# The first page claimed that VGG-11 has enough tasks for millions of workers. Let's count them. Each number in a
# convolution's output is a sum of $k$ products, where $k$ is the number of input channels times the pixels of the
# window. All the products can be computed at the same time, in a single step. To add them up as a tree takes
# $\lceil\log_2 k\rceil$ more steps. conv1 has 3 input channels and a window of 3 × 3, so $k$ is 27. Its depth is
# therefore 1 + 5 = 6, however many images and pixels there are.
#
# Backward there are two products. The gradient of an input is a sum over the output channels and the window. The
# gradient of a *weight* is a sum over all the images and pixels at which this weight was used. In conv1 these are 32 ×
# 32 × 32 terms, so its depth is 1 + 15 = 16. The work of a layer is the number of its additions and multiplications,
# and the depths of layers that run one after the other add up:

# %% tags=["nbval-check-output", "here:03_work_and_depth"]
for direction in ("forward", "backward"):
    table = layer_costs.work_and_depth(model, images, backward=direction == "backward")
    table.append(("all", sum(row[1] for row in table), sum(row[2] for row in table)))
    print(f"{direction:8} {'work':>14} {'depth':>6} {'W/D':>11}")
    for name, work, depth in table:
        if name in ("conv1", "norm1", "conv6", "linear", "all"):
            print(f"{name:8} {work:14,} {depth:6} {work / depth:11,.0f}")

# %% [markdown]
# $W/D$ is the number of workers that could be kept busy, and for the whole network it is in the tens of millions. The
# counting follows Ben-Nun and Hoefler ([2018](https://arxiv.org/abs/1802.09941)), whose survey has a table like this
# for all common layers. A student report of 2019 has one, too (figure 6). There the depth of a convolution's weight
# gradient is log K + log K + log C_in, so it depends on the window and the input channels. That must be a misprint,
# because the sum goes over images and pixels.
#
# ## Many small files or a single large one
#
# Now for the images themselves. The slides of SURF, which runs the Dutch national supercomputer, warn against reading
# many small files. One should pack the samples together into a few large files. What does that gain?
#
# Here are 600 photos of handwritten digits, each in its own file. A disk hands out its space in whole *blocks*, so a
# small file takes up more of it than it has bytes:

# %%
folder = photos.working_folder()  # next to the course's data; deleted at the end
count = 600
jpegs = photos.jpeg_digits(count)
paths = photos.write_photos(jpegs, Path(folder.name))
print(f"{count} files, {sum(map(len, jpegs)):,} bytes")
print(f"{photos.disk_bytes(paths):,} bytes of disk, in whole blocks")

# %% [markdown]
# And here are the same photos in a single file. It begins with an **index**, which is the number of photos and then the
# position of each, so that a program can jump to any of them. `b"cat"`, `b"goose"` and `b"ox"`, for example, become a
# file of 50 bytes:

# %% tags=["figure:03_packed_file"]
pictures.packed_file([b"cat", b"goose", b"ox"])

# %%
from course_utils.lessons.hardware import pack_samples, read_sample

packed = Path(folder.name) / "photos.packed"
pack_samples(jpegs, packed)
assert read_sample(packed, 123) == jpegs[123]
print(f"{photos.disk_bytes([packed]):,} bytes of disk")

# %% [markdown]
# (You can write `pack_samples` and `read_sample` yourself. They are the last two
# [exercises](../exercises/03_hardware.ipynb).)
#
# Linux keeps files that were read or written in memory, as long as there is room. If you read such a file again, it is
# **warm**, and nothing comes from the disk. A training run usually begins with files that are **cold**. So before each
# round we ask the system to forget the files. Then the system's own counter tells us whether the bytes really came from
# the disk.
#
# **Predict.** The files are cold, and we read all photos in a random order. How many times longer does it take to read
# the single files than to read the packed one?

# %%
course.predict("files", within=1.5, times_longer=...)

# %% tags=["figure:03_cold_and_warm"]
read = photos.readers(paths, packed)  # a function for each kind of storage
files = {"one file each": paths, "packed": [packed]}
cold, warm = {}, {}
for storage in read:
    arguments = read[storage], count, files[storage]
    cold[storage] = reading_speed.time_reading(*arguments, cold=True)
    warm[storage] = reading_speed.time_reading(*arguments, cold=False)

if all(reading.cold for reading in cold.values()):
    ratio = cold["one file each"].seconds.median / cold["packed"].seconds.median
    busy = is_busy(reading.seconds.values for reading in cold.values())
    course.measured("files", busy=busy, times_longer=ratio)
bars = reading_speed.groups(cold, warm)
found = sentences.reading_sentence(cold, warm)
course.draw.measured_bars(bars, f"{count} photos in a random order", found)

# %% [markdown]
# The result depends on your disk. On a cluster's shared file system it may be quite different, because there, opening a
# file means asking a server across the network, and all jobs ask the same servers. It's worth repeating the measurement
# in such a place.
#
# ## Who decodes the photos?
#
# When a photo has been read, it is still a JPEG. It has to be **decoded** from there into pixels, which takes a core
# some time. torch's `DataLoader`, which puts batches together, can leave this to **workers**. Here these are separate
# processes, which read and decode photos while the notebook does something else. With 0 workers the notebook has to do
# it itself.
#
# Suppose that decoding takes 1 ms, and handing a decoded photo over from a worker takes 0.2 ms. Then 600 photos take
# the notebook 600 ms. One worker needs 600 ms for decoding, too, so nothing is gained as long as the notebook only
# waits for it. With two workers, each decodes 300 photos. That takes 300 ms on two free cores, and the notebook needs
# 120 ms to receive the photos, some of them at the same time.
#
# **Predict.** Which number of workers will be the fastest here, for the packed photos?

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
took = {}
for storage, dataset in sets.items():
    took[storage] = {}
    for workers in (0, 1, 2):
        took[storage][workers] = reading_speed.time_workers(dataset, workers)

seconds = took["packed"]
best = min(seconds, key=lambda workers: seconds[workers].median)
others = [seconds[workers] for workers in seconds if workers != best]
clear = all(other.low > seconds[best].high for other in others)
busy = is_busy(measured.values for measured in seconds.values())
course.measured("workers", busy=busy, answer="abc"[best] if clear else "d")

bars = {
    storage: {f"workers: {workers}": value for workers, value in times.items()}
    for storage, times in took.items()
}
found = sentences.workers_sentence(took, cores)
course.draw.measured_bars(bars, f"Read and decode {count} photos", found)

# %% [markdown]
# In this measurement the notebook has nothing else to do. In a training it computes in the meantime, and then even a
# single worker can hide all the reading and decoding behind it, provided that it has a core of its own and decodes a
# batch faster than the network can use it up.
#
# ## Two ranks, one file
#
# An open file has a position, from which the next bytes are read. If two processes shared an open file, each would move
# the position of the other. `read_sample` avoids that by opening the file itself, every time. So two ranks can read
# from the same file at once, each in its own order:

# %%
ranks = course.start(2)


def read_all(comm, path, count):
    order = torch.randperm(count, generator=torch.Generator().manual_seed(comm.rank))
    photos_read = {index: read_sample(path, index) for index in order.tolist()}
    return [photos_read[index] for index in range(count)]


run = ranks.run(read_all, packed, count)
assert run.results == [jpegs, jpegs]
print(f"both ranks have read all {count} photos, and all of them are right")

# %% [markdown]
# And what if someone has interrupted a copy of the file? We cut off its last 1,000 bytes:

# %%
broken = Path(folder.name) / "broken.packed"
broken.write_bytes(packed.read_bytes()[:-1000])
print("sample 0 is whole:", read_sample(broken, 0) == jpegs[0])
try:
    read_sample(broken, count - 1)
except ValueError as error:
    print(str(error).replace(folder.name, "…"))

# %% [markdown]
# `read_sample` compares the end of the sample with the length of the file, so it never hands out half a photo as if it
# were a whole one. Without that check, you might train for days with photos whose lower half is missing.

# %%
folder.cleanup()
ranks.stop()

# %% [markdown]
# ## Two reports, redone
#
# Two documents by students accompany this course, and [docs/sources.md](../docs/sources.md) lists all that we took from
# them. In 2020 three students of the course CS744 in Wisconsin measured how long VGG-11 takes to train on CIFAR-10.
# Their first figure shows *iterations*, as they call 20 batches in a row, and splits the time of each into forward,
# backward and step. Ours have 2 batches each:

# %% tags=["here:03_iterations"]
training = step_shares.time_training(model, iterations=10, passes=2, batch=batch)
print(sentences.shares_sentence(training))
ratio = training.ratio().median
title = f"Backward takes {ratio:.1f} times as long as forward, in the median"
busy = is_busy([training.epoch().values])
course.draw.stacked_bars(training.bars, unless_busy(busy, title), "")

# %% [markdown]
# They found that the backward pass takes the most time, and that it varies little from one iteration to the next.
#
# ### One processor, two figures
#
# From our iterations we can calculate how long a whole epoch of 50,000 images would take. Next to it are the figures of
# the report. They are hatched, because we haven't measured them:

# %% tags=["here:03_epoch"]
here = {"CPU": training.epoch()}
if torch.cuda.is_available():
    on_gpu = step_shares.time_training(vgg11(seed=0), batch=256, device="cuda")
    here["GPU"] = on_gpu.epoch()
bars = step_shares.epoch_bars(here, cores)
found = sentences.epoch_sentence(here, cores)
title = "An epoch of VGG-11 (here: calculated from a few batches)"
course.draw.measured_bars(bars, title, found, published=[step_shares.REPORT])

# %% [markdown]
# The report contradicts itself here. According to its text the GPU takes 15 seconds, and the CPU 20 times as long,
# which makes 300 seconds. But according to its first table, training on a single node takes 437 seconds. It doesn't
# explain why. The second figure comes from a different program, which uses DDP (lesson 7), and from a virtual machine
# with five cores, while the first is for a server with 5 threads and a PC with 8. So the processors probably differed,
# and a comparison between the two figures tells us little. What would have helped is to state the processor, the number
# of threads, the batch size and the version of torch next to every time.
#
# ### More threads than cores
#
# Their second figure goes from 1 to 9 threads on 5 cores. Beyond 5 threads they gained little more. The report also
# mentions **hyperthreading**, with which a core pretends to be two. It keeps the state of two threads, and while one of
# them waits for memory, the other can use the core's multipliers. A program that keeps the multipliers busy anyway
# gains nothing. On the first page you measured VGG-11 with half its width, so you have an idea of what will happen with
# the whole network.
#
# **Predict.** With twice as many threads as cores, the forward and backward pass are…

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

# %%
import psutil

from course_utils.lessons.hardware import threads


def forward_and_backward():
    model(images).sum().backward()


times = threads.time_threads(forward_and_backward, [cores, 2 * cores])
busy = is_busy(measured.values for measured in times.values())
course.measured("threads", busy=busy, answer=sentences.threads_answer(times, cores))
logical, physical = psutil.cpu_count(), psutil.cpu_count(logical=False)
print(sentences.hyperthreads_sentence(times, cores, logical, physical))

# %% [markdown]
# ### A bound that is too low
#
# The second report (Witwatersrand, 2019) contains the two bounds of the first page, but with min$(W/p, D)$ as the lower
# bound. It isn't wrong to say that $T_p$ is at least the smaller of the two. But both conditions hold at the same time,
# so $T_p$ is at least the *larger* one, and the smaller one can be far too low. Here are both for 32 numbers and 16
# workers:

# %% tags=["nbval-check-output", "here:03_chain_and_tree"]
from course_utils.lessons.hardware import brent_bounds, chain_sum, run_graph, tree_sum

for name, graph in {"chain": chain_sum(32), "tree": tree_sum(32)}.items():
    low, high = brent_bounds(graph, processors=16)
    depth, _ = brent_bounds(graph, processors=1000)  # with enough workers, D is left
    smaller = min(len(graph) / 16, depth)
    print(
        f"{name}: at least {low:.1f} and at most {high:.1f}; min(W/p, D) is {smaller:.1f}"
    )

# %% [markdown]
# For the chain the smaller of the two promises that 16 workers could be done after 2 units of time, although there are
# 31 additions, each of which has to wait for the one before. Let's run the tree once more. The smaller bound is the
# dashed line:

# %% tags=["here:03_min_bound"]
tree, unit = tree_sum(32), 0.008
measured, bounds = {}, {}
for p in (1, 2, 4, 8, 16):
    measured[p] = Measured(tuple(run_graph(tree, p, unit) / unit for _ in range(3)))
    bounds[p] = brent_bounds(tree, p)
printed = {"min(W/p, D)": [min(31 / p, 5) for p in bounds]}
found = sentences.brent_sentence(bounds, {p: measured[p].median for p in measured})
title = "The times follow the larger of W/p and D, not the smaller"
upper = [bounds[p][1] for p in measured]
busy = is_busy([measured[p].values for p in measured], planned=upper)
pictures.between_bounds(measured, bounds, printed, unless_busy(busy, title), found)

# %% [markdown]
# ## What you can do now
#
# You can find out how many numbers your memory really moves, and you know that the order of numbers and the choice of a
# library can matter more than the hardware. You can pack samples into a file that several processes read at once, and
# you know how to measure whether that pays off on your disk. And when two published times disagree, you know which
# questions to ask.
#
# **To read**
#
# - McCalpin 1995, [*Memory bandwidth and machine balance in current high performance
#   computers*](https://www.cs.virginia.edu/stream/): the benchmark STREAM, with results of thirty years of machines
# - Ben-Nun and Hoefler 2018, [*Demystifying parallel and distributed deep learning*](https://arxiv.org/abs/1802.09941):
#   work and depth of all common layers
# - Hoefler and Belli 2015, [*Scientific benchmarking of parallel computing
#   systems*](https://doi.org/10.1145/2807591.2807644): twelve rules for reporting times
