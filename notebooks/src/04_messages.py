# The lesson on messages. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How do processes talk?
#
# Imagine that you have reserved 64 GPUs for ten hours. After ten minutes one process waits for a message that no other
# process is going to send. The others soon need something from the one that waits, so they stop as well. There is no
# error message, and every process looks busy. In the morning you have paid for 640 GPU hours and have trained for ten
# minutes.
#
# Accidents like this have a cause that you can see in two lines of code, once you know how messages work. In this
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
# ## What is behind `course.start`
#
# The four processes are an ordinary cluster of a library called **ipyparallel**. It calls them **engines**, which are
# Python processes that wait for work. Your notebook hands its work to a **controller**, which passes it on to the
# engines and brings the results back. Our engines were started by MPI, so each of them is also a rank, and they can
# send each other messages without asking the controller. The next cell asks every engine for its process number and
# draws what is running on your computer now:

# %% tags=["figure:04_cluster"]
import os

from course_utils.lessons.messages import pictures

processes = ranks.view.apply_sync(os.getpid)
pictures.cluster(os.getpid(), ranks.controller, processes)

# %% [markdown]
# `ranks.view` is ipyparallel's object for all engines together, a `DirectView`, and `apply_sync` has just called a
# function on each of them. It can do more. `push` sets a variable on all engines, and `pull` fetches one. `scatter`
# cuts a list into one part for each engine, and `gather` puts the parts together again:

# %% tags=["nbval-check-output"]
ranks.view.push({"factor": 10})
ranks.view.scatter("part", [1, 2, 3, 4, 5, 6, 7, 8])
ranks.view.execute("part = [factor * number for number in part]")
print(ranks.view.pull("part"))
print(ranks.view.gather("part"))

# %% [markdown]
# All of this passes through the controller. That is fine for a few numbers, but ranks that train a network exchange
# millions of them in every step. They send them straight to each other, with MPI.
#
# ## One sends, one receives
#
# Each rank has its own memory, so the only way to give a vector to a different rank is to send it. Messages between
# processes follow a standard called **MPI**, the Message Passing Interface, which supercomputers have used since 1994.
#
# You already know `ranks.run`, which calls a function once on every rank. In the next function, rank 0 calls `Send` and
# names the receiver. Rank 3 calls `Recv`, names the sender, and hands over an array in which the numbers are to be
# stored. Ranks 1 and 2 do neither.


# %% tags=["figure:04_first_message"]
def first_message(comm):
    vector = np.full(1000, float(comm.rank))
    if comm.rank == 0:
        comm.Send(vector, dest=3)
    if comm.rank == 3:
        comm.Recv(vector, source=0)
    return int(vector[0])


run = ranks.run(first_message)
print(run.results)
run.timeline()

# %% [markdown]
# Rank 3 began with a vector of threes, and now it holds the zeros of rank 0. In the picture the arrow is the message,
# and a hatched bar means waiting. A `Recv` always waits until its message has arrived. We say that it **blocks**.
#
# ## Two ranks that wait for each other
#
# Now two ranks want to swap their vectors. Both run the same two lines: first send my vector, then receive yours.


# %%
def swap(comm, length):
    mine = np.full(length, float(comm.rank))
    yours = np.empty(length)
    comm.Send(mine, dest=1 - comm.rank)
    comm.Recv(yours, source=1 - comm.rank)
    return int(yours[0])


# %% [markdown]
# To predict what happens, you need to know when `Send` returns. MPI treats short and long messages differently. It
# copies a short message into a memory area of its own, a **buffer**, and lets `Send` return at once. This is called
# *eager*. Copying a long message would take too much memory, so `Send` waits until the receiver has called `Recv` and
# the data can go straight into its array. This is called *rendezvous*.
#
# **Predict.** What will happen with 10 numbers, and what with a million?

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
print(ranks.run(swap, 10, ranks=2).results)

# %% tags=["raises-exception"]
ranks.run(swap, 1_000_000, ranks=2)

# %% tags=["figure:04_deadlock"]
course.answer("swap", answer="b")
ranks.timeline()

# %% [markdown]
# With a million numbers, rank 0 cannot leave `Send` before rank 1 calls `Recv`. But rank 1 is stuck in its own `Send`,
# waiting for rank 0. Each waits for the other, and neither will ever move again. This is a **deadlock**.
#
# On a cluster you would notice it only by the silence. Here every rank reports what it is waiting for, so the course
# can see that these arrows form a circle and that no message is on its way. It needs no clock to be certain. It ends
# the call and draws the circle for you:

# %%
ranks.waits()

# %% [markdown]
# Look once more at the output of the *short* swap. The results were right, and still there was a warning: *by luck*.
# After every run, the course goes through the messages again as if MPI had no buffer at all. In that replay the short
# swap gets stuck just like the long one. Where a message stops being short differs from one machine to the next, and no
# standard defines it. Such a program runs well for years, until somebody makes the arrays longer or moves to another
# machine.
#
# ## Start now, wait later
#
# The way out is to start a message without waiting for it. `Isend` and `Irecv` return immediately (the *I* is for
# *immediate*) and give you a **request**. When you need the message to be finished, you call `request.Wait()`. In
# between, you must not change an array that is being sent, and you must not even read one that is being filled.
#
# In the next cell all four ranks send a million numbers to their right-hand neighbour, all at once:


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
# Nobody got stuck, because every rank reached its `Recv`. Four messages travelled, and all of them could travel at the
# same time. We call this one **round**: in a round, each rank sends at most one message and receives at most one.
#
# You are now ready for the first two [exercises](../exercises/04_messages.ipynb), `pass_the_token` and
# `exchange_without_deadlock`.
#
# ## From one to all
#
# Rank 0 has read the first weights of a network from a file, and now every rank needs them. The obvious way is a loop:
# rank 0 sends them to rank 1, then to rank 2, and so on.


# %%
def one_after_the_other(comm, vector):
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.Send(vector, dest=other)
    else:
        comm.Recv(vector, source=0)


# %% [markdown]
# Rank 0 can send only one message per round, so for 4 ranks this takes 3 rounds. But after the first round *two* ranks
# have the weights. If rank 1 helps, two messages can be sent in the second round, and then all four ranks have them.
# With more ranks it goes on like this. After 1, 2, 3 and 4 rounds, 2, 4, 8 and 16 ranks have the weights, because every
# rank that has them passes them on. This is called a **broadcast tree**.
#
# **Predict.** How many rounds does each of the two ways need for 64 ranks?

# %%
course.predict("broadcast_rounds", loop=..., tree=...)  # two numbers

# %% [markdown]
# We can run both with our 4 ranks. (`course.per_rank` gives rank $r$ the entry $r$ of a list. You will write
# `tree_broadcast` yourself, in the third exercise.)

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
# Each row of the picture is a rank, each frame shows what the ranks hold after a round, and the colour tells you whose
# numbers they are. The tree sends just as many messages as the loop, $P-1$ for $P$ ranks. It finishes earlier because
# some of them travel at the same time: it needs $\lceil\log_2 P\rceil$ rounds instead of $P-1$. For 64 ranks that is 6
# instead of 63.
#
# ## Collectives
#
# Patterns like the broadcast are so common that MPI has them built in. They are called **collectives**, because all the
# ranks of a communicator have to make the same call. The library then chooses a good algorithm.
#
# Four of them have a **root**, one rank that gives or gets everything. Here rank 0 is the root:


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
# every rank gets something from all the others:


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
# A call with a small letter accepts any Python object. It turns the object into bytes first, which is called
# *pickling*. A call with a capital letter sends the memory of a NumPy array as it is, which is much faster for long
# arrays.
#
# The next cell runs all of them but one. Each rank gives a number, or a list of four items that are named after the
# rank and their position.

# %% tags=["nbval-check-output", "here:04_collectives"]
number = course.per_rank([1, 10, 100, 1000])
items = course.per_rank([[f"{rank}{k}" for k in "abcd"] for rank in range(4)])
vector = course.per_rank([np.full(4, 10.0**rank) for rank in range(4)])

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
# The sum of 1, 10, 100 and 1000 is 1111. Its digits show that each rank's number is in it exactly once.
#
# The one that is missing is the all-to-all. In it, rank 0 gets the first item of everyone's list, so it ends up with
# `["0a", "1a", "2a", "3a"]`.
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
# Each pair of frames shows what the ranks hold before and after the call. If you read the items of the all-to-all as a
# table with a row for each rank, the call turns rows into columns.
#
# The most important collective for training is the all-reduce. When four workers have each computed a gradient, this is
# how they add them up. The next lesson is about what happens inside.
#
# Collectives have a price, which you can work out before you pay it. Suppose rank 3 arrives a tenth of a second late,
# and rank 0 is on time. To call `allreduce`, rank 0 needs a number from every rank. In a broadcast from rank 0, it only
# has to hand out its own.
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


