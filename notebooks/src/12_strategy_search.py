# The lesson on strategy search. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Can the machine choose for us?
#
# In lesson 11 you chose one arrangement for a whole model. But each layer could be spread over the devices in a way
# that suits it. On two devices, a single transformer block allows eight million combinations. AlexNet, an image network
# from 2012 with eleven convolutions, pools and fully connected layers, can be spread over *four* devices in about 2 ×
# 10¹⁸ ways. A program that judged a million of them per second would need 60,000 years to try them all.
#
# That is why people write programs that search, and in this lesson you will build a small one. You will simulate a
# training step without running it, search for a fast way to spread a network over two devices, and see why the best way
# to cut a transformer depends on how many tokens it reads. Then you will run what the search has found, to check that
# it trains correctly and takes as long as the simulator says.
#
# *55 minutes · builds on [lesson 11](11_hybrid_and_sharded.ipynb) · 2 ranks*

# %%
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import torch

import course_utils as course

ranks = course.start(2, link="400 Mbit/s")
ranks.load_torch()

# %% [markdown]
# ## Five operators, two devices
#
# An **operator** is a step of a network, for example a layer, whose output can be cut into parts. We start with only
# five operators, so that you can work everything out on paper. The first is the input, 8 small images. Then come a
# convolution, which slides a small window over each image, a pool, which halves its height and width, a fully connected
# layer, and the loss. The times are made up:

# %% tags=["here:12_five_operators"]
from course_utils.lessons.strategy_search import COMPUTE, HandCosts, five_operators

five = five_operators()
print("          forward  backward  weights  numbers in the output")
for operator in five.operators:
    forward, backward = COMPUTE.get(operator.name, (0, 0))
    row = f"{operator.name:8}{forward:6} ms{backward:7} ms"
    print(f"{row}{operator.parameters:9,}{prod(operator.shape):10,}")

# %% [markdown]
# A single device needs 8 + 2 + 4 ms forward and 8 + 2 + 16 ms backward, which makes 40 ms for a training step. With two
# devices and a link between them, these rules hold:
#
# - Half of an operator takes half of its time.
# - Both devices can read the input and the labels, because they are data. Nothing is sent for them.
# - The link carries 512 numbers per millisecond, in both directions at the same time.
# - While the devices send, receive or add up numbers, *both are busy* and neither computes. Real libraries can do the
#   two at the same time, as you saw in lesson 7, but the programs in this lesson don't.
# - If both devices hold the same $n$ weights, they add up their gradients with an all-reduce, as soon as the backward
#   pass of this operator has ended. On two devices, each sends as many numbers as the vector has (lesson 5), so it
#   takes $n/512$ ms.
#
# Here is one case in full, data parallelism, where each device takes 4 of the 8 images through all operators:
#
# | what both devices do | takes | ends at |
# |---|---|---|
# | conv1, half of 8 ms | 4 ms | 4 ms |
# | pool1 | 1 ms | 5 ms |
# | fc1, and the loss, which takes no time | 2 ms | 7 ms |
# | fc1 backward, half of 8 ms | 4 ms | 11 ms |
# | add up the gradients of fc1, 6,144 ÷ 512 | 12 ms | 23 ms |
# | pool1 backward | 1 ms | 24 ms |
# | conv1 backward | 8 ms | 32 ms |
# | add up the gradients of conv1, 512 ÷ 512 | 1 ms | 33 ms |
#
# More than a third of this time goes into the gradients of fc1, which has most of the weights but little to compute.
# What if only device 0 had fc1? Then conv1 and pool1 are shared as before, but device 0 alone computes fc1 and the
# loss, for all 8 images. So device 1 has to send its half of the output of pool1 to device 0. In the backward pass it
# receives just as many gradients, and in between it waits.
#
# **Predict.** How many milliseconds does a step take if fc1 and the loss are on device 0?

# %%
course.predict("strategy_by_hand", ms=...)

# %% [markdown]
# ## A simulator takes ten lines
#
# Now let a program do the calculation. First it writes down all the **tasks** of a step. A task is something that keeps
# one device busy for a while. `Config` describes how one operator is spread, and a list with a `Config` for every
# operator is a **strategy**. `HandCosts` contains our rules:

# %% tags=["here:12_tasks"]
from course_utils.lessons.strategy_search import Config, task_graph

whole = Config(devices=(0,))
by_sample = Config(sample=2, devices=(0, 1))
data_parallel = [whole, by_sample, by_sample, by_sample, by_sample]
fc1_alone = [whole, by_sample, by_sample, whole, whole]

