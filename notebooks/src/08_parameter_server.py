# The lesson on parameter servers. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if nobody waits?
#
# In lesson 6 you saw how all ranks wait for a straggler. That can be expensive. If one worker of four needs 40 ms for a
# gradient and the others need 8 ms, then the three fast ones sit idle for 32 of every 40 ms, which is 80% of the time.
#
# What if they didn't wait? As soon as a worker has finished, it could hand in its gradient, fetch the newest weights
# and continue. But while it was computing, the other workers changed the weights, so its gradient belongs to weights
# that no longer exist. Can you still train like that?
#
# In this lesson you will do exactly that. You will predict when the process that holds the weights becomes a
# bottleneck, calculate how old the gradients are on average, find a learning rate that still works with old gradients,
# and learn when it is better to wait.
#
# *50 minutes · builds on [lesson 6](06_data_parallel.ipynb) · 8 ranks*

# %%
import numpy as np

import course_utils as course

ranks = course.start(8, link="100 Mbit/s")
images = course.data.digits_arrays()

# %% [markdown]
# As in lesson 5, each rank plays the part of a node with an emulated link of its own. It carries 100 million bits, or
# 12.5 MB, per second in each direction. If your system doesn't allow emulated links, a line under the cell tells you
# so, and the next section measures your computer's memory.
#
# ## All gradients pass through one link
#
# From here on rank 0 is a **parameter server**, which means that it holds the weights. The other ranks are its workers,
# and they have the data. We begin with a server that waits. In every step, each worker computes a gradient and sends it
# to the server. When all of them have arrived, the server subtracts the learning rate times their mean from the
# weights, and sends the new weights to every worker. Only the route that the messages take differs from lesson 6.
#
# We train the digits network of lesson 1. Its gradient takes less than a millisecond, so every worker also sleeps for 8
# ms to play the part of a larger network. For the messages it makes no difference whether a rank sleeps or computes,
# and sleeping ranks don't compete for your computer's cores.

# %% tags=["figure:08_synchronous"]
from course_utils.lessons.parameter_server import Pace, train_synchronously

pace = Pace(seconds=0.008)  # for each gradient
runs = [ranks.run(train_synchronously, images, 3, pace=pace, ranks=5) for _ in range(3)]
fastest = min(runs, key=lambda run: run.seconds)
fastest.timeline("Four workers and a server that waits: three steps")

# %% [markdown]
# This is the fastest of three runs. In each step, all four gradients arrive through the link of rank 0, in the top row,
# and all new weights leave through it. Meanwhile the workers wait, although each of them sends only one vector and
# receives one.
#
# How long do these messages take if the vector has 100 KB? A link carries it in 100 KB ÷ 12.5 MB/s = 8 ms. With four
# workers, the server's link carries four vectors in and then four out, and that takes 8 × 8 = 64 ms. If the same four
# workers formed a ring, without a server, each would send $2 \cdot \frac34 = 1.5$ vectors, as you know from lesson 5.
# All of them send at the same time, so this takes 1.5 × 8 = 12 ms.
#
# **Predict.** How many milliseconds will each of the two take with 7 workers? (Anything within a factor of 1.6 counts
# as right.)

# %%
course.predict("server_ms", within=1.6, server=..., ring=...)  # milliseconds

# %% [markdown]
# The next cell measures both. The lines in the picture are the times calculated as above.

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
subtitle = "" if busy else link_text(measured, predicted)
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
# If a vector has $n$ bytes and a link takes $\beta$ seconds for each of them, then $W$ workers occupy the server's link
# for $2W\beta n$. In a ring, the bytes take less than $2\beta n$, however many workers there are. This leaves out two
# things: the latency of each of the ring's $2(W-1)$ rounds, and the first 16 KB after a pause, which an emulated link
# lets through immediately. Unless your computer was too busy, the line below the title tells you how far off the
# calculation is.
#
# A link that carries as much as it can is **saturated**. The server's link needs $\beta n$ for each gradient that comes
# in, so it can't let in more than $\frac{1}{\beta n}$ gradients per second. With 100 KB, that is 125. However many
# workers you add, the server won't get more from them.
#
# The cure is to have several servers, as real parameter-server systems do ([Li and others,
# 2014](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu)). Let's take this to its limit.
# We cut the vector into as many blocks as there are workers, and make each worker the server for one block:
#
# | | block A | block B | block C |
# |---|---|---|---|
# | worker 1 | adds up and updates | sends to worker 2 | sends to worker 3 |
# | worker 2 | sends to worker 1 | adds up and updates | sends to worker 3 |
# | worker 3 | sends to worker 1 | sends to worker 2 | adds up and updates |
#
# This is a reduce-scatter, sent directly instead of around a ring. Afterwards each worker sends its new block to all
# the others, which is an all-gather. Every link is busy for $2\,\frac{W-1}{W}\,\beta n$, as in the ring. Large language
# models are often trained like that, in combination with other methods, which lesson 11 covers.
#
# The step of a single server is the first [exercise](../exercises/08_parameter_server.ipynb).
#
# ## First come, first served
#
# Now the waiting ends. In **asynchronous SGD**, the server takes a step as soon as *any* gradient arrives, with this
# gradient alone, and answers the worker that sent it. This is the whole program:

