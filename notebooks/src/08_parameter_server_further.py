# The optional second notebook of lesson 8. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: what if nobody waits?
#
# Two offices want to train one model with a billion weights, and the line between them carries 1 Gbit/s. With 4 bytes
# per weight, a gradient has 4 GB, and that takes 32 seconds on the line. If the machines compute for one second per
# step, they wait for 97% of the time, and faster machines would not help at all. Asynchronous training would not help
# either, because the line would still be full.
#
# This notebook tries the other ways out. You can drop what arrives last, talk less often, or talk to fewer ranks. Four
# clinics train a network together although their images never leave the house, and you will see how much of an image a
# gradient gives away all the same. At the end, some ranks write answers and others learn from them, and a limit decides
# who has to wait.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, because each of them stands alone. JupyterLab lists them in its table of contents, on the
# left. If a section complains that its ranks were stopped, run the first code cell again.
#
# 1. *Two hundred workers*: how many of them one server can use
# 2. *Backup workers*: the first four of five
# 3. *Talking less*: several steps alone, then a mean
# 4. *A step for the mean change*: DiLoCo, for language models across slow links
# 5. *Only with neighbours*: no rank knows the mean
# 6. *Clinics that share no image*: federated averaging, and what a gradient gives away
# 7. *Trainers and generators*: answers that may be a few updates old
# 8. *A report, redone*: does asynchronous training scale, and could health workers across Africa train together?
#
# *90 minutes · optional, after [lesson 8](08_parameter_server.ipynb) · 8 ranks, about 11 minutes for each section*

# %%
import numpy as np

import course_utils as course
from course_utils.lessons.parameter_server import Pace, first_weights, flat_gradient
from course_utils.lessons.parameter_server import own_batches, pictures, unflat
from course_utils.lessons.sgd import accuracy, loss_and_gradients
from course_utils.words import percent

ranks = course.start(8, link="100 Mbit/s")
images = course.data.digits_arrays()
train_x, train_y, test_x, test_y = images
vector_bytes = first_weights(seed=0).nbytes  # 2,410 weights of 8 bytes each: 19 KB

# %% [markdown]
# ## Two hundred workers
#
# On the first page, an asynchronous server had seven workers. Would two hundred make it faster? Your computer cannot
# run so many processes, but it can run as many **virtual ranks** ([lesson 5](05_allreduce.ipynb)) as you like. They
# take turns in this notebook, and each has a clock of its own. They compute real gradients, and each gradient moves the
# clock of its worker forward by 8 ms. Messages pass a link of 100 Mbit/s, which carries one vector of 19,280 bytes in
# 1.54 ms.
#
# Let us first follow a single worker. It computes for 8 ms, its gradient travels for 1.54 ms, and the new weights
# travel back for 1.54 ms. That makes 11.1 ms for one update, or 90 updates per second. As long as the server's link has
# time for all of them, two workers bring twice as many.
#
# There is a limit, however. The link can carry only one gradient at a time towards the server, and one vector of
# weights at a time away from it. Both directions can be busy at once.
#
# **Predict.** How many times more updates per second does the server make with 200 workers than with one? And what is
# the mean staleness?

# %%
course.predict("two_hundred", within=1.3, speedup=..., staleness=...)

# %%
from course_utils.lessons.parameter_server import served

pace = Pace(seconds=0.008)  # for a gradient
many = [1, 3, 7, 20, 60, 200]
nowhere = course.start(201, where="nowhere", link="100 Mbit/s")
virtual = [served(nowhere, images, workers, pace) for workers in many]
real = [served(ranks, images, workers, pace) for workers in (3, 7)]
most = virtual[-1]
speedup = most.rate / virtual[0].rate
course.answer("two_hundred", speedup=speedup, staleness=most.staleness)

# %% tags=["figure:08_two_hundred"]
from course_utils.lessons.parameter_server import served_text

title, finding = served_text(virtual, real)
pictures.served(virtual, real, title, finding)

# %% [markdown]
# The link lets a gradient through every 1.54 ms, which makes at most 650 updates per second. That is the work of about
# seven workers. Any further worker only joins the queue. It brings no additional update, and while it waits, its
# gradient gets older. With 200 workers the mean staleness is 199, because the rule from the first page, $W - 1$, holds
# here too. The lowest panel shows what such old gradients do to the training at this learning rate.
#
# What moves this limit? A faster link does, as section 8 shows, and so do several servers, each with a part of the
# weights and a link of its own. A model with twice as many weights does not. If a gradient also takes twice as long to
# compute, both times grow together, and seven workers fill the link as before.
#
# ## Backup workers
#
# A synchronous server waits for the slowest worker, and an asynchronous one has to use old gradients. [Chen and others
# (2016)](https://arxiv.org/abs/1604.00981) found something between the two. They give the server more workers than it
# needs. At each step it takes the gradients that arrive *first*, and drops those that arrive too late. No gradient is
# ever stale, and a few slow workers stop no one. The additional workers are called **backup workers**.
#
# Here is the whole server. It remembers which step's weights each worker has, and so it knows whether a gradient is in
# time:

# %%
from course_utils.lessons.parameter_server import GRADIENT, STOP, WEIGHTS
from course_utils.lessons.parameter_server import ServerHistory, own_gradients
from course_utils.lessons.parameter_server import training_curve


def serve_the_first(comm, weights, rate, steps, needed):
    from mpi4py import MPI

    gradient, status = np.empty_like(weights), MPI.Status()
    history, dropped = ServerHistory(), 0  # the history keeps weights and times
    history.snapshot(0, weights)
    step_of = {}  # worker: the step for which it is computing
    for worker in range(1, comm.size):
        comm.Send(weights, dest=worker, tag=WEIGHTS)
        step_of[worker] = 0
    for step in range(steps):
        total, in_time = np.zeros_like(weights), []
        while len(in_time) < needed:
            comm.Recv(gradient, source=MPI.ANY_SOURCE, tag=GRADIENT, status=status)
            worker = status.Get_source()
            if step_of[worker] == step:
                total += gradient
                in_time.append(worker)
            else:  # too late: forget the gradient, and let the worker join this step
                dropped += 1
                comm.Send(weights, dest=worker, tag=WEIGHTS)
                step_of[worker] = step
        weights -= rate * total / needed
        history.snapshot(step + 1, weights)
        for worker in in_time:
            comm.Send(weights, dest=worker, tag=WEIGHTS)
            step_of[worker] = step + 1
    for _ in step_of:  # each worker is computing once more
        comm.Recv(gradient, source=MPI.ANY_SOURCE, tag=GRADIENT, status=status)
        comm.Send(weights, dest=status.Get_source(), tag=STOP)
    return history, dropped