tasks = task_graph(five, fc1_alone, HandCosts())
for number, task in enumerate(tasks):
    milliseconds = task.nanoseconds / 1e6
    print(f"{number:2}  {task.name:15} device {task.device} {milliseconds:3g} ms", end="")
    print("  after", *task.after)

# %% [markdown]
# An arrow in a name means an exchange between two operators. The last column lists the tasks that have to end before
# this one may begin. For example, task 4 is device 0's share of moving the output of pool1. An exchange keeps both
# devices busy, so both must have finished pool1, and task 4 has to wait for tasks 2 and 3.
#
# So a task begins when its device is free and all the tasks in its list have ended. If we go through the tasks in
# order, we can calculate all times without running anything. A program that does so is called a **simulator**, and this
# is the whole of ours:


# %%
def simulate(tasks):
    free = {0: 0, 1: 0}  # for each device, when its tasks so far have ended
    spans = []  # for each task, when it begins and ends, in nanoseconds
    for task in tasks:
        begin = free[task.device]
        for number in task.after:
            begin = max(begin, spans[number][1])
        end = begin + task.nanoseconds
        spans.append((begin, end))
        free[task.device] = end
    return spans


def step_ms(strategy):
    spans = simulate(task_graph(five, strategy, HandCosts()))
    return max(end for begin, end in spans) / 1e6


# %% tags=["figure:12_by_hand"]
from course_utils.lessons.strategy_search import pictures, quickest_text

course.answer("strategy_by_hand", ms=step_ms(fc1_alone))
two = {"data parallel": data_parallel, "fc1 on device 0": fc1_alone}
times = {name: step_ms(strategy) for name, strategy in two.items()}
steps = {name: task_graph(five, each, HandCosts()) for name, each in two.items()}
pictures.task_timelines(steps, quickest_text(times), simulator=simulate)

# %% [markdown]
# With fc1 on one device, sharing its work no longer saves 6 ms. Half of the output of pool1 is 1,024 numbers, so two
# exchanges of 2 ms each come on top. But the 12 ms for the gradients of fc1 are gone, and the step is 2 ms faster,
# although device 1 is idle for 12 ms. Can you think of a strategy that is faster still?
#
# ## What may be cut?
#
# So far we have only cut the batch. FlexFlow, the search program whose ideas we follow, calls its choices **SOAP**. The
# output of an **o**perator can be cut by **s**ample, by **a**ttribute or by **p**arameter, and each operator is free to
# differ from the others. For a convolution, an attribute is a row of the image. A cut by parameter gives each device
# some of the output channels, together with the weights that make them. It is the column cut of lesson 9.
#
# What does each cut send? Take two convolutions in a row, each cut in half in the same way. Both have outputs of 8
# images with 16 channels of 12 × 12 numbers. The second has a window of 3 × 3, so each row that it makes depends on the
# same row of its input and the rows above and below.
#
# In a cut by attribute, device 0 makes rows 0 to 5 of the output, and for row 5 it needs row 6 of the input, which is
# on device 1. Such rows at the border are called the **halo**. Row 6 has 12 numbers in each of 16 channels of 8 images,
# so device 0 has to fetch 8 × 16 × 12 = 1,536 numbers.
#
# **Predict.** How many numbers must device 0 fetch in a cut by attribute if the window is 5 × 5? And with a window of 3
# × 3, how many in a cut by sample, and in a cut by parameter, where it needs all input channels to make half of the
# output channels?

# %%
course.predict("strategy_cuts", attribute_5x5=..., sample=..., parameter=...)

# %% tags=["figure:12_cuts"]
from course_utils.lessons.strategy_search import Window, fetched_numbers, two_convolutions

first, second = two_convolutions()
by_attribute = Config(attribute=2, devices=(0, 1))
by_parameter = Config(parameter=2, devices=(0, 1))
larger = replace(second, window=Window(size=5, stride=1, padding=2))
course.answer(
    "strategy_cuts",
    attribute_5x5=fetched_numbers(first, larger, by_attribute, part=0),
    sample=fetched_numbers(first, second, by_sample, part=0),
    parameter=fetched_numbers(first, second, by_parameter, part=0),
)
cuts = {"by sample": by_sample, "by attribute": by_attribute}
cuts["by parameter"] = by_parameter
pictures.operator_cuts(first, second, cuts)

