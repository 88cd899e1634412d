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

# %% tags=["here:05_pairs"]
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
# why has anything else survived? The last pictures of [*Further*](05_allreduce_further.ipynb) tell.
#
# *Further* also lets the ring send **segments** of blocks (the *asynchronous ring*), and two trees at once.
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

# %% tags=["here:05_bracketing"]
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

# %% tags=["here:05_digits"]
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
from course_utils.lessons.allreduce import measure, medians, predictors

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
# algorithm is always the best: that is why libraries carry several and choose. [*Further*](05_allreduce_further.ipynb)
# has nodes with several ranks, a report's formula, and 1,024 ranks.
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
