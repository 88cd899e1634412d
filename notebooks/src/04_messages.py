# The lesson on messages. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How do processes talk?
#
# Imagine that you have reserved 64 GPUs for ten hours. After ten minutes, two processes begin to wait for each other.
# The others soon need something from these two, so they stop as well. Unless somebody has set a time limit, there is no
# error message, and the job goes on holding its GPUs. By morning you will have paid for 640 GPU hours and trained for
# ten minutes.
#
# Two lines of code are enough to cause a hang like this. Once you know how messages work, you can spot them. In this
# lesson you will send arrays from one process to another, cause a deadlock and avoid it, let many processes exchange
# data with a single call, and predict how long a message takes. All parallel training in the later lessons is built
# from these parts.
#
# *50 minutes · builds on [lesson 0](00_first_steps.ipynb) · 4 ranks*

# %%
import time

import numpy as np

import course_utils as course
from course_utils.measuring import is_busy

ranks = course.start(4)

# %% [markdown]
# ## One sends, one receives
#
# Each rank has its own memory, so if one rank needs a vector that another rank has, the vector has to be sent. Our
# ranks do this with **MPI**, the Message Passing Interface, a standard that supercomputers have used since 1994. In
# Python we call it through a library named mpi4py, which also gives us `comm`, the communicator that you know from
# lesson 0. When NVIDIA's GPUs train a network, it is usually NVIDIA's own library, NCCL, which has calls with similar
# names. You will meet it in lesson 13.
#
# In lesson 0 you sent a word with `send`. For arrays there is a faster `Send`, with a capital letter. In the function
# below, rank 0 calls it and names the receiver. Rank 3 calls `Recv`, names the sender, and passes in an array for the
# incoming numbers. Ranks 1 and 2 do neither. We make rank 0 sleep for 20 ms before it sends, to see what rank 3 does in
# the meantime.


# %% tags=["figure:04_first_message"]
def first_message(comm):
    vector = np.full(1000, float(comm.rank))
    if comm.rank == 0:
        time.sleep(0.02)
        comm.Send(vector, dest=3)
    if comm.rank == 3:
        comm.Recv(vector, source=0)
    return int(vector[0])


run = ranks.run(first_message)
print(run.results)
run.timeline()

# %% [markdown]
# Rank 3 began with a vector of threes, and now it holds rank 0's zeros. In the picture the arrow is the message, which
# consists of 1,000 numbers of 8 bytes each. A hatched bar means waiting, so you can see that rank 3 waited while rank 0
# was asleep. `Recv` doesn't return until its message has arrived. We say that it **blocks**.
#
# ## Two ranks that wait for each other
#
# Now two ranks want to swap their vectors. Both run the same code: each sends its own vector first and then receives
# the other's.


# %%
def swap(comm, length):
    mine = np.full(length, float(comm.rank))
    yours = np.empty(length)
    comm.Send(mine, dest=1 - comm.rank)
    comm.Recv(yours, source=1 - comm.rank)
    return int(yours[0])


# %% [markdown]
# Will that work? It depends on when `Send` returns, and MPI libraries treat short and long messages differently. The
# library copies a short message into memory of its own, a **buffer**, so that `Send` can return at once, even if the
# other rank hasn't asked for the message yet (the *eager* protocol). For a long message, such a copy would cost too
# much time and memory. In that case `Send` waits until the other rank has called `Recv` (or has started to receive in
# some other way), and the data then go into the receiver's array (the *rendezvous* protocol). Where short ends and long
# begins depends on the library and its settings, but 80 bytes is nearly always short, and 8 MB nearly always long.
#
# **Predict.** What will happen with 10 numbers (80 bytes)? And with a million (8 MB)?

# %%
course.predict(
    "swap",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "both swaps succeed",
        "b": "the short swap succeeds, and the long one hangs",
        "c": "both swaps hang",
    },
)

# %% tags=["nbval-check-output"]
print(ranks.run(swap, 10, ranks=2).results)  # on the first two ranks

# %% [markdown]
# That was the short one. The long one ends in an error, and it's meant to. The ranks survive it, so you can simply go
# on:

# %% tags=["raises-exception"]
ranks.run(swap, 1_000_000, ranks=2)

# %% tags=["figure:04_deadlock"]
course.answer("swap", answer="b")
ranks.timeline()

