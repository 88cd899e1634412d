# The lesson on failures of ranks. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if a rank dies?
#
# While Llama 3 405B was trained on 16,384 GPUs, its run was interrupted 466 times in 54 days. Only 47 of these
# interruptions were planned, such as updates. The other 419 were unexpected, and the authors put 78% of them down to
# confirmed or suspected hardware faults (Grattafiori and others, 2024, section 3.3.4). That is one failure every 186
# minutes. If a single failure throws away a quarter of an hour of work by all the GPUs, it wastes almost half a
# GPU-year.
#
# In lesson 13 a dead process meant that *all* processes were started again from the last checkpoint. In this lesson you
# first calculate what that costs. Then you kill one of four processes and let the surviving replicas carry on, with the
# loss of a single step. You will also save a checkpoint in pieces that any number of ranks can read, save while
# training goes on, and find a rank that computes wrong numbers without raising any error.
#
# *55 minutes · builds on [lesson 11](11_hybrid_and_sharded.ipynb) and [lesson 13](13_gpu_nodes.ipynb) · 4 ranks*

# %%
import tempfile
import threading
from pathlib import Path

import numpy as np
import torch

import course_utils as course
from course_utils.lessons.failures import pictures, sentences

scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)

# %% [markdown]
# ## Restarting everything gets more expensive with every GPU
#
# Suppose that each failure ends all processes. Three things then cost time. Apart from the failure rate, all the
# numbers here are our own assumptions.
#
# - *Saving.* All GPUs wait $C$ seconds for each checkpoint. With $t$ seconds of work between two checkpoints, this
#   costs a share of about $C/t$ of the time.
# - *Repeating.* A failure can strike at any point in the interval, so on average half of it is lost. If $M$ is the mean
#   time between failures, this is a share of about $t/2M$.
# - *Starting.* A restart takes $R$ seconds, which is a share of $R/M$.
#
# A longer interval makes the first cost smaller and the second one larger. Their sum is smallest if both are equal,
# which gives Young's interval $t = \sqrt{2\,C M}$, and a sum of $C/t + t/2M = \sqrt{2\,C/M}$.
#
# Now plug in the numbers for 16,384 GPUs. Here $M$ is 54 · 24 · 3,600 ÷ 419 = 11,135 s. If a checkpoint stops the
# training for $C$ = 30 s, saving and repeating cost $\sqrt{2 \cdot 30 / 11{,}135}$ = 7.3% of the time. If a restart
# takes $R$ = 300 s, starting costs 300 ÷ 11,135 = 2.7%. That leaves about 90% of the time for work that brings the
# training forward. This share is called the goodput. The report gives more than 90% for that run, so our assumed $C$
# and $R$ are at least plausible.
#
# **Predict.** Now take four times as many GPUs of the same kind, so failures are four times as frequent. What
# percentage of the time do saving and repeating cost together, and what percentage does starting cost?

# %%
course.predict("four_times", saving_and_repeating=..., starting=...)  # percent

# %%
SAVE, RESTART, DAYS = 30, 300, 54 * 24 * 3600  # seconds


def between_failures(gpus):
    return DAYS / 419 * 16_384 / gpus


M = between_failures(4 * 16_384)
course.answer(
    "four_times",
    saving_and_repeating=100 * (2 * SAVE / M) ** 0.5,
    starting=100 * RESTART / M,
)

# %% [markdown]
# The first cost doubles, because it grows with the square root, and the second one becomes four times as large. Saving
# faster helps only against the first one.
#
# The alternative is to let the others go on. In plain data parallelism, every replica of the model has the same weights
# and the same averages of Adam, so losing one of them loses nothing but its images of that step. A replica may span
# many GPUs, and it fails if one of them does. While the Llama run trained on texts of 8,192 tokens, a replica spanned 8
# · 16 = 128 GPUs, split by tensor and pipeline parallelism, and there were 128 replicas (table 4 of the report).
#
# That run itself could not have gone on, because FSDP (lesson 11) gave each replica a share of Adam's averages that no
# other had. Going on needs whole copies, as with [HSDP](11_hybrid_and_sharded_further.ipynb), which shards only
# *inside* a replica and needs more memory.
#
# Suppose that we have such copies, and that a failure stops all replicas for 20 s, in which they notice it, agree on
# who is left and repeat the step. After that, 127 of the 128 replicas go on, and the broken one returns after 10
# minutes. Both strategies save equally often, so that they differ only in what a failure costs. For the restart we use
# Daly's formula ([lesson 13's Further](13_gpu_nodes_further.ipynb)), because our sum of three shares is a good
# approximation only if it is small. With 65,536 GPUs the sum leaves 100 − 14.7 − 10.8 = 74.5%, and the formula 77%:

# %% tags=["figure:18_goodput"]
from course_utils.lessons.gpu_nodes import goodput
from course_utils.words import percent

STALL, REPAIR, GPUS_OF_A_REPLICA = 20, 600, 128  # seconds, seconds, GPUs


def interval(gpus):
    return (2 * SAVE * between_failures(gpus)) ** 0.5


def restart_all(gpus):
    return goodput(interval(gpus), SAVE, between_failures(gpus), RESTART)


def go_on(gpus):
    working = interval(gpus) / (interval(gpus) + SAVE)  # the rest is saving
    replicas = gpus / GPUS_OF_A_REPLICA
    lost = STALL + REPAIR / replicas  # seconds of all GPUs, for each failure
    return working * (1 - lost / between_failures(gpus))


sizes = [4_096, 8_192, 16_384, 32_768, 65_536]
shares = {
    "restart all": [restart_all(gpus) for gpus in sizes],
    "go on": [go_on(gpus) for gpus in sizes],
}
course.draw.over_numbers(
    sizes,
    shares,
    sentences.goodput_text(sizes, shares),
    across="GPUs",
    up="goodput",
    unit=percent,
    limits=(0.6, 1),
)

# %% [markdown]
# With 16,384 GPUs the interval is 817 s. A restart costs 300 s and half an interval, so each failure costs 300 + 409 =
# 709 s. Going on costs 20 s, and 10 minutes of one replica in 128, which is as much as 600 ÷ 128 = 5 s of all of them.
# So going on pays only if the stall is short: if it is longer than 709 − 5 = 704 s, restarting everything is cheaper.
# The curve for going on is an upper bound, because it leaves out what HSDP costs, and failures of the power, which end
# all replicas at once.
#
# ## The others go on without the dead replica
#
# How can three replicas go on after the fourth has died? With a plain all-reduce they can't, because its process group
# has four members, and it needs every one of them. So the replicas need an answer to one question before *every* step:
# who takes part? The answer is called a **quorum**. It comes from a server, which PyTorch's library
# [torchft](https://github.com/meta-pytorch/torchft) calls the **lighthouse**. Ours follows three rules:
#
# - A replica takes part if it has reported recently. Its report contains how many steps its state includes.
# - If fewer than `min_replicas` are alive, no step is taken.
# - A replica that is behind the others is a newcomer. To **heal** it, an up-to-date peer sends it the state before the
#   step begins. If there are several such peers, the newcomers are assigned to them in turn.
#
# Here is an example. It is second 100, and reports count for 5 seconds. Replica 1 is silent, because its last report is
# from second 90. Replica 3 has just been started again, so its state includes no step:

# %% tags=["nbval-check-output"]
from course_utils.lessons.failures import StepReport, quorum

reports = [
    StepReport(replica=0, step=41, at=99.5),
    StepReport(replica=1, step=40, at=90.0),
    StepReport(replica=2, step=41, at=99.6),
    StepReport(replica=3, step=0, at=98.0),
]
for min_replicas in (2, 4):
    members, heals = quorum(reports, now=100.0, timeout=5.0, min_replicas=min_replicas)
    print(f"at least {min_replicas} replicas: members {members}, healed from: {heals}")

# %% [markdown]
# With at least two replicas, 0, 2 and 3 take part, and replica 3 is healed from replica 0. If we insist on four, there
# is no quorum, and all of them wait.
#
# Now the program that each replica runs. It trains a small network on the handwritten digits with Adam. `state` has
# three rows, which are the weights and Adam's two averages, all in float64. Read the loop from top to bottom. The
# `manager` reports to the lighthouse and waits for the quorum. If the members have changed, they meet in a new process
# group:

# %%
# %%writefile {folder}/replica.py
import os
import signal
import time

import torch.distributed as dist

