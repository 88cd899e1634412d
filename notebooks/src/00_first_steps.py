# %% [markdown]
# # What do I have here?
#
# After this lesson you can **start** four Python processes from a notebook, **run** code on all of them, and
# **get going again** when one of them fails or hangs.
#
# *30 minutes · builds on basic Python · 4 ranks*
#
# The way through the course:
#
# ![Map of the course, which lesson builds on which. One machine: 1 on 0, 2 on 1, 3 on 2. Messages: 4 on 0, 5 on 4.
# Data parallelism: 6 on 2 and 5, 7 on 6, 8 on 6. Model and pipeline parallelism: 9 on 6, 10 on 9, 17 on 9. Mixtures:
# 11 on 7 and 10, 12 on 11, 16 on 11. At work: 13 on 7, 14 on 3 and 7. All of it: 15 on 8, 12, 13 and
# 14.](../docs/map.png)
#
# The boxes below are cells of code. Click into the first one and press Shift and Enter: it runs, and the next one is
# ready. Go on like this, cell by cell, to the end of the page.

# %%
import course_utils as course

ranks = course.start(4)

# %% [markdown]
# That was the hardest part. The line above says what you got: how many processes, which library carries their messages
# (all such libraries speak **MPI**, a standard: lesson 4), how many cores they may use, with how many threads (the
# picture below, and lesson 3), and whether there is a GPU.
#
# Each of these processes is called a **rank**. It is a whole Python of its own, waiting for something to do.

# %% tags=["figure:00_cores"]
ranks.picture()

# %% [markdown]
# This is your machine, now. A **core** does one thing at a time. A blue bar says that this rank *may* use this core. A
# **thread** is a worker inside a process, and uses one core at a time; the picture says how many each rank has. With
# more ranks than cores, ranks take turns: everything in this course still *works*, some of it takes longer. A lesson
# says so where it matters.
#
# No GPU? None is needed.

# %% [markdown]
# ## One cell, four processes
#
# A cell runs here, in the notebook. But a cell whose first line is `%%px` runs on every rank.
#
# **Predict.** The next cell asks each rank for its process number. The notebook is a process too. How many
# different processes are at work, the notebook included?

# %%
course.predict("processes", answer=...)  # replace the dots with a number

# %%
# %%px
import os

print(f"I am process {os.getpid()}")

# %% [markdown]
# Four answers, and each is labelled with the rank that gave it. The same cell ran four times, at the same time. What a
# cell defines on the ranks stays there for the cells after it.
#
# Let us count, together with the notebook itself. `ranks.run` calls a function once on every rank and brings
# the results home, in rank order.

# %%
import os


def process_number(comm):  # comm: see the next section
    return os.getpid()


run = ranks.run(process_number)
different = {os.getpid(), *run.results}  # a set: each number once
course.measured("processes", answer=len(different))

# %% [markdown]
# Five: the notebook and four ranks. The notebook gives orders and shows results. The ranks do the work.
#
# ## Who am I?
#
# All ranks run the same code. What makes them different is one number, which is also called **rank**: 0, 1, 2 or 3. The
# number of ranks is the **world size**. The object that knows both is the **communicator**, `comm`.

# %% tags=["nbval-check-output"]
# %%px
from mpi4py import MPI

comm = MPI.COMM_WORLD
print(f"I am rank {comm.rank} of {comm.size}")

# %% [markdown]
# ## Nothing is shared
#
# Now the notebook and the ranks all have a variable called `x`.

# %%
x = "the notebook's own"

# %%
# %%px
x = 10 * comm.rank

# %% [markdown]
# **Predict.** The next cell prints `x` in the notebook. What will it say?

# %%
course.predict(
    "whose_x",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "the notebook's own",
        "b": "30, because rank 3 wrote last",
        "c": "[0, 10, 20, 30]",
    },
)

# %%
print(x)
course.measured("whose_x", answer="a" if x == "the notebook's own" else "b or c")

# %% [markdown]
# Five variables, one name. A rank cannot see another's `x`, nor the notebook's. That is the whole idea of this
# kind of parallel program: **what another rank should know, you must send.**
#
# ## A first message
#
# A function for `ranks.run` gets the communicator as its first argument. Here rank 0 sends a text to rank 1, which
# passes it on to rank 2, and so on to the last one.


