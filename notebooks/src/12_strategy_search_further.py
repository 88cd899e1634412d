# The optional second notebook of lesson 12. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: can the machine choose for us?
#
# On the first page, walks found good strategies in less than a second. But walks that have tried 25,000 of 2 × 10¹⁸
# strategies can't tell you whether a better one is among the rest. In this notebook another search can, for some
# networks, and it hands over a proof that a second program checks.
#
# You will also see what the search does in other situations. We give it a convolutional network, faster and slower
# links, more GPUs, a GPU that is slower than the others, and a transformer block without the row cut. Section 8 shows
# why it is so fast.
#
# Everything here is optional, and nothing later depends on it. The first two code cells prepare the notebook. After
# that you can run any section, but section 4 builds on section 3. JupyterLab lists them in its table of contents, on
# the left. If a section complains that its ranks were stopped, run the first two code cells again.
#
# 1. *A convolutional network*: we read AlexNet, search its strategies, turn the best into a program and time it
# 2. *Other links*: which strategy is the fastest on which link
# 3. *Is it the best?*: a lower bound, and a certificate that others can check
# 4. *How near do walks come?*: larger networks on two and four GPUs
# 5. *What SOAP alone finds*: a transformer block without row cuts, and one long text
# 6. *A report, redone*: AlexNet on two GPUs, and who had the idea
# 7. *A slow GPU*: when is it better to leave it out?
# 8. *Changing one operator*: simulate only what has changed
# 9. *After FlexFlow*: what newer programs do
#
# *80 minutes · optional, after [lesson 12](12_strategy_search.ipynb) · 2 ranks, about 9 minutes for each section*

# %%
from dataclasses import replace
from itertools import product

import numpy as np
import torch

import course_utils as course
from course_utils.lessons.hybrid_and_sharded import same_text
from course_utils.lessons.strategy_search import Config, Workload, alexnet, describe
from course_utils.lessons.strategy_search import described_costs, find_strategy
from course_utils.lessons.strategy_search import found_text, known_ways, measure_costs
from course_utils.lessons.strategy_search import measured_topology, pictures
from course_utils.lessons.strategy_search import predicted_seconds, program_text
from course_utils.lessons.strategy_search import read_model, report_costs
from course_utils.lessons.strategy_search import search_and_prove, strategy_text
from course_utils.lessons.strategy_search import timed_text, train_program, train_serial
from course_utils.measuring import BUSY, CALM, Compared, is_busy, unless_busy
from course_utils.words import percent, seconds_text, wrapped

ranks = course.start(2, link="400 Mbit/s")
ranks.load_torch()

batch = 64
pixels = 160
case = Workload(
    "AlexNet",
    "course_utils.lessons.strategy_search.graph.example_models.alexnet",
    {"width": 0.25, "pixels": pixels, "linear": 0.25},
    (batch, 3, pixels, pixels),
)
graph = case.graph()  # its operators

# %% [markdown]
# In the next cell, both ranks time every part into which an operator can be cut, and measure the link between them, as
# on the first page. If the machine was busy, the simulated times of sections 1 to 3, which rest on these, are only
# examples. Then close other programs and run the cell again.

# %% tags=["here:12_links"]
rounds = 4  # of timing
topology = measured_topology(ranks, repeats=3)
costs = measure_costs(graph, topology, ranks, rounds, fresh=True)  # no old times
disturbed = costs.spread > CALM
print(timed_text(len(costs.times), costs.spread))

# %% [markdown]
# ## A convolutional network
#
# The first page searched a transformer block. A convolutional network is a different problem, because its operators are
# so unlike each other. AlexNet won the ImageNet competition in 2012, on two GPUs. We take its author's version of 2014,
# whose layers aren't split in two, with a quarter of the channels, ten classes and images of 160 × 160 pixels. Here is
# what `read_model` finds in it:

# %% tags=["here:12_operators"]
for operator in graph.operators:
    shape = " × ".join(map(str, operator.shape))
    runs = ", ".join(operator.modules)
    print(f"{operator.name:6} {shape:17}{operator.parameters:9,} weights  {runs}")

# %% [markdown]
# A ReLU treats every number by itself, so it **follows** the operator before it, however that one is cut. It has no
# configuration of its own, and neither has the flattening in front of fc6.
#
# Which cut suits which operator? We count what a device sends, beginning with conv2, which reads the output of pool1
# and has 19,248 weights. If it is cut by sample, each device has all of these weights, and in the all-reduce of their
# gradients it sends as many numbers as there are weights, 19,248 (lesson 5). If it is cut by parameter, each device
# needs all channels of all images that pool1 made, and has half of them. These are 64 × 16 × 19 × 19 = 369,664 numbers,
# so each device sends its half, 184,832 numbers, forward, and as many gradients backward. That makes 369,664, which is
# 19 times as many. So conv2 should be cut by sample.
#
# Now fc6, which has 1,049,600 weights. It reads 1,024 numbers for each of the 64 images, of which each device has made
# half.
#
# **Predict.** How many numbers does a device send for fc6, forward and backward together, if fc6 is cut by sample? And
# how many if it is cut by parameter?