from course_utils.lessons.failures import Manager, gradient_and_loss, heal
from course_utils.lessons.failures import load_state, save_state, update

manager = Manager.from_command_line()
state, step = load_state(manager.folder)  # a new one if there is no checkpoint
while step < manager.steps:
    members, heals, prefix = manager.next_quorum(step)  # who takes part?
    try:
        if prefix:  # different members than before meet in a new process group
            manager.leave()  # the old one, if there is one
            dist.init_process_group(
                "gloo",
                store=dist.PrefixStore(prefix, manager.store),  # prefix before all keys
                rank=members.index(manager.replica),
                world_size=len(members),
                timeout=manager.patience,  # how long to wait for a message
            )
        step = heal(state, step, heals)  # by their ranks; none if no replica is behind
        total = gradient_and_loss(state, step, manager.replica)  # both in one tensor
        time.sleep(0.05)  # a larger model would compute for longer
        if step == manager.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)  # in the middle of a step
        dist.all_reduce(total)
    except RuntimeError:  # from gloo: a member is gone
        manager.failed()
        continue  # the same step again, with a new quorum
    mean = total / len(members)
    update(state, mean[:-1], step)  # the last number is the loss
    step += 1
    manager.completed(state, loss=mean[-1].item())
    if manager.save_every and step % manager.save_every == 0 and dist.get_rank() == 0:
        save_state(manager.folder, state, step)
manager.finish(step)

# %% [markdown]
# Four details make this work.
#
# - **The gradient is averaged over those who are there.** `total` is divided by the number of members, and not by four.
#   With 32 images each, three replicas have 96 in a step instead of 128.
# - **Gloo reports a dead member at once**, because the operating system closes the connections of a dead process. The
#   survivors catch this error. But a node that loses power closes nothing, so only a timeout reveals it, like a cut
#   link and many failures under NCCL. Our `except` is crude: it would also repeat a step whose *computation* fails.
# - **A new process group has new addresses.** Its members exchange them through the lighthouse's store. In the second
#   group all keys begin with `group/2/`, so that no member picks up an address left by a dead process under `group/1/`.
# - **The state decides who is ahead.** One member may have received its last piece of the sum just before another one
#   dies. It then completes a step that fails on the rest, which are healed from it.
#
# `run_replicas` starts four processes with this program, and acts as the lighthouse. Since `step` counts *finished*
# steps, `dies={2: 17}` makes replica 2 kill itself in step 18, before it sends its gradient. SIGKILL is the signal that
# ends a process at once, and no program can catch it. A new replica 2 is started immediately, while the survivors go
# on. Only before step 21 do they wait for it (`joins={2: 20}`), so that the run is the same on every computer. Then we
# run the program as in lesson 13: there is a checkpoint every six steps, and if one process dies, all are ended and
# started again. The store has no password, so don't run this page on a computer shared with people you don't trust.
#
# How many steps are lost? A step counts as lost if it was started but never finished, or if it was finished but has to
# be repeated. It counts once, however many replicas worked on it. With a checkpoint every 10 steps and a death in step
# 15, for example, a restart would lose 5 steps: 11 to 14, which it repeats, and 15 itself.
#
# **Predict.** Replica 2 dies in step 18. How many steps are lost if the others go on? And how many if all are started
# again, with a checkpoint every six steps?

# %%
course.predict("lost_steps", going_on=..., restarting=...)

# %% tags=["figure:18_going_on"]
from course_utils.lessons.failures import run_replicas

going_on = run_replicas(folder / "replica.py", steps=24, dies={2: 17}, joins={2: 20})
pictures.attempts(going_on, "three go on")

# %% [markdown]
# The three survivors repeat step 18 without replica 2, and go on. In step 21 the new replica 2 takes part. Before this
# step, its peer has sent it the weights *and* Adam's averages, in a single message.
#
# Is the result right? Three replicas can't have the same loss as four. But up to rounding, they must have the loss of a
# run in which replica 2 was absent from step 18 to step 20. The next cell trains in one process with the same images,
# and compares the state and the loss of each replica after *every* step. Then it does the restart:

# %% tags=["figure:18_restart"]
from course_utils.lessons.failures import beside_one_process, steps_compared

gap = beside_one_process(going_on)
print(f"{len(steps_compared(going_on))} states compared, at most {gap:.0e} apart")
assert gap <= 1e-12
assert len(steps_compared(going_on)) == 4 * 24 - 3  # replica 2 misses steps 18 to 20