# %%
def whisper(comm):
    heard = "hello" if comm.rank == 0 else comm.recv(source=comm.rank - 1)
    if comm.rank + 1 < comm.size:
        comm.send(heard + "!", dest=comm.rank + 1)
    return heard


# %% [markdown]
# **Predict.** How many exclamation marks arrive at rank 3?

# %%
course.predict("exclamation_marks", answer=...)

# %%
run = ranks.run(whisper)
print(run.results)
course.measured("exclamation_marks", answer=run.results[3].count("!"))

# %% tags=["figure:00_whisper"]
run.timeline()

# %% [markdown]
# Each row is a rank, time runs to the right, each arrow is a message. (In a *round* each rank sends at most one
# message, and receives at most one. A word takes some bytes more than its letters. Lesson 4 explains both.) Rank 3
# could do nothing but wait: its news came through all the others. All through the course, such pictures will tell you
# where time goes. Each one is drawn from the run above it, on your machine.

# %% [markdown]
# ## When a rank fails
#
# Sooner or later one rank raises an error. Let us make it happen: who divides by zero here?


# %% tags=["raises-exception"]
def share(comm):
    pieces = 12
    return pieces // comm.rank


ranks.run(share)

# %% [markdown]
# The report names the rank, the error and the line. Nothing else broke: the ranks are still there, and take the next
# call.


# %% tags=["nbval-check-output"]
def introduce(comm):
    return f"rank {comm.rank} of {comm.size}"


print(ranks.run(introduce).results)

# %% [markdown]
# ## When a rank hangs
#
# The other accident is quieter. Rank 3 waits for a message from rank 0, and rank 0 has nothing to say.
#
# **Predict.** What will you see?

# %%
course.predict(
    "hang",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "nothing, for ever",
        "b": "at once, who waits for whom",
        "c": "rank 3 gets None",
    },
)


# %% tags=["raises-exception"]
def wait_for_nobody(comm):
    if comm.rank == 3:
        return comm.recv(source=0)


ranks.run(wait_for_nobody)

# %% tags=["figure:00_hang"]
course.measured("hang", answer="b")
ranks.waits()

# %% [markdown]
# MPI by itself would have let rank 3 wait for ever, and you with it. Here every rank tells what it waits for. As soon
# as that message can never come, the waiting ends, and a report says which rank waits where. In the picture an arrow
# leads from the rank that waits to the rank that it waits for.
#
# To read such a picture, ask: *what is this rank waiting for, and who should have sent it?*

# %%
ranks.status()

# %% [markdown]
# All is well again. If something else goes wrong one day, there are two more ways out:
#
# | You see | Do |
# |---|---|
# | a cell that takes too long | the ■ button above: it stops the cell on the ranks too |
# | the ranks are gone, or act strangely | `ranks.restart()`: four fresh ones; their variables are lost |
#
# These two mend everything that you can break here.

# %% [markdown]
# ## How you will practise
#
# Each lesson has an exercise notebook. There you write the body of a function, and `course.check` runs it with numbers
# that are new every time: first on up to 64 *virtual ranks*, which share one process (lesson 5), then on your own
# ranks. A function that is not written yet gets a circle:


# %%
def rank_squared(comm):
    raise NotImplementedError("your turn")


course.check("rank_squared", rank_squared)

# %% [markdown]
# A wrong answer gets a cross. Beside the cross you read the rank, its result, the expected result, and a question that
# leads on.


# %%
def rank_squared(comm):
    return 2 * comm.rank


course.check("rank_squared", rank_squared)

# %% [markdown]
# Stuck? `course.hint` asks you a question. Call it again, and it nearly gives the answer. `course.progress()` then
# shows the whole course: what you have solved so far, and the minutes that you have spent. It remembers across
# notebooks and days.

# %%
course.hint("rank_squared")
course.progress()

# %% [markdown]
# ## What you take with you
#
# You can **start** ranks: whole Python processes that share nothing and know their number. You can **run** one
# function on all of them and get the results in rank order. And when a rank fails or hangs, the report says which rank
# and where, and you **get going again**.
#
# Now your turn: [the exercises](../exercises/00_first_steps.ipynb). Then [lesson 1](01_sgd.ipynb) asks how a network
# learns; ranks come back in [lesson 4](04_messages.ipynb).

# %%
ranks.stop()
