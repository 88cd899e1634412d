# %% [markdown]
# # How do I run code on many processes?
#
# Suppose that you want to train a language model like those of today. Take [Olmo
# 3](https://huggingface.co/allenai/Olmo-3-1125-32B), which anyone may download. It has 32 billion **parameters**, the
# numbers that training adjusts. During training, each of them takes up 16 bytes of memory: 2 for the parameter itself,
# 2 for its gradient, and 12 for what the optimizer has to remember. That makes 16 × 32 billion bytes, or 512 GB, but a
# large GPU has only 80 GB.
#
# The time is an even bigger problem. Olmo 3 was trained on 5.5 trillion **tokens**, which are words or pieces of words.
# Each token costs about six operations per parameter, so the whole training takes 6 × 32 billion × 5.5 trillion, or
# about $10^{24}$ operations. A large GPU manages about $5 \cdot 10^{14}$ of them per second. It would be busy for two
# billion seconds, which is more than 60 years.
#
# The only way out is to use many GPUs, and to let them share both the memory and the work. The next cell calculates how
# much that helps. Click into it and press Shift+Enter to run it. You can go through the whole page like this, cell by
# cell.

# %% tags=["figure:00_why_many"]
import course_utils as course
from course_utils.lessons.hybrid_and_sharded import estimate_training, planner_pictures

estimate = estimate_training("Olmo 3 32B")
planner_pictures.why_many(estimate)

# %% [markdown]
# The picture comes from a planner that you will use yourself in lesson 11. It counts more carefully than we did above,
# and it finds that 512 GPUs can do in two months what would take one GPU a lifetime. This course is about how they do
# that.
#
# Training on many machines means running the same program many times, once on each machine or GPU, and letting the
# copies exchange what they have computed. You can learn nearly all of it on a laptop, because a program hardly notices
# whether its copies run on 512 machines or side by side on one.
#
# In this lesson you will start four processes from this notebook, run code on all of them, send a first message, and
# find out what happened when one of them fails or gets stuck.
#
# *30 minutes · builds on basic Python · 4 ranks*
#
# ## Start four processes

# %%
ranks = course.start(4)

# %% [markdown]
# That was the hardest part. Four Python processes are now running on your computer, next to the one that runs this
# notebook. Each of them is called a **rank**, and each is a complete, separate Python that is waiting for something to
# do.
#
# What can they work with? This picture shows your machine right now:

# %% tags=["figure:00_cores"]
ranks.picture()

# %% [markdown]
# A **core** is a part of the processor that can run one thing at a time. Each row of the picture is a rank, and a blue
# bar means that the rank may use that core. The number of **threads** tells you on how many cores a rank computes at
# once. If you have more ranks than cores, the ranks take turns. Everything in the course still works then; it just
# takes longer, and the lessons tell you when that matters. You do not need a GPU.
#
# ## One cell, four processes
#
# An ordinary cell runs in the notebook. A cell that begins with the line `%%px` runs on every rank instead.
#
# Your operating system gives each running process a number. The next cell asks every rank for its own, and after that
# we will ask the notebook as well.
#
# **Predict.** How many different numbers will we get, including the notebook's?

# %%
course.predict("processes", answer=...)  # replace the dots with a number

# %%
# %%px
import os

print(f"I am process {os.getpid()}")

# %% [markdown]
# The same cell ran four times, at the same time, and each line of the output is labelled with the rank that printed it.
# Whatever such a cell defines on the ranks stays there for later cells.
#
# There is a second way to run code on the ranks, and you will use it most of the time. You write a function, and
# `ranks.run` calls it once on every rank. What the four calls return comes back to the notebook as a list, in the order
# of the ranks:

# %%
import os


def process_number(comm):
    return os.getpid()


run = ranks.run(process_number)
different = {os.getpid(), *run.results}  # a set keeps each number only once
print(f"notebook: {os.getpid()}, ranks: {run.results}")
course.measured("processes", answer=len(different))

