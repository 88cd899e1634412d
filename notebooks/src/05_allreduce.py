# The lesson on all-reduce. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How do P machines add up their vectors?
#
# When many machines train one network, the simplest way is to let each of them compute a gradient from its own part of
# the data. Before anyone can take a step, every machine then needs the sum of all these gradients. Adding up a few
# vectors does not sound hard. But take the model from the beginning of lesson 0. Its gradient has 32 billion numbers of
# 2 bytes each, which is 64 GB. If one of 512 GPUs collected the gradients of the others through a fast network link of
# 50 GB/s, it would need 511 × 64 GB ÷ 50 GB/s = 654 seconds to receive them, and as long again to send out the sum.
# That is 22 minutes for every step, while computing the gradients takes a few seconds.
#
# With the best method in this lesson, the same sum takes 2.6 seconds, because no machine sends or receives more than
# twice the size of the vector. You will see how that works, predict what different methods cost, and track down the bug
# behind a wrong sum.
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
# bits per second in each direction, which is 6.25 MB per second, and every message takes an extra 3 ms to arrive. Links
# and latency are emulated, so that you can watch on one computer what would otherwise take eight. If your system
# doesn't allow that, the line under the cell will tell you so. The times below then show how fast your computer's
# memory is, but all the counts are the same.
#
# ## All vectors through one rank
#
# What we need is an all-reduce: every rank starts with a vector and ends up with the sum of all the vectors. The
# obvious way to do this is to let rank 0 collect all the vectors, add them up, and send the sum back to everyone.


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
# We begin with four of our eight ranks. To test the function, we fill the vector of rank $r$ with the number $2^r$,
# which gives 1, 2, 4 and 8. So the sum must be 15 everywhere, and if we find a 13 instead, we know that the vector of
# rank 1 is missing.


# %%
def all_reduce(comm, method, vector):
    method(comm, vector)  # writes the sum into the vector
    return vector


def run_and_check(method, P, length=50_000):
    vectors = [np.full(length, 2.0**rank, np.float32) for rank in range(P)]
    run = ranks.run(all_reduce, method, course.per_rank(vectors), ranks=P)
    assert all((result == 2**P - 1).all() for result in run.results)
    return run


one = run_and_check(through_one, P=4)
print(f"4 ranks: {1000 * one.seconds:.0f} ms")

# %% [markdown]
# Could we have predicted this? Each vector has 50,000 numbers of 4 bytes, which is 200 KB. Rank 0 has to receive three
# of them, so 600 KB pass through its link. At 6.25 MB per second this takes 96 ms, or 32 ms for each vector, and
# sending the sum to three ranks takes another 96 ms. Then there is the latency. The three vectors are on their way at
# the same time, so it adds only 3 ms on the way in, and another 3 ms on the way out. That comes to 198 ms. The real
# figure is a little higher, because every message also carries addresses and other overhead, and has to be handled by
# your computer.
#
# **Predict.** How many milliseconds will it take with 8 ranks? (Anything within a factor of 1.5 counts as right.)

# %%
course.predict("through_one", within=1.5, ms=...)

# %%
eight = [run_and_check(through_one, P=8).seconds for _ in range(3)]
course.measured("through_one", busy=is_busy([eight]), ms=1000 * np.median(eight))

# %% [markdown]
# With 8 ranks, rank 0 has to receive seven vectors and send seven, and by our calculation that takes 7 × 32 + 7 × 32 +
# 6 = 454 ms. Every machine you add slows the all-reduce down.
#
# Here is what each of the four ranks holds after each round. A **round** lets every rank send at most one message and
# receive at most one. Every row is a rank. The vector is drawn as four blocks, and the colours in a block show whose
# numbers have been added into it so far:

# %% tags=["figure:05_obvious_blocks"]
one.blocks()

# %% [markdown]
# Rank 0 first collects everything, while the other ranks learn nothing new. Only then does the complete sum spread out
# to them. Now let's look at the same run as a timeline:

# %% tags=["figure:05_gather"]
one.timeline()

