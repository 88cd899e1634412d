# The optional second notebook of lesson 5. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: how do P machines add up their vectors?
#
# On the [first page](05_allreduce.ipynb), the ring looked slower than halving-doubling. On a real cluster with 1,024
# GPUs it can be the other way round, and the fastest method of all may be one that you have not seen yet. This notebook
# shows you what decides this, and how you can find out for a network that you do not own.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, because each of them stands alone. JupyterLab lists them in its table of contents, on the
# left. If a section complains that its ranks were stopped, run the first code cell again.
#
# 1. *Any number of ranks*: what to do if it is not a power of two
# 2. *Ranks that are not there*: a thousand ranks in one process, each with its own clock
# 3. *A ring that does not wait*: blocks in segments
# 4. *Two trees*: how NCCL, the library for NVIDIA's GPUs, uses all the links of a tree
# 5. *Numbers of two bytes*: when rounding does matter
# 6. *A report, redone*: a wrong formula, and a sum that depends on the timing
# 7. *Several ranks on one node*: fast links inside, slow links outside
# 8. *1,024 GPUs*: two real kinds of nodes, and a switch that adds
#
# *80 minutes · optional, after [lesson 5](05_allreduce.ipynb) · 8 ranks, about 10 minutes for each section*

# %%
import numpy as np

import course_utils as course
from course_utils.lessons.allreduce import ALGORITHMS, Network, comparison_text, measure
from course_utils.lessons.allreduce import message_seconds, pictures, ring_allreduce
from course_utils.lessons.allreduce import switch, tree_allreduce
from course_utils.measuring import Compared

ranks = course.start(8, link="50 Mbit/s", latency="3 ms")
linked = ranks.facts["network"] is not None  # False if your system allows no links


def all_reduce(comm, method, vector):
    method(comm, vector)  # writes the sum into the vector
    return vector


def run_and_check(method, P, length=50_000, on=ranks):
    vectors = [np.full(length, 2.0**rank, np.float32) for rank in range(P)]
    run = on.run(all_reduce, method, course.per_rank(vectors), ranks=P)
    assert all((result == 2**P - 1).all() for result in run.results)
    return run


sizes = [1, 1_000, 4_000, 10_000, 20_000, 40_000, 100_000, 400_000]


def ping_pong(ranks, other=1):
    """Return the seconds of a message of each size, and what each additional byte costs."""
    times = ranks.run(message_seconds, sizes, other=other, runs=3).results[0]
    return times, (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])


# %% [markdown]
# ## Any number of ranks
#
# Clusters do not always have 4, 8 or 16 machines. If one of 8 machines breaks, you have 7. The ring does not care, but
# recursive doubling and halving-doubling meet in pairs, and their formulas hold only for powers of two.
#
# The usual solution is to fold the surplus ranks in. Suppose there are 3 ranks. First, rank 2 sends its vector to rank
# 0 and then sits out. Ranks 0 and 1 now do a recursive doubling for two, and afterwards rank 0 sends the sum to rank 2.
# That makes three rounds, and rank 0 is the busiest rank. It sends two vectors, one to rank 1 and one to rank 2:

# %% tags=["figure:05_fold_blocks"]
run_and_check(ALGORITHMS["recursive doubling"], P=3).blocks()

# %% [markdown]
# **Predict.** With 6 ranks, ranks 4 and 5 are folded into ranks 0 and 1 at the same time. How many rounds does
# recursive doubling take, and how many vectors does the busiest rank send?

# %%
course.predict("doubling_for_six", rounds=..., vectors=...)

# %%
six = run_and_check(ALGORITHMS["recursive doubling"], P=6)
sent = max(six.bytes_per_rank) / 200_000  # a vector is 200 KB
course.measured("doubling_for_six", rounds=six.rounds, vectors=sent)

# %% [markdown]
# The four ranks below the surplus need two rounds among themselves, and folding costs one round before and one after.
# Rank 0 sends a vector in each of the two rounds of doubling, and the sum to rank 4 at the end.
#
# There are two methods in the library that the first page left out. A **tree** works like recursive doubling in one
# direction. Rank 1 sends its vector to rank 0 while rank 3 sends to rank 2, then rank 2 sends its sum to rank 0, and
# the result goes back the same way. The **asynchronous ring** is the subject of section 3. Here are the counts of all
# six methods for 3 and for 4 ranks. The cell also compares every count with a formula from the library:

# %% tags=["nbval-check-output"]
from course_utils.lessons.allreduce import bytes_per_rank, rounds  # formulas

print(f"{'':18}{'3 ranks':>25}{'4 ranks':>25}")
for name, method in ALGORITHMS.items():
    line = f"{name:18}"
    for P in (3, 4):
        run = run_and_check(method, P, length=6_000)
        assert run.bytes_per_rank == bytes_per_rank(name, P, 6_000)
        assert run.rounds == rounds(name, P)
        line += f"{run.rounds:4} rounds, {max(run.bytes_per_rank) / 24_000:.2f} vectors"
    print(line)

# %% [markdown]
# Since the formulas agree with the counts, we can use them where no laptop can follow. This is what the busiest rank
# sends, on up to 1,024 ranks:

