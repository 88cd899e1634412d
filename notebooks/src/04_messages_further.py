# What lesson 4 leaves out of its page. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: how do processes talk?
#
# You want to know which learning rate suits your network, so you train it with twelve of them. These trainings do not
# need each other, so four ranks could make them side by side, and no MPI would be needed at all. But if you deal the
# rates out carelessly, one rank is still working when the other three have long been idle.
#
# In this notebook you will deal out trainings so that no rank waits for long, start a cluster without this course, and
# measure what it costs to send Python objects instead of arrays.
#
# *25 minutes · optional, after [lesson 4](04_messages.ipynb) · 4 ranks*

# %%
import time

import numpy as np

import course_utils as course
from course_utils.lessons.messages import pictures

ranks = course.start(4)

# %% [markdown]
# ## Twelve trainings for four ranks
#
# Here is the training, a function of the learning rate. It takes the small network from [lesson 1](01_sgd.ipynb),
# which reads handwritten digits, and stops as soon as the network recognises 95% of the test images. If that never
# happens, it gives up after 30 passes over the data. The option `--local` runs the cell on the four ranks and in this
# notebook as well:

# %%
# %%px --local
import numpy as np

from course_utils.data import digits_arrays
from course_utils.lessons.sgd import accuracy, loss_and_gradients
from course_utils.lessons.sgd import minibatches, new_network, sgd_step

train_x, train_y, test_x, test_y = digits_arrays()


def train(rate):
    rng = np.random.default_rng(0)
    weights = new_network(rng)
    steps = 0
    for _ in range(30):
        for batch in minibatches(len(train_x), 32, rng):
            x, y = train_x[batch], train_y[batch]
            _, gradients = loss_and_gradients(weights, x, y)
            sgd_step(weights, gradients, rate)
            steps += 1
        if accuracy(weights, test_x, test_y) >= 0.95:
            break
    return steps


# %% [markdown]
# A small rate learns slowly, so its training is long. The simplest plan is to deal the list out in advance, three
# rates for each rank. `scatter` does that. It belongs to **ipyparallel**, the library behind `course.start`:

# %% tags=["nbval-check-output"]
rates = [0.001, 0.002, 0.003, 0.006, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1]

ranks.view.scatter("own_rates", rates)
for rank, own in enumerate(ranks.view.pull("own_rates")):
    print(f"rank {rank}: {own}")

# %% [markdown]
# The other plan is to give each rank one rate, and the next one whenever it has finished. In ipyparallel you get it
# from a **load-balanced view**.
#
# Take an example with three ranks and six jobs, which need 6, 6, 2, 1, 1 and 1 minutes. Dealt out in advance, rank 0
# gets the first two jobs, so it works for 12 minutes. Rank 1 is done after 3 minutes and rank 2 after 2. Dealt out one
# at a time, ranks 0 and 1 take a long job each. Rank 2 makes the job of 2 minutes and then the three short ones, and
# together they take 5 minutes. So everything is finished after 6 minutes instead of 12, although the work is the same.
#
# **Predict.** With our twelve rates, which plan leaves the busiest rank less to do?

# %%
course.predict(
    "dealing",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "in advance, because then every rank gets three trainings",
        "b": "one at a time, because the slow trainings end up on different ranks",
        "c": "neither, because the work is the same",
    },
)

# %% [markdown]
# First in advance. Every rank goes through its own three rates:

# %%
start = time.perf_counter()
ranks.view.execute("own_steps = [train(rate) for rate in own_rates]")
seconds_in_advance = time.perf_counter() - start

own_rates = ranks.view.pull("own_rates")
own_steps = ranks.view.pull("own_steps")
in_advance = [
    {f"{rate:g}": steps for rate, steps in zip(*own, strict=True)}
    for own in zip(own_rates, own_steps, strict=True)
]

# %% [markdown]
# Then one at a time. The jobs know on which engine each of them ran:


# %% tags=["figure:04_dealt_trainings"]
def most_steps(plan):
    return max(sum(trainings.values()) for trainings in plan)


