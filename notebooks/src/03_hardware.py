# The lesson on what limits one machine. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What limits one machine?
#
# Suppose that a training step on your laptop takes three seconds. Would a processor that computes twice as fast bring
# this down to one and a half? Perhaps. But it is also possible that nothing would change, because your processor spends
# most of the step waiting for numbers to arrive from memory. Even the fastest machines have this problem. An NVIDIA
# H100, the GPU of lesson 0, can do 989 trillion operations per second. If you let it add two long vectors, it does half
# a trillion per second, and waits for the rest of the time.
#
# In this lesson you measure how fast your machine computes and how fast it moves numbers. From these two figures you
# can predict how long the layers of a network take, and tell what would make them faster. At the end you compare your
# machine with those on which large models are trained.
#
# *45 minutes · builds on [lesson 2](02_autodiff_and_optimizers.ipynb) · no ranks*

# %%
import os
import statistics
import time

import course_utils as course
from course_utils.machine import allowed_cores
from course_utils.measuring import Measured, is_busy, rate_text, unless_busy

# before torch, so that torch's threads sleep while they wait instead of using up a core
from course_utils.lessons.hardware import machine_rates, pictures, sentences
import torch

cores = allowed_cores()
torch.set_num_threads(cores)
print(f"{cores} of this machine's {os.cpu_count()} cores may be used")

# %% [markdown]
# ## Computing is one limit, moving numbers is another
#
# Let's begin with computing. One addition or multiplication of two numbers is called a **FLOP**, a floating-point
# operation, and a billion of them are a GFLOP. When we multiply two matrices of 1,024 × 1,024 numbers, each of the
# 1,024² results is a sum of 1,024 products. If we count every product and every addition, that makes 2 × 1,024³, or
# about 2.1 billion FLOPs.
#
# How long does your machine take for that? A single measurement won't tell you much, because other programs use the
# computer, too. So we measure nine times and take the **median**, the value in the middle when all nine are sorted. A
# few disturbed runs can't move it very far.


# %%
def measure(work, repeats=9):
    work()  # the first run also has to prepare things, so it doesn't count
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return Measured(tuple(seconds))  # keeps all of them, and knows their median


left, right, product = torch.rand(3, 1024, 1024)
matmul = measure(lambda: torch.mm(left, right, out=product))
peak = matmul.rate(2 * 1024**3)  # so many FLOPs, divided by each of the nine times
print("computing:", rate_text(peak, "GFLOP per second"))

# %% [markdown]
# We take the median of these rates as the **peak** of your machine, its highest computing rate as far as we can measure
# it.
#
# The second limit is the **bandwidth** of the memory, the number of bytes per second that can move between memory and
# processor. A processor keeps the numbers that it used last in a **cache**, a small and fast memory next to its cores.
# To measure the large memory, we take arrays that are too long for the cache, and add two of them into a third. For
# each addition two numbers of 4 bytes are read and one is written, which makes 12 bytes. Some processors move even
# more, and [Further](03_hardware_further.ipynb) finds out what yours does.

# %%
length = machine_rates.array_bytes() // 4  # numbers in twice the size of the cache
left, right, total = torch.ones(3, length)
adding = measure(lambda: torch.add(left, right, out=total))
bandwidth = adding.rate(12 * length)
print("moving:", rate_text(bandwidth, "GB per second"))

# %% [markdown]
# Now put the two figures together. Suppose a machine computes 100 GFLOP per second and moves 20 GB per second, which is
# 5 billion numbers of 4 bytes. So in the time that it takes to move *one* number, this machine can do 100 ÷ 5 = 20
# operations. A program that does fewer than 20 operations for each number it moves keeps this processor waiting.
#
# **Predict.** How many operations can *your* machine do in the time that it takes to move one number? Calculate it from
# the two figures above.

# %%
course.predict("balance", within=1.1, operations=...)

# %%
course.answer("balance", operations=4 * peak.median / bandwidth.median)

