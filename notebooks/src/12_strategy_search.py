# The lesson on strategy search. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Can the machine choose for us?
#
# In lesson 11 you chose one arrangement for a whole model. But each layer could be split across the devices in whatever
# way suits it best. On two devices, a single transformer block allows eight million combinations. For AlexNet, an image
# network from 2012, and *four* devices there are about 2 × 10¹⁸. Even a program that evaluated a million of them per
# second would need 60,000 years.
#
# That is why people write programs that search. In this lesson you will build a small one, and see why the best way to
# cut a transformer depends on how many tokens it reads. Then you will check that a strategy from a search trains
# correctly, and compare simulated times with measured ones.
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
# An **operator** is a step of a network, such as a layer, whose output can be cut into parts. We start with only five,
# so that you can work everything out on paper. Between the input, 8 small images, and the loss are a convolution, which
# slides a small window over each image, a pool, which halves its height and width, and a fully connected layer. The
# times are invented:

# %% tags=["here:12_five_operators"]
from course_utils.lessons.strategy_search import COMPUTE, HandCosts, five_operators

five = five_operators()
print("          forward  backward  weights  output")
for operator in five.operators:
    forward, backward = COMPUTE.get(operator.name, (0, 0))
    output = " × ".join(str(length) for length in operator.shape)
    row = f"{operator.name:8}{forward:6} ms{backward:7} ms"
    print(f"{row}{operator.parameters:9,}  {output} = {prod(operator.shape):,}")

# %% [markdown]
# The output of conv1 has 8 images of 16 channels, each with 8 × 8 numbers. On a single device, all these times add up
# to 40 ms. With two devices and a link between them, these rules hold:
#
# - Half of an operator takes half of its time.
# - Both devices can read the input and the labels, so nothing is sent for them.
# - The link carries 512 numbers per millisecond in each direction, and it can carry both directions at once.
# - While the devices send, receive or add up numbers, *both are busy* and neither computes. Real libraries can do both
#   at once (lesson 7), but the programs in this lesson don't.
# - If both devices hold the same $n$ weights, they add up their gradients with an all-reduce, right after that
#   operator's backward pass. Each sends $n$ numbers (lesson 5), which takes $n/512$ ms.
#
# Here is data parallelism in full, with 4 of the 8 images on each device:
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
# The gradients of fc1 take more than a third of this time. What if only device 0 had fc1 and the loss, for all 8
# images? Then device 1 has to send its half of the output of pool1, for 4 images, to device 0. In the backward pass
# device 1 receives just as many gradients, and it sits idle in between.
#
# **Predict.** How many milliseconds does a step take if fc1 and the loss are on device 0?

# %%
course.predict("strategy_by_hand", ms=...)

# %% [markdown]
# ## A program calculates when each task ends
#
# Now let a program do the calculation. A `Config` describes how one operator is spread, and a list with a `Config` for
# every operator is a **strategy**. From a strategy and our rules, which are in `HandCosts`, the function `task_graph`
# lists the **tasks** of a step. A task is a piece of work that occupies one device. You will write `task_graph` in the
# exercises:

# %% tags=["here:12_tasks"]
from course_utils.lessons.strategy_search import Config, task_graph

whole = Config(devices=(0,))  # not cut, on device 0
by_sample = Config(sample=2, devices=(0, 1))  # in two parts
data_parallel = [whole, by_sample, by_sample, by_sample, by_sample]
fc1_alone = [whole, by_sample, by_sample, whole, whole]

tasks = task_graph(five, fc1_alone, HandCosts())
for number, task in enumerate(tasks):
    milliseconds = task.nanoseconds / 1e6
    print(f"{number:2}  {task.name:15} device {task.device} {milliseconds:3g} ms", end="")
    print("  after", *task.after)