balanced = ranks.client.load_balanced_view()
start = time.perf_counter()
jobs = balanced.map_async(train, rates)
steps_needed = jobs.get()  # waits for all of them
seconds_one_at_a_time = time.perf_counter() - start

one_at_a_time = [{} for _ in range(4)]
for rate, steps, engine in zip(rates, steps_needed, jobs.engine_id, strict=True):
    one_at_a_time[engine][f"{rate:g}"] = steps

in_advance_wins = most_steps(in_advance) <= most_steps(one_at_a_time)
course.measured("dealing", answer="a" if in_advance_wins else "b")
pictures.dealt_trainings({"in advance": in_advance, "one at a time": one_at_a_time})

# %% [markdown]
# Each bar is a training, labelled with its rate if there is room, and its length is the number of gradient steps. When
# every rank has a core of its own, everything is finished when the busiest rank is, so its steps decide. We count
# steps because they are the same on every machine. The seconds also depend on your cores: four ranks on two cores
# take turns, so a rank that has nothing left to do makes the others faster, and then the two plans may take equally
# long.

# %%
print(f"in advance:    {seconds_in_advance:.2f} s")
print(f"one at a time: {seconds_one_at_a_time:.2f} s")
fewest, best = min(zip(steps_needed, rates, strict=True))
print(f"The best rate is {best:g}: it needs {fewest} steps.")

# %% [markdown]
# Dealing out one at a time is not perfect. If the longest job happens to be the last, one rank starts it when the
# others are nearly done. That is why you put the jobs that you expect to be long at the beginning of the list, as ours
# are. And each job costs a message to the controller and one back, so jobs should not be too short.
#
# ## The same without this course
#
# You need `pip install ipyparallel mpi4py mpich`, and these five lines, in a notebook or in a script:
#
# ```python
# import ipyparallel as ipp
#
# with ipp.Cluster(engines="mpi", n=4) as client:
#     client[:].execute("from mpi4py import MPI", block=True)
#     print(client[:].apply_sync(lambda: MPI.COMM_WORLD.allreduce(1)))
# ```
#
# This takes some seconds, because four **engines** have to be started, which do the work, and a **controller**, through
# which your notebook reaches them. Then every engine adds up a 1 from each of the four, so the list that is printed is
# `[4, 4, 4, 4]`. At the end of the `with` block all of them are stopped.
#
# `client[:]` is what we call `ranks.view`, a **DirectView** of all engines. There are two differences to ours. Engine 0
# need not be rank 0, because the engines are numbered in the order in which they arrive. And if the ranks wait for each
# other in a circle, no line will tell you so.
#
# ## A tutorial on ipyparallel, on these ranks
#
# You can follow such a tutorial on the ranks that you have. Leave out its `ipp.Cluster`, because `course.start` has
# started the engines already. Where it says `rc = ipp.Client()`, take `ranks.client`, and where it says `rc[:]`, take
# `ranks.view`. Then `push`, `apply_sync`, `map_sync`, `scatter` and `broadcast_view` are the same methods as in the
# tutorial. In the next cell every rank waits for a message from its right neighbour, and no rank sends one:


# %% tags=["raises-exception"]
def wait_for_the_right():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    return world.recv(source=(world.rank + 1) % world.size)


ranks.view.apply_sync(wait_for_the_right)