# %% [markdown]
# In the block picture the vectors reach rank 0 one after the other, because we count rounds as if a rank could receive
# only one message at a time. Here, all three really travel at once. That gains us little: they share the link of rank
# 0, so each takes three times as long as it would alone. By the time the first has arrived, so have the others, and
# that is why you can see only one long `Recv`. In the second half the link is just as full in the other direction. The
# send bars are very short here, because the operating system accepts a vector of this size immediately and sends it in
# the background.
#
# Meanwhile the links of the other ranks are mostly idle, and so are their processors. This suggests two ideas. We could
# let several pairs of ranks exchange data at the same time, and we could share the adding among all of them.
#
# ## First idea: meet in pairs
#
# Let rank 1 send its vector to rank 0, while rank 3 sends its own to rank 2. Both receivers add. In the second round,
# rank 2 sends its sum to rank 0, which now holds the sum of all four, and the broadcast tree of lesson 4 takes it back
# to everyone in two more rounds. With this **tree**, rank 0 has to receive only two vectors instead of three; with
# 1,024 ranks, only 10 instead of 1,023.
#
# We can even skip the way back. Let ranks 0 and 1 exchange copies of their vectors, while ranks 2 and 3 do the same.
# Each rank adds what it receives to what it has. After this first round, ranks 0 and 1 both hold the sum of their two
# vectors, and so do ranks 2 and 3. In the second round, rank 0 exchanges its sum with rank 2, and rank 1 with rank
# 3. Now all four ranks hold the sum of everything.
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
# Here the operator `^` flips one binary digit of the rank; for example, `0b10 ^ 0b01` is `0b11`. With a distance of 1
# it pairs rank 0 with 1, and 2 with 3; with a distance of 2 it pairs 0 with 2, and 1 with 3. And because `Sendrecv`
# sends and receives at the same time, two partners can't end up in the deadlock of lesson 4, however long their vectors
# are.
#
# With four ranks, each rank sends its whole vector twice, once in each of two rounds.
#
# **Predict.** How many rounds does it take with 8 ranks, and how many vectors does each rank send?

# %%
course.predict("doubling", rounds=..., vectors=...)

# %% tags=["figure:05_pairs_blocks"]
from course_utils.lessons.allreduce import tree_allreduce

run = run_and_check(recursive_doubling, P=8)
sent = run.bytes_per_rank[0] / 200_000  # a vector is 200 KB
course.measured("doubling", rounds=run.rounds, vectors=sent)

tree = run_and_check(tree_allreduce, P=4)
doubling = run_and_check(recursive_doubling, P=4)
title = f"The tree takes {tree.rounds} rounds, recursive doubling only {doubling.rounds}"
course.draw.blocks(tree, doubling, titles=["tree", "recursive doubling"], title=title)

# %% [markdown]
# With $P$ ranks, recursive doubling takes $\log_2 P$ rounds, so 8 ranks need 3 rounds and 1,024 ranks need only 10. No
# all-reduce can do it in fewer. In a round, a rank receives at most one message, so the number of vectors in its sum
# can at most double, and it has to grow from 1 to $P$.
#
# The price is that each round moves whole vectors. Look at the last frame of recursive doubling: all four ranks have
# just done exactly the same addition, and each of them had to receive a whole vector for it. When vectors are long,
# this is what takes the time.
#
# ## Second idea: share the adding
#
# The next method never does the same addition twice. Step by step, each rank takes charge of a smaller and smaller part
# of the vector. Here it is with four ranks; watch rank 0 as you read on:

# %% tags=["figure:05_halving_blocks"]
from course_utils.lessons.allreduce import halving_doubling_allreduce

halving = run_and_check(halving_doubling_allreduce, P=4)
halving.blocks()

# %% [markdown]
# In round 1, ranks 0 and 2 pair up and split the work. Rank 0 takes the left half of the vector, and rank 2 takes the
# right half. So rank 0 sends only its right half, rank 2 sends only its left half, and each adds what arrives to its
# own half. Ranks 1 and 3 do the same.
#
# In round 2, ranks 0 and 1 pair up. Both are in charge of the left half, and each of them holds the sum of two ranks'
# vectors. Now they split it again, while ranks 2 and 3 do the same with the right half. Each rank is left with one
# quarter of the vector, and that quarter is complete. Up to here, this is the **reduce-scatter** that you know from
# lesson 4.
#
# In rounds 3 and 4 the ranks meet again in reverse order and pass on what is finished, first one quarter and then two.
# There is nothing left to add. This is an **all-gather**, and at its end everyone has all four quarters. Because the
# ranks first halve the part they work on and then double the part they have, the whole method is called
# **halving-doubling**. You will write it in an exercise.
#
# How much does a rank send? In round 1 it sends half of its vector, in round 2 a quarter, and on the way back a quarter
# and then a half. That adds up to 1.5 vectors.
#
# **Predict.** With 8 ranks, the reduce-scatter takes three rounds, and so does the all-gather. How many vectors does
# each rank send in total?

# %%
course.predict("halving", vectors=...)

