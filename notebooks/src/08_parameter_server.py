# The lesson on parameter servers. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if nobody waits?
#
# After this lesson you can **predict** when a parameter server's link is full, **measure** how stale a gradient is,
# and **choose** between waiting for everybody, waiting for nobody, and talking less.
#
# *60 minutes · builds on [lesson 6](06_data_parallel.ipynb) · 8 ranks*

# %%
import numpy as np

import course_utils as course

ranks = course.start(8, link="100 Mbit/s")
linked = ranks.facts["network"] is not None
images = course.data.digits_arrays()

# %% [markdown]
# SURF's course asks two questions. *Who adds the gradients up?* **Decentralised**: all workers together, by all-reduce.
# **Centralised**: a **parameter server**, which holds the weights. *Who waits?* **Synchronous**: everybody, at every
# step. **Asynchronous**: nobody.
#
# And it advises: synchronous is "the *accepted* and *advised* approach", servers "create a communication
# bottleneck". Today you test both. (Each rank is a node behind a link of its own, emulated; where your system
# forbids that, a line says so.)

# %% [markdown]
# ## One keeps the weights
#
# Rank 0 is the server, the others are workers. At each step every worker sends its gradient. The server takes one
# step against their mean, and answers each with the new weights.
#
# Lesson 1's network has 2,410 weights, 19 KB. Its gradient takes less than a millisecond, so each worker also
# **sleeps** as long as a larger network would compute. That is emulated too: sleeping ranks share two cores without
# getting into each other's way.

# %% tags=["figure:08_synchronous"]
from course_utils.lessons.parameter_server import Pace, train_synchronously

slow_enough = Pace(seconds=0.008)
three_steps = ranks.run(train_synchronously, images, 3, pace=slow_enough, ranks=5)
three_steps.timeline("Four workers, one server, three synchronous steps")

# %% [markdown]
# Look at rank 0: all gradients come in over one link, and all weights go out over it, while the workers' links rest.
#
# **Predict.** 100 KB take 8 ms through such a link. How many milliseconds does a step with 7 workers take, without the
# computing? And a ring all-reduce among the 7, without a server? (Both ways compute the same sum.)

# %%
from course_utils.lessons.allreduce import Network, message_seconds, network_text
from course_utils.lessons.allreduce import predicted_seconds

sizes = [1, 100_000, 300_000]
times = ranks.run(message_seconds, sizes, runs=3).results[0]
beta = (times[2] - times[1]) / (sizes[2] - sizes[1])
network = Network(times[0], beta, shared=linked)
print(network_text(network))
course.predict("server_ms", within=1.4, server=..., ring=...)  # milliseconds

# %%
from course_utils.lessons.parameter_server import link_seconds
from course_utils.measuring import is_busy

N, workers = 100_000, [1, 2, 4, 7]  # bytes, and how many send them
lines = link_seconds(ranks, workers, N)
middle = {name: np.median(line[-1]) for name, line in lines.items()}
busy = is_busy(line[-1] for line in lines.values())  # do the runs scatter too much?
milliseconds = {name: 1000 * seconds for name, seconds in middle.items()}
course.measured("server_ms", busy=busy, **milliseconds)

# %% tags=["figure:08_link"]
from course_utils.lessons.parameter_server import link_text, step_seconds
from course_utils.words import bytes_text, percent, seconds_text

predicted = {
    "server": [step_seconds(W, N, 1 / beta, times[0]) for W in workers],
    "ring": [predicted_seconds("ring", W, N, network) for W in workers],
}
finding = link_text(workers, lines["server"], lines["ring"], predicted["server"])
look = {"across": "workers", "up": "time of one step", "unit": seconds_text}
title = "100 KB, through a server and round a ring"
course.draw.over_numbers(workers, lines, title, finding, predicted=predicted, **look)

