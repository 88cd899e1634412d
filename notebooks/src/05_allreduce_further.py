# What lesson 5 leaves out of its page. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: how do P machines add up their vectors?
#
# What is good to know beyond [the lesson's page](05_allreduce.ipynb): a ring in segments, two trees at once, a report's
# formula and its trainings, ranks that are not there, nodes with several ranks, and 1,024 ranks.
#
# *40 minutes · optional, after [lesson 5](05_allreduce.ipynb) · 8 ranks*

# %% [markdown]
# These are the nodes, the test and the ring of the lesson's page:

# %%
import numpy as np

import course_utils as course
from course_utils.lessons.allreduce import ALGORITHMS, halving_doubling_allreduce, measure
from course_utils.lessons.allreduce import pictures, tree_allreduce
from course_utils.measuring import Compared

ranks = course.start(8, link="50 Mbit/s", latency="3 ms")
linked = ranks.facts["network"] is not None  # False where the system forbids links
LENGTH = 50_000  # numbers of 4 bytes


def add_up(comm, allreduce, length=LENGTH):
    vector = np.full(length, comm.rank, np.float32)
    allreduce(comm, vector)  # writes the sum into the vector
    assert (vector == sum(range(comm.size))).all()


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


round_the_ring = ranks.run(add_up, ring, ranks=4)

# %% [markdown]
# ## In segments
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
# ## Two trees
#
# In a tree half of the ranks are *leaves*: they send one vector and wait. So let a second tree stand beside the first,
# in which the leaves of the first pass the sums on. Each tree carries half of the vector, in segments, so that all its
# levels are busy at once. That is the **double tree**. **NCCL**, the library of lesson 13, uses it between nodes, and
# calls it *Tree*. We run it on 8 ranks, by turns (lesson 3) with the plain tree:

# %% tags=["here:05_double_tree"]
from course_utils.lessons.allreduce import double_tree_allreduce


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
# rank 0 sends three vectors here.) In short segments that takes $2\log_2 P\,\alpha + 2\,\beta n$.
#
# ## What the network can do
#
# The pictures of *The clock*, on the lesson's page, come from these numbers. A ping-pong gives α and β; then tree,
# recursive doubling and ring are timed on 2, 4 and 8 ranks:

# %%
from course_utils.lessons.allreduce import Network, message_seconds, network_text

sizes = [1, 1_000, 4_000, 10_000, 20_000, 40_000, 100_000, 400_000]


def two_numbers(times):
    return times[0], (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])


times = ranks.run(message_seconds, sizes, runs=3).results[0]  # a ping-pong
alpha, beta = two_numbers(times)
network = Network(alpha, beta, shared=linked)  # messages at once share a link
print(network_text(network))

# %%
from course_utils.lessons.allreduce import medians

three = {name: ALGORITHMS[name] for name in ("tree", "recursive doubling", "ring")}
lengths = [4_000, 16_000, 64_000, 200_000]
measured = {}
for P in (2, 4, 8):
    measured[f"{P} ranks"] = measure(ranks, three, lengths, runs=3, world_size=P)

# %% [markdown]
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

# %% tags=["here:05_formula"]
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

# %% tags=["here:05_widths"]
from course_utils.lessons.allreduce import training_seconds


def mpi_allreduce(comm, vector):
    from mpi4py import MPI

    comm.Allreduce(MPI.IN_PLACE, vector)  # the sum takes the vector's place


images = course.data.digits_arrays()
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
# - Segments let a ring, or two trees, send on what has come while the next is on its way.
# - The time of an all-reduce is a formula of its *network*: with several ranks on a node, or one card for many, the
#   order changes.
# - Virtual ranks run any function of `comm` and NumPy, as many of them as you like, on a network that you describe.

# %%
ranks.stop()