# %% [markdown]
# There are five processes: the notebook and four ranks. The notebook gives the orders and shows the results, and the
# ranks do the work.
#
# ## Who am I?
#
# All ranks run the same code. If they are to do different things, each of them has to know which one it is. For that,
# every rank has a number, which is also called its **rank**: 0, 1, 2 or 3. The number of ranks is called the **world
# size**.
#
# Both numbers belong to an object called the **communicator**, usually written `comm`. It stands for a group of ranks
# that can send each other messages. The one that contains all ranks is `MPI.COMM_WORLD`. MPI, the Message Passing
# Interface, is the standard by which our processes talk, and lesson 4 is about it.

# %% tags=["nbval-check-output"]
# %%px
from mpi4py import MPI

comm = MPI.COMM_WORLD
print(f"I am rank {comm.rank} of {comm.size}")

# %% [markdown]
# A function for `ranks.run` does not have to look the communicator up. It receives one for the same four ranks as its
# first argument, as `process_number` did above.
#
# ## Nothing is shared
#
# Let us give the notebook and the ranks a variable with the same name. First in the notebook:

# %%
x = "the notebook's own"

# %% [markdown]
# Now on every rank:

# %%
# %%px
x = 10 * comm.rank

# %% [markdown]
# **Predict.** What will the notebook print if we ask it for `x` now?

# %%
course.predict(
    "whose_x",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "the notebook's own",
        "b": "30, because rank 3 was the last to write",
        "c": "[0, 10, 20, 30]",
    },
)

# %%
print(x)
course.measured("whose_x", answer="a" if x == "the notebook's own" else "b or c")

# %% [markdown]
# There are five variables that happen to have the same name, one in each process. A rank cannot see the `x` of another
# rank, and it cannot see the notebook's. This is the most important sentence of the lesson: **if another rank needs to
# know something, you have to send it.**
#
# ## A first message
#
# In the next function, rank 0 sends a word to rank 1, which passes it on to rank 2, and so on. `comm.send` names the
# rank that is to get the message, and `comm.recv` names the rank it should come from. Each rank adds an exclamation
# mark before it passes the word on.


# %%
def whisper(comm):
    if comm.rank == 0:
        heard = "hello"
    else:
        heard = comm.recv(source=comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.send(heard + "!", dest=comm.rank + 1)
    return heard


# %% [markdown]
# Follow the beginning with your finger. Rank 0 skips the `recv`, because nobody comes before it. It sends "hello!" to
# rank 1. So rank 1 hears "hello!", with one exclamation mark, and sends "hello!!" to rank 2.
#
# **Predict.** How many exclamation marks arrive at rank 3?

# %%
course.predict("exclamation_marks", answer=...)

# %%
run = ranks.run(whisper)
print(run.results)
course.measured("exclamation_marks", answer=run.results[3].count("!"))

# %% [markdown]
# Rank 3 hears three of them, because it receives the word and does not pass it on. The course records every message, so
# we can also look at *when* this happened:

# %% tags=["figure:00_whisper"]
run.timeline()

# %% [markdown]
# Each row is a rank, time runs from left to right, and each arrow is a message. The label of a message also gives its
# size in bytes. A hatched bar means that the rank is waiting.
#
# The three messages could not travel at the same time, because no rank can pass on what it has not heard yet. Rank 3
# could do nothing useful until the word had gone through all the others. Pictures like this one will show you
# throughout the course where the time goes. Each is drawn from the run that you have just made, on your machine.
#
# ## When a rank fails
#
# Sooner or later one of your ranks will raise an error. It is better to have seen that once before it matters, so let
# us cause one. Which rank divides by zero here?


# %% tags=["raises-exception"]
def share(comm):
    pieces = 12
    return pieces // comm.rank


ranks.run(share)

# %% [markdown]
# The report names the rank, the error and the line. Nothing else is broken. The ranks are still there, and they are
# ready for the next call:


# %% tags=["nbval-check-output"]
def introduce(comm):
    return f"rank {comm.rank} of {comm.size}"


print(ranks.run(introduce).results)

# %% [markdown]
# ## When a rank hangs
#
# The other kind of accident makes no noise. In the next function, rank 3 waits for a message from rank 0, but rank 0
# never sends one. Plain MPI would let rank 3 wait forever, and your notebook with it. You would have to guess what is
# going on.
#
# **Predict.** What will you see here, where every message is recorded?

# %%
course.predict(
    "hang",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "nothing: the cell never ends",
        "b": "a report of which rank is waiting for which",
        "c": "rank 3 receives None, and the cell ends normally",
    },
)


