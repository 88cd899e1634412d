# The lesson on all-reduce. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How do P machines add their vectors?
#
# After this lesson you can **write** an all-reduce in six ways, **predict** what each costs, and **find** out why a
# sum over many machines is wrong or slow.
#
# *60 minutes · builds on [lesson 4](04_messages.ipynb) · 8 ranks*

# %% [markdown]
# Until now messages went through the memory of one computer. Now each rank has a computer of its own, a **node**. Its
# link to the others carries 50 million bits a second, and a message is 3 ms on its way. All this is *emulated* on your
# computer. (Where your system forbids it, a line says so. All counts stay the same.)
#
# Each rank has a gradient, a vector. Training needs the sum of all vectors, on every rank, in every step: an
# **all-reduce**. We do it in six ways, first on four of the eight ranks. We count **rounds**, in which each rank can
# send one message and receive one, and the bytes that the busiest rank sends.
#
# ## Everything through one
#
# All send to rank 0. It adds, and sends the sum to all. **Predict** for 4 ranks: how many rounds, and how many whole
# vectors does rank 0 send?

# %%
import numpy as np

import course_utils as course

ranks = course.start(8, link="50 Mbit/s", latency="3 ms")
linked = ranks.facts["network"] is not None  # False where the system forbids links
course.predict("allreduce_gather", rounds=..., vectors=...)  # two numbers

# %% tags=["figure:05_gather"]
from course_utils.lessons.allreduce import gather_broadcast_allreduce

LENGTH = 50_000  # numbers of 4 bytes


def add_up(comm, allreduce, length=LENGTH):
    vector = np.full(length, comm.rank, np.float32)
    allreduce(comm, vector)  # writes the sum into the vector
    assert (vector == sum(range(comm.size))).all()


gather = ranks.run(add_up, gather_broadcast_allreduce, ranks=4)
sent = gather.bytes_per_rank[0] / (4 * LENGTH)  # by rank 0, in vectors
course.measured("allreduce_gather", rounds=gather.rounds, vectors=sent)
gather.timeline("gather and broadcast")

# %% [markdown]
# With $P$ ranks, rank 0 takes $P-1$ vectors in and gives $P-1$ out, one in each round: $2(P-1)$ rounds. In the picture
# three travel at once. But they share rank 0's link, so each takes three times as long, and nothing is gained. With
# 1,000 machines one link carries everything, and 999 are nearly idle. Two ideas mend that.
# (`gather_broadcast_allreduce??` in a cell shows its lines.)
#
# ## Idea one: in pairs
#
# Rank 1 sends its vector to rank 0, which adds. At the same time rank 3 sends to rank 2. Then rank 2 sends its sum to
# rank 0. That is a **tree**; the sum of all goes back the same way.
#
# Better still: when two ranks meet, let them *swap* vectors, and let both add. In the next round each meets the rank at
# twice the distance: 0 meets first 1, then 2. That is **recursive doubling**; nothing has to come back. **Predict** its
# rounds on 4 ranks, and the vectors that *each* rank sends.

# %%
course.predict("allreduce_doubling", rounds=..., vectors=...)

# %%
from course_utils.lessons.allreduce import recursive_doubling_allreduce, tree_allreduce

tree = ranks.run(add_up, tree_allreduce, ranks=4)
doubling = ranks.run(add_up, recursive_doubling_allreduce, ranks=4)
sent = doubling.bytes_per_rank[0] / (4 * LENGTH)
course.measured("allreduce_doubling", rounds=doubling.rounds, vectors=sent)
course.draw.timelines(tree, doubling, titles=["tree", "recursive doubling"])

# %% [markdown]
# The tree needs $2\lceil\log_2 P\rceil$ rounds, doubling $\log_2 P$. No all-reduce has fewer: in one round, a rank's
# sum can at most double its number of vectors. (Doubling is slower in your run? One computer plays all four nodes, and
# doubling sends 8 messages, the tree 6.) But each round moves whole vectors. For a long vector that is what counts.
#
# ## Idea two: in blocks
#
# Why does everybody add up everything? Cut the vector into $P$ blocks and make each rank responsible for one:
#
# - **reduce-scatter**: rank $r$ ends with the finished sum of block $r$;
# - **all-gather**: everybody gets all finished blocks.
#
# **Halving-doubling** does both in pairs. Ranks 0 and 2 meet first. Rank 0 keeps the left half of its vector and gives
# the right half away; rank 2 does the opposite. Each adds what comes to the half that it keeps. Ranks 1 and 3 do the
# same. Then ranks 0 and 1 divide the left half in this way, and ranks 2 and 3 the right half. Now each rank has a
# finished quarter. The quarters go back the same way, without adding. **Predict** rounds and vectors again.