# %% [markdown]
# Adding vectors moves three numbers for a single operation. So nearly all of the time goes into moving them, and a
# processor that computes faster would gain nothing.
#
# ## A batch uses each weight many times
#
# Fortunately, networks use their numbers more than once. The **arithmetic intensity** of a program is the number of
# FLOPs that it does for each byte that it moves.
#
# Take a linear layer with 4,096 inputs and 4,096 outputs. Its weights are a matrix of 4,096² numbers. For a single
# image, each weight is multiplied by an input, and the product is added to an output. That makes 2 × 4,096², or 34
# million FLOPs. All the weights have to be read, which is 4 × 4,096² bytes, or 67 MB. The inputs and outputs are only
# 8,192 numbers and hardly count. So the intensity is 34 ÷ 67, or 0.5 FLOP per byte. On the machine with 100 GFLOP and
# 20 GB per second, the arithmetic would take 0.3 ms, but moving the weights takes 3.4 ms.
#
# Now let a whole batch of images pass through the layer. The weights have to be read only once for all of them, while
# the arithmetic, the inputs and the outputs are needed for every image. In a program:


# %%
def linear_layer(images, inputs, outputs):
    """Return the FLOPs of a linear layer, and the bytes that it has to move at least."""
    flops = 2 * images * inputs * outputs
    numbers = images * inputs + inputs * outputs + images * outputs
    return flops, 4 * numbers


# %% [markdown]
# **Predict.** What is the arithmetic intensity of this layer for a batch of 64 images? (The weights alone give you a
# good estimate.)

# %%
course.predict("intensity", within=1.1, flop_per_byte=...)

# %% tags=["nbval-check-output"]
for images in (1, 4, 16, 64, 256):
    flops, nbytes = linear_layer(images, 4096, 4096)
    print(f"{images:3} images: {flops / nbytes:6.2f} FLOP per byte")

flops, nbytes = linear_layer(64, 4096, 4096)
course.answer("intensity", flop_per_byte=flops / nbytes)

# %% [markdown]
# That is a little less than 64 × 0.5, because the inputs and outputs of 64 images do count a little.
#
# ## The roofline
#
# A machine can compute with some numbers while it is moving the next ones. So the time $T$ of a layer is at least as
# long as the longer of the two:
#
# $$T \ge \max\left(\frac{\text{FLOPs}}{\text{peak}},\ \frac{\text{bytes}}{\text{bandwidth}}\right)$$
#
# How many FLOPs per second can the layer reach, then? The processor allows no more than the peak. The memory allows no
# more than the bandwidth times the intensity, because that is how many FLOPs can be done with the bytes that arrive in
# a second. If you draw the smaller of the two over the intensity, you get a slope that turns into a flat line. This
# picture is called the **roofline**, and the intensity at which it turns flat is its **ridge**. To the left of the
# ridge a program is limited by memory, and to the right of it by arithmetic.
#
# Let's measure our layer with the five batch sizes. Each becomes a dot in the picture:

# %% tags=["figure:03_batches"]
layer = torch.nn.Linear(4096, 4096, bias=False)


def time_batch(images):
    x = torch.rand(images, 4096)
    with torch.no_grad():  # forward only
        return measure(lambda: layer(x), repeats=5)


seconds, dots = {}, {}
for images in (1, 4, 16, 64, 256):
    seconds[images] = time_batch(images)
    flops, nbytes = linear_layer(images, 4096, 4096)
    dots[f"batch {images}"] = (flops / nbytes, seconds[images].rate(flops))
title, found = sentences.batches_text(seconds)
pictures.roofline(dots, peak.median, bandwidth.median, title, found)

# %% [markdown]
# By the roofline, more images cost hardly any extra time as long as a batch is to the left of the ridge, because the
# weights have to be read anyway. To the right of it, twice the images take twice as long. This is one of the reasons
# why networks are trained with batches.
#
# The roof is what the machine allows. If a dot lies far below it, it is worth looking for a better program. A dot can
# also lie above the roof, if its program got more out of the processor than our matrix product did, or if some of its
# numbers were still in the cache.
#
# ## The layers of a real network
#
# Nearly all of the arithmetic of VGG-11 (lesson 2) is in its eight convolutions. A convolution uses its weights even
# more often than a linear layer does, once for every *pixel* of every image. The fourth, conv4, works on 8 × 8 pixels,
# so with a batch of 32 it uses each weight 2,048 times.
#
# Between the convolutions are smaller layers. **Batch norm** shifts and scales each **channel**, which is one of the
# pictures that a layer makes of an image, so that its numbers have a mean of 0 and a spread of 1. ReLU replaces
# negative numbers by 0. **Pooling** keeps only the largest of each 2 × 2 pixels. Here is what the layers of each kind
# have to compute together, and what they have to move at least, for a batch of 32 images:

# %% tags=["nbval-check-output"]
from course_utils.lessons.hardware import arithmetic_intensity, layer_costs
from course_utils.vgg import vgg11

batch = 32
model = vgg11(seed=0)
images = torch.randn(batch, 3, 32, 32)
costs = layer_costs.count_layers(model, images)  # FLOPs and bytes by kind of layer
for kind, (flops, nbytes) in costs.items():
    print(f"{kind:7} {flops / 1e9:7.3f} GFLOP {nbytes / 1e9:7.3f} GB")

# input: images, channels, height, width; weights: channels out and in, window
_, _, conv4 = arithmetic_intensity((batch, 256, 8, 8), (256, 256, 3, 3))
print(f"\nconv4 alone: {conv4:.0f} FLOP per byte")

# %% [markdown]
# (Counting this for a convolution is your first [exercise](../exercises/03_hardware.ipynb).)
#
# Batch norm, ReLU and pooling do only 0.4% of the arithmetic, but they move 0.117 GB. Our machine with 100 GFLOP and 20
# GB per second needs at least 5.9 ms for that, and 98 ms for the 9.777 GFLOP of the convolutions. So the small layers
# would take about 6% of the time there, or more if they stay far below the roof.
#
# **Predict.** What share of the time do these small layers take on your machine? Use its peak and its bandwidth.

# %%
course.predict(
    "small_layers",
    answer=...,  # "a", "b" or "c"
    choices={"a": "below 2%", "b": "2% to 10%", "c": "more than 10%"},
)

# %%
timed = layer_costs.time_layers(model, images, peak.median, bandwidth.median)
small = [each for each in timed if each.kind in ("norm", "relu", "pool")]
share = sum(each.measured.median for each in small)
share /= sum(each.measured.median for each in timed)
answer = "a" if share < 0.02 else "b" if share <= 0.1 else "c"
busy = is_busy(each.measured.values for each in timed)
course.measured("small_layers", busy=busy, answer=answer)

ridge = peak.median / bandwidth.median
print(sentences.layers_sentence(timed, ridge))
title = sentences.layers_title(timed, ridge)
pictures.layer_roofline(timed, peak.median, bandwidth.median, title)

# %% [markdown]
# Above, each dot is one layer, and a thin grey line leads from it to what the roof allows. Below, a wide grey bar shows
# how long each layer takes by the roofline, and a narrow one how long it really took. All batch norms, ReLUs and
# poolings lie on the left, where a faster processor gains nothing. This is why libraries try to *fuse* such layers with
# the convolution before them, which saves writing its results to memory and reading them back. But if a layer takes
# much longer than its grey bar, its program is to blame, and not the memory. [Further](03_hardware_further.ipynb) finds
# out what slows down pooling.
#
# ## Backward takes about twice as long as forward
#
# A training **step** consists of a forward pass, a backward pass, and the optimizer's own step, which changes the
# weights. In the backward pass, a linear layer or a convolution computes two products, the gradient of its weights and
# the gradient of its inputs, which the layer before needs. Each of the two takes as many FLOPs as the forward pass.
#
# **Predict.** How many times longer does the backward pass of VGG-11 take than its forward pass?

# %%
course.predict("backward", within=1.25, times_longer=...)

# %% tags=["figure:03_shares"]
from torch.nn.functional import cross_entropy

optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
classes = torch.arange(batch) % 10  # made up: a step takes as long with any classes


def training_step():
    start = time.perf_counter()
    loss = cross_entropy(model(images), classes)
    forward = time.perf_counter()
    loss.backward()
    backward = time.perf_counter()
    optimizer.step()
    optimizer.zero_grad()
    end = time.perf_counter()
    parts = {"forward": forward - start, "backward": backward - forward}
    return parts | {"step": end - backward}