# %% [markdown]
# An arrow in a name means an exchange between two operators. The last column lists the tasks that have to end before
# this one may begin. Task 4, for example, is device 0's share of moving the output of pool1. For that, both devices
# must have finished pool1, which are tasks 2 and 3.
#
# A task begins when its device is free and all the tasks in its list have ended. A program that calculates all times in
# this way, without running anything, is called a **simulator**. With the tasks given, it is short:


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
# Now fc1 takes 6 ms more, and since half of the output of pool1 is 1,024 numbers, two exchanges add 2 ms each. But the
# 12 ms for the gradients of fc1 are gone, so the step is 2 ms faster. Can you think of a strategy that is faster still?
#
# ## What may be cut?
#
# So far we have only cut the batch. FlexFlow, the search program whose ideas we follow, cuts the output of an operator
# by **s**ample, by **a**ttribute or by **p**arameter. It calls its choices **SOAP**, with an O for the operators,
# because each may be cut differently. In a convolution, an attribute is a position in the image, and we cut only the
# height. A cut by parameter gives each device some of the output channels, together with the weights that produce them.
# It is the column cut of lesson 9.
#
# What does each cut send? Take two convolutions of a different network, one after the other, both cut in half in the
# same way. They have outputs of 8 images with 16 channels of 12 × 12 numbers. The second has a window of 3 × 3, so for
# line 5 of its output, device 0 also needs line 6 of the input. In a cut by attribute, that line is on device 1. Such
# lines at the border are called the **halo**. Here it has 12 numbers in each of 16 channels of 8 images, so device 0
# has to fetch 8 × 16 × 12 = 1,536 numbers.
#
# **Predict.** How many numbers must device 0 fetch in a cut by attribute if the window is 5 × 5? And with a window of 3
# × 3, how many in a cut by sample, and by parameter, where its half of the output channels needs all input channels?

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
# The blocks are the outputs of both convolutions. Images are stacked from front to back, channels run from left to
# right, and lines from top to bottom.
#
# With a cut by sample, both devices hold all the weights, so their gradients have to be added up. With a cut by
# parameter, every weight is on one device only, and its gradient is complete there. But each device then knows only its
# own contribution to the gradient of the *input*. These have to be added up, so in the backward pass the devices send
# as much as they fetched forward. A cut by attribute sends the halo in both passes and adds up the weight gradients as
# well. It can be worth it when a single image is too large for one device's memory.
#
# ## How many strategies are there?
#
# On two devices, a convolution has five configurations. It can be on device 0, on device 1, or cut in half by sample,
# attribute or parameter, with the first half on device 0. The pool has the same five, where a cut by parameter divides
# only the channels. These two alone give 5 × 5 = 25 combinations. The output of fc1 has only samples and parameters,
# and the loss only samples. For the input there is nothing to choose.
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
# On four devices, an operator can also be cut in two ways at once. Three hundred strategies is few enough to simulate
# every one:

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
# Conv1, pool1 and fc1 are cut by parameter here, so no weight gradients are added up. Since fc1 reads all channels, the
# devices exchange their halves of the output of pool1, and in the backward pass their contributions to its gradient, 2
# ms each. The thin slivers are the exchanges between fc1 and the loss.
#
# ## A walk that sometimes goes uphill
#
# Three hundred strategies can all be tried, but 10¹⁸ can't. So let's take a walk instead. We start with some strategy,
# propose a change of one operator, and keep it unless the simulated step gets slower. Then we propose the next one.
# What could go wrong?
#
# Suppose that everything is on device 0, which takes 40 ms, and that we propose to cut conv1 by sample. This saves 4 +
# 8 = 12 ms of computing. But the pool is still on device 0, so device 1 has to send it half of the output of conv1.
# That is 4,096 numbers, which take 8 ms, and the same again backward. The gradients of conv1 take 1 ms more. With 40 −
# 12 + 16 + 1 = 45 ms, the proposal is rejected. Would a different change have helped?


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
least = min(changes(one_device), key=known.get)
print(f"now {known[one_device]:g} ms; the fastest after one change {known[least]:g} ms:")
print(strategy_text(five, least))

# %% [markdown]
# So the way out leads through strategies that are worse. In a **Metropolis** walk, named after the first author of a
# physics paper from 1953, a proposal that is slower is still accepted with probability
#
# $$e^{-(\text{new}-\text{old})/T} .$$
#
# Here *old* and *new* are the times of a step before and after, and $T$ is a time that you choose, called the
# **temperature**. With $T$ = 3 ms, our proposal above, which is 5 ms slower, is accepted with probability $e^{-5/3}$,
# or 19%.
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
# Device 1 has to receive half of the output of conv1 and send back half of the output of pool1, which takes 8 + 2 ms,
# and the same again backward. All this saves only 2 ms of computing, so the proposal stands little chance. Here is the
# whole walk:


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
# temperature so close to 0 that they never go uphill:

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
# A blue line that stays level above the dashed one belongs to a walk that got stuck, and several may lie on top of each
# other. These are all the strategies that no single change improves:

# %% tags=["nbval-check-output"]
for strategy, ms in known.items():
    if all(known[changed] >= ms for changed in changes(strategy)):
        print(f"{ms:.1f} ms: {strategy_text(five, strategy)}")

