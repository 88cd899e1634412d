# %% [markdown]
# # Exercises: how do I run code on many processes?
#
# These two short functions show you how an exercise works. You write the body of the function, run its cell, and then
# run the cell below it, which checks your answer. You can check as often as you like, and nothing can break.
#
# *8 minutes · [lesson 0](../notebooks/00_first_steps.ipynb) · 4 ranks*

# %%
import course_utils as course

ranks = course.start(4)

# %% [markdown]
# ## The square of each rank
#
# Every rank runs this function, and every rank returns one number, the square of its own rank. With four ranks the
# results are 0, 1, 4 and 9, and with three ranks they are 0, 1 and 4.
#
# In the cell, `comm: "MPI.Intracomm"` tells you that the argument `comm` is a communicator, and `-> int` that the
# function has to return a whole number. Replace the line that begins with `raise`.

# %% tags=["exercise"]
# rank_squared

# %% [markdown]
# ## Who is there?
#
# Each rank is given a name that no other rank knows. In the end, every rank has to return the list of *all* names in
# the order of the ranks. If the four names are Ada, Grace, Emmy and Alan, each of the four ranks returns `["Ada",
# "Grace", "Emmy", "Alan"]`.
#
# A rank can learn the other names only from messages. You could use `send` and `recv`, but there is a single call for
# this. When all ranks call `comm.allgather(thing)`, each of them puts in one thing and gets back the list of all
# things. Here it is with numbers:


# %%
def favourite_numbers(comm):
    return comm.allgather(comm.rank + 0.5)


ranks.run(favourite_numbers).results

# %% [markdown]
# Each of the four ranks has returned the same list of four numbers. Now do the same with the names.

# %% tags=["exercise"]
# who_is_there

# %% [markdown]
# ## How far are you?
#
# `course.progress()` shows you what you have solved.

# %%
course.progress()

# %%
ranks.stop()