# %% tags=["raises-exception"]
def wait_for_rank_0(comm):
    if comm.rank == 3:
        return comm.recv(source=0)


ranks.run(wait_for_rank_0)

# %% tags=["figure:00_hang"]
course.answer("hang", answer="b")
ranks.waits()

# %% [markdown]
# In this course every rank reports what it is waiting for. Rank 0 had already returned, so the message could never
# arrive. As soon as that was certain, the wait was ended and you got the report. In the picture, an arrow points from
# the waiting rank to the rank it is waiting for.
#
# Whenever you see such a picture, ask two questions: what is this rank waiting for, and who should have sent it?

# %%
ranks.status()

# %% [markdown]
# All four ranks are ready again. If anything else goes wrong one day, try these in turn:
#
# | What you see | What to do |
# |---|---|
# | a cell that takes too long | Press the ■ button above the page. It stops the cell on the ranks too. |
# | ranks that are gone, or behave strangely | Run `ranks.restart()`. You get four fresh ranks without any variables. |
# | a notebook that does not react at all | Choose *Kernel → Restart Kernel* in the menu, and begin again at the top. |
#
# ## How you will practise
#
# Every lesson has a notebook with exercises. In an exercise you write the body of a function, and `course.check` runs
# it on the ranks, with new numbers every time. As long as you have not written anything, it shows a circle:


# %%
def rank_squared(comm):
    raise NotImplementedError("your turn")


course.check("rank_squared", rank_squared)

# %% [markdown]
# If the answer is wrong, it shows a cross. Next to it you can read which rank was wrong, what it returned, what it
# should have returned, and a question that helps you find the mistake:


# %%
def rank_squared(comm):
    return 2 * comm.rank


course.check("rank_squared", rank_squared)

# %% [markdown]
# If you are stuck, ask for a hint. The first one is a question. If you call `course.hint` again, it all but gives the
# answer away.

# %%
course.hint("rank_squared")

# %% [markdown]
# Finally, `course.progress()` shows what you have solved in the whole course, and how long it took you. It remembers
# this from one day to the next.

# %%
course.progress()

# %% [markdown]
# When you are done with a notebook, stop its ranks, so that they do not occupy your computer:

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can start ranks, which are separate Python processes that share nothing and know their own number. You can run a
# function on all of them and get the results back. When a rank fails or hangs, you know where to look, and how to carry
# on.
#
# The [exercises](../exercises/00_first_steps.ipynb) take about eight minutes. After that, this map shows where you can
# go. An arrow means that a lesson builds on another one:
#
# ![Map of the course, which lesson builds on which. One machine: 1 on 0, 2 on 1, 3 on 2. Messages: 4 on 0, 5 on 4.
# Data parallelism: 6 on 2 and 5, 7 on 6, 8 on 6. Model and pipeline parallelism: 9 on 6, 10 on 9, 17 on 9. Mixtures: 11
# on 7 and 10, 12 on 11, 16 on 11. At work: 13 on 7, 14 on 3 and 7. All of it: 15 on 8, 12, 13 and 14.](../docs/map.png)
#
# If you would rather see processes talk first, take the short way. Go straight to [lesson 4](04_messages.ipynb) and
# [lesson 5](05_allreduce.ipynb), and come back to lessons [1](01_sgd.ipynb) and [2](02_autodiff_and_optimizers.ipynb),
# about training on one machine, before you begin [lesson 6](06_data_parallel.ipynb). You will not need [lesson
# 3](03_hardware.ipynb) before [lesson 14](14_profiling.ipynb).
