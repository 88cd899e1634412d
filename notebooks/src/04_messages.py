# The lesson on messages. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How do processes talk?
#
# After this lesson you can **send** an array from one process to another, **recognise** a deadlock before you run
# into it, and **predict** how long a message takes.
#
# *50 minutes · builds on [lesson 0](00_first_steps.ipynb) · 4 ranks*

# %%
import time

import numpy as np

import course_utils as course

ranks = course.start(4)

# %% [markdown]
# Four Python processes are now waiting for you. They stand in for four computers.
#
# Each knows two numbers: how many processes there are, the *world size*, and its own number, its *rank*. They talk
# through **MPI**, the Message Passing Interface, which supercomputers have spoken since 1994. A *communicator*, here
# `comm`, is the group in which they talk.

# %%
# %%px
from mpi4py import MPI

comm = MPI.COMM_WORLD
print(f"I am rank {comm.rank} of {comm.size}")

# %% [markdown]
# One program, run four times. Only the rank differs. Your program looks at its rank, and decides by it what to do.
#
# The processes share nothing. What does that mean? Guess what each rank prints, then run the cell.

# %% tags=["nbval-check-output"]
# %%px
x = 10
if comm.rank == 2:
    x = x + 1
print(x)

# %% [markdown]
# Rank 2 changed *its* `x`. The other three have an `x` of their own and never hear of it. If four processes are to
# train one network, they must tell each other what changes.
#
# ## One sends, one receives
#
# From here on we write a function, and `ranks.run` calls it once on every rank, with the communicator. `Send` says to
# whom; `Recv` says from whom, and gives the array that is to be filled.


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
# Rank 3 had threes; now it has rank 0's zeros. Ranks are rows, and the arrow is your message. A `Recv` **waits** until
# its message has come: it **blocks**.
#
# ## Everybody waits
#
# Two ranks want to swap vectors. Both run the same lines: send mine, receive yours. **Predict.** First with 10 numbers,
# then with a million: what will happen?


# %%
def swap(comm, length):
    mine, yours = np.full(length, float(comm.rank)), np.empty(length)
    comm.Send(mine, dest=1 - comm.rank)
    comm.Recv(yours, source=1 - comm.rank)
    return int(yours[0])


# %%
course.predict(
    "swap",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "both end",
        "b": "the short one ends, the long one hangs",
        "c": "both hang: nobody receives",
    },
)

# %% tags=["nbval-check-output"]
print(ranks.run(swap, 10, ranks=2).results)

# %% tags=["raises-exception"]
ranks.run(swap, 1_000_000, ranks=2)

# %% tags=["figure:04_deadlock"]
course.measured("swap", answer="b")
ranks.timeline()

# %% [markdown]
# That is a **deadlock**: each waits for the other, for ever. Why not with 10 numbers? MPI keeps a short message in a
# buffer of its own and lets `Send` return. A long one waits for its receiver. No standard says how long is long: a
# program that needs short messages is already wrong.
#
# Elsewhere a deadlock looks like a program at work. Here every rank tells what it waits for, and you can have it drawn:

# %%
ranks.waits()

# %% [markdown]
# An arrow leads from the rank that waits to the rank that it waits for. Where the arrows run in a circle, and no
# message is on its way, nobody can ever move again. The course needs no clock to know that. It says so at once, and
# frees the ranks:

# %%
# %%px
print(f"rank {comm.rank} is back")

# %% [markdown]
# A circle can be longer. Here three ranks sit at a table, and each waits for its neighbour on the right to begin.
# **Think:** if *one* of them did something else, all three would come to the end. What must this one do?


# %% tags=["raises-exception"]
def table(comm):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.recv(source=right)
    comm.send("after you", dest=left)


ranks.run(table, ranks=3)

# %% tags=["figure:04_circle"]
ranks.waits()

# %% [markdown]
# One rank that *sends* before it receives is enough: it frees its neighbour, and that one the next.
#
# ## What works by luck
#
# Now look at the *short* swap once more. It ended, its results are right, and yet a line stood above them: *By luck*.
# After a run, the course goes through its messages once more, as if MPI kept none of them in a buffer: then both ranks
# sit in `Send`. Such a program runs well for years, until somebody makes the arrays longer or moves to another machine.
#
# The same line warns of other things that go well by luck: a message that nobody receives, or an array that is changed
# while it is being sent.

# %% [markdown]
# ## Not waiting
#
# The cure: *start* a message without waiting for it. `Isend` and `Irecv` (I for immediate) return at once and hand
# you a **request**. `request.Wait()` is where you wait, later, when there is nothing better to do. Until then the array
# belongs to MPI: leave it alone. (A request that nobody waits for works by luck, too.)
#
# Now all four send to their right-hand neighbour at once, a million numbers each:


# %% tags=["nbval-check-output"]
def shift(comm, length):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    mine, theirs = np.full(length, float(comm.rank)), np.empty(length)
    request = comm.Isend(mine, dest=right)
    comm.Recv(theirs, source=left)
    request.Wait()
    return int(theirs[0])