restarted = run_replicas(
    folder / "replica.py",
    24,
    dies={2: 17},
    min_replicas=4,
    restart_all=True,
    save_every=6,
)
assert beside_one_process(restarted) <= 1e-12
course.measured(
    "lost_steps", going_on=going_on.lost_steps, restarting=restarted.lost_steps
)
pictures.attempts(restarted, "all start again")

# %% [markdown]
# Both runs end correctly, and they differ in what they have lost. A restart also takes time, because four processes
# have to start, import PyTorch and find one another. We measure from the quorum for step 18 until any step is completed
# again. After the restart this is step 13, because we have already counted the repeated steps:

# %%
from course_utils.measuring import is_busy

busy = is_busy([going_on.step_seconds, restarted.step_seconds])
print(sentences.stall_text(going_on, restarted, busy))

# %% [markdown]
# torchft does the same for real training runs, with a manager for each replica and one lighthouse. A newcomer fetches
# the state from a healthy replica while training continues, which is called **live recovery**. In its manager, the
# minimum number of replicas is called `min_replica_size`.
#
# Two dangers remain. If the network breaks in two, each half may go on with weights of its own, which is called *split
# brain*. To prevent it, give all replicas the same lighthouse, so that only a half that reaches it can go on, and set
# `min_replicas` to more than half of them ([Further](18_failures_further.ipynb) shows why). And the lighthouse itself
# must stay alive, because there is no new quorum without it.
#
# ## A checkpoint in pieces fits any number of ranks
#
# If each rank has only a part of the state, as with ZeRO or FSDP, it writes this piece into a file of its own. After a
# failure there may be fewer ranks than before. The pieces then no longer match, and each rank must find out which parts
# of which files it needs.
#
# Let the whole state be a vector of 3,600 numbers, of which each rank has an equal part. Four ranks write 900 numbers
# each, so file 1 holds numbers 900 to 1,799, for example. Now two ranks load it. Rank 0 needs numbers 0 to 1,799, which
# are all of files 0 and 1. That makes two reads, and two more for rank 1.
#
# **Predict.** Three ranks load the same files, 1,200 numbers each. How many reads do they need in all, if each rank
# reads nothing but its own numbers? And how many of rank 1's numbers are in file 1?

# %%
course.predict("resharded", reads=..., rank_1_from_file_1=...)


# %%
from course_utils.lessons.allreduce import block_bounds
from course_utils.lessons.failures import load_piece, save_piece, write_table

NUMBERS = 3600
ranks = course.start(4)
ranks.load_torch()


def own_numbers(comm):
    bounds = block_bounds(NUMBERS, comm.size)
    return bounds[comm.rank], bounds[comm.rank + 1]


def save(comm):
    begin, end = own_numbers(comm)
    piece = np.arange(begin, end, dtype=float)  # number i has the value i
    save_piece(folder, comm.rank, piece)
    saved = comm.gather((begin, end))  # rank 0 gets it when all have written
    if comm.rank == 0:
        write_table(folder, saved)  # last, so without it nothing is complete
    return len(piece), saved


def load(comm):
    begin, end = own_numbers(comm)
    piece, reads = load_piece(folder, begin, end)
    assert np.array_equal(piece, np.arange(begin, end))
    return len(piece), reads


# %% [markdown]
# No rank ever makes a vector of 3,600 numbers, because `load_piece` reads only those that it needs. The function
# `reshard`, which you write in the exercises, works out where they are:

# %% tags=["figure:18_pieces"]
results = ranks.run(save).results
saved = results[0][1]
loaded = {}
for size in (3, 2):
    found = ranks.run(load, ranks=size).results
    held = [length for length, reads in found]
    assert max(held) < NUMBERS and sum(held) == NUMBERS  # no rank holds it all
    print(sentences.reads_text(held, NUMBERS))
    loaded[f"loaded by {size}"] = [reads for length, reads in found]

by_three = loaded["loaded by 3"]
course.measured(
    "resharded",
    reads=sum(map(len, by_three)),
    rank_1_from_file_1=sum(
        last - first for file, first, last in by_three[1] if file == 1
    ),
)
by_two = loaded["loaded by 2"]
title = f"Three ranks need {sum(map(len, by_three))} reads of {len(saved)} files, "
title += f"and two ranks need {sum(map(len, by_two))}"
pictures.pieces(saved, loaded, title)

