# The lesson on all-reduce. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How do P machines add their vectors?
#
# After this lesson you can **write** an all-reduce in six ways, **predict** what each costs, and **find** out why a
# sum over many machines is wrong or slow.
#
# *60 minutes · builds on [lesson 4](04_messages.ipynb) · 4 ranks, then 8*

# %%
import inspect

import numpy as np

import course_utils as course
from course_utils.allreduce import ALGORITHMS

ranks = course.start(4)

# %% [markdown]
# $P$ workers have each computed a gradient: a vector of a million numbers, say. Training needs their sum, on every
# worker, in every step. That is an **all-reduce**, and a large part of distributed training's time is spent in it.
#
# MPI and PyTorch have one ready. We build it ourselves, six times, and let the trace count **rounds** (in a round
# each rank can send one message and receive one) and bytes.


# %%
def add_up(comm, allreduce, length=1_000_000):
    vector = np.full(length, comm.rank, np.float32)
    allreduce(comm, vector)
    assert (vector == sum(range(comm.size))).all()


def counts(run, length=1_000_000):
    busiest = max(run.bytes_per_rank) / (4 * length)
    return f"{run.rounds} rounds, the busiest rank sends {busiest:.2f} vectors"


# %% [markdown]
# ## Everything through one
#
# All send to rank 0. It adds, and sends the sum to all. **Predict** for 4 ranks: how many rounds, and how many whole
# vectors does rank 0 send?

# %%
course.predict("allreduce_gather", rounds=..., vectors=...)  # two numbers

# %%
from course_utils.allreduce import gather_broadcast_allreduce

gather = ranks.run(add_up, gather_broadcast_allreduce)
sent = gather.bytes_per_rank[0] / 4e6
course.measured("allreduce_gather", rounds=gather.rounds, vectors=sent)
gather.timeline("gather and broadcast")

# %% [markdown]
# Rank 0 takes $P-1$ vectors in and gives $P-1$ out, one after the other: $2(P-1)$ rounds. With 1,000 machines one
# link carries everything, and 999 idle. Two ideas mend that.
#
# ## Idea one: in pairs
#
# Ranks 0 and 1 add up while 2 and 3 do. Then 0 and 2 meet: a **tree**, and the sum goes back down as in lesson 4.
#
# Better still: when two ranks meet, let them *swap* vectors, so that both have the sum. Next round, meet at twice the
# distance. That is **recursive doubling**, and nothing need come back. **Predict** its rounds on 4 ranks, and the
# vectors that *each* rank sends.

# %%
course.predict("allreduce_doubling", rounds=..., vectors=...)

# %%
from course_utils.allreduce import recursive_doubling_allreduce, tree_allreduce

tree = ranks.run(add_up, tree_allreduce)
doubling = ranks.run(add_up, recursive_doubling_allreduce)
sent = doubling.bytes_per_rank[0] / 4e6
course.measured("allreduce_doubling", rounds=doubling.rounds, vectors=sent)
course.draw.timelines(tree, doubling, titles=["tree", "recursive doubling"])

# %% [markdown]
# $2\lceil\log_2 P\rceil$ rounds for the tree, $\log_2 P$ for doubling: no all-reduce has fewer. But in each round
# whole vectors travel. For a long vector that is what counts.
#
# ## Idea two: in blocks
#
# Why does everybody add up everything? Cut the vector into $P$ blocks and make each rank responsible for one:
#
# - **reduce-scatter**: rank $r$ ends with the finished sum of block $r$;
# - **all-gather**: everybody gets all finished blocks.
#
# **Halving-doubling** does it in pairs: partners first swap halves of the vector, then quarters, …, and come back
# the same way. **Predict** again, on 4 ranks.

# %%
course.predict("allreduce_halving", rounds=..., vectors=...)

# %%
from course_utils.allreduce import halving_doubling_allreduce

halving = ranks.run(add_up, halving_doubling_allreduce)
sent = halving.bytes_per_rank[0] / 4e6
course.measured("allreduce_halving", rounds=halving.rounds, vectors=sent)
halving.timeline("halving-doubling")