# %%
course.predict("strategy_fc6", by_sample=..., by_parameter=...)

# %%
from course_utils.lessons.strategy_search import fetched_numbers

pool5, fc6 = graph.operators[8], graph.operators[9]
by_sample = Config(sample=2, devices=(0, 1))
by_parameter = Config(parameter=2, devices=(0, 1))
each_way = fetched_numbers(pool5, fc6, by_parameter, 0)
course.answer("strategy_fc6", by_sample=fc6.parameters, by_parameter=2 * each_way)

# %% [markdown]
# For fc6 it is the other way round. Cut by parameter, it sends only a sixteenth. On two devices, a cut by sample sends
# as many numbers as the layer has weights, and a cut by parameter as many as it reads. Alex Krizhevsky, after whom the
# network is named, published a simpler rule in 2014. He cut convolutions by sample and fully connected layers by
# parameter. What does the search choose? We give it the measured times, and compare the result with four strategies
# that people have used, of which the first leaves everything on one device. "The report's" strategy comes from a
# student's report of 2020; a later section returns to it:

# %% tags=["here:12_strategies"]
four = known_ways(graph)
seconds = {
    name: predicted_seconds(graph, strategy, costs) for name, strategy in four.items()
}
for name, taken in seconds.items():
    print(f"{name:16} {seconds_text(taken)}")
found = find_strategy(graph, costs, devices=2, iterations=25_000)
print(f"{found.evaluations:,} strategies simulated in {found.seconds:.1f} s")
both = {"data parallel": four["data parallel"], "found": found.strategy}
title = f"Found: {strategy_text(graph, found.strategy)}"
pictures.strategies(graph, both, unless_busy(disturbed, title))

# %%
title = unless_busy(disturbed, found_text(found.nanoseconds / 1e9, seconds))
starts = "Walks that start with one device, data parallel, model parallel, at random"
history = {"iterations": found.iterations, "subtitle": starts}
pictures.cost_over_iterations(found.history, title, **history)

# %% [markdown]
# The 25,000 proposals are those of all twelve walks together. More strategies are simulated, because the program
# simulates all choices for an operator at once. *Model* means that every operator is cut by parameter if it can be. The
# temperature of the walks falls and is raised again twice; that is where the lines jump, because the walks that began
# at random begin again at random, and the others go on from the best strategy so far. While the search runs, the button
# ■ stops it and keeps the best strategy so far. If your cores are fast, a single device may have won, because every cut
# sends too much for this link. The next section shows from which bandwidth sharing pays.
#
# Here is the program for the strategy that was found:

# %% tags=["here:12_program"]
text = program_text(case.model(), graph, found.strategy, case.build, ranks=2)
print(text[text.index("class") : text.index("def train")].rstrip())

# %% [markdown]
# Each `Part` is this rank's part of an operator and of what follows it. If several ranks have the same weights, the
# backward pass of a `Part` adds up their gradients. If something has to move between two operators, there is a
# collective of lesson 4, and a comment says what is read.
#
# Does this program train as one process does? In float64, the losses should agree to many digits:

# %%
images, labels = case.batch()
batches = [(images.double(), labels)] * 2
parallel = train_program(ranks, text, lambda: case.model().double(), batches)
serial = train_serial(case.model().double(), batches)
assert np.allclose(parallel, serial, rtol=1e-9)
print(same_text({"the program on 2 ranks": parallel}, serial))

# %% [markdown]
# And does a step take as long as the simulator says? Each of these strategies becomes a program, and their steps are
# timed by turns, as in lesson 3:

# %%
from course_utils.lessons.strategy_search import compare, honesty_text

ways = {"found": found.strategy}
for name, strategy in four.items():
    if seconds[name] != found.nanoseconds / 1e9:  # else it is the one that was found
        ways[name] = strategy
judged = compare(ranks, case, list(ways.values()), costs, rounds)
busy = is_busy(judged.measured) or disturbed
points = {}
for name, *point in zip(ways, judged.predicted, judged.measured):
    points[name] = [tuple(point)]
title = BUSY if busy else honesty_text(judged.predicted, judged.medians)
pictures.predicted_measured(points, title)

# %%
from course_utils.lessons.strategy_search import ratio_text

