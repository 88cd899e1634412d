# The lesson on all-reduce. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How do P machines add their vectors?
#
# After this lesson you can **write** an all-reduce in six ways, **predict** what each costs, and **find** out why a
# sum over many machines is wrong or slow.
#
# *60 minutes · builds on [lesson 4](04_messages.ipynb) · 8 ranks*

# %%
import numpy as np

import course_utils as course
from course_utils.lessons.allreduce.algorithms import ALGORITHMS

ranks = course.start(8, link="50 Mbit/s", latency="3 ms")
linked = ranks.facts["network"] is not None

# %% [markdown]
# Until now messages went through the memory of one computer. Now each rank gets a computer of its own, a **node**,
# behind a link of 50 million bits a second, 3 ms from the next: emulated. (Where your system forbids it, a line says
# so: all counts stay the same.)
#
# Each has a gradient, a vector. Training needs the sum of all, on every worker, in every step: an **all-reduce**. We
# build it six times. The trace counts bytes and **rounds**, in which each rank can send one message and receive one.
#
# ## Everything through one
#
# All send to rank 0. It adds, and sends the sum to all. **Predict** for 4 ranks: how many rounds, and how many whole
# vectors does rank 0 send?

# %%
course.predict("allreduce_gather", rounds=..., vectors=...)  # two numbers

# %% tags=["figure:05_gather"]
from course_utils.lessons.allreduce.gather_broadcast import gather_broadcast_allreduce

LENGTH = 50_000  # numbers of 4 bytes


def add_up(comm, allreduce, length=LENGTH):
    vector = np.full(length, comm.rank, np.float32)
    allreduce(comm, vector)
    assert (vector == sum(range(comm.size))).all()


gather = ranks.run(add_up, gather_broadcast_allreduce, ranks=4)
sent = gather.bytes_per_rank[0] / (4 * LENGTH)
course.measured("allreduce_gather", rounds=gather.rounds, vectors=sent)
gather.timeline("gather and broadcast")

# %% [markdown]
# Rank 0 takes $P-1$ vectors in and gives $P-1$ out: $2(P-1)$ rounds when they come one after the other. Here they
# travel at once and share rank 0's link, so each takes three times as long, and all together take the same time. With
# 1,000 machines one link carries everything, and 999 idle. Two ideas mend that.
#
# ## Idea one: in pairs
#
# Ranks 0 and 1 add up while 2 and 3 do. Then 0 and 2 meet: a **tree**, and the sum goes back
# the same way.
#
# Better still: when two ranks meet, let them *swap* vectors, so that both have the sum. Next round, meet at twice the
# distance. That is **recursive doubling**, and nothing need come back. **Predict** its rounds on 4 ranks, and the
# vectors that *each* rank sends.

# %%
course.predict("allreduce_doubling", rounds=..., vectors=...)

# %%
from course_utils.lessons.allreduce.recursive_doubling import recursive_doubling_allreduce
from course_utils.lessons.allreduce.tree import tree_allreduce

tree = ranks.run(add_up, tree_allreduce, ranks=4)
doubling = ranks.run(add_up, recursive_doubling_allreduce, ranks=4)
sent = doubling.bytes_per_rank[0] / (4 * LENGTH)
course.measured("allreduce_doubling", rounds=doubling.rounds, vectors=sent)
course.draw.timelines(tree, doubling, titles=["tree", "recursive doubling"])

# %% [markdown]
# $2\lceil\log_2 P\rceil$ rounds for the tree, $\log_2 P$ for doubling: no all-reduce has fewer. (Slower in your run?
# One computer plays all four nodes, and doubling sends 8 messages where the tree sends 6.) But in each round whole
# vectors travel. For a long vector that is what counts.
#
# ## Idea two: in blocks
#
# Why does everybody add up everything? Cut the vector into $P$ blocks and make each rank responsible for one:
#
# - **reduce-scatter**: rank $r$ ends with the finished sum of block $r$;
# - **all-gather**: everybody gets all finished blocks.
#
# **Halving-doubling** does it in pairs. Ranks 0 and 2 meet first. Rank 0 keeps the left half and gives the right half
# away; rank 2 keeps the right half. Each adds what comes to the half that it keeps. Ranks 1 and 3 do the same. Then
# ranks 0 and 1 meet and share the left half in this way: each keeps a quarter, and that quarter is finished. The
# finished quarters go back the same way, without adding. **Predict** again, on 4 ranks.