training_step()  # doesn't count
steps = [training_step() for _ in range(8)]
ratio = statistics.median(step["backward"] / step["forward"] for step in steps)
busy = is_busy([[sum(step.values()) for step in steps]])
course.measured("backward", busy=busy, times_longer=ratio)
bars = {f"training step {number}": step for number, step in enumerate(steps, start=1)}
title = f"The backward pass takes {ratio:.1f} times as long as the forward pass"
course.draw.stacked_bars(bars, unless_busy(busy, title), "")

# %% [markdown]
# If only arithmetic counted, the answer would be 2, or slightly less, because the first layer doesn't need the gradient
# of its inputs. The layers that wait for memory have ratios of their own. This also explains why lesson 0 counted six
# operations for each parameter, two on the way forward and four on the way back.
#
# ## More cores help, up to a point
#
# To use more than one core, torch cuts a product into parts and gives them to several **threads**, which are workers
# inside one process that share its memory. How much do more threads gain?
#
# We measure **by turns**: with one thread, with two, and so on, and then everything again, five times. If the computer
# is slow for a moment, that affects all of them. We call one program *faster* than another only if it won at least four
# rounds out of five and is more than 5% ahead in the median. Otherwise it's a tie. All lessons keep to this rule.

# %% tags=["figure:03_threads"]
from course_utils.lessons.hardware import threads

narrow = vgg11(width=0.5, seed=0)  # half as many channels, to save time


def forward_and_backward():
    narrow(images).sum().backward()


counts = threads.thread_counts(cores)  # up to twice as many threads as cores
times = {count: [] for count in counts}
for _ in range(5):
    for count in counts:
        torch.set_num_threads(count)
        times[count] += measure(forward_and_backward, repeats=1).values
torch.set_num_threads(cores)
times = {count: Measured(tuple(values)) for count, values in times.items()}
found = sentences.threads_sentence(times, cores)
title = "Forward and backward pass of VGG-11, half as wide"
pictures.time_by_threads(times, cores, title, found)

# %% [markdown]
# The dashed line marks the number of cores that you may use. Threads beyond it can only take turns.
#
# Would a machine with a million cores be a million times faster? That depends on the tasks, because some of them need
# the results of others. You can add up eight numbers one after the other, or in the form of a tree:

# %% tags=["figure:03_chain_and_tree"]
pictures.chain_and_tree()

# %% [markdown]
# Both need 7 additions. The number of tasks is called the **work** $W$. But in the chain each addition has to wait for
# the one before, while the tree can do four of them at once, then two, then one. The number of tasks on the longest
# path is called the **depth** $D$. It is 7 for the chain and 3 for the tree.
#
# Suppose each task takes one unit of time. If $p$ **workers** share them, they need at least $W/p$. They also need at
# least $D$, since the tasks on the longest path wait for each other. If no worker is idle while a task is ready, their
# time $T_p$ lies between two bounds, which are named after Brent ([1974](https://doi.org/10.1145/321812.321815); the
# upper one goes back to [Graham, 1969](https://doi.org/10.1137/0117039)):
#
# $$\max(W/p,\ D)\ \le\ T_p\ \le\ W/p + D$$
#
# Let's add up 32 numbers as a tree. It has levels of 16, 8, 4, 2 and 1 additions, so $W$ is 31 and $D$ is 5. Two
# workers take 8 units of time for the first level, then 4, 2, 1 and 1, which makes 16. That is between max(15.5, 5) =
# 15.5 and 15.5 + 5 = 20.5.
#
# **Predict.** How many units of time do 4 workers take, and how many do 16 workers take?

# %%
course.predict("brent", within=1.15, four=..., sixteen=...)

# %% [markdown]
# In the next cell the workers are threads, which sleep for 8 ms for each task. Sleeping needs no core, so 16 threads
# can do it at the same time on any machine.

# %% tags=["figure:03_bounds"]
from course_utils.lessons.hardware import brent_bounds, run_graph, tree_sum

tree = tree_sum(32)  # for each addition, the additions that it needs
unit = 0.008
measured, bounds = {}, {}
for p in (1, 2, 4, 8, 16):
    measured[p] = Measured(tuple(run_graph(tree, p, unit) / unit for _ in range(3)))
    bounds[p] = brent_bounds(tree, p)
