# The optional second notebook of lesson 18. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: what if a rank dies?
#
# On the first page, a replica was either alive or dead, and an error in its weights could be found by comparing. This
# notebook is about three cases that are harder. A network that breaks in two halves can leave you with two training
# runs instead of one, and a simple rule prevents it. A wrong gradient makes the weights of *all* ranks wrong in the
# same way. And a rank that is slow can cost more than a dead one, because it is not replaced.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook, and after
# that you can run any section. If a section complains that its ranks were stopped, run the first code cell again.
#
# 1. *A network breaks in two, and both halves go on*: why more than half have to agree
# 2. *Two ranks compute the same gradient*: how to find a wrong one
# 3. *A slow rank is harder to see than a dead one*: find it from a trace of collectives
# 4. *The batch becomes smaller, or there are spares*: what each of the two costs
# 5. *PyTorch saves in pieces, too*: the lesson's checkpoint with `torch.distributed.checkpoint`
#
# *25 minutes · optional, after [lesson 18](18_failures.ipynb) · 4 ranks*

# %%
import time

import numpy as np

import course_utils as course

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## A network breaks in two, and both halves go on
#
# A switch in the network can fail in such a way that replicas 0 and 1 reach each other, replicas 2 and 3 reach each
# other, and nothing passes between the two halves. Suppose that each half has a lighthouse that it can reach. From
# either side this looks as if the other two had died. If both halves go on, there are two training runs, and their
# weights drift apart. This is called *split brain*.
#
# Let's try it with `quorum` and `min_replicas=2`. `reached` lists whose reports arrive on each side. Each half trains
# with the images of its own replicas:

# %%
from course_utils.lessons.failures import StepReport, quorum, train_serially


def quorum_of(reached, min_replicas):
    reports = [StepReport(replica, step=10, at=0.0) for replica in reached]
    members, _ = quorum(reports, now=1.0, timeout=5.0, min_replicas=min_replicas)
    return members


halves = [quorum_of(reached, min_replicas=2) for reached in ([0, 1], [2, 3])]
print("members on the two sides:", halves)
together = 10 * [[0, 1, 2, 3]]
left, right = (train_serially(together + 10 * [half])[-1][0][0] for half in halves)
apart = (left - right).norm() / left.norm()
print(f"after 10 steps apart, the weights differ by {100 * apart:.0f}%")
assert halves == [[0, 1], [2, 3]] and apart > 0.01

# %% [markdown]
# When the network is whole again, both sides have made 20 steps. No replica is behind, so none is healed, and the next
# all-reduce averages gradients that belong to different weights. No error appears. The remedy is to choose
# `min_replicas` so large that two halves can't both have as many.
#
# **Predict.** What is the smallest such `min_replicas` for 4 replicas? And for 7?

# %%
course.predict("majority", of_four=..., of_seven=...)


# %% tags=["nbval-check-output"]
def smallest_majority(replicas):
    for min_replicas in range(1, replicas + 1):
        splits = [(range(n), range(n, replicas)) for n in range(1, replicas)]
        both = [
            split
            for split in splits
            if all(quorum_of(side, min_replicas) for side in split)
        ]
        if not both:
            return min_replicas


for replicas in (4, 7):
    print(f"{replicas} replicas: at least {smallest_majority(replicas)}")

# %%
course.answer("majority", of_four=smallest_majority(4), of_seven=smallest_majority(7))

# %% [markdown]
# More than half of all replicas are needed, 3 of 4 and 4 of 7. It is the same rule as for the checksums in the lesson,
# and for the same reason: two majorities would need more replicas than there are. The price is that a training run with
# four replicas stops if two of them die. torchft's lighthouse also requires that more than half of the replicas whose
# heartbeats reach it take part. This rule stops two groups from taking turns at *one* lighthouse ([pull request
# 71](https://github.com/meta-pytorch/torchft/pull/71)). It doesn't help against a broken network, because a lighthouse
# on each side counts only the heartbeats of its own side. So give all replicas one lighthouse, and set `min_replicas`
# to a majority.
#
# ## Two ranks compute the same gradient
#
# The checksums of the lesson compare weights after the step. If a processor computes a wrong *gradient*, the all-reduce
# gives the wrong sum to all ranks, and their weights stay equal. To find such an error, two ranks have to compute the
# same gradient. In the next cell each rank computes the gradient of its own images, and then that of its left
# neighbour's, and all compare checksums. If the two differ, one of the two ranks is wrong. The rank that occurs in two
# such pairs must be the one.


# %%
import hashlib

from course_utils.lessons.failures import flip_bit, gradient_and_loss, new_state


def checksums(comm, wrong_rank):
    def checksum_for(replica):
        gradient = gradient_and_loss(new_state(), 0, replica).numpy()
        if comm.rank == wrong_rank:
            flip_bit(gradient, index=444, bit=30)  # a broken processor
        return hashlib.sha256(gradient.tobytes()).hexdigest()[:8]

    left = (comm.rank - 1) % comm.size
    return comm.allgather((checksum_for(comm.rank), checksum_for(left)))


found = ranks.run(checksums, 2).results[0]
pairs = []
for rank, (_, of_left) in enumerate(found):
    left = (rank - 1) % 4
    own, _ = found[left]
    if own != of_left:
        pairs.append((left, rank))