# %%
course.predict("allreduce_halving", rounds=..., vectors=...)

# %% tags=["figure:05_halving"]
from course_utils.lessons.allreduce.halving_doubling import halving_doubling_allreduce

halving = ranks.run(add_up, halving_doubling_allreduce, ranks=4)
sent = halving.bytes_per_rank[0] / (4 * LENGTH)
course.measured("allreduce_halving", rounds=halving.rounds, vectors=sent)
halving.timeline("halving-doubling")

# %% [markdown]
# $\frac12 + \frac14 = \frac34$ of the vector there, and $\frac34$ back: $2\frac{P-1}{P}$ vectors, so less than 2.
# No algorithm in which only *ranks* add sends less from its busiest rank. (Some switches add, too. Then a rank sends
# its vector once: lesson 13.) The price: twice the rounds.
#
# ## The ring
#
# The same two phases without partners far away: every rank sends one block to its right, and receives one from its
# left. This is all of it. Read it, and **predict** once more, on 4 ranks:


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


course.predict("allreduce_ring", rounds=..., vectors=...)

# %% tags=["figure:05_ring"]
round_the_ring = ranks.run(add_up, ring, ranks=4)
sent = round_the_ring.bytes_per_rank[0] / (4 * LENGTH)
course.measured("allreduce_ring", rounds=round_the_ring.rounds, vectors=sent)
round_the_ring.timeline("ring")

# %% [markdown]
# As few bytes as halving-doubling, and only ever to a neighbour, over short ways. But $2(P-1)$ rounds.
#
# In each round everybody waits for a whole block, adds, and only then sends on. The **asynchronous ring** cuts blocks
# into **segments** and passes each on at once. While one is being added, the next is under way:

# %%
from course_utils.lessons.allreduce.async_ring import async_ring_allreduce


def in_segments(comm, vector):
    async_ring_allreduce(comm, vector, segment_bytes=25_000)  # two segments a block


segmented = ranks.run(add_up, in_segments, ranks=4)
titles = ["ring", "asynchronous ring"]
course.draw.timelines(round_the_ring, segmented, titles=titles)

# %% [markdown]
# Twice the messages and rounds, each of half the size: the same bytes. A round costs less now, because nobody waits for
# it to end. The libraries of lessons 6 and 13 cut blocks too. (Not faster in your run? *One* computer plays all nodes
# here, and more messages are more work for it. *A network made of numbers*, below, measures that work.)
#
# Now count all six against their formulas: rounds, and the vectors that the busiest rank sends. (With 6,000 numbers
# a block is one segment.) Where $P$ is not a power of two, doubling and halving-doubling take the largest power of two
# below it. Each surplus rank first hands its vector to a partner, and gets the sum from it at the end.

# %% tags=["nbval-check-output"]
from course_utils.lessons.allreduce.cost_model import bytes_per_rank, rounds

print(f"{'':18}{'3 ranks':>25}{'4 ranks':>25}")
for name, allreduce in ALGORITHMS.items():
    line = f"{name:18}"
    for P in (3, 4):
        run = ranks.run(add_up, allreduce, 6_000, ranks=P)
        assert run.bytes_per_rank == bytes_per_rank(name, P, 6_000)
        assert run.rounds == rounds(name, P)
        line += f"{run.rounds:4} rounds, {max(run.bytes_per_rank) / 24_000:.2f} vectors"
    print(line)

# %% tags=["figure:05_traffic"]
from course_utils.lessons.allreduce import pictures

many = [2**k for k in range(1, 11)]
names = {"gather-broadcast": "gather-broadcast", "tree": "tree, doubling"}
names["ring"] = "halving-doubling, rings"
sent = {
    said: [max(bytes_per_rank(name, P, P)) / 4 / P for P in many]
    for name, said in names.items()
}
title = "Vectors that the busiest rank sends, by the formulas just counted"
pictures.over_ranks(many, sent, title, y="vectors", unit="{:g}".format)

