# The lesson on parameter servers. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if nobody waits?
#
# In lesson 6 you saw how all ranks wait for a straggler. That can be expensive. If one worker of four needs 40 ms for a
# gradient and the others need 8 ms, then the three fast ones are idle for 32 of every 40 ms, which is 80% of the time.
#
# What if they didn't wait? As soon as a worker has finished, it could hand in its gradient, pick up the newest weights
# and start on its next batch, and then no processor would be idle. But while it was computing, the other workers have
# changed the weights, so its gradient belongs to weights that no longer exist. Can you still train like that?
#
# In this lesson you train like that. You will predict when the process that holds the weights becomes a bottleneck,
# calculate how old the gradients are on average, find a learning rate that old gradients can bear, and learn to tell
# when it is better to wait.
#
# *50 minutes · builds on [lesson 6](06_data_parallel.ipynb) · 8 ranks*

# %%
import numpy as np

import course_utils as course

ranks = course.start(8, link="100 Mbit/s")
images = course.data.digits_arrays()

# %% [markdown]
# As in lesson 5, each rank plays the part of a node with a link of its own. It is emulated and carries 100 million bits
# per second in each direction, which is 12.5 MB per second. After a pause it lets the first 16 KB through at once, so
# short messages are somewhat faster than we calculate. If your system doesn't allow emulated links, the line under the
# cell mentions it, and the times in the next section are those of your computer's memory.
#
# ## All gradients pass through one link
#
# Until now all ranks have been equals. From here on rank 0 is a **parameter server**, which means that it holds the
# weights. The other ranks are its workers, and they have the data. We begin with a server that waits. In every step,
# each worker computes a gradient and sends it to the server. When all of them have arrived, the server takes one step
# against their mean and sends the new weights to every worker. The result is the same as in lesson 6, and only the
# route of the messages is different.
#
# We train the network of lesson 1 on handwritten digits. It has 2,410 weights of 8 bytes, so a gradient is 19 KB and
# takes 1.5 ms to pass through a link. Computing it takes less than a millisecond. To play the part of a larger network,
# every worker also sleeps for 8 ms, which has the advantage that the ranks don't compete for your computer's cores.

# %% tags=["figure:08_synchronous"]
from course_utils.lessons.parameter_server import Pace, train_synchronously

pace = Pace(seconds=0.008)
runs = [ranks.run(train_synchronously, images, 3, pace=pace, ranks=5) for _ in range(3)]
fastest = min(runs, key=lambda run: run.seconds)
fastest.timeline("Four workers and a server that waits: three steps")

# %% [markdown]
# This is the fastest of three runs. Rank 0, in the top row, is the server. The gradients of the four workers all arrive
# through its link, so they take 4 × 1.5 = 6 ms, and the new weights take another 6 ms to go out. With the 8 ms for
# computing, a step should take about 20 ms. During 12 of them the workers wait, although each worker's own link is in
# use for only 3 ms.
#
# The server's link is **saturated** during this time, which means that it carries as much as it can. How bad is that,
# compared with an all-reduce? Take a longer vector of 100 KB, which needs 8 ms for a link. With four workers, the
# server's link carries four vectors in and then four out, and that takes 8 × 8 = 64 ms. If the same four workers formed
# a ring, without a server, each would send $2 \cdot \frac34 = 1.5$ vectors, as you know from lesson 5. All of them send
# at the same time, so this takes 12 ms.
#
# **Predict.** How many milliseconds will each of the two take with 7 workers?

# %%
course.predict("server_ms", within=1.4, server=..., ring=...)  # milliseconds

# %% [markdown]
# The next cell runs both, three times for each number of workers. The lines in the picture are calculated in the same
# way as above.

# %% tags=["figure:08_link"]
from course_utils.lessons.parameter_server import link_seconds, link_text, link_title
from course_utils.measuring import is_busy
from course_utils.words import percent, seconds_text