def rank_0_waits(run):
    calls = [event for event in run.events if event.rank == 0]
    return max(call.end - call.start for call in calls) > 0.05


runs = {name: ranks.run(late, name) for name in ("broadcast", "all-reduce")}
waits = " and ".join(name for name, run in runs.items() if rank_0_waits(run))
where = {"broadcast": "a", "all-reduce": "b", "broadcast and all-reduce": "c"}
busy = is_busy([[run.seconds] for run in runs.values()], planned=[0.1, 0.1])
course.measured("late", busy=busy, answer=where.get(waits, "nowhere"))
title = f"Rank 0 waits for rank 3 in the {waits or 'neither'}"
course.draw.timelines(*runs.values(), titles=list(runs), title=title)

# %% [markdown]
# No rank can have the sum before rank 3 has contributed to it. Training needs such a sum in every step, so the slowest
# worker sets the pace for all of them.
#
# ## What does a message cost?
#
# So far we have counted rounds. How long does one round take? The clocks of two computers never agree exactly, so we
# let a message go there and back and use one clock only. This is called a **ping-pong**. Half of the shortest round
# trip is the time of one message. Let us measure it for messages of 1 byte to 300 KB:

# %%
from course_utils.lessons.messages import fit_alpha_beta, message_time, ping_pong


def sweep(comm, sizes):
    return [ping_pong(comm, nbytes) for nbytes in sizes]


sizes = [1, 10, 100, 1_000, 10_000, 30_000, 100_000, 300_000]
seconds = ranks.run(sweep, sizes, ranks=2).results[0]
for nbytes, each in zip(sizes, seconds, strict=True):
    print(f"{nbytes:9,} bytes: {1e6 * each:7.1f} µs")

# %% [markdown]
# A thousand bytes take hardly longer than one. Every message has a fixed cost, whatever its size, which is called the
# **latency** and written $\alpha$. Long messages take longer because each byte adds a little, which is written $\beta$.
# So a message of $n$ bytes takes about
#
# $$T(n) = \alpha + \beta\, n .$$
#
# The function `fit_alpha_beta`, which you will write in the last exercise, finds the two numbers that suit your
# measurements best:

# %% tags=["figure:04_alpha_beta"]
alpha, beta = fit_alpha_beta(sizes, seconds)
print(f"alpha: {1e6 * alpha:.1f} µs for each message")
print(f"beta:  {1e6 * 1000 * beta:.2f} µs for each thousand bytes")
pictures.alpha_beta(sizes, seconds, alpha, beta)

# %% [markdown]
# The points do not lie exactly on the line. MPI changes its method with the size, and the processor's caches are faster
# than the main memory. A model with two numbers need not be true, only good enough to choose by.
#
# It also lets you calculate what you have not measured. Take a machine with $\alpha$ = 10 µs and 0.5 µs for each
# thousand bytes. A message of 2 MB is 2,000 times a thousand bytes, so it takes 10 + 2,000 × 0.5 = 1,010 µs.
#
# **Predict.** How many µs does a message of 3 MB take on your machine? Use the two numbers that the last cell has
# printed. (Within a factor of 2 counts as right.)

# %%
course.predict("three_megabytes", within=2, microseconds=...)

# %%
three = [ranks.run(ping_pong, 3_000_000, ranks=2).results[0] for _ in range(3)]
course.measured(
    "three_megabytes", busy=is_busy([three]), microseconds=1e6 * np.median(three)
)
print(f"The line predicts {1e6 * message_time(3_000_000, alpha, beta):.0f} µs.")

# %% [markdown]
# With a formula for one message you can calculate the cost of a whole pattern: the number of rounds times the time of a
# round. To give 3 MB to 64 ranks takes 63 of these times with a loop and 6 with a tree. In the next lesson you will
# choose between algorithms in this way.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can send an array from one rank to another, and you know that `Recv` always waits and `Send` sometimes does. You
# recognise a deadlock as ranks that wait for each other in a circle, and avoid it by starting a message first and
# waiting for it later. You know what the collectives move, and you predict the time of a message with $\alpha + \beta
# n$.
#
# Next come the [exercises](../exercises/04_messages.ipynb), five short functions. Then [lesson 5](05_allreduce.ipynb)
# asks how $P$ machines add up their vectors. If you would like to use ipyparallel on your own, see what pickling costs,
# or let ranks try out settings of a training for you, there is [more about messages](04_messages_further.ipynb).