# %% [markdown]
# The blocks are the input and the output of the second convolution. Images lie behind each other, channels run to the
# right, and rows from top to bottom. A cut by sample fetches nothing in the forward pass, but both devices hold all the
# weights, so they have to add up the gradients in the backward pass. With a cut by parameter it is the other way round,
# because every weight is on one device only. A cut by attribute costs both. It helps if even a single image is too much
# for one device.
#
# ## How many strategies are there?
#
# On two devices, our convolution has five configurations. It can be on device 0, on device 1, or cut in half by sample,
# attribute or parameter, with the first half on device 0. The pool has the same five. A strategy combines one
# configuration of each operator, so these two alone give 5 × 5 = 25 combinations. The output of fc1 has only samples
# and parameters, and the loss only samples. For the input there is nothing to choose.
#
# **Predict.** How many strategies are there for all five operators?

# %%
course.predict("strategy_count", strategies=...)

# %% tags=["nbval-check-output"]
from course_utils.lessons.strategy_search import alexnet, choices_of, read_model

choices = choices_of(five, devices=2)  # for each operator, its configurations
course.answer("strategy_count", strategies=prod(len(options) for options in choices))

with torch.device("meta"):  # shapes without numbers
    large = alexnet()
graph = read_model(large, (64, 3, 224, 224))  # its operators, for 64 images
count = prod(len(options) for options in choices_of(graph, devices=4))
print(f"AlexNet on four devices: {count:.1e} strategies")

# %% [markdown]
# Three hundred are few enough to simulate them all:

# %% tags=["figure:12_best"]
from course_utils.lessons.strategy_search import strategy_text

known = {}
for strategy in product(*choices):
    known[strategy] = step_ms(strategy)
best = min(known, key=known.get)
steps["the best"] = task_graph(five, best, HandCosts())
title = f"The best of {len(known)}: {strategy_text(five, best)}"
pictures.task_timelines(steps, title, simulator=simulate)

# %% [markdown]
# Everything except the loss is cut by parameter here, and no gradient is ever added up. Both devices can read the whole
# input, so nothing needs to be sent before fc1. That operator reads all channels, so there the devices exchange their
# halves of the output of pool1.
#
# ## A walk that sometimes goes uphill
#
# Three hundred strategies can all be tried, but 10¹⁸ can't. So let's walk. We start with some strategy, propose a
# change of one operator, simulate the result, and keep it if it is faster. Then we propose the next change, and so on.
# What could go wrong?
#
# Suppose that everything is on device 0, which takes 40 ms, and that the first proposal is to cut conv1 by sample. This
# saves 4 + 8 = 12 ms of computing. But the pool is still on device 0, so device 1 has to send it half of the output of
# conv1. That is 4,096 numbers, which take 8 ms, and the same again backward. The gradients of conv1 take 1 ms more. The
# step now takes 40 − 12 + 16 + 1 = 45 ms, so the proposal is rejected. Would any other change have been better? The
# next cell tries them all:


# %% tags=["nbval-check-output"]
def changes(strategy):
    """Return all strategies that differ from this one in a single operator."""
    changed = []
    for number, options in enumerate(choices):
        for option in options:
            if option != strategy[number]:
                changed.append((*strategy[:number], option, *strategy[number + 1 :]))
    return changed


one_device = (whole, whole, whole, whole, whole)
times = [known[changed] for changed in changes(one_device)]
print(f"now {known[one_device]:g} ms; after one change at least {min(times):g} ms")

# %% [markdown]
# So a walk that only accepts improvements is stuck here, and the way out leads through strategies that are worse. In a
# **Metropolis** walk, named after the first author of a paper on physics from 1953, a proposal that is slower is still
# accepted with the probability
#
# $$e^{-(\text{new}-\text{old})/T} .$$
#
# Here *old* and *new* are the times of a step before and after, and $T$ is a third time that you choose, called the
# **temperature**. With $T$ = 3 ms, our proposal above is 5 ms slower and is accepted with probability $e^{-5/3}$, which
# is 19 %.
#
# **Predict.** Again everything is on device 0, and now the proposal is to cut only *pool1* by sample. How long does a
# step take, and with which probability, in percent, is the proposal accepted?

# %%
course.predict("strategy_uphill", within=1.3, ms=..., percent=...)

# %% tags=["nbval-check-output"]
pool1_cut = [whole, whole, by_sample, whole, whole]
slower = step_ms(pool1_cut) - 40
probability = np.exp(-slower / 3)
course.answer("strategy_uphill", ms=step_ms(pool1_cut), percent=100 * probability)

