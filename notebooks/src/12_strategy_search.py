# The lesson on strategy search. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Can the machine choose for us?
#
# After this lesson you can **describe** how each part of a network is spread over devices, **simulate** a training step
# without running it, and **search** among millions of strategies for a fast one, and prove what it found.
#
# *80 minutes · builds on [lesson 11](11_hybrid_and_sharded.ipynb) · 2 ranks*

# %%
from itertools import product
from math import prod

import numpy as np
import torch

import course_utils as course

ranks = course.start(2, link="400 Mbit/s")
ranks.load_torch()

# %% [markdown]
# Lesson 11's student report asked a program, FlexFlow, how to train AlexNet on two GPUs. Its answer: convolutions and
# pools on both, fully connected layers on one. The report wishes for an extension that takes "any typical PyTorch
# models", simulates, searches, and writes the torch.distributed program. Today we build it.
#
# ## Five operators, two devices
#
# First on paper. An **operator** is a step of the network with an output that can be cut. Here is a small network (its
# times are made up):

# %% tags=["here:12_five_operators"]
from course_utils.lessons.strategy_search import COMPUTE, HandCosts, five_operators

five = five_operators()
print("          forward  backward  weights  numbers out (8 images)")
for operator in five.operators:
    forward, backward = COMPUTE.get(operator.name, (0, 0))
    row = f"{operator.name:8}{forward:6} ms{backward:7} ms"
    print(f"{row}{operator.parameters:9,}{prod(operator.shape):9,}")

# %% [markdown]
# Half an operator takes half the time. Every device can read the input: it is data. 512 numbers pass the link in a
# millisecond, each way; meanwhile a device does nothing else. Where both devices have the same $n$ weights, their
# gradients need an all-reduce: $n/512$ ms.
#
# One device alone needs 40 ms. **Predict** on paper how many ms each of these two ways takes:
#
# - **data parallel**: each device has half of the images in every operator.
# - **the report's**: this holds for conv1 and pool1 only. Device 0 alone does fc1 and the loss: device 1's half of
#   pool1's output goes there, and its gradients come back.

# %%
course.predict("strategy_by_hand", data_parallel=..., report=...)  # ms

# %% tags=["figure:12_by_hand"]
from course_utils.lessons.strategy_search import Config, makespan, pictures, quickest_text
from course_utils.lessons.strategy_search import task_graph

one, halves = Config(), Config(sample=2, devices=(0, 1))  # one: whole, on device 0
both = {"data parallel": [one, halves, halves, halves, halves]}
both |= {"the report's": [one, halves, halves, one, one]}
tasks = {name: task_graph(five, way, HandCosts()) for name, way in both.items()}
ms = {name: makespan(found) / 1e6 for name, found in tasks.items()}
answers = dict(zip(("data_parallel", "report"), ms.values()))
course.answer("strategy_by_hand", **answers)
pictures.task_timelines(tasks, quickest_text(ms))

# %% [markdown]
# Summing fc1's 6,144 gradients takes 12 ms; sharing fc1's work saves only 6 ms, and 4 ms of messages. So the report's
# strategy wins, although device 1 waits for fc1. Is there a better one? Keep your idea; the machine will soon have its
# own.
#
# ## Tasks
#
# The picture shows a list of **tasks**: what is done, on which device, how long it takes, and after which other tasks
# (by their numbers):

# %% tags=["here:12_tasks"]
for number, task in enumerate(tasks["the report's"]):
    after = f"  after {', '.join(map(str, task.after))}" if task.after else ""
    print(f"{number:2}  {task.name:16} device {task.device}", end="  ")
    print(f"{task.nanoseconds / 1e6:g} ms{after}")

# %% [markdown]
# A task begins when its device is free *and* all tasks that it comes after have ended. That is the whole **simulator**.
# [Exercises](../exercises/12_strategy_search.ipynb): `task_graph`, `simulate`.
#
# ## What may be cut?
#
# FlexFlow calls its choices **SOAP**. An operator's output is cut by **s**amples, by **a**ttributes (rows of an image),
# by **p**arameters (output channels, and their weights with them), or by several of these. And each **o**perator
# has devices of its own.
#
# **Predict.** Two 3 × 3 convolutions are cut alike in two halves, one on each device. The first makes 8 images of 12 ×
# 12 with 16 channels, 18,432 numbers. How many of them must a device fetch for its half of the second?

# %%
course.predict("strategy_cuts", sample=..., attribute=..., parameter=...)