# %% [markdown]
# The rings stay below 2, whatever $P$. So does halving-doubling for these $P$, the powers of two; for others its
# surplus ranks cost up to one vector more. Few rounds *and* few bytes: of these six only halving-doubling. So why has
# anything else survived? The last pictures of this page tell.
#
# ## Two trees
#
# In a tree half of the ranks are leaves: they send one vector and wait. So let a second tree stand beside the first, in
# which the leaves of the first pass the sums on. Each tree carries half of the vector, in segments, so that all its
# levels are busy at once. **NCCL**, the library of lesson 13, does this between nodes; what it calls *Tree* is this
# **double tree**. On 8 ranks, by turns (lesson 3) with the plain tree:

# %%
from course_utils.lessons.allreduce.allreduce_times import measure
from course_utils.lessons.allreduce.double_tree import double_tree_allreduce
from course_utils.measuring import Compared


def double_tree(comm, vector):
    double_tree_allreduce(comm, vector, segment_bytes=12_500)


run = ranks.run(add_up, double_tree)
sent = max(run.bytes_per_rank) / (4 * LENGTH)
print(f"The busiest of 8 ranks sends {sent:g} vectors")
trees = {"double tree": double_tree, "tree": tree_allreduce}
both = measure(ranks, trees, [4 * LENGTH], runs=3)
print(Compared(*(runs[0] for runs in both.values()), tuple(trees)))

# %% [markdown]
# At most 2 vectors from every rank, $2\log_2 P$ levels, and $P$ may be any number. (The plain tree's rank 0 sends three
# vectors to three children, over one link.)
#
# Ready for the first four [exercises](../exercises/05_allreduce.ipynb): tree, doubling, halving, ring.
#
# ## A report's puzzle
#
# In 2019 a student trained a network on 80 processes with MPI's all-reduce and with two rings of his own. The rings
# were faster. But networks trained with them recognised 7 to 10 % fewer images. He suspected **bracketing**: $(a+b)+c$
# is not $a+(b+c)$ when numbers are rounded, and a ring adds in another order than a tree. **Predict** the size of
# that difference, as a share of the sum:

# %%
course.predict(
    "allreduce_bracketing",
    answer=...,  # "a", "b", "c" or "d"
    choices={"a": "0", "b": "about 1e-7", "c": "about 1e-3", "d": "about 0.07"},
)

# %%
from course_utils.lessons.allreduce.sentences import rounding_text


def sum_of(comm, allreduce, dtype):
    vector = np.random.default_rng(comm.rank).normal(size=10_000)
    exact = comm.allreduce(vector.astype(np.longdouble))
    vector = vector.astype(dtype)
    allreduce(comm, vector)
    return float(np.abs(vector - exact).max() / np.abs(exact).max())


errors = {"float32": {}, "float64": {}}
print(f"{'':20} float32 float64")
for name, allreduce in ALGORITHMS.items():
    for dtype, by_name in errors.items():
        by_name[name] = ranks.run(sum_of, allreduce, dtype, ranks=4).results[0]
    print(f"{name:20} {errors['float32'][name]:.0e}   {errors['float64'][name]:.0e}")
small = max(errors["float32"].values()) < 1e-6
course.measured("allreduce_bracketing", answer="b" if small else "c")
print("Bracketing in float32:", rounding_text(errors["float32"], loss=0.07))

# %% [markdown]
# Not guilty. (The report's library, Genann, computes in float64: less guilty still.) Today he might be right: many
# gradients travel in **bfloat16**, which keeps 8 binary digits where float32 keeps 24. NumPy does not know it, torch
# does. A ring adds one rank's vector after the other; so does this cell:

# %%
import torch

vectors = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 10_000)))
exact = vectors.sum(dim=0)
for dtype in (torch.float64, torch.float32, torch.bfloat16):
    total = torch.zeros(10_000, dtype=dtype)
    for vector in vectors:
        total += vector.to(dtype)
    error = (total - exact).abs().max() / exact.abs().max()
    print(f"{str(dtype):14} {error:.0e}")