# %%
STOP = 1  # the tag of the server's last answer


def serve(comm, weights, rate, updates):
    from mpi4py import MPI  # a function that runs on the ranks imports what it needs

    gradient = np.empty_like(weights)
    status = MPI.Status()
    order = []  # which worker made update 1, 2, 3, ...
    while len(order) < updates:
        comm.Recv(gradient, source=MPI.ANY_SOURCE, status=status)
        worker = status.Get_source()
        weights -= rate * gradient
        order.append(worker)
        comm.Send(weights, dest=worker)
    for _ in range(comm.size - 1):  # every worker is computing once more
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
# With `source=MPI.ANY_SOURCE` the server receives from whichever worker has sent something, and `status` then knows
# which worker that was. If several gradients arrive at the same time, it takes them one after the other. At the end
# every worker is computing once more, because it was given new weights. The server receives these last gradients
# without using them and answers with the tag `STOP`. Let's run it with four workers again:

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
fastest.timeline("Four workers, first come, first served: twelve updates")

# %% [markdown]
# Each worker starts on its next gradient as soon as the server has answered it, whatever the others are doing. They
# still share the server's link. The run computes 16 gradients, 12 that are used and one more for each worker, so don't
# compare its total time with the first picture.
#
# ## How old is a gradient?
#
# While a worker computes, other workers change the weights. The **staleness** of an update is the number of updates
# that the server made between giving this worker its weights and using its gradient. Take a short run with four workers
# and twelve updates. The next cell makes a log of what the server does. A worker *fetches* when it is given weights,
# and *pushes* when the server uses its gradient.

# %% tags=["nbval-check-output"]
from course_utils.lessons.parameter_server import measure_staleness


def log_of(order):
    log = [("fetch", worker) for worker in sorted(set(order))]  # at the beginning
    for worker in order:
        log += [("push", worker), ("fetch", worker)]
    return log


order = [1, 2, 3, 4, 1, 2, 3, 1, 4, 2, 4, 3]  # the worker of update 1, 2, 3, ...
print("worker:   ", *order)
print("staleness:", *measure_staleness(log_of(order)))

# %% [markdown]
# Follow worker 3, which made updates 3, 7 and 12. It fetched new weights right after each of its own updates.
#
# | update by worker 3 | its weights were from | updates by others in between | staleness |
# |---|---|---|---|
# | 3 | the beginning | 1, 2 | 2 |
# | 7 | update 3 | 4, 5, 6 | 3 |
# | 12 | update 7 | 8, 9, 10, 11 | 4 |
#
# The last column adds up to 9, which is the number of updates that worker 3 did *not* make. Whenever the server makes
# an update, the weights of the three other workers become one update older. So $N$ updates add $3N$ in total, and the
# mean over these $N$ updates is 3. Our twelve updates have a mean of only 2.4, because the updates since each worker's
# last one haven't been counted yet. In a long run that hardly matters.
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
# With $W$ workers each update makes the weights of $W-1$ others older, so the mean staleness is $W-1$. Nothing in this
# argument depends on how fast the workers are. A slow worker makes few updates, but those few are very old, and the
# updates of the others become a little younger. Even equal workers overtake each other at times, so there may be more
# than one bar for them, too.
#
# More workers make all gradients older. [Further](08_parameter_server_further.ipynb) trains with two hundred of them.
#
# ## Old gradients need a smaller learning rate
#
# How much harm do old gradients do? We begin with a parabola, $\frac12 w^2$, whose slope at $w$ is $w$ itself. A step
# with learning rate $\eta$ is $w \leftarrow w - \eta w$. It leads to the minimum at 0 if $\eta$ is below 2. At exactly
# 2, each step lands on the other side, just as far from 0 as before.
#
# Now let the slope be one step old. If the first two values are both 1 and $\eta = 1$, each step subtracts the value
# before the current one, and we get
#
# $$1,\quad 1,\quad 1-1=0,\quad 0-1=-1,\quad -1-0=-1,\quad -1+1=0,\quad 0+1=1,\quad 1-0=1,\quad\ldots$$
#
# We are back at 1 and 1, so $w$ never comes to rest. With a staleness of 1, the limit is 1 instead of 2, because we
# notice too late that we have passed the minimum. With a staleness of $\tau$ (tau), the slope at a point takes effect
# only $\tau + 1$ steps after we reached it, and until then we keep walking. Together these steps carry us about as far
# as one step with the rate $(\tau + 1)\,\eta$. If that has to stay below 2, the limit is about $\frac{2}{\tau + 1}$.
# This is only a rule of thumb.
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
exact = 2 * np.cos(np.pi * tau / (2 * tau + 1))
assert np.allclose(largest, exact, atol=0.011)  # we have tried only every hundredth
course.draw.over_numbers(
    staleness,
    {"limit": largest},
    f"Slopes that are 6 steps old allow a rate of {largest[4]:g} instead of 2",
    predicted={"limit": 2 / (tau + 1)},
    across="staleness τ, in steps",
    up="largest rate",
    dots="tried out",
)