run = ranks.run(shift, 1_000_000)
print(f"{run.results}: {run.messages} messages in {run.rounds} round")

# %% tags=["figure:04_shift"]
run.timeline()

# %% [markdown]
# Four messages, one **round**: in a round every rank can send one message and receive one. Ready for two
# [exercises](../exercises/04_messages.ipynb): `pass_the_token` and `exchange_without_deadlock`.
#
# ## From one to all
#
# Rank 0 has a vector that everybody needs. The plain way: rank 0 sends it to one rank after the other. But after the
# first message *two* ranks have it, and rank 1 could pass it on. So in every round twice as many ranks can have it.
# **Predict** the rounds with 64 ranks.


# %%
def one_after_the_other(comm, vector):
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.Send(vector, dest=other)
    else:
        comm.Recv(vector, source=0)


course.predict("broadcast_rounds", plain=..., doubling=...)  # two numbers

# %% tags=["nbval-check-output"]
# doubling: your exercise
from course_utils.lessons.messages import tree_broadcast

# per_rank: rank r gets entry r
vectors = course.per_rank([np.full(250_000, float(rank)) for rank in range(4)])
plain = ranks.run(one_after_the_other, vectors)
doubling = ranks.run(tree_broadcast, vectors)
rounds = f"{plain.rounds} rounds against {doubling.rounds}"
messages = f"{plain.messages} messages and {doubling.messages}"
print(f"4 ranks: {rounds}, {messages}")

# %%
# 64 ranks: by the formula
course.measured("broadcast_rounds", plain=64 - 1, doubling=np.ceil(np.log2(64)))
course.draw.timelines(plain, doubling, titles=["one after the other", "doubling"])

# %% [markdown]
# With $P$ ranks: $P - 1$ rounds against $\lceil\log_2 P\rceil$. Just as many messages, but some of them at the same
# time. (Doubling may save little where all ranks share one memory. In lesson 5 each rank has its own link.)
#
# ## Collectives
#
# One to all, a **broadcast**, is so common that MPI has it ready: `bcast`. It is a **collective**: *every* rank calls
# it, and the library chooses the algorithm. `reduce` is the way back: all send to one, and the numbers are added up.
# Lower-case names take any Python object.


# %% tags=["nbval-check-output", "here:04_broadcast_and_reduce"]
def bcast_and_reduce(comm):
    word = comm.bcast("hello" if comm.rank == 0 else None, root=0)
    total = comm.reduce(comm.rank, root=0)
    return word, total


there_and_back = ranks.run(bcast_and_reduce)
print(there_and_back.results)

# %% [markdown]
# The sum $0 + 1 + 2 + 3$ is on the **root** alone: on the rank that the call names as `root`.
#
# `scatter` deals out: the root has a list, and rank $r$ gets entry $r$. `gather` collects again. That is how a batch
# of images gets to the workers, and their results back.


# %%
def scatter_and_gather(comm):
    words = ["zero", "one", "two", "three"] if comm.rank == 0 else None
    mine = comm.scatter(words, root=0)
    return comm.gather(mine.upper(), root=0)


dealt = ranks.run(scatter_and_gather)
print(dealt.results[0])
titles = ["one to all, and back", "dealt out, and collected"]
title = "A collective is one call, made by every rank"
course.draw.timelines(there_and_back, dealt, titles=titles, title=title)

# %% [markdown]
# A collective is a bar on every rank that takes part, and a pale band joins the bars. The library decides what travels
# inside.
#
# Three have no root:
#
# - `allgather`: everybody ends with everybody's entry.
# - `alltoall`: each rank has a letter for every rank, and gets the letter that every rank has for it.
# - `allreduce`: everybody ends with the sum.
#
# Put the gradients of four workers in the place of the numbers, and `allreduce` is the heart of distributed training.


# %% tags=["here:04_all_gather"]
def everybody(comm):
    entries = comm.allgather(10 * comm.rank)
    letters = comm.alltoall([f"{comm.rank}→{other}" for other in range(comm.size)])
    return entries, letters, comm.allreduce(comm.rank)


run = ranks.run(everybody)
print(*run.results, sep="\n")
assert all(result[2] == 0 + 1 + 2 + 3 for result in run.results)
run.timeline()

# %% [markdown]
# ## Who waits?
#
# **Predict.** Rank 3 comes a tenth of a second late. Rank 0 is in time. In a first run rank 0 broadcasts a number; in a
# second run all ranks take part in an `allreduce`. Where does rank 0 have to wait?


# %%
def late(comm, operation):
    if comm.rank == 3:
        time.sleep(0.1)
    comm.bcast(7) if operation == "broadcast" else comm.allreduce(7)


course.predict(
    "late",
    answer=...,  # "a", "b" or "c"
    choices={"a": "in the broadcast", "b": "in the allreduce", "c": "in both"},
)


# %%
def rank_0_waits(run):
    calls = [event for event in run.events if event.rank == 0]
    return max(call.end - call.start for call in calls) > 0.05