print("pairs that disagree:", pairs)
suspects = [rank for rank in range(4) if sum(rank in pair for pair in pairs) == 2]
assert suspects == [2]
print("in two of them:", suspects)

# %% [markdown]
# This doubles the work of a step. If it is done in every hundredth step, it costs 1% of the time, and an error that
# lasts is found after a hundred steps at most. An error that happens only once in a while may be missed. The two ranks
# must also get the same bits if nothing is wrong. On a GPU this isn't a matter of course, because some kernels add in
# an order that changes from run to run, so this test needs deterministic kernels. A different method is to repeat a
# suspicious step, for example one with a sudden jump of the loss, on other hardware.
#
# ## A slow rank is harder to see than a dead one
#
# If one of four ranks needs 30 ms to compute and the others need 20 ms, a step takes 30 ms. All others wait for the
# slow one, the **straggler** of lesson 6, in the all-reduce. Nothing crashes, and every rank reports the same time per
# step. So how can you tell who is slow?
#
# **Predict.** Which rank spends the least time in the all-reduce, the straggler or one of the others?

# %%
choices = {"a": "the straggler", "b": "one of the others", "c": "all spend the same time"}
course.predict("least_waiting", answer=..., choices=choices)  # "a", "b" or "c"


# %%
from course_utils.measuring import is_busy

SLOW, COMPUTING = 3, {0: 0.02, 1: 0.02, 2: 0.02, 3: 0.03}  # seconds


def steps(comm, number):
    computed = []
    for _ in range(number):
        began = time.perf_counter()
        time.sleep(COMPUTING[comm.rank])
        computed.append(time.perf_counter() - began)
        comm.allreduce(np.ones(100))
    return computed


ranks.run(steps, 3)  # sets up the connections
run = ranks.run(steps, 20)
waited = [
    sum(
        event.end - event.start
        for event in run.events
        if event.kind == "collective" and event.rank == rank
    )
    for rank in range(4)
]
for rank, seconds in enumerate(waited):
    print(
        f"rank {rank} spends {1000 * seconds / 20:.1f} ms of each step in the all-reduce"
    )
busy = is_busy(run.results, planned=list(COMPUTING.values()))
answer = "a" if int(np.argmin(waited)) == SLOW else "b"
course.measured("least_waiting", busy=busy, answer=answer)

# %% [markdown]
# The rank that never waits is the one that the others wait for. So a trace of the collectives is enough to find a
# straggler, without measuring any computation. Lesson 14 draws the same conclusion from profiles. Large runs watch this
# number all the time, because a GPU that is too hot, or a link that has fallen back to a lower rate, looks just like
# this.
#
# ## The batch becomes smaller, or there are spares
#
# Three replicas out of four have three quarters of the batch. For a short time this hardly matters, but for a long one
# it does, because the gradient is noisier, and because the learning rate was chosen for the full batch (lesson 6).
# torchft has two modes for this. With a *dynamic* world size, all replicas that are there take part, as on our page.
# With *fixed with spares*, there are a few replicas more than the batch needs, which compute along, and whose gradients
# count only if another replica is missing. The batch then stays the same, and you pay for the spares all the time.
#
# Which is cheaper? Take 128 replicas, and let a failure take out one of them for 10 minutes, every 186 minutes. On
# average 10 ÷ 186 = 0.05 replicas are missing, which is 0.04% of 128. A single spare costs 1 ÷ 129 = 0.8%. So spares
# only pay if the repair takes much longer than this, or if a batch of changing size isn't acceptable.
#
# ## PyTorch saves in pieces, too
#
# In `torch.distributed.checkpoint`, a piece is described by a `DTensor`, which knows its part of the whole tensor, and
# the table of all pieces is the file `.metadata`. In the next cell four ranks save the vector of the lesson, and then
# three and two ranks load it:

# %%
import tempfile
from pathlib import Path

from course_utils.lessons.failures import load_with_torch, save_with_torch

NUMBERS = 3600
scratch = tempfile.TemporaryDirectory()
shares = np.split(np.arange(float(NUMBERS)), 4)
ranks.run(save_with_torch, scratch.name, course.per_rank(shares), backend="gloo")
for size in (3, 2):
    parts = ranks.run(
        load_with_torch, scratch.name, NUMBERS, ranks=size, backend="gloo"
    ).results
    assert np.array_equal(np.concatenate(parts), np.arange(NUMBERS))
    print(f"by {size} ranks:", [f"{part[0]:g} to {part[-1]:g}" for part in parts])
print(sorted(file.name for file in Path(scratch.name).iterdir()))

# %%
ranks.stop()

# %% [markdown]
# **To read**
#
# - Chandra and Toueg, 1996, [*Unreliable failure detectors for reliable distributed
#   systems*](https://doi.org/10.1145/226643.226647): why a slow process can't be told from a dead one for certain.
# - Dixit and others, 2021, [*Silent Data Corruptions at Scale*](https://arxiv.org/abs/2102.11245): wrong results of
#   processors in a large company's data centres.
# - torchft's [issue 163](https://github.com/meta-pytorch/torchft/issues/163), in which a user asks what a quorum is,
#   and [issue 329](https://github.com/meta-pytorch/torchft/issues/329), about a recovery that was slow.