# %% tags=["figure:05_traffic"]
many = [2**k for k in range(1, 11)]
labels = {"gather-broadcast": "through one rank", "tree": "tree, doubling"}
labels["ring"] = "halving-doubling, rings"
sent = {  # of vectors with P numbers of 4 bytes, so that each block has one number
    label: [max(bytes_per_rank(name, P, P)) / 4 / P for P in many]
    for name, label in labels.items()
}
most, _, least = (np.ceil(line[-1]) for line in sent.values())
title = f"On 1,024 ranks, the busiest sends {most:,g} vectors, but in blocks less than {least:g}"
pictures.over_ranks(
    many,
    sent,
    title,
    y="vectors that the busiest rank sends",
    unit="{:,g}".format,
    subtitle="Calculated with the formulas that agree with the counts above",
)

# %% [markdown]
# With the methods that work in blocks, no rank sends more than two vectors, even on 1,024 ranks. Among these methods,
# only halving-doubling has few rounds as well. If the number of ranks is not a power of two, it pays for that with
# folding, while the rings do not. The last section shows why other methods are still in use.
#
# ## Ranks that are not there
#
# Your computer can play eight nodes, but not a thousand. And whenever it does play several nodes, they share its few
# cores, so a busy machine spoils the times. A **virtual rank** has neither of these problems. It is a function call in
# this notebook, with a clock of its own. No process starts, and nothing is sent.
#
# The clocks work like this. All virtual ranks take turns, and the one whose clock is furthest behind goes on. When it
# sends a message, a model of the network calculates the time of arrival from $\alpha$, $\beta$ and the links that are
# busy with other messages. When a rank receives that message, its clock moves forward to the time of arrival. The
# all-reduce itself is not a formula. It is the very function that also runs on real ranks, and it adds real numbers:

# %%
nowhere = course.start(8, where="nowhere", network=switch(8, 3e-3, 0.16e-6))
virtual = run_and_check(ring_allreduce, P=8, on=nowhere)
print(f"{virtual.rounds} rounds in {1000 * virtual.seconds:.0f} ms of virtual time")

# %% [markdown]
# You can check this by hand. `switch` describes eight ranks with a link each, with $\alpha$ = 3 ms and $\beta$ = 0.16
# µs per byte. One of 8 blocks of a vector with 200 KB is 25 KB, which takes 3 + 4 = 7 ms. The ring needs 14 of these
# rounds, or 98 ms.
#
# How close does this come to real clocks? We have to measure the numbers of the network first. A ping-pong gives
# $\alpha$ and $\beta$, as in lesson 4. One more number comes from the fact that one computer plays all the nodes. Its
# cores have to work for each message, so every message that is under way delays the others a little. The function
# `work_per_message` measures this delay. It lets all ranks send at once, then only two of them, and divides the
# difference by the number of additional messages:

# %%
from course_utils.lessons.allreduce import alpha_of, error_text, network_text
from course_utils.lessons.allreduce import work_per_message
from course_utils.words import seconds_text

times, beta = ping_pong(ranks)
work = ranks.run(work_per_message).results[0]
print(network_text(Network(times[0], beta)))
print("Each other message delays it by", seconds_text(work))

# %%
alpha_by_size = alpha_of(sizes, times, beta)  # in an MPI library, α depends on the size