# %% [markdown]
# The line is our rule of thumb, which is a little too generous. The exact limit is $2 \cos \frac{\pi\tau}{2\tau + 1}$.
# It comes from the theory of difference equations ([Levin and May, 1976](https://doi.org/10.1016/0040-5809(76)90043-5),
# *A note on difference-delay equations*); we don't prove it here, but an `assert` in the cell compares it with the
# dots. For a staleness of 6 it is 0.24, about eight times less than with fresh slopes.
#
# A real network isn't a parabola, but we can hope that the factor is similar. First we train the digits network with
# *one* worker, whose gradients are always fresh. We make 200 updates at each of six learning rates and see how many
# test images the network then recognises. The course's version of the program above, `train_asynchronously`, also keeps
# track of the accuracy.

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
# We say that a run succeeds if the network recognises at least 85% of the test images after 200 updates. With fresh
# gradients 0.8 succeeds and 1.6 doesn't, so the limit lies somewhere between them. For the parabola it was 2.
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
# If the parabola's factor of eight carries over, we would expect the limit to lie between 0.1 and 0.2. There is no
# error message when a rate is too large for old gradients. The run ends as usual, with a worse network.
#
# The third curve shows a cure by [Zhang and others (2016)](https://arxiv.org/abs/1511.05950). The server knows the
# staleness of every gradient, so it can divide the rate by it, unless it is 0:
#
# ```python
# weights -= rate / max(1, staleness) * gradient
# ```
#
# With seven workers most steps then become about six times shorter, which should allow a rate that is about six times
# larger. But at the smallest rates, where nothing was wrong, the shorter steps mean less progress in 200 updates, so
# the cure has its price. You will write both `measure_staleness` and the cure in the exercises.

# %% [markdown]
# ## When a straggler makes waiting expensive
#
# Old gradients need a smaller rate, and waiting costs time. Which is worse? We train the digits network with four
# workers in three ways. The first loop below is synchronous training as in lesson 6. The second is **local SGD**, where
# every rank takes a few steps alone before all of them continue with the mean of their weights:
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
# fifth rank as its server. There, each gradient is applied on its own. That gives 4 × 56 = 224 updates, each at a
# quarter of the rate, 0.15. This should be safe. With four workers the mean staleness is 3, for which the formula above
# gives 0.45 instead of 2, or 4.5 times less, and 0.8 ÷ 4.5 = 0.18. All three ways use 224 gradients.
#
# A gradient takes 8 ms, but on one of the workers it takes longer. Here are two synchronous steps, which are local SGD
# with a single local step. Rank 2 is *twice* as slow:

# %%
from course_utils.lessons.parameter_server import train_locally

twice = Pace(0.008, straggler=2, factor=2)
late = ranks.run(train_locally, images, 2, local_steps=1, pace=twice, ranks=4)
late.timeline("Two synchronous steps in which rank 2 is twice as slow")

# %% [markdown]
# By what factor does this straggler slow down each run? The messages add the same time to every step, with a straggler
# or without it. We leave them out, so the real factors are somewhat smaller than what we calculate.
#
# - A step of synchronous training takes 8 ms. With the straggler all ranks wait until it has finished after 16 ms, so
#   the run takes twice as long.
# - A round of local SGD takes 4 × 8 = 32 ms. The straggler needs 64 ms, and the mean has to wait for it, so the run
#   takes twice as long, too.
# - In asynchronous training three workers carry on as before, and the slow one delivers half as many gradients as
#   before. Together they do the work of 3.5 workers instead of 4, so the run takes 4 ÷ 3.5 = 1.14 times as long.
#
# **Predict.** Now let the straggler be *five* times slower, so that it needs 40 ms for each gradient. By what factor
# does it slow down each of the three?