nbytes, bytes_per_second = 100_000, 12.5e6
workers = [2, 4, 7]
measured = link_seconds(ranks, workers, nbytes)  # {"server": ..., "ring": ...}
busy = is_busy([measured["server"][-1], measured["ring"][-1]])
server_ms = 1000 * np.median(measured["server"][-1])
ring_ms = 1000 * np.median(measured["ring"][-1])
course.measured("server_ms", busy=busy, server=server_ms, ring=ring_ms)

one_vector = nbytes / bytes_per_second
predicted = {
    "server": [2 * W * one_vector for W in workers],
    "ring": [2 * (W - 1) / W * one_vector for W in workers],
}
title = link_title(workers, measured["server"], measured["ring"])
subtitle = link_text(measured["server"], predicted["server"])
course.draw.over_numbers(
    workers,
    measured,
    title,
    subtitle,
    predicted=predicted,
    across="workers",
    up="time for 100 KB",
    unit=seconds_text,
)

# %% [markdown]
# If a vector has $n$ bytes and a link takes $\beta$ for each of them, then $W$ workers occupy the server's link for
# $2W\beta n$. In a ring the time stays below $2\beta n$, however many workers there are. This is why a single server
# becomes the bottleneck. As soon as $2W\beta n$ is longer than computing a gradient takes, the workers spend more time
# waiting than computing.
#
# The cure is to have several servers, as parameter servers in practice do ([Li and others,
# 2014](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu)). Let's take this as far as
# possible, cut the weights into $W$ blocks, and make each worker the server for one of them. Every worker sends each of
# the others that worker's block of its gradient. This is a reduce-scatter, sent directly instead of around a ring. Then
# each worker takes the step for its own block and sends the new weights to all the others, which is an all-gather.
# Every link carries $2\,\frac{W-1}{W}\,\beta n$ again, exactly as in the ring. You will meet this scheme again in
# lesson 11, because most large models are trained like that today.
#
# You can now write the server's step yourself. It is the first [exercise](../exercises/08_parameter_server.ipynb).
#
# ## The server takes whoever comes first
#
# Now the waiting ends. In **asynchronous SGD**, the server takes a step as soon as *any* gradient arrives, against this
# one gradient alone, and answers the worker that sent it. This is the whole program:

# %%
STOP = 1  # the tag of the server's last answer


def serve(comm, weights, rate, updates):
    from mpi4py import MPI

    gradient = np.empty_like(weights)
    status = MPI.Status()
    order = []  # which worker made update 1, 2, 3, ...
    while len(order) < updates:
        comm.Recv(gradient, source=MPI.ANY_SOURCE, status=status)
        worker = status.Get_source()
        weights -= rate * gradient
        order.append(worker)
        comm.Send(weights, dest=worker)
    for _ in range(comm.size - 1):  # each worker has one more gradient on its way
        comm.Recv(gradient, source=MPI.ANY_SOURCE, status=status)
        comm.Send(weights, dest=status.Get_source(), tag=STOP)
    return order


def work(comm, weights, next_gradient):
    from mpi4py import MPI

    status = MPI.Status()
    while True:
        comm.Send(next_gradient(weights), dest=0)
        comm.Recv(weights, source=0, status=status)
        if status.Get_tag() == STOP:
            return


# %% [markdown]
# With `source=MPI.ANY_SOURCE` the server receives from whichever worker has sent something, and afterwards `status`
# knows which worker it was. The server's answer carries the tag `STOP` when the training is over. Let's run it with the
# same four workers as before:

# %% tags=["figure:08_asynchronous"]
from course_utils.lessons.parameter_server import first_weights, own_gradients


def train(comm, pace, updates):
    weights = first_weights(seed=0)  # the same on all ranks
    if comm.rank == 0:
        return serve(comm, weights, 0.1, updates)
    next_gradient = own_gradients(comm, images, pace=pace)  # sleeps and computes
    work(comm, weights, next_gradient)


runs = [ranks.run(train, pace, 12, ranks=5) for _ in range(3)]
fastest = min(runs, key=lambda run: run.seconds)
print("updates by worker:", *fastest.results[0])
fastest.timeline("Four workers, and a server that takes whoever comes first")