# %% [markdown]
# PyTorch does this with `torch.distributed.checkpoint`, which you met in lesson 11.
# [Further](18_failures_further.ipynb) saves and loads the same vector with it.

# %% [markdown]
# ## Save while the training goes on
#
# The cost of saving is the time $C$ that all ranks wait. It becomes much shorter if they wait only until their state is
# *copied* in memory, and a thread (lesson 3) then writes the copy to the disk, as in `save_async` of the exercises.
#
# There are two easy mistakes. If the thread writes the state itself, the training changes the numbers while they are
# being written. And if it writes over the previous checkpoint, there is no complete checkpoint until it has finished.
# So it writes to a file with a different name, and renames this file at the end. Before that, `write_array` calls
# `fsync`, which waits until everything is really on the disk. Otherwise a power failure could leave the new name with
# an incomplete file.
#
# In the next cell, a training run saves after 10 steps and again after 20. The second time the disk is so slow that
# after 25 steps it has written only half of the file. Suppose that the machine dies at this moment. The cell kills
# nothing, but looks at the disk before the thread may write the rest. If the machine died after 15 steps, for example,
# training would resume after step 10 and lose 5 steps.
#
# **Predict.** The machine dies after 25 steps, while the checkpoint of step 20 is still being written. After which step
# does the training resume, and how many steps are lost?

# %%
course.predict("died_while_saving", resumes_after=..., lost=...)

# %% tags=["nbval-check-output"]
from course_utils.lessons.failures import save_async, write_array

file = folder / "training.npy"
half_is_written, disk_is_free = threading.Event(), threading.Event()


def write_slowly(path, array):
    write_array(path, array)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])  # all that the disk has so far
    half_is_written.set()
    disk_is_free.wait()
    path.write_bytes(whole)


state = np.zeros(1000)
for step in range(1, 26):
    state += 1  # a step of training: each number counts the steps
    if step == 10:
        save_async(file, state, write_array).result()  # waits for the disk
    if step == 20:
        saving = save_async(file, state, write_slowly)  # returns at once

half_is_written.wait()  # this is what a machine that dies now leaves behind:
for left in sorted(folder.glob("training*")):
    print(f"{left.name} has {left.stat().st_size:,} bytes")
on_disk = np.load(file)
print(f"{file.name} holds the state of step {on_disk[0]:g}")
disk_is_free.set()
saving.result()
completed = np.load(file)
assert len(set(on_disk)) == len(set(completed)) == 1  # no mixture of two states
print(f"when the disk has finished, it holds that of step {completed[0]:g}")

# %%
course.measured("died_while_saving", resumes_after=on_disk[0], lost=25 - on_disk[0])

# %% [markdown]
# The half-written file does no harm, because it hasn't been renamed yet. The checkpoint of step 20 is right, although
# the state changed five times before it was complete. So if you save in the background, a failure costs up to one
# interval plus the time of writing. Don't start the next save before the previous one has finished, because both write
# to the same `.new` file, and don't end the program before `result()` has returned.
#
# ## A bit flips, and nothing crashes
#
# A dead process is at least easy to notice. A processor or a memory chip can also compute or store a wrong number and
# carry on, which is called **silent data corruption**. Of the 419 interruptions, six were put down to it (table 5 of
# the report). A float64 number has 64 bits: one for the sign, 11 for the exponent and 52 for the fraction. We train our
# network for 20 steps, flip one bit of a single weight, and calculate the loss of a batch. We do this for each of the
# 64 bits:

# %% tags=["figure:18_flips"]
from course_utils.lessons.failures import loss_after_flips

loss, flipped = loss_after_flips(steps=20, index=444)
pictures.flipped_bits(loss, flipped)