# %% [markdown]
# With a million numbers, rank 0 can't leave `Send` before rank 1 calls `Recv`. But rank 1 is stuck in its own `Send`,
# which in turn is waiting for rank 0. Neither will ever move again. This is a **deadlock**.
#
# In an ordinary MPI program, silence would be your only clue. Here every rank reports what it is waiting for. If you
# draw an arrow from each of these two ranks to the one it is waiting for, the arrows form a circle. No rank in a circle
# can move before another rank in it has moved, so nothing can ever change again. That is how the course knew to stop
# the run. It can also draw the circle for you:

# %%
ranks.waits()

# %% [markdown]
# Now look once more at the output of the *short* swap. The results were right, yet there was a warning that this worked
# only by luck. After every run, the course goes through the recorded messages and asks what would have happened if
# there were no buffers. In that case the short swap would have got stuck just like the long one. Since the MPI standard
# doesn't say where short ends, such a program may run happily for years, until somebody makes the arrays longer or
# moves to a machine with a smaller limit.
#
# ## Start now, wait later
#
# One way out is to start the send without waiting for it to finish. That is what `Isend` does: it returns at once (the
# *I* stands for *immediate*) and gives you a **request**. MPI may go on reading your array for a while. Later you call
# `request.Wait()`, which returns once it is safe to change the array again. There is also `Irecv`, which starts a
# receive. You mustn't even read its array until `Wait` has returned.
#
# In the next cell, every rank sends a million numbers to the rank on its right, all at once. The ranks form a ring, so
# the right-hand neighbour of rank 3 is rank 0:


# %% tags=["nbval-check-output"]
def shift(comm, length):
    right = (comm.rank + 1) % comm.size
    left = (comm.rank - 1) % comm.size
    mine = np.full(length, float(comm.rank))
    theirs = np.empty(length)
    request = comm.Isend(mine, dest=right)
    comm.Recv(theirs, source=left)
    request.Wait()
    return int(theirs[0])


run = ranks.run(shift, 1_000_000)
print(f"{run.results}: {run.messages} messages in {run.rounds} round")

# %% tags=["figure:04_shift"]
run.timeline()

# %% [markdown]
# No rank got stuck, because each could start its send and move on to its `Recv`. (The same change would repair `swap`,
# and that's your second exercise.) A pale bar runs from `Isend` until `Wait` has returned. It can outlast its message,
# because the rank calls `Wait` only after its own `Recv`. The bars don't begin at the same time, because the ranks
# don't, and when four ranks share a few cores everything takes longer, too. But no message *has* to wait for another.
# On four separate computers, all four messages could travel at once, so we say that they belong to one **round**. In a
# round, each rank sends at most one message and receives at most one.
#
# If you like, you can now do the first two [exercises](../exercises/04_messages.ipynb), `pass_the_token` and
# `exchange_without_deadlock`. Or read on, and do all of them at the end.
#
# ## From one to all
#
# Rank 0 has read the initial weights of a network from a file, and now every rank needs them. The obvious way is a
# loop: rank 0 sends them to rank 1, then to rank 2, and so on.


# %%
def one_after_the_other(comm, vector):
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.Send(vector, dest=other)
    else:
        comm.Recv(vector, source=0)


# %% [markdown]
# Rank 0 can send only one message per round, so for 4 ranks this takes 3 rounds. But after the first round *two* ranks
# have the weights, so why shouldn't rank 1 help? In the second round, rank 0 can send them to rank 2 while rank 1 sends
# them to rank 3, and then all four ranks have them. With more ranks, the pattern continues: in every round, each rank
# that has the weights passes them on to one that doesn't. Such a **broadcast tree** reaches 8 ranks in 3 rounds and 16
# ranks in 4.
#
# **Predict.** How many rounds does each method need for 64 ranks?

# %%
course.predict("broadcast_rounds", loop=..., tree=...)  # two numbers

# %% [markdown]
# We can run both with our 4 ranks. You will write `tree_broadcast` yourself in the third exercise. With
# `course.per_rank`, each rank gets its own entry of a list. We give every rank a different vector, so that you can see
# whose vector ends up where:

# %% tags=["nbval-check-output"]
from course_utils.lessons.messages import tree_broadcast

vectors = course.per_rank([np.full(250_000, float(rank)) for rank in range(4)])
loop = ranks.run(one_after_the_other, vectors)
tree = ranks.run(tree_broadcast, vectors)
print(f"loop: {loop.messages} messages in {loop.rounds} rounds")
print(f"tree: {tree.messages} messages in {tree.rounds} rounds")

# %% tags=["figure:04_broadcast_blocks"]
course.answer("broadcast_rounds", loop=64 - 1, tree=np.ceil(np.log2(64)))
course.draw.blocks(loop, tree, titles=["loop", "tree"])

