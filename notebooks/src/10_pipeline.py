# The lesson on pipelines. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How are all stages kept busy?
#
# In lesson 9 you cut a model that was too large for one rank into stages and put one stage on each of four ranks. It
# worked, but at any moment only one rank was computing while the other three waited for it. So each rank was idle for
# 75% of the time on average. For training, the layers of Llama 3 405B were spread over 16 ranks ([Grattafiori and
# others, 2024](https://arxiv.org/abs/2407.21783)). If only one of them had computed at a time, the GPUs would have been
# idle for 15/16 of the time, which is 94%.
#
# The cure is to cut the batch into small pieces and let them follow each other through the stages, as cars do on an
# assembly line. In this lesson you write down who does what in which order, run it, work out how much of the time the
# ranks are still idle and what they have to keep in memory, and judge what it costs to shorten the idle time.
#
# *50 minutes · builds on [lesson 9](09_model_parallel.ipynb) · 4 ranks*

# %%
import numpy as np
import torch
from torch import nn

import course_utils as course
from course_utils.lessons.pipeline import parse_schedule, pictures, problems
from course_utils.lessons.pipeline import simulate_schedule, steps_text, write_schedule
from course_utils.words import percent

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## Who does what, and in which order
#
# Stages on different ranks, with pieces of work that pass through them one after the other, form a **pipeline**. To
# plan one we need a notation, and we take the one that PyTorch uses. `2F0` is the forward pass of stage 2 on piece 0,
# and `2B0` is its backward pass. A **schedule** contains a list of such actions for each rank, in the order in which
# the rank does them. With four stages and the whole batch in one piece, it looks like this:

# %% tags=["nbval-check-output"]
whole_batch = parse_schedule(["0F0 0B0", "1F0 1B0", "2F0 2B0", "3F0 3B0"])
print("problems:", problems(whole_batch) or "none")
on_paper = simulate_schedule(whole_batch)
print(f"rank 3 begins at {on_paper.entries[3].start:g}, all ends at {on_paper.seconds:g}")

# %% [markdown]
# `problems` looks for mistakes, such as a missing pass or two ranks that wait for each other. `simulate_schedule` is a
# **simulator**, which calculates when everything would happen and runs nothing. We say that its results hold *on
# paper*. A pass begins as soon as its rank is free and its input has arrived, and messages take no time. Its unit of
# time is one forward pass of a stage. A backward pass takes two units, because it does about twice as many
# multiplications (you will see why at the end of this lesson). So four of each, one after the other, take 4 + 8 = 12
# units.
#
# ## Smaller pieces
#
# Now let's cut the batch into smaller pieces, called **micro-batches**. As soon as rank 0 has finished the forward pass
# of the first one, it passes the activations on and starts on the second, while rank 1 works on the first. The simplest
# schedule does all forward passes and then all backward passes. It is called **GPipe**, after the library in which it
# appeared ([Huang and others, 2019](https://arxiv.org/abs/1811.06965)). Here it is with two ranks and three
# micro-batches. To see which rank holds what, let's pretend for a moment that a backward pass takes no longer than a
# forward pass. In this picture each pass takes one step, and a black frame means that the rank is working:

# %% tags=["figure:10_micro_batches"]
small_gpipe = parse_schedule(["0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"])
pictures.micro_batches(small_gpipe, steps_text("GPipe", small_gpipe))

# %% [markdown]
# Follow rank 1 in the lower rows. In step 1 no activations have arrived yet. In steps 2 to 4 it does the forward passes
# of the three micro-batches. It keeps their activations (pale blue), because the backward passes need them. In step 5
# it does the backward pass of micro-batch 0, while rank 0 is still waiting for the first gradient to come back. After
# its backward pass, the activations of a micro-batch can be freed (grey).
#
# How long does this take if a backward pass takes two units? Rank 1 begins at time 1, and it then has three forward and
# three backward passes to do without a break, which take 3 + 6 = 9 units. When it finishes, at time 10, rank 0 still
# needs two units for its last backward pass. That makes 12 units, of which each rank works for 9 and is idle for 3, or
# 25%. In one piece, the same work would take 18 units.

# %%
title = "Each rank is idle for 3 of 12 units of time"
pictures.pipelines({"GPipe on paper": simulate_schedule(small_gpipe)}, title)