taken = dict(zip(ways, judged.measured))
names = "found", "data parallel"
pair = Compared(*(taken.get(name, taken["found"]) for name in names), names)
expected = seconds["data parallel"] / found.nanoseconds * 1e9
title = BUSY if busy else ratio_text(pair, expected)
course.draw.measured_bars({"a step": pair.bars}, title)

# %% [markdown]
# The simulator leaves out that communication can overlap with computing (lesson 7). Our programs don't do it, but
# torch's DDP does. It also leaves out links that several transfers share, whether a number is still in a cache, and
# everything else that your computer does at the same time. A search doesn't need exact times, because it picks the
# fastest strategy if the simulator ranks that one first. If the ranking is wrong on your computer, the strategy that
# was found need not be the fastest.
#
# ## Other links
#
# The best strategy depends on the link. If you know when, you can tell whether a faster network would pay for itself.
# With a simulator you need no other network to find out, because a link is only two numbers, a latency and a bandwidth.
#
# Start with the simplest question. Data parallelism gives each device half of the images, but the gradients have to be
# added up. From which bandwidth is it faster than one device alone?


# %%
def on_link(mbit):
    """Return the measured costs, with a described link between the two devices."""
    link = 2e-4, mbit * 1e6 / 8  # latency in seconds, bytes per second
    return replace(costs, topology=describe({"0": 2**40, "1": 2**40}, link))


four = known_ways(graph)
alone = predicted_seconds(graph, four["one device"], costs)
no_wait = predicted_seconds(graph, four["data parallel"], on_link(1e12))
weights = sum(operator.parameters for operator in graph.operators)
print(f"one device: {1e3 * alone:.1f} ms")
print(f"data parallel, if no number took any time: {1e3 * no_wait:.1f} ms")
print(f"{weights:,} weights")
if disturbed:
    print(BUSY)
if no_wait > alone:
    print("Two devices are no faster here, so no link is fast enough.")

# %% [markdown]
# Half of the images need not take half of the time. Each device still reads all of the weights, and here both read them
# from the same memory.
#
# Suppose there were a network with a million weights, which one device computes in 100 ms and two devices in 55 ms.
# Data parallelism wins if adding up the gradients takes less than 45 ms. On two devices, each sends as many numbers as
# there are weights, here 4 MB or 32 Mbit. In 45 ms, that takes a link of 32 ÷ 0.045 = 711 Mbit/s.
#
# **Predict.** From how many Mbit/s is data parallelism faster than one device for our AlexNet? (Ignore the latency.)

# %%
course.predict("strategy_links", within=1.3, mbit=...)

# %%
low, high = 1.0, 1e6  # Mbit/s; halve the interval until both strategies are equally fast
while high / low > 1.001:
    middle = (low * high) ** 0.5
    slower = predicted_seconds(graph, four["data parallel"], on_link(middle)) > alone
    low, high = (middle, high) if slower else (low, middle)
course.answer("strategy_links", mbit=round(high))

# %% [markdown]
# Now let the search choose for links of very different bandwidths:

# %%
rates = [50, 200, 800, 3200, 12800, 51200, 204800]  # Mbit/s
times = []
for rate in rates:
    answer = find_strategy(graph, on_link(rate), 2, iterations=10_000)
    known = [predicted_seconds(graph, way, on_link(rate)) for way in four.values()]
    times.append([*known, answer.nanoseconds / 1e9])
    print(wrapped(f"{rate:7,} Mbit/s: {strategy_text(graph, answer.strategy)}"))

# %%
from course_utils.lessons.strategy_search import links_text

lines = dict(zip([*four, "found"], zip(*times)))
title = unless_busy(disturbed, links_text({name: lines[name] for name in four}))
axes = {"across": "link, in Mbit/s", "up": "time of a step, simulated", "log": True}
course.draw.over_numbers(rates, lines, title, unit=seconds_text, **axes)

