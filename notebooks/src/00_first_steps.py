# %% [markdown]
# # How do I run code on many processes?
#
# Suppose you want to train a modern language model. Take [Olmo 3 32B](https://huggingface.co/allenai/Olmo-3-1125-32B),
# which anyone can download. It has just over 32 billion **parameters**, the numbers that training adjusts. During
# training, each of them usually takes up 16 bytes of memory: 2 for the parameter itself, 2 for its gradient, and 12 for
# the optimizer. That makes 16 × 32 billion bytes, or 512 GB. But the GPUs it was trained on, NVIDIA H100s, have only 80
# GB each.
#
# Time is an even bigger problem. Olmo 3 32B was trained on 5.5 trillion **tokens**, which are words or pieces of words.
# Each token costs about six operations per parameter, two on the way through the network and four on the way back, so
# the whole training takes 6 × 32 billion × 5.5 trillion, or about $10^{24}$ operations. Say that an H100 manages $5
# \cdot 10^{14}$ operations per second, about half its peak for 2-byte numbers. That comes to two billion seconds, or
# more than 60 years.
#
# The only practical way out is to use many GPUs and to split both the memory and the work among them. The next cell
# calculates how much that helps. If you aren't reading this in JupyterLab yet, the [README](../README.md) says how to
# open it there. Then click into the cell and press Shift+Enter to run it. You can go through the whole page like that,
# cell by cell.

# %% tags=["figure:00_why_many"]
import course_utils as course
from course_utils.lessons.hybrid_and_sharded import estimate_training, planner_pictures

estimate = estimate_training("Olmo 3 32B")
planner_pictures.why_many(estimate)

# %% [markdown]
# Why does the optimizer need 12 bytes for each parameter? It keeps three numbers of 4 bytes: a more precise copy of the
# parameter, the average of its recent gradients, and the average of their squares.
#
# The picture comes from a planner, which you'll use yourself in lesson 11. The planner is more careful than we were. It
# also counts three things that we left out: the memory for the network's intermediate results (the **activations**),
# the work of comparing the tokens of a text with one another, and the time the GPUs spend exchanging data. With 8 GPUs,
# it assumes that some of the optimizer's numbers are kept in the machine's main memory. Even so, it's only an estimate.
# The real training took one and a half times as many GPU hours as the planner says, partly because the GPUs were slower
# than calculated, and partly because a run that long gets interrupted and has to be restarted.
#
# Still, with 512 GPUs a lifetime shrinks to two or three months. This course shows you how it is done. Usually you run
# many copies of the same program, one on each machine or GPU, and let them exchange what they have computed. You can
# learn nearly all of it on a laptop, because the copies can also run side by side on one computer. They are slower
# there, but the program works in the same way.
#
# In this lesson you'll start four processes from this notebook, run code on all of them, send a first message, and
# learn what to do when one of them fails or gets stuck.
#
# *40 minutes · builds on basic Python · 4 processes*
#
# ## Start four processes

# %%
ranks = course.start(4)

# %% [markdown]
# That's all it takes. Four Python processes are now running on your computer, alongside the one that runs this
# notebook. Each of them is called a **rank**, and each is a complete Python interpreter of its own, waiting for
# something to do. The line under the cell names the library that will carry messages between them, MPICH for example.
# The rest of the line is easier to see in a picture:

# %% tags=["figure:00_cores"]
ranks.picture()

# %% [markdown]
# A **core** is a part of the processor that works on one thing at a time. A blue bar doesn't mean that the rank is
# using that core, only that it may. The number on the right is the number of **threads** the rank computes with. A rank
# with one thread uses one core at a time, whichever happens to be free.
#
# If you have more ranks than cores, the ranks have to take turns. Everything in the course will still work, but it will
# take longer, and the lessons will tell you when that matters. You don't need a GPU.
#
# ## One cell, four processes
#
# An ordinary cell runs in the notebook. A cell that begins with the line `%%px` runs on every rank instead.
#
# Your operating system gives every running process a number, its process ID. We're about to ask every rank for its ID,
# and then the notebook for its own. Before we do that, write down what you expect. You'll find questions like this
# throughout the course, because a result is much easier to remember if you have tried to predict it. If you have no
# idea, leave the dots where they are and move on.
#
# **Predict.** How many different process IDs will we see, including the notebook's?

# %%
course.predict("processes", answer=...)  # replace the dots with a number

# %%
# %%px
import os

print(f"I am process {os.getpid()}")

# %% [markdown]
# The same cell ran four times, once on each rank, and every line is labelled with the rank that printed it. Anything
# that a `%%px` cell defines stays on the ranks for later cells, which is handy for trying things out.
#
# Most of the time, though, you'll run code on the ranks in a different way. You write a function, and `ranks.run` sends
# a copy of it to every rank and calls it there once. The return values come back to the notebook as a list, in the
# order of the ranks. The first argument of such a function is always `comm`, which `ranks.run` supplies. More on that
# in a moment.

# %% tags=["figure:00_orders"]
import os

from course_utils.lessons.first_steps import pictures