# %% [markdown]
# The grey time is called the **bubble** of the pipeline.
#
# ## The program on every rank
#
# The following function runs on each rank and goes through that rank's list. For a forward pass, it receives
# activations from the previous rank (rank 0 takes a micro-batch instead), computes, and sends the result to the next
# rank. For a backward pass, the gradient comes from the next rank (the last rank starts from the loss instead), and the
# result goes to the previous rank.


# %%
from course_utils.lessons.pipeline import at_work


def run_batch(comm, schedule, stages, micro_batches, loss, pace=None):
    stage = stages[comm.rank]  # this rank's layers
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    x, y = {}, {}  # inputs and outputs of the stage, for each micro-batch
    sends, total = [], 0.0
    for action in schedule[comm.rank]:
        i = action.micro_batch
        if action.kind == "F":
            if first:
                x[i] = micro_batches[i]
            else:
                received = comm.recv(source=comm.rank - 1, tag=i)
                x[i] = torch.tensor(received, requires_grad=True)
            with at_work(action, pace):
                y[i] = stage(x[i])
            if last:
                y[i] = loss(y[i], i)
                total += y[i].item()
            else:
                sends.append(comm.isend(y[i].detach().numpy(), comm.rank + 1, tag=i))
        else:  # "B"
            gradient = None
            if not last:
                gradient = torch.tensor(comm.recv(source=comm.rank + 1, tag=i))
            with at_work(action, pace):
                y[i].backward(gradient)
            if not first:
                sends.append(comm.isend(x[i].grad.numpy(), comm.rank - 1, tag=i))
            del x[i], y[i]  # the activations are freed
    for send in sends:
        send.wait()
    return total


# %% [markdown]
# The tag of a message is the number of its micro-batch. We use `isend`, which doesn't wait for the receiver, because in
# some schedules two neighbours send to each other at the same moment, activations one way and a gradient the other, and
# that could end in the deadlock of lesson 4 ([Further](10_pipeline_further.ipynb) shows one). `loss(y, i)` is
# micro-batch `i`'s share of the loss, so all shares add up to the loss of the batch.
#
# The passes on this page are **emulated** by `at_work`. Four stages can only compute at the same time on four cores,
# and your computer may have fewer. So our stages are so small that they compute in almost no time, and then `at_work`
# lets the rank *sleep* until a large stage would have finished. It also notes when the pass began and ended. The
# messages are real, and so is the waiting for them.
#
# Does a pipeline give the same result as a single process? We train a network of eight layers on the handwritten
# digits, in `float64`, with two layers in each of the four stages. `train_alone` does the same in one process:


# %%
from course_utils.lessons.pipeline import digit_batches, digit_layers, gpipe_schedule
from course_utils.lessons.pipeline import largest_difference, micro_batches_of
from course_utils.lessons.pipeline import own_stages, train_alone


def train(comm, schedule, steps, run_batch):
    stages = own_stages(schedule, comm.rank, digit_layers())  # {number: layers}
    weights = [w for layers in stages.values() for w in layers.parameters()]
    optimizer = torch.optim.SGD(weights, lr=0.2)
    losses = []
    for images, loss in digit_batches(steps, micro_batches_of(schedule)):
        losses.append(run_batch(comm, schedule, stages, images, loss))
        optimizer.step()
        optimizer.zero_grad()
    return losses, {number: list(s.parameters()) for number, s in stages.items()}


# %%
steps = 20
model, serial_losses = train_alone(steps, rate=0.2)


def difference_from_serial(schedule, run_batch=run_batch):
    results = ranks.run(train, schedule, steps, run_batch).results
    losses = sum(np.array(losses) for losses, _ in results)  # 0 except on the last rank
    trained = [weights for _, weights in results]
    of_losses = np.abs(losses - serial_losses).max()
    return max(of_losses, largest_difference(trained, model.parameters()))


gpipe = gpipe_schedule(4, 8)  # 4 ranks, 8 micro-batches
difference = difference_from_serial(gpipe)
print(f"after {steps} steps, losses and weights differ by at most {difference:.0e}")
assert difference < 1e-12