# %% [markdown]
# Device 1 now has to receive half of the output of conv1 and send back half of the output of pool1, which takes 8 + 2
# ms, and the same again backward. All that saves only 2 ms of computing, so this proposal has hardly a chance. The next
# cell contains the whole walk:


# %%
def walk(strategy, temperature, random):
    times = [known[strategy]]
    for _ in range(1000):
        options = changes(strategy)
        proposed = options[random.integers(len(options))]
        slower = known[proposed] - known[strategy]
        if slower <= 0 or random.random() < np.exp(-slower / temperature):
            strategy = proposed
        times.append(known[strategy])
    return np.array(times)


# %% [markdown]
# We let 50 walks with a temperature of 3 ms start from random strategies. Another 50 start from the same ones with a
# temperature so close to 0 that they only go downhill:

# %% tags=["figure:12_walks"]
from course_utils.lessons.strategy_search import walks_text

walks, drawn = {}, {}
temperatures = {"only downhill": 1e-9, "sometimes uphill": 3}  # in ms
for name, temperature in temperatures.items():
    random = np.random.default_rng(1)
    starts = random.choice(len(known), 50)
    walks[name] = [walk(list(known)[start], temperature, random) for start in starts]
    drawn[name] = [1e6 * times[:300] for times in walks[name][:5]]  # in nanoseconds
part = "Five walks of each kind, their first 300 proposals"
title = walks_text(walks, known[best])
pictures.cost_over_iterations(drawn, title, 1e6 * known[best], part)

# %% [markdown]
# A line that stays level to the end belongs to a walk that got stuck. Where can that happen? The next cell lists all
# strategies that no single change improves:

# %% tags=["nbval-check-output"]
for strategy, ms in known.items():
    if all(known[changed] >= ms for changed in changes(strategy)):
        print(f"{ms:.1f} ms: {strategy_text(five, strategy)}")

# %% [markdown]
# One of these is the best strategy, and the others are traps for a walk that only goes downhill. A walk that may go
# uphill leaves the traps again. It also leaves the best strategy again, so a search has to remember the best one that
# it has met. Whether there is a better one, it can't tell, but a search in [Further](12_strategy_search_further.ipynb)
# can, for some networks.
#
# ## One transformer block
#
# Now for a network of today, the transformer block that you cut by hand in lesson 9. We take vectors of width 1,024, 16
# heads, and 8 texts of 128 tokens each, which makes 1,024 tokens in a step. `read_model` records with **torch.fx**, a
# part of PyTorch, which operations a model's `forward` calls, and adds a loss at the end. The GELU between the last two
# linear layers treats every number by itself, so it goes along with the operator before it. There is also a new cut.
# Lesson 9 cut some linear layers by *row*, so that each device reads only its own part of the input, and the outputs
# are added up. SOAP cuts only outputs and doesn't contain this, so we ask for it with `row_cuts=True`:

# %% tags=["here:12_block_operators", "nbval-check-output"]
from course_utils.lessons.strategy_search import transformer_block

width = 1024
with torch.device("meta"):
    block = transformer_block(width, heads=16, seed=None)

shape = (8, 128, width)  # texts, tokens of each, numbers of each token
graph = read_model(block, shape, row_cuts=True)
for operator in graph.operators:
    output = " × ".join(str(length) for length in operator.shape)
    cuts = ", ".join(operator.cuts)
    print(f"{operator.name:15}{output:16}{operator.parameters:10,}  {cuts}")
count = prod(len(options) for options in choices_of(graph, devices=2))
print(f"{count:,} strategies on two devices")

# %% [markdown]
# The columns show the shape of the output, the number of weights, and what may be cut. For a text, an attribute is the
# position of a token. A cut of attention by parameter runs between its heads. We treat the input of the block as data,
# and its 1,024 outputs as the scores of the next token, because this single block has no other layers around it.
#
# Before we search, let's see what is at stake. The two linear layers of the MLP, `up` and `down`, have $8w^2$ weights
# if $w$ is the width. With data parallelism, each of two devices sends as many gradients. Here that is 8 × 1,024² = 8.4
# million numbers, however many tokens there are.
#
# What if `up` is cut by parameter and `down` by row, as in lesson 9? Then no gradients need to be added up, but
# activations travel. With $t$ tokens, `up` reads $t \times w$ numbers. If each device has made half of them, it sends
# $\frac12 tw$ to the other, and in the backward pass it sends another $\frac12 tw$ gradients. `down` reads only what is
# already there. Each device then has a partial sum for all $t \times w$ outputs, sends the other device's half of it,
# which is $\frac12 tw$, and sends as much again backward. Together these are $2tw$ numbers. With 1,024 tokens that
# makes 2.1 million, far less than 8.4 million.
#
# **Predict.** With how many tokens do both ways send the same?

