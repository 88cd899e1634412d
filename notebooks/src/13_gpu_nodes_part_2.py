# The lesson on nodes with GPUs, part 2. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How fast are one GPU and its network?
#
# A training run can work perfectly and still waste most of a cluster. We trained a convolutional network on an H100 and
# recorded how fast it went. With full `float32` arithmetic, the GPU trained on 19,800 images per second. We then made
# seven changes to the program, and it processed 200,000 of these images per second, ten times as many. One of the
# seven, TF32 in convolutions, is PyTorch's default, and from there the gain is still a factor of three. The network
# between the GPUs can waste just as much. If the fast path between two GPUs is missing, NCCL, NVIDIA's communication
# library, quietly takes a slower one. Neither problem produces an error message.
#
# In this part you will measure a network so that you can compare the result with its data sheet, and find out from
# NCCL's log which path the messages take. Then you will see what makes training on one GPU ten times faster, why some
# networks use a GPU better than others, and how accurate a matrix product is when each number has only eight bits.
#
# *50 minutes · builds on [lesson 13, part 1](13_gpu_nodes.ipynb) · 4 ranks*

# %%
import time
from statistics import median

import torch
import torch.distributed as dist

import course_utils as course
from course_utils.measuring import is_busy

ranks = course.start(4, link="100 Mbit/s")
ranks.load_torch()

# %% [markdown]
# ## A bandwidth that doesn't depend on the number of ranks
#
# You bought a network whose links carry 12.5 MB per second, which is 100 Mbit/s. Now two ranks sum vectors of 400 KB,
# and an all-reduce takes 32 ms. Is that as fast as it should be?
#
# The obvious figure is the number of bytes in the vector divided by the time. It is called the **algorithm bandwidth**,
# and here it is 0.4 MB ÷ 0.032 s = 12.5 MB/s. In lesson 5 you saw that in a ring of $P$ ranks every rank sends
# $\frac{2(P-1)}{P}$ times the vector. With two ranks this factor is 1, so each link carries 12.5 MB/s. So yes, it is as
# fast as it should be. But with eight ranks the factor is 1.75. The same links then need 56 ms, and the algorithm
# bandwidth falls to 7.1 MB/s, although every link is still busy all the time.
#
# If we multiply the algorithm bandwidth by this factor, we get the rate at which bytes pass through each link. This is
# the **bus bandwidth**. With $n$ bytes and $t$ seconds it is
#
# $$\frac{n}{t} \cdot \frac{2(P-1)}{P}.$$
#
# With eight ranks it is 7.1 × 1.75 = 12.5 MB/s again.
#
# **Predict.** Four ranks have links of 12.5 MB/s. What algorithm and bus bandwidths will an all-reduce reach if only
# the links slow it down? A run is a little slower, so a prediction within 25% of it counts.

# %%
course.predict("links", within=1.25, algorithm=..., bus=...)  # MB/s

# %% [markdown]
# To measure this, all ranks first wait for each other at a barrier, and then each times its own call. The slowest rank
# counts, because a training step has to wait for it. If the machine is so busy that the times scatter, nothing is
# judged. On GPUs, a call to NCCL returns as soon as the operation has been *handed over* to the GPU, so there
# `synchronize` waits until the GPU has finished.
#
# The ranks first meet over gloo, hence `backend="gloo"` below. If each of them has a GPU of its own, `process_group`
# adds NCCL. With four ranks and a single GPU it doesn't. Its `group.gradients` is the group in which a training run
# would add up gradients.

# %%
from course_utils.lessons.gpu_nodes import process_group


