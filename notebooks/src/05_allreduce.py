# The lesson on all-reduce. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How do P machines add up their vectors?
#
# When many machines train one network, each of them computes a gradient from its own part of the data. Before anyone
# can take a step, every machine needs the sum of all these gradients. Adding up a few vectors does not sound like a
# problem. But take the model from the beginning of lesson 0. Its gradient has 32 billion numbers of 2 bytes each, which
# is 64 GB. If one of 512 GPUs collected the gradients of the others through a fast network link of 50 GB/s, it would
# need 511 × 64 GB ÷ 50 GB/s = 654 seconds to receive them, and as long again to send out the sums. That is 22 minutes
# for every step, while computing the gradients takes a few seconds.
#
# With the best method in this lesson, the same sum takes 2.6 seconds, because no machine sends or receives more than
# twice the size of the vector. You will see how that works, predict what different methods cost, and find out why a sum
# is wrong.
#
# *50 minutes · builds on [lesson 4](04_messages.ipynb) · 8 ranks*

# %%
import numpy as np

import course_utils as course
from course_utils.measuring import is_busy

ranks = course.start(8, link="50 Mbit/s", latency="3 ms")

# %% [markdown]
# In lesson 4 all messages went through the memory of your computer. From now on, each rank plays the part of a separate
# computer, called a **node**, that is connected to the others by a network link of its own. The link carries 50 million
# bits per second in each direction, which is 6.25 MB per second, and every message needs 3 ms more to arrive. Links and
# latency are emulated, so that you can watch on one computer what otherwise takes eight. If your system does not allow
# that, the line under the cell says so. Then the times below are those of your memory, and all the counts stay the
# same.
#
# ## All vectors through one rank
#
# The operation that we need is called an **all-reduce**: everyone has a vector, and in the end everyone has the sum.
# The obvious method has two steps. All ranks send their vectors to rank 0, which adds them up. Then rank 0 sends the
# sum to all the others.


# %%
def through_one(comm, vector):
    if comm.rank == 0:
        incoming = np.empty_like(vector)
        for other in range(1, comm.size):
            comm.Recv(incoming, source=other)
            vector += incoming
        for other in range(1, comm.size):
            comm.Send(vector, dest=other)
    else:
        comm.Send(vector, dest=0)
        comm.Recv(vector, source=0)


# %% [markdown]
# To test such a function, we give rank $r$ a vector that is full of the number $2^r$: 1, 2, 4, 8 and so on. With four
# ranks the sum must be 15 everywhere. Any other number would tell us exactly whose vector is missing or was added
# twice.


# %%
def all_reduce(comm, method, vector):
    method(comm, vector)  # writes the sum into the vector
    return vector


def run_and_check(method, P, length=50_000):
    vectors = [np.full(length, 2.0**rank, np.float32) for rank in range(P)]
    run = ranks.run(all_reduce, method, course.per_rank(vectors), ranks=P)
    assert all((result == 2**P - 1).all() for result in run.results)
    return run


four = run_and_check(through_one, P=4)
print(f"4 ranks: {1000 * four.seconds:.0f} ms")

# %% [markdown]
# Could we have known this time in advance? Each vector has 50,000 numbers of 4 bytes, which is 200 KB. Rank 0 has to
# receive three of them, so 600 KB pass through its link. At 6.25 MB per second this takes 96 ms. Sending the sum to
# three ranks takes another 96 ms. With 3 ms of latency on the way in and on the way out, we expect about 198 ms.
#
# **Predict.** How many milliseconds will it take with 8 ranks? (Within a factor of 1.25 counts as right.)

# %%
course.predict("through_one", within=1.25, ms=...)

# %%
eight = [run_and_check(through_one, P=8).seconds for _ in range(3)]
course.measured("through_one", busy=is_busy([eight]), ms=1000 * np.median(eight))

# %% [markdown]
# Rank 0 now receives seven vectors and sends seven, so the time more than doubles. Here is what each of four ranks
# holds after each round. Every row is a rank. The vector is drawn as four blocks, and the colours in a block show whose
# numbers have been added up in it so far:

# %% tags=["figure:05_obvious_blocks"]
four.blocks()

# %% [markdown]
# Rank 0 first collects everything while the other ranks learn nothing new. After that the complete sum spreads out, one
# rank at a time. The timeline shows the same run over time:

# %% tags=["figure:05_gather"]
four.timeline()

# %% [markdown]
# The three vectors for rank 0 are under way at the same time, but they have to share its link, so each takes three
# times as long as it would alone. Rank 0 is busy from beginning to end, and the others mostly wait. With $P$ ranks, its
# link has to carry $P-1$ vectors in each direction. Every machine that you add makes the sum slower.
#
# There are two ways to do better. The other links are idle most of the time, so we could use all of them at once. And
# there is no need for one rank to do all the adding.
#
# ## First idea: meet in pairs
#
# Let rank 1 send its vector to rank 0, while rank 3 sends its own to rank 2. Both receivers add. In the second round,
# rank 2 sends its sum to rank 0, which now holds the sum of all four. The broadcast tree of lesson 4 takes it back to
# everyone in two more rounds. This all-reduce is called a **tree**. Rank 0 receives only two vectors instead of three,
# and with 1,024 ranks it would be 10 instead of 1,023.
#
# We can even do without the way back. Let ranks 0 and 1 send each other a copy of their vectors, while ranks 2 and 3 do
# the same. Each rank adds what it receives to what it has. After this first round, ranks 0 and 1 both hold the sum of
# their two vectors, and so do ranks 2 and 3. In the second round, rank 0 exchanges its sum with rank 2, and rank 1 with
# rank 3. Now all four ranks hold the sum of everything.
#
# This method is called **recursive doubling**, because the distance between partners doubles from round to round, and
# with it the number of vectors in each sum. If the number of ranks is a power of two, it takes only a few lines:


# %%
def recursive_doubling(comm, vector):
    incoming = np.empty_like(vector)
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance  # differs from the rank in one binary digit
        comm.Sendrecv(vector, dest=partner, recvbuf=incoming, source=partner)
        vector += incoming
        distance *= 2


# %% [markdown]
# The operator `^` flips one binary digit. With a distance of 1, it makes partners of 0 and 1, of 2 and 3, and so on;
# with a distance of 2, of 0 and 2, and of 1 and 3. `Sendrecv` sends and receives at the same time, so two partners
# cannot end up in the deadlock of lesson 4.
#
# With four ranks, each rank sends its whole vector twice, once in each of two rounds.
#
# **Predict.** How many rounds does it take with 8 ranks, and how many vectors does each rank send?

# %%
course.predict("doubling", rounds=..., vectors=...)

# %% tags=["figure:05_pairs_blocks"]
from course_utils.lessons.allreduce import tree_allreduce

eight = run_and_check(recursive_doubling, P=8)
sent = eight.bytes_per_rank[0] / 200_000  # a vector is 200 KB
course.measured("doubling", rounds=eight.rounds, vectors=sent)

tree = run_and_check(tree_allreduce, P=4)
doubling = run_and_check(recursive_doubling, P=4)
course.draw.blocks(tree, doubling, titles=["tree", "recursive doubling"])

# %% [markdown]
# With $P$ ranks, recursive doubling takes $\log_2 P$ rounds, so 8 ranks need 3 rounds and 1,024 ranks need only 10. No
# all-reduce can do with fewer, because in one round the number of vectors in a rank's sum can at most double.
#
# But each round moves whole vectors. Look at the last frame: all four ranks have just done exactly the same addition,
# and all the numbers for it had to travel first. For long vectors, this repeated work is what costs the time.
#
# ## Second idea: share the adding
#
# The next method never does the same addition twice. The ranks agree that each of them is responsible for one part of
# the vector, and that the others do not need to add up that part at all.
#
# In the first round, ranks 0 and 2 meet. Rank 0 takes over the left half of the vector, and rank 2 takes over the right
# half. So rank 0 sends only its right half, rank 2 sends only its left half, and each adds what arrives to the half
# that it is responsible for. Ranks 1 and 3 do the same. In the second round, ranks 0 and 1 meet and split the left half
# between them in the same way, while ranks 2 and 3 split the right half. Now each rank is responsible for one quarter
# of the vector, and its quarter is complete. This first phase is called **reduce-scatter**.
#
# In the second phase, everyone needs the other three quarters. The ranks meet again in the opposite order and hand each
# other the blocks that are finished, first one quarter, then two. Nothing is added any more. This is the **all-gather**
# that you know from lesson 4. The whole method is called **halving-doubling**.