# %% [markdown]
# $\frac12 + \frac14 = \frac34$ of the vector there, and $\frac34$ back: $2\frac{P-1}{P}$ vectors, never 2 whole ones.
# No algorithm sends less from its busiest rank. The price: twice the rounds.
#
# ## The ring
#
# The same two halves without partners far away: every rank sends one block to its right, and receives one from its
# left. This is all of it:


# %%
def ring(comm, vector):
    rank, P = comm.rank, comm.size
    left, right = (rank - 1) % P, (rank + 1) % P
    blocks = np.array_split(vector, P)  # views: writing into a block changes the vector
    incoming = np.empty_like(blocks[0])
    for step in range(2 * (P - 1)):
        outgoing = blocks[(rank - step - 1) % P]
        arriving = blocks[(rank - step - 2) % P]
        place = incoming[: len(arriving)]
        comm.Sendrecv(outgoing, dest=right, recvbuf=place, source=left)
        if step < P - 1:
            arriving += place  # reduce-scatter: the sum of a block grows on its way round
        else:
            arriving[:] = place  # all-gather: the finished block goes round once more


# %%
course.predict("allreduce_ring", rounds=..., vectors=...)

# %%
round_the_ring = ranks.run(add_up, ring)
sent = round_the_ring.bytes_per_rank[0] / 4e6
course.measured("allreduce_ring", rounds=round_the_ring.rounds, vectors=sent)
round_the_ring.timeline("ring")

# %% [markdown]
# As few bytes as halving-doubling, and only ever to a neighbour: no wire is shared, whatever the network. But
# $2(P-1)$ rounds.
#
# In each round everybody waits for a whole block, adds, and only then sends on. The **asynchronous ring** cuts blocks
# into *segments* and passes each on at once. While one is being added, the next is under way:

# %%
from course_utils.allreduce import async_ring_allreduce

segmented = ranks.run(add_up, async_ring_allreduce)
titles = ["ring", "asynchronous ring"]
course.draw.timelines(round_the_ring, segmented, titles=titles)

# %% [markdown]
# More messages, the same bytes, less waiting. (NCCL and gloo do this, with smaller segments.)
#
# Now count all six against their formulas, also where $P$ is no power of two: there the surplus ranks first hand
# their vector to a partner.

# %% tags=["nbval-check-output"]
from course_utils.allreduce.cost import bytes_per_rank, rounds

print(f"{'':20}{'3 ranks':>16}{'4 ranks':>16}")
for name, allreduce in ALGORITHMS.items():
    line = f"{name:20}"
    for P in (3, 4):
        run = ranks.run(add_up, allreduce, 60_000, ranks=P)
        assert run.bytes_per_rank == bytes_per_rank(name, P, 60_000)
        assert run.rounds == rounds(name, P)
        line += f"{run.rounds:5} × {max(run.bytes_per_rank) / 240_000:.2f} vec."
    print(line)

# %%
many = [2**k for k in range(1, 11)]
sent = {
    name: [max(bytes_per_rank(name, P, P)) / 4 / P for P in many] for name in ALGORITHMS
}
del sent["asynchronous ring"]  # as the ring
title = "The busiest rank's link: vectors sent, by the formulas just counted"
course.draw.over_ranks(many, sent, title, y="vectors", unit="{:g}".format)

# %% [markdown]
# Halving-doubling and ring stay below 2, for ever. Few rounds *and* few bytes: only halving-doubling. So why has
# anything else survived? Wait for the clock.
#
# Ready for the first four [exercises](../exercises/05_allreduce.ipynb): tree, doubling, halving, ring.
#
# ## A report's puzzle
#
# In 2019 a student trained a network on 80 processes with MPI's all-reduce and with two rings of his own. The rings
# were faster. But they recognised 7 to 10 % fewer images. He suspected *bracketing*: $(a+b)+c$ is not $a+(b+c)$ when
# numbers are rounded, and a ring adds in another order than a tree. **Predict** the size of that difference, as a
# share of the sum:

# %%
course.predict(
    "allreduce_bracketing",
    answer=...,  # "a", "b", "c" or "d"
    choices={"a": "0", "b": "about 1e-7", "c": "about 1e-3", "d": "about 0.07"},
)