# %% [markdown]
# The server's link carries $W$ vectors in and $W$ out: $2\,W\beta n$. The ring stays below $2\beta n$ for any $W$.
# Where $2\,W\beta n$ is longer than a gradient takes, workers mostly wait: the link is **saturated**. (With vectors of
# 19 KB, and gradients that take 8 ms, this is so from 3 workers on.) A cure: cut the weights into $W$ blocks, and let
# each worker be the server of a block. Then each link carries less than $2\beta n$ again. This *is* the ring's
# reduce-scatter and all-gather.
#
# [Exercise](../exercises/08_parameter_server.ipynb): `parameter_server_step`.
#
# ## Nobody waits
#
# **Asynchronous SGD**: the server serves each worker as it comes, with a step against this *one* gradient. Here is all
# of it:


# %%
def serve(comm, weights, rate, updates):
    from mpi4py import MPI

    gradient, status, order = np.empty_like(weights), MPI.Status(), []
    for _ in range(updates):
        comm.Recv(gradient, source=MPI.ANY_SOURCE, status=status)  # the first that comes
        worker = status.Get_source()
        weights -= rate * gradient
        comm.Send(weights, dest=worker)  # nobody else is asked
        order.append(worker)
    return order


def work(comm, weights, next_gradient, steps):
    for _ in range(steps):
        comm.Send(next_gradient(weights), dest=0)
        comm.Recv(weights, source=0)


# %% tags=["figure:08_asynchronous"]
from course_utils.lessons.parameter_server import first_weights, own_gradients


def nobody_waits(comm, pace, steps):
    weights = first_weights(seed=0)
    if comm.rank == 0:
        return serve(comm, weights, 0.1, updates=steps * (comm.size - 1))
    work(comm, weights, own_gradients(comm, images, pace=pace), steps)


run = ranks.run(nobody_waits, slow_enough, 4, ranks=5)
print("updates by worker:", *run.results[0])
run.timeline("Four workers, one server, and nobody waits")

# %% [markdown]
# Each worker goes on in its own time, and waits for the server alone. But while a worker computes, others move the
# weights: its gradient belongs to weights that are gone. The **staleness** of an update is the number of
# *other* updates that the server made since this worker fetched its weights.
#
# **Predict** the mean staleness with 7 equally fast workers. And what is it when one of them is five times slower?

# %%
course.predict("staleness", within=1.1, equal=..., one_slow=...)

# %% tags=["figure:08_staleness"]
from course_utils.lessons.parameter_server import pictures, staleness_text
from course_utils.lessons.parameter_server import train_asynchronously

paces = {
    "7 equal workers": Pace(0.008),
    "one is 5 times slower": Pace(0.008, straggler=3),  # rank 3
}
ages = {}
for setting, pace in paces.items():
    run = ranks.run(train_asynchronously, images, 350, pace=pace)  # `serve`, with a log
    ages[setting] = run.results[0].staleness
means = [float(np.mean(staleness)) for staleness in ages.values()]
course.measured("staleness", equal=means[0], one_slow=means[1])
title = "How old is a gradient that 7 workers bring?"
pictures.staleness(ages, predicted=6, title=title, subtitle=staleness_text(7, ages))

# %% [markdown]
# Where workers overtake each other, single gradients differ. But why is the mean $W-1$ ($W$ workers)? Say a worker made
# updates 3, 7 and 12 of 12. It fetched right after update 3, so update 7 has a staleness of 3: updates 4, 5 and 6. In
# the same way update 12 has 4, and update 3 has 2. The sum, 9, counts all updates that were *not* its own. Of $T$
# updates, each worker's sum is $T$ minus its own. (Only those after its last update are missing.) Together that is
# $W\,T - T$, or $W - 1$ for each of the $T$ updates.
#
# Here are twelve updates by four workers, few enough to count by hand. Each worker fetches the new weights right after
# its own update:

# %% tags=["nbval-check-output"]
from course_utils.lessons.parameter_server import measure_staleness

log = [("fetch", worker) for worker in (1, 2, 3, 4)]
for worker in (1, 2, 3, 4, 1, 2, 3, 1, 4, 2, 3, 4):  # who made update 1, 2, 3, …
    log += [("push", worker), ("fetch", worker)]
