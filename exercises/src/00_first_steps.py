# %% [markdown]
# # Exercises: how do I run code on many processes?
#
# Two short functions, to see how an exercise goes: write the body, run the cell, run the check below it. Nothing can
# break, and you may check as often as you like.
#
# *8 minutes · [lesson 0](../notebooks/00_first_steps.ipynb) · 4 ranks*

# %%
import course_utils as course

ranks = course.start(4)

# %% [markdown]
# ## The square of each rank
#
# Each rank runs this function and returns one number, the square of its own rank. With 4 ranks the results are 0, 1,
# 4 and 9; with 3 ranks 0, 1 and 4. (`comm: "MPI.Intracomm"` says of what type `comm` is: a communicator.)

# %% tags=["exercise"]
# rank_squared

# %% [markdown]
# ## Who is there?
#
# Each rank is given a name that only it knows. At the end every rank must return the list of *all* names, in rank
# order.
#
# What another rank should know must be sent. `send` and `recv` would do. But there is one call for this: every rank
# puts one thing in, and gets the things of all ranks out. It is `comm.allgather(thing)`. Try it on something of your
# own:


# %%
def favourite_numbers(comm):
    return comm.allgather(comm.rank + 0.5)


ranks.run(favourite_numbers).results

# %% [markdown]
# Four lists, one from each rank. Now the names.

# %% tags=["exercise"]
# who_is_there

# %% [markdown]
# ## Done?
#
# `course.progress()` shows it. Then go on to the next lesson.

# %%
course.progress()

# %%
ranks.stop()