# %%
course.predict("allreduce_halving", rounds=..., vectors=...)

# %% tags=["figure:05_halving"]
from course_utils.lessons.allreduce import halving_doubling_allreduce

halving = ranks.run(add_up, halving_doubling_allreduce, ranks=4)
sent = halving.bytes_per_rank[0] / (4 * LENGTH)
course.measured("allreduce_halving", rounds=halving.rounds, vectors=sent)
halving.timeline("halving-doubling")

# %% [markdown]
# $\frac12 + \frac14 = \frac34$ of the vector there, and $\frac34$ back: $2\frac{P-1}{P}$ vectors, so less than 2. Where
# only *ranks* add, the busiest rank cannot send less with any algorithm. (A switch, the box where the links meet, can
# sometimes add, too. Then a rank sends its vector once: lesson 13.) The price: twice the rounds of doubling.
#
# ## The ring
#
# The same two phases, but only with neighbours: in each round every rank sends a block to its right, and receives one
# from its left. Follow block 3 on 4 ranks. Rank 0 sends it to rank 1, which adds its own block 3. The sum goes to rank
# 2, then to rank 3: there it is finished. Then it goes round once more, and everybody keeps a copy. The other blocks do
# the same, and each starts on another rank. Read the cell, and **predict** rounds and vectors once more:


# %%
def ring(comm, vector):
    rank, P = comm.rank, comm.size
    left, right = (rank - 1) % P, (rank + 1) % P
    blocks = np.array_split(vector, P)  # views: writing into a block changes the vector
    incoming = np.empty_like(blocks[0])  # room for any block
    for step in range(2 * (P - 1)):
        outgoing = blocks[(rank - step - 1) % P]
        arriving = blocks[(rank - step - 2) % P]
        place = incoming[: len(arriving)]
        # Sendrecv sends and receives at once, without a deadlock.
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
# As few bytes as halving-doubling, and each message goes only to a neighbour. But $2(P-1)$ rounds.
#
# In each round everybody waits for a whole block, adds, and only then sends on. The **asynchronous ring** cuts blocks
# into **segments** and sends each on as soon as it is added. Meanwhile the next one is under way:

# %%
from course_utils.lessons.allreduce import async_ring_allreduce


def in_segments(comm, vector):
    async_ring_allreduce(comm, vector, segment_bytes=25_000)  # half a block


segmented = ranks.run(add_up, in_segments, ranks=4)
titles = ["ring", "asynchronous ring"]
course.draw.timelines(round_the_ring, segmented, titles=titles)

# %% [markdown]
# Twice as many messages, each of half the size: the same bytes, in twice as many rounds. But nobody waits for a round
# to end. (Not faster in your run? More messages are more work for the *one* computer. *Ranks that are not there*,
# below, measures that work. The libraries of lessons 6 and 13 cut blocks too.)
#
# Now count all six against their formulas: rounds, and the vectors that the busiest rank sends. (6,000 numbers are few:
# a block is one segment, so both rings count the same.) Where $P$ is not a power of two, doubling and halving-doubling
# run on the largest power of two below $P$. Each surplus rank first hands its vector to a partner, and at the end gets
# the sum from this partner.

# %% tags=["nbval-check-output"]
from course_utils.lessons.allreduce import ALGORITHMS  # name → function
from course_utils.lessons.allreduce import bytes_per_rank, rounds  # formulas

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
labels = {"gather-broadcast": "gather-broadcast", "tree": "tree, doubling"}
labels["ring"] = "halving-doubling, rings"
sent = {  # of vectors with P numbers, 4 bytes each: one number a block
    label: [max(bytes_per_rank(name, P, P)) / 4 / P for P in many]
    for name, label in labels.items()
}
most, _, least = (f"{line[-1]:,.4g}" for line in sent.values())
title = f"{many[-1]:,} ranks: the busiest sends {most} vectors, in blocks only {least}"
words = {
    "y": "vectors that the busiest rank sends",
    "subtitle": "By the formulas just checked",
}
pictures.over_ranks(many, sent, title, **words, unit="{:g}".format)