# %% tags=["figure:12_cuts"]
from course_utils.lessons.strategy_search import fetched_numbers, two_convolutions

first, second = two_convolutions()
ways = {"sample": Config(2, 1, 1, (0, 1)), "attribute": Config(1, 2, 1, (0, 1))}
ways |= {"parameter": Config(1, 1, 2, (0, 1))}
fetched = {way: fetched_numbers(first, second, config, 0) for way, config in ways.items()}
course.answer("strategy_cuts", **fetched)
pictures.operator_cuts(first, second, {f"by {way}": cut for way, cut in ways.items()})

# %% [markdown]
# By sample is lesson 6. By parameter is lesson 9's column cut: a device needs all input channels, and no other device
# has its weights. By attribute it needs a few rows of its neighbour: the **halo**.
#
# ## How many strategies?
#
# A **strategy** is a configuration for every operator: what is cut into how many parts, and where they go.
# Here are the choices of our five, on two devices:

# %% tags=["nbval-check-output"]
from course_utils.lessons.strategy_search import choices_of
from course_utils.words import count

for operator, options in zip(five.operators, choices_of(five, 2), strict=True):
    print(f"{operator.name:6} {count(len(options), 'configuration')}")

# %% [markdown]
# **Predict**: how many strategies does that make? For AlexNet's 12 operators on four devices, how many digits does the
# number have?

# %%
course.predict("strategy_count", five=..., alexnet_digits=...)

# %%
from course_utils.lessons.strategy_search import alexnet, read_model


def number_of(graph, devices):
    return prod(len(options) for options in choices_of(graph, devices))


with torch.device("meta"):  # shapes without numbers
    large = alexnet()
many = number_of(read_model(large, (64, 3, 224, 224)), 4)
course.answer("strategy_count", five=number_of(five, 2), alexnet_digits=len(str(many)))
print(f"AlexNet on 4 devices: {many:.1e} strategies")

# %% tags=["figure:12_best"]
from course_utils.lessons.strategy_search import strategy_text

known = {}  # of the five operators we simulate them all
for strategy in product(*choices_of(five, 2)):
    known[strategy] = makespan(task_graph(five, strategy, HandCosts()))
best = min(known, key=known.get)
tasks["the best"] = task_graph(five, best, HandCosts())
title = f"The best of {len(known)}: {strategy_text(five, best)}"
pictures.task_timelines(tasks, title)

# %% [markdown]
# Did you think of it? All but the loss is cut by *parameter*: no gradient is ever summed.
#
# ## Walking
#
# Where strategies are too many to try, walk. Take any strategy, **propose** a change of one operator, simulate, and
# keep it if it is better; again and again. Or do as **Metropolis** did: take a worse one, too, with probability
#
# $$e^{-(\text{new}-\text{old})/\text{temperature}}$$
#
# The **temperature** is a time, here 3 ms. Of changes that make a step 3 ms slower, 37 % are taken; 6 ms slower, 14 %.
#
# **Predict.** Of 50 walks of 1,000 proposals, how many come to the best of our 300 strategies, each way?

# %%
course.predict("strategy_walks", within=1.5, only_better=..., worse_too=...)

# %%
from course_utils.lessons.strategy_search import metropolis_accept, propose

choices = choices_of(five, 2)


def walk(strategy, temperature, random):
    costs = [known[tuple(strategy)]]
    for _ in range(1000):
        other = propose(strategy, choices, random)
        old, new = known[tuple(strategy)], known[tuple(other)]
        if metropolis_accept(old, new, temperature, random):
            strategy = other
        costs.append(known[tuple(strategy)])
    return costs


# %% tags=["figure:12_walks"]
from course_utils.lessons.strategy_search import arrived, walks_text

walks, drawn = {}, {}
for name, temperature in {"only better ones": 0, "worse ones, too": 3e6}.items():  # ns
    random = np.random.default_rng(1)
    starts = random.choice(len(known), 50)
    walks[name] = [walk(list(known)[start], temperature, random) for start in starts]
    drawn[name] = [costs[:300] for costs in walks[name][:5]]
only_better, worse_too = (arrived(found, known[best]) for found in walks.values())
course.measured("strategy_walks", only_better=only_better, worse_too=worse_too)
title, part = walks_text(walks, known[best]), "Five walks each, their first 300 proposals"
pictures.cost_over_iterations(drawn, title, known[best], part)