# %% [markdown]
# Close to a percent, with four ranks only. So many trainings compute in bfloat16 and all-reduce in float32
# (`reduce_dtype` in torch's own sharding, lesson 11).
#
# But his numbers were float64. Something else was wrong: the report itself thinks of "a flaw in the code". That code is
# lost, but our `suspicious_ring` has a flaw that costs as much. Like his, our training averages the *weights* after
# every step. At the end each rank tests its own network:

# %%
from course_utils.lessons.allreduce.suspicious_ring import suspicious_ring, train_digits
from course_utils.data import digits_arrays

images = digits_arrays()
rings = {"tree": tree_allreduce, "our ring": ring, "suspicious": suspicious_ring}
for name, allreduce in rings.items():
    trained = ranks.run(train_digits, images, allreduce, ranks=4)
    shares = [f"{accuracy:.1%}" for accuracy, _ in trained.results]
    print(f"{name:12} recognises", *shares)

# %% [markdown]
# There they are, the missing percents; and tree and ring agree. No error, no warning, and `suspicious_ring` passes
# `add_up`, the test of our own ring, with 4,096 numbers.
#
# **You are the detective.** The vector of weights has 3,610 numbers. You know how many rounds and bytes a ring needs,
# and you have a ring that is right. Run the cell, and say what is wrong before you unfold the answer.

# %% tags=["figure:05_suspicious"]
from course_utils.lessons.allreduce.blocks import block_bounds
from course_utils.lessons.allreduce.suspicious_ring import WEIGHTS


def sums(comm, allreduce):
    vector = np.random.default_rng(comm.rank).normal(size=WEIGHTS).astype(np.float32)
    allreduce(comm, vector)
    return vector


ranks.run(add_up, suspicious_ring, 4096, ranks=4)  # passes
caught = ranks.run(sums, suspicious_ring, ranks=4)
right = ranks.run(sums, ring, ranks=4).results[0]
print("rounds:", caught.rounds, "of", rounds("ring", 4))
print("bytes:", caught.bytes_per_rank[0], "of", bytes_per_rank("ring", 4, WEIGHTS)[0])
bounds = block_bounds(WEIGHTS, 4)
pictures.right_and_wrong(caught.results, right, bounds, "suspicious_ring")

# %% [markdown]
# <details><summary>What is wrong?</summary>
#
# The rounds are all there, but bytes are missing; and on every rank it is the *end of each block* that was never
# added. A block has 902 or 903 numbers and travels in segments of 512: `len(block) // SEGMENT` rounds down, and the
# last 390 stay at home. There each rank keeps its own weight, which then is divided by $P$, in every step.
# With 4,096 numbers a block has 1,024, two whole segments. `suspicious_ring??` in a cell shows the line.
# The moral: test with lengths that do *not* divide.
# </details>
#
# ## The clock
#
# In lesson 4 a message took $\alpha + \beta n$. So, with $n$ bytes in the vector:
#
# | | times α | times βn |
# |---|---|---|
# | gather-broadcast | $2(P-1)$ | $2(P-1)$ |
# | tree | $2\log_2 P$ | $2\log_2 P$ |
# | recursive doubling | $\log_2 P$ | $\log_2 P$ |
# | halving-doubling | $2\log_2 P$ | $2(P-1)/P$ |
# | ring, asynchronous ring | $2(P-1)$ | $2(P-1)/P$ |
# | double tree, in short segments | $2\log_2 P$ | $2$ |
#
# So two numbers of our network, from a ping-pong: $\alpha$, the time of an empty message, and $\beta$, what each
# further byte of a long one adds.

# %%
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.lessons.allreduce.shared_links import predicted_seconds
from course_utils.lessons.allreduce.sentences import network_text
from course_utils.lessons.allreduce.allreduce_times import message_seconds

sizes = [1, 1_000, 4_000, 10_000, 20_000, 40_000, 100_000, 400_000]