staleness = measure_staleness(log)
print("staleness of each update:", *staleness)
print("mean:", round(sum(staleness) / len(staleness), 2))

# %% [markdown]
# With so few updates the mean is below 3, because what comes after each worker's last update is missing.
#
# Exercise: `measure_staleness`.
#
# ## How much does old news harm?
#
# On lesson 1's parabola, of curvature 1, the learning rate must stay below 2. Now step against the slope of 6 steps
# *ago*. **Predict** the largest rate with which $w$ still comes to rest:

# %%
course.predict("old_news", within=1.5, six_steps_ago=...)  # the slope of now allows 2


# %%
def settles(rate, staleness):
    w = [1.0] * (staleness + 1)
    for _ in range(2000):
        w.append(w[-1] - rate * w[-1 - staleness])  # the slope of w² / 2 is w
    return max(abs(value) for value in w[-100:]) < 1


rates, taus = [k / 100 for k in range(1, 220)], [0, 1, 2, 4, 6, 10, 14]
longest = [max(rate for rate in rates if settles(rate, tau)) for tau in taus]
course.measured("old_news", six_steps_ago=longest[4])
theory = [2 * np.cos(tau * np.pi / (2 * tau + 1)) for tau in taus]
look = {"across": "staleness τ", "up": "largest rate that comes to rest"}
title = f"6 steps of delay: {longest[4]:.2f} at most, not {longest[0]:.2f}"
finding = "Points: tried out. Line: 2 cos(τπ / (2τ + 1))"
lines, line = {"largest": longest}, {"largest": theory}
course.draw.over_numbers(taus, lines, title, finding, predicted=line, **look)

# %% [markdown]
# With old slopes, step gently: where the slope is $\tau$ steps old, the rate may be about $\frac{\pi}{2\tau + 1}$,
# not 2. (The formula: Levin and May, 1976, on delayed difference equations.)
#
# Now the digits: 200 updates by one worker, whose gradients are always fresh, and 200 by seven, at rates of 0.1, 0.3
# and 0.6.
#
# **Predict.** One worker is happy with all three rates. Seven workers bring gradients that are 6 updates old: which
# is the lowest rate that is too high for them?

# %%
choices = {"a": "0.1", "b": "0.3", "c": "0.6", "d": "none of them"}
course.predict("stale_rate", answer=..., choices=choices)  # "a", "b", "c" or "d"

# %%
rates, quick = [0.1, 0.3, 0.6], Pace(0.002)
updates = 200
ends = {"one worker": [], "seven": [], "seven, rate ÷ staleness": []}
for rate in rates:
    for (name, line), W in zip(ends.items(), [1, 7, 7], strict=True):
        options = {"rate": rate, "pace": quick, "scaled": "÷" in name}
        run = ranks.run(train_asynchronously, images, updates, ranks=W + 1, **options)
        line.append(run.results[0].accuracies[-1])
fresh, stale, scaled = ends.values()
spoiled = [now - old > 0.1 for now, old in zip(fresh, stale, strict=True)]
course.measured("stale_rate", answer="abcd"[[*spoiled, True].index(True)])

# %% tags=["figure:08_rates"]
from course_utils.lessons.parameter_server import rates_text

finding = rates_text(rates, fresh, stale, scaled)
up = f"test images recognised after {updates} updates"
look = {"across": "learning rate", "up": up, "limits": (0, 1), "unit": percent}
title = "The same number of updates, fresh and stale"
course.draw.over_numbers(rates, ends, title, finding, **look)

# %% [markdown]
# No error, no warning: with gradients too old for the rate, training falls apart. The cure of Zhang and others (2016):
# divide the rate of an update by its staleness. Such steps are safe, and short: where nothing was broken, they only
# slow the training down. Exercise: `staleness_scaled_lr`.