# %%
def sum_of(comm, allreduce, dtype):
    vector = np.random.default_rng(comm.rank).normal(size=100_000)
    exact = comm.allreduce(vector.astype(np.longdouble))
    vector = vector.astype(dtype)
    allreduce(comm, vector)
    return float(np.abs(vector - exact).max() / np.abs(exact).max())


errors = {}
for name, allreduce in ALGORITHMS.items():
    for dtype in ("float32", "float64"):
        errors[name, dtype] = ranks.run(sum_of, allreduce, dtype).results[0]
    print(f"{name:20} {errors[name, 'float32']:.0e}   {errors[name, 'float64']:.0e}")

# %%
from course_utils.allreduce.findings import rounding_said

single = {name: error for (name, dtype), error in errors.items() if dtype == "float32"}
course.measured(
    "allreduce_bracketing", answer="b" if max(single.values()) < 1e-6 else "c"
)
print("Bracketing in float32:", rounding_said(single, loss=0.07))

# %% [markdown]
# Not guilty. So something else was wrong, and the report itself suspects "a flaw in the code". That code is lost, but
# `suspicious_ring` does what it did. Like his, our training averages the *weights* after every step:

# %%
from course_utils.allreduce.suspect import suspicious_ring, train_digits
from course_utils.data import digits_arrays

images = digits_arrays()
rings = {"tree": tree_allreduce, "our ring": ring, "suspicious": suspicious_ring}
for name, allreduce in rings.items():
    trained = ranks.run(train_digits, images, allreduce)
    shares = [f"{accuracy:.1%}" for accuracy, _ in trained.results]
    print(f"{name:12} recognises", *shares)

# %% [markdown]
# There they are, the missing percents; and tree and ring agree. No error, no warning, and `suspicious_ring` passes a
# test: `add_up` with 4,096 numbers raises nothing.

# %%
ranks.run(add_up, suspicious_ring, 4096)

# %% [markdown]
# **You are the detective.** The vector of weights has 3,610 numbers. You have what you have learnt: the number of
# bytes a ring must send, and the right sum to compare with. Run the two cells, and say what is wrong before you
# unfold the answer.

# %%
from course_utils.allreduce.suspect import WEIGHTS


def sums(comm, allreduce):
    vector = np.random.default_rng(comm.rank).normal(size=WEIGHTS).astype(np.float32)
    allreduce(comm, vector)
    return vector


caught = ranks.run(sums, suspicious_ring)
print("rounds:", caught.rounds, "of", rounds("ring", 4))
print("bytes:", caught.bytes_per_rank[0], "of", bytes_per_rank("ring", 4, WEIGHTS)[0])

# %%
from course_utils.allreduce.blocks import block_bounds

right = ranks.run(sums, ring).results[0]
bounds = block_bounds(WEIGHTS, 4)
course.draw.right_and_wrong(caught.results, right, bounds, "suspicious_ring")

# %% [markdown]
# <details><summary>What is wrong?</summary>
#
# The rounds are all there, but bytes are missing; and on every rank it is the *end of each block* that was never
# added. A block has 902 or 903 numbers and travels in segments of 512: `len(block) // SEGMENT` rounds down, and the
# last 390 stay at home. There each rank keeps its own weight, which then is divided by $P$, in every step.
# With 4,096 numbers a block has 1,024, two whole segments. `print(inspect.getsource(suspicious_ring))` shows the
# line. The moral: test with lengths that do *not* divide.
# </details>
#
# ## The clock
#
# In lesson 4 a message took $\alpha + \beta n$. So, with $n$ bytes in the vector:
#
# | | rounds × α | bytes × β |
# |---|---|---|
# | tree | $2\log_2 P$ | $2\log_2 P$ |
# | recursive doubling | $\log_2 P$ | $\log_2 P$ |
# | halving-doubling | $2\log_2 P$ | $2(P-1)/P$ |
# | ring | $2(P-1)$ | $2(P-1)/P$ |
#
# On one machine all ranks share one memory. Let us give each a computer of its own: eight *nodes*, each behind a
# link of 50 Mbit/s with 5 ms to the next. (Where your system forbids it, a line says so, and the ranks go on as before.)

# %%
ranks = course.start(8, link="50 Mbit/s", latency="5 ms")
linked = ranks.facts["network"] is not None