# %%
course.predict("server_late", within=1.5, synchronous=..., asynchronous=..., local=...)

# %% [markdown]
# The next cell runs each of them three times. Each line in the picture is one run, drawn against epochs (passes over
# the training images) on the left and against seconds on the right. Note that the two axes of seconds have different
# scales.

# %% tags=["figure:08_races"]
from course_utils.lessons.parameter_server import is_busy_race, race, races_text
from course_utils.lessons.parameter_server import reached_table, slower, straggler_text

slow = Pace(0.008, straggler=2, factor=5)
paces = {"equal workers": Pace(0.008), "a straggler": slow}
repeats = 3
races = race(ranks, images, paces, repeats)
times = slower(races)
synchronous_ms = 56 * (8 + 1.5 * 1.54)  # equal workers: a vector takes 1.54 ms
busy = is_busy_race(races, synchronous_ms / 1000)
course.measured("server_late", busy=busy, **times)
print(reached_table(races, 0.95))
title, subtitle = straggler_text(times, busy), races_text(races, 0.95, busy)
pictures.races(races, title, subtitle, target=0.95)

# %% [markdown]
# Compare synchronous training in the two pictures on the left. The curves are the same, because each step averages the
# same gradients, however long that takes. So a curve against epochs can't tell you how long the ranks have waited.
#
# By our calculation, synchronous training and local SGD take five times as long or somewhat less. Local SGD sends fewer
# messages, but the slowest rank still has to take four slow steps in each round. Asynchronous training loses only four
# fifths of one worker, so it does the work of 3.2 workers and takes 4 ÷ 3.2 = 1.25 times as long. These factors are
# those of whole runs. The printed times to 95% also depend on how much each update teaches the network.
#
# Asynchronous training has its price. It needs a smaller learning rate, and here it used a fifth machine, which could
# have been a fifth worker. The order of its updates depends on which message happens to arrive first, so two runs with
# the same seed give different weights, and bugs are hard to track down. If all machines are equally fast, waiting costs
# little, and a result that you can repeat is usually worth more.
#
# ## Who waits in practice?
#
# Each row gives one well-known example.
#
# | what is trained | how | who waits |
# |---|---|---|
# | large language models | reduce-scatter of gradients, all-gather of weights | all, in every step |
# | recommender systems, their tables split over GPUs | all-to-all | all, in every step |
# | recommender systems that learn from clicks as they happen | asynchronous parameter servers | no worker |
# | one model on many phones | each trains alone, then a server averages | the server, but not for late phones |
#
# The sources are [FSDP](https://arxiv.org/abs/2304.11277), a subject of lesson 11, [Mudigere and others
# (2022)](https://arxiv.org/abs/2104.05158), [Monolith (2022)](https://arxiv.org/abs/2209.07663), and [Bonawitz and
# others (2019)](https://arxiv.org/abs/1902.01046).
#
# The first two run in data centres, where the machines are nearly equal. In the third, new clicks need to influence the
# model quickly. In the fourth, some phones never answer, so waiting for all of them is impossible.
#
# [Further](08_parameter_server_further.ipynb) goes on from here. It leaves the slowest worker out of every step, sends
# less with local SGD, and trains across clinics whose images never leave the building.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# A parameter server's link carries $2W$ vectors in a step, so a single server becomes the bottleneck, while several
# servers together do what a reduce-scatter and an all-gather do. If no worker waits, the mean staleness is $W-1$,
# however uneven the workers are. Old gradients need a smaller learning rate. On a parabola, the limit is at least
# $\tau + 1$ times smaller for a staleness of $\tau$. Not waiting pays if some machines are much slower than others. If
# they are equal, waiting costs little, and your results can be repeated.
#
# Continue with [the exercises](../exercises/08_parameter_server.ipynb). In [lesson 9](09_model_parallel.ipynb) the
# model no longer fits on one machine.
#
# **To read**
#
# - Dean and others, 2012, [Large Scale Distributed Deep
#   Networks](https://proceedings.neurips.cc/paper/2012/hash/6aca97005c68f1206823815f66102863-Abstract.html):
#   asynchronous SGD on tens of thousands of processor cores.
# - Li and others, 2014, [Scaling Distributed Machine Learning with the Parameter
#   Server](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu): how to build one that many
#   jobs share and that survives failures.
# - Chen and others, 2016, [Revisiting Distributed Synchronous SGD](https://arxiv.org/abs/1604.00981): the case for
#   waiting, with a few spare workers against stragglers.