# %% [markdown]
# Read the picture from left to right. On a slow link, a strategy is judged by how much it sends. On a fast link, it is
# judged by how long the slowest device computes. In between, the search can decide differently for each operator, and
# so find strategies that have no name. The two devices are alike, so it makes no difference which of them gets a layer
# that isn't cut.
#
# ## Is it the best?
#
# If you rent a cluster for a month, you would like to know whether a better strategy exists. Walks can't tell you. But
# AlexNet is a **chain**, in which each operator reads only the one before it, and for chains there is a search that
# can. It belongs to a family of methods called **branch and bound**.
#
# A **partial strategy** decides only about the first operators, say up to pool5. What does fc6, the next operator, see
# of it? Two times for each device. The first is its *clock*, which is when the device has finished pool5 in the forward
# pass. The second is its *rest*. The backward pass returns to these first operators last, after fc6, and the rest is
# how long the device is then still busy with them. Nothing else about them matters. So the search goes from operator to
# operator, extends each partial strategy by all choices for the next one, and drops those that can't lead to the best
# strategy. It has two reasons for that.
#
# - **Dominance.** Suppose partial strategy A has clocks of 10 and 10 ms on the two devices, and rests of 12 and 12 ms.
#   B has clocks of 11 and 10 ms, and rests of 12 and 13 ms. B is nowhere better than A. Whatever follows, a step that
#   begins with A ends no later. So B is dropped.
# - **A bound.** The walks have found a strategy that takes 40 ms. Suppose partial strategy D has a clock of 20 ms and a
#   rest of 15 ms on device 0, and the search knows that the remaining operators keep each device busy for at least 8
#   ms, however they are cut. Then D leads to 20 + 8 + 15 = 43 ms or more, and is dropped, too.
#
# **Predict.** Here are four partial strategies. The walks' best takes 40 ms, and whatever follows takes at least 8 ms
# on each device. How many of the four have to be kept?

# %%
partial = {  # clocks and rests of devices 0 and 1, in ms
    "E": ((12, 12), (10, 10)),
    "F": ((12, 15), (10, 11)),
    "G": ((16, 8), (14, 6)),
    "H": ((9, 18), (9, 15)),
}
course.predict("strategy_kept", kept=...)

# %% tags=["nbval-check-output"]
best, follows = 40, 8
kept = []
for name, (clocks, rests) in partial.items():
    beaten_by = []
    for other, (other_clocks, other_rests) in partial.items():
        pairs = zip(other_clocks + other_rests, clocks + rests)
        if other != name and all(theirs <= ours for theirs, ours in pairs):
            beaten_by.append(other)
    at_least = max(clock + follows + rest for clock, rest in zip(clocks, rests))
    if beaten_by:
        print(name, "is nowhere better than", *beaten_by)
    elif at_least >= best:
        print(name, f"takes {at_least} ms or more")
    else:
        kept.append(name)
course.answer("strategy_kept", kept=len(kept))
print("kept:", *kept)

# %% [markdown]
# If no partial strategy is left after the last operator, no strategy is faster than the one that the walks had found.
# If some are left, the fastest of them is the best of all. Here is the search for our AlexNet with the measured times.
# Its rules are a little sharper than those above. For example, A also beats B if its clocks are 2 ms later, but its
# rests are at least 2 ms shorter, because every chain of tasks through the step adds one clock and one rest:

# %%
from course_utils.lessons.strategy_search import bound_below, bound_text, make_tables

walked = find_strategy(graph, costs, devices=2, iterations=25_000)
bound = bound_below(make_tables(graph, costs, 2), walked.nanoseconds)
print(bound_text(walked.nanoseconds, walked.seconds, bound))
if disturbed:
    print("The simulator's times are from a busy machine.")

# %% [markdown]
# Why should you believe it? A search that drops too much by mistake would give the same kind of answer. Therefore it
# hands over a **certificate**. It lists all partial strategies that were kept, and, for each choice of an operator, the
# least time that everything after it takes. A second program checks the list. It shares no code with the search, and
# extends each partial strategy in the list by each choice for the next operator. What comes out must be in the list
# itself, or be dominated by one in the list, or lead to at least the proved time. It also checks the least times
# themselves, from the last operator to the first.
#
# Then we try to cheat. We change the certificate so that it claims one nanosecond more than was proved. The message of
# the second program counts parts by sample, attribute and parameter:

# %%
from course_utils.lessons.strategy_search import certificate_check

if bound:
    number = certificate_check.check_certificate(graph, costs, 2, bound.certificate)
    print(f"Checked {number:,} partial strategies: each has a reason")
    more = replace(bound.certificate, nanoseconds=bound.nanoseconds + 1)
    try:
        certificate_check.check_certificate(graph, costs, 2, more)
    except course.CourseError as error:
        print("One nanosecond more:", error)

# %% [markdown]
# All this is about the *simulated* time. If the simulator is wrong, or a busy machine gave it wrong times, the strategy
# with the least simulated time may not be the fastest on your computer.
#
# A transformer block is not a chain, because its input is also added to the output of its attention. There the next
# operator sees more than two times of each device, and this search gives up.
#
# ## How near do walks come?
#
# On two devices, the walks had an easy task. How well do they do with larger networks and more devices? We take AlexNet
# in full width, and the course's VGG-11, which has a single fully connected layer and reads 128 images of 32 × 32
# pixels. We describe GPUs of 2017, the GTX 1080 Ti, by the numbers in their data sheet. Nothing is run. The search of
# the last section either finds the best strategy, or proves that the walks had found it. In both cases we know the time
# of the best strategy, and call it the **lower bound**, because no strategy takes less. The **gap** is the fraction of
# its time that the walks' best strategy could still save.