def two_numbers(times):
    return times[0], (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])


times = ranks.run(message_seconds, sizes, runs=3).results[0]
alpha, beta = two_numbers(times)
network = Network(alpha, beta, shared=linked)  # messages at once share a link
print(network_text(network))

# %% [markdown]
# **Predict**, for 8 ranks: which of tree, recursive doubling and ring is the fastest for 4 KB, and which for 200 KB?

# %%
options = {"a": "tree", "b": "recursive doubling", "c": "ring"}
course.predict("allreduce_size", choices=options, short=..., long=...)  # two letters

# %% tags=["figure:05_crossings"]
from course_utils.lessons.allreduce.sentences import predictors
from course_utils.lessons.allreduce.allreduce_times import medians

three = {name: ALGORITHMS[name] for name in options.values()}
lengths = [4_000, 16_000, 64_000, 200_000]
measured, predicted = {}, {}
for P in (2, 4, 8):
    measured[f"{P} ranks"] = measure(ranks, three, lengths, runs=3, world_size=P)
    predicted[f"{P} ranks"] = predictors(P, list(three), predicted_seconds, network)
times_8 = np.array(list(medians(measured["8 ranks"]).values()))
short, long = times_8[:, 0].argmin(), times_8[:, -1].argmin()
course.measured("allreduce_size", short="abc"[short], long="abc"[long])
pictures.crossings(lengths, measured, predicted, "Time over the size of the vector")

# %% [markdown]
# Short vectors pay for rounds, long ones for bytes; where the lines cross depends on $P$ and on $\alpha/\beta$. No
# algorithm is the best: that is why libraries carry several and choose. (Ten sizes and `runs=9` take some minutes and
# give finer figures.)
#
# The student's report times whole *trainings*: a network with a hidden layer of more and more neurons, with MPI's own
# all-reduce and with both rings. Here are four steps of such a training, on 8 ranks. Each neuron more makes the vector
# 75 numbers longer.

# %%
from course_utils.lessons.allreduce.allreduce_times import training_seconds


def mpi_allreduce(comm, vector):
    from mpi4py import MPI

    comm.Allreduce(MPI.IN_PLACE, vector)


widths = [32, 128, 512]
ways = {"MPI's own": mpi_allreduce}
ways |= {name: ALGORITHMS[name] for name in ("ring", "asynchronous ring")}
trained = ranks.run(training_seconds, ways, images, widths, runs=3).results[0]
pair = Compared(trained["MPI's own"][-1], trained["ring"][-1], ("MPI's own", "the ring"))
title, axes = (
    "Four steps of a training on 8 ranks",
    ("neurons in the hidden layer", "seconds"),
)
course.draw.over_numbers(
    widths,
    trained,
    title,
    f"{pair}, with {widths[-1]} neurons",
    across=axes[0],
    up=axes[1],
)

# %% [markdown]
# MPI chooses by the size of the vector, like every library. The report takes MPI's all-reduce for a tree. Perhaps it
# was a ring: the version of that time chose one for sums of more than 10,000 bytes.
#
# **How full are the links?** **Bus bandwidth** is $2\frac{P-1}{P}\,n$ divided by the time: what each link must carry
# at least, per second, where only ranks add. Unlike $n$ over time it can be compared with the link's own rate,
# whatever $P$. Ours lets 6.25 MB pass in a second; about 5 % of that are the addresses that each packet carries.

# %%
from course_utils.lessons.allreduce.sentences import bus_text, kept_text

for panel, by_name in measured.items():
    for name, runs in by_name.items():
        P, seconds = int(panel.split()[0]), np.median(runs[-1])
        print(f"{panel}, 200 KB, {name:20}", bus_text(P, 200_000, seconds))
print(kept_text(measured))

# %% [markdown]
# ## A formula put right
#
# Formulas in reports can be wrong, and a clock finds out. The report gives the *butterfly*, "a recursive halving
# reduce-scatter followed by a recursive doubling all-gather", the time $\log_2 P\,(\alpha + \beta n)$, in our letters.
# Your timeline of halving-doubling says $2\log_2 P\,\alpha + 2\frac{P-1}{P}\beta n$. Let the clock decide, on 8 ranks:

# %%
from course_utils.lessons.allreduce.sentences import formula_text

butterfly = {"halving-doubling": halving_doubling_allreduce}
two_sizes = [4_000, 500_000]
timed = measure(ranks, butterfly, two_sizes, runs=5)["halving-doubling"]
for n, seconds in zip(two_sizes, timed, strict=True):
    formulas = {"the report": 3 * (alpha + beta * n), "ours": 6 * alpha + 1.75 * beta * n}
    print(f"{n / 1000:g} KB:", formula_text(seconds, formulas))

# %% [markdown]
# The report's formula is that of recursive *doubling*: half of the rounds, and many more bytes. For a long vector
# this makes a great difference. (Is the report nearer in your run? Then something else kept your computer busy, now or
# during the ping-pong. The trace needs no clock: it counted $2\frac{P-1}{P}$ vectors in twice the rounds.)
#
# ## A network made of numbers
#
# The table's formulas know nothing of links that are shared. A **simulator** does: every message queues for the links
# on its way, and each rank goes on when its message has come. It knows our network from the same ping-pong.
#
# One thing real nodes do not know: here one computer plays them all, and with more messages under way each waits longer
# for its few cores. So we measure that `work` as well, and tell the simulator. Is it right then?

# %%
from course_utils.lessons.allreduce.sentences import error_text
from course_utils.lessons.allreduce.message_simulator import simulate_allreduce
from course_utils.lessons.allreduce.allreduce_times import work_per_message
from course_utils.lessons.allreduce.network_topology import alpha_of, switch

work = ranks.run(work_per_message).results[0]  # seconds that a message delays another
print(f"Each message under way delays every other by {1e6 * work:.0f} µs")
link = (alpha_of(sizes, times, beta), beta)  # α here differs with the size, as measured
simulated, clock = [], []
for panel, by_name in measured.items():
    P = int(panel.split()[0])
    for name, seconds in medians(by_name).items():
        # Of each message 0.2 ms are work of the rank itself, at both ends.
        made_up = switch(P, *link, overhead=0.0002, work=work)
        simulated += [simulate_allreduce(name, P, n, made_up).seconds for n in lengths]
        clock += seconds
print("Simulated against measured:", error_text(simulated, clock))

# %% [markdown]
# ## Two levels
#
# Clusters have two speeds: fast inside a node, slow between nodes. Four ranks on *two* nodes: the ring sends
# $\frac32$ vectors over each slow link. **Hierarchical**: a reduce-scatter inside the nodes, all-reduces *between*
# them, an all-gather inside. With $N$ nodes $2\frac{N-1}{N}$ vectors go over each slow link. Here this is 1 vector in 2
# rounds: each of a node's two ranks sends a quarter of the vector in each round.
#
# We start such nodes, send a ping-pong inside one and one between two, and let the simulator predict:

# %%
from course_utils.lessons.allreduce.network_topology import two_level

ranks = course.start(4, link="100 Mbit/s", latency="3 ms", ranks_per_node=2)
pairs = []
for other in (2, 1):  # on the other node, on the same one
    times = ranks.run(message_seconds, sizes, other=other, runs=3).results[0]
    _, slope = two_numbers(times)
    pairs.append((alpha_of(sizes, times, slope), slope))
nodes = two_level(4, 2, *pairs)
for name in ("ring", "hierarchical"):
    print(simulate_allreduce(name, 4, 1_000_000, nodes, node_size=2))

# %% [markdown]
# **Predict**: the ring takes how many times as long as two levels? Then both run, by turns (lesson 3).

# %%
course.predict("allreduce_levels", within=1.2, factor=...)  # ring's time / hierarchical's

# %%
from course_utils.lessons.allreduce.hierarchical import hierarchical_allreduce


def two_levels(comm, vector):
    hierarchical_allreduce(comm, vector, node_size=2)


both = measure(ranks, {"ring": ring, "hierarchical": two_levels}, [1_000_000], runs=5)
names = "hierarchical", "ring"
pair = Compared(*(both[name][0] for name in names), names)
course.measured("allreduce_levels", factor=pair.times)
print(pair)