# %% [markdown]
# One of these is the best strategy, and the others are traps. A walk that may go uphill can leave the traps. It also
# leaves the best strategy again, so a search has to remember the best one that it has met. It can't tell whether a
# better one exists. For some networks, a search in [Further](12_strategy_search_further.ipynb) can.
#
# ## One transformer block
#
# Now for a modern network: the transformer block of lesson 9. It has a width of 1,024 and 16 heads, and reads 8 texts
# of 128 tokens, so 1,024 tokens in a step. With **torch.fx**, a part of PyTorch, `read_model` records which operations
# a model's `forward` calls. It merges the GELU with the linear layer before it, and adds a loss at the end. Lesson 9
# also cut linear layers by *row* of their weight matrix, so that each device reads only its own part of the input, and
# the outputs are added up. SOAP, which cuts only outputs, lacks this, so we ask for it with `row_cuts=True`:

# %% tags=["here:12_block_operators", "nbval-check-output"]
from course_utils.lessons.strategy_search import transformer_block

width = 1024
with torch.device("meta"):
    block = transformer_block(width, heads=16, seed=None)

shape = (8, 128, width)  # texts, tokens of each, numbers of each token
graph = read_model(block, shape, row_cuts=True)
block_choices = choices_of(graph, devices=2)
for operator, options in zip(graph.operators, block_choices):
    output = " × ".join(str(length) for length in operator.shape)
    cuts = ", ".join(operator.cuts)
    row = f"{operator.name:15}{output:16}{operator.parameters:10,}"
    print(f"{row}{len(options):4}  {cuts}")
count = prod(len(options) for options in block_choices)
print(f"{count:,} strategies on two devices")

# %% [markdown]
# The columns are the shape of the output, the number of weights, the number of configurations, and what may be cut. In
# a text, an attribute is the position of a token. Attention is cut by parameter between its heads. A row cut counts as
# *two* configurations, because each device can get the sum for half of the samples or for half of the positions. So
# `qkv`, for example, has 2 + 3 + 2 = 7. `up` has no row cut, because its GELU needs the finished sum. We treat the
# 1,024 outputs as scores for 1,024 possible next tokens.
#
# The two linear layers of the MLP, `up` and `down`, have $8w^2$ weights if $w$ is the width. With data parallelism,
# each device sends that many gradients, here 8 × 1,024² = 8.4 million, however many tokens there are.
#
# What if `up` is cut by parameter and `down` by row, as in lesson 9, and the operators around them by sample? With $t$
# tokens, the input of `up` has $t \times w$ numbers, of which each device has its own half of the samples. So each
# sends $\frac12 tw$ numbers to the other, and the same amount again in the backward pass, where this input's gradients
# are added up. `down` reads only what is already there. Each device then has a partial sum for all $t \times w$
# outputs. It sends half of these sums to the device that needs them, and the same amount again backward. Together these
# are $2tw$ numbers. With 1,024 tokens that makes 2.1 million, a quarter of 8.4 million.
#
# **Predict.** With how many tokens do both ways send the same?

# %%
course.predict("strategy_tokens", within=1.1, tokens=...)

# %% [markdown]
# Does the search agree? Its answer depends on the devices, so we describe two GPUs instead of measuring yours. Each has
# 40 GB of memory, computes 19.5 TFLOP/s in float32 and moves 1.5 TB/s in its memory, about as much as NVIDIA's A100
# (2020) without its tensor cores. Between them, a message takes 10 µs plus its bytes at 25 GB/s. The time of every part
# is then estimated from its arithmetic and its bytes, as in lesson 3, with 5 µs for each kernel launch. `find_strategy`
# runs a dozen Metropolis walks at once and gradually lowers their temperature:

# %% tags=["nbval-check-output"]
from course_utils.lessons.strategy_search import describe, described_costs, find_strategy
from course_utils.words import wrapped

course.answer("strategy_tokens", tokens=8 * width**2 / (2 * width))
memory = {"GPU 0": 40e9, "GPU 1": 40e9}  # in bytes
gpus = describe(memory, link=(10e-6, 25e9))
found = {}
for length in (64, 192, 384, 768):
    graph = read_model(block, (8, length, width), row_cuts=True)
    costs = described_costs(graph, gpus, 19.5e12, 1.5e12, launch_seconds=5e-6)
    tokens = 8 * length
    found[tokens] = find_strategy(graph, costs, devices=2, iterations=20_000).strategy
    print(wrapped(f"{tokens:5} tokens: {strategy_text(graph, found[tokens])}"))

