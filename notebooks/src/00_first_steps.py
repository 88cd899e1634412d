# %% [markdown]
# # How do I run code on many processes?
#
# Suppose you want to train a present-day language model. Take [Olmo 3](https://huggingface.co/allenai/Olmo-3-1125-32B),
# which anyone can download. It has 32 billion **parameters**, the numbers that training adjusts. During training, each
# of them takes up 16 bytes of memory: 2 for the parameter itself, 2 for its gradient, and 12 for three more numbers
# that a common optimizer keeps. That makes 16 × 32 billion bytes, or 512 GB. A large GPU, such as NVIDIA's H100, has 80
# GB.
#
# Time is an even bigger problem. Olmo 3 was trained on 5.5 trillion **tokens**, which are words or pieces of words.
# Each token costs about six operations per parameter, so the whole training takes 6 × 32 billion × 5.5 trillion, or
# about $10^{24}$ operations. An H100 can do about $5 \cdot 10^{14}$ operations per second, which is half of what its
# data sheet promises. It would need two billion seconds, and that is more than 60 years.
#
# The only practical way out is to use many GPUs and to split both the memory and the work among them. The next cell
# calculates how much that helps. If this page is open in JupyterLab, click into the cell and press Shift+Enter to run
# it. You can go through the whole page like this, cell by cell.

# %% tags=["figure:00_why_many"]
import course_utils as course
from course_utils.lessons.hybrid_and_sharded import estimate_training, planner_pictures

estimate = estimate_training("Olmo 3 32B")
planner_pictures.why_many(estimate)

# %% [markdown]
# The picture comes from a planner that you will use yourself in lesson 11. It also counts the **activations**, the
# intermediate results of a network, which we left out above. All its numbers are calculated for GPUs that never stop.
# The real training needed half as much time again, because on a large machine something always breaks. Even so, the
# many GPUs turn a lifetime into a few months. This course is about how they do that.
#
# Training on many machines means running the same program many times, once on each machine or GPU, and letting the
# copies exchange what they have computed. You can learn nearly all of it on a laptop, because the program stays the
# same when its copies run side by side on one computer. Only the messages between them take a different time.
#
# In this lesson you will start four processes from this notebook, run code on all of them, send a first message, and
# learn what to do when one of them fails or gets stuck.
#
# *40 minutes · builds on basic Python · 4 processes*
#
# ## Start four processes

# %%
ranks = course.start(4)

# %% [markdown]
# That is all it takes. Four Python processes are now running on your computer, alongside the one that runs this
# notebook. Each of them is called a **rank**, and each is a complete, separate Python that is waiting for something to
# do. The line under the cell also names the library that will carry messages between them, such as MPICH.
#
# What do they have to work with? This picture shows your machine right now:

# %% tags=["figure:00_cores"]
ranks.picture()

# %% [markdown]
# A **core** is a part of the processor that can run one thing at a time. A blue bar means that the rank may use that
# core. The number of **threads** at the right is the number of cores that the rank can use at the same time. With one
# thread it may run on any of its cores, but only on one at a time.
#
# If you have more ranks than cores, the ranks take turns. Everything in the course will still work. It will just take
# longer, and the lessons will tell you when that matters. You do not need a GPU.
#
# ## One cell, four processes
#
# An ordinary cell runs in the notebook. A cell that begins with the line `%%px` runs on every rank instead.
#
# Your operating system gives every running process a number, its process ID. The next cell asks all the ranks for
# theirs, and after that we will ask the notebook as well. Before you run it, write down what you expect. You will find
# such questions throughout the course, because you remember a result much better if you have first tried to predict it.
#
# **Predict.** Counting the notebook's, how many different numbers will we see?

# %%
course.predict("processes", answer=...)  # replace the dots with a number

# %%
# %%px
import os

print(f"I am process {os.getpid()}")