# %% [markdown]
# Apart from rounding, the four ranks do what one process does. All micro-batches of a batch see the same weights, and
# their gradients are added up, as in lesson 7. Only then does each rank take its step. With GPipe, rank 0 is the last
# to finish, so the pipeline drains before the next batch begins. This is called a **flush**.
#
# Now we can time it. We emulate stages that take 160 ms for a forward pass of the whole batch and 320 ms for a backward
# pass. Each of 8 micro-batches then takes 20 ms forward and 40 ms backward. `timed_runs` sends one batch through the
# pipeline with our `run_batch`.
#
# **Predict.** Four ranks run GPipe with 8 micro-batches. For what percentage of the time is each rank idle? As in the
# example, begin with the last rank. When does it start, how long does it work, and what is left to do when it has
# finished?

# %%
course.predict("pipeline_idle", within=1.24, percent=...)

# %% tags=["figure:10_pieces"]
from course_utils.lessons.pipeline import disturbed, faster_text, timed_runs
from course_utils.measuring import BUSY, unless_busy

t = 0.02  # seconds: a forward pass takes t, and a backward pass 2 t
in_one_piece = timed_runs(ranks, whole_batch, 8 * t, run_batch=run_batch)[0]
eight = timed_runs(ranks, gpipe, t, run_batch=run_batch)[0]
plan = simulate_schedule(gpipe, t, t, t)  # seconds of F, and of both halves of B
busy = disturbed(plan, eight)  # was the machine busy with other work?
course.measured("pipeline_idle", busy=busy, percent=round(100 * eight.idle_share))
both = {"one piece": in_one_piece, "8 micro-batches": eight}
title = BUSY if busy else faster_text(in_one_piece, eight, 8)
pictures.pipelines(both, title, in_seconds=True)

# %% [markdown]
# Rank 3 waits for three forward passes, which take 3 units, before it can begin. Then it works for 8 × 3 = 24 units
# without a break. When it has finished, the last micro-batch still needs three backward passes on the other ranks, or 6
# units. So on paper it is idle for 9 of 33 units, which is 27%. The bubble of the other ranks is just as long, but at
# different times. Rank 1, for example, waits for 1 unit at the start, for 6 in the middle and for 2 at the end.
#
# ## How large is the bubble?
#
# We can do this for any number of ranks $p$ and micro-batches $m$. Let $\tau$ be the time that a rank needs for one
# micro-batch, forward and backward. The last rank waits for $p-1$ forward passes at the start and for $p-1$ backward
# passes at the end, which is $(p-1)\,\tau$ in total. In between it works for $m\,\tau$. Therefore
#
# $$\text{idle share} = \frac{(p-1)\,\tau}{m\,\tau + (p-1)\,\tau} = \frac{p-1}{m+p-1}.$$
#
# Our two examples fit, with 1/4 for $p=2$ and $m=3$, and 3/11 for $p=4$ and $m=8$. (Papers often give the bubble as a
# share of the *working* time instead, which is $\frac{p-1}{m}$.)
#
# **Predict.** A pipeline of 16 ranks should be idle for no more than 10% of the time. How many micro-batches does it
# need for that?

# %%
course.predict("pipeline_bubble", micro_batches=...)

# %% tags=["figure:10_bubble"]
from course_utils.lessons.pipeline import bubble_fraction, formula_text

needed = next(m for m in range(1, 1000) if bubble_fraction(16, m) <= 0.1)
course.answer("pipeline_bubble", micro_batches=needed)

ms = [1, 2, 4, 8, 16]
runs = {m: timed_runs(ranks, gpipe_schedule(4, m), t, runs=3) for m in ms}
measured = [[run.idle_share for run in runs[m]] for m in ms]
formula = [bubble_fraction(4, m) for m in ms]
most = ms[-1]
busy = disturbed(simulate_schedule(gpipe_schedule(4, most), t, t, t), runs[most][0])
course.draw.over_numbers(
    ms,
    {"GPipe": measured},
    unless_busy(busy, formula_text(ms, measured, formula)),
    "GPipe on 4 ranks, three runs for each number of micro-batches",
    predicted={"GPipe": formula},
    across="micro-batches m",
    up="idle share",
    unit=percent,
    limits=(0, 1),
)