def virtual_seconds(method, P, nbytes):
    network = switch(P, alpha_by_size, beta, work=work)
    vector = np.ones(nbytes // 4, np.float32)
    return nowhere.run(all_reduce, method, vector, ranks=P, network=network).seconds


three = {name: ALGORITHMS[name] for name in ("tree", "recursive doubling", "ring")}
lengths = [4_000, 40_000, 200_000]  # bytes
measured, virtual, real = {}, [], []
for P in (4, 8):
    measured[f"{P} ranks"] = measure(ranks, three, lengths, runs=3, world_size=P)
    for name, runs in measured[f"{P} ranks"].items():
        virtual += [virtual_seconds(three[name], P, n) for n in lengths]
        real += runs
        ends = seconds_text(virtual[-1]), seconds_text(np.median(real[-1]))
        print(f"{P} ranks, {name:18} 200 KB: {ends[0]:>6} virtual, {ends[1]:>6} real")
print(error_text(virtual, real))

# %% [markdown]
# A formula like those on the first page is quicker to calculate, but you need a new one for every method, and again for
# every network in which messages share links. Virtual ranks need only the function and a description of the network.
#
# ### How full are the links?
#
# A time in milliseconds does not tell you whether an all-reduce is *good*, because it depends on the size, on the
# number of ranks, and on the link. The libraries therefore report the **bus bandwidth**. This is the number of bytes
# that each link has to carry at least, $2\frac{P-1}{P}\,n$, divided by the time. You can compare it with the rate of
# the link itself, whatever $P$ is. If it is close to that rate, there is nothing left to gain as long as the ranks do
# the adding.
#
# Our links carry 6.25 MB per second. About 5% of that are protocol headers and acknowledgements. A packet on the
# network has up to 1,514 bytes, of which the headers of Ethernet, IP and TCP take 66.

# %%
from course_utils.lessons.allreduce import bus_text, kept_text

for name, runs in measured["8 ranks"].items():
    rate = bus_text(8, 200_000, np.median(runs[-1]))
    print(f"{name:20} {rate}")
print(kept_text(measured))

# %% [markdown]
# With 200 KB, none of the three could fill the links even on an idle machine, because of the latencies. The ring needs
# 98 ms for 200 KB, as calculated above, so its bus bandwidth is 350 KB ÷ 98 ms = 3.6 MB per second. Of these 98 ms, 42
# are latencies. For a vector of 2 MB it would need 14 × (3 + 40) = 602 ms, which makes 5.8 MB per second, and the link
# would be nearly full.
#
# ## A ring that does not wait
#
# In the ring of the first page, a rank waits for a whole block, adds, and only then sends the block on. While the first
# bytes of the next block are on their way, its own outgoing link has nothing to do. We can do better by cutting each
# block into **segments**, and sending each segment on as soon as it has been added. Here is the first phase of such a
# ring, the reduce-scatter:


# %%
def reduce_scatter(comm, vector, segments):
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    blocks = [
        np.array_split(block, segments) for block in np.array_split(vector, comm.size)
    ]
    sends = [comm.Isend(part, dest=right) for part in blocks[left]]
    for step in range(comm.size - 1):
        for part in blocks[(left - step - 1) % comm.size]:
            incoming = np.empty_like(part)
            comm.Recv(incoming, source=left)
            part += incoming
            if step < comm.size - 2:  # the last block to arrive stays here
                sends.append(comm.Isend(part, dest=right))
    for request in sends:
        request.Wait()


# %% [markdown]
# With `segments=1` this is the ordinary ring. Let us calculate what that costs for 4 ranks, vectors of 200 KB, and the
# network from above, with 3 ms per message and 6.25 MB per second. A block of 50 KB takes 8 ms to leave a rank, and it
# arrives 3 ms later. Each rank sends three blocks. After the first and after the second, its link has to wait 3 ms
# until the next block is there.
#
# With four segments per block, the first quarter of a block takes 2 ms to leave and 3 ms more to arrive, so it is there
# after 5 ms. At that time, the link of the rank that receives it is still busy with the rest of its own first block. It
# will be free after 8 ms, and then it can go on at once with what has arrived. Virtual ranks, which are explained in
# section 2, show when each link is busy:

# %% tags=["figure:05_segments"]
network = switch(4, 3e-3, 0.16e-6)
nowhere = course.start(4, where="nowhere", network=network)
uses = {}
for name, segments in {"whole blocks": 1, "four segments": 4}.items():
    run = nowhere.run(reduce_scatter, np.ones(50_000, np.float32), segments)
    uses[name] = pictures.link_uses(run.events, beta=0.16e-6)
pictures.busy_links(uses)

# %% [markdown]
# The segments hide the latency behind the bytes, so the link never runs dry. That gains $P-2$ latencies in each phase,
# which matters if a block takes about as long as a latency. If blocks take much longer, the latency is a small part of
# the time anyway. If they are much shorter, the segments get so short that messages cost more than they gain.
#
# The complete method for both phases is the **asynchronous ring**. It also posts its receives in advance, so that MPI
# knows where to put a message before it arrives. The next cell runs it and the ordinary ring on four emulated nodes,
# one after the other, seven times:

# %%
from course_utils.lessons.allreduce import async_ring_allreduce


def in_segments(comm, vector):
    async_ring_allreduce(comm, vector, segment_bytes=12_500)


both = {"asynchronous ring": in_segments, "ring": ring_allreduce}
times = measure(ranks, both, [200_000], runs=7, world_size=4)
pair = Compared(*(times[name][0] for name in both), ("the asynchronous ring", "the ring"))
print(comparison_text(pair))

# %% [markdown]
# ## Two trees
#
# A tree needs only about $2\log_2 P$ rounds, for any number of ranks. But half of its ranks are leaves. They send one
# vector up, wait, and receive the sum, so half of the links are never used to pass anything on.
#
# The idea of [Sanders, Speck and Träff (2009)](https://doi.org/10.1016/j.parco.2009.09.001) is to use a second tree, in
# which the leaves of the first tree pass the sums on. Each tree carries one half of the vector. This is the **double
# tree**. NCCL, the library of lesson 13, uses it between nodes and simply calls it *Tree*. Here are the two trees for 8
# ranks, drawn from the function that tells a rank who its parent and its children are. Ranks that pass sums on are
# blue:

# %% tags=["figure:05_two_trees"]
from course_utils.lessons.allreduce import two_trees

parents = [[two_trees(rank, 8)[tree][0] for rank in range(8)] for tree in (0, 1)]
pictures.trees_side_by_side(parents)

# %% [markdown]
# The second tree is the first one with every rank moved up by one. The code for one rank is short. Each half is also
# cut into segments, so that a rank can pass the first segment on while the next is on its way, and all levels of a tree
# work at the same time:


# %%
def double_tree(comm, vector, segments=8):
    trees = two_trees(comm.rank, comm.size)  # parent and children in each of the two
    parts = [np.array_split(half, segments) for half in np.array_split(vector, 2)]
    sends = []
    # A leaf need not wait for anyone, so its tree goes first.
    leaf_first = sorted((0, 1), key=lambda tree: len(trees[tree][1]))
    for tree in leaf_first:  # up: add what the children send, and send the sum on
        parent, children = trees[tree]
        for part in parts[tree]:
            for child in children:
                incoming = np.empty_like(part)
                comm.Recv(incoming, source=child, tag=tree)
                part += incoming
            if parent is not None:
                sends.append(comm.Isend(part, dest=parent, tag=tree))
    for request in sends:
        request.Wait()
    sends = []
    for tree in reversed(leaf_first):  # down: the sums come from the roots
        parent, children = trees[tree]
        for part in parts[tree]:
            if parent is not None:
                comm.Recv(part, source=parent, tag=tree)
            sends += [comm.Isend(part, dest=child, tag=tree) for child in children]
    for request in sends:
        request.Wait()


# %% [markdown]
# How much does a rank send? Take rank 0. It is the root of tree 1 and has one child there, so it sends one half down.
# In tree 2 it is a leaf and sends the other half up. That makes one vector in total.
#
# **Predict.** Rank 4 has a parent and two children in the first tree. How many vectors does it send in total?

# %%
course.predict("double_tree", vectors=...)

# %%
run = run_and_check(double_tree, P=8)
course.measured("double_tree", vectors=run.bytes_per_rank[4] / 200_000)

# %% [markdown]
# No rank sends more than two vectors, however many ranks there are, while rank 0 of an ordinary tree sends three here
# and ten on 1,024 ranks. How much time does that save? We ask virtual ranks for a vector of 500 KB, and then run both
# methods on the emulated nodes, three times in alternation:

# %% tags=["here:05_double_tree"]
nowhere = course.start(8, where="nowhere", network=switch(8, 3e-3, 0.16e-6))
trees = {"double tree": double_tree, "tree": tree_allreduce}
for name, method in trees.items():
    virtual = run_and_check(method, P=8, length=125_000, on=nowhere)
    print(f"{name:12} {1000 * virtual.seconds:5.0f} ms of virtual time")
times = measure(ranks, trees, [500_000], runs=3)
pair = Compared(*(times[name][0] for name in trees), ("the double tree", "the tree"))
print(comparison_text(pair))

# %% [markdown]
# The number of segments is a compromise. In our model every message costs $\alpha$, so $k$ segments add up to $k\alpha$
# on each link. But with few segments, the levels of the tree have to wait for each other. With the best number of
# segments, the time has three terms. One grows with $\alpha\log_2 P$, one is at most $2\beta n$, and one in between
# grows with $\sqrt{\alpha\,\beta n\,\log_2 P}$. Try other values for `segments`.
#
# ## Numbers of two bytes
#
# On the first page you saw that rounding changes a sum of `float32` numbers by about 1e-7 of its size, which is far too
# little to harm a training run. But many gradients travel in **bfloat16** today, because it takes only two bytes per
# number. Does the same hold for them?
#
# A `float32` keeps 24 binary digits, so one rounding changes a number by at most $2^{-24}$ of its size, about 6e-8.
# With four ranks there are three additions, and the errors stay near 1e-7. A bfloat16 keeps only 8 binary digits.
#
# **Predict.** How far is the worst of 10,000 sums of four numbers from the exact one in bfloat16, compared with the
# largest sum?

# %%
course.predict(
    "bfloat16",
    answer=...,  # "a", "b" or "c"
    choices={"a": "about 1e-5", "b": "about 5e-3", "c": "about 0.1"},
)

# %%
import torch  # NumPy has no bfloat16

vectors = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 10_000)))
exact = vectors.sum(dim=0)
errors = {}
for dtype in (torch.float32, torch.bfloat16):
    total = torch.zeros(10_000, dtype=dtype)
    for vector in vectors:  # one after the other, as in a ring
        total += vector.to(dtype)
    errors[dtype] = float((total - exact).abs().max() / exact.abs().max())
    print(f"{str(dtype):14} {errors[dtype]:.0e}")