def process_id(comm):
    return os.getpid()


run = ranks.run(process_id)
different = {os.getpid()} | set(run.results)  # a set keeps each number only once
course.measured("processes", answer=len(different))  # next to your prediction
pictures.notebook_and_ranks(os.getpid(), run.results)

# %% [markdown]
# Five processes run your code: the notebook and four ranks. The notebook gives the orders and shows the results, and
# the ranks do the work.
#
# ## Who am I?
#
# All ranks run the same code. If they are to do different things, each has to know which one it is. So every rank has a
# number: 0, 1, 2 or 3. This number is also called its **rank**, and the number of ranks is called the **world size**.
#
# Both numbers belong to an object called the **communicator**, usually written `comm`. A communicator stands for a
# group of ranks that can send each other messages. The one for all the ranks is `MPI.COMM_WORLD`. **MPI**, the Message
# Passing Interface, is the standard that our processes use to talk to each other. It's the subject of lesson 4.

# %% tags=["nbval-check-output"]
# %%px
from mpi4py import MPI  # mpi4py is MPI for Python

comm = MPI.COMM_WORLD
print(f"I am rank {comm.rank} of {comm.size}")

# %% [markdown]
# A function for `ranks.run` doesn't have to look for its communicator. It gets one for all four ranks as its first
# argument.
#
# ## Nothing is shared
#
# Let's create a variable with the same name in the notebook and on the ranks. In the notebook first:

# %%
x = "mine"

# %% [markdown]
# And now on every rank:

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
        "a": "mine",
        "b": "30, because rank 3 was the last to write",
        "c": "[0, 10, 20, 30]",
    },
)

# %%
print(x)
course.measured("whose_x", answer="a" if x == "mine" else "b")

# %% [markdown]
# The notebook still has its own `x`. And the ranks? The next cell fetches the variable from all four of them:

# %% tags=["figure:00_nothing_shared"]
on_ranks = ranks.view.pull("x")
pictures.separate_variables("x", x, on_ranks)

# %% [markdown]
# So there are five variables that happen to have the same name, one in each process. A rank can't see another rank's
# `x`, or the notebook's. If the notebook sends a function to the ranks, whose `x` does it see?


# %% tags=["nbval-check-output"]
def show_x(comm):
    return x


print(ranks.run(show_x).results)
print(ranks.view.pull("x"))

# %% [markdown]
# `show_x` was written in the notebook, so it sees the notebook's `x`. `ranks.run` sent a copy along with the function,
# and the ranks' own variables are still what they were. From one rank to another, nothing travels by itself. Remember
# this sentence: **if one rank needs something that another rank has, the other rank has to send it.**
#
# ## A first message
#
# In the next function, rank 0 sends a word to rank 1, which passes it on to rank 2, and so on. `comm.send` takes a
# message and the number of the rank that it goes to. `comm.recv` takes the number of the rank that the message comes
# from, and waits until it has arrived. Each rank adds an exclamation mark before it passes the word on.


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
# Let's trace the first steps. Rank 0 receives nothing, because no rank comes before it, so it starts with "hello" and
# sends "hello!" to rank 1. Rank 1 hears "hello!", with one exclamation mark, and sends "hello!!" to rank 2.
#
# **Predict.** How many exclamation marks does rank 3 hear?

# %%
course.predict("exclamation_marks", answer=...)

# %%
run = ranks.run(whisper)
print(run.results)
course.measured("exclamation_marks", answer=run.results[3].count("!"))

# %% [markdown]
# Rank 3 hears three of them, one from each rank before it. The course records every message of a run, so we can also
# look at *when* this happened:

# %% tags=["figure:00_whisper"]
run.timeline()

# %% [markdown]
# Each row is a rank, time runs from left to right, and each arrow is a message. The dark bars are the calls to `send`,
# which take very little time when messages are this small. The lighter bars are the calls to `recv`. Hatching means
# that the rank is waiting for a message that hasn't been sent yet. In the plain part of the bar, the message has been
# sent and is being received. If your computer has only a few cores, a rank may spend most of that time waiting for a
# free core, so don't be surprised by a long plain bar or a late start. The sizes are in bytes, and they include about
# 15 bytes that Python adds to each message to describe the object.
#
# The three messages had to travel one after another, since no rank can pass on a word it hasn't heard yet. Each of the
# three steps is called a *round*, and the title of the picture counts them. Throughout the course, pictures like this
# one will show you where the time goes. Each one is drawn from the run you have just done, on your own machine.
#
# ## When a rank fails
#
# Sooner or later one of your ranks will raise an error. Better to see one now, before it matters:


# %%
def share(comm):
    pieces = 12
    return pieces // comm.rank


# %% [markdown]
# **Predict.** Which rank will fail?

# %%
course.predict("failing_rank", rank=...)

# %% tags=["raises-exception"]
ranks.run(share)

# %% [markdown]
# Rank 0 divided by zero, and the report names the rank, the error and the line. In an ordinary MPI program, the other
# ranks might now wait forever for rank 0, or the whole program might be aborted. Here the ranks survive and are ready
# for the next call:


# %% tags=["nbval-check-output"]
def introduce(comm):
    return f"rank {comm.rank} of {comm.size}"


course.answer("failing_rank", rank=0)
print(ranks.run(introduce).results)

# %% [markdown]
# ## When a rank hangs
#
# Another kind of failure is silent. In the next function, rank 3 waits for a message from rank 0, but rank 0 never
# sends one:


# %%
def wait_for_rank_0(comm):
    if comm.rank == 3:
        return comm.recv(source=0)


# %% [markdown]
# In an ordinary MPI program, rank 3 would wait forever. In this course, every rank keeps a record of what it is waiting
# for.
#
# **Predict.** What will you see here?

# %%
course.predict(
    "hang",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "nothing, because the cell never ends",
        "b": "a report of which rank is waiting for which",
        "c": "rank 3 receives None, and the cell ends normally",
    },
)

# %% tags=["raises-exception"]
ranks.run(wait_for_rank_0)

# %% tags=["figure:00_hang"]
course.answer("hang", answer="b")
ranks.waits()

# %% [markdown]
# The records of the four ranks reveal the mistake. Once rank 0 had returned without sending anything, the message could
# never arrive. A wait that can never end is a **deadlock**, and the course stops it and tells you why. In the picture,
# an arrow points from the waiting rank to the rank it was waiting for.
#
# Whenever you see a picture like this, ask two questions: what is this rank waiting for, and who should have sent it?
#
# What state are the ranks in now?

# %%
ranks.status()

# %% [markdown]
# All four ranks are free again. If anything else goes wrong, look it up here:
#
# | What you see | What to do |
# |---|---|
# | a cell that takes too long | Press the ■ button in the toolbar. It stops the cell on the ranks too. |
# | ranks that have died, or behave strangely | Run `ranks.restart()`. You get four new ranks without any variables. |
# | a notebook that doesn't respond at all | Choose *Kernel → Restart Kernel* in the menu, and run the page again. |
#
# ## How you will practise
#
# Every lesson has a notebook with exercises. In an exercise you write the body of a function, and `course.check` tries
# it out, first on **virtual ranks**, which are simulated inside the notebook, and then on your real ones. In the
# exercise `rank_squared`, for example, each rank has to return the square of its own number. Until you have written
# something, the check shows a circle:


# %%
def rank_squared(comm):
    raise NotImplementedError("your turn")


course.check("rank_squared", rank_squared)

# %% [markdown]
# If your answer is wrong, the check shows a cross. Beside it you see the first rank that was wrong, what it returned
# and what it should have returned, along with a question to help you find the mistake:


# %%
def rank_squared(comm):
    return 2 * comm.rank


course.check("rank_squared", rank_squared)

# %% [markdown]
# If you're stuck, ask for a hint. The first one is a question, and the second one nearly gives the answer away.

# %%
course.hint("rank_squared")

# %% [markdown]
# You don't have to correct the function here. You'll write it in the exercise notebook, where a correct answer gets a
# tick. When you're done with a notebook, stop its ranks to free their memory:

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can start ranks: separate Python processes that share no variables and each know their own number. You can run a
# function on all of them and get the results back. When a rank fails or hangs, you know where to look and how to carry
# on.
#
# The [exercises](../exercises/00_first_steps.ipynb) take another eight minutes. The map below shows where you can go
# after that. An arrow leads from each lesson to those that build on it. A dashed arrow joins two lessons that you can
# take in either order:
#
# ![Map of the course, which lesson builds on which. One machine: 1 on 0, 2 on 1, 3 on 2. Messages: 4 on 0, 5 on 4. Data
# parallelism: 6 on 2 and 5, 7 on 6, 8 on 6. Model and pipeline parallelism: 9 on 6, 10 on 9, 17 on 9, 19 on 3 and 9.
# Mixtures: 11 on 7 and 10, 12 on 11, 16 on 11. At work: 13 on 7, 14 on 3 and 7, 18 on 11 and 13. All of it: 15 on 8,
# 12, 13 and 14. Lessons 16, 17, 18 and 19 may be read before or after 15, whose exercises end with two
# capstones.](../docs/map.png)
#
# If you're not sure where to go, take the lessons in order. If you'd rather see processes talk first, start with
# [lesson 4](04_messages.ipynb) and [lesson 5](05_allreduce.ipynb). Then come back to lessons [1](01_sgd.ipynb) and
# [2](02_autodiff_and_optimizers.ipynb), which cover training on one machine, before you start [lesson
# 6](06_data_parallel.ipynb). You won't need [lesson 3](03_hardware.ipynb) before [lesson 14](14_profiling.ipynb).
#
# **To read**
#
# - Hugging Face's [Ultra-Scale Playbook](https://huggingface.co/spaces/nanotron/ultrascale-playbook) (2025) shows how
#   large language models are trained on thousands of GPUs.
# - The package that starts your ranks is [ipyparallel](https://ipyparallel.readthedocs.io/). You will meet it in lesson
#   4.