def time_all_reduce(sizes, runs=5):
    taken = []
    with process_group() as group:
        for n in sizes:
            vector = torch.zeros(n // 4, device=group.device)  # 4 bytes each
            times = []
            for _ in range(runs + 2):
                dist.barrier()
                began = time.perf_counter()
                dist.all_reduce(vector, group=group.gradients)
                if group.backend == "nccl":
                    torch.cuda.synchronize()
                times.append(time.perf_counter() - began)
            taken.append(times[2:])  # the first two calls set up connections
        return group.backend, taken


# %%
from course_utils.lessons.allreduce import algorithm_bandwidth, bus_bandwidth

n, world_sizes = 400_000, [2, 3, 4]
algorithm, bus = [], []
for P in world_sizes:
    run = ranks.run(time_all_reduce, [n], ranks=P, backend="gloo")
    backend = run.results[0][0]
    of_ranks = [taken[0] for _, taken in run.results]
    slowest = [max(times) for times in zip(*of_ranks)]  # of each run
    algorithm.append([algorithm_bandwidth(n, t) for t in slowest])
    bus.append([bus_bandwidth("all_reduce", P, n, t) for t in slowest])

busy = is_busy(algorithm)  # do the runs scatter too much to compare them?
on_4 = {"algorithm": median(algorithm[-1]) / 1e6, "bus": median(bus[-1]) / 1e6}
linked = ranks.facts["network"] and backend == "gloo"  # are there links of 12.5 MB/s?
if linked:
    course.measured("links", busy=busy, **on_4)
else:
    course.answer("links", algorithm=12.5 * P / (2 * (P - 1)), bus=12.5)  # the formula
    print(f"Your ranks have no links of 12.5 MB/s. They reach {on_4['bus']:,.0f} MB/s.")

# %% [markdown]
# The next cell only draws the picture. The lines are the formula, with the rate of the links, and the dots are this
# run. With two ranks the factor is 1, so one dot covers the other. With four ranks the formula gives 12.5 ÷ 1.5 = 8.3
# MB/s for the algorithm bandwidth.

# %% tags=["figure:13_bandwidths"]
from course_utils.lessons.gpu_nodes import bandwidth_text, link_text


def megabytes(rate):
    return f"{rate / 1e6:.3g} MB"


link = 12.5e6 if linked else None
rate = link or max(map(max, bus))  # without a known link, the best that we measured
points = {"algorithm bandwidth": algorithm, "bus bandwidth": bus}
lines = {"algorithm bandwidth": [rate * P / (2 * (P - 1)) for P in world_sizes]}
lines["bus bandwidth"] = [rate] * 3
axes = {"across": "ranks", "up": "bytes per second", "unit": megabytes}
title = bandwidth_text(world_sizes, algorithm, bus)
finding = link_text(backend, n, P, bus[-1], link)
course.draw.over_numbers(world_sizes, points, title, finding, predicted=lines, **axes)

# %% [markdown]
# If the dots of the bus bandwidth are about equally high with 2, 3 and 4 ranks, the links are used equally well with
# any number of ranks. The program that people use on real clusters is NVIDIA's
# [nccl-tests](https://github.com/NVIDIA/nccl-tests). It prints both figures, as `algbw` and `busbw`, for a range of
# sizes and for all collectives.
#
# With the bus bandwidth of a cluster you can predict times. Suppose that nccl-tests reports 40 GB/s, and that eight
# ranks add up a gradient of 14 GB, which is 7 billion numbers of 2 bytes. Then the time is $\frac{14}{40} \cdot \frac{2
# \cdot 7}{8} = 0.61$ s.
#
# In one case the bus bandwidth isn't the rate of any link. On a node with eight H100s, the switches between the GPUs
# can add (lesson 5). An all-reduce then sends fewer bytes than the formula assumes, and its `busbw` may even be higher
# than the rate of a GPU's connection.
#
# ## With small vectors you measure latency
#
# So far, every vector was 400 KB long. The next cell repeats the measurement for sizes from 1 KB to 4 MB, or over NCCL
# to 262 MB, and for the all-gather as well. It uses `collective_seconds`, which contains the same loop. The size of an
# all-gather is that of the gathered vector, which every rank has at the end. Every rank sends $\frac{P-1}{P}$ of this
# vector, half as much as in an all-reduce. Each line in the picture shows the model of lesson 4, $t = \alpha + \beta
# n$, where $\alpha$ is the latency and $\beta$ the seconds per byte. Here $\alpha$ comes from the smallest vector, so
# the first dot lies on its line whatever we measure. And $\beta$ comes from the rate of the link or, if that isn't
# known, from the fastest run.

# %% tags=["figure:13_sizes"]
from course_utils.lessons.gpu_nodes import allowed_rates, collective_seconds, sweep_text
from course_utils.words import bytes_text, percent

operations = ["all_reduce", "all_gather"]
KB, repeat = [1, 8, 64, 512, 4096], {"runs": 3, "warm_ups": 1}
if backend == "nccl":  # GPUs are fast, so take larger vectors and more calls
    KB += [32_768, 262_144]
    repeat = {"runs": 3, "warm_ups": 5, "calls": 20}
sizes = [1000 * size for size in KB]
run = ranks.run(collective_seconds, sizes, operations, **repeat, backend="gloo")
taken = run.results[0][1]  # collective → for each size, the seconds of all runs

P, rates = ranks.world_size, {}
for name in operations:
    pairs = zip(sizes, taken[name])
    rates[name] = [[bus_bandwidth(name, P, n, t) for t in runs] for n, runs in pairs]
rate = link or max(max(map(max, runs)) for runs in rates.values())
allowed = {name: allowed_rates(name, P, sizes, taken[name], rate) for name in operations}
axes = {
    "across": "vector, in KB",
    "up": "bus bandwidth, in bytes per second",
    "unit": bytes_text,
}
title, finding = sweep_text(sizes, rates, backend, P)
course.draw.over_numbers(KB, rates, title, finding, predicted=allowed, log=True, **axes)

# %% [markdown]
# With a small vector, nearly all the time is latency. If gradients were sent one tensor at a time, the many small ones,
# such as biases, would be on the left of this picture, and this is why DDP collects them in buckets (lesson 7). Judge a
# link by the vectors on the right. Dots may lie above or below their lines, because a line depends on a latency
# measured with a single size. And our emulated links let the first 32 KB of a message pass without delay, so the dots
# at 64 KB may even be above the rate of a link.
#
# ## NCCL's log tells you which path it took
#
# Two GPUs can exchange data in several ways, and NCCL picks the fastest that it finds:
#
# - **NVLink** is a direct connection between the GPUs of a node, which bypasses the CPUs. If there is none, GPUs may
#   still be able to reach each other directly over PCIe, the slower bus that connects them with the CPUs.
# - Processes on the same node can pass data through host memory, which they all share.
# - **InfiniBand** is a fast network between nodes. With **GPUDirect RDMA**, its cards read and write the memory of the
#   GPUs directly. Without it, every byte takes a detour through host memory.
# - TCP works on any network. A program reaches it through *sockets*, and every byte passes through the CPUs.
#
# NCCL doesn't complain if the best path is missing. But if you set the environment variable `NCCL_DEBUG=INFO` in the
# shell or the batch script that starts your program, NCCL prints what it found, and you find the path in the lines that
# contain `via`. Between two nodes of a good cluster they end with `via NET/IB/0/GDRDMA`, for example. This means that
# the messages go over the network, through InfiniBand card number 0, and with GPUDirect RDMA. Here are the lines that
# matter from the log of a real run with two ranks.

# %%
from course_utils.lessons.gpu_nodes import lines_that_matter, nccl_start, ways
from course_utils.words import wrapped

start = nccl_start()
print(wrapped(start.origin), "", *lines_that_matter(start.log), sep="\n")

# %% [markdown]
# **Predict.** Which path do the messages of these two ranks take, according to this log?

# %%
choices = {
    "a": "NVLink or PCIe, from GPU to GPU",
    "b": "host memory",
    "c": "InfiniBand",
    "d": "TCP, through the CPUs",
}
course.predict("nccl_path", answer=..., choices=choices)  # "a" to "d"

# %%
course.answer("nccl_path", answer=ways(start.log))

# %% [markdown]
# The answer is in the words after `via`, and `GDR 0` in the last lines confirms that there is no GPUDirect RDMA. On a
# cluster you may find these:
#
# | after `via` | path | what it means for you |
# |---|---|---|
# | `P2P/…` | GPU to GPU, over NVLink or PCIe | good, inside a node, unless it is PCIe although there is NVLink |
# | `SHM/…` | host memory | slower, inside a node |
# | `NET/IB/0/GDRDMA` | InfiniBand, straight from GPU memory | good, between nodes |
# | `NET/IB/0` | InfiniBand, with the detour through host memory | often too slow: ask why GPUDirect RDMA is off |
# | `NET/Socket/0` | TCP | between nodes that have InfiniBand, something is wrong |
# | `NET/Libfabric/0/GDRDMA` | a plugin, here Amazon's network EFA | good, between nodes in this cloud |
#
# `NET/IB` also stands for RDMA over Ethernet. If switches carry out an all-reduce, look for lines with `NVLS`.
#
# In our log, TCP is no mistake. We had a single GPU for two ranks, and NCCL 2.28.9 stops with an error if two ranks of
# one node share a GPU. So each rank was made to pretend that it was a node of its own, which is why `nNodes` is 2, and
# all faster paths were switched off. In your own logs, `nNodes` should be the number of nodes that you use.
# [Further](13_gpu_nodes_further.ipynb) shows how to find out which path is physically there, explains the settings for
# several network cards, and starts nccl-tests on two nodes.
#
# ## One GPU, made ten times faster
#
# Now let's leave the network and turn to a single GPU. How much of its power does a program use? For each small image,
# a training step of VGG-11 (lesson 3) takes 0.913 billion floating-point operations. According to NVIDIA's [data
# sheet](https://www.nvidia.com/en-us/data-center/h100/), an H100 does 989 TFLOP/s in matrix products of 2-byte numbers.
# The page itself prints twice this figure, because it counts sparse matrices. At 989 TFLOP/s, it could train on 989,000
# ÷ 0.913 = 1.08 million images per second. The first program reaches 19,800, so it uses 0.0198 ÷ 1.08 = 1.8% of the
# peak. This share is called **model FLOPs utilization** or **MFU**. But the first program computes with `float32`, for
# which the data sheet promises only 67 TFLOP/s. Of these it uses 27%. And even in a product of two large matrices, we
# measured no more than 786 TFLOP/s.
#
# We made changes to this program, one after another. Think of them as the rungs of a ladder, each of which keeps all
# the changes above it in this table:
#
# | rung | what changes |
# |---|---|
# | float32 without TF32 | the starting point, where each step copies its 512 images to the GPU |
# | pinned memory (lesson 14) | the GPU can read the images in host memory by itself, while the program carries on |
# | data on the GPU | the images are in GPU memory from the beginning |
# | **TF32** | products and convolutions of `float32` numbers keep 10 of the 23 digits after the binary point |
# | **bfloat16** | products and convolutions take numbers of 16 bits |
# | channels last | the channels of a pixel are next to each other in memory |
# | **torch.compile** | several operations become a single **kernel**, which is a program that the GPU runs |
# | **CUDA graph** | the kernels of a whole step are recorded once and launched with one call instead of hundreds |
# | larger batch | each step has 4,096 images instead of 512 |
#
# For the first three rungs we had to switch TF32 *off*, because PyTorch allows it in convolutions by default, and
# VGG-11 consists mainly of convolutions. So a program that leaves this setting alone is near the rung *TF32* already.
# In matrix products outside convolutions TF32 is off by default, and `torch.set_float32_matmul_precision("high")`
# switches it on.
#
# On the recorded H100, the rung *CUDA graph* reaches 200,000 images per second.
#
# **Predict.** What is its MFU, in percent?

# %%
course.predict("ladder_mfu", within=1.1, mfu=...)  # percent

# %%
from course_utils.lessons.gpu_nodes import recorded_climb

recorded = recorded_climb()
course.answer("ladder_mfu", mfu=100 * recorded.mfu()["+ CUDA graph"].median)

# %% [markdown]
# If this computer has a GPU, the next cell climbs all nine rungs on it. This takes a minute or two, most of it spent
# compiling. Without a GPU you will see the recording from the H100. The recording stops one rung short. We recorded the
# last rung, and the one before it again, on an H200, which has the same processors and faster memory. In the table, *of
# the peak* means the MFU, and *of a product* means the share of the rate that a large matrix product reaches on the
# same GPU. On your own GPU this product is measured by turns (lesson 3) with the rungs, because a GPU changes its clock
# as it warms up.

# %% tags=["figure:13_ladder"]
from course_utils.lessons.gpu_nodes import climb_here, gains_text, larger_batch_text
from course_utils.lessons.gpu_nodes import gpu_name, ladder_bars, ladder_table
from course_utils.lessons.gpu_nodes import ladder_text, peak_text, rate_text
from course_utils.lessons.gpu_nodes import recorded_batches

climbed = climb_here()
other = None if "+ larger batch" in climbed.seconds else recorded_batches()
print(ladder_table(climbed), "", wrapped(gains_text(climbed)), sep="\n")
print(wrapped(larger_batch_text(other or climbed)))
course.draw.measured_bars(
    ladder_bars(climbed, other),
    ladder_text(climbed),
    f"{climbed.origin}. {peak_text(climbed)}",
    published=[gpu_name(other)] if other else [],
    source=f"recorded on {other.date}" if other else "",
    x="images per second",
    say=rate_text,
)

# %% [markdown]
# The lines between the table and the picture describe the measurements that you see, whether they are yours or ours.
# What a rung gains depends on the rungs before it. Even if the spreads of two rungs overlap, one may be slower in every
# round.
#
# Why can a CUDA graph gain anything? Apart from a few small copies, it runs the same kernels as the rung before it, so
# the arithmetic is the same. But without a graph, Python launches one kernel after another. If the GPU finishes its
# kernels faster than Python can launch the next ones, it is idle in between, and faster kernels are of no use to a GPU
# that is waiting for **kernel launches**. Lesson 14 shows this waiting in a picture.
#
# The rung *bfloat16* needs one line in a program:
#
# ```python
# with torch.autocast("cuda", torch.bfloat16):
#     loss = cross_entropy(model(x), y)
# ```
#
# Inside `torch.autocast`, matrix products and convolutions convert their inputs to **bfloat16**, a format of 2 bytes
# per number, while the weights themselves stay in `float32`. [Further](13_gpu_nodes_further.ipynb) tries this on your
# own computer.
#
# ## Large products fill a GPU
#
# At the top of the ladder, the recorded H200 still reached only 27% of its peak. Is it the program, or is it VGG-11?
# Between two products, a network does a little work on every number, such as normalising it or setting it to zero if it
# is negative. This takes almost no arithmetic, but the numbers have to be read from memory and written back. So let's
# count how many operations the products do for each number that they write.
#
# In a convolution of VGG-11, a number of the output is a sum over 3 × 3 pixels and all channels of the input. With 64
# channels, that is 576 multiplications and as many additions, so 1,152 operations. In a linear layer with 4,096 inputs
# it is 2 · 4,096 = 8,192.

# %% tags=["nbval-check-output"]
channels = [3, 64, 128, 256, 256, 512, 512, 512, 512]  # before and after each convolution
sides = [32, 16, 8, 8, 4, 4, 2, 2]  # of their images, in pixels
convolutions = []
for before, after, side in zip(channels, channels[1:], sides):
    convolutions.append((9 * before, after * side**2))  # summands, numbers written

width, keys, inner = 4096, 1024, 14336  # a layer of Llama 3 8B, for each token:
attention = [(width, width), (width, keys), (width, keys), (width, width)]
perceptron = [(width, inner), (width, inner), (inner, width)]


def operations_per_number(products):
    operations = sum(2 * summands * written for summands, written in products)
    return operations / sum(written for _, written in products)


vgg, llama = map(operations_per_number, (convolutions, attention + perceptron))
print(f"operations for each number written: VGG-11 {vgg:,.0f}, Llama {llama:,.0f}")

# %% [markdown]
# [On paper](https://www.nvidia.com/en-us/data-center/h200/), an H200 does 989 TFLOP/s, like an H100, and moves 4.8 TB
# per second between its memory and its processors. That is 2.4 trillion numbers of 2 bytes, so in the time that it
# takes to move one number, it could do 989 ÷ 2.4 = 412 operations. For each number that VGG-11 writes, its products do
# 2,016 operations, and at the peak rate these take as long as moving 2,016 ÷ 412 = 4.9 numbers. So if each number is
# moved five times, moving takes as long as multiplying. This is soon reached. In training, batch norm (lesson 3) alone
# moves each number three times. It reads it for the mean and the variance, reads it again to normalise it, and writes
# the result.
#
# **Predict.** How many times can each number in a layer of Llama 3 8B be moved until moving takes as long as the
# products?

# %%
course.predict("moves", within=1.2, times=...)

# %%
course.answer("moves", times=llama / (989 / 2.4))

# %% [markdown]
# Llama is a transformer (lesson 9), so it should come much closer to what its products alone could reach. The
# transformer uses only what ships with PyTorch. The layers and the loss go through `torch.compile`, their products are
# in bfloat16, attention is a single function (`scaled_dot_product_attention`), and AdamW updates all weights in a few
# kernels (`fused=True`). On a GPU, the next cell measures four layers of Llama 3 8B or, if these don't fit into its
# memory, a smaller transformer. Without a GPU, it measures small steps of the same two programs on one CPU core, in
# `float32` and without the compiler. The hatched bars are recorded, and one of them is a Llama with 1.5 billion
# weights.

# %% tags=["figure:13_networks"]
from course_utils.lessons.gpu_nodes import network_bars, network_rates_here
from course_utils.lessons.gpu_nodes import networks_text, recorded_networks

recorded, measured = recorded_networks(), network_rates_here()
title, finding = networks_text(measured)
course.draw.measured_bars(
    network_bars(measured, recorded),
    title,
    finding,
    published=[gpu_name(recorded)],
    source=f"recorded on {recorded.date}",
    x="share of the rate of a large product",
    say=percent,
)

# %% [markdown]
# Here 100% isn't the data sheet's peak but a product of two large matrices on the same machine. On the recorded H200,
# that product reached between 738 and 775 TFLOP/s within ten minutes, so each of its shares has a range as well. Four
# layers of Llama 3 8B reached 79% of this rate, which is an MFU of 60%, and VGG-11 reached 36%. In a whole training run
# the GPUs also send messages, so published values are often lower. PaLM, for example, was trained with an MFU of 46%
# ([Chowdhery and others 2022](https://arxiv.org/abs/2204.02311)). On one CPU core, something other than memory may hold
# VGG-11 back.
#
# Before you compare such figures with somebody else's, ask how attention was counted. Like PaLM's authors, we count the
# products of every token with every other token. But a token only looks at those before it, so a good kernel computes
# only half of these products. If you count this half, 79% becomes 74%. Both figures include the output layer, which
# follows the four layers.
#
# ## Eight bits need a scale
#
# One rung we could only estimate on paper. Newer GPUs can also multiply numbers of 8 bits, called **FP8**. According to
# the data sheet, an H100 multiplies them twice as fast as bfloat16 numbers, at 1,979 TFLOP/s instead of 989. But only
# products become faster, so FP8 is made for models that spend most of their time in large matrix products, such as
# large language models. VGG-11 consists mainly of convolutions, and for these torch 2.13 has no FP8 function. How much
# accuracy does a matrix product lose if its inputs have only 8 bits? You can find out without a GPU, because PyTorch
# rounds to FP8 on any CPU.
#
# FP8 comes in two variants. Besides the sign bit, **E4M3** has 4 bits for the exponent and 3 for the digits after the
# binary point, and **E5M2** has 5 and 2. Bfloat16 has 8 and 7.
#
# In bfloat16, 7 digits after the point mean that the next number after 1 is $1 + \frac1{128}$. If you round a number in
# between, the error is at most half this gap, which is $\frac1{256}$ or 0.4% of the number. Between 2 and 4 the gaps
# are twice as large, and so are the numbers, so the percentage is the same.
#
# **Predict.** How large can the rounding error be in E4M3 and in E5M2, as a percentage of the number?

# %%
course.predict("fp8_rounding", within=1.15, e4m3=..., e5m2=...)  # percent

# %%
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
between = torch.linspace(1, 2, 10_001)


def largest_error(kind):
    rounded = between.to(kind).float()
    return ((rounded - between) / between).abs().max().item()


worst = {"e4m3": 100 * largest_error(E4M3), "e5m2": 100 * largest_error(E5M2)}
course.answer("fp8_rounding", **worst)
for kind in (torch.bfloat16, E4M3, E5M2):
    print(f"{kind}: largest number {torch.finfo(kind).max:.4g}")

# %% [markdown]
# If you halved the gap, you got 6.25% and 12.5%, which is nearly right. In E4M3 the next number after 1 is 1.125, and
# the worst case is 1.0625, halfway between them. It is off by 0.0625, and as a share of 1.0625 this is one seventeenth,
# or 5.9%. In E5M2 it is one ninth, or 11.1%.
#
# The second problem is the range. The largest number in E4M3 is 448, and all numbers below about 0.001 are rounded to
# zero. Gradients are often much smaller than that. The remedy is a **scaling factor**. You divide the tensor by a
# number $s$ before you round it, and multiply the result of the product by $s$ afterwards. If $s$ is the largest
# absolute value in the tensor divided by 448, then the tensor fills the range of E4M3 exactly. The next cells try this
# with matrices `x` whose numbers are as small as $10^{-8}$ or as large as $10^4$. The other matrix, `w`, is always in
# E4M3 with a scale, except in the comparison with bfloat16. We round only the inputs and multiply them in `float32`. A
# GPU may add up such products with fewer digits, and then its errors are larger.

# %%
torch.manual_seed(0)
x0, w = torch.randn(256, 1024), torch.randn(1024, 256) / 32


def rounded(x, kind, scale=1.0):
    largest = torch.finfo(kind).max
    return (x / scale).clamp(-largest, largest).to(kind).float() * scale


def fitting_scale(x):
    return x.abs().max() / torch.finfo(E4M3).max


def product_error(x, rounded_x, rounded_w):
    exact = x @ w
    return ((rounded_x @ rounded_w - exact).norm() / exact.norm()).item()


# %% tags=["figure:13_fp8"]
from course_utils.lessons.gpu_nodes import scales_text

magnitudes = [10.0**power for power in range(-8, 5)]
errors = {"E4M3": [], "E5M2": [], "E4M3 with a scale": [], "bfloat16": []}
w8 = rounded(w, E4M3, fitting_scale(w))
w16 = w.bfloat16().float()
for magnitude in magnitudes:
    x = magnitude * x0
    errors["E4M3"].append(product_error(x, rounded(x, E4M3), w8))
    errors["E5M2"].append(product_error(x, rounded(x, E5M2), w8))
    x8 = rounded(x, E4M3, fitting_scale(x))
    errors["E4M3 with a scale"].append(product_error(x, x8, w8))
    errors["bfloat16"].append(product_error(x, x.bfloat16().float(), w16))
axes = {"across": "size of the numbers in x", "up": "error of x @ w", "unit": percent}
title, finding = scales_text(magnitudes, errors)
course.draw.over_numbers(magnitudes, errors, title, finding, log=True, **axes)

# %% [markdown]
# On the left, E4M3 without a scale has an error of 100%, because all of `x` has been rounded to zero. On the right,
# many numbers in `x` are above 448 and are clipped to it. E5M2 is less accurate but has a wider range, so its authors
# recommend it for gradients. With a scale, the error of E4M3 is about 4% at every size, and you can explain this
# figure. Rounding can change a number by up to 6%, but the typical error is 2.6%, in `x` as well as in `w`. The two
# errors are independent of each other, so sometimes they add up and sometimes they cancel. Independent errors add like
# the sides of a right-angled triangle, $\sqrt{2.6^2 + 2.6^2} = 3.7$.
#
# Unfortunately, one scale for a whole tensor depends on its largest number. If a single number is huge, all the others
# are divided by the same large $s$, and may again be rounded to zero. Let's put such an outlier into the first row of
# `x` and look at the error of all *other* rows. We compare one scale for the whole tensor with one for every 128
# numbers of a row. Only a very large outlier does harm, because E4M3 reaches from 448 down to about 0.001. A number
# that is 100,000 times smaller than the largest one loses digits, but it isn't rounded to zero.

# %% tags=["nbval-check-output"]
for outlier in (1, 1e5, 1e6):
    x = x0.clone()
    x[0, 0] *= outlier
    blocks = x.view(256, 8, 128)
    scales = blocks.abs().amax(dim=2, keepdim=True) / torch.finfo(E4M3).max
    one_scale = rounded(x, E4M3, fitting_scale(x))
    per_block = rounded(blocks, E4M3, scales).view_as(x)
    found = [product_error(x[1:], x8[1:], w8) for x8 in (one_scale, per_block)]
    shown = f"one scale {found[0]:.0%}, one per block {found[1]:.0%}"
    print(f"outlier × {outlier:g}: {shown}")

# %% [markdown]
# One scale per row would help these rows just as well. Smaller blocks also protect the rest of the outlier's own row.
# [DeepSeek-V3](https://arxiv.org/abs/2412.19437) was trained with most of its matrix products in E4M3 and with such
# blocks. Activations (lesson 9) have a scale for every 128 numbers, and weights for every block of 128 × 128. The
# optimizer's copy of the weights and some sensitive parts of the model stay in formats with more bits. Its authors
# report that the loss of two smaller models differed from a run in bfloat16 by less than 0.25%. In PyTorch,
# `torch.nn.functional.scaled_mm` multiplies FP8 matrices together with their scales.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# The bus bandwidth lets you compare a measured all-reduce with the data sheet of a link, whatever the number of ranks,
# provided the ranks do the adding. With small vectors you measure latency instead. The words after `via` in NCCL's log
# tell you which path the messages take, and if you find `NET/Socket` or no `GDRDMA` between two nodes, ask your
# cluster's support why. On one GPU, count the operations first. If the MFU is low, faster products won't help as long
# as the GPU waits for kernel launches. A network with large products fills a GPU better than one that does little with
# each number. And fewer bits make products faster, but with only eight you need scaling factors.
#
# How does the memory of DDP compare with that of FSDP2 (lesson 11) on a GPU, and would forty such GPUs do forty times
# the work of one? [Further](13_gpu_nodes_further.ipynb) answers both. Or go on to [the
# exercises](../exercises/13_gpu_nodes.ipynb), where you write `bus_bandwidth` for all collectives, and then to [lesson
# 14](14_profiling.ipynb), which shows where the time of a step goes.
#
# **To read**
#
# - NVIDIA's page on the [performance of
#   nccl-tests](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md) derives the bus bandwidth of each
#   collective.
# - DeepSeek-AI (2024), [*DeepSeek-V3 Technical Report*](https://arxiv.org/abs/2412.19437), describes how a large model
#   was trained in FP8, and what its authors would like hardware to do.
# - Micikevicius and others (2022), [*FP8 Formats for Deep Learning*](https://arxiv.org/abs/2209.05433), defines E4M3
#   and E5M2 and compares training runs.