found = sentences.brent_sentence(bounds, {p: measured[p].median for p in measured})
# sleeping takes as long on any machine, so what takes longer than planned was disturbed
upper = [bounds[p][1] for p in measured]
busy = is_busy([measured[p].values for p in measured], planned=upper)
four, sixteen = measured[4].median, measured[16].median
course.measured("brent", busy=busy, four=four, sixteen=sixteen)
pictures.between_bounds(measured, bounds, {}, "32 numbers, added by p workers", found)

# %% [markdown]
# By counting, four workers need 4 + 2 + 1 + 1 + 1 = 9 units. Sixteen need 5, and no number of workers can do better,
# because the depth is 5.
#
# In VGG-11, $W/D$ is in the millions, as [Further](03_hardware_further.ipynb) calculates, so it has enough tasks for
# millions of workers. What's difficult is to get the numbers to them, and that is what the rest of this course is
# about.
#
# ## The faster a machine computes, the harder it is to feed
#
# In the following table, your machine and the server processor compute with numbers of 4 bytes, and the others with
# numbers of 2 bytes, in which most large models are trained. A link leads to the next machine of the same kind, and its
# speed is for each direction.

# %%
from IPython.display import Markdown

from course_utils.lessons.hardware import data_sheets

mine = data_sheets.this_machine(peak.median, bandwidth.median)
machines = [mine, *data_sheets.MACHINES]
Markdown(sentences.machines_table(machines))

# %% [markdown]
# All rows but the first are peaks, taken or calculated from the documents in the last column. The module `data_sheets`
# has the details, and later lessons calculate with it.
#
# While it moves one number, an H100 could do 590 operations, many more than the server processor with its 154. This
# explains the half trillion at the top of this page. To add two vectors of 2-byte numbers, an H100 moves 6 bytes per
# addition. At 3.35 trillion bytes per second, that makes 0.56 trillion additions, less than a thousandth of what it
# could compute.
#
# The picture shows all these rooflines at once, over the operations for each *number* instead of each byte, which suits
# numbers of 4 bytes as well as those of 2. The dashed lines are three programs from this lesson.

# %% tags=["figure:03_machines"]
flops, nbytes = linear_layer(64, 4096, 4096)
programs = {"adding vectors": 1 / 3}
programs |= {"linear, batch 64": 4 * flops / nbytes, "conv4": 4 * conv4}
title = sentences.machines_title(data_sheets.H100, programs["linear, batch 64"])
pictures.rooflines(machines, programs, title)

# %% [markdown]
# Follow the dashed line of the linear layer upwards. On all the machines from the data sheets, it meets the roof on the
# slope, so a batch of 64 is too small to keep them busy.
#
# Look at the links, too. Within a node, an H100 reaches another H100 through a link of 450 GB/s, which is 7 times
# slower than its own memory. From node to node, eight GPUs share 400 GB/s. That is 50 GB/s for each, 67 times slower
# than its memory. If moving numbers limits one machine, it limits many machines even more.
#
# ## What you take with you
#
# Two measurements and a count tell you whether arithmetic or memory limits a program. If it does too few operations for
# each byte, a faster processor won't help, but a larger batch may. The backward pass takes about twice as long as the
# forward pass. More threads help at best until every core has one, and no number of workers can be faster than the
# depth. Fast machines are harder to feed than slow ones, and the links between them are slower than their memory.
#
# Next come the [exercises](../exercises/03_hardware.ipynb). Then [lesson 4](04_messages.ipynb) shows how processes
# talk. [Further](03_hardware_further.ipynb) finds out what your memory really moves, reads photos from a disk, and
# repeats what three students measured with VGG-11 in 2020.
#
# **To read**
#
# - Williams, Waterman and Patterson 2009, [*Roofline: an insightful visual performance
#   model*](https://doi.org/10.1145/1498765.1498785), the article that introduced the picture
# - Austin and others 2025, [*How to Scale Your Model*](https://jax-ml.github.io/scaling-book/roofline/), which begins
#   with rooflines, for memory as well as for the links between machines
# - Horace He 2022, [*Making Deep Learning Go Brrrr From First Principles*](https://horace.io/brrr_intro.html), on what
#   limits a program on a GPU, and on fusing layers