# %% [markdown]
# Each row of the picture is a rank. The four squares are the four quarters of its vector, and their colour tells you
# whose numbers are in them. From left to right you see the start and then the state after each round. The tree sends
# exactly as many messages as the loop, $P-1$ for $P$ ranks. But some of them travel at the same time, so it needs only
# $\lceil\log_2 P\rceil$ rounds instead of $P-1$. The brackets mean that the logarithm is rounded up. For 64 ranks that
# is 6 instead of 63.
#
# ## Collectives
#
# Patterns like this are so common that MPI has them built in. They are called **collectives** because every rank of a
# communicator has to make the same call. The library then chooses an algorithm. You'll meet eight of them again and
# again.
#
# In four of them, the data all start at one rank, or all end up there. This rank is called the **root**. In our
# examples it is rank 0:


# %%
def broadcast(comm, item):
    return comm.bcast(item, root=0)  # everyone gets the root's item


def scatter(comm, items):
    return comm.scatter(items, root=0)  # rank r gets item r of the root's list


def gather(comm, item):
    return comm.gather(item, root=0)  # the root gets a list of everyone's items


def reduce(comm, number):
    return comm.reduce(number, root=0)  # the root gets the sum


# %% [markdown]
# The other four are the **all-gather**, the **all-to-all**, the **all-reduce** and the **reduce-scatter**. In these,
# every rank gets something from every other rank:


# %%
def all_gather(comm, item):
    return comm.allgather(item)  # everyone gets the list of everyone's items


def all_to_all(comm, items):
    return comm.alltoall(items)  # item r of each rank's list goes to rank r


def all_reduce(comm, number):
    return comm.allreduce(number)  # everyone gets the sum


def reduce_scatter(comm, vector):
    block = np.empty(len(vector) // comm.size)
    comm.Reduce_scatter_block(vector, block)  # rank r gets block r of the sum
    return block


# %% [markdown]
# In mpi4py, methods with lowercase names accept almost any Python object, because they *pickle* it first, that is, they
# turn it into bytes. Methods with capitalised names send a NumPy array's memory as it is, and that is much faster for
# long arrays. There is no lowercase reduce-scatter, so we use `Reduce_scatter_block`.
#
# The next cell runs seven of the eight collectives. Depending on the call, each rank contributes a number, a vector of
# four numbers, or a list of four items. An item's name gives its rank and its position, so `2c` is the third item of
# rank 2.

# %% tags=["nbval-check-output", "here:04_collectives"]
number = course.per_rank([1, 10, 100, 1000])
items = course.per_rank([[f"{rank}{k}" for k in "abcd"] for rank in range(4)])
vector = course.per_rank([10.0**rank * np.arange(1, 5) for rank in range(4)])

collectives = {
    "broadcast": ranks.run(broadcast, number),
    "scatter": ranks.run(scatter, items),
    "gather": ranks.run(gather, number),
    "reduce": ranks.run(reduce, number),
    "all-gather": ranks.run(all_gather, number),
    "all-reduce": ranks.run(all_reduce, number),
    "reduce-scatter": ranks.run(reduce_scatter, vector),
}
for name, run in collectives.items():
    print(f"{name:14}  rank 0: {run.results[0]},  rank 3: {run.results[3]}")

# %% [markdown]
# The sum of 1, 10, 100 and 1000 is 1111, so every rank's number has been counted exactly once. In the reduce-scatter,
# the vectors add up to [1111, 2222, 3333, 4444], and each rank gets one block of that.
#
# We left out the all-to-all. There, rank 0 gets the first item of everyone's list, so it ends up with `["0a", "1a",
# "2a", "3a"]`.
#
# **Predict.** What does rank 2 get?

# %%
course.predict(
    "all_to_all",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": '["2a", "2b", "2c", "2d"]',
        "b": '["0c", "1c", "2c", "3c"]',
        "c": '["0b", "1b", "2b", "3b"]',
    },
)

# %% tags=["figure:04_collectives"]
collectives["all-to-all"] = ranks.run(all_to_all, items)
second = collectives["all-to-all"].results[2]
course.measured("all_to_all", answer={"2a": "a", "0c": "b", "0b": "c"}[second[0]])
course.draw.blocks(*collectives.values(), titles=list(collectives))