# %% [markdown]
# With $p=16$ we need $\frac{15}{m+15} \le \frac{1}{10}$, so $m$ must be at least 135. The picture compares the formula,
# in which messages take no time, with runs on our four ranks.
#
# However, more micro-batches come at a price. A micro-batch has at least one example, so sooner or later you need a
# larger batch, and from lesson 6 you know that a batch can't grow forever. According to its report, Llama 3 405B was
# trained on 16,384 GPUs in 128 pipelines of 16 ranks, each of them a group of 8 GPUs, and each pipeline got 16
# sequences of a batch. If every sequence is a micro-batch, $m$ is 16, and with GPipe 15/31 of the time would be lost,
# which is 48%. Smaller micro-batches also mean smaller matrix products, on which GPUs are less efficient (our sleeping
# stages don't show this). And then there is memory. With GPipe each rank keeps the activations of all $m$
# micro-batches. (The GPipe paper keeps only the inputs of the stages and recomputes the rest, as in lesson 9.)
#
# ## One forward, one backward
#
# Why should rank 1 keep micro-batch 0 until all forward passes are done? It could do the backward pass at once. In
# **1F1B**, each rank begins with a few forward passes and then alternates between forward and backward passes
# ([Narayanan and others, 2019](https://doi.org/10.1145/3341301.3359646), there without a flush). Here is our small
# example again:

# %%
small_1f1b = parse_schedule(["0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"])
pictures.micro_batches(small_1f1b, steps_text("1F1B", small_1f1b))

# %% [markdown]
# The last rank does the backward pass of each micro-batch immediately after its forward pass, so it keeps only one at a
# time. Rank 0 does one extra forward pass before it starts to alternate, because the first gradient isn't back yet, so
# it keeps two. In general, a rank does one extra forward pass for *each rank after it*, so rank $r$ begins with $p-r$
# forward passes.
#
# Is it also faster? Both pictures have eight steps, and the last rank still waits for the same passes at the start and
# at the end.
#
# **Predict.** Four ranks run 1F1B with 8 micro-batches. For what percentage of the time is a rank idle on paper, and
# what is the largest number of micro-batches that rank 0 and rank 3 keep at the same time?

# %%
course.predict("pipeline_1f1b", within=1.24, percent=..., rank_0=..., rank_3=...)

# %% tags=["figure:10_1f1b"]
from course_utils.lessons.pipeline import kept_by_rank, one_f_one_b_schedule, plan_text

one_f_one_b = one_f_one_b_schedule(4, 8)
plan = simulate_schedule(one_f_one_b, t, t, t)
plain = timed_runs(ranks, one_f_one_b, t, run_batch=run_batch)[0]
kept, idle = kept_by_rank(plan), round(100 * plan.idle_share)
course.answer("pipeline_1f1b", percent=idle, rank_0=kept[0], rank_3=kept[3])
assert difference_from_serial(one_f_one_b) < 1e-12
pictures.plan_and_run("1F1B", plan, plain, *plan_text("1F1B", plan, plain))

# %% tags=["figure:10_kept"]
from course_utils.lessons.pipeline import kept_text

course.draw.over_numbers(
    range(4),
    {"GPipe": kept_by_rank(eight), "1F1B": kept_by_rank(plain)},
    kept_text(eight, plain),
    "Counted in the two runs. The lines are m for GPipe and p − rank for 1F1B",
    predicted={"GPipe": [8] * 4, "1F1B": [4, 3, 2, 1]},
    across="rank",
    up="peak number of micro-batches kept",
    limits=(0, 9),
)

# %% [markdown]
# On paper, 1F1B leaves the ranks idle for exactly as long as GPipe does. But rank $r$ keeps at most $p-r$
# micro-batches, however large $m$ is. So memory no longer limits the number of micro-batches, and more of them make the
# bubble smaller. You write both schedules and the formula in the [exercises](../exercises/10_pipeline.ipynb).
#
# ## Several short stages on each rank
#
# If you can't have more micro-batches, you can give each rank several shorter stages instead of one. With two ranks and
# two stages on each, the model is cut into four. Rank 0 gets stages 0 and 2, and rank 1 gets stages 1 and 3, so a
# micro-batch visits each rank twice. Such a schedule is called **interleaved**. Here it is with four micro-batches,
# compared with 1F1B. Each stage has half as many layers, so its passes take half as long:

# %%
from course_utils.lessons.pipeline import interleaved_schedule

small = one_f_one_b_schedule(2, 4)
small_interleaved = interleaved_schedule(2, 4, chunks=2)  # two stages on each rank
print(write_schedule(small_interleaved))
on_paper = {
    "1F1B": simulate_schedule(small, 1, 1, 1),
    "interleaved": simulate_schedule(small_interleaved, 0.5, 0.5, 0.5),
}
saved = on_paper["1F1B"].seconds - on_paper["interleaved"].seconds
title = f"Two stages on each rank save {saved:g} units of time on paper"
pictures.pipelines(on_paper, title, "A rank's second stage has paler colours")