# %%
from course_utils.allreduce.cost import allreduce_time
from course_utils.allreduce.findings import network_said
from course_utils.allreduce.fit import fit_network
from course_utils.allreduce.sweep import message_seconds

sizes = [1, 1_000, 4_000, 10_000, 20_000, 40_000, 100_000, 400_000]
times = ranks.run(message_seconds, sizes, runs=3).results[0]
network = fit_network(sizes, times, shared=linked)
print(network_said(network))

# %% [markdown]
# **Predict**, for 8 ranks: which of tree, recursive doubling and ring is the fastest for 4 KB, and which for 400 KB?

# %%
options = ["tree", "recursive doubling", "ring"]
course.predict("allreduce_small", answer=..., choices=options)
course.predict("allreduce_large", answer=..., choices=options)

# %%
from course_utils.allreduce.sweep import measure, medians

three = {name: ALGORITHMS[name] for name in options}
lengths = [4_000, 32_000, 128_000, 400_000]
taken = {P: measure(ranks, three, lengths, runs=3, world_size=P) for P in (2, 4, 8)}
middle = medians(taken[8])
course.measured("allreduce_small", answer=min(three, key=lambda name: middle[name][0]))
course.measured("allreduce_large", answer=min(three, key=lambda name: middle[name][-1]))

# %%
from course_utils.allreduce.findings import predictors

measured = {f"{P} ranks": taken[P] for P in taken}
predicted = {f"{P} ranks": predictors(P, options, allreduce_time, network) for P in taken}
course.draw.crossings(lengths, measured, predicted, "Time over the size of the vector")

# %% [markdown]
# The student's figures, once more. Short vectors pay for rounds, long ones for bytes; where the lines cross depends
# on $P$ and on $\alpha/\beta$. No algorithm is the best: that is why libraries carry several and choose.
# (`measure` with ten sizes and `runs=9` takes ten minutes and gives finer figures.)
#
# **How full are the links?** *Bus bandwidth* is $2\frac{P-1}{P}\,n$ divided by the time: what each link must carry
# at least, per second. Unlike $n$ over time it can be compared with the link's own rate, whatever $P$.

# %%
from course_utils.allreduce.findings import bus_said

for P in taken:
    for name, runs in taken[P].items():
        print(f"{P} ranks, 400 KB, {name:20}", bus_said(P, 400_000, np.median(runs[-1])))

# %% [markdown]
# ## A formula put right
#
# The report gives the *butterfly*, "a recursive halving reduce-scatter followed by a recursive doubling all-gather",
# the time $\log_2 P\,(L + \gamma m G)$: in our letters $\log_2 P\,(\alpha + \beta n)$. Your timeline of
# halving-doubling says $2\log_2 P\,\alpha + 2\frac{P-1}{P}\beta n$. Let the clock decide, on 8 ranks:

# %%
from course_utils.allreduce.findings import formula_said

butterfly = {"halving-doubling": halving_doubling_allreduce}
timed = medians(measure(ranks, butterfly, [4_000, 400_000]))["halving-doubling"]
for nbytes, seconds in zip([4_000, 400_000], timed, strict=True):
    formulas = {
        "the report": 3 * network.message_seconds(nbytes),
        "ours": allreduce_time("halving-doubling", 8, nbytes, network),
    }
    print(f"{nbytes / 1000:g} KB:", formula_said(seconds, formulas))

# %% [markdown]
# The report's formula is that of recursive *doubling*: half of the rounds, and many more bytes. For a long vector
# that is no detail.
#
# ## Two levels
#
# Real clusters have two speeds: fast inside a node, slow between nodes. Four ranks on two nodes: the ring sends
# $\frac32$ vectors over each slow link. **Hierarchical**: a reduce-scatter inside the node, all-reduces *between*
# nodes, an all-gather inside. Over the slow link goes $2\frac{N-1}{N}$, here 1 vector, in 2 rounds, not 6.
#
# A **simulator** lets messages queue on a network made of numbers. It predicts; then we run.

# %%
from course_utils.allreduce.simulate import simulate_allreduce
from course_utils.allreduce.topology import alpha_of, two_level

between = (alpha_of(sizes, times, network.beta), network.beta)
inside = (0.00002, 2e-10)  # a guess: 20 µs, 5 GB/s
nodes = two_level(4, 2, between, inside)
for name in ("ring", "hierarchical"):
    print(simulate_allreduce(name, 4, 400_000, nodes, node_size=2))