# %% tags=["figure:05_halving_blocks"]
from course_utils.lessons.allreduce import halving_doubling_allreduce

halving = run_and_check(halving_doubling_allreduce, P=4)
halving.blocks()

# %% [markdown]
# In round 1 each rank sends one half of its vector, and in round 2 it sends a quarter. On the way back it sends a
# quarter and then a half. That adds up to 1.5 vectors.
#
# **Predict.** With 8 ranks there are three rounds in each phase. How many vectors does each rank send in total?

# %%
course.predict("halving", vectors=...)

# %%
halving = run_and_check(halving_doubling_allreduce, P=8)
course.measured("halving", vectors=halving.bytes_per_rank[0] / 200_000)

# %% [markdown]
# Each phase sends $\frac12 + \frac14 + \frac18 = \frac78$ of the vector. In general it is $\frac{P-1}{P}$ for each
# phase, and $2\,\frac{P-1}{P}$ in total. However many ranks there are, nobody sends more than two vectors. This is
# where the 2.6 seconds at the top of the page come from, which is twice 64 GB at 50 GB/s.
#
# It is also the least that is possible as long as only the ranks can add. To finish one block, the vectors of all the
# other ranks have to reach it somehow, and afterwards the finished block has to reach all of them.
#
# ## The ring
#
# Halving-doubling sends messages over all distances. In a real network, that can mean that several messages have to
# share one cable. There is another method which sends just as few bytes and in which every rank talks only to its
# neighbours. The ranks form a ring: each one always sends to the rank on its right, and always receives from the rank
# on its left.
#
# Cut the vector into as many blocks as there are ranks, and follow one of them, block 3 on four ranks. Rank 0 sends its
# block 3 to rank 1. Rank 1 adds its own block 3 and sends the result on to rank 2. Rank 2 does the same, and when the
# block arrives at rank 3, it contains the numbers of all four ranks after the last addition. Then it travels around the
# ring once more, so that everyone gets a copy. The other three blocks travel at the same time, and each one starts at a
# different rank. That way every rank sends one block in every round:

# %% tags=["figure:05_ring_blocks"]
from course_utils.lessons.allreduce import ring_allreduce

ring = run_and_check(ring_allreduce, P=4)
ring.blocks()

# %% [markdown]
# Follow the diagonal of growing blocks through the first frames. After three rounds each rank has one complete block,
# and three more rounds hand the complete blocks around. So four ranks need 6 rounds, and in each of them a rank sends a
# quarter of the vector.
#
# **Predict.** With 8 ranks, how many rounds does the ring need, and how many vectors does each rank send?

# %%
course.predict("ring", rounds=..., vectors=...)

# %% tags=["figure:05_ring"]
eight = run_and_check(ring_allreduce, P=8)
sent = eight.bytes_per_rank[0] / 200_000
course.measured("ring", rounds=eight.rounds, vectors=sent)
ring.timeline()  # of the run on four ranks

# %% [markdown]
# Each of the two phases takes $P-1$ rounds, and each round carries $\frac1P$ of the vector. The bytes are the same as
# in halving-doubling, $2\,\frac{P-1}{P}$ vectors, but there are many more rounds. In return, every link is busy in
# every round, as the timeline of the four ranks shows, and the method works for any number of ranks.
#
# You are now ready for the first four [exercises](../exercises/05_allreduce.ipynb), in which you write the ring and its
# relatives yourself.
#
# ## Which method is the fastest?
#
# In lesson 4, a message of $n$ bytes took $\alpha + \beta n$: a fixed latency, and a little more for each byte. We can
# add this up over the rounds of an all-reduce. Here is the result for a vector of $n$ bytes on $P$ ranks, where $P$ is
# a power of two:
#
# | method | rounds | seconds |
# |---|---|---|
# | through one rank | $2(P-1)$ | $2(P-1)\,\alpha + 2(P-1)\,\beta n$ |
# | tree | $2\log_2 P$ | $2\log_2 P\,\alpha + 2\log_2 P\,\beta n$ |
# | recursive doubling | $\log_2 P$ | $\log_2 P\,\alpha + \log_2 P\,\beta n$ |
# | halving-doubling | $2\log_2 P$ | $2\log_2 P\,\alpha + 2\frac{P-1}{P}\,\beta n$ |
# | ring | $2(P-1)$ | $2(P-1)\,\alpha + 2\frac{P-1}{P}\,\beta n$ |
#
# We count the rounds and bytes of all five, to see whether the table is right:

# %% tags=["nbval-check-output"]
methods = {
    "through one rank": through_one,
    "tree": tree_allreduce,
    "recursive doubling": recursive_doubling,
    "halving-doubling": halving_doubling_allreduce,
    "ring": ring_allreduce,
}
for name, method in methods.items():
    run = run_and_check(method, P=8, length=8_000)
    vectors = max(run.bytes_per_rank) / (4 * 8_000)
    print(f"{name:20}{run.rounds:3} rounds, the busiest rank sends {vectors:.2f} vectors")

# %% [markdown]
# The table lets us compare methods before we run anything. Suppose that $\alpha$ is 3 ms and that our link needs 160 ms
# for each MB. For a vector of 16 KB, $\beta n$ is about 2.6 ms. With 8 ranks, doubling then takes 3 × 3 + 3 × 2.6 = 17
# ms, and the ring takes 14 × 3 + 1.75 × 2.6 = 47 ms.
#
# **Predict.** Which of these four methods will be the fastest for 4 KB, where $\beta n$ is 0.6 ms, and which for 400
# KB, where it is 64 ms?

# %%
names = ["tree", "recursive doubling", "halving-doubling", "ring"]
options = dict(zip("abcd", names, strict=True))
course.predict("fastest", choices=options, short=..., long=...)  # two letters

# %% [markdown]
# The next cell measures $\alpha$ and $\beta$ with a ping-pong, and then runs the four methods one after the other,
# several times. In the picture, points are measured, and lines are calculated from the two numbers:

# %% tags=["figure:05_crossings"]
from course_utils.lessons.allreduce import Network, measure, medians, message_seconds
from course_utils.lessons.allreduce import network_text, pictures
from course_utils.lessons.allreduce import predicted_seconds, predictors

sizes = [1, 1_000, 4_000, 10_000, 20_000, 40_000, 100_000, 400_000]
times = ranks.run(message_seconds, sizes, runs=3).results[0]  # a ping-pong
alpha = times[0]
beta = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
linked = ranks.facts["network"] is not None  # False if your system allows no links
network = Network(alpha, beta, shared=linked)
print(network_text(network))

four = {name: methods[name] for name in names}
lengths = [4_000, 16_000, 64_000, 400_000]
measured, predicted = {}, {}
for P in (4, 8):
    measured[f"{P} ranks"] = measure(ranks, four, lengths, runs=3, world_size=P)
    predicted[f"{P} ranks"] = predictors(P, names, predicted_seconds, network)
times_8 = np.array(list(medians(measured["8 ranks"]).values()))
short, long = times_8[:, 0].argmin(), times_8[:, -1].argmin()
busy = is_busy(runs for by_size in measured["8 ranks"].values() for runs in by_size)
course.measured("fastest", busy=busy, short="abcd"[short], long="abcd"[long])
pictures.crossings(lengths, measured, predicted)

# %% [markdown]
# For short vectors the rounds decide, and for long vectors the bytes. There is no best method for everything, and that
# is why the libraries that you will meet later carry several of them and choose by the size of the vector and the
# number of ranks.
#
# Our network treats all pairs of nodes alike, so halving-doubling looks better here than the ring. In real clusters
# many nodes share cables and switches. How that changes the ranking, up to 1,024 ranks, is the subject of [more about
# all-reduce](05_allreduce_further.ipynb).
#
# ## When the sum is wrong
#
# Suppose you have written your own ring. It passes the test with $2^r$, and it is faster than the library's. Then you
# train with it, and the networks recognise fewer images than before. There is no error message. This really happened to
# a student in 2019, and the cause was never found. Ours can be found.
#
# We train the digits network of lesson 1 on four ranks, which average their weights after every step. We do it with
# three all-reduces, one of which is called `suspicious_ring`:

# %% tags=["here:05_digits"]
from course_utils.lessons.allreduce import suspicious_ring, train_digits

run_and_check(suspicious_ring, P=4, length=4_096)  # passes the test