# %% [markdown]
# ## Two hundred workers
#
# We have seven workers. Of **virtual ranks** (lesson 5) you can have as many as you like: they take turns in this
# kernel, and each has a clock of its own. Each really computes its gradients, 8 ms pass on its clock, and a link of 100
# Mbit/s lets 19 KB through in 1.5 ms. They run the same `train_asynchronously`.
#
# **Predict**: with 200 workers, how many times as many updates in a second does the server make as with one? And what
# is the mean staleness?

# %%
course.predict("two_hundred", within=1.3, speedup=..., staleness=...)

# %%
from course_utils.lessons.parameter_server import served

many = [1, 3, 7, 20, 60, 200]
nowhere = course.start(1 + many[-1], where="nowhere", link="100 Mbit/s")
virtual = [served(nowhere, images, W, slow_enough) for W in many]
real = [served(ranks, images, W, slow_enough) for W in (3, 7)]  # 4 ranks, and 8
speedup, oldest = virtual[-1].rate / virtual[0].rate, virtual[-1].staleness
course.answer("two_hundred", speedup=speedup, staleness=oldest)

# %% tags=["figure:08_two_hundred"]
from course_utils.lessons.parameter_server import served_text

title, finding = served_text(virtual, real)
pictures.served(virtual, real, title, finding)

# %% [markdown]
# The server's link lets one vector in and one out in $\beta n = 1.5$ ms: at most 650 updates in a second. A worker
# needs $8 + 2\cdot 1.5 = 11$ ms for one, so about seven workers fill the link. All others only make gradients older:
# $W-1$, and at this learning rate the training falls apart.

# %% [markdown]
# ## A straggler
#
# Why would anybody not wait? Because of lesson 6's late colleague. Three ways, four workers:
#
# - **synchronous**: an all-reduce at every step;
# - **asynchronous**: a fifth rank is the server; it steps four times as often, so it takes a quarter of the rate;
# - **local SGD**: each takes 4 steps alone, then all take the mean of their *weights*.
#
# All three take the same number of images. First the workers are equal (a gradient takes 4 ms), then worker 2 is five
# times slower (20 ms). Messages take time, too:

# %%
messages = seconds_text(predicted_seconds("ring", 4, 19_280, network))
print("an all-reduce of 19 KB, predicted as in lesson 5:", messages)

# %% [markdown]
# **Predict** for each way: how many times as many *seconds* does it take with the straggler as with equal workers?

# %%
course.predict("server_late", within=1.5, synchronous=..., asynchronous=..., local=...)

# %%
from course_utils.lessons.parameter_server import WAYS, race

for name, (train, updates, options) in WAYS.items():
    print(f"{name:13} {train.__name__}, {updates} times, {options}")
paces = {"equal workers": Pace(0.004), "a straggler": Pace(0.004, straggler=2)}
runs = 3
races = race(ranks, images, paces, runs)

# %%
from course_utils.lessons.parameter_server import is_busy_race, races_text
from course_utils.lessons.parameter_server import reached_table, slower
from course_utils.lessons.parameter_server import straggler_text

times = slower(races)
busy = is_busy_race(races)
course.measured("server_late", busy=busy, **times)
print(reached_table(races, 0.95))
title = straggler_text(times, busy)
finding = "" if busy else races_text(races, 0.95)
pictures.races(races, title, finding, target=0.95)

# %% [markdown]
# On the left, against *epochs*, the straggler changes little: who looks at this column alone does not see the time
# spent waiting.
#
# On the right, against *seconds*: whoever waits takes the straggler's time, at every step or at every mean. Only the
# messages take no longer, so synchronous SGD stays below 5 times. Asynchronous SGD loses four fifths of one worker:
# $3\frac15$ of 4 workers are left. Its price: its curves differ from run to run. The synchronous one is the same three
# times.
#
# Where machines are equal, waiting costs little. That is why SURF's advice stands.

# %% [markdown]
# ## Talking less
#
# Local SGD did not help against the straggler. It helps against slow *links*: $k$ local steps need one all-reduce, not
# $k$. **Predict**, for 64 steps: how many vectors does each rank contribute with a mean after every step? And with a
# mean after every 16th?