runs = {name: ranks.run(late, name) for name in ("broadcast", "allreduce")}
waits = " and ".join(name for name, run in runs.items() if rank_0_waits(run))
where = {"broadcast": "a", "allreduce": "b", "broadcast and allreduce": "c"}
course.measured("late", answer=where.get(waits, "nowhere"))
title = f"Rank 0 waits for rank 3 in: {waits or 'neither'}"
course.draw.timelines(*runs.values(), titles=list(runs), title=title)

# %% [markdown]
# The sum needs rank 3's number, so no rank has the sum before rank 3 has come: in training, the slowest worker sets the
# pace. A short broadcast needs nothing from rank 3: rank 0 goes on.
#
# ## Big letters, small letters
#
# `Send` moves an array's memory as it is, a **buffer**. `send` *pickles*: it turns any object into bytes, and back.
# **Predict**: how many times as long does an array of a million numbers take through `send` as through `Send`? And a
# list of the same numbers through `send`?


# %%
def best_of_five(comm, thing, pickled):
    seconds = []
    for _ in range(5):
        comm.Barrier()  # a collective that moves nothing: all wait for all
        start = time.perf_counter()
        if comm.rank == 0:
            comm.send(thing, dest=1) if pickled else comm.Send(thing, dest=1)
        else:
            comm.recv(source=0) if pickled else comm.Recv(thing, source=0)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


course.predict("pickle", array=..., list=...)  # 1: as long as the array through Send

# %%
array = np.random.default_rng(0).random(1_000_000)
buffer = max(ranks.run(best_of_five, array, False, ranks=2).results)
pickle = max(ranks.run(best_of_five, array, True, ranks=2).results)
python = max(ranks.run(best_of_five, array.tolist(), True, ranks=2).results)
course.measured("pickle", array=pickle / buffer, list=python / buffer)

# %% [markdown]
# A pickled array is copied on both sides; a list is taken apart number by number. So: capital letters for arrays,
# small ones for short messages of any kind. (Two more exercises: `tree_broadcast`, `scatter_blocks`.)
#
# ## What does a message cost?
#
# Clocks of two computers never agree. So we measure a **ping-pong**: rank 0 sends, rank 1 sends back. Half of the
# shortest time is the time of one message. **Predict**: how many times as long do a thousand bytes take as 1 byte? And
# a million bytes?

# %% tags=["figure:04_ping_pong"]
from course_utils.lessons.messages import fit_alpha_beta, message_time, ping_pong
from course_utils.lessons.messages import ping_pong_sentence

course.predict("ping_pong", thousand=..., million=...)
# One ping-pong to warm up, then two that count:
ranks.run(ping_pong, nbytes=1000, repeats=2, ranks=2).timeline()


# %%
def sweep(comm, sizes):
    return [ping_pong(comm, nbytes) for nbytes in sizes]


sizes = [1, 10, 100, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000]
seconds = ranks.run(sweep, sizes, ranks=2).results[0]
thousand, million = seconds[3] / seconds[0], seconds[8] / seconds[0]
course.measured("ping_pong", thousand=thousand, million=million)
print(ping_pong_sentence(thousand, million))

# %% [markdown]
# A message has a fixed price, the **latency** $\alpha$, whatever is in it. Each byte adds its share $\beta$:
#
# $$T(n) = \alpha + \beta\, n$$
#
# `message_time(nbytes, alpha, beta)` is this line. Let us find the two numbers for your machine.

# %% tags=["figure:04_alpha_beta"]
from course_utils.lessons.messages import pictures

alpha, beta = fit_alpha_beta(sizes, seconds)
print(f"alpha = {1e6 * alpha:.1f} µs for a message")
print(f"beta = {1e9 * beta:.2f} ns for a byte: {1e-9 / beta:.1f} GB/s")
print(f"Below about {alpha / beta:,.0f} bytes a message costs mostly latency.")
pictures.alpha_beta(sizes, seconds, alpha, beta)

# %% [markdown]
# Not all points lie on the line: MPI changes its method with the size, and caches are faster than memory. A model
# with two numbers need not be true, only good enough to choose by. ($\alpha$ here contains Python and the course's own
# bookkeeping; MPI by itself needs less.)
#
# The model answers what you cannot try out here: a broadcast of 9.2 million weights of 4 bytes (VGG-11, a network of
# lessons 2 and 3) to 64 ranks takes the number of rounds, times the time of a round:

# %%
one_message = message_time(4 * 9.2e6, alpha, beta)
print(f"one after the other: {63 * one_message:.2f} s")
print(f"doubling:            {6 * one_message:.2f} s")

# %% [markdown]
# ## What to take with you
#
# - You can **send**: `Send` says to whom, `Recv` from whom; capital letters for arrays.
# - You **recognise** a deadlock: ranks wait for each other in a circle. Start the message with `Isend` or `Irecv`, and
#   wait later.
# - You **predict** a message's time: $\alpha + \beta\,n$. And you count rounds, not messages.
#
# Next: the [exercises](../exercises/04_messages.ipynb), five short functions. Then [lesson 5](05_allreduce.ipynb): how
# do $P$ machines add up their vectors?

# %%
ranks.stop()