# %%
run = run_and_check(halving_doubling_allreduce, P=8)
course.measured("halving", vectors=run.bytes_per_rank[0] / 200_000)

# %% [markdown]
# In each phase a rank sends $\frac12 + \frac14 + \frac18 = \frac78$ of the vector. With $P$ ranks it is $\frac{P-1}{P}$
# for each phase, and $2\,\frac{P-1}{P}$ in total. However many ranks there are, no rank sends more than two vectors.
# This explains the 2.6 seconds at the top of the page, because sending 2 × 64 GB at 50 GB/s takes about that long.
#
# Could a cleverer method send less? Take four ranks, and look at a single block. Before any rank can have its sum, each
# of the three others must have sent its numbers somewhere, which makes three transfers. When the first rank has the
# sum, the other three still need it, and that takes at least three more. That is 6 transfers for this block, and 24 for
# all four blocks. If four ranks share them evenly, each sends 6 blocks, which is 1.5 vectors. So the busiest rank can't
# send less than it does in halving-doubling, unless the network itself can add, as some switches do.
#
# ## The ring
#
# Our emulated network has a link for every rank, but in a real one, several messages may have to share a cable,
# especially if they go a long way. In our halving-doubling, half of each vector goes to a rank halfway across the
# cluster. The next method sends no more bytes, but every rank talks only to its neighbours. The ranks form a **ring**,
# in which each one sends to the rank on its right and receives from the rank on its left:

# %% tags=["figure:05_ring_blocks"]
from course_utils.lessons.allreduce import ring_allreduce

ring = run_and_check(ring_allreduce, P=4)
ring.blocks()

# %% [markdown]
# The vector is cut into as many blocks as there are ranks. Follow the last of them, the one on the right. In round 1,
# rank 0 sends its copy of this block to rank 1, which adds its own numbers. In round 2, rank 1 sends the result on to
# rank 2, and in round 3 it reaches rank 3, where one last addition makes it complete. In rounds 4 to 6 the finished
# block carries on around the ring and leaves a copy with everyone. The other three blocks travel at the same time, but
# each of them starts at a different rank. That way every rank sends one block in every round.
#
# So four ranks need 6 rounds, and in each of them a rank sends a quarter of the vector.
#
# **Predict.** With 8 ranks, how many rounds does the ring need, and how many vectors does each rank send?

# %%
course.predict("ring", rounds=..., vectors=...)

# %% tags=["figure:05_ring"]
run = run_and_check(ring_allreduce, P=8)
sent = run.bytes_per_rank[0] / 200_000
course.measured("ring", rounds=run.rounds, vectors=sent)

rings = [run_and_check(ring_allreduce, P=4) for _ in range(5)]
fastest = min(rings, key=lambda run: run.seconds)
fastest.timeline()

# %% [markdown]
# The ring, too, is a reduce-scatter followed by an all-gather. Each of these two phases takes $P-1$ rounds, and each
# round carries $\frac1P$ of the vector. So the ring sends exactly as many bytes as halving-doubling, but it needs many
# more rounds. In return, only neighbours talk to each other, and the number of ranks needn't be a power of two. The
# timeline shows the fastest of five runs on four ranks. Each pair of bars is one call to `Sendrecv`, and the hatched
# parts are times when a rank waits for its neighbour. In the first timeline everyone waited for rank 0. Here all four
# links are in use in every round. By calculation, 6 rounds of 3 ms and 1.5 vectors of 32 ms take 66 ms, a third of the
# 198 ms through one rank. (Your run may even be a little faster; the next section tells you why.) But a ring is
# sensitive. If one rank is held up, perhaps because your computer is busy, the rank to its right has to wait, then the
# next one, and so on.
#
# The ring is also your first [exercise](../exercises/05_allreduce.ipynb), which is why its code isn't shown here. You
# can write it now, or read on and come back later.
#
# ## Which method is the fastest?
#
# Here are the five methods side by side, for $P$ ranks, where $P$ is a power of two:
#
# | method | rounds | vectors that the busiest rank sends |
# |---|---|---|
# | through one rank | $2(P-1)$ | $P-1$ |
# | tree | $2\log_2 P$ | $\log_2 P$ |
# | recursive doubling | $\log_2 P$ | $\log_2 P$ |
# | halving-doubling | $2\log_2 P$ | $2\,\frac{P-1}{P}$ |
# | ring | $2(P-1)$ | $2\,\frac{P-1}{P}$ |
#
# Let's count rounds and vectors for 8 ranks and check the table:

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
    print(f"{name:20}{run.rounds:3} rounds, {vectors:.2f} vectors")