worst = errors[torch.bfloat16]
course.measured("bfloat16", answer="a" if worst < 1e-3 else "b" if worst < 2e-2 else "c")

# %% [markdown]
# One rounding to 8 digits changes a number by up to $2^{-8}$, or 0.4%, so half a percent is the expected size. And
# that is with only four ranks. With a ring over hundreds of ranks, each sum is rounded hundreds of times. This is why
# many training runs compute in bfloat16 but add up their gradients in `float32`. PyTorch's FSDP2, which you will meet
# in [lesson 11](11_hybrid_and_sharded.ipynb), has an option for it, `reduce_dtype=torch.float32`.
#
# Does the method matter? Each of the six adds the four vectors in its own order. This is also called **bracketing**,
# because $(a+b)+c$ may be rounded differently from $a+(b+c)$:

# %%
from course_utils.lessons.allreduce import rounding_text

nowhere = course.start(4, where="nowhere", network=switch(4, 3e-3, 0.16e-6))


def largest_error(comm, method, dtype):
    vector = np.random.default_rng(comm.rank).normal(size=10_000)
    exact = comm.allreduce(vector.astype(np.longdouble))  # the type with the most digits
    vector = vector.astype(dtype)
    method(comm, vector)
    return float(np.abs(vector - exact).max() / np.abs(exact).max())


by_dtype = {"float32": {}, "float64": {}}
print(f"{'':20} float32 float64")
for name, method in ALGORITHMS.items():
    for dtype, by_name in by_dtype.items():
        by_name[name] = nowhere.run(largest_error, method, dtype).results[0]
    print(f"{name:20} {by_dtype['float32'][name]:.0e}   {by_dtype['float64'][name]:.0e}")