# %% [markdown]
# The rings stay below 2, whatever $P$. So does halving-doubling for these $P$, the powers of two; for others its
# surplus ranks cost up to one vector more. Few rounds *and* few bytes: of these six only halving-doubling has both. So
# why has anything else survived? The last pictures of this page tell.
#
# ## Two trees
#
# In a tree half of the ranks are *leaves*: they send one vector and wait. So let a second tree stand beside the first,
# in which the leaves of the first pass the sums on. Each tree carries half of the vector, in segments, so that all its
# levels are busy at once. That is the **double tree**. **NCCL**, the library of lesson 13, uses it between nodes, and
# calls it *Tree*. We run it on 8 ranks, by turns (lesson 3) with the plain tree:

# %%
from course_utils.lessons.allreduce import double_tree_allreduce, measure
from course_utils.measuring import Compared


def double_tree(comm, vector):
    double_tree_allreduce(comm, vector, segment_bytes=12_500)  # 8 for each half


run = ranks.run(add_up, double_tree)
sent = max(run.bytes_per_rank) / (4 * LENGTH)
print(f"The busiest of 8 ranks sends {sent:g} vectors")
trees = {"double tree": double_tree, "tree": tree_allreduce}
both = measure(ranks, trees, [4 * LENGTH], runs=3)  # name → for each size, seconds
print(Compared(*(runs[0] for runs in both.values()), tuple(trees)))

# %% [markdown]
# At most 2 vectors from every rank, $\log_2 P$ levels up and as many down, and $P$ may be any number. (The plain tree's
# rank 0 sends three vectors here.)
#
# Ready for the first four [exercises](../exercises/05_allreduce.ipynb): tree, doubling, halving, ring.
#
# ## A report's puzzle
#
# In 2019 a student trained a network on 80 processes with MPI's all-reduce and with two rings of his own. The rings
# were faster. But networks trained with them recognised 7 to 10 % fewer images. He suspected **bracketing**: $(a+b)+c$
# is not $a+(b+c)$ when numbers are rounded, and a ring adds in another order than a tree. **Predict** how far a sum in
# float32 (4 bytes a number) is from the exact one, as a share of the largest sum:


# %%
def largest_error(comm, allreduce, dtype):
    vector = np.random.default_rng(comm.rank).normal(size=10_000)
    exact = comm.allreduce(vector.astype(np.longdouble))  # the type with the most digits
    vector = vector.astype(dtype)
    allreduce(comm, vector)
    return float(np.abs(vector - exact).max() / np.abs(exact).max())


course.predict(
    "allreduce_bracketing",
    answer=...,  # "a", "b", "c" or "d"
    choices={"a": "0", "b": "about 1e-7", "c": "about 1e-3", "d": "about 0.07"},
)

# %%
from course_utils.lessons.allreduce import rounding_text

errors = {"float32": {}, "float64": {}}
print(f"{'':20} float32 float64")
for name, allreduce in ALGORITHMS.items():
    for dtype, by_name in errors.items():
        by_name[name] = ranks.run(largest_error, allreduce, dtype, ranks=4).results[0]
    print(f"{name:20} {errors['float32'][name]:.0e}   {errors['float64'][name]:.0e}")
small = max(errors["float32"].values()) < 1e-6
course.measured("allreduce_bracketing", answer="b" if small else "c")
print("Bracketing in float32:", rounding_text(errors["float32"], loss=0.07))

# %% [markdown]
# Bracketing is not guilty. (The report's library, Genann, computes in float64: less guilty still.) Today the student
# might be right: many gradients travel in **bfloat16**, which keeps 8 binary digits where float32 keeps 24. NumPy does
# not know it, torch does. A ring adds one rank's vector after the other; so does this cell:

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
# Half a percent, with four ranks only. That is why many trainings compute in bfloat16, and all-reduce in float32
# (FSDP2, of lesson 11, has `reduce_dtype=torch.float32` for it).
#
# But his numbers were float64. Something else was wrong: the report itself thinks of "a flaw in the code". That code is
# lost, but our `suspicious_ring` has a flaw that costs as much. We train a small network on lesson 1's digits. As in
# the report, the ranks average their *weights* after every step: they add them up, and divide by $P$. At the end each
# rank tests its own network:

# %%
from course_utils.lessons.allreduce import suspicious_ring, train_digits

images = course.data.digits_arrays()
rings = {"tree": tree_allreduce, "our ring": ring, "suspicious": suspicious_ring}
for name, allreduce in rings.items():
    trained = ranks.run(train_digits, images, allreduce, ranks=4)
    shares = [f"{accuracy:.1%}" for accuracy, weights in trained.results]
    print(f"{name:12} recognises", *shares)

# %% [markdown]
# There they are, the missing percents; and tree and ring agree. No error, no warning, and with 4,096 numbers
# `suspicious_ring` passes `add_up`, the test of our own ring.
#
# **You are the detective.** All weights are one vector of 3,610 numbers. You know how many rounds and bytes a ring
# needs, and you have a ring that is right. In the picture each rank's vector is a strip, and wrong numbers are orange.
# Run the cell, and say what is wrong before you unfold the answer.

# %% tags=["figure:05_suspicious"]
from course_utils.lessons.allreduce import WEIGHTS, block_bounds


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
# last 390 or 391 are never sent. There each rank keeps its own weights, and divides them by $P$ in every step.
# With 4,096 numbers a block has 1,024, two whole segments. `suspicious_ring??` in a cell shows the line.
# The moral: test with lengths that do *not* divide.
# </details>
#
# ## The clock
#
# In lesson 4 a message took $\alpha + \beta n$. An all-reduce of $n$ bytes takes the first column times $\alpha$, plus
# the second times $\beta n$ (for $P$ a power of two):
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
# A ping-pong gives both numbers of our network: $\alpha$, the time of a message of one byte, and $\beta$, what each
# further byte of a long one adds. **Predict**, for 8 ranks: which of tree, recursive doubling and ring is the fastest
# for 4 KB, and which for 200 KB? (In the picture points are measured; lines are these formulas, corrected where
# messages share a link.)

# %%
from course_utils.lessons.allreduce import Network, message_seconds, network_text
from course_utils.lessons.allreduce import predicted_seconds

sizes = [1, 1_000, 4_000, 10_000, 20_000, 40_000, 100_000, 400_000]


def two_numbers(times):
    return times[0], (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])


times = ranks.run(message_seconds, sizes, runs=3).results[0]  # a ping-pong
alpha, beta = two_numbers(times)
network = Network(alpha, beta, shared=linked)  # messages at once share a link
print(network_text(network))
options = {"a": "tree", "b": "recursive doubling", "c": "ring"}
course.predict("allreduce_size", choices=options, short=..., long=...)  # two letters

# %% tags=["figure:05_crossings"]
from course_utils.lessons.allreduce import medians, predictors

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
# algorithm is always the best: that is why libraries carry several and choose.
#
# **How full are the links?** **Bus bandwidth** is $2\frac{P-1}{P}\,n$ divided by the time: what each link must carry
# at least, per second, where only ranks add. So it can be compared with the link's own rate, whatever $P$ is. Our link
# lets 50 million bits pass in a second, or 6.25 MB; about 5 % of that are addresses, which travel with the data.
#
# ## A formula put right
#
# Formulas in reports can be wrong, and a clock finds out. The report calls halving-doubling the *butterfly*: "a
# recursive halving reduce-scatter followed by a recursive doubling all-gather". In our letters it gives the time
# $\log_2 P\,(\alpha + \beta n)$. Your timeline says $2\log_2 P\,\alpha + 2\frac{P-1}{P}\beta n$.
#
# First come the bus bandwidths of the runs above, and the share that each algorithm keeps from 2 ranks to 8. Then the
# clock decides, on 8 ranks:

# %%
from course_utils.lessons.allreduce import bus_text, formula_text, kept_text

for name, runs in measured["8 ranks"].items():
    print(f"200 KB, {name:20}", bus_text(8, 200_000, np.median(runs[-1])))