# %% [markdown]
# Look at rank 1. With 1F1B it waits for a forward pass of 1 unit at the start and for a backward pass of 2 units at the
# end. In the interleaved schedule these two passes take half a unit and 1 unit. Its bubble is 1.5 units instead of 3,
# while its work is still 4 × 3 = 12 units. So it is idle for 1.5 of 13.5 units, which is 11% instead of 20%. With $v$
# stages on each rank, the bubble is $v$ times smaller, as long as the number of micro-batches is a multiple of the
# number of ranks. With fewer micro-batches than ranks, interleaving saves less.
#
# **Predict.** Four ranks with two stages each run the interleaved schedule with 8 micro-batches. For what percentage of
# the time is a rank idle?

# %%
course.predict("pipeline_interleaved", within=1.4, percent=...)

# %% tags=["figure:10_interleaved"]
from course_utils.lessons.pipeline import peak_in_flight, run_schedule, with_messages

interleaved = interleaved_schedule(4, 8, chunks=2)
plan = simulate_schedule(interleaved, t / 2, t / 2, t / 2)
run = timed_runs(ranks, interleaved, t)[0]  # the two stages of a rank share t
busy, idle = disturbed(plan, run), round(100 * run.idle_share)
course.measured("pipeline_interleaved", busy=busy, percent=idle)
for name, schedule, size in [("1F1B", one_f_one_b, 1), ("interleaved", interleaved, 0.5)]:
    program = with_messages(schedule)  # with the sends and receives that it needs
    sends = sum(a.kind.startswith("SEND") for actions in program for a in actions)
    kept = max(peak_in_flight(schedule, size))  # size: of a rank's layers in a stage
    print(f"{name}: {sends} messages, a rank keeps up to {kept:g} micro-batches")
assert difference_from_serial(interleaved, run_schedule) < 1e-12
pictures.plan_and_run("Interleaved", plan, run, *plan_text("Interleaved", plan, run))

# %% [markdown]
# On paper, the bubble of 9 units becomes 4.5 units, for 24 units of work. That is 16% of the total, and in general
# $\frac{p-1}{v\,m+p-1}$. Our `run_batch` can handle only one stage per rank. `run_schedule`, which you write in an
# exercise, allows several.
#
# The printed lines show what this costs. With 1F1B there are 3 boundaries between stages, and 8 micro-batches cross
# each of them forward and backward, which makes 3 × 8 × 2 = 48 messages. Eight stages have 7 boundaries, and so there
# are 112 messages. If the network is slow, they can cost more than the smaller bubble saves. Every rank also has to
# keep more, because a micro-batch visits it twice before the first gradient comes back. Rank 0, which keeps the most,
# begins with 11 forward passes of half its layers, which count as 5.5 micro-batches.
#
# In the Llama 3 example, eight stages on each rank would bring the 48% down to $\frac{15}{8 \cdot 16 + 15}$, or 10%.
# The authors of Llama 3 did use an interleaved schedule.
#
# ## A backward pass has two halves
#
# Take a linear layer, $y = x\,W^\top$. From the gradient $g$ of its output, the backward pass computes two products:


# %%
layer, x = nn.Linear(5, 3), torch.randn(4, 5, requires_grad=True)
y = layer(x)
g = torch.randn_like(y)  # the gradient of y, from the next stage
y.backward(g)
assert torch.allclose(x.grad, g @ layer.weight)  # I, the gradient of the input
assert torch.allclose(layer.weight.grad, g.T @ x)  # W, that of the weights

# %% [markdown]
# The forward pass is a single product, which is why we count a backward pass as two units. We call the two halves `I`
# and `W`. The previous rank is waiting for `I`, but `W` isn't needed until the optimizer takes its step. So `W` can be
# postponed to fill part of the bubble. Such schedules are called **zero bubble** ([Qi and others,
# 2023](https://arxiv.org/abs/2401.10241)), although some of the bubble may be left. One of them is **ZB-H1**. Here is
# our small example, where `F`, `I` and `W` take one unit each:

# %%
from course_utils.lessons.pipeline import zb_h1_schedule