# %% [markdown]
# Each worker starts on its next gradient as soon as the server has answered it. It doesn't matter to a worker what the
# others are doing, except that all of them still share the server's link.
#
# ## How old is a gradient?
#
# While a worker computes, other workers change the weights. The **staleness** of an update counts how often that has
# happened. It is the number of updates that the server made between giving this worker its weights and using its
# gradient. Let's take a short training with four workers and twelve updates. The first line printed below shows which
# worker's gradient the server used for each update, and the second shows its staleness:

# %% tags=["nbval-check-output"]
from course_utils.lessons.parameter_server import measure_staleness


def log_of(order):
    log = [("fetch", worker) for worker in sorted(set(order))]  # at the beginning
    for worker in order:
        log += [("push", worker), ("fetch", worker)]  # gradient in, new weights out
    return log


order = [1, 2, 3, 4, 1, 2, 3, 1, 4, 2, 4, 3]  # the worker of update 1, 2, 3, ...
print("worker:   ", *order)
print("staleness:", *measure_staleness(log_of(order)))

# %% [markdown]
# Follow worker 3, which made updates 3, 7 and 12. It picked up new weights right after each of its own updates.
#
# | update by worker 3 | its weights were from | updates by others in between | staleness |
# |---|---|---|---|
# | 3 | the beginning | 1, 2 | 2 |
# | 7 | update 3 | 4, 5, 6 | 3 |
# | 12 | update 7 | 8, 9, 10, 11 | 4 |
#
# Add up the last column: 2 + 3 + 4 = 9. These are all the updates, out of twelve, that worker 3 did *not* make. The
# same holds for the other workers, up to the last update that each of them has made. So every update is counted once by
# each worker except the one that made it. With four workers it is counted three times, and over a long training the
# mean staleness comes out as 3. In our twelve updates it is only 2.4, because what follows a worker's last update
# hasn't been counted yet.
#
# **Predict.** What is the mean staleness with 7 workers that are equally fast? And what is it if one of the seven is
# five times slower than the others?

# %%
course.predict("staleness", within=1.1, equal=..., one_slow=...)

# %% tags=["figure:08_staleness"]
from course_utils.lessons.parameter_server import pictures, staleness_text

equal = ranks.run(train, Pace(0.008), 350).results[0]
one_slow = ranks.run(train, Pace(0.008, straggler=3, factor=5), 350).results[0]
ages = {
    "7 equal workers": measure_staleness(log_of(equal)),
    "worker 3 is 5 times slower": measure_staleness(log_of(one_slow)),
}
means = [float(np.mean(staleness)) for staleness in ages.values()]
course.measured("staleness", equal=means[0], one_slow=means[1])
title, subtitle = staleness_text(7, ages)
pictures.staleness(ages, predicted=6, title=title, subtitle=subtitle)

# %% [markdown]
# With $W$ workers every update is counted $W-1$ times, so the mean staleness is $W-1$. Nothing in this argument depends
# on how fast the workers are. A slow worker changes only how the staleness is distributed. It makes few updates that
# are very old, and the updates of the others become a little younger.
#
# This also means that more workers make all the gradients older. [Further](08_parameter_server_further.ipynb) trains
# with two hundred of them.
#
# ## How much harm do old gradients do?
#
# We begin with the simplest case, the parabola $\frac12 w^2$, whose slope at $w$ is $w$ itself. A step with learning
# rate $\eta$ is $w \leftarrow w - \eta w$. It leads to the minimum at 0 if $\eta$ is below 2. At 2, we land on the
# other side, just as far from 0 as before.
#
# Now let the slope be one step old. If we start with $w = 1$ twice and take $\eta = 1$, each step subtracts the value
# before the current one, and we get
#
# $$1,\quad 1,\quad 1-1=0,\quad 0-1=-1,\quad -1-0=-1,\quad -1+1=0,\quad 0+1=1,\quad 1-0=1,\quad\ldots$$
#
# We are back at 1 and 1, so everything repeats and $w$ never comes to rest. With a staleness of 1, the limit is 1
# instead of 2. The reason is that we don't notice at once when we have passed the minimum. With a staleness of $\tau$,
# it takes $\tau + 1$ steps until we react to the slope at a point, and until then we walk on in the same direction. So
# we should expect that each step has to be about $\tau + 1$ times shorter, which gives a limit of about $\frac{2}{\tau
# + 1}$.
#
# **Predict.** What is the largest rate that lets $w$ come to rest if the slopes are 6 steps old? (Anything within a
# factor of 1.5 counts as right.)