print(kept_text(measured))
butterfly = {"halving-doubling": halving_doubling_allreduce}
two_sizes = [4_000, 500_000]
timed = measure(ranks, butterfly, two_sizes, runs=5)["halving-doubling"]
for n, seconds in zip(two_sizes, timed, strict=True):
    formulas = {"the report": 3 * (alpha + beta * n), "ours": 6 * alpha + 1.75 * beta * n}
    print(f"{n / 1000:g} KB:", formula_text(seconds, formulas))

# %% [markdown]
# The report's formula is that of recursive *doubling*: half of the rounds, and many more bytes. For a long vector this
# makes a great difference. (Is the report nearer in your run? Then your computer was busy, now or during the ping-pong.
# Counts need no clock: they were $2\frac{P-1}{P}$ vectors in twice the rounds.)
#
# The report also times whole *trainings*, with MPI's own all-reduce and with both rings. Its network's hidden layer
# gets more and more neurons (lesson 1's hidden units). Here are four steps of such a training, on 8 ranks. Each neuron
# makes the vector 75 numbers longer: 64 + 10 weights, and one number of its own.

# %%
from course_utils.lessons.allreduce import training_seconds


def mpi_allreduce(comm, vector):
    from mpi4py import MPI

    comm.Allreduce(MPI.IN_PLACE, vector)  # the sum takes the vector's place


widths = [32, 128, 512]
ways = {"MPI's own": mpi_allreduce}
ways |= {name: ALGORITHMS[name] for name in ("ring", "asynchronous ring")}
trained = ranks.run(training_seconds, ways, images, widths, runs=3).results[0]
pair = Compared(trained["MPI's own"][-1], trained["ring"][-1], ("MPI's own", "the ring"))
title = "Four steps of a training on 8 ranks"
found = f"{pair}, with {widths[-1]} neurons"
axes = {"across": "neurons in the hidden layer", "up": "seconds"}
course.draw.over_numbers(widths, trained, title, found, **axes)

# %% [markdown]
# MPI chooses by the size of the vector, like every library. Ours is MPICH. The report believes that the all-reduce of
# its MPI was a tree. Perhaps it was a ring: the Open MPI of that time chose one for sums of more than 10,000 bytes.
#
# ## Ranks that are not there
#
# Each algorithm needs a formula, and another where links are shared. A **virtual rank** needs none. It runs the
# *function itself*, any function that uses only `comm` and NumPy. `where="nowhere"` starts no process and sends
# nothing: all ranks take turns in the notebook, and each has a clock of its own. A message takes the time that a model
# of the network gives, and waits for busy links on its way. The numbers of our model come from the same ping-pong.
#
# One thing differs from real networks: here one computer plays all nodes, and with more messages under way each waits
# longer for its few cores. So we measure that `work` as well. Are the clocks right then? Virtual beside real:

# %%
from course_utils.lessons.allreduce import alpha_of, error_text, switch, work_per_message
from course_utils.words import seconds_text