# %% [markdown]
# Many walks get stuck where *no single change* is better: with everything on device 0, say. The way out leads uphill.
# Exercises: `metropolis_accept`, `propose`, `best_strategy`.
#
# ## A real network
#
# Now a narrower AlexNet. `torch.fx` reads ordinary PyTorch models: it goes through `forward`. A ReLU treats every
# number by itself, so it **follows** the operator before it, however that is cut.
#
# Parts of each shape are timed *once*, on both ranks. (Half of the images may take more than half of the time: all
# weights are read.) A message takes latency + bytes / bandwidth, as in lesson 5; both are measured here.

# %% tags=["here:12_operators"]
from course_utils.lessons.strategy_search import Workload

batch = 64
pixels = 160
options = {"width": 0.25, "pixels": pixels, "linear": 0.25}
case = Workload(
    "AlexNet",
    "course_utils.lessons.strategy_search.graph.example_models.alexnet",
    options,
    (batch, 3, pixels, pixels),
)
graph = case.graph()
for operator in graph.operators:
    shape = " × ".join(map(str, operator.shape))
    runs = ", ".join(operator.modules)
    print(f"{operator.name:6} {shape:17}{operator.parameters:9,} weights  {runs}")

# %% tags=["here:12_links"]
from course_utils.lessons.strategy_search import measure_costs, measured_topology
from course_utils.lessons.strategy_search import timed_text

rounds = 4  # of timing
topology = measured_topology(ranks, repeats=3)
costs = measure_costs(graph, topology, ranks, rounds)
print(timed_text(len(costs.times), costs.spread))
for name in ("conv2", "fc6"):
    whole, half = (sum(costs.times[name, (n, 1, 1), 0]) / 1e6 for n in (1, 2))
    print(f"{name}: all images {whole:.1f} ms, half of them {half:.1f} ms")

# %%
course.predict(  # which is quickest for AlexNet, on our two nodes?
    "strategy_alexnet",
    answer=...,  # "a", "b", "c" or "d"
    choices={
        "a": "one device does everything, the other nothing",
        "b": "data parallel",
        "c": "the report's: only convolutions and pools shared, by sample",
        "d": "these by sample, fully connected layers by parameter",
    },
)

# %% tags=["figure:12_strategies"]
from course_utils.lessons.strategy_search import find_strategy, known_ways
from course_utils.lessons.strategy_search import predicted_seconds

four = known_ways(graph)  # the four from above, by name
seconds = {name: predicted_seconds(graph, way, costs) for name, way in four.items()}
course.answer("strategy_alexnet", answer="abcd"[np.argmin(list(seconds.values()))])
found = find_strategy(graph, costs, devices=2, iterations=25_000)
print(f"{found.evaluations:,} strategies simulated in {found.seconds:.1f} s")
both = {"data parallel": four["data parallel"], "found": found.strategy}
said = f"Found: {strategy_text(graph, found.strategy)}"
pictures.strategies(graph, both, said)

# %%
from course_utils.lessons.strategy_search import found_text

title = found_text(found.nanoseconds / 1e9, seconds)
where = "Walks that start with one device, data parallel, model parallel, at random"
history = {"iterations": found.iterations, "subtitle": where}
pictures.cost_over_iterations(found.history, title, **history)

# %% [markdown]
# These were 25,000 proposals, at temperatures that fall and rise again. (■ stops them, and keeps the best so far.) Did
# they find the best of all? AlexNet is a chain. Call the choices for its first operators a *beginning*. All that fc6
# sees of a beginning is when each device is free, and how long each is busy after fc6's backward pass. So go on
# operator by operator. Drop each beginning that is nowhere better than another one. Drop each that must end slower than
# what was found, whatever follows. If none is left, nothing is quicker. **Predict**: by how much is the best of all
# strategies quicker than what the walks found?

# %%
choices = {"a": "by nothing", "b": "by less than 5 %", "c": "by more"}
course.predict("strategy_gap", answer=..., choices=choices)

# %%
from course_utils.lessons.strategy_search import bound_below, bound_text, make_tables

bound = bound_below(make_tables(graph, costs, 2), found.nanoseconds)
gap = 1 - bound.nanoseconds / found.nanoseconds if bound else 1
course.answer("strategy_gap", answer="a" if gap == 0 else "b" if gap < 0.05 else "c")
print(bound_text(found.nanoseconds, found.seconds, bound))

# %% [markdown]
# Why believe it? The search hands over a **certificate**: all beginnings that it kept, and what it says of the rest. A
# program that shares nothing with the search goes through it, and wants a reason for each beginning that was dropped:

# %%
from course_utils.lessons.strategy_search import certificate_check

if bound:  # a certificate that is wrong raises here
    checks = certificate_check.check_certificate(graph, costs, 2, bound.certificate)
    print(f"Checked: {checks} beginnings, each kept, beaten by another, or too slow")

# %% [markdown]
# That holds for the *simulated* time. Is the simulator right? A section below measures it.
#
# ## The program
#
# A strategy is worth something when it runs. Here is its program, written as a person would have:

# %% tags=["here:12_program"]
from course_utils.lessons.strategy_search import program_text

text = program_text(case.model(), graph, found.strategy, case.build, ranks=2)
print(text[text.index("class") : text.index("def train")].rstrip())

# %% [markdown]
# A `Part` is this rank's part of an operator and of what follows it. In its backward pass gradients of shared weights
# are summed. Between the parts stand lesson 4's collectives, where something must move; a comment says what. (Where a
# strategy needs it, a `Spread` says into how many parts a tensor is cut and on which ranks they are, and `own` takes
# this rank's.) All ranks run the same lines; a rank without a part of an operator has an empty part.
#
# Does it train as one process does? In float64, loss by loss:

# %%
from course_utils.lessons.hybrid_and_sharded import same_text
from course_utils.lessons.strategy_search import train_program, train_serial

images, labels = case.batch()
batches = [(images.double(), labels)] * 2
parallel = train_program(ranks, text, lambda: case.model().double(), batches)
serial = train_serial(case.model().double(), batches)
print(same_text({"the program on 2 ranks": parallel}, serial))

# %% [markdown]
# (The course's tests do this for random strategies of several networks, gradients too.)
#
# ## Was the simulator right?
#
# Now strategies become programs, and their steps are timed by turns (lesson 3). **Predict**: how far off is the
# simulated time of a step, in percent, in the median? (FlexFlow's authors say: less than 30.) And how many times as
# fast as data parallelism is the strategy that was found?

# %%
course.predict("strategy_error", within=2, percent=...)
course.predict("strategy_times", within=1.3, times=...)

# %% tags=["figure:12_honesty"]
from course_utils.lessons.strategy_search import compare, honesty_text
from course_utils.measuring import BUSY, is_busy, relative_errors, unless_busy

ways = {"found": found.strategy}  # and the others, if they are not the same
others = [name for name in four if seconds[name] != found.nanoseconds / 1e9]
ways |= {name: four[name] for name in others}
judged = compare(ranks, case, list(ways.values()), costs, rounds)
off = 100 * np.median(relative_errors(judged.predicted, judged.medians))
busy = is_busy(judged.measured)
course.measured("strategy_error", busy=busy, percent=round(off))
points = zip(judged.predicted, judged.measured)
points = {name: [point] for name, point in zip(ways, points)}
said = BUSY if busy else honesty_text(judged.predicted, judged.medians)
pictures.predicted_measured(points, said)

# %% tags=["figure:12_steps"]
from course_utils.lessons.strategy_search import ratio_text
from course_utils.measuring import Compared

taken = dict(zip(ways, judged.measured))
names = "found", "data parallel"
pair = Compared(*(taken.get(name, taken["found"]) for name in names), names)
course.measured("strategy_times", busy=busy, times=round(pair.times, 1))
expected = seconds["data parallel"] / found.nanoseconds * 1e9
said = BUSY if busy else ratio_text(pair, expected)
course.draw.measured_bars({"a step": pair.bars}, said)

# %% [markdown]
# What does the simulator leave out? **Overlap** (our program's calls block, DDP's do not: lesson 7), links that several
# transfers share, warm and cold caches, whatever else this machine does. What it must get right is the *order*.
#
# ## Other links
#
# A search takes moments, so we can ask: what if the link were another one, described by a latency and a bandwidth?
# **Predict** which of the four ways from above, a to d, is best at 50 Mbit/s, and at 204,800.

# %%
course.predict("strategy_links", slow=..., fast=...)

# %%
from dataclasses import replace

from course_utils.lessons.strategy_search import describe

rates, told, times = [50, 200, 800, 3200, 12800, 51200, 204800], {}, []
for rate in rates:
    link = 2e-4, rate * 1e6 / 8  # seconds, bytes a second
    there = replace(costs, topology=describe({"0": 2**40, "1": 2**40}, link))
    answer = find_strategy(graph, there, 2, iterations=10_000)
    told[rate] = strategy_text(graph, answer.strategy)
    all_four = [predicted_seconds(graph, way, there) for way in four.values()]
    times.append([answer.nanoseconds / 1e9, *all_four])
    print(f"{rate:7,} Mbit/s: {told[rate]}")