# %%
from course_utils.lessons.strategy_search import REPORT, WIDE_VGG11, gaps_table

checked = {2}  # GPUs; {2, 4} checks all certificates, which takes some ten seconds more
searches = []
for workload, number in product((REPORT, WIDE_VGG11), (2, 4)):
    network = workload.graph()
    gpus = report_costs(network, number)
    searches.append(search_and_prove(network, gpus, number, check=number in checked))
print(gaps_table(searches))

# %% tags=["figure:12_gaps"]
from course_utils.lessons.strategy_search import case_text, gaps_text

cases = {}
for each in searches:
    if each.bound:
        cases[case_text(each)] = each.bound.nanoseconds / 1e9, each.seconds()
course.draw.above_bound(cases, gaps_text(searches), "GPUs as described, simulated")

# %% [markdown]
# Each bar shows what fraction of a strategy's time lies above the lower bound. *fc by parameter* is Krizhevsky's rule,
# with convolutions and pools by sample and fully connected layers by parameter. What is the best known strategy in the
# case with the largest gap? Its time is the bound:

# %%
missed = max(searches, key=lambda each: each.gap)
print(f"{case_text(missed)}, the best known:")
print(wrapped(strategy_text(missed.graph, missed.strategy)))

# %% [markdown]
# For this VGG-11, Krizhevsky's rule is no faster than data parallelism. From conv5 on, the convolutions have more
# weights than there are numbers for them to read, so it is better to cut them by parameter, too.

# %% [markdown]
# ## What SOAP alone finds
#
# On the first page, the search could cut `out` and `down` of a transformer block by row, and with few tokens it found
# the pair of cuts that you know from lesson 9, Megatron-LM's. FlexFlow could not have found it, because a cut of SOAP,
# by sample, attribute or parameter, is a cut of an *output*. A **row cut** cuts a sum. Each device multiplies its share
# of the inputs by the weights that belong to them, and has a **partial sum** of the *whole* output. Only a
# reduce-scatter afterwards, which adds up the partial sums and leaves each device with its share of them, gives outputs
# that are cut. Unity, the successor of FlexFlow, added this to its space and calls it *reduction*.
#
# How much does it matter? Let $w$ be the width of the block and $t$ the number of tokens in a step. With data
# parallelism, each of two devices sends $8w^2$ gradients for `up` and `down`, and with the pair it sends $2tw$ numbers,
# as the first page counted. Without row cuts, both layers can be cut by parameter. Then each of them reads all of its
# input, of which a device has made half. `up` reads $t \times w$ numbers, so each device sends $\frac12 tw$ numbers
# forward and $\frac12 tw$ gradients backward. `down` reads the $4w$ hidden units of each token, which is four times as
# many. All in all a device sends $tw + 4tw = 5tw$ numbers.
#
# **Predict.** The width is 1,024. On the first page, the pair sent less than data parallelism with fewer than 4,096
# tokens. With fewer than how many tokens do two cuts by parameter send less than data parallelism?

# %%
course.predict("strategy_columns", within=1.1, tokens=...)

# %% tags=["nbval-check-output"]
from course_utils.lessons.strategy_search import transformer_block

width = 1024
course.answer("strategy_columns", tokens=8 * width**2 / (5 * width))
with torch.device("meta"):  # shapes without numbers
    block = transformer_block(width, heads=16, seed=None)
two_gpus = describe({"GPU 0": 40e9, "GPU 1": 40e9}, link=(10e-6, 25e9))


def search(shape, row_cuts):
    """Return the block's graph, its costs on two GPUs like those of the first page, and what the walks found."""
    read = read_model(block, shape, row_cuts=row_cuts)
    times = described_costs(read, two_gpus, 19.5e12, 1.5e12, launch_seconds=5e-6)
    return read, times, find_strategy(read, times, devices=2, iterations=20_000)


for length in (64, 128, 192, 256, 512):
    read, times, best_found = search((8, length, width), row_cuts=False)
    print(wrapped(f"{8 * length:5} tokens: {strategy_text(read, best_found.strategy)}"))

# %% [markdown]
# The switch comes a little below the limit, because the limit leaves out what is sent between operators that are cut
# differently.
#
# What does the missing cut cost? Here are the times of the fastest steps that the walks found in both spaces, and the
# number of strategies in each:

# %%
from math import prod

from course_utils.lessons.strategy_search import choices_of