work = ranks.run(work_per_message).results[0]  # seconds that a message delays another
link = (alpha_of(sizes, times, beta), beta)  # here α differs with the size, as measured
# Assumed: a message is 0.2 ms of work for its sender, and again for its receiver.
our_nodes = switch(8, *link, overhead=0.0002, work=work)
nowhere = course.start(8, where="nowhere", network=our_nodes)
virtual, clock = [], []
for panel, by_name in measured.items():
    P = int(panel.split()[0])
    for name, seconds in medians(by_name).items():
        runs = [nowhere.run(add_up, ALGORITHMS[name], n // 4, ranks=P) for n in lengths]
        virtual += [run.seconds for run in runs]
        clock += seconds
    ends = seconds_text(virtual[-1]), seconds_text(clock[-1])
    print(f"{panel}, {name}, 200 KB: virtual {ends[0]}, real {ends[1]}")
print("Virtual against real:", error_text(virtual, clock))

# %% [markdown]
# ## Two levels
#
# Until now each node had one rank. Clusters have several on a node: messages are fast inside it, slow between nodes.
# With four ranks on *two* nodes the ring sends $\frac32$ vectors over each slow link.
#
# **Hierarchical** sends less: a reduce-scatter inside the nodes, so that each of a node's two ranks has half of the
# node's sum; then all-reduces of these halves *between* the nodes; then an all-gather inside. With $N$ nodes
# $2\frac{N-1}{N}$ vectors go over each slow link. Here this is 1 vector in 2 rounds: both ranks of a node send a
# quarter in each.
#
# We start such nodes, and send a ping-pong inside one and one between two. Then virtual ranks say how long both ways
# take. **Predict** for the real ranks: how many times as long does the ring take as two levels?

# %%
from course_utils.lessons.allreduce import hierarchical_allreduce, two_level


def two_levels(comm, vector, node_size=2):
    hierarchical_allreduce(comm, vector, node_size)


ranks = course.start(4, link="100 Mbit/s", latency="3 ms", ranks_per_node=2)
pairs = []  # (α, β) between the nodes, then inside
for other in (2, 1):  # on the other node, on the same one
    times = ranks.run(message_seconds, sizes, other=other, runs=3).results[0]
    _, slope = two_numbers(times)
    pairs.append((alpha_of(sizes, times, slope), slope))
nodes = two_level(4, 2, *pairs)
nowhere = course.start(4, where="nowhere", network=nodes)
flat, levels = (nowhere.run(add_up, way, 250_000) for way in (ring, two_levels))
print("virtual:", seconds_text(flat.seconds), "and", seconds_text(levels.seconds))
course.predict("allreduce_levels", within=1.2, factor=...)  # ring's time / hierarchical's

# %% [markdown]
# Now real ranks run both, by turns. Then the same cell asks about the ring's order. Ranks 0 and 1 share a node, ranks 2
# and 3 the other. The ring 0, 1, 2, 3 crosses between the nodes once in each direction: from 1 to 2 and from 3 to 0.
# How often does the ring 0, 2, 1, 3 cross?


# %%
def ring_across(comm, vector):
    in_turn = comm.Split(key=(0, 2, 1, 3)[comm.rank])  # the same ranks in another order
    ring(in_turn, vector)
    in_turn.Free()


both = measure(ranks, {"ring": ring, "hierarchical": two_levels}, [1_000_000], runs=5)
names = "hierarchical", "ring"
pair = Compared(*(both[name][0] for name in names), names)
course.measured("allreduce_levels", factor=pair.times)
print(pair)
for order, allreduce in {"0, 1, 2, 3": ring, "0, 2, 1, 3": ring_across}.items():
    ranks.run(add_up, allreduce, 250_000)  # 1 MB
    if linked:  # ranks without links of their own are no nodes
        out = ranks.traffic().sent[0] / 1e6
        print(f"ring {order}: {out:.1f} vectors leave the first node")

# %% [markdown]
# Every message of the second ring crosses: twice as much over the same slow link. (Addresses are counted, too.) "Only
# neighbours talk" helps where neighbours in the ring are neighbours in the network. So libraries put the ranks of a
# node next to each other in their rings. They do not know the network between the nodes.
#
# ## 1,024 ranks
#
# No laptop runs them. Virtual ranks do, and every number is really added. Your own `ring` runs on up to 64 of them; a
# formula gives its other points, as a ring on 1,024 ranks sends two million messages. We assume nodes of 8 GPUs, as
# cheap clusters have them: one link of 100 Gbit/s and 5 µs between nodes, 100 GB/s and 2 µs inside. `scale=125` lets
# each number stand for 125, so 8,000 numbers are 4 MB.
#
# **Predict:** from 16 ranks to 1,024, does the ring keep at least half of its bus bandwidth? And which way is the
# fastest at 1,024 on nodes built for training, where each GPU has a network card of its own (400 Gbit/s; only ranks
# add)?

# %%
from functools import partial

from course_utils.lessons.allreduce import bus_bandwidth, ring_seconds

last = 64  # with 1024, your ring's two million messages run too, for a minute or two in each picture
ways = {name: ALGORITHMS[name] for name in ("tree", "halving-doubling")}
ways["double tree"] = partial(
    double_tree_allreduce, segment_bytes=2_000
)  # 8 for each half
ways |= {"ring": ring, "hierarchical": partial(two_levels, node_size=8)}


def bus_rate(name, P, network):  # in GB/s
    if name == "ring" and last < P:
        return bus_bandwidth("all_reduce", P, 4e6, ring_seconds(network, 4e6)) / 1e9
    run = nowhere.run(add_up, ways[name], 8_000, ranks=P, network=network)
    return bus_bandwidth("all_reduce", P, 4e6, run.seconds) / 1e9


kept = {"a": "the ring keeps it", "b": "it loses most of it"}
course.predict("allreduce_thousand", answer=..., choices=kept)
first = {"a": "two levels (hierarchical)", "b": "halving-doubling", "c": "the ring"}
course.predict("allreduce_cards", answer=..., choices=first)


# %% tags=["figure:05_thousand"]
# between nodes of 8, then inside: seconds, and seconds per byte; 0.5 µs of work a message
def one_link(P):
    return two_level(P, 8, (5e-6, 8e-11), (2e-6, 1e-11), overhead=5e-7)


nowhere = course.start(1024, where="nowhere", network=one_link(1024), scale=125)
many = [16, 64, 256, 1024]
rates = {name: [bus_rate(name, P, one_link(P)) for P in many] for name in ways}
keeps = rates["ring"][-1] > rates["ring"][0] / 2
course.measured("allreduce_thousand", answer="a" if keeps else "b")
look = {
    "y": "bus bandwidth, GB/s",
    "unit": "{:g}".format,
    "by_formula": {"ring": sum(last < P for P in many)},
}
if many[-1] > last:
    look["subtitle"] = f"Dotted: the ring on more than {last} ranks, by formula"
fastest = max(ways, key=lambda name: rates[name][-1])
title = f"Virtual ranks, 4 MB, one link for 8 GPUs: {fastest} is the fastest on 1,024"
pictures.over_ranks(many, rates, title, **look)

# %% [markdown]
# The ring pays 2,046 latencies. Halving-doubling has few rounds, but the eight ranks of a node all want its one link at
# once. Three of four messages of the double tree stay inside a node. Two levels are the fastest of all at 1,024. (On 16
# ranks they beat the link's 12.5 GB/s, since most bytes stay inside the nodes.)
#
# Now a card for each GPU. One line, by formula, is a surprise:

# %%
from course_utils.lessons.allreduce import adding_switch_time


def a_card_each(P):
    return switch(P, 5e-6, 2e-11, overhead=5e-7)


rates = {name: [bus_rate(name, P, a_card_each(P)) for P in many] for name in ways}
fastest = max(ways, key=lambda name: rates[name][-1])
letters = {"hierarchical": "a", "halving-doubling": "b", "ring": "c"}
course.measured("allreduce_cards", answer=letters.get(fastest, ""))
switch_adds = adding_switch_time(4e6, Network(alpha=5e-6, beta=2e-11))  # by formula
rates["the switch adds"] = [2 * (P - 1) / P * 4e6 / switch_adds / 1e9 for P in many]
title = f"Virtual ranks, a card for each GPU: {fastest} is the fastest where ranks add"
pictures.over_ranks(many, rates, title, **look)

# %% [markdown]
# Nobody waits for a link any more, so few rounds and few bytes decide. An algorithm is fast *on a network*: measure
# yours, and let virtual ranks run it.
#
# The highest line is a **switch that adds**. Each rank sends its vector once, in segments; the switch adds them and
# sends the sum to all: $\alpha + \beta n$. The line lies above 50 GB/s, more than a card can carry! The bus bandwidth's
# $2\frac{P-1}{P}$ supposes that ranks add. Inside a node of H100 GPUs NCCL lets the switches add (lesson 13), so there
# a bus bandwidth above the link's rate is not a miracle.
#
# ## What to take with you
#
# - You can **write** all-reduces: in pairs for few rounds, in blocks for few bytes, in segments for no waiting.
# - You **predict** their cost: rounds × α + bytes × β; the busiest link decides. Where only ranks add, it carries at
#   least $2\frac{P-1}{P}$ of the vector.
# - You **find** what is wrong: count bytes, compare blocks, use lengths that do not divide. Rounding is about 1e-7 of
#   the sum in float32, 1e-16 in float64, and 5e-3 in bfloat16.
#
# Next: [the exercises](../exercises/05_allreduce.ipynb); then [lesson 6](06_data_parallel.ipynb): can $P$ workers train
# as one?

# %%
ranks.stop()