# %%
from course_utils.lessons.strategy_search import links_text
from course_utils.words import seconds_text

slow, *_, fast = ("abcd"[np.argmin(row[1:])] for row in times)
course.answer("strategy_links", slow=slow, fast=fast)
lines = dict(zip(["found", *four], zip(*times)))
look = {"across": "link, in Mbit/s", "up": "time of a step, simulated", "log": True}
course.draw.over_numbers(rates, lines, links_text(told), unit=seconds_text, **look)

# %% [markdown]
# Read it from left to right: what counts on a slow link is how much a strategy sends. On a fast link it is how evenly
# the strategy shares the computing.
#
# ## The report's two GPUs
#
# They are not here, so we describe them: two GTX 1080 Ti on PCIe, by their makers' numbers (the report writes
# "GTX1080i"; we take it for this card), and AlexNet in full width. Nothing is run. The left picture is the report's
# answer (its figure 10b, after 25,000 iterations), the right one is ours:

# %% tags=["figure:12_report"]
from course_utils.lessons.strategy_search import report_costs

alexnet_graph = read_model(large, (64, 3, 224, 224))
gpus = report_costs(alexnet_graph)
ours = find_strategy(alexnet_graph, gpus, 2, iterations=25_000)
theirs = known_ways(alexnet_graph)
figure_10 = {"the report's": theirs["the report's"], "ours": ours.strategy}
takes = predicted_seconds(alexnet_graph, figure_10["the report's"], gpus)
title = found_text(ours.nanoseconds / 1e9, {"the report's": takes})
pictures.strategies(alexnet_graph, figure_10, title, devices=gpus.topology.names)

# %% [markdown]
# The report suspected that its answer was not the best. What was missing: fully connected layers cut by *parameter*,
# so that no GPU need wait. Krizhevsky thought of it himself, in 2014. (The report's program also divided gradients that
# it never summed: lesson 11.)
#
# ## How near do walks come?
#
# Now larger networks and more GPUs of this kind, all described, none run. The search above drops beginnings until it
# knows a **lower bound**: no strategy is quicker. Either it finds a strategy that reaches the bound, or the walks had
# the best already. From the bound up to the walks' best is the **gap**. **Predict**: there are four cases, AlexNet and
# VGG-11 on two GPUs and on four. In how many do the walks find the best?

# %%
course.predict("strategy_proved", cases=...)

# %%
from course_utils.lessons.strategy_search import REPORT, WIDE_VGG11, gaps_table
from course_utils.lessons.strategy_search import search_and_prove

checked = {2}  # GPUs; {2, 4} checks all certificates: some ten seconds more
searches = []
for workload, number in product((REPORT, WIDE_VGG11), (2, 4)):
    network = workload.graph()
    there = report_costs(network, number)
    searches.append(search_and_prove(network, there, number, check=number in checked))
course.measured("strategy_proved", cases=sum(not each.gap for each in searches))
print(gaps_table(searches))

# %% tags=["figure:12_gaps"]
from course_utils.lessons.strategy_search import case_text, gaps_text

cases = {
    case_text(each): (each.bound.nanoseconds / 1e9, each.seconds())
    for each in searches
    if each.bound
}
course.draw.above_bound(cases, gaps_text(searches), "GPUs as described, simulated")

# %% [markdown]
# What did the walks miss? Perhaps something that a person would have tried:

# %%
missed = max(searches, key=lambda each: each.gap)
print(f"{case_text(missed)}, the best known:")
print(strategy_text(missed.graph, missed.strategy))

# %% [markdown]
# ## A slow GPU
#
# Now there are three GPUs, and the third is slower than the others: an older card, or one that somebody else uses, too.
# Its parts take longer, its messages do not. All parts of an operator are equally large, so the others wait for it, or
# do without it. The others have the speed 1. **Predict**: of the speeds 0.9, 0.8, … 0.4, which is the highest at which
# the best strategy leaves the third GPU out?

# %%
course.predict("strategy_slow_gpu", within=1.2, speed=...)

# %%
from course_utils.lessons.strategy_search import shares_of_work