# %%
course.predict("old_news", within=1.5, six_steps_ago=...)


# %%
def comes_to_rest(rate, staleness):
    w = [1.0] * (staleness + 1)
    for _ in range(2000):
        old_slope = w[-1 - staleness]
        w.append(w[-1] - rate * old_slope)
    return max(abs(value) for value in w[-100:]) < 1


staleness = [0, 1, 2, 4, 6, 10, 14]
largest = []
for tau in staleness:
    good = [k / 100 for k in range(1, 220) if comes_to_rest(k / 100, tau)]
    largest.append(max(good))
course.answer("old_news", six_steps_ago=largest[4])

tau = np.array(staleness)
course.draw.over_numbers(
    staleness,
    {"limit": largest},
    f"Slopes that are 6 steps old allow a rate of {largest[4]:g} instead of 2",
    predicted={"limit": 2 * np.cos(np.pi * tau / (2 * tau + 1))},
    across="staleness τ, in steps",
    up="largest rate",
    dots="tried out",
)

# %% [markdown]
# Our rule of thumb is a little too generous. The line in the picture is the exact limit, $2 \cos \frac{\pi\tau}{2\tau +
# 1}$ (Levin and May, 1976, *A note on difference-delay equations*). For a staleness of 6 it is 0.24, about eight times
# less than with fresh slopes.
#
# A real network is no parabola, but we can hope that the factor is similar. First we train on the digits with *one*
# worker, whose gradients are always fresh. We make 200 updates at each of six learning rates and look at how many test
# images the network then recognises. For this we use the course's version of the program above, `train_asynchronously`,
# because it also keeps track of the accuracy.

# %% tags=["nbval-check-output"]
from course_utils.lessons.parameter_server import train_asynchronously

rates = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6]


def accuracies(W, scaled=False):
    ends = []
    for rate in rates:
        run = ranks.run(
            train_asynchronously,
            images,
            200,
            rate=rate,
            scaled=scaled,
            pace=Pace(0.002),  # 2 ms for each gradient, so that it doesn't take long
            ranks=W + 1,
        )
        ends.append(run.results[0].accuracies[-1])
    return ends


fresh = accuracies(W=1)
for rate, accuracy in zip(rates, fresh, strict=True):
    print(f"rate {rate:4}: {accuracy:.0%} recognised")

# %% [markdown]
# Let's say that a training succeeds if it recognises at least 85% of the test images after 200 updates. With one
# worker, 0.8 is the largest of our rates that succeeds. With a rate of 1.6 the network does little better than
# guessing.
#
# **Predict.** Now *seven* workers make the 200 updates together. What is the largest of these rates that succeeds?

# %%
course.predict("stale_rate", rate=...)

# %% tags=["figure:08_rates"]
from course_utils.lessons.parameter_server import largest_rate, rates_text

stale = accuracies(W=7)
course.measured("stale_rate", rate=largest_rate(rates, stale, 0.85))

scaled = accuracies(W=7, scaled=True)
lines = {"one worker": fresh, "seven": stale, "seven, rate ÷ staleness": scaled}
title, subtitle = rates_text(rates, fresh, stale, scaled, 0.85)
course.draw.over_numbers(
    rates,
    lines,
    title,
    subtitle,
    across="learning rate",
    up="test images recognised",
    unit=percent,
    limits=(0, 1),
)

# %% [markdown]
# When gradients are too old for the learning rate, there is no error message. The network just doesn't learn. By the
# parabola's factor of eight, we would expect the limit to fall from 0.8 to about 0.1.
#
# The third line shows a cure by [Zhang and others (2016)](https://arxiv.org/abs/1511.05950). The server knows the
# staleness of every gradient, so it can divide the learning rate of this update by it. With seven workers most steps
# then become about six times shorter, which should allow a rate that is about six times larger. But compare the lines
# at the small rates, where nothing was wrong. There the shorter steps bring the training less far in 200 updates, so
# the cure has its price. You will write both `measure_staleness` and the cure in the exercises.