# %%
course.predict("strategy_tokens", within=1.1, tokens=...)

# %% [markdown]
# Does the search agree? Its answer depends on the devices, so we describe two GPUs instead of measuring yours. Each
# computes 19.5 TFLOP/s in float32 and moves 1.5 TB/s in its memory, about as much as NVIDIA's A100 (2020). Between
# them, a message takes 10 µs plus its bytes at 25 GB/s. The time of every part of an operator is then estimated from
# its arithmetic and its bytes, as in lesson 3, with 5 µs for each kernel launch. `find_strategy` sends out a dozen
# Metropolis walks at once and lets their temperature fall:

# %% tags=["nbval-check-output"]
from course_utils.lessons.strategy_search import describe, described_costs, find_strategy
from course_utils.words import wrapped

course.answer("strategy_tokens", tokens=8 * width**2 / (2 * width))
gpus = describe({"GPU 0": 40e9, "GPU 1": 40e9}, link=(10e-6, 25e9))
found = {}
for length in (64, 192, 384, 768):
    graph = read_model(block, (8, length, width), row_cuts=True)
    costs = described_costs(graph, gpus, 19.5e12, 1.5e12, launch_seconds=5e-6)
    tokens = 8 * length
    found[tokens] = find_strategy(graph, costs, devices=2, iterations=20_000).strategy
    print(wrapped(f"{tokens:5} tokens: {strategy_text(graph, found[tokens])}"))

# %% tags=["figure:12_block"]
few, many = found[1536], found[6144]
title = "With few tokens the weights are cut, with many tokens the texts"
panels = {"1,536 tokens": few, "6,144 tokens": many}
pictures.strategies(graph, panels, title, devices=gpus.names)

# %% [markdown]
# With few tokens the search finds the cuts of lesson 9. Attention is cut between its heads, and the MLP by parameter
# and by row. The norms are cut by sample, because a norm needs all numbers of a token and has hardly any weights. With
# many tokens the search finds data parallelism, whose gradients don't grow with the tokens. At 3,072 tokens it has
# already changed its mind about attention, which has only half as many weights as the MLP. So the width of a model
# alone doesn't tell you how to cut it. The rows of its matrix products are the tokens of a step, and longer texts or a
# larger batch can change the answer.
#
# A search is no better than its space. FlexFlow couldn't have found this pair of cuts, because SOAP doesn't contain it.
# And ours can't find a pipeline with micro-batches (lesson 10) or a sharded optimizer state (lesson 11). Neither is
# among its eight million strategies.
#
# ## From the strategy to a program
#
# A strategy is only worth something if it runs, so the course can write a program for it that uses torch.distributed.
# Our two ranks get a smaller block. Each has to build it for itself, so a `Workload` names the function that builds it,
# with its options and the shape of a batch. The strategy is the one that was found for 1,536 tokens:

# %%
from course_utils.lessons.strategy_search import Workload, program_text

small = Workload(
    "transformer block",
    "course_utils.lessons.strategy_search.graph.example_models.transformer_block",
    {"width": 256, "heads": 4},
    shape=(8, 32, 256),
    classes=256,
    row_cuts=True,
)
graph = small.graph()
text = program_text(small.model(), graph, few, small.build, ranks=2)
print(text[text.index("    def forward") : text.index("def train")].rstrip())

# %% [markdown]
# All ranks run the same lines, and on each rank `self.qkv`, `self.up` and so on are its own parts of these operators.
# The input is on every rank, and `own` picks out the part that this rank reads. Wherever a part needs numbers from the
# other rank, there is a collective of lesson 4, under a comment that explains the reason. For instance, `up` reads all
# of `norm_2`, which was cut by sample, so an `all_gather` brings the samples together. The sums of `out` and `down`,
# which are cut by row, belong to these parts and need no line of their own. In the backward pass, gradients travel the
# opposite way.
#
# Does it train as a single process does? We take two steps in float64 and compare the losses:

# %%
from course_utils.lessons.hybrid_and_sharded import same_text
from course_utils.lessons.strategy_search import train_program, train_serial


def small_block():
    return small.model().double()