# %% [markdown]
# The ring has an order, and the order matters. Ranks 0 and 1 share a node, ranks 2 and 3 the other. The ring 0, 1, 2, 3
# crosses between the nodes once in each direction. How often does the ring 0, 2, 1, 3?


# %%
def ring_across(comm, vector):
    # Now every neighbour is on the other node.
    in_turn = comm.Split(key=(0, 2, 1, 3)[comm.rank])
    ring(in_turn, vector)
    in_turn.Free()


def one_vector(comm, allreduce):
    allreduce(comm, np.ones(125_000))


for order, allreduce in {"0, 1, 2, 3": ring, "0, 2, 1, 3": ring_across}.items():
    ranks.run(one_vector, allreduce)
    if linked:  # ranks without links of their own are no nodes
        out = ranks.traffic().sent[0] / 1e6
        print(f"ring {order}: {out:.1f} vectors leave the first node")

# %% [markdown]
# Twice as much over the same slow link, headers included. "Only neighbours talk" helps where neighbours in the ring are
# neighbours in the network. For this reason libraries put the ranks of a node next to each other in their rings. They
# do not know the network between the nodes.
#
# ## 1,024 ranks
#
# No laptop runs them; the simulator does. Nodes of 8 GPUs, as cheap clusters have them: one link of 100 Gbit/s and 5 µs
# between nodes, 100 GB/s and 2 µs inside (assumed, not measured), and a vector of 4 MB. **Predict:** from 16 ranks to
# 1,024, does the ring keep its bus bandwidth?

# %%
choices = {"a": "it does", "b": "it loses most of it"}
course.predict("allreduce_thousand", answer=..., choices=choices)

# %% tags=["figure:05_thousand"]
many, names = [16, 32, 64, 256, 1024], [*list(ALGORITHMS)[1:5], "hierarchical"]


def one_link(P):
    return two_level(P, 8, (5e-6, 8e-11), (2e-6, 1e-11), overhead=5e-7)


def bus_rates(cluster):
    rates = {name: [] for name in names}
    for P in many:
        for name in names:
            seconds = simulate_allreduce(name, P, 4e6, cluster(P), node_size=8).seconds
            rates[name].append(2 * (P - 1) / P * 4e6 / seconds / 1e9)
    return rates


rates = bus_rates(one_link)
kept = rates["ring"][-1] > rates["ring"][0] / 2
course.measured("allreduce_thousand", answer="a" if kept else "b")
title = "Simulated, not run: bus bandwidth in GB/s, 4 MB, nodes of 8"
pictures.over_ranks(many, rates, title, y="GB/s", unit="{:g}".format)

# %% [markdown]
# 2,046 rounds of latency eat the ring. Halving-doubling has few rounds, but the eight ranks of a node all want its one
# link at once. Two levels are the fastest of all at 1,024. (On 16 ranks they beat the link's 12.5 GB/s, since most
# bytes stay inside the nodes.)
#
# Nodes that are built for training have a card of 400 Gbit/s for *each* GPU. **Predict:** which wins now, if only ranks
# add?

# %%
choices = {"a": "two levels again", "b": "halving-doubling", "c": "the ring"}
course.predict("allreduce_cards", answer=..., choices=choices)


# %%
from course_utils.lessons.allreduce.cost_model import adding_switch_time


def a_card_each(P):
    return switch(P, 5e-6, 2e-11, overhead=5e-7)


rates = bus_rates(a_card_each)
fastest = max(names, key=lambda name: rates[name][-1])
letters = {"hierarchical": "a", "halving-doubling": "b", "ring": "c"}
course.measured("allreduce_cards", answer=letters.get(fastest, ""))
card = Network(alpha=5e-6, beta=2e-11)
switch_adds = adding_switch_time(4e6, card)  # by formula
rates["the switch adds"] = [2 * (P - 1) / P * 4e6 / switch_adds / 1e9 for P in many]
title = f"Simulated, not run: with a card for each GPU, {fastest} is the fastest where ranks add"
pictures.over_ranks(many, rates, title, y="GB/s", unit="{:g}".format)