print("In float32 a sum is off by", rounding_text(by_dtype["float32"], loss=0.07))

# %% [markdown]
# ## A report, redone
#
# In 2019, a student at the University of the Witwatersrand wrote [a report](../docs/sources.md) about all-reduce. It
# compares MPI's own method with two rings, measures whole training runs on 80 processes, and ends with a puzzle that
# the author could not solve. Much of lesson 5 goes back to it. Here we repeat its experiments, with what we know now.
#
# ### A formula put right
#
# The report describes a "butterfly pattern using a recursive halving reduce-scatter followed by a recursive doubling
# all-gather", which is our halving-doubling, and gives its time as $\log_2 P\,(\alpha + \beta n)$. (It writes $L$ for
# $\alpha$ and $\gamma m G$ for $\beta n$, as in the LogP model.) For 8 ranks, that would be 3 messages of a whole
# vector. Our own formula has 6 messages, $6\alpha + 1.75\,\beta n$. The two differ for short vectors as well as for
# long ones. Counting decides it without a clock:

# %% tags=["here:05_formula"]
halving = ALGORITHMS["halving-doubling"]
run = run_and_check(halving, P=8)
vectors = run.bytes_per_rank[0] / 200_000
print(f"{run.rounds} rounds, and each rank sends {vectors} vectors")

# %% [markdown]
# So the report's formula belongs to recursive *doubling*, which has half the rounds and sends many more bytes. Can a
# clock see the difference, too?

# %%
from course_utils.lessons.allreduce import formula_text

times, beta = ping_pong(ranks)
alpha = times[0]
two_sizes = [4_000, 400_000]
timed = measure(ranks, {"halving-doubling": halving}, two_sizes, runs=5)
for n, seconds in zip(two_sizes, timed["halving-doubling"], strict=True):
    report, ours = 3 * (alpha + beta * n), 6 * alpha + 1.75 * beta * n
    print(f"{n / 1000:g} KB:", formula_text(seconds, ours, report))

# %% [markdown]
# ### Which all-reduce does MPI use?
#
# The report compares its rings with MPI's own all-reduce, and doubts before it decides. "It is not clear exactly which
# AllReduce algorithm is used by MPI", it says, and some implementations may "use adaptive algorithms". Only later does
# it call MPI's method "tree/butterfly-based". The doubt was justified. The report used Open MPI 4.0.1, which by default
# [takes a ring](https://github.com/open-mpi/ompi/blob/v4.0.x/ompi/mca/coll/tuned/coll_tuned_decision_fixed.c) for sums
# of 10,000 bytes or more. So for long vectors, the report probably compared its rings with a ring.
#
# We can find out what our own MPI does, because the links count bytes. On 8 ranks, recursive doubling sends 3 vectors
# from each node, and a method that works in blocks sends 1.75. The counts include the headers, which make up a larger
# part of short messages:


# %% tags=["here:05_own_mpi"]
def mpi_allreduce(comm, vector):
    from mpi4py import MPI

    comm.Allreduce(MPI.IN_PLACE, vector)


for length in (400, 100_000):  # numbers of 4 bytes
    ranks.run(all_reduce, mpi_allreduce, np.ones(length, np.float32))
    if linked:
        sent = ranks.traffic().sent[0] / (4 * length)
        print(f"{4 * length / 1000:g} KB: each node sends {sent:.2f} vectors")

# %% [markdown]
# If the two counts are near 3 and near 1.75, your MPI chooses by the size, like most libraries.
#
# The report then measures whole training runs. It makes a hidden layer of the network wider and wider, so that the
# vector gets longer, and finds that both rings are faster than MPI's method, most clearly on 80 processes. Here are
# four steps of such a training on 8 ranks. Each hidden neuron adds 75 numbers to the vector, 64 + 10 weights and a
# bias:

# %% tags=["figure:05_trainings", "here:05_widths"]
from course_utils.lessons.allreduce import training_seconds

images = course.data.digits_arrays()
widths = [32, 128, 512]
methods = {"MPI's own": mpi_allreduce, "ring": ring_allreduce}
methods["asynchronous ring"] = ALGORITHMS["asynchronous ring"]
trained = ranks.run(training_seconds, methods, images, widths, runs=3).results[0]
pair = Compared(
    trained["MPI's own"][-1], trained["ring"][-1], ("MPI's own all-reduce", "the ring")
)
axes = {"across": "neurons in the hidden layer", "up": "seconds for four steps"}
subtitle = f"Four training steps on 8 ranks, compared with {widths[-1]} neurons"
course.draw.over_numbers(widths, trained, pair.title, subtitle, **axes)