# %% [markdown]
# Each before-and-after pair shows what the ranks put in and what they get out. Where there are four columns, each
# belongs to one rank, and the first of them is for what comes from rank 0 or is going to it. An empty square holds
# nothing. In a broadcast or a scatter, only the root's data count. If you read the items of the all-to-all as a table
# with a row for each rank, the call turns rows into columns.
#
# The one you'll meet most often is the all-reduce. When four workers have each computed a gradient, an all-reduce adds
# the four gradients up. The next lesson looks inside it.
#
# Collectives have a price: ranks may have to wait for each other. Suppose rank 3 arrives a tenth of a second late, and
# rank 0 is on time. To finish an `allreduce`, rank 0 needs a number from every rank. In a broadcast, rank 0 only has to
# send, and here the message is short.
#
# **Predict.** In which of the two does rank 0 have to wait for rank 3?

# %%
course.predict(
    "late",
    answer=...,  # "a", "b" or "c"
    choices={"a": "in the broadcast", "b": "in the all-reduce", "c": "in both"},
)


# %%
def late(comm, operation):
    if comm.rank == 3:
        time.sleep(0.1)
    if operation == "broadcast":
        comm.bcast(7)
    else:
        comm.allreduce(7)


def rank_0_waits(run):  # looks it up in the recording; you can skip the rest
    calls = [event for event in run.events if event.rank == 0]
    return max(call.end - call.start for call in calls) > 0.05


runs = {name: ranks.run(late, name) for name in ("broadcast", "all-reduce")}
waits = " and ".join(name for name, run in runs.items() if rank_0_waits(run))
where = {"broadcast": "a", "all-reduce": "b", "broadcast and all-reduce": "c"}
busy = is_busy([[run.seconds] for run in runs.values()], planned=[0.1, 0.1])
course.measured("late", busy=busy, answer=where.get(waits, "nowhere"))
title = f"Rank 0 waits for rank 3 in {f'the {waits}' if waits else 'neither call'}"
course.draw.timelines(*runs.values(), titles=list(runs), title=title)

# %% [markdown]
# No rank can have the sum before rank 3 has contributed to it. So if training needs such a sum at every step, the
# slowest worker sets the pace for everyone. In a broadcast the root may be able to carry on, but don't rely on that.
# The MPI standard lets any collective hold a rank back until the others have arrived, and with a long message the root
# may have to wait for those it sends to.
#
# ## What does a message cost?
#
# So far we have counted rounds, but how long does a round take? The clocks of two computers never agree exactly, so the
# usual trick is a **ping-pong**: you send a message there and back, and read a single clock. We make a hundred round
# trips and halve the shortest to get the time of one message:


# %%
def ping_pong(comm, nbytes):
    message = np.zeros(nbytes, np.uint8)
    round_trips = []
    for _ in range(100):
        start = time.perf_counter()
        if comm.rank == 0:
            comm.Send(message, dest=1)
            comm.Recv(message, source=1)
        else:
            comm.Recv(message, source=0)
            comm.Send(message, dest=0)
        round_trips.append(time.perf_counter() - start)
    return min(round_trips) / 2


# %% [markdown]
# Here are the times for messages from 1 byte to 1 MB:


# %%
def sweep(comm, sizes):
    ping_pong(comm, 1)  # to warm up

    return [ping_pong(comm, nbytes) for nbytes in sizes]


sizes = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]
seconds = ranks.run(sweep, sizes, ranks=2).results[0]
for nbytes, each in zip(sizes, seconds, strict=True):
    print(f"{nbytes:9,} bytes: {1e6 * each:7.1f} µs")

# %% [markdown]
# On a quiet machine, sending a thousand bytes takes about as long as sending one, because nearly all of this time is
# the same for every message, whatever its size. This fixed part, the **latency**, is written $\alpha$. (Much of ours is
# the time that the course takes to record each message. On its own, MPI takes only a microsecond or two inside one
# computer.) The rest grows with the message: every byte adds a little time, $\beta$. So a message of $n$ bytes takes
# about
#
# $$T(n) = \alpha + \beta\, n .$$
#
# The function `fit_alpha_beta`, which you will write in the last exercise, finds the $\alpha$ and $\beta$ for which the
# formula's errors, in percent and squared, have the smallest sum:

# %% tags=["figure:04_alpha_beta"]
from course_utils.lessons.messages import fit_alpha_beta, message_time, pictures

alpha, beta = fit_alpha_beta(sizes, seconds)
print(f"alpha: {1e6 * alpha:.1f} µs for each message")
print(f"beta:  {1e6 * 1000 * beta:.3f} µs for each thousand bytes")
pictures.alpha_beta(sizes, seconds, alpha, beta)