for length in (64, 192, 512):
    row = f"{8 * length:5} tokens:"
    for name, row_cuts in {"SOAP": False, "with row cuts": True}.items():
        read, _, best_found = search((8, length, width), row_cuts)
        number = prod(map(len, choices_of(read, 2)))
        row += f"  {name} {best_found.nanoseconds / 1e6:.3f} ms of {number:,} strategies"
    print(row)

# %% [markdown]
# All these batches had eight texts. What if there is only one, but a long one? Then nothing can be cut by sample. What
# is left are the positions, the heads and the channels:

# %%
from course_utils.lessons.strategy_search import megatron

read, times, best_found = search((1, 4096, width), row_cuts=True)
print(wrapped(strategy_text(read, best_found.strategy)))
sequence = predicted_seconds(read, megatron(read, 2), times)
print(f"found: {best_found.nanoseconds / 1e6:.3f} ms a step; ", end="")
print(f"Megatron-LM's, with sequence parallelism: {1e3 * sequence:.3f} ms")

# %% [markdown]
# `megatron` is Megatron-LM's strategy with the *sequence parallelism* of lesson 9, where the norms and the additions
# are cut by position. Here is its program for a small block. A `Spread` describes how many parts a tensor has along
# each dimension, and which rank has which part. `own` takes this rank's part of data that all ranks can read. Next to
# `row_cut=True`, `attribute=2` means that each rank gets the sums for half of the positions. Compare the program with
# what you wrote in lesson 9:

# %%
small = Workload(
    "transformer block",
    "course_utils.lessons.strategy_search.graph.example_models.transformer_block",
    {"width": 64, "heads": 4},
    shape=(4, 16, 64),
    classes=64,
    row_cuts=True,
)
pair = megatron(small.graph(), 2)
pair_text = program_text(small.model(), small.graph(), pair, small.build, ranks=2)
print(
    pair_text[pair_text.index("    def __init__") : pair_text.index("def train")].rstrip()
)

# %%
inputs, labels = small.batch()
batches = [(inputs.double(), labels)] * 2
parallel = train_program(ranks, pair_text, lambda: small.model().double(), batches)
serial = train_serial(small.model().double(), batches)
assert np.allclose(parallel, serial, rtol=1e-9)
print(same_text({"Megatron-LM's pair on 2 ranks": parallel}, serial))

# %% [markdown]
# The program has two `all_gather`s. The two reduce-scatters are inside the parts with `row_cut=True`.
#
# ## A report, redone
#
# In 2020, a student, D. M. Nguyen, wrote [a report](../docs/sources.md) about FlexFlow. FlexFlow runs on Legion, a
# runtime system from Stanford that distributes tasks and their data over machines. If you used PyTorch, you had to
# leave it. So the report wishes for an extension that takes "any typical PyTorch models", simulates, searches, and
# writes a torch.distributed program. That is what you have used in this lesson.
#
# In the report, FlexFlow searches for a strategy for AlexNet on two GPUs. We don't have them, so we describe them by
# the numbers of their maker. The report writes "GTX1080i", which we take for the GTX 1080 Ti. After 25,000 iterations,
# the answer in its figure 10b was the one on the left. On the right is the answer of our walks, also after 25,000
# proposals in all:

# %% tags=["figure:12_report"]
with torch.device("meta"):  # shapes without numbers
    alexnet_graph = read_model(alexnet(), (64, 3, 224, 224))
gpus = report_costs(alexnet_graph)
ours = find_strategy(alexnet_graph, gpus, 2, iterations=25_000)
reported = known_ways(alexnet_graph)["the report's"]
takes = predicted_seconds(alexnet_graph, reported, gpus)
title = found_text(ours.nanoseconds / 1e9, {"the report's": takes})
figure_10 = {"the report's": reported, "ours": ours.strategy}
pictures.strategies(alexnet_graph, figure_10, title, devices=gpus.topology.names)

# %% [markdown]
# The report suspected that its answer was not the best one, and says that the result depends on where a walk starts. In
# our simulator it was not the best. One GPU waits while the other computes the fully connected layers, which can also
# be cut by *parameter*. FlexFlow's space contains this cut, too, but FlexFlow measured its costs and let messages
# overlap with computing, so it may have judged differently. Krizhevsky had proposed nearly the same combination in
# 2014.
#
# The program with which the report tried the strategy divided the gradients of the fully connected layers by the number
# of processes, but never added them up, so each process trained different ones ([lesson 11,
# Further](11_hybrid_and_sharded_further.ipynb)).
#
# ## A slow GPU
#
# A node has two new GPUs and an old one, or one of three GPUs is shared with someone else. Should you use the third?
#
# Suppose that a layer takes 60 ms on a fast GPU, and that messages cost nothing. On the two fast GPUs, each half takes
# 30 ms. Cut in three, each part is 20 ms of work for a fast GPU. If the third has 0.8 times the speed of the others,
# its part takes 20 ÷ 0.8 = 25 ms. The others wait for it, but 25 ms is still less than 30 ms.
#
# **Predict.** Of the speeds 0.9, 0.8, 0.7, 0.6, 0.5 and 0.4, which is the highest at which the best strategy leaves the
# third GPU out?