images = course.data.digits_arrays()
suspects = {"doubling": recursive_doubling, "ring": ring_allreduce}
suspects["suspicious ring"] = suspicious_ring
for name, method in suspects.items():
    trained = ranks.run(train_digits, images, method, ranks=4)
    shares = [f"{accuracy:.1%}" for accuracy, weights in trained.results]
    print(f"{name:16} recognises", *shares)

# %% [markdown]
# The first suspect is rounding. A computer stores a number of type `float32` with 24 binary digits, about 7 decimal
# ones, and rounds after every addition. A ring adds the vectors in a different order from a tree, which is called a
# different **bracketing**, so it rounds differently. Could that cost several percent of the images? One rounding
# changes a number by at most $2^{-24}$ of its size, which is 0.00000006, or 6e-8.
#
# **Predict.** If four ranks add 10,000 random numbers each in `float32`, how far is the worst of the sums from the
# exact one, compared with the largest sum?

# %%
course.predict(
    "rounding",
    answer=...,  # "a", "b", "c" or "d"
    choices={
        "a": "exactly 0",
        "b": "about 1e-7",
        "c": "about 1e-3",
        "d": "about 0.07",
    },
)


# %% tags=["here:05_bracketing"]
def largest_error(comm, method):
    vector = np.random.default_rng(comm.rank).normal(size=10_000)
    exact = comm.allreduce(vector.astype(np.longdouble))  # the type with the most digits
    vector = vector.astype(np.float32)
    method(comm, vector)
    return float(np.abs(vector - exact).max() / np.abs(exact).max())


errors = {}
for name in ("doubling", "ring"):
    errors[name] = ranks.run(largest_error, suspects[name], ranks=4).results[0]
    print(f"{name:16} {errors[name]:.0e}")
worst = max(errors.values())
course.measured("rounding", answer="b" if 1e-8 < worst < 1e-6 else "c")

# %% [markdown]
# Rounding is not to blame. The error is about a million times smaller than the loss.
#
# So you are the detective now. All the weights of the network form one vector of 3,610 numbers. You know how many
# rounds and bytes a ring should need, and you have a ring that is right. The next cell compares the two. In the picture
# each rank's vector is a strip, cut into its four blocks, and wrong numbers are orange. Say what is wrong before you
# unfold the answer.

# %% tags=["figure:05_suspicious"]
from course_utils.lessons.allreduce import WEIGHTS, block_bounds


def add_weights(comm, method):
    vector = np.random.default_rng(comm.rank).normal(size=WEIGHTS).astype(np.float32)
    method(comm, vector)
    return vector


right = ranks.run(add_weights, ring_allreduce, ranks=4)
caught = ranks.run(add_weights, suspicious_ring, ranks=4)
print(f"rounds: {right.rounds} in the ring, {caught.rounds} in the suspicious one")
print(f"bytes:  {right.bytes_per_rank[0]} and {caught.bytes_per_rank[0]}")
bounds = block_bounds(WEIGHTS, 4)
pictures.right_and_wrong(caught.results, right.results[0], bounds, "suspicious_ring")

# %% [markdown]
# <details><summary>What is wrong?</summary>
#
# All the rounds are there, but bytes are missing. On every rank it is the *end of each block* that was never added.
# This ring sends a block in segments of 512 numbers. A block has 902 or 903 numbers, and `len(block) // 512` rounds
# down to one segment. The remaining 390 numbers are never sent, so each rank keeps its own weights there and divides
# them by 4 in every step. In the test, a block had 1,024 numbers, which is exactly two segments, so nothing was
# missing. Run `suspicious_ring??` in a cell to see the line.
#
# This is why you should test with lengths that do *not* divide evenly.
# </details>

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can add up vectors on many ranks in several ways: in pairs, which takes the fewest rounds, or in blocks, which
# takes the fewest bytes. You can predict the cost as rounds × $\alpha$ plus bytes × $\beta$, and you know that with the
# best methods each rank sends $2\,\frac{P-1}{P}$ vectors. And when a sum is wrong, you count bytes, look at what is
# where, and test with awkward lengths.
#
# In the [exercises](../exercises/05_allreduce.ipynb) you write these methods yourself. In [lesson
# 6](06_data_parallel.ipynb) such a sum trains a network on four ranks at once.