# %% [markdown]
# ## When a straggler makes waiting expensive
#
# Old gradients cost accuracy, and waiting costs time. Which is worse? To find out, we train the digits on four workers
# in three ways. The first loop below is synchronous training as in lesson 6. The second is **local SGD**, where every
# rank takes a few steps alone before all of them continue with the mean of their weights:
#
# ```python
# for _ in range(56):                                         # synchronous
#     weights -= 0.6 * mean_of_all(next_gradient(weights))
#
# for _ in range(14):                                         # local SGD
#     for _ in range(4):
#         weights -= 0.6 * next_gradient(weights)
#     weights = mean_of_all(weights)
# ```
#
# Here `mean_of_all` is an all-reduce followed by a division by 4. The third way is our asynchronous program, with a
# fifth rank as its server. There, every gradient makes an update of its own, so there are 4 × 56 = 224 updates. To move
# the weights about as far, each of them gets a quarter of the rate, 0.15. In all three ways the workers compute 224
# gradients in total.
#
# First all workers are equal, and a gradient takes 8 ms. Then one of them becomes slower. Here are two synchronous
# steps in which rank 2 is *twice* as slow. (`train_locally` is local SGD, and with a single local step it is
# synchronous training.)

# %%
from course_utils.lessons.parameter_server import train_locally

twice = Pace(0.008, straggler=2, factor=2)
late = ranks.run(train_locally, images, 2, local_steps=1, pace=twice, ranks=4)
late.timeline("Two synchronous steps in which rank 2 is twice as slow")

# %% [markdown]
# By what factor does this straggler slow down each of the three ways? Messages are short compared with the gradients,
# so we leave them out.
#
# - Synchronous training takes one step in every 8 ms. With the straggler all ranks wait until it has finished, after 16
#   ms, so the training takes twice as long.
# - Local SGD needs 4 × 8 = 32 ms for the four steps of a round. The straggler needs 64 ms, and the mean has to wait for
#   it, so the training takes twice as long, too.
# - In asynchronous training three workers carry on as before, and the slow one delivers half of what it did. Together
#   they work like 3.5 workers instead of 4, so the training takes 4 ÷ 3.5 = 1.14 times longer.
#
# **Predict.** Now let the straggler be *five* times slower, so that a gradient takes it 40 ms. How many times longer
# does each training take than with equal workers?

# %%
course.predict("server_late", within=1.5, synchronous=..., asynchronous=..., local=...)

# %% [markdown]
# The next cell runs each training three times, with equal workers and with the straggler. Each line in the picture is
# one run, drawn against epochs (passes over the training images) on the left and against seconds on the right.

# %% tags=["figure:08_races"]
from course_utils.lessons.parameter_server import is_busy_race, race, races_text
from course_utils.lessons.parameter_server import reached_table, slower, straggler_text

paces = {"equal workers": Pace(0.008), "a straggler": Pace(0.008, straggler=2)}
repeats = 3
races = race(ranks, images, paces, repeats)
times = slower(races)
synchronous_ms = 56 * (8 + 1.5 * 1.54)  # with equal workers: 56 gradients and all-reduces
busy = is_busy_race(races, synchronous_ms / 1000)
course.measured("server_late", busy=busy, **times)
print(reached_table(races, 0.95))
title, subtitle = straggler_text(times, busy), races_text(races, 0.95, busy)
pictures.races(races, title, subtitle, target=0.95)