# %% [markdown]
# The coloured line is the formula, which is a curve here because both axes are logarithmic. Two of the dashed lines
# show its two parts, and the vertical one marks the size at which they are equal. The title also gives $1/\beta$, the
# speed at which a long message travels. The points don't lie exactly on the curve, for example because MPI treats short
# and long messages differently. But a formula with two numbers doesn't have to be exact. It only has to be good enough
# to choose between two programs.
#
# It also lets you calculate what you haven't measured. Take a machine with $\alpha$ = 10 µs and $\beta$ = 0.5 µs for
# each thousand bytes. A message of 2 MB is 2,000 times a thousand bytes, so it takes 10 + 2,000 × 0.5 = 1,010 µs.
#
# **Predict.** How many microseconds will a message of 3 MB take on your machine? Use the two numbers that the last cell
# printed. (Anything within a factor of 2 counts as right.)

# %%
course.predict("three_megabytes", within=2, microseconds=...)

# %%
three = [ranks.run(ping_pong, 3_000_000, ranks=2).results[0] for _ in range(3)]
course.measured(
    "three_megabytes", busy=is_busy([three]), microseconds=1e6 * np.median(three)
)
by_formula = message_time(3_000_000, alpha, beta)
factor = by_formula / np.median(three)
print(
    f"The formula predicts {1e6 * by_formula:.0f} µs, {factor:.2f} times the measured time."
)

# %% [markdown]
# Don't worry if your formula is out by 20 or 30 percent, or even by a factor of two. For such a simple formula, that's
# normal.
#
# With a formula for one message, you can calculate the cost of a whole pattern: the number of rounds times the time per
# round. To get 3 MB to 64 ranks, a loop takes as long as 63 messages, and a tree only as long as 6. This holds if the
# messages of a round don't get in each other's way. On your computer they do, because all the ranks share its memory
# and a few cores. That is why the next lesson gives every rank an emulated network link of its own.

# %% [markdown]
# ## What does `course.start` do?
#
# Before you stop the ranks, let's look at what they are, because one day you may want to start some without this
# course. Behind them is **ipyparallel**, a library for running Python in many processes, which it calls **engines**.
# Your notebook hands its work to a **controller**, and the controller passes it on to the engines and brings the
# results back. Our engines were started with MPI's `mpiexec`, which is why each of them is also a rank. The next cell
# asks every engine for its process ID and draws how the processes are connected:

# %% tags=["figure:04_cluster"]
import os

processes = ranks.view.apply_sync(os.getpid)
pictures.cluster(os.getpid(), ranks.controller, processes)

# %% [markdown]
# `ranks.view` is a `DirectView`, ipyparallel's object for addressing several engines at once, in this case all of them.
# Its `apply_sync` has just called a function on each. In the next cell, `push` sets a variable on every engine, and
# `scatter` cuts a list into one part for each of them. Then `execute` runs a line of code everywhere. At the end,
# `pull` fetches a variable from every engine, and `gather` fetches the parts and joins them again. This `scatter` and
# this `gather` do much the same as MPI's, except that the notebook always plays the part of the root.

# %% tags=["nbval-check-output"]
ranks.view.push({"factor": 10})
ranks.view.scatter("part", [1, 2, 3, 4, 5, 6, 7, 8])
ranks.view.execute("part = [factor * number for number in part]")
print(ranks.view.pull("part"))
print(ranks.view.gather("part"))

# %% [markdown]
# All of this passes through the controller, which is fine for a few numbers. Ranks that train a network exchange
# millions of numbers in every step, and that is why they send them to each other directly, with MPI.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can send an array from one rank to another, and you know when `Recv` and `Send` have to wait. You can recognise a
# deadlock, in which ranks wait for each other in a circle, and avoid it by starting a message first and waiting for it
# later. You know which data each collective moves and where they end up, and you can predict the time of a message with
# $\alpha + \beta n$.
#
# Next come the [exercises](../exercises/04_messages.ipynb): five short functions to write. Then [lesson
# 5](05_allreduce.ipynb) asks how $P$ machines add up their vectors. [Further](04_messages_further.ipynb) shows you how
# to start a cluster on your own, what pickling costs, and how to have the ranks try out training settings for you.
#
# **To read**
#
# - The [mpi4py tutorial](https://mpi4py.readthedocs.io/en/stable/tutorial.html) has a short example of every call on
#   this page.
# - Lawrence Livermore's [MPI tutorial](https://hpc-tutorials.llnl.gov/mpi/) goes further, with exercises in C and
#   Fortran.
# - The [MPI standard](https://www.mpi-forum.org/docs/) is the place to look when you want to know what a call really
#   promises.