# %%
course.predict("strategy_slow_gpu", speed=...)

# %%
from course_utils.lessons.strategy_search import shares_of_work

with torch.device("meta"):
    alexnet_graph = read_model(alexnet(), (64, 3, 224, 224))
speeds, work = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0], []
alike = report_costs(alexnet_graph, 3)
for speed in speeds:
    there = report_costs(alexnet_graph, 3, speeds=(1, 1, speed))
    answer = search_and_prove(alexnet_graph, there, 3, iterations=10_000)
    assert answer.bound  # no strategy is faster than this one
    work.append(shares_of_work(alexnet_graph, answer.strategy, alike, 3)[2])
    least = predicted_seconds(alexnet_graph, answer.strategy, there)
    print(f"speed {speed:3}: {1e3 * least:.1f} ms a step, {work[-1]:4.0%} of the work")

# %% tags=["figure:12_slow_gpu"]
from course_utils.lessons.strategy_search import slow_device_text

left_out = [speed for speed, share in zip(speeds, work) if not share]
course.answer("strategy_slow_gpu", speed=max(left_out, default=0))
lines = {"the best strategy": work}
lines["if work could be split arbitrarily"] = [speed / (2 + speed) for speed in speeds]
axes = {"across": "speed of the third GPU (the others: 1)", "up": "its share of the work"}
title = slow_device_text(speeds, work)
course.draw.over_numbers(speeds, lines, title, "Simulated", unit=percent, **axes)

# %% [markdown]
# In the worked example, the third GPU's part takes longer than 30 ms if its speed is below 20 ÷ 30, two thirds. So it
# is in the way below that speed even if messages cost nothing. If some operators aren't cut at all, or only in two, the
# third GPU can still compute one of them, so its share need not fall to 0 at once, though here it does. Parts of
# unequal size would help, and the second line shows how much work the third GPU would then get. Neither this search nor
# FlexFlow's can make parts of unequal size.
#
# ## Changing one operator
#
# A search can only try millions of strategies if the simulator is fast. A proposal changes *one* operator, so most of
# the step stays the same. How can the simulator avoid replaying it?
#
# Two devices have **clocks**, which say when each has finished what it has done so far. Suppose that device 0 computes
# for 5 ms, and then both exchange something for 2 ms. Let us start with clocks of 10 and 14 ms. Device 0 is ready at 15
# ms, device 1 at 14 ms, and the exchange begins when both are. It ends at 17 ms for both.
#
# For any two clocks $a$ and $b$, it ends at $\max(a + 7,\; b + 2)$, on both devices. We can write these four numbers as
# a matrix. Row $i$ is for the new clock of device $i$, and column $j$ says how much is added to the old clock of device
# $j$:
#
# $$\begin{pmatrix} 7 & 2 \\ 7 & 2 \end{pmatrix} \otimes \begin{pmatrix} 10 \\ 14 \end{pmatrix} =
# \begin{pmatrix} \max(7 + 10,\; 2 + 14) \\ \max(7 + 10,\; 2 + 14) \end{pmatrix} = \begin{pmatrix} 17 \\ 17
# \end{pmatrix}$$
#
# This is a product of a matrix and a vector, with + in place of the multiplication, and max in place of the sum. It is
# called a **max-plus** product, and ⊗ is its sign. Two steps, one after the other, are the max-plus product of their
# matrices, with the later one on the left. If a device doesn't wait for the other one at all, the entry is $-\infty$,
# because the maximum then ignores it:


# %%
def max_plus(left, right):
    """Return the max-plus product of a matrix with a matrix or a vector."""
    if right.ndim == 1:
        return (left + right).max(axis=1)
    return (left[:, :, None] + right[None, :, :]).max(axis=1)


never = -np.inf
computes = np.array([[5, never], [never, 0]])  # device 0 computes for 5 ms
exchanges = np.array([[2, 2], [2, 2]])  # both exchange for 2 ms
stretch = max_plus(exchanges, computes)  # first computes, then exchanges
assert (stretch == [[7, 2], [7, 2]]).all()
print(max_plus(stretch, np.array([10, 14])))

# %% [markdown]
# **Predict.** The order changes. First both devices exchange something for 2 ms, and then device 0 computes for 5 ms.
# The clocks are again 10 and 14 ms at the beginning. What are they at the end?