small_h1 = zb_h1_schedule(2, 3)
on_paper = {"1F1B": simulate_schedule(small_1f1b), "ZB-H1": simulate_schedule(small_h1)}
saved = on_paper["1F1B"].seconds - on_paper["ZB-H1"].seconds
title = f"Putting off W saves {saved:g} units of time on paper"
pictures.pipelines(on_paper, title)

# %% [markdown]
# With 1F1B, rank 0 waits from time 2 to time 4, while rank 1 does a whole backward pass. In ZB-H1, rank 1 puts off its
# `W`, so the gradient leaves after one unit, and rank 0 waits only until time 3. At the end, rank 1 used to wait for
# two units, which it now fills with its two remaining `W` passes. So each rank is idle for 1 unit instead of 3, which
# is 10% of the 10 units that the batch takes.
#
# With two ranks, ZB-H1 cuts the bubble from 3 units to 1. Each additional rank lengthens the bubble of 1F1B by 3 units,
# one each for `F`, `I` and `W`, so it is 9 units with four ranks. In ZB-H1 an additional rank adds only 1 unit. A
# postponed `W` helps twice, because no other rank waits for it any more, and because it fills a unit in which its own
# rank would have been idle.
#
# **Predict.** Four ranks run ZB-H1 with 8 micro-batches. For what percentage of the time is a rank idle?

# %%
course.predict("pipeline_zero", within=1.5, percent=...)

# %% tags=["figure:10_zb_h1"]
from course_utils.lessons.pipeline import bubble_text, idle_seconds

h1 = zb_h1_schedule(4, 8)
plan, run = simulate_schedule(h1, t, t, t), timed_runs(ranks, h1, t)[0]
before = simulate_schedule(one_f_one_b, t, t, t)
left, idle = idle_seconds(plan) / idle_seconds(before), round(100 * run.idle_share)
busy = disturbed(plan, run) or disturbed(before, plain)
course.measured("pipeline_zero", busy=busy, percent=idle)
print(
    "peak number of micro-batches kept, rank by rank:",
    *(f"{kept:g}" for kept in peak_in_flight(h1)),
)
assert difference_from_serial(h1, run_schedule) < 1e-12
title = BUSY if busy else bubble_text(plain, run, left, "ZB-H1")
pictures.plan_and_run("ZB-H1", plan, run, title, plan_text("ZB-H1", plan, run)[1])

# %% [markdown]
# On paper each rank works for 24 units and is idle for 3, which is 11%. The price is memory on the later ranks. Most of
# a micro-batch's activations can't be freed before its `W` is done, so now *every* rank keeps up to $p$ micro-batches,
# as only rank 0 did before.
#
# In a whole transformer block `F`, `I` and `W` don't take equally long, because the products inside attention have no
# weights, so the gain is a little smaller there. Llama 3 had few micro-batches for its 16 ranks and relied on
# interleaving. DeepSeek-V3 went further, with a schedule that splits backward passes and also overlaps messages with
# computation ([2024](https://arxiv.org/abs/2412.19437)). [Further](10_pipeline_further.ipynb) continues here, with
# schedules that leave no gap, stages laid out in a V, a pipeline without a flush, and a puzzle in which you beat 1F1B.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can read a schedule, and you know the loop that carries it out. The ranks of a pipeline with $p$ ranks and $m$
# micro-batches are idle for $\frac{p-1}{m+p-1}$ of the time on paper, so the first cure is more micro-batches. With
# GPipe they cost memory, but with 1F1B rank $r$ keeps at most $p-r$ of them. If the batch can't grow any more, you can
# interleave short stages and pay with messages and memory, or put off the second half of the backward pass and pay with
# memory.
#
# Continue with [the exercises](../exercises/10_pipeline.ipynb). [Lesson 11](11_hybrid_and_sharded.ipynb) combines
# pipelines with the other ways to share the work of training.
#
# **To read**
#
# - Huang and others, 2019, [*GPipe*](https://arxiv.org/abs/1811.06965): micro-batches, and how large a model can become
#   with them.
# - Narayanan and others, 2021, [*Efficient Large-Scale Language Model Training on GPU
#   Clusters*](https://arxiv.org/abs/2104.04473): the interleaved schedule, and how to combine it with the other
#   methods.
# - Qi and others, 2023, [*Zero Bubble Pipeline Parallelism*](https://arxiv.org/abs/2401.10241): cuts the backward pass
#   in two.