inputs, labels = small.batch()
batches = [(inputs.double(), labels), (inputs.double(), labels)]
parallel = train_program(ranks, text, small_block, batches)
serial = train_serial(small_block(), batches)
print(same_text({"the program on 2 ranks": parallel}, serial))
assert np.allclose(parallel, serial, rtol=1e-10)

# %% [markdown]
# ## Is the simulator right?
#
# So far, all times were simulated. To find out whether they are true, we let our two ranks time every operator, cut in
# each possible way, and the link between them. With these costs we search once more and simulate a few strategies. Then
# each becomes a program, and their steps are timed in turns.
#
# Don't expect sharing to pay off this time. The small block has about $12w^2$ = 786,000 weights of 4 bytes, or 3.1 MB.
# On a link of 400 Mbit/s, which is 50 MB/s, their gradients alone take 63 ms in data parallelism, and a single core may
# need less than that for the whole step.

# %% tags=["figure:12_block_times"]
from course_utils.lessons.strategy_search import compare, honesty_text, measure_costs
from course_utils.lessons.strategy_search import measured_topology, timed_text
from course_utils.measuring import BUSY, CALM, is_busy

rounds = 4
link = measured_topology(ranks, repeats=3)
costs = measure_costs(graph, link, ranks, rounds)
print(timed_text(len(costs.times), costs.spread))
here = find_strategy(graph, costs, devices=2, iterations=20_000).strategy
print(wrapped(f"found for these two ranks: {strategy_text(graph, here)}"))

tried = {"one device": [whole] * len(graph), "few tokens": few, "many tokens": many}
if here not in tried.values():
    tried["found here"] = here
judged = compare(ranks, small, list(tried.values()), costs, rounds)
points = {}
for name, simulated, measured in zip(tried, judged.predicted, judged.measured):
    points[name] = [(simulated, measured)]
    both = f"simulated {1e3 * simulated:4.0f} ms, measured {1e3 * np.median(measured):4.0f} ms"
    print(f"{name:12} {both}")
busy = is_busy(judged.measured) or costs.spread > CALM
title = BUSY if busy else honesty_text(judged.predicted, judged.medians)
pictures.predicted_measured(points, title)

# %% [markdown]
# *Few tokens* and *many tokens* are the strategies from the search above. A point on the broken line would be a perfect
# simulation. FlexFlow's authors report that theirs was off by less than 30 %. For a search it matters most that the
# *ranking* is right, because then the strategy that is fastest in the simulator is also the fastest in reality. The
# simulator knows nothing of communication that overlaps with computing, of transfers that share a link, of data that
# happen to be in a cache, or of other programs on your computer.
#
# [Further](12_strategy_search_further.ipynb) does the same with AlexNet, with other links, with more GPUs, and with
# GPUs of unequal speed.
#
# ## Programs that choose today
#
# FlexFlow (2018) searches with Metropolis walks, as we did. Its successor Unity (2022) can also cut by row. Alpa (2022)
# includes pipelines. It finds their stages with dynamic programming and the cuts inside each stage with an integer
# linear program, for which good solvers exist. In JAX, you state how a few tensors are cut, and the compiler XLA works
# out the rest (GSPMD, now Shardy). PyTorch's DTensor decides operator by operator while the program runs.
# [AutoParallel](https://github.com/meta-pytorch/autoparallel), an experimental project by PyTorch's developers (2025),
# looks at the whole model first and chooses DTensor's placements with an integer linear program.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can describe how a network is spread over devices with one configuration for each operator, and work out what has
# to be sent. If you know how long each part takes, ten lines of code simulate a step. A walk that sometimes accepts a
# worse strategy gets out of traps that would stop one that only goes downhill. For a transformer block, you can
# calculate from the number of tokens and the width whether to cut the batch or the weights. And you know what to ask of
# any such program, namely what its space leaves out, whether the result trains as one process does, and whether its
# times hold.
#
# In the [exercises](../exercises/12_strategy_search.ipynb) you write the tasks, the simulator and the walk for any
# network. [Lesson 13](13_gpu_nodes.ipynb) goes from your processes to nodes with many GPUs.
#
# **To read**
#
# - Jia, Zaharia and Aiken (2018), [*Beyond Data and Model Parallelism for Deep Neural
#   Networks*](https://arxiv.org/abs/1807.05358), is the paper on FlexFlow, with SOAP and the simulator.
# - Zheng and others (2022), [*Alpa*](https://arxiv.org/abs/2201.12023), searches in two levels, between stages and
#   inside them.
# - Xu and others (2021), [*GSPMD*](https://arxiv.org/abs/2105.04663), explains how a compiler completes a few
#   annotations.