# %% tags=["figure:12_block"]
few, many = found[1536], found[6144]
title = "With few tokens, cut the weights; with many, cut the batch"
panels = {"1,536 tokens": few, "6,144 tokens": many}
pictures.strategies(graph, panels, title, devices=gpus.names)

# %% [markdown]
# With few tokens, the search finds the cuts of lesson 9 for the linear layers and the heads. With many tokens it finds
# data parallelism, whose gradients don't grow with the tokens. By 3,072 tokens it has already switched for attention,
# whose linear layers have only half as many weights as the MLP.
#
# The limit of $4w$ tokens holds for the MLP. The linear layers of attention have $4w^2$ weights, so by the same
# calculation their limit is $2w$. And both limits are a guide only if both ways fit into memory and no message overlaps
# with computation. Real libraries send gradients during the backward pass (lesson 7), so data parallelism can win below
# these limits, too.
#
# A search is no better than its space. FlexFlow, as published in 2018, couldn't have found this pair of cuts, and ours
# can't find a pipeline with micro-batches (lesson 10) or a sharded optimizer state (lesson 11).
#
# ## From the strategy to a program
#
# From a strategy, the course can write a program. Our two ranks get a block of width 256, and a `Workload` describes
# how each builds its copy. Its 8 × 32 = 256 tokens are fewer than $2w$ = 512, so we use the strategy in which both
# attention and the MLP are cut by weights, the one found for 1,536 tokens:

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
# On each rank, `self.qkv` and the others are its own parts of these operators, and `own` picks out its part of the
# input. `up` reads all of `norm_2`, which was cut by sample, so an `all_gather` (lesson 4) brings the samples together,
# and its backward pass adds up their gradients. The sums of `out` and `down`, which are cut by row, happen inside these
# parts and need no line here.
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
# So far, all our times have been simulated. To compare them with real ones, our two ranks time the link and every
# operator, cut in each possible way. With these costs we search once more and simulate a few strategies, and then we
# time their programs in turn, for four rounds. Don't expect sharing to pay off on a link of 400 Mbit/s. The small block
# has about $12w^2$ = 786,000 weights, or 3.1 MB, whose gradients alone take 63 ms. Cutting the weights sends less,
# $4tw$ numbers or about 21 ms, but a single processor may need no more than that for the whole step.

# %% tags=["figure:12_block_times"]
from course_utils.lessons.strategy_search import compare, honesty_text, measure_costs
from course_utils.lessons.strategy_search import measured_topology, timed_text
from course_utils.measuring import BUSY, CALM, is_busy

rounds = 4
link = measured_topology(ranks, repeats=3)
costs = measure_costs(graph, link, ranks, rounds, fresh=True)  # no old times
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
# A point on the dashed line would mean a perfect prediction, and a bar reaches from the shortest to the longest of the
# four rounds. If the machine was calm, the title gives the error of the simulated time, compared with the median of the
# rounds. If the machine was busy, close other programs and run the cell again. A search doesn't need exact times. It
# picks the fastest strategy if the simulator ranks that one first. Ours knows nothing about data that happens to be
# cached, or about other programs on your computer.
#
# [Further](12_strategy_search_further.ipynb) does the same with AlexNet, with other links, with more GPUs, and with
# GPUs of unequal speed. It also describes newer programs, such as Alpa and PyTorch's AutoParallel.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can describe how a network is spread over devices, work out what has to be sent, and calculate how long a step
# takes. A walk that sometimes accepts a worse strategy can get out of traps. For the MLP of a transformer block, you
# can calculate from the tokens and the width whether cutting the batch or the weights sends less, which decides if
# nothing overlaps and both fit into memory. And you know what to ask of any such program: what its search space leaves
# out, whether the result trains just as a single process would, and whether its predicted times, or at least their
# ranking, hold up.
#
# In the [exercises](../exercises/12_strategy_search.ipynb) you write the tasks, the simulator and the walk for any
# network. [Lesson 13](13_gpu_nodes.ipynb) goes from your processes to nodes with many GPUs.
#
# **To read**
#
# - Jia, Zaharia and Aiken (2018), [*Beyond Data and Model Parallelism for Deep Neural
#   Networks*](https://arxiv.org/abs/1807.05358), is the paper on FlexFlow, with SOAP and the simulator.
# - Zheng and others (2022), [*Alpa*](https://arxiv.org/abs/2201.12023), searches on two levels, between stages and
#   inside them.
# - Xu and others (2021), [*GSPMD*](https://arxiv.org/abs/2105.04663), explains how a compiler works out the cuts of a
#   whole model from a few annotations.