# %% [markdown]
# With ipyparallel alone this cell would never end. Here the course watches the ranks while your notebook waits for
# their results, so a deadlock and an error are reported with rank and line, as they are in `ranks.run`. The stop button
# ends the call, and the ranks and their variables survive. All this also holds for an `ipp.Client` that you make
# yourself in this notebook.
#
# Four things are different from `ranks.run`. The messages of such a function are not counted, and `ranks.timeline()`
# does not draw them. `MPI.COMM_WORLD` is a communicator that `ranks.run` and `%%px` never use, so a message that is
# left on it cannot disturb them. The course does not recognise a deadlock among the tasks of a load-balanced view,
# because only the controller knows which rank gets the next task. And a different program that connects to the same
# controller gets ipyparallel's own error, in which the line is all that the course can add.
#
# ## Big letters, small letters
#
# In lesson 4 you saw that `Send` moves the memory of an array as it is, while `send` first turns an object into bytes.
# How much does this **pickling** cost? Take an array of a million numbers, which is 8 MB. `Send` moves these 8 MB and
# needs nothing else. `send` first copies them into a message, and the receiver copies them from the message into a new
# array. That makes two more copies of 8 MB, and each needs fresh memory. In a Python list, on the other hand, every
# number is an object of its own. So `send` has to take apart a million objects, and the receiver has to build a million
# new ones.
#
# **Predict.** What is the order of the three, from the fastest to the slowest?

# %%
course.predict(
    "pickling",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "send an array, send a list, Send an array",
        "b": "Send an array, send a list, send an array",
        "c": "Send an array, send an array, send a list",
    },
)


# %%
def best_of_five(comm, thing, pickled):
    seconds = []
    for _ in range(5):
        comm.Barrier()  # wait until both are here
        start = time.perf_counter()
        if comm.rank == 0:
            comm.send(thing, dest=1) if pickled else comm.Send(thing, dest=1)
        else:
            comm.recv(source=0) if pickled else comm.Recv(thing, source=0)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


array = np.random.default_rng(0).random(1_000_000)
seconds = {
    "Send array": max(ranks.run(best_of_five, array, False, ranks=2).results),
    "send array": max(ranks.run(best_of_five, array, True, ranks=2).results),
    "send list": max(ranks.run(best_of_five, array.tolist(), True, ranks=2).results),
}
order = tuple(sorted(seconds, key=seconds.__getitem__))
letters = {
    ("send array", "send list", "Send array"): "a",
    ("Send array", "send list", "send array"): "b",
    ("Send array", "send array", "send list"): "c",
}
course.measured("pickling", answer=letters.get(order, "another order"))
for name, each in seconds.items():
    factor = each / seconds["Send array"]
    print(f"{name}: {1e3 * each:5.1f} ms, {factor:.1f} times as long as Send")

# %% [markdown]
# So use capital letters for arrays, and keep the small ones for short messages of any kind.
#
# ## A network for 64 ranks
#
# Lesson 4 compared a loop with a tree by counting rounds, 63 against 6. How long is that for a real network? VGG-11, a
# network from lessons 2 and 3, has 9.2 million weights of 4 bytes, so a message with all of them is 37 MB long. We do
# not have 64 computers, but we can measure $\alpha$ and $\beta$ as before and calculate the rest:

# %%
from course_utils.lessons.messages import fit_alpha_beta, message_time, ping_pong


def sweep(comm, sizes):
    return [ping_pong(comm, nbytes) for nbytes in sizes]


sizes = [1, 1_000, 100_000, 1_000_000, 3_000_000]
alpha, beta = fit_alpha_beta(sizes, ranks.run(sweep, sizes, ranks=2).results[0])
one_message = message_time(4 * 9.2e6, alpha, beta)
print(f"one message: {1e3 * one_message:6.1f} ms")
print(f"loop:        {1e3 * 63 * one_message:6.1f} ms")
print(f"tree:        {1e3 * 6 * one_message:6.1f} ms")

# %% [markdown]
# Nearly all of this time is $\beta n$, since $\alpha$ is paid only once for 37 MB. That is a hint for
# [lesson 5](05_allreduce.ipynb). When messages are long, you can save more by sending fewer bytes in each round than
# by needing fewer rounds.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can let ranks try out learning rates, and you deal out jobs of unequal length one at a time. You can start a
# cluster with ipyparallel alone. You send arrays with capital letters, and you can calculate the time of a broadcast
# that you cannot run.
#
# Now go on with the [exercises](../exercises/04_messages.ipynb) or with [lesson 5](05_allreduce.ipynb).