# %%
vector = 2410 * 8  # bytes
course.predict("local_bytes", within=1.1, one=..., sixteen=...)  # vectors

# %% tags=["figure:08_local"]
from course_utils.lessons.parameter_server import local_text, train_locally

local_steps, sent, ends = [1, 4, 16, 64], [], []
for k in local_steps:
    options = {"local_steps": k, "rate": 0.4, "pace": Pace(0.002), "ranks": 4}
    run = ranks.run(train_locally, images, 64 // k, **options)
    sent.append(run.bytes_per_rank[0])
    ends.append(run.results[0].accuracies[-1])
course.measured("local_bytes", one=sent[0] / vector, sixteen=sent[2] / vector)
look = {"across": "local steps", "up": "bytes of one rank", "unit": bytes_text}
look["predicted"] = {"sent": [vector * 64 / k for k in local_steps]}
title, finding = "64 steps, a mean now and then", local_text(local_steps, sent, ends)
course.draw.over_numbers(local_steps, {"sent": sent}, title, finding, log=True, **look)

# %% [markdown]
# $\frac{64}{k}$ vectors: counted, and exact. All four ranks draw from the same pile of images, so their weights
# hardly drift apart before they meet. With different piles they will drift.
#
# Exercise: `local_sgd_round`.
#
# ## A step for the mean change
#
# Language models are trained with AdamW, also across slow links. **DiLoCo** (Douillard and others, 2023): each rank
# takes many AdamW steps alone. The mean of the ranks' changes then serves as a *gradient*, for an **outer step** with
# rate 0.7 and momentum 0.9 (lesson 1; in a form by Nesterov, which the exercise writes down). Rate 1 and momentum 0
# would give the plain mean.
#
# 16 rounds of 16 steps on four ranks. **Predict**: which way ends with the lowest loss? And how many times as many
# bytes does it cost to meet at every step?

# %%
ways = {"a": "a mean at every step", "b": "the plain mean", "c": "an outer step"}
course.predict("diloco", answer=..., choices=ways)
course.predict("diloco_bytes", within=1.1, times=...)

# %% tags=["figure:08_outer"]
from course_utils.lessons.parameter_server import outer_text, train_in_rounds

rounds, losses, sent = 16, {}, {}
for name, way in zip(ways.values(), ("every step", "mean", "outer"), strict=True):
    run = ranks.run(train_in_rounds, images, rounds, way, ranks=4)
    losses[name] = run.results[0]
    sent[name] = run.bytes_per_rank[0] / rounds * np.arange(1, rounds + 1)
ends, bought = [one[-1] for one in losses.values()], [one[-1] for one in sent.values()]
course.measured("diloco", answer="abc"[np.argmin(ends)])
course.measured("diloco_bytes", times=bought[0] / bought[2])
title, finding = "16 rounds of 16 steps, three ways to meet", outer_text(sent, losses)
pictures.loss_over_bytes(sent, losses, title, finding)

# %% [markdown]
# A rank that averages once in 16 steps sends a sixteenth. The mean alone goes only as far as one rank does; the outer
# step goes on along the velocity, up to $\frac{0.7}{1 - 0.9} = 7$ times as far. Where AdamW's steps are short, as here,
# that helps. Where they are long already, it shoots too far: try `train_in_rounds` with `rate=0.01, inner_steps=4`.
#
# AdamW's means and squares stay on each rank; only weights travel. Exercise: `outer_step`.
#
# ## Neighbours
#
# Must anybody know the mean of *all*? In **D-PSGD** (Lian and others, 2017) the ranks form a ring. In every step each
# averages its weights with those of its two neighbours, and then takes a step against its own gradient:
#
# $$w_r \leftarrow \tfrac13\,(w_{r-1} + w_r + w_{r+1}) - \eta\, g_r$$
#
# So the replicas differ. **Predict:** how many vectors does each of 8 ranks send in a step? And how many does it send
# in an all-reduce round lesson 5's ring?

# %%
course.predict("neighbours", within=1.05, neighbours=..., all_reduce=...)

# %% tags=["figure:08_neighbours"]
from course_utils.lessons.parameter_server import neighbours_text, train_among_neighbours
from course_utils.lessons.parameter_server import unflat
from course_utils.lessons.sgd import loss_and_gradients

steps, curves, sent = 90, {}, {}
for way in ("neighbours", "all-reduce"):
    run = ranks.run(train_among_neighbours, images, steps, way, ranks=8)
    sent[way] = run.bytes_per_rank[0] / run.results[0][0].nbytes / steps
    means = np.mean(run.results, axis=0)  # of all ranks, at each step
    curves[way] = [loss_and_gradients(unflat(w), *images[:2])[0] for w in means]
course.measured(
    "neighbours", neighbours=sent["neighbours"], all_reduce=sent["all-reduce"]
)
title = neighbours_text(curves["neighbours"], curves["all-reduce"])
course.draw.loss_curves(curves, title, y="loss of the ranks' mean weights")

# %% [markdown]
# Two vectors, whatever $P$: not fewer than round the ring, but in 2 rounds in place of $2(P-1)$, and nobody waits for a
# rank on the far side. How far apart are the replicas? For 60 steps their gradients pull them apart while
# neighbours pull them together. Then there are no more gradients, and each step leaves a fixed share of the distance:
# $\tfrac13\left(1 + 2\cos\frac{2\pi}{P}\right)$ from 4 ranks on. (For the curious: write down, in a matrix, with which
# weight each rank counts for each other. This share is its second largest eigenvalue.)

# %% tags=["figure:08_apart"]
from course_utils.lessons.parameter_server import consensus_distance, shrinking

far = {}
for P in (4, 8):
    options = {"only_average": 12, "ranks": P}
    kept = ranks.run(train_among_neighbours, images, 60, "neighbours", **options).results
    far[f"{P} ranks"] = [consensus_distance(at) for at in list(zip(*kept))[6::6]]
    a_step = (far[f"{P} ranks"][-1] / far[f"{P} ranks"][-2]) ** (1 / 6)
    print(f"{P} ranks: {a_step:.2f} left after a step, {shrinking(P):.2f} by the formula")
title = "Gradients pull replicas apart until step 60; then neighbours alone"
look = {"across": "step", "up": "distance of the weights from their mean", "log": True}
course.draw.over_numbers(range(6, 73, 6), far, title, unit="{:.0e}".format, **look)

# %% [markdown]
# The longer the ring, the slower it agrees: news travels one rank a step. With more neighbours each, ranks agree
# faster. (**AD-PSGD**, 2018: the same, and nobody waits.)
#
# ## Clinics
#
# Lesson 5's report ends with an idea: health workers across Africa train together, "sharing only the parameters"; no
# patient's picture leaves the clinic. That is **federated averaging**, and clinics see *different*
# things. Let the ten digits stand for ten diagnoses:

# %% tags=["figure:08_clinics"]
from course_utils.lessons.parameter_server import skewed_shards

labels = images[1]
shards = skewed_shards(labels, 4, 0.1, np.random.default_rng(3))  # 0.1: very different
counts = [np.bincount(labels[shard], minlength=10) for shard in shards]
title = "Four clinics, and which digits each has seen"
pictures.who_has_what(counts, "clinic", "digit", title)

# %% [markdown]
# Each clinic trains on its own images, for some **local epochs**; then all take the mean of the weights, in which each
# clinic counts by its number of images: $w = \sum_r \frac{n_r}{n}\,w_r$.
#
# Why by number? Let every clinic take *one* step with *all* its images, and compare with one step with everybody's
# images:


# %%
from course_utils.lessons.parameter_server import federated_average, flat_gradient


def one_step(comm, weighted):
    x, y = images[0][shards[comm.rank]], labels[shards[comm.rank]]
    weights = first_weights(seed=0)
    weights -= 0.1 * flat_gradient(weights, x, y)
    federated_average(comm, weights, len(x) if weighted else 1)
    return weights


central = first_weights(seed=0)
central -= 0.1 * flat_gradient(central, images[0], labels)
for said, weighted in {"by number": True, "alike": False}.items():
    weights = ranks.run(one_step, weighted, ranks=4).results[0]
    apart = np.abs(weights - central).max()
    print(f"counted {said}: {apart:.0e} from the step with everybody's images")
    assert weighted == (apart < 1e-12)

# %% [markdown]
# Counted by number, the clinics' mean *is* the step with all images, and nobody showed an image. Counted alike, it is
# not. How much that costs depends on who is small. Take a hospital which has seen all digits, and three village posts
# with 40 images of two digits each:

# %%
from course_utils.lessons.parameter_server import mean_text, train_clinics

posts = [np.flatnonzero(np.isin(labels, (2 * p, 2 * p + 1)))[:40] for p in range(3)]
hospital = np.setdiff1d(np.arange(len(labels)), np.concatenate(posts))
shares = {}
for weighted in (True, False):
    options = {"local_epochs": 5, "weighted": weighted, "ranks": 4}
    run = ranks.run(train_clinics, images, [hospital, *posts], 8, **options)
    shares[weighted] = run.results[0][-1]
print("After 8 rounds:", mean_text(shares[True], shares[False]))

# %% [markdown]
# Back to the four different clinics. A clinic's line is thin: every mean costs it 19 KB. **Predict**: with how many
# epochs between two means do they send the fewest bytes to reach 85 %: 1, 5 or 20?

# %%
choices = {"a": "1 local epoch", "b": "5 local epochs", "c": "20 local epochs"}
course.predict("clinic_bytes", answer=..., choices=choices)  # "a", "b" or "c"

# %%
from course_utils.lessons.parameter_server import clinics_text, rounds_to

by_epochs, nbytes = {}, 0
for epochs in (1, 5, 20):
    run = ranks.run(train_clinics, images, shards, 10, local_epochs=epochs, ranks=4)
    by_epochs[epochs], nbytes = run.results[0], run.bytes_per_rank[0] / 10
needed = [rounds_to(accuracies, 0.85) or np.inf for accuracies in by_epochs.values()]
course.measured("clinic_bytes", answer="abc"[np.argmin(needed)])

# %% tags=["figure:08_federated"]
sent = [round(nbytes * rounds / 1000) for rounds in range(1, 11)]
lines = dict(zip(choices.values(), by_epochs.values(), strict=True))
look = {"across": "KB sent by a clinic", "up": "test images recognised", "unit": percent}
finding = clinics_text(by_epochs, 0.85, nbytes)
title = "More work at home, fewer bytes on the line"
course.draw.over_numbers(sent, lines, title, finding, limits=(0.3, 1), **look)

# %% [markdown]
# More local epochs mean fewer bytes and much more computing, and each further epoch saves less. Every clinic runs
# towards a network for *its* digits, and the mean lies between. (McMahan and others, 2017, named the method.)
#
# Images stay at home, but weights are not silent: images have been rebuilt from gradients (Zhu and others, 2019).
# Exercise: `federated_average`.

# %% [markdown]
# ## Who waits, in practice?
#
# | | who waits | vectors in a step | used today for |
# |---|---|---|---|
# | all-reduce | all | $<2$ each way | nearly all training |
# | server | nobody | $W$ each way, at the server | huge tables, a row for each word or product |
# | local SGD | all, at times | $<2/k$ each way | phones, clinics, far data centres |
#
# Against stragglers: *backup workers*; the gradients that come last are dropped (Chen and others, 2016). Across slow
# links: DiLoCo, whose language models take 500 steps alone between two outer steps.

# %% [markdown]
# ## What you take with you
#
# You can **predict** when a server's link is full: when $2\,W\beta n$ is longer than a gradient takes. You can
# **measure** staleness, and know its mean before you do: $W-1$. And you can **choose**: wait while machines are equal,
# do not wait where one is slow, and talk less where links are slow.
#
# Next: [the exercises](../exercises/08_parameter_server.ipynb). Then lesson 9: what if the model does not fit?

# %%
ranks.stop()