def work_until_stopped(comm, weights, next_gradient):
    from mpi4py import MPI

    status = MPI.Status()
    while True:
        comm.Recv(weights, source=0, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == STOP:
            return
        comm.Send(next_gradient(weights), dest=0, tag=GRADIENT)


def train_with_the_first(comm, needed, steps, pace):
    weights = first_weights(seed=0)
    if comm.rank > 0:
        work_until_stopped(comm, weights, own_gradients(comm, images, pace=pace))
        return None
    rate = 0.1 * needed  # 0.1 for each gradient
    history, dropped = serve_the_first(comm, weights, rate, steps, needed)
    return training_curve(history, images, 32 * needed), dropped


# %% [markdown]
# If the server needs all of its workers, nothing is ever dropped, and this must be the synchronous server of the first
# page. We check that, with workers that do not sleep:

# %%
from course_utils.lessons.parameter_server import train_synchronously

ranks = course.start(6)  # one server and five workers, without links
quick = Pace(seconds=0)
ours, dropped = ranks.run(train_with_the_first, 5, 20, quick).results[0]
run = ranks.run(train_synchronously, images, 20, rate=0.5, every=1, pace=quick)
assert ours.accuracies == run.results[0].accuracies and dropped == 0

# %% [markdown]
# Now one worker becomes unreliable. A gradient takes 20 ms, but on worker 1 some gradients take 100 ms, chosen at
# random. Here are ten steps in which the server takes the first four of five gradients. Look for the long bars of
# worker 1, and at what the others do in the meantime:

# %%
from course_utils.words import count

unreliable = Pace(seconds=0.02, straggler=1, factor=5, share=0.25)
run = ranks.run(train_with_the_first, 4, 10, unreliable)
_, dropped = run.results[0]
run.timeline(
    f"Worker 1 is late at times: {count(dropped, 'gradient')} dropped in ten steps"
)

# %% [markdown]
# If worker 1 comes back in the middle of a step, you can see another effect. It begins at once with the new weights,
# but its next gradient arrives in the middle of the next step, and is dropped although it took no longer than the
# others. This goes on until worker 1 happens to be in time again.
#
# How long does a step take? Suppose that one in ten of worker 1's gradients were slow. If the server waited for all
# five workers, nine steps of ten would take 20 ms and one would take 100 ms. The mean is $0.9\cdot 20 + 0.1\cdot 100 =
# 28$ ms. If it takes the first four of five instead, the other four workers are always there after 20 ms.
#
# **Predict.** In our run, about one in *four* of worker 1's gradients is slow. How many milliseconds does a step take
# on average if the server waits for all five, and how many if it takes the first four?

# %%
course.predict("backup", within=1.3, all_five=..., first_four=...)  # milliseconds

# %% [markdown]
# For a fair comparison, every way gets the same number of gradients, 480. The server that waits for five makes 96
# steps, and the one that waits for four makes 120. The asynchronous server of the first page makes 480 updates, with
# the same rate of 0.1 for each gradient. We run each of them three times, in alternation:

# %% tags=["here:08_backup"]
from course_utils.lessons.parameter_server import train_asynchronously
from course_utils.measuring import by_turns, is_busy


def all_five():
    return ranks.run(train_with_the_first, 5, 96, unreliable).results[0]


def first_four():
    return ranks.run(train_with_the_first, 4, 120, unreliable).results[0]


def asynchronous():
    options = {"rate": 0.1, "every": 4, "pace": unreliable}
    return ranks.run(train_asynchronously, images, 480, **options).results[0], 0


ways = {"all five": all_five, "first four": first_four, "asynchronous": asynchronous}
steps = {"all five": 96, "first four": 120, "asynchronous": 480}
runs = by_turns(ways, 3)
milliseconds, curves = {}, {}
for name, pairs in runs.items():
    curves[name] = [curve for curve, _ in pairs]
    dropped = np.median([dropped for _, dropped in pairs])
    seconds = [curve.seconds[-1] for curve in curves[name]]
    milliseconds[name] = [1000 * each / steps[name] for each in seconds]
    print(
        f"{name:13} {np.median(milliseconds[name]):5.1f} ms per update,",
        f"{np.median(seconds):4.2f} s for 480 gradients, {dropped:.0f} more dropped,",
        percent(np.median([curve.accuracies[-1] for curve in curves[name]])),
    )
busy = is_busy(milliseconds.values())
course.measured(
    "backup",
    busy=busy,
    all_five=np.median(milliseconds["all five"]),
    first_four=np.median(milliseconds["first four"]),
)

# %% tags=["figure:08_backup"]
from course_utils.lessons.parameter_server import backup_text

title = backup_text(curves, "all five", "first four", busy)
pictures.races({"One worker is late": curves}, title)

# %% [markdown]
# What does the backup cost? The cell above has printed how many gradients were computed and then dropped. If all five
# workers were equally fast, it would be one in five, because in each step one of them has to be the last. So a backup
# worker is worth its price only if waiting costs more than that. There is also a danger that the curves do not show. If
# a worker is *always* too late, none of its gradients is ever used. Whatever only its images could teach, the network
# does not learn.
#
# ## Talking less
#
# Backup workers help against slow workers. Against slow *links* it helps to send less. In **local SGD**, each rank
# takes $k$ steps by itself, without a message, and then all ranks replace their weights by the mean over all ranks.
# This takes one all-reduce, and no server.
#
# Why should the mean of the weights be any good? Let us begin with $k = 1$. All ranks start from the same weights $w$,
# and rank $r$ goes to $w - \eta\,g_r$. The mean over all ranks is $w - \eta\,\bar g$ with the mean gradient $\bar g$,
# so this is exactly the step of [lesson 6](06_data_parallel.ipynb). With $k > 1$ it is no longer the same, because
# after its first step each rank computes its gradient at its own weights. Here is the training, for 64 steps. The
# function `local_sgd_round` takes the steps of one round and then the mean. It is an
# [exercise](../exercises/08_parameter_server.ipynb):

# %%
from course_utils.lessons.parameter_server import local_sgd_round


def train_locally(comm, k):
    def gradient(weights, batch):
        x, y = batch
        return flat_gradient(weights, x, y)

    batches = own_batches(images, comm.rank, comm.size, 32, seed=comm.rank)
    weights = first_weights(seed=0)
    for _ in range(64 // k):
        next_batches = [next(batches) for _ in range(k)]
        local_sgd_round(comm, weights, gradient, next_batches, rate=0.4)
    return accuracy(unflat(weights), test_x, test_y)


# %% [markdown]
# If the ranks meet after each of 64 steps, each of them contributes a vector to 64 all-reduces, which is 64 × 19 KB =
# 1.2 MB.
#
# **Predict.** How many vectors does each rank contribute if they meet after every fourth step, and how many if they
# meet after every 16th?

# %%
course.predict("local_bytes", within=1.1, fourth=..., sixteenth=...)  # vectors

# %% tags=["figure:08_local"]
from course_utils.lessons.parameter_server import local_text
from course_utils.words import bytes_text

local_steps, sent, ends = [1, 4, 16, 64], [], []
for k in local_steps:
    run = ranks.run(train_locally, k, ranks=4)
    sent.append(run.bytes_per_rank[0])
    ends.append(run.results[0])
course.answer(
    "local_bytes", fourth=sent[1] / vector_bytes, sixteenth=sent[2] / vector_bytes
)
by_formula = {"sent": [vector_bytes * 64 / k for k in local_steps]}
course.draw.over_numbers(
    local_steps,
    {"sent": sent},
    local_text(local_steps, sent, ends),
    "64 steps on four ranks",
    across="local steps between two means",
    up="bytes that a rank contributes",
    unit=bytes_text,
    predicted=by_formula,
    log=True,
)

# %% [markdown]
# The number of vectors is $\frac{64}{k}$, and this is exact. The accuracy is another matter. Here, each rank has a
# random quarter of the same images, so the ranks learn nearly the same things and their weights stay close. If every
# rank had images of its own kind, their weights would drift apart. You will see that in section 6.
#
# Is there a proof that it works? [Stich (2019)](https://arxiv.org/abs/1805.09767) showed, for convex functions, that
# local SGD needs about as many steps as SGD with a mean after each step, as long as $k$ does not grow too fast.
#
# ## A step for the mean change
#
# Language models are usually trained with AdamW ([lesson 2](02_autodiff_and_optimizers.ipynb)), whose steps depend on
# means over many earlier gradients. **DiLoCo** ([Douillard and others, 2023](https://arxiv.org/abs/2311.08105)) makes
# local training work well with it. Each rank takes many AdamW steps by itself. Then the ranks do not simply continue
# from the mean of their weights. They treat the mean *change* as a gradient, and use it for a second optimizer. Its
# step is called the **outer step**.
#
# In formulas, let $s$ be the weights at the start of the round, which are the same on all ranks, and let $w_r$ be the
# weights of rank $r$ after its own steps. The outer gradient $g = s - \frac1P\sum_r w_r$ points from the mean of the
# ranks back to the start. The outer optimizer is SGD with momentum in the form of Nesterov. It keeps a velocity $v$,
# which is zero at first, and a step is
#
# $$v \leftarrow \mu v + g, \qquad s \leftarrow s - \eta\,(g + \mu v)$$
#
# with momentum $\mu = 0.9$ and rate $\eta = 0.7$. After it, all ranks continue from the new $s$.
#
# Let us try this with numbers. Suppose that the ranks lower a weight by 1, on average, in every round, so that $g = 1$.
# In the first round $v = 1$, and the outer step lowers the weight by $0.7\,(1 + 0.9) = 1.33$. In the second round $v =
# 0.9 + 1 = 1.9$ and the step is $0.7\,(1 + 1.71) = 1.90$. If it goes on like this, $v$ approaches 10, and a step
# approaches $0.7\,(1 + 9) = 7$. So the outer step goes up to seven times farther than the ranks have gone by
# themselves. With $\eta = 1$ and $\mu = 0$ it goes exactly as far, which is the plain mean.
#
# The loop has an inner part without messages, and one all-reduce at the end of each round, inside `outer_step` (which
# is an exercise, too):

# %%
from course_utils.lessons.parameter_server import AdamW, outer_step


def diloco(comm, rounds, outer_rate, momentum):
    batches = own_batches(images, comm.rank, comm.size, 32, seed=comm.rank)
    weights = first_weights(seed=0)
    adamw = AdamW(len(weights), rate=0.003)  # its means stay on this rank
    started, velocity = weights.copy(), np.zeros_like(weights)
    losses = []
    for _ in range(rounds):
        for _ in range(16):
            x, y = next(batches)
            adamw.step(weights, flat_gradient(weights, x, y))
        outer_step(comm, weights, started, velocity, outer_rate, momentum)
        losses.append(loss_and_gradients(unflat(weights), train_x, train_y)[0])
    return losses


# %% [markdown]
# We train the digits for 16 rounds of 16 steps on four ranks. An AdamW step changes a weight by about its rate at most,
# which is only 0.003 here, so 16 steps change it by at most 0.05. We compare DiLoCo with the plain mean, and also with
# ranks that take the mean of their *gradients* at each of the 256 steps.
#
# **Predict.** Which way ends with the lowest loss? And how many times more bytes than DiLoCo does it cost to meet at
# every step?

# %%
names = {"a": "a mean at every step", "b": "the plain mean", "c": "an outer step"}
course.predict("diloco", answer=..., choices=names)  # "a", "b" or "c"
course.predict("diloco_bytes", within=1.1, times=...)

# %% tags=["figure:08_outer"]
from course_utils.lessons.parameter_server import outer_text, train_in_rounds

rounds = 16
each_round = np.arange(1, rounds + 1)
trainings = {
    "a mean at every step": ranks.run(train_in_rounds, images, 16, "every step", ranks=4),
    "the plain mean": ranks.run(diloco, rounds, 1.0, 0.0, ranks=4),
    "an outer step": ranks.run(diloco, rounds, 0.7, 0.9, ranks=4),
}
losses, sent = {}, {}
for name, run in trainings.items():
    losses[name] = run.results[0]  # after each round
    sent[name] = run.bytes_per_rank[0] / rounds * each_round
lowest = min(losses, key=lambda name: losses[name][-1])
letters = {name: letter for letter, name in names.items()}
course.measured("diloco", answer=letters[lowest])
most, least = sent["a mean at every step"][-1], sent["an outer step"][-1]
course.answer("diloco_bytes", times=most / least)
title = f"After 16 rounds of 16 steps the loss is lowest with {lowest}"
pictures.loss_over_bytes(sent, losses, title, outer_text(sent, losses))

# %% [markdown]
# Averaging once in 16 steps sends a sixteenth of the bytes. The outer step costs nothing in addition, because the
# velocity is calculated by each rank for itself. AdamW's means and squares are never sent.
#
# Going up to seven times farther is only good if the ranks do not go far enough by themselves. If the inner steps are
# long already, the outer step overshoots. You can try this by setting AdamW's rate in `diloco` to 0.05, and comparing
# the outer step with the plain mean. In the paper, language models take 500 steps between two outer steps, and they
# send 500 times less than with a mean at every step.
#
# ## Only with neighbours
#
# So far, all ranks had to agree on a mean at some time. Does a rank need to know the mean of *all*? In **D-PSGD**
# ([Lian and others, 2017](https://arxiv.org/abs/1705.09056)) the ranks form a ring. At every step each rank averages
# its weights with those of its two neighbours, and takes a step against its own gradient. For rank $r$ this is
#
# $$w_r \leftarrow \tfrac13\,(w_{r-1} + w_r + w_{r+1}) - \eta\, g_r$$

# %%
from course_utils.lessons.allreduce import ring_allreduce


def neighbours_step(comm, weights, gradient, rate):
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    from_left, from_right = np.empty_like(weights), np.empty_like(weights)
    comm.Sendrecv(weights, dest=right, recvbuf=from_left, source=left)
    comm.Sendrecv(weights, dest=left, recvbuf=from_right, source=right)
    weights[:] = (from_left + weights + from_right) / 3 - rate * gradient


def all_reduce_step(comm, weights, gradient, rate):
    ring_allreduce(comm, gradient)
    weights -= rate * gradient / comm.size


def train(comm, take_step, steps, steps_without_gradient=0):
    batches = own_batches(images, comm.rank, comm.size, 16, seed=comm.rank)
    weights = first_weights(seed=0)
    kept = [weights.copy()]
    for step in range(steps + steps_without_gradient):
        x, y = next(batches)
        gradient = flat_gradient(weights, x, y)
        if step >= steps:
            gradient[:] = 0
        take_step(comm, weights, gradient, rate=0.3)
        kept.append(weights.copy())
    return kept


# %% [markdown]
# The ring all-reduce of lesson 5 has 6 rounds on 4 ranks, and each rank sends $2\cdot\frac34 = 1.5$ vectors.
#
# **Predict.** How many vectors does each of 8 ranks send per step with `neighbours_step`? And with `all_reduce_step`?

# %%
course.predict("neighbours", within=1.05, neighbours=..., all_reduce=...)

# %% tags=["figure:08_neighbours"]
from course_utils.lessons.parameter_server import neighbours_text

ranks = course.start(8)
methods = {"neighbours": neighbours_step, "all-reduce": all_reduce_step}
curves, per_step = {}, {}
for name, take_step in methods.items():
    run = ranks.run(train, take_step, 90)
    per_step[name] = run.bytes_per_rank[0] / vector_bytes / 90
    means = np.mean(run.results, axis=0)  # the ranks' mean weights after each step
    curves[name] = [loss_and_gradients(unflat(w), train_x, train_y)[0] for w in means]
course.answer(
    "neighbours", neighbours=per_step["neighbours"], all_reduce=per_step["all-reduce"]
)
title = neighbours_text(curves["neighbours"], curves["all-reduce"])
course.draw.loss_curves(curves, title, y="loss of the ranks' mean weights")

# %% [markdown]
# Two vectors per step are not fewer bytes than in the ring all-reduce, which needs $2\cdot\frac78 = 1.75$. What you
# save is rounds: 2 instead of 14, and it stays at 2 for a thousand ranks. If the latency of the network is high, this
# matters most. And in each step a rank waits only for its two neighbours.
#
# ### How far apart are the ranks?
#
# The price is that the ranks have different weights. The usual measure is the **consensus distance**. Take the distance
# of each rank's weights from the mean of all ranks' weights, square it, average over the ranks, and take the root. The
# gradients pull the ranks apart, and the averaging pulls them together. How strong is that pull? Let us calculate it
# without gradients.
#
# Suppose four ranks have one weight each: 1, 0, −1 and 0. Rank 0 averages its 1 with the zeros to its left and right,
# which gives one third. Rank 1 averages 1, 0 and −1, which gives 0. So after one step the weights are ⅓, 0, −⅓ and 0,
# and every distance from the mean has shrunk to one third. If the weights are 1, −1, 1 and −1, rank 0 gets
# $\frac13(-1 + 1 - 1) = -\frac13$, so the distances shrink to one third again. With 4 ranks, whatever the weights are,
# they are made of a mean and patterns like these two.
#
# On a longer ring the differences can be spread out. With 8 ranks, the slowest pattern is a wave: 1, 0.71, 0, −0.71,
# −1, −0.71, 0, 0.71.
#
# **Predict.** To what share does one step shrink this wave? Calculate the mean for rank 0, whose neighbours have 0.71.

# %%
course.predict("wave", within=1.05, share=...)

# %% tags=["figure:08_apart"]
from course_utils.lessons.parameter_server import consensus_distance, shrinking

far = {}
for P in (4, 8):
    kept = ranks.run(train, neighbours_step, 60, 24, ranks=P).results
    weights_after = np.array(kept).transpose(1, 0, 2)  # for each step, for each rank
    distances = [consensus_distance(weights) for weights in weights_after]
    far[f"{P} ranks"] = distances[6::6]  # after steps 6, 12, …
    shrinks = (distances[84] / distances[72]) ** (1 / 12)
    print(f"{P} ranks: one step leaves {shrinks:.2f}; by the formula {shrinking(P):.2f}")
course.measured("wave", share=shrinks)
course.draw.over_numbers(
    range(6, 85, 6),
    far,
    f"Without gradients, from step 60 on, each step leaves {percent(shrinks)} on 8 ranks",
    across="step",
    up="consensus distance",
    unit="{:g}".format,
    log=True,
)

# %% [markdown]
# The answer is $\frac13(0.71 + 1 + 0.71) = 0.80$, and all other values of the wave shrink in the same proportion. On a
# ring of $P$ ranks the neighbours of the crest have $\cos\frac{2\pi}{P}$, so a step leaves $\frac13\left(1 +
# 2\cos\frac{2\pi}{P}\right)$ of the slowest wave. For 100 ranks that is 0.999. The longer the ring is, the more slowly
# its ranks agree, because news travels only one rank per step. If that is too slow, ranks can have more neighbours, or
# different ones at each step. There is also an asynchronous version, called AD-PSGD ([Lian and others,
# 2018](https://arxiv.org/abs/1710.06952)).
#
# ## Clinics that share no image
#
# Four clinics want to train a network together, but their patients' images must not leave the house. So each clinic
# trains on its own images, and only weights are sent. This is **federated averaging** ([McMahan and others,
# 2017](https://arxiv.org/abs/1602.05629)). It is local SGD among owners whose data differ, in kind and in number.
#
# Let the ten digits stand for ten diagnoses. The function `skewed_shards` divides our images among four clinics, and
# the number 0.1 asks for very different ones (100 would make them nearly alike):

# %% tags=["figure:08_clinics"]
from course_utils.lessons.parameter_server import skewed_shards

shards = skewed_shards(train_y, 4, 0.1, np.random.default_rng(3))
counts = [np.bincount(train_y[shard], minlength=10) for shard in shards]
title = "Each of the four clinics has seen only some of the digits"
pictures.who_has_what(counts, "clinic", "digit", title)

# %% [markdown]
# After its local training, clinic $r$ has the weights $w_r$. If it has $n_r$ of all $n$ images, it counts for a share
# of $\frac{n_r}{n}$ in the mean, $w = \sum_r \frac{n_r}{n}\,w_r$. If one clinic with 300 images has the weight 1.0 and
# one with 100 images has 2.0, the mean is $\frac{300}{400}\cdot 1.0 + \frac{100}{400}\cdot 2.0 = 1.25$. The
# [exercise](../exercises/08_parameter_server.ipynb) `federated_average` calculates this with a single all-reduce, and
# each clinic receives only the mean. An all-reduce is not built to keep secrets, though. In lesson 5's ring, the first
# block that a rank receives is one of its neighbour's own.
#
# Why count by images? Let each clinic take *one* step with *all* its images. Then the weighted mean should be the step
# that a single clinic with all the images would have taken, because the mean gradient over all images is the weighted
# mean of the clinics' mean gradients:

# %%
from course_utils.lessons.parameter_server import federated_average


def one_step(comm, by_images):
    shard = shards[comm.rank]
    weights = first_weights(seed=0)
    weights -= 0.1 * flat_gradient(weights, train_x[shard], train_y[shard])
    federated_average(comm, weights, len(shard) if by_images else 1)
    return weights


together = first_weights(seed=0)
together -= 0.1 * flat_gradient(together, train_x, train_y)
for by_images in (True, False):
    weights = ranks.run(one_step, by_images, ranks=4).results[0]
    difference = np.abs(weights - together).max()
    print(f"counted by images: {by_images!s:5}  largest difference {difference:.0e}")
    assert by_images == (difference < 1e-12)

# %% [markdown]
# Counted by images, the mean is the same step, up to rounding. Now to the whole training. A clinic makes some **local
# epochs**, which are passes over its own images, before all of them take the mean:

# %%
from course_utils.lessons.sgd import minibatches


def train_clinic(comm, shards, rounds, local_epochs, by_images=True):
    x, y = train_x[shards[comm.rank]], train_y[shards[comm.rank]]
    rng = np.random.default_rng(comm.rank)
    weights = first_weights(seed=0)
    accuracies = []
    for _ in range(rounds):
        for _ in range(local_epochs):
            for batch in minibatches(len(x), 16, rng):
                weights -= 0.05 * flat_gradient(weights, x[batch], y[batch])
        federated_average(comm, weights, len(x) if by_images else 1)
        accuracies.append(accuracy(unflat(weights), test_x, test_y))
    return accuracies


# %% [markdown]
# What does it cost if all clinics count the same? That depends on who is small. Take a hospital that has seen all the
# digits, and three small clinics with 40 images of two digits each:

# %%
from course_utils.lessons.parameter_server import mean_text

small = []
for first in (0, 2, 4):
    of_two_digits = np.flatnonzero((train_y == first) | (train_y == first + 1))
    small.append(of_two_digits[:40])
hospital = np.setdiff1d(np.arange(len(train_y)), np.concatenate(small))
ends = {}
for by_images in (True, False):
    run = ranks.run(train_clinic, [hospital, *small], 8, 5, by_images, ranks=4)
    ends[by_images] = run.results[0][-1]
print("After 8 rounds:", mean_text(ends[True], ends[False]))

# %% [markdown]
# Back to the four different clinics. Suppose that a clinic's connection is slow, and each mean costs it 19 KB. With
# more local epochs they need fewer means, but every clinic goes further towards a network for *its own* digits before
# they meet.
#
# **Predict.** How many local epochs let them recognise 85% of the test images with the fewest bytes: 1, 5 or 20?

# %%
choices = {"a": "1 local epoch", "b": "5 local epochs", "c": "20 local epochs"}
course.predict("clinic_bytes", answer=..., choices=choices)  # "a", "b" or "c"

# %%
from course_utils.lessons.parameter_server import clinics_text, rounds_to

by_epochs, needed = {}, {}
for letter, local_epochs in {"a": 1, "b": 5, "c": 20}.items():
    run = ranks.run(train_clinic, shards, 10, local_epochs, ranks=4)
    by_epochs[local_epochs] = run.results[0]
    needed[letter] = rounds_to(run.results[0], 0.85) or np.inf  # rounds
nbytes = run.bytes_per_rank[0] / 10  # in one round
course.measured("clinic_bytes", answer=min(needed, key=needed.get))

# %% tags=["figure:08_federated"]
sent = [round(nbytes * rounds / 1000) for rounds in range(1, 11)]
lines = dict(zip(choices.values(), by_epochs.values(), strict=True))
course.draw.over_numbers(
    sent,
    lines,
    f"The fewest bytes to 85%: {choices[min(needed, key=needed.get)]} between two means",
    clinics_text(by_epochs, 0.85, nbytes),
    across="KB sent by a clinic",
    up="test images recognised",
    unit=percent,
    limits=(0, 1),
)

# %% [markdown]
# The line below the title counts both sides, the bytes that a clinic sends and the epochs that it computes for them. If
# computing is cheap and sending is not, many local epochs pay off.
#
# ### What a gradient gives away
#
# The images stay in the house, but do the weights keep the secret? Suppose a clinic takes one step with a *single*
# image $x$ and sends its new weights. The difference from the old weights is the rate times the gradient, so the
# receiver knows the gradient. The first layer computes $x_1 w_{1j} + x_2 w_{2j} + \dots + b_j$ for each hidden neuron
# $j$. Let $\delta_j$ be the derivative of the loss with respect to this number. By the chain rule, the derivative with
# respect to $b_j$ is $\delta_j$, and the one with respect to $w_{ij}$ is $x_i\,\delta_j$. So the receiver divides the
# second by the first and gets pixel $x_i$. No training and no guessing is needed for that:

# %% tags=["nbval-check-output", "here:08_leak"]
x, y = train_x[8:9], train_y[8:9]  # one image, and its digit
gradient = flat_gradient(first_weights(seed=0), x, y)
layer_1, bias_1, _, _ = unflat(gradient)  # 64 × 32 and 32 numbers, and the second layer
j = np.abs(bias_1).argmax()  # a neuron that was active
rebuilt = layer_1[:, j] / bias_1[j]
assert np.allclose(rebuilt, x[0])
shades = " .:-=+*#%@"
brightness = (rebuilt - rebuilt.min()) / (rebuilt.max() - rebuilt.min())
for row in brightness.reshape(8, 8):
    print("".join(2 * shades[round(9 * value)] for value in row))
print("The digit was a", y[0])

# %% [markdown]
# With a batch of 16 images, the same division gives a mixture of all the images that activate the neuron. That is
# harder to take apart, but not always impossible. [Zhu and others (2019)](https://arxiv.org/abs/1906.08935) rebuilt
# several images at once from one gradient, by searching for images that would produce it. The more steps and images lie
# between two messages, the less a message reveals about a single one. If this is not enough, clinics can add noise to
# what they send ([Abadi and others, 2016](https://arxiv.org/abs/1607.00133)), or encrypt it in such a manner that only
# the sum can be read ([Bonawitz and others, 2017](https://eprint.iacr.org/2017/281)).
#
# ## Trainers and generators
#
# In a last stage of their training, many large language models learn from their own answers. Some ranks write answers
# with the current weights, and every answer gets a reward, for example 1 if a sum is right and 0 if it is wrong. Other
# ranks then change the weights so that answers with a high reward become more probable. This is a kind of
# *reinforcement learning*, and the two groups of ranks are called **trainers and generators**. Answers travel from the
# generators to the trainers, and new weights travel back.
#
# If the generators wait for new weights, and then the trainers wait for new answers, one of the two groups is always
# idle. So let the generators carry on with the weights that they have. Their answers are then from an older network, as
# the gradients on the first page were, and again the question is how old. This time we set a limit. No answer that a
# trainer uses may be more than $S$ updates old, and a generator has to wait if its next answers would be. This is
# called **bounded staleness** ([Ho and others, 2013](https://www.cs.cmu.edu/~seunghak/SSPTable_NIPS2013.pdf), for a
# parameter server).
#
# How does a generator know whether it has to wait? Each update uses one batch of answers from every generator, in the
# order in which they were written. If we count batches and updates from 0, batch $n$ will be used when the weights have
# seen $n$ updates. If it was written with weights that have seen $v$ updates, it will be $n - v$ updates old. So a
# generator may begin batch $n$ as soon as $v \geq n - S$. With $S = 2$, for example, batch 7 needs weights that have
# seen at least 5 updates.
#
# We play this with the digits. An answer is a digit that is drawn from the network's probabilities for an image, and
# its reward is 1 if it is right. `answers_gradient` returns a gradient that makes answers with a reward above the
# batch's mean more probable, and the others less. Writing and training take as long as `seconds` asks for.

# %%
from course_utils.lessons.parameter_server import answers_gradient, compute_for
from course_utils.lessons.parameter_server import draw_answers
from course_utils.trace.recorder import phase

ANSWERS, NEWS = 1, 2  # tags
trainers = 2  # ranks 0 and 1; all others are generators


def generate(comm, trainer, updates, S, seconds, varied=False):
    weights, version = first_weights(seed=0), 0
    news, rng = np.empty(1 + len(weights)), np.random.default_rng(comm.rank)
    for number in range(updates):
        while version < number - S or comm.Iprobe(source=trainer, tag=NEWS):
            comm.Recv(news, source=trainer, tag=NEWS)
            version, weights = int(news[0]), news[1:].copy()
        with phase("write"):
            drawn = draw_answers(weights, images, rng)
            compute_for(comm, rng.exponential(seconds) if varied else seconds)
        batch = np.concatenate([[version], drawn.flatten()])
        comm.Send(batch, dest=trainer, tag=ANSWERS)
    while version < updates:  # what is still on its way
        comm.Recv(news, source=trainer, tag=NEWS)
        version = int(news[0])


def train_on_answers(comm, group, generators, updates, seconds, most=None):
    from mpi4py import MPI

    weights, ages, sending = first_weights(seed=0), [], []
    batch = np.empty(1 + 4 * 32)
    for update in range(updates):
        gradient = np.zeros_like(weights)
        for generator in generators:
            comm.Recv(batch, source=generator, tag=ANSWERS)
            ages.append(update - int(batch[0]))
            drawn = batch[1:].reshape(4, 32)
            gradient += answers_gradient(weights, drawn, images, most)
        with phase("train"):
            compute_for(comm, seconds)
        group.Allreduce(MPI.IN_PLACE, gradient)  # of all trainers
        weights = weights - 0.3 * gradient / (comm.size - trainers)
        news = np.concatenate([[update + 1], weights])
        sending = [request for request in sending if not request.Test()]  # not arrived
        for generator in generators:
            sending.append(comm.Isend(news, dest=generator, tag=NEWS))
    MPI.Request.Waitall(sending)
    return accuracy(unflat(weights), test_x, test_y), ages


def two_groups(comm, updates, S, writing, training, varied=False, most=None):
    group = comm.Split(comm.rank < trainers)
    if comm.rank < trainers:
        generators = range(trainers + comm.rank, comm.size, trainers)
        return train_on_answers(comm, group, generators, updates, training, most)
    generate(comm, comm.rank % trainers, updates, S, writing, varied)


# %% [markdown]
# The `while` loop in `generate` is the whole rule. `Iprobe` asks whether a message has arrived, without receiving it.
# As long as there are newer weights, the generator takes them, and if they are still too old, it waits for more. A
# trainer doesn't wait until a generator takes its weights, because it sends them with `Isend`.
#
# Here are two trainers and two generators, once with $S = 0$ and once with $S = 1$. A batch takes 20 ms to write, and
# an update takes 10 ms:

# %%
from course_utils.lessons.parameter_server import ages_text

ranks = course.start(6)
runs, oldest = {}, {}
for S in (0, 1):
    run = ranks.run(two_groups, 5, S, 0.02, 0.01, ranks=4)
    ages = [age for result in run.results[:trainers] for age in result[1]]
    assert max(ages) <= S
    runs[f"S = {S}"], oldest[f"S = {S}"] = run, max(ages)
course.draw.timelines(*runs.values(), titles=list(runs), title=ages_text(oldest))

# %% [markdown]
# With $S = 0$ the two groups take turns, so that an update takes 20 + 10 = 30 ms if we leave out the messages. With $S
# = 1$ they can work at the same time, and a generator waits only if the trainers are slower than it is.
#
# **Predict.** How many milliseconds does an update then take? And with $S = 3$, how many updates old are the answers in
# a long run, first if writing takes 20 ms and training 10 ms, and then if it is the other way round?

# %%
course.predict("lag", within=1.1, ms=..., slow_writing=..., fast_writing=...)

# %% [markdown]
# Here your computer's cores are shared by all ranks, so we now use virtual ranks, whose clocks are exact, with two
# trainers and four generators:

# %%
nowhere = course.start(6, where="nowhere")
updates = 100


def on_clocks(S, writing, training, **options):
    run = nowhere.run(two_groups, updates, S, writing, training, **options)
    ages = [age for result in run.results[:trainers] for age in result[1]]
    assert max(ages) <= S
    return run, np.median(ages)


one_behind, _ = on_clocks(1, 0.02, 0.01)
_, slow_writing = on_clocks(3, 0.02, 0.01)
_, fast_writing = on_clocks(3, 0.01, 0.02)
course.answer(
    "lag",
    ms=round(1000 * one_behind.seconds / updates),
    slow_writing=slow_writing,
    fast_writing=fast_writing,
)
for S in (0, 1, 2, 4, 8):
    milliseconds = [
        1000 * on_clocks(S, 0.02, 0.01, varied=varied)[0].seconds / updates
        for varied in (False, True)
    ]
    print(
        f"S = {S}: {milliseconds[0]:.0f} ms per update,",
        f"{milliseconds[1]:.0f} ms if answers have different lengths",
    )

# %% [markdown]
# If writing is slow, the trainers have finished before the next batch begins, so it begins with weights that lack only
# the update for which it is being written. If writing is fast, the generators run ahead until the limit stops them. So
# $S = 1$ would be enough for the full speed, if all batches took equally long. But answers have very different lengths.
# In the last column, batches take 20 ms *on average*, and every update waits for the slowest of its four. A larger $S$
# lets a generator that has been lucky write ahead for the time when it is not.
#
# Why not take a very large $S$ then? We look at what the network learns in 100 updates. The generators are fast here,
# so that the answers are as old as the limit allows. Besides training on the answers as they are, the cell tries out a
# repair. Each answer counts by the ratio of how probable it is *now* and how probable it was when it was *written*, but
# at most twice:

# %%
from course_utils.lessons.parameter_server import lag_text

limits = [0, 1, 2, 4, 8]
lines = {"as they are": None, "by the ratio": 2.0}
ends = {}
for name, most in lines.items():
    runs = [on_clocks(S, 0.01, 0.02, most=most)[0] for S in limits]
    ends[name] = [run.results[0][0] for run in runs]
course.draw.over_numbers(
    limits,
    ends,
    lag_text(limits, ends),
    across="largest staleness S",
    up="test images recognised",
    unit=percent,
    limits=(0, 1),
)

# %% [markdown]
# A wrong answer makes the network less sure of this answer. If the answer was written several updates ago, the network
# may have become unsure of it long since. The old answer pushes it down again and again, and the gradient of $-\log p$
# doesn't get smaller when $p$ does. With the ratio, an answer that is now improbable hardly counts. IMPALA ([Espeholt
# and others, 2018](https://arxiv.org/abs/1802.01561)) limits such ratios in the same manner, for players of video games
# that lag behind their learner.
#
# What travels? A batch has 129 numbers of 8 bytes, its version and four numbers for each answer. The weights and their
# version are 2,411 numbers, and every generator gets them in every update:

# %% tags=["nbval-check-output"]
run = ranks.run(two_groups, 10, 1, 0.002, 0.001)
for name, senders in {"answers": range(2, 6), "weights": range(2)}.items():
    sizes = [
        event.bytes
        for event in run.events
        if event.kind == "send" and event.rank in senders
    ]
    print(f"{name}: {len(sizes)} messages of {max(sizes):,} bytes in ten updates")
assert sizes == [8 * (1 + 2410)] * 40

# %% [markdown]
# In large models the weights dominate even more. With 70 billion weights of 2 bytes, each copy of the generators' model
# needs 140 GB per update, and an answer of a thousand tokens takes only a few KB.
#
# ### Only rank 0 gathers
#
# Weights of that size are usually sharded over the trainers (lesson 11), so they have to be gathered before they are
# sent. The next program does this with two trainers, each of which has half of the weights, and two generators. Rank 0
# sends the weights to both generators, so it gathers them first. Try to find the mistake before you run the cells. (The
# run ends in an error, and it is meant to.)


# %%
def with_shards(comm, updates=3):
    group = comm.Split(comm.rank < trainers)
    answers, shard, whole = np.zeros(129), np.zeros(1205), np.empty(2410)
    for _ in range(updates):
        if comm.rank < trainers:
            comm.Recv(answers, source=comm.rank + trainers)
            if comm.rank == 0:
                group.Allgather(shard, whole)
                for generator in (2, 3):
                    comm.Send(whole, dest=generator)
        else:
            comm.Send(answers, dest=comm.rank - trainers)
            comm.Recv(whole, source=0)


# %% tags=["raises-exception"]
ranks.run(with_shards, ranks=4)

# %%
ranks.waits()

# %% [markdown]
# A gather is a *collective*, so it ends only when all ranks of its group have called it, and not only the one that
# wants the result. Rank 0 waits in `Allgather` for rank 1. Rank 1 has gone on and waits for the next answers of rank 3.
# Rank 3 waits for weights before it writes them, and these would come from rank 0. In a large program, this ends with a
# timeout after some minutes, often on ranks that did nothing wrong. The repair is to move the call out of the `if`, so
# that every trainer gathers, and only the sending is left to rank 0.
#
# ## A report, redone
#
# This course began with four [documents](../docs/sources.md) that other people wrote. Two of them have something to say
# about this lesson.
#
# ### Does asynchronous training scale?
#
# SURF runs the computers that research in the Netherlands shares, and teaches people to use them. The slides of its
# course from 2022 warn that with a server, training "does not scale well", because "parameter servers create a
# communication bottleneck". The next slide is about asynchronous SGD, and there they write that it "generally scales
# well, because there is no 'barrier' that induces wait time". Both sentences are reasonable, but they are about
# different limits. Without a barrier, no worker waits for another *worker*. It may still have to wait for the *link*,
# and with one server and our numbers, seven workers fill it. If the link is ten times faster, the second sentence is
# right up to many more workers. A worker then needs 8 + 2 × 0.154 = 8.3 ms, so it takes about 8.3 ÷ 0.154 = 54 workers
# to fill the link:

# %% tags=["here:08_scales"]
from course_utils.lessons.parameter_server import served

for link in ("100 Mbit/s", "1 Gbit/s"):
    nowhere = course.start(101, where="nowhere", link=link)
    alone = served(nowhere, images, 1, Pace(seconds=0.008))
    for workers in (5, 20, 100):
        run = served(nowhere, images, workers, Pace(seconds=0.008))
        factor = run.rate / alone.rate
        print(f"{link:>10}, {workers:3} workers: {factor:4.1f} times the updates of one")

# %% [markdown]
# More updates are not yet more learning, of course, because staleness grows with every worker. The slides know this,
# too, since asynchronous SGD "does not have the same convergence guarantees". Their advice is that asynchronous SGD "is
# an active area of research", and that synchronous SGD "is well understood and is currently the *accepted* and
# *advised* approach". You have seen the reasons for it. With equal workers, waiting costs little, the result is the
# same in every run, and it equals the serial one. Since then some systems have found a middle way. In [AReaL
# (2025)](https://arxiv.org/abs/2505.24298), a language model learns from its own answers, which are written with
# slightly old weights. Their staleness has a limit, as in section 7. DiLoCo, from section 4, is meant for machines that
# are far apart, but [Gemini (2023)](https://arxiv.org/abs/2312.11805) was trained synchronously even across data
# centres, because the links between them were fast enough.
#
# For more information, the slides point to two papers. The first is D-PSGD, from section 5. It does not use the word
# *decentralized* as the slides do. The slides call an all-reduce decentralized because it has no server. In the paper
# and in most later ones, a method is **centralised** if it combines what all ranks contribute into one set of weights,
# whether with a server or with an all-reduce. It is decentralised only if ranks average with a few neighbours, so that
# their weights differ. The second paper, given with the asynchronous method, is the one about backup workers (section
# 2). It argues for synchronous training.
#
# ### Health workers across Africa
#
# In 2019, a student at the University of the Witwatersrand ended [a report](../docs/sources.md) on all-reduce with an
# idea: "One could imagine a system where health practitioners across the continent using mobile devices carry out local
# data collection and training, sharing only the parameters." It hopes for "patient privacy preservation" and for
# research collaboration at low cost and without a server, and says that ring-based all-reduce is "specifically well
# suited for highly distributed network structures".
#
# The idea is federated learning, and the report mentions it by that name. Our clinics need no server, because an
# all-reduce gives the mean to all of them. You have seen that "only the parameters" is less private than it sounds. And
# the ring? It needs $2(P-1)$ rounds, and with mobile devices each round costs a long latency. Suppose there are 128
# clinics, with 100 ms of latency and 10 Mbit/s. The formulas of lesson 5 give:

# %% tags=["here:08_continent"]
from course_utils.lessons.allreduce import Network, predicted_seconds

mobile = Network(alpha=0.1, beta=8 / 10e6)  # seconds, and seconds per byte
for name in ("ring", "halving-doubling"):
    seconds = predicted_seconds(name, 128, vector_bytes, mobile)
    print(f"{name:17} {seconds:5.1f} s for 19 KB on 128 clinics")

# %% [markdown]
# With 254 rounds, almost all of the ring's time is latency. The ring is good for long vectors and low latencies, as you
# saw in lesson 5, and this network is the opposite. There is a second problem that no formula shows. In a ring, and in
# every other all-reduce of lesson 5, all ranks have to take part until the end. A phone whose battery dies stops
# everyone. A system with millions of phones that Google describes ([Bonawitz and others,
# 2019](https://arxiv.org/abs/1902.01046)) therefore uses a server. It invites more phones than it needs and takes the
# first ones that answer, just as in section 2. If there must be no server, averaging with neighbours is easier to
# repair. Only two ranks notice that their neighbour is gone, and they can go on with each other.

# %%
ranks.stop()

# %% [markdown]
# ## What you know now
#
# You know when a parameter server is full, and that a synchronous server need not wait for its slowest worker if it has
# one to spare. You can cut the number of messages by taking steps alone, and let an outer step go farther than the
# ranks have gone. You know that ranks can learn together when each knows only its neighbours, how fast they come to
# agree, and why clinics of different sizes count by their images. And you have read a digit out of a gradient.
#
# **To read:**
#
# - H. B. McMahan and others (2017), [Communication-Efficient Learning of Deep Networks from Decentralized
#   Data](https://arxiv.org/abs/1602.05629). The paper that named federated averaging, and easy to read.
# - A. Douillard and others (2023), [DiLoCo](https://arxiv.org/abs/2311.08105). Short, and its algorithm is the loop in
#   section 4.
# - X. Lian and others (2017), [Can Decentralized Algorithms Outperform Centralized
#   Algorithms?](https://arxiv.org/abs/1705.09056) It proves that averaging with neighbours converges, and measures when
#   it is faster.
# - L. Zhu and others (2019), [Deep Leakage from Gradients](https://arxiv.org/abs/1906.08935). Its pictures show what
#   was rebuilt.
#
# Go back to [lesson 8](08_parameter_server.ipynb), on to the [exercises](../exercises/08_parameter_server.ipynb), or to
# [lesson 9](09_model_parallel.ipynb), where the model does not fit on one rank.