# %% [markdown]
# ### A sum that depends on the timing
#
# Now to the puzzle. Networks that were trained with the report's rings recognised 7 to 10% fewer images than those
# trained with MPI's all-reduce. The author suspects "a flaw in the code" first, and then rounding. We can exclude
# rounding, because the report's library, Genann, computes in `float64`, where it changes a sum by about 1e-16. And if
# MPI's own method was a ring, its sums were rounded just as theirs.
#
# The report contains a better clue. When there were more processes than cores, the "scheduling / queuing of processes
# had a negative effect on performance in terms of runtime and accuracy", and this was even "more pronounced" with MPI's
# own all-reduce. It is no surprise that the training got slower. But the sum of a correct all-reduce is the same no
# matter when the processes run. Accuracy may change because the data are divided among more processes, but not because
# processes wait for a core.
#
# If a result depends on the timing, you should look for a **race**. This is a mistake in which two things happen at the
# same time, and the result depends on which of them finishes first. Since the effect also appeared with MPI's method,
# it may have been anywhere in the report's program, which is lost. We can only show how easily it happens. The
# following ring looks right. It copies each block into a buffer, starts to send the buffer with `Isend`, and waits for
# all its sends at the end:


# %%
def hasty_ring(comm, vector):
    rank, P = comm.rank, comm.size
    left, right = (rank - 1) % P, (rank + 1) % P
    blocks = np.array_split(vector, P)
    outgoing, incoming = np.empty_like(blocks[0]), np.empty_like(blocks[0])
    sends = []
    for step in range(2 * (P - 1)):
        block = blocks[(rank - step - 1) % P]
        outgoing[: len(block)] = block
        sends.append(comm.Isend(outgoing[: len(block)], dest=right))
        arriving = blocks[(rank - step - 2) % P]
        comm.Recv(incoming[: len(arriving)], source=left)
        if step < P - 1:
            arriving += incoming[: len(arriving)]
        else:
            arriving[:] = incoming[: len(arriving)]
    for request in sends:
        request.Wait()


# %% [markdown]
# We test it ten times with a vector of 3,610 numbers, which is the size of the network on the first page, and ten times
# with 100,000. Then we do both again while rank 2 is always a little late, as if it had to wait for a core:

# %% tags=["here:05_race"]
import time


def wrong_sums(comm, method, length, seconds):
    wrong = 0
    for _ in range(10):
        vector = np.full(length, 2.0**comm.rank, np.float32)
        comm.Barrier()
        time.sleep(seconds if comm.rank == 2 else 0)
        method(comm, vector)
        wrong += not (vector == 2**comm.size - 1).all()
    return wrong


ranks = course.start(4)  # without links
for name, method in {"ring": ring_allreduce, "hasty ring": hasty_ring}.items():
    for length in (3_610, 100_000):
        on_time, late = (
            max(ranks.run(wrong_sums, method, length, seconds).results)
            for seconds in (0.0, 0.02)
        )
        print(
            f"{name:10} {length:7,} numbers: {on_time:2} of 10 sums are wrong,",
            f"and {late:2} if rank 2 is late",
        )

# %% [markdown]
# The lines that begin with *By luck* come from the course. It watches the memory that is being sent, and reports that
# the program changed it too early. `Isend` only promises that the message will have left when `Wait` returns. Short
# messages are usually copied at once, so a test with few numbers passes. Long messages stay in the program's memory
# until the receiver is ready, and by then the next block may already be in the same buffer.
#
# The cure is to wait for a send before you use its buffer again. The ring of the first page does not even need a buffer
# for sending, because it sends its blocks directly from the vector.
#
# ## Several ranks on one node
#
# So far, each rank had a node to itself. In a cluster, a node usually has several GPUs. Messages between them are fast,
# and only messages to other nodes need the slow links. Can we make use of that?
#
# Suppose two nodes have two ranks each. The ring 0, 1, 2, 3 crosses from the first node to the second between ranks 1
# and 2, and back between ranks 3 and 0. Everything that rank 1 sends has to pass the slow link, and that is 1.5 vectors
# in 6 rounds.
#
# It is better to add up inside the nodes first. A **hierarchical** all-reduce does this in three phases:
#
# 1. A reduce-scatter inside each node. With two ranks, each of them ends up with one half of the node's sum.
# 2. An all-reduce *between* the nodes. Rank 0 has the left half of the first node's sum and rank 2 has the left half of
#    the second node's, so these two do a ring. Ranks 1 and 3 do the same with the right halves.
# 3. An all-gather inside each node.
#
# Only phase 2 uses the slow links. A ring of two ranks has two rounds, and in each of them a rank sends one half of
# what it is responsible for, which is a quarter of the vector. Both ranks of the node together send half a vector per
# round, so the link carries one vector in 2 rounds, where the ring needed 1.5 vectors in 6. With $N$ nodes, it is
# $2\frac{N-1}{N}$ vectors. In the code, a `SubCommunicator` is a communicator for some of the ranks, which it numbers
# from 0:

# %%
from course_utils.lessons.allreduce import SubCommunicator, ring_all_gather
from course_utils.lessons.allreduce import ring_reduce_scatter


def two_levels(comm, vector, node_size=2):
    node, position = divmod(comm.rank, node_size)
    inside = SubCommunicator(comm, range(node * node_size, (node + 1) * node_size))
    between = SubCommunicator(comm, range(position, comm.size, node_size))
    ring_reduce_scatter(inside, vector)
    ring_allreduce(between, np.array_split(vector, node_size)[position])
    ring_all_gather(inside, vector)


# %% [markdown]
# We run it on *virtual ranks*, whose nodes have links of 100 Mbit/s and are not disturbed by other programs. In the
# picture, you see phase 1 in the first round, phase 2 in the next two, and phase 3 in the last one:

# %% tags=["figure:05_levels_blocks"]
from course_utils.lessons.allreduce import two_level

slow, fast = (3e-3, 0.08e-6), (0.1e-3, 0.001e-6)  # α and β between nodes, then inside
nowhere = course.start(4, where="nowhere", network=two_level(4, 2, slow, fast))
run_and_check(two_levels, 4, on=nowhere).blocks()

# %% [markdown]
# **Predict.** For a vector of 1 MB the bytes decide, and the latencies hardly matter. How many times longer will the
# ring take than the two levels? (Within a factor of 1.1 counts as right.)

# %%
course.predict("two_levels", within=1.1, factor=...)

# %%
both = {"two levels": two_levels, "ring": ring_allreduce}
virtual = {}
for name, method in both.items():
    virtual[name] = run_and_check(method, 4, length=250_000, on=nowhere).seconds
    print(f"{name:11} {1000 * virtual[name]:.0f} ms of virtual time")
course.answer("two_levels", factor=virtual["ring"] / virtual["two levels"])

# %% [markdown]
# The ring carries 1.5 times the bytes over the slow link, so it needs about one and a half times as much time. Here are
# real ranks on two emulated nodes with links of the same rate:

# %%
ranks = course.start(4, link="100 Mbit/s", latency="3 ms", ranks_per_node=2)
times = measure(ranks, both, [1_000_000], runs=5)
pair = Compared(
    *(times[name][0] for name in both), ("the method with two levels", "the ring")
)
print(comparison_text(pair))

# %% [markdown]
# ### The order of the ring
#
# "Every rank talks only to its neighbours" is only an advantage if neighbours in the ring are also neighbours in the
# network. What happens if the ring goes 0, 2, 1, 3? Ranks 0 and 1 share the first node, so now every message has to
# leave its node. Ranks 0 and 1 both send over the same link, 1.5 vectors each:


# %%
def ring_in_order(comm, vector, order):
    ring_allreduce(SubCommunicator(comm, order), vector)


for order in ([0, 1, 2, 3], [0, 2, 1, 3]):
    ranks.run(ring_in_order, np.ones(250_000, np.float32), order)  # 1 MB
    if ranks.facts["network"]:  # without links of their own, ranks are no nodes
        sent = ranks.traffic().sent[0] / 1e6
        print(f"ring {order}: {sent:.1f} vectors leave the first node")

# %% [markdown]
# Twice as many bytes have to pass the same slow link. (The counts are a little above 1.5 and 3, because protocol
# headers are counted, too.) Libraries therefore put the ranks of a node next to each other in their rings. They cannot
# always know the network *between* the nodes, though.
#
# ## 1,024 GPUs
#
# No laptop can run 1,024 ranks, but *virtual ranks* can. We add up vectors of 4 MB on up to 128 nodes with 8 GPUs each.
# So that you do not have to wait for a million additions per rank, a vector has only 8,000 numbers, and each of them
# stands for 125 (`scale=125`): 8,000 × 125 × 4 bytes = 4 MB.
#
# ### One link for 8 GPUs
#
# The first kind of node is one that you can rent. Amazon's
# [p3dn.24xlarge](https://aws.amazon.com/ec2/instance-types/p3/) has 8 V100 GPUs. Inside, NVLink, the connection between
# GPUs that you will meet in lesson 13, gives each GPU 150 GB/s in each direction in total. To the outside, all 8 GPUs
# share one link of 100 Gbit/s, which is 12.5 GB/s. For the latencies we take 5 µs between nodes and 2 µs inside, which
# is about what the [model inside NCCL](https://github.com/NVIDIA/nccl/blob/master/src/graph/tuning.cc), the library of
# lesson 13, assumes for its fast protocols.
#
# How well does the ring do? On 16 ranks, it sends 30 messages of 4 MB ÷ 16 = 250 KB. Two of its 16 links lead to
# another node. Such a link needs 20 µs for 250 KB at 12.5 GB/s, so 30 messages take about 600 µs, and the latencies
# hardly matter. The bus bandwidth, $2\frac{P-1}{P}\,n$ divided by the time, is then about 12.5 GB/s, and the link is
# full.
#
# On 1,024 ranks, the ring sends 2,046 messages of 4 KB. Most of them stay inside a node and cost 2 µs of latency, and
# one in eight leaves it and costs 5 µs.
#
# **Predict.** Does the ring keep at least half of its bus bandwidth from 16 ranks to 1,024?

# %%
kept = {"a": "yes, at least half", "b": "no, it loses more than half"}
course.predict("thousand", answer=..., choices=kept)

# %%
from functools import partial

from course_utils.lessons.allreduce import bus_bandwidth, double_tree_allreduce
from course_utils.lessons.allreduce import hierarchical_allreduce, ring_seconds, two_level

last = 64  # up to here the ring runs; beyond, its two million messages are calculated
methods = {name: ALGORITHMS[name] for name in ("tree", "halving-doubling", "ring")}
methods["double tree"] = partial(double_tree_allreduce, segment_bytes=2_000)
methods["two levels"] = partial(hierarchical_allreduce, node_size=8)
vector = np.ones(8_000, np.float32)