# %%
course.predict("allreduce_levels", within=1.2, factor=...)  # ring's time / hierarchical's

# %%
from course_utils.allreduce.findings import levels_said
from course_utils.allreduce.hierarchical import hierarchical_allreduce

ranks = course.start(4, link="50 Mbit/s", latency="5 ms", ranks_per_node=2)


def two_levels(comm, vector):
    hierarchical_allreduce(comm, vector, node_size=2)


both = measure(ranks, {"ring": ring, "hierarchical": two_levels}, [400_000], runs=5)
flat, levels = both["ring"][0], both["hierarchical"][0]
course.measured("allreduce_levels", factor=np.median(flat) / np.median(levels))
print(levels_said(flat, levels))

# %% [markdown]
# ## 1,024 ranks
#
# No laptop runs them; the simulator does. First: may we believe it? It saw one ping-pong. Here it is against what we
# measured on 2, 4 and 8 nodes:

# %%
from course_utils.allreduce.findings import error_said
from course_utils.allreduce.topology import switch

simulated, clock = [], []
for P in taken:
    links = switch(P, *between, overhead=0.0002)
    for name, by_size in medians(taken[P]).items():
        simulated += [simulate_allreduce(name, P, n, links).seconds for n in lengths]
        clock += by_size
print("Simulated against measured:", error_said(simulated, clock))

# %% [markdown]
# Now nodes of 8 GPUs, such as a cluster has: 100 Gbit/s and 5 µs between them, 100 GB/s and 2 µs inside (assumed,
# not measured), and a vector of 25 MB. **Predict:** does the ring keep its bus bandwidth with 1,024 ranks?

# %%
course.predict(
    "allreduce_thousand", answer=..., choices=["it does", "it loses most of it"]
)

# %%
from course_utils.allreduce.cost import bus_bandwidth

many, names = [16, 32, 64, 128, 256, 512, 1024], [*list(ALGORITHMS)[1:5], "hierarchical"]
rates = {name: [] for name in names}
for P in many:
    cluster = two_level(P, 8, (5e-6, 8e-11), (2e-6, 1e-11), overhead=5e-7)
    for name in names:
        seconds = simulate_allreduce(name, P, 25e6, cluster, node_size=8).seconds
        rates[name].append(bus_bandwidth("all_reduce", P, 25e6, seconds) / 1e9)
kept = rates["ring"][-1] > rates["ring"][0] / 2
course.measured("allreduce_thousand", answer="it does" if kept else "it loses most of it")
title = "Simulated, not run: bus bandwidth in GB/s, 25 MB, nodes of 8"
course.draw.over_ranks(many, rates, title, y="GB/s", unit="{:g}".format)

# %% [markdown]
# 2,046 rounds of latency eat the ring; pairs far apart share one slow link, and halving-doubling waits in its queue.
# Two levels keep most of the rate. On your cluster the numbers differ, so the answer may: measure, fit, simulate.
#
# ## What to take with you
#
# - You can **write** all-reduces: in pairs for few rounds, in blocks for few bytes, in segments for no waiting.
# - You **predict** their cost: rounds × α + bytes × β; the busiest link decides, and never less than
#   $2\frac{P-1}{P}$ of the vector.
# - You **find** what is wrong: count bytes, compare blocks, use lengths that do not divide. Rounding is 1e-7.
#
# Next: [the exercises](../exercises/05_allreduce.ipynb); then [lesson 6](06_data_parallel.ipynb): can $P$ workers train
# as one?

# %% [markdown]
# <details><summary>The words of this lesson</summary>
#
# **All-reduce**: everybody gets the sum of all. **Reduce-scatter**: everybody gets one block of it. **All-gather**:
# everybody gets everybody's block. **Block**, **segment**: a $P$-th of the vector; a piece of a block. **Recursive
# doubling / halving**: partners at twice / half the distance each round. **Bus bandwidth**: $2\frac{P-1}{P}n$ over
# the time. **Hierarchical**: inside nodes first. **Bracketing**: the order of additions. **Simulated**: computed, not
# run.
# </details>

# %%
ranks.stop()