# %% [markdown]
# In the last three methods, all ranks send and receive at the same time in every round, and no rank can begin a round
# before it has finished the one before. So the times of the rounds add up. From lesson 4 you know that a message takes
# $\alpha$, plus $\beta$ for each byte. In total, we pay $\alpha$ once per round, and $\beta$ for every byte that a rank
# sends. If a whole vector has $n$ bytes, the all-reduce takes
#
# $$\text{rounds} \times \alpha + \text{vectors} \times \beta n .$$
#
# (This is not the time of the first two methods, in which rank 0 receives all its vectors before it sends as many.)
#
# Let's work through one case with 8 ranks. On our network $\alpha$ is about 3 ms and $\beta$ is 0.16 ms for each KB, so
# $\beta n$ is 2.6 ms for a vector of 16 KB. Recursive doubling then takes 3 × 3 + 3 × 2.6 = 17 ms, halving-doubling
# takes 6 × 3 + 1.75 × 2.6 = 23 ms, and the ring takes 14 × 3 + 1.75 × 2.6 = 47 ms.
#
# **Predict.** According to this formula, which of the three is the fastest for a vector of 400 KB, where $\beta n$ is
# 64 ms?

# %%
names = ["recursive doubling", "halving-doubling", "ring"]
choices = dict(zip("abc", names, strict=True))
course.predict("fastest", answer=..., choices=choices)  # "a", "b" or "c"

# %% [markdown]
# Does the clock agree? The next cell measures $\alpha$ and $\beta$ with a ping-pong and then runs the three methods in
# turn, three times each. It is long, and you can skip the code. In the picture, whose axes are logarithmic, the lines
# are calculated from $\alpha$ and $\beta$. A point is the median of three measured runs, and a thin line through it
# reaches from the fastest run to the slowest. Points for the same size are drawn side by side:

# %% tags=["figure:05_crossings"]
from course_utils.lessons.allreduce import Network, error_text, measure, message_seconds
from course_utils.lessons.allreduce import network_text, pictures
from course_utils.lessons.allreduce import predicted_seconds, predictors

rounds_and_vectors = np.array([[3, 3], [6, 1.75], [14, 1.75]])
milliseconds = rounds_and_vectors @ [3, 64]
course.answer("fastest", answer="abc"[milliseconds.argmin()])

sizes = [1, 1_000, 4_000, 10_000, 20_000, 40_000, 100_000, 400_000]
times = ranks.run(message_seconds, sizes, runs=3).results[0]  # a ping-pong
alpha = times[0]
beta = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
linked = ranks.facts["network"] is not None  # False if your system allows no links
network = Network(alpha, beta, shared=linked)
print(network_text(network))

lengths = [4_000, 16_000, 64_000, 400_000]
measured, predicted, calculated, runs = {}, {}, [], []
for P in (4, 8):
    panel = f"{P} ranks"
    three = {name: methods[name] for name in names}
    measured[panel] = measure(ranks, three, lengths, runs=3, world_size=P)
    predicted[panel] = predictors(P, names, predicted_seconds, network)
    for name in names:
        calculated += [predicted[panel][name](nbytes) for nbytes in lengths]
        runs += measured[panel][name]
print(error_text(calculated, runs))
pictures.crossings(lengths, measured, predicted)