def bus_rate(name, P, network):  # in GB/s
    if name == "ring" and last < P:
        seconds = ring_seconds(network, 4e6)
    else:
        run = nowhere.run(all_reduce, methods[name], vector, ranks=P, network=network)
        seconds = run.seconds
    return bus_bandwidth("all_reduce", P, 4e6, seconds) / 1e9


# %% tags=["figure:05_thousand"]
def one_link(P):  # α, and β in seconds per byte, between nodes and inside
    return two_level(P, 8, (5e-6, 1 / 12.5e9), (2e-6, 1 / 150e9))


nowhere = course.start(1024, where="nowhere", network=one_link(1024), scale=125)
many = [16, 64, 256, 1024]
rates = {name: [bus_rate(name, P, one_link(P)) for P in many] for name in methods}
keeps = rates["ring"][-1] > rates["ring"][0] / 2
course.answer("thousand", answer="a" if keeps else "b")

from course_utils.lessons.allreduce import ranking_text

style = {
    "y": "bus bandwidth, GB/s",
    "unit": "{:g}".format,
    "by_formula": {"ring": sum(last < P for P in many)},
    "subtitle": f"Virtual ranks, 4 MB; the ring is calculated on more than {last} ranks (dotted)",
}
title = f"If 8 GPUs share one link, {ranking_text(rates, 1024)}"
pictures.over_ranks(many, rates, title, **style)

# %% [markdown]
# The ring is excellent as long as blocks are long, but 2,046 latencies are too many. Halving-doubling has few rounds
# and few bytes, and yet it is among the slowest here, because all eight ranks of a node want to use its one link at the
# same time. In the double tree, most messages stay inside a node. The method with two levels sends the fewest bytes
# over the link. On 16 ranks its bus bandwidth is even higher than 12.5 GB/s, because a part of the adding happens
# inside the nodes and never uses the link.
#
# ### A network card for each GPU
#
# The second kind of node is built for training. NVIDIA's [DGX
# H100](https://docs.nvidia.com/dgx/dgxh100-user-guide/introduction-to-dgxh100.html) has 8 H100 GPUs, and each of them
# has a network card of its own with 400 Gbit/s, or 50 GB/s. Inside, NVLink (lesson 13) gives each GPU 450 GB/s in each
# direction.
#
# Now nobody has to queue. Let us estimate the latencies on 1,024 ranks. The ring still pays for 2,046 messages of at
# least 2 µs, which is more than 4 ms. The two levels have 14 rounds inside and 2 × 127 = 254 rounds between 128 nodes,
# so 14 × 2 + 254 × 5 µs = 1.3 ms. Halving-doubling has 20 rounds, 6 of them inside a node. The bytes add at most 160 µs
# to any of the three, because no rank sends more than 8 MB.
#
# **Predict.** Which of these three is the fastest on 1,024 ranks?

# %%
options = {"a": "two levels", "b": "halving-doubling", "c": "ring"}
course.predict("cards", answer=..., choices=options)


# %% tags=["figure:05_cards"]
from course_utils.lessons.allreduce import adding_switch_time


def a_card_each(P):
    return two_level(P, 8, (5e-6, 1 / 50e9), (2e-6, 1 / 450e9), cards=8)


rates = {name: [bus_rate(name, P, a_card_each(P)) for P in many] for name in methods}
best = max(options, key=lambda letter: rates[options[letter]][-1])
course.answer("cards", answer=best)
title = f"If each GPU has a network card, {ranking_text(rates, 1024)}"
seconds = adding_switch_time(4e6, Network(alpha=5e-6, beta=1 / 50e9))  # calculated
rates["a switch adds"] = [
    bus_bandwidth("all_reduce", P, 4e6, seconds) / 1e9 for P in many
]
pictures.over_ranks(many, rates, title, **style)

# %% [markdown]
# The ranking has changed completely. An all-reduce is not fast or slow by itself. It is fast *on a network*. If you
# have to choose one, measure the numbers of your network and let virtual ranks run the candidates.
#
# ### A switch that adds
#
# One line in the last picture is not an all-reduce among ranks. It is calculated for a **switch that adds**. Each rank
# sends its vector to the switch once, in segments. The switch adds the segments and sends the sums back to everyone, so
# the time is $\alpha + \beta n$, whatever $P$ is. The line lies above 50 GB/s, which is more than a card can carry!
# That is possible because the bus bandwidth counts $2\frac{P-1}{P}\,n$ bytes per link, and a switch that adds needs
# only $n$. InfiniBand switches can do this, and so can the switches between the H100 GPUs of one node, as you will see
# in [lesson 13](13_gpu_nodes.ipynb). If you ever measure a bus bandwidth above the rate of a link, this may be the
# reason.

# %%
ranks.stop()

# %% [markdown]
# ## What you know now
#
# You can let any number of ranks take part by folding the surplus in, hide latencies with segments, and use both
# directions of every link with two trees. You know that a sum in bfloat16 loses half a percent with only four ranks,
# and that a sum which depends on the timing points to a race. And you can predict how any of these methods would do on
# a network that you can only describe.
#
# Go back to [lesson 5](05_allreduce.ipynb), on to the [exercises](../exercises/05_allreduce.ipynb), or to [lesson
# 6](06_data_parallel.ipynb), where such a sum trains a network.