# %% [markdown]
# Nobody waits for a link any more, so few rounds and few bytes decide. An algorithm is fast *on a network*: measure,
# fit, simulate. (Try 25 MB.)
#
# The highest line is a **switch that adds**: each rank sends its vector once, in segments, the switch adds them and
# sends the sum to all: $\alpha + \beta n$. It lies above 50 GB/s, more than a card can carry! The bus bandwidth's
# $2\frac{P-1}{P}$ supposes that ranks add. Inside an H100's node NCCL lets the switches add (lesson 13), so a bus
# bandwidth above the link's rate is not a miracle there.
#
# ## Your own ring, on 128 ranks
#
# The simulator plays schedules that somebody wrote down beside each algorithm. A **virtual rank** runs the *function*
# itself, any that uses `comm` and NumPy. `where="nowhere"` starts no process and sends nothing: all ranks take turns in
# this kernel, and each has a clock of its own. A message takes as long as a network made of numbers says. What your
# function adds takes no time there; `comm.compute(seconds)` would say what it costs.
#
# Are these clocks right? Here is your `ring` with 200 KB on the network that we measured, beside the real nodes:

# %%
from course_utils.words import seconds_text

for P in (4, 8):
    our_nodes = switch(P, *link, overhead=0.0002, work=work)
    nowhere = course.start(P, where="nowhere", network=our_nodes)
    virtual = nowhere.run(add_up, ring).seconds
    real = np.median(measured[f"{P} ranks"]["ring"][-1])
    print("virtual:", seconds_text(virtual), " real:", seconds_text(real))

# %% [markdown]
# Now the nodes of 8 GPUs with one link each, and a question for which nobody wrote a schedule: what if the ring takes
# its neighbours from *other* nodes? `scale=125` lets each number stand for 125, so 8,000 numbers are 4 MB. **Predict:**
# how many times as long does the ring across the nodes take on 128 ranks?

# %%
course.predict("allreduce_across", within=1.5, factor=...)  # across / in order


# %%
def across_nodes(comm, vector):
    # The next rank in this ring is on the next node.
    node, place = divmod(comm.rank, 8)
    in_turn = comm.Split(key=place * comm.size + node)
    ring(in_turn, vector)
    in_turn.Free()


sizes_of_rings = [16, 64, 128]
ways = {"neighbours on one node": ring, "neighbours on other nodes": across_nodes}
took = {name: [] for name in ways}
for P in sizes_of_rings:
    nowhere = course.start(P, where="nowhere", network=one_link(P), scale=125)
    for name, allreduce in ways.items():
        took[name].append(1e3 * nowhere.run(add_up, allreduce, 8_000).seconds)
inside, across = (milliseconds[-1] for milliseconds in took.values())
course.measured("allreduce_across", factor=across / inside)
title = f"Virtual, on no real node: across the nodes {across / inside:.1f} times as long on {P} ranks"
pictures.over_ranks(sizes_of_rings, took, title, y="ms", unit="{:g}".format)

# %% [markdown]
# Across the nodes, all eight ranks of a node want its one link in every round. In order, one of them does. This was
# your own function, and every block of every rank was really added: `add_up` has checked the sums. (1,024 ranks send
# two million messages, which takes a minute or two: put 1024 into the list.)
#
# ## What to take with you
#
# - You can **write** all-reduces: in pairs for few rounds, in blocks for few bytes, in segments for no waiting.
# - You **predict** their cost: rounds × α + bytes × β; the busiest link decides. Where only ranks add, it carries at
#   least $2\frac{P-1}{P}$ of the vector.
# - You **find** what is wrong: count bytes, compare blocks, use lengths that do not divide. Rounding is about 1e-7 of
#   the sum in float32, 1e-16 in float64, and close to 1e-2 in bfloat16.
#
# Next: [the exercises](../exercises/05_allreduce.ipynb); then [lesson 6](06_data_parallel.ipynb): can $P$ workers train
# as one?
# %%
ranks.stop()