# %% [markdown]
# Most flips can't be found by looking at the loss. Even in the exponent, seven bars are equally high, but below 1%. The
# weight is 0.06, and those seven bits of it are 1. Clearing the lowest of them divides it by $2^8$, and a higher one by
# even more, so it becomes almost 0 each time. A bfloat16 number has only 7 bits of fraction among its 16, so fewer of
# its flips are harmless.
#
# Can a replica that has computed something wrong be found at all? In data parallelism there is a simple test. All
# replicas start with equal weights and take equal steps, so their weights must be equal, *bit by bit*. To compare them
# without sending them, each rank calculates a **checksum**, a number of a few bytes that is practically certain to
# change if any bit does. The rank whose checksum differs from that of the majority has the error.
#
# What does a flip do to the others? After step 5, a bit of rank 2's weights flips. Its next gradient is calculated with
# a wrong weight, so it is wrong. The all-reduce adds it to the other three and gives the same sum to all ranks, so all
# ranks make the same wrong update.
#
# **Predict.** After 10 steps, how many of the four ranks have weights that differ from those of the majority? And how
# many have weights that differ from those of a run without a flip?

# %%
course.predict("flip", from_the_majority=..., from_an_undisturbed_run=...)


# %%
from course_utils.lessons.failures import find_the_liar, flip_bit
from course_utils.lessons.failures import gradient_and_loss, new_state, update


def train_with_flip(comm, steps, flips_at):
    state, found = new_state(), []
    for step in range(steps):
        if step == flips_at and comm.rank == 2:
            flip_bit(state[0].numpy(), index=444, bit=40)
        total = gradient_and_loss(state, step, comm.rank).numpy()
        mean = comm.allreduce(total) / comm.size
        update(state, torch.from_numpy(mean[:-1]), step)
        found.append(find_the_liar(comm, state[0].numpy()))
    return state[0].numpy(), found, mean[-1]


undisturbed = ranks.run(train_with_flip, 10, flips_at=None).results
disturbed = ranks.run(train_with_flip, 10, flips_at=5).results
for step, liars in enumerate(disturbed[0][1], start=1):
    print(f"after step {step}: ranks that differ from the majority: {liars}")
print(f"loss {disturbed[0][2]:.9f}, and {undisturbed[0][2]:.9f} without the flip")
assert disturbed[0][1] == 5 * [[]] + 5 * [[2]] and undisturbed[0][1] == 10 * [[]]
differ = [
    not np.array_equal(now, before)
    for (now, _, _), (before, _, _) in zip(disturbed, undisturbed)
]
course.measured(
    "flip",
    from_the_majority=len(disturbed[0][1][-1]),
    from_an_undisturbed_run=sum(differ),
)

# %% [markdown]
# The checksums find rank 2 after step 6. Just before that step's all-reduce, they would have caught this flip in time.
# Now the wrong gradient has already reached all the others, so it isn't enough to heal rank 2 from a peer. The ranks
# have to go back to the last state in which all checksums agreed.
#
# The test has limits. More than half of the replicas must be right: with two, you learn only that one of them is wrong.
# The all-reduce and the update must give the same bits on every rank. And an error in a gradient *before* the
# all-reduce can't be found in this way, because it reaches all ranks equally. [Further](18_failures_further.ipynb)
# finds such an error by computing the same gradient twice, and also finds a rank that is slow instead of dead.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# If every failure ends all processes, the share of time lost grows with every GPU you add. Replicas with whole copies
# can go on without a dead one if they agree on who takes part before each step. A newcomer is healed from a peer. A
# failure then costs one step, a short stall, and the work of one replica until it is back. Checkpoints are still
# needed. In pieces they fit any number of ranks, and written in the background they hardly stop the training, but only
# a complete one counts. And an error that crashes nothing can be found by comparing what must be equal.
#
# In the [exercises](../exercises/18_failures.ipynb) you write the quorum, the healing, the reads of a checkpoint in
# pieces, the save in the background, and the search for the rank with wrong weights.
#
# **To read**
#
# - Grattafiori and others, 2024, [*The Llama 3 Herd of Models*](https://arxiv.org/abs/2407.21783): section 3.3.4 lists
#   what failed in 54 days.
# - Young, 1974, [*A first order approximation to the optimum checkpoint
#   interval*](https://doi.org/10.1145/361147.361115): two pages, with the square root.
# - Daly, 2006, [*A higher order estimate of the optimum checkpoint interval for restart
#   dumps*](https://doi.org/10.1016/j.future.2004.11.016): also for failures during a restart.
# - [torchft](https://github.com/meta-pytorch/torchft): the library that lets replicas go on, with its lighthouse and
#   managers.