# %%
course.predict("strategy_clocks", device_0=..., device_1=...)

# %% tags=["nbval-check-output"]
device_0, device_1 = max_plus(max_plus(computes, exchanges), np.array([10, 14]))
course.answer("strategy_clocks", device_0=device_0, device_1=device_1)

# %% [markdown]
# A whole training step is one long product of such matrices, and the largest clock at its end is the time of the step.
# If a proposal changes one operator, only its own matrices and those of its readers change. The product of everything
# between them is kept, and so are the clocks before the first change and the time that is left after the last one:

# %% tags=["figure:12_changed"]
pictures.changed_steps(graph, number=6)

# %% [markdown]
# How much does that save? The next cell lets three simulators judge strategies for AlexNet on four GPUs. *tasks* is the
# one of the first page, which goes through a list of tasks. *full* multiplies all matrices, for many walks at once.
# *incremental* multiplies only those that have changed. All three agree to the last nanosecond, because they add and
# compare whole numbers.

# %%
from functools import partial as with_arguments

from course_utils.lessons.strategy_search import simulation_rates, times_text

with torch.device("meta"):
    alexnet_graph = read_model(alexnet(), (64, 3, 224, 224))
node = describe({f"GPU {n}": 11e9 for n in range(4)}, (1e-5, 12e9))
four_gpus = described_costs(alexnet_graph, node, 11.3e12, 484e9, launch_seconds=5e-6)
rates = with_arguments(simulation_rates.rates, alexnet_graph, four_gpus, devices=4)
speeds = [rates(seconds=0.1) for _ in range(3)]
busy = is_busy([[speed["incremental"] / speed["full"] for speed in speeds]])
middle = {name: np.median([speed[name] for speed in speeds]) for name in speeds[0]}
print(wrapped(unless_busy(busy, times_text(middle))))

# %% [markdown]
# FlexFlow, too, simulates only what a proposal changes, but in a list of tasks, whose times it repairs. Its authors
# report that the search is 2.2 to 6.9 times faster than with full simulations.
#
# ## After FlexFlow
#
# What have others built since? Some of these programs search for a strategy, and others carry out the strategy that you
# choose.
#
# - **FlexFlow** (2018) and this lesson: SOAP, a simulator, and Metropolis walks. **Unity** (2022), its successor, may
#   also rewrite the operators. It describes how tensors are cut with operators of their own (partition, combine,
#   replicate, reduce), so the row cut is one of its choices.
# - **Alpa** (2022) searches in two levels. *Between* pipeline stages it uses dynamic programming, and *inside* a stage
#   it solves an integer linear program, in which each operator takes exactly one of its configurations and each change
#   of layout has a price. Our space contains neither pipelines nor sharded optimizers.
# - **GSPMD** (2021) and its successor **Shardy** don't search. You say how some tensors are cut, and the compiler XLA
#   derives the cut of all others from it, and inserts the collectives. JAX users work with them.
# - **DTensor** in PyTorch decides at each operator, while the program runs, what has to be sent. It has no view of the
#   whole model. [**AutoParallel**](https://github.com/meta-pytorch/autoparallel) (2025), an experiment by the same
#   group, does have one: it records the model, and chooses the DTensor layout of every operator with an integer linear
#   program.
#
# None of the *searches* is the usual way to train the largest models. There, people still choose the axes of lesson 11
# by hand, or with a planner that compares the few possible meshes, because these models repeat the same block many
# times, and a few numbers describe a strategy. GSPMD or DTensor can then carry out what they chose.

# %%
ranks.stop()

# %% [markdown]
# ## What you know now
#
# You can count what each cut of an operator sends, and so tell on which link which cut wins. You know how a branch and
# bound search drops partial strategies, and what a certificate has to contain so that others can check it. You know
# what it costs when a cut is missing from the search space. You can say below which speed a GPU is in the way, and you
# can multiply clocks with matrices.
#
# **To read:**
#
# - Z. Jia, M. Zaharia and A. Aiken (2018), [Beyond Data and Model Parallelism for Deep Neural
#   Networks](https://arxiv.org/abs/1807.05358). The paper on FlexFlow, with its simulator and its measurements.
# - A. Krizhevsky (2014), [One weird trick for parallelizing convolutional neural
#   networks](https://arxiv.org/abs/1404.5997). It is short, and gives the reasons for the cuts of section 1.
# - L. Zheng and others (2022), [Alpa](https://arxiv.org/abs/2201.12023). How to search with pipelines.
#
# Go back to [lesson 12](12_strategy_search.ipynb), on to the [exercises](../exercises/12_strategy_search.ipynb), or to
# [lesson 13](13_gpu_nodes.ipynb), where the GPUs are real.