# %% [markdown]
# Look at synchronous training on the left, with and without the straggler. The two curves are the same, because each
# step averages the same gradients, however long that takes. So a curve against epochs can't tell you how long the ranks
# have waited. Ask for the curve against seconds as well.
#
# By calculation, the straggler makes synchronous training and local SGD five times slower, or a little less, because
# the messages take no longer than before. Local SGD sends fewer messages, but it waits for the slowest rank all the
# same, because that rank has four slow steps to take in each round. Asynchronous training loses only four fifths of one
# worker, so it works like 3.2 workers and takes 4 ÷ 3.2 = 1.25 times longer.
#
# Asynchronous training has a different price. The order of its updates depends on which message happens to arrive
# first, so two runs with the same seed give different weights, and that makes mistakes hard to find. And if all
# machines are equally fast, there is little to gain, because then waiting costs little.
#
# ## Who waits in practice?
#
# | | what is trained | what happens | who waits |
# |---|---|---|---|
# | 1 | large language models | reduce-scatter of gradients, all-gather of weights | all, in every step |
# | 2 | recommender systems with huge tables, split over the GPUs | all-to-all | all, in every step |
# | 3 | recommender systems that learn from clicks as they happen | asynchronous parameter servers | no worker |
# | 4 | language models that learn from their own answers | answers are written with old weights | if they get too old |
# | 5 | one model on many phones | each trains alone, then a server averages | all but the slowest |
# | 6 | one model in several data centres | hundreds of steps alone, then a mean | all, but rarely |
#
# These are examples of what most systems of that kind do. The sources, from row 1 to row 5, are
# [ZeRO](https://arxiv.org/abs/1910.02054) and [FSDP](https://arxiv.org/abs/2304.11277), which are a subject of lesson
# 11, [Mudigere and others (2022)](https://arxiv.org/abs/2104.05158), [Monolith
# (2022)](https://arxiv.org/abs/2209.07663), [AReaL (2025)](https://arxiv.org/abs/2505.24298), and [Bonawitz and others
# (2019)](https://arxiv.org/abs/1902.01046). Row 6 is the method of **DiLoCo** ([Douillard and others,
# 2023](https://arxiv.org/abs/2311.08105)), in which ranks that are far apart train alone for hundreds of steps before
# they average. In row 4 the staleness has a limit, and when it is reached, the GPUs that write answers have to wait.
#
# So most large trainings are synchronous. Within a data centre the machines are nearly equal and the links are fast,
# and a result that can be repeated is worth a lot. The other rows are cases where the machines, the links or the work
# itself are uneven. One of this course's [sources](../docs/sources.md), the slides by SURF, calls synchronous training
# "the *accepted* and *advised* approach", and by this table it still is.
#
# A warning about words. For [Lian and others (2017)](https://arxiv.org/abs/1705.09056) and most later papers, a method
# is **centralised** if it combines what all ranks contribute into one set of weights, whether with a server or with an
# all-reduce. It is decentralised if each rank averages with a few neighbours only, so that the ranks' weights differ.
# Other texts, SURF's slides among them, call an all-reduce decentralised because it has no server.
#
# [Further](08_parameter_server_further.ipynb) goes on from here. You can run asynchronous training with two hundred
# workers, save bytes with local SGD and improve on it with one more optimizer, let ranks average with their neighbours
# only, train with clinics that keep their data to themselves, and leave the slowest worker out of every step.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# A parameter server's link carries $2W$ vectors in a step, so a single server becomes the bottleneck, while several
# servers together do what a reduce-scatter and an all-gather do. If no worker waits, the mean staleness is $W-1$,
# however uneven the workers are. Old gradients need a smaller learning rate, about $\tau + 1$ times smaller for a
# staleness of $\tau$. It pays not to wait if some machines are much slower than others. If they are equal, wait.
#
# Continue with [the exercises](../exercises/08_parameter_server.ipynb). In [lesson 9](09_model_parallel.ipynb) the
# model no longer fits on one machine.
#
# ## To read
#
# - Dean and others, 2012, [Large Scale Distributed Deep
#   Networks](https://proceedings.neurips.cc/paper/2012/hash/6aca97005c68f1206823815f66102863-Abstract.html):
#   asynchronous SGD with thousands of processor cores, the ancestor of everything on this page.
# - Li and others, 2014, [Scaling Distributed Machine Learning with the Parameter
#   Server](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu): how to build one that many
#   jobs share and that survives failures.
# - Chen and others, 2016, [Revisiting Distributed Synchronous SGD](https://arxiv.org/abs/1604.00981): why Google went
#   back to waiting, and how a few spare workers take the sting out of stragglers.