# %% [markdown]
# The same cell ran four times, once on each rank, and every line is labelled with the rank that printed it. What such a
# cell defines on the ranks stays there for later cells. This is handy for trying something out.
#
# For everything else there is a second way. You write a function, and `ranks.run` sends a copy of it to every rank and
# calls it there once. The notebook gets the return values back as a list, in the order of the ranks. The function
# always has a first argument, `comm`, which we will need in a moment.

# %% tags=["figure:00_orders"]
import os

from course_utils.lessons.first_steps import pictures


def process_number(comm):
    return os.getpid()


run = ranks.run(process_number)
different = {os.getpid(), *run.results}  # a set keeps each number only once
course.measured("processes", answer=len(different))
pictures.notebook_and_ranks(os.getpid(), run.results)

# %% [markdown]
# Five processes run your code: the notebook and four ranks. The notebook gives the orders and shows the results, and
# the ranks do the work.
#
# ## Who am I?
#
# All ranks run the same code. To do different things, each of them has to know which one it is. So every rank has a
# number, 0, 1, 2 or 3, and this number is also called its **rank**. The number of ranks is called the **world size**.
#
# Both numbers belong to an object called the **communicator**, usually written `comm`. It stands for a group of ranks
# that can send each other messages. The one that contains all ranks is `MPI.COMM_WORLD`. **MPI**, the Message Passing
# Interface, is the standard that our processes use to talk to each other. It is the subject of lesson 4.

# %% tags=["nbval-check-output"]
# %%px
from mpi4py import MPI

comm = MPI.COMM_WORLD
print(f"I am rank {comm.rank} of {comm.size}")

# %% [markdown]
# In a function for `ranks.run`, you do not have to look the communicator up. The first argument `comm` is a
# communicator of the same four ranks.
#
# ## Nothing is shared
#
# Let us give the notebook and the ranks a variable with the same name. First in the notebook:

# %%
x = "mine"

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
        "a": "mine",
        "b": "30, because rank 3 was the last to write",
        "c": "[0, 10, 20, 30]",
    },
)

# %%
print(x)
course.measured("whose_x", answer={"mine": "a", "30": "b"}.get(str(x), "c"))

# %% tags=["nbval-check-output"]
# %%px
print(x)

# %% tags=["figure:00_nothing_shared"]
values = {"notebook": x} | {f"rank {rank}": 10 * rank for rank in range(4)}
pictures.separate_variables("x", values)

# %% [markdown]
# There are five variables that happen to have the same name, one in each process. A rank cannot see the `x` of a
# different rank, and it cannot see the notebook's. So remember this sentence: **if another rank needs to know
# something, you have to send it.**
#
# ## A first message
#
# In the next function, rank 0 sends a word to rank 1, which passes it on to rank 2, and so on. `comm.send` says which
# rank the message goes to. `comm.recv` says which rank it comes from, and waits until it has arrived. Each rank adds an
# exclamation mark before it passes the word on.


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
# Let us trace the first steps. Rank 0 does not receive anything, because no rank comes before it. It sends "hello!" to
# rank 1. So rank 1 hears "hello!", with one exclamation mark, and sends "hello!!" to rank 2.
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
# Each row is a rank, time runs from left to right, and each arrow is a message. A hatched bar means that a rank is
# waiting for a message that has not been sent yet. A solid bar means that the message is on its way. The labels give
# the size in bytes. Python turns "hello!" into 21 bytes, because it also has to note what kind of object this is.
#
# The three messages could not travel at the same time, because no rank can pass on a word that it has not heard. This
# is what the title means by three rounds. Throughout the course, pictures like this one will show you where the time
# goes. Each one is drawn from the run you have just made, on your own machine.
#
# ## When a rank fails
#
# Sooner or later one of your ranks will raise an error. Better to see one now, before it matters.
#
# **Predict.** Which rank will fail in the next function?

# %%
course.predict("failing_rank", rank=...)


# %% tags=["raises-exception"]
def share(comm):
    pieces = 12
    return pieces // comm.rank


ranks.run(share)

# %% [markdown]
# Rank 0 divided by zero, and the report names the rank, the error and the line. In an ordinary MPI program, the other
# ranks might now wait forever for a message from rank 0, or the whole program would be ended. Here the ranks survive
# and are ready for the next call:


# %% tags=["nbval-check-output"]
def introduce(comm):
    return f"rank {comm.rank} of {comm.size}"


course.answer("failing_rank", rank=0)
print(ranks.run(introduce).results)

# %% [markdown]
# ## When a rank hangs
#
# The other kind of failure is silent. In the next function, rank 3 waits for a message from rank 0, but rank 0 never
# sends one. An ordinary MPI program would let rank 3 wait forever, and your notebook with it. But here each rank also
# reports what it is doing.
#
# **Predict.** What will you see?

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
def wait_for_rank_0(comm):
    if comm.rank == 3:
        return comm.recv(source=0)


ranks.run(wait_for_rank_0)

# %% tags=["figure:00_hang"]
course.answer("hang", answer="b")
ranks.waits()

# %% [markdown]
# When rank 0 returned without sending anything, it was certain that the message could never arrive. The course then
# ended the wait and gave you the report. In the picture, an arrow points from the waiting rank to the rank it is
# waiting for.
#
# Whenever you see such a picture, ask two questions. What is this rank waiting for, and who should have sent it?

# %%
ranks.status()

# %% [markdown]
# All four ranks are free again. If something else ever goes wrong, look for it here:
#
# | What you see | What to do |
# |---|---|
# | a cell that takes too long | Press the ■ button above the page. It stops the cell on the ranks too. |
# | ranks that are gone, or behave strangely | Run `ranks.restart()`. You get four new ranks without any variables. |
# | a notebook that does not respond at all | Choose *Kernel → Restart Kernel* in the menu, and start again. |
#
# ## How you will practise
#
# Every lesson has a notebook with exercises. In an exercise you write the body of a function, and `course.check` tries
# it out. It first uses simulated ranks inside the notebook, called **virtual ranks**, and then your real ones. Until
# you have written something, it shows a circle:


# %%
def rank_squared(comm):
    raise NotImplementedError("your turn")


course.check("rank_squared", rank_squared)

# %% [markdown]
# If the answer is wrong, it shows a cross. Next to it you see which rank was wrong, what it returned and what it should
# have returned, with a question that helps you to find the mistake:


# %%
def rank_squared(comm):
    return 2 * comm.rank


course.check("rank_squared", rank_squared)

# %% [markdown]
# If you are stuck, ask for a hint. The first one is a question, and the second one nearly gives the answer away.

# %%
course.hint("rank_squared")

# %% [markdown]
# The last cell stops the ranks, so that they do not go on taking up memory. Do this whenever you are done with a
# notebook.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can start ranks, which are separate Python processes that share nothing and know their own number. You can run a
# function on all of them and get the results back. When a rank fails or hangs, you know where to look and how to carry
# on.
#
# The [exercises](../exercises/00_first_steps.ipynb) take another eight minutes. After that, this map shows where you
# can go. An arrow leads from each lesson to those that build on it:
#
# ![Map of the course, which lesson builds on which. One machine: 1 on 0, 2 on 1, 3 on 2. Messages: 4 on 0, 5 on 4.
# Data parallelism: 6 on 2 and 5, 7 on 6, 8 on 6. Model and pipeline parallelism: 9 on 6, 10 on 9, 17 on 9. Mixtures: 11
# on 7 and 10, 12 on 11, 16 on 11. At work: 13 on 7, 14 on 3 and 7. All of it: 15 on 8, 12, 13 and 14.](../docs/map.png)
#
# If you are not sure, take the lessons in order. If you would rather see processes talk first, there is a shortcut. Go
# straight to [lesson 4](04_messages.ipynb) and [lesson 5](05_allreduce.ipynb), and come back to lessons
# [1](01_sgd.ipynb) and [2](02_autodiff_and_optimizers.ipynb), about training on one machine, before you begin [lesson
# 6](06_data_parallel.ipynb). You will not need [lesson 3](03_hardware.ipynb) before [lesson 14](14_profiling.ipynb).