# %% [markdown]
# Recursive doubling should come out fastest for the shortest vector and, on 8 ranks, slowest for the longest. The time
# for a short vector depends mainly on the number of rounds, and the time for a long one on the number of bytes.
# Halving-doubling and the ring send the same number of bytes, so they come close to each other for the longest vector.
# If the title says that they *tie*, three runs weren't enough to tell them apart. No single method is best for
# everything. That is why libraries for MPI include several and choose by the size of the vector and the number of
# ranks.
#
# The line above the picture tells you how far off the formula is in your run. If your machine was too busy for the
# figures to mean much, run the cell again. Many points in the middle lie below their lines, and this is no accident: an
# emulated link that has been idle for a moment lets the first 16 KB through at once, something no real cable does.
#
# The formula also leaves out the time that adding takes, and it treats all pairs of nodes alike. By the formula,
# halving-doubling therefore beats the ring on four or more ranks, since it sends the same bytes in fewer rounds, and
# its longer distances cost nothing. In a real cluster, where many nodes share cables and switches, the ranking can
# change. [Further](05_allreduce_further.ipynb) follows this up to 1,024 ranks.
#
# ## When the sum is wrong
#
# Suppose you have written your own ring. It passes your test, and it is faster than the all-reduce of the library. Then
# you train with it. There is no error message, and yet your network recognises fewer images than before. Something like
# this happened to a student in 2019, who never found the cause. ([Further](05_allreduce_further.ipynb) tells the story
# and names the report.) We have built a ring that goes wrong in much the same way, and your job is to find out why.
#
# We train the digits network of lesson 1 on four ranks. Each rank takes a step with its own images, and then all of
# them replace their weights with the average, which is the sum divided by 4. We train three times, each time with a
# different all-reduce. The third is our `suspicious_ring`. The percentages are those of ranks 0 to 3:

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
# The first suspect is rounding. A number of type `float32` has 24 significant binary digits, about 7 decimal digits,
# and the computer rounds after every addition. So the result depends on how the additions are grouped: ((a + b) + c) +
# d need not equal (a + b) + (c + d), and a ring groups them differently from recursive doubling. But one rounding
# changes a number by at most $2^{-24}$ of its size, which is 0.00000006, or 6e-8.
#
# **Predict.** Four ranks all-reduce vectors of 10,000 random numbers, in `float32`. How large is the worst error in the
# 10,000 sums, as a fraction of the largest sum?

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
    vector = np.random.default_rng(comm.rank).normal(size=10_000).astype(np.float32)
    exact = comm.allreduce(vector.astype(np.float64))  # 53 binary digits are enough
    method(comm, vector)
    return float(np.abs(vector - exact).max() / np.abs(exact).max())


errors = {}
for name in ("doubling", "ring"):
    errors[name] = ranks.run(largest_error, suspects[name], ranks=4).results[0]
    print(f"{name:16} {errors[name]:.0e}")
worst = max(errors.values())
sizes_of_errors = {"b": 1e-7, "c": 1e-3, "d": 0.07}
nearest = min(sizes_of_errors, key=lambda k: abs(np.log(worst / sizes_of_errors[k])))
course.measured("rounding", answer=nearest if worst else "a")

# %% [markdown]
# Rounding is not to blame. The errors are tiny, and they don't grow into anything that matters during this training.
# Recursive doubling and the ordinary ring round differently, and yet they train equally well. (With numbers of only 2
# bytes, it would be a different story; see Further.)
#
# Now it's your turn to play detective. All the weights of the network form one vector of 3,610 numbers. The next cell
# adds up vectors of this length with a ring that works and with the suspicious one, and compares the results. In the
# picture each rank's vector is a strip, cut into its four blocks, and wrong numbers are orange. Make up your mind about
# what is wrong before you open the answer.

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
# All the rounds are there, but bytes are missing. On every rank, the *end of each block* was never added. This ring
# cuts each block into segments of 512 numbers and sends them one by one. The cut is made here:
#
# ```python
# return [block[k * SEGMENT : (k + 1) * SEGMENT] for k in range(len(block) // SEGMENT)]
# ```
#
# A block has 902 or 903 numbers, and `len(block) // SEGMENT` rounds down to one segment. The remaining 390 or 391
# numbers are never sent, so each rank keeps its own weights there and divides them by 4 in every step. In our test the
# vector had 4,096 numbers. A block had 1,024, which is exactly two segments, so nothing was missing.
#
# So test with awkward lengths, such as 3,607, which is a prime number. And test with a different number in every place.
# A test with equal numbers, like ours, doesn't notice if two blocks are swapped.
# </details>

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can add up vectors on many ranks in several ways. Recursive doubling takes the fewest rounds, and halving-doubling
# and the ring send the fewest bytes, $2\,\frac{P-1}{P}$ vectors from each rank. If all ranks send in every round, you
# can predict the time as rounds × $\alpha$ plus vectors × $\beta n$. When a sum comes out wrong, you know to count
# bytes, to check which numbers ended up where, and to test with awkward lengths.
#
# In the [exercises](../exercises/05_allreduce.ipynb) you write these methods yourself. In [lesson
# 6](06_data_parallel.ipynb) you use an all-reduce to train a network on four ranks at once.
#
# **To read**
#
# - Thakur, Rabenseifner and Gropp (2005), [*Optimization of Collective Communication Operations in
#   MPICH*](https://doi.org/10.1177/1094342005051521), explains which method an MPI library chooses, and why.
# - Patarasuk and Yuan (2009), [*Bandwidth Optimal All-reduce Algorithms for Clusters of
#   Workstations*](https://doi.org/10.1016/j.jpdc.2008.09.002), is the paper on the ring.
# - Gibiansky (2017), [*Bringing HPC Techniques to Deep
#   Learning*](https://andrew.gibiansky.com/blog/machine-learning/baidu-allreduce/), brought the ring to the training of
#   networks.