speeds, work = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0], []
alike = report_costs(alexnet_graph, 3)
for speed in speeds:
    there = report_costs(alexnet_graph, 3, speeds=(1, 1, speed))
    answer = search_and_prove(alexnet_graph, there, 3, iterations=10_000)
    work.append(shares_of_work(alexnet_graph, answer.strategy, alike, 3)[2])
    least = predicted_seconds(alexnet_graph, answer.strategy, there)
    print(f"speed {speed:3}: {1e3 * least:.1f} ms a step, {work[-1]:4.0%} of the work")

# %% tags=["figure:12_slow_gpu"]
from course_utils.lessons.strategy_search import slow_device_text
from course_utils.words import percent

left_out = [speed for speed, share in zip(speeds, work) if not share]
course.answer("strategy_slow_gpu", speed=max(left_out, default=0))
lines = {"the best strategy": work}
lines["if work could be cut at will"] = [speed / (2 + speed) for speed in speeds]
look = {"across": "speed of the third GPU, the others': 1", "up": "its work"}
title = slow_device_text(speeds, work)
course.draw.over_numbers(speeds, lines, title, "Simulated", unit=percent, **look)

# %% [markdown]
# Cut in three, a layer takes a third of its time, divided by the slow GPU's speed; cut in two without it, a half. So
# below a speed of two thirds the third GPU is in the way, even if messages cost nothing. Parts of unequal size would
# use it; this search, like FlexFlow's, has none.
#
# ## After FlexFlow
#
# What came after FlexFlow: Unity (2022) also rewrites the graph, Alpa (2022) takes integer programming in place of
# walks. With XLA, JAX's compiler, people name how some tensors are cut, and it finds the rest (GSPMD, later Shardy).
# PyTorch's DTensor has no compiler for it: it decides at each operator, as the program runs.
#
# ## Why is it so quick?
#
# (For the curious.) A proposal changes *one* operator, and the simulator need not play all others again. A device's
# **clock** says when it has done all so far. Say device 0 works 5 ms, then both devices exchange something for 2 ms.
# Then both new clocks are the later of two times: device 0's old clock plus 7 ms, or device 1's plus 2 ms. In general,
# such a stretch of steps is a small matrix. In row $i$, column $j$ stands what is added to the old clock of device $j$;
# the latest of these sums is the new clock of device $i$. Most matrices stay when one operator changes:

# %% tags=["figure:12_changed"]
pictures.changed_steps(graph, number=6)

# %%
# FlexFlow does so with lists of tasks: 2.2 to 6.9 times as fast as a full simulation.
# How many times as fast is ours, on four devices?
course.predict("strategy_incremental", within=1.5, times=...)

# %%
from functools import partial

from course_utils.lessons.strategy_search import described_costs, simulation_rates
from course_utils.lessons.strategy_search import times_text
from course_utils.words import wrapped

node = describe({f"GPU {n}": 11e9 for n in range(4)}, (1e-5, 12e9))
four_gpus = described_costs(alexnet_graph, node, 11.3e12, 484e9, launch_seconds=5e-6)
rates = partial(simulation_rates.rates, alexnet_graph, four_gpus, devices=4)
speeds = [rates(seconds=0.1) for _ in range(3)]
times = [speed["incremental"] / speed["full"] for speed in speeds]
busy = is_busy([times])
course.measured("strategy_incremental", busy=busy, times=round(np.median(times), 1))
middle = {way: np.median([speed[way] for speed in speeds]) for way in speeds[0]}
print(wrapped(unless_busy(busy, times_text(middle))))

# %% [markdown]
# *tasks* is the simulator from above; *full* multiplies all matrices, of many walks at once; *incremental* multiplies
# only those that changed. All three agree to the last nanosecond.
#
# ## What you take with you
#
# - **Describe**: for each operator, what is cut and where it goes; all that must be sent follows from it.
# - **Simulate**: a task begins when its device is free and what it waits for has ended. Then run, and show the error.
# - **Search**: a walk that only goes downhill gets stuck. And what is found must train as one process does.
#
# Next: [the exercises](../exercises/12_strategy_search.ipynb).
#
# **To read**
#
# - Jia, Zaharia and Aiken (2018), [*Beyond Data and Model Parallelism for Deep Neural
#   Networks*](https://arxiv.org/abs/1807.05358), is the paper on FlexFlow.
# - Zheng and others (2022), [*Alpa*](https://arxiv.org/abs/2201.12023), searches in two levels, inside operators and
#   between them.

# %%
ranks.stop()
