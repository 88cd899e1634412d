# The lesson on pipelines. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How are all stages kept busy?
#
# After this lesson you can **write** a pipeline's schedule, **predict** how idle its ranks are and what they keep in
# memory, and **judge** what each cleverer schedule costs.
#
# *60 minutes · builds on [lesson 9](09_model_parallel.ipynb) · 4 ranks*

# %%
import numpy as np
import torch
from torch import nn

import course_utils as course
from course_utils.words import percent

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# Lesson 9 cut a model into **stages**, one on each rank. Activations go forward from rank to rank, their gradients come
# back. This is a **pipeline**, and only one of its ranks is ever busy.
#
# We write down who does what. `2F0` is stage 2's forward pass, `2B0` its backward pass. Soon we cut the batch into
# pieces: the 0 at the end is the piece's number. A list of such actions for each rank is a **schedule**.

# %% tags=["nbval-check-output"]
from course_utils.lessons.pipeline import parse_schedule, problems, with_messages

whole_batch = parse_schedule(["0F0 0B0", "1F0 1B0", "2F0 2B0", "3F0 3B0"])
print("wrong with it:", problems(whole_batch) or "nothing")
print("with messages, rank 1:", *with_messages(whole_batch)[1])

# %% [markdown]
# Three programs read a schedule. The **validator** says what is wrong with it, the **simulator** computes when
# everything would happen, and the **runner** carries it out. The messages follow from the schedule: `1RECV_F0` receives
# the input of `1F0`, `1RECV_B0` the gradient for `1B0`.
#
# Four stages that compute at once need four cores. This machine may have two. So our stages are small, and each
# **waits** until the time of a large stage has passed: 160 ms forward, twice as long backward.

# %% [markdown]
# Cut the batch into 8 **micro-batches**. Each is an eighth of the work: 20 ms forward, 40 ms backward. Rank 1 begins as
# soon as rank 0 is done with the first. If all forward passes come first, then all backward passes, that is **GPipe**
# (Huang and others, 2019). On two ranks, with three micro-batches:
#
# ```
# 0F0 0F1 0F2 0B0 0B1 0B2
# 1F0 1F1 1F2 1B0 1B1 1B2
# ```
#
# **Predict**: for what percentage of the time is a rank idle, on average? Four ranks, with the batch in one piece, and
# in eight.

# %%
course.predict("pipeline_idle", within=1.24, one=..., eight=...)

# %% tags=["figure:10_pieces"]
from course_utils.lessons.pipeline import disturbed, faster_text, gpipe_schedule, pictures
from course_utils.lessons.pipeline import simulate_schedule, timed_runs
from course_utils.measuring import BUSY, unless_busy

t = 0.02  # seconds of a forward pass, and of each half of a backward pass
gpipe = gpipe_schedule(4, 8)  # ranks, micro-batches
one, eight = timed_runs(ranks, whole_batch, 8 * t)[0], timed_runs(ranks, gpipe, t)[0]
# busy: did something else use this machine? Then the run judges no prediction
busy = disturbed(simulate_schedule(gpipe, t, t, t), eight)
in_percent = [round(100 * run.idle_share) for run in (one, eight)]
course.measured("pipeline_idle", busy=busy, one=in_percent[0], eight=in_percent[1])
both = {"one piece": one, "8 micro-batches": eight}
title = BUSY if busy else faster_text(one, eight, 8)
pictures.pipelines(both, title, in_seconds=True)

# %% [markdown]
# The number in a box is its micro-batch. Grey is the **bubble**. The last rank waits at the start and at the end. The
# first rank waits in the middle, until the first gradient has come back. With smaller pieces, all these waits are
# shorter. [Exercise](../exercises/10_pipeline.ipynb): `gpipe_schedule`.
#
# ## Does it compute the same?
#
# The runner, on a middle rank, with micro-batch `i` (its `tag`, a number on each message, keeps micro-batches apart):
#
# ```
# RECV_F   x[i] = comm.recv(rank - 1, tag)
# F        y[i] = stage(x[i])
# SEND_F   comm.isend(y[i], rank + 1, tag)
# RECV_B   g = comm.recv(rank + 1, tag)
# B        y[i].backward(g)
# SEND_B   comm.isend(x[i].grad, rank - 1, tag)
# ```
#
# Exercise: `run_schedule`. Now a network of eight layers learns the digits, in float64, through the pipeline:

# %%
from course_utils.lessons.pipeline import digit_batches, digit_layers, micro_batches_of
from course_utils.lessons.pipeline import own_stages, run_schedule


def train(comm, schedule, steps):
    stages = own_stages(schedule, comm.rank, digit_layers())  # number → layers
    parameters = {number: list(stage.parameters()) for number, stage in stages.items()}
    optimizer, losses = torch.optim.SGD(sum(parameters.values(), []), lr=0.2), []
    for images, loss in digit_batches(steps, micro_batches_of(schedule)):
        losses.append(run_schedule(comm, schedule, stages, images, loss))
        optimizer.step()
        optimizer.zero_grad()
    return losses, parameters


# %%
from course_utils.lessons.pipeline import largest_difference, train_alone

steps = 20
model, serial = train_alone(steps, rate=0.2)  # the same in one process


def apart(schedule):
    results = ranks.run(train, schedule, steps).results
    held = [parameters for losses, parameters in results]  # by each rank
    losses = np.sum(
        [losses for losses, parameters in results], axis=0
    )  # one rank's, and zeros
    return max(
        np.abs(losses - serial).max(), largest_difference(held, model.parameters())
    )


far = apart(gpipe)
print(f"losses and weights at most {far:.0e} apart, over {steps} steps")
assert far < 1e-12

# %% [markdown]
# It does, up to the order of a few additions. Every micro-batch sees the same weights. Their gradients are added up.
# Only then do all stages step.
#
# ## How large is the bubble?
#
# Let all stages take equally long, and let messages take no time. Each of $p$ ranks works on $m$ micro-batches. Each
# also waits for as long as $p-1$ micro-batches take: the last rank at the start and at the end, the first rank in the
# middle.
#
# $$\text{idle share} = \frac{p-1}{m+p-1}$$
#
# **Predict**, in percent: $p = 4$ ranks, and $m = 16$ micro-batches.

# %%
course.predict("pipeline_bubble", within=1.4, sixteen=...)

# %% tags=["figure:10_bubble"]
from course_utils.lessons.pipeline import bubble_fraction, formula_text

ms = [1, 2, 4, 8, 16]
runs = [timed_runs(ranks, gpipe_schedule(4, m), t, runs=3) for m in ms]
measured = [[run.idle_share for run in three] for three in runs]
formula = [bubble_fraction(4, m) for m in ms]
sixteen = runs[-1][0]  # timed_runs puts the median run first
busy = disturbed(simulate_schedule(gpipe_schedule(4, 16), t, t, t), sixteen)
course.measured("pipeline_bubble", busy=busy, sixteen=round(100 * sixteen.idle_share))
look = {"across": "micro-batches m", "up": "idle share", "unit": percent}
look |= {"predicted": {"GPipe": formula}, "limits": (0, 1)}
title = unless_busy(busy, formula_text(ms, measured, formula))
finding = "On 4 ranks, three runs for each m"
course.draw.over_numbers(ms, {"GPipe": measured}, title, finding, **look)

# %% [markdown]
# So the more micro-batches, the better? There is a price. A rank keeps a micro-batch's activations in memory until its
# backward pass; with GPipe, those of all $m$. (The paper keeps only the inputs of a stage, and computes the rest again,
# as lesson 9 did.) Exercise: `bubble_fraction`.
#
# ## One forward, one backward
#
# **1F1B** (Narayanan and others, 2019; as here, with a pause after each batch: Fan and others, 2020) does backward
# passes as early as it can. A rank begins with one forward pass for
# every rank after it. Then it does one forward and one backward pass, in turn. The last rank: `3F0 3B0 3F1 3B1 …`; the
# first: `0F0 0F1 0F2 0F3 0B0 0F4 …`
#
# **Predict**, for $p=4$ and $m=8$: the idle share in percent, and how many micro-batches ranks 0 and 3 keep at most at
# the same time.

# %%
course.predict("pipeline_1f1b", within=1.24, idle=..., rank_0=..., rank_3=...)

# %% tags=["figure:10_1f1b"]
from course_utils.lessons.pipeline import kept_by_rank, one_f_one_b_schedule, plan_text

one_f_one_b = one_f_one_b_schedule(4, 8)
plan = simulate_schedule(one_f_one_b, t, t, t)  # seconds of F, and of the two halves of B
plain = timed_runs(ranks, one_f_one_b, t)[0]
kept = kept_by_rank(plain)
busy, idle = disturbed(plan, plain), round(100 * plain.idle_share)
course.measured("pipeline_1f1b", busy=busy, idle=idle, rank_0=kept[0], rank_3=kept[3])
pictures.plan_and_run("1F1B", plan, plain, *plan_text("1F1B", plan, plain))

# %% tags=["figure:10_kept"]
from course_utils.lessons.pipeline import kept_text

counted = {"GPipe": kept_by_rank(eight), "1F1B": kept}
theory = {"GPipe": [8] * 4, "1F1B": [min(4 - r, 8) for r in range(4)]}
look = {"across": "rank", "up": "micro-batches kept, at most", "limits": (0, 9)}
finding = "Counted in the two runs. Lines: GPipe m = 8, 1F1B min(4 − rank, 8)"
title = kept_text(eight, plain)
course.draw.over_numbers(range(4), counted, title, finding, predicted=theory, **look)

# %% [markdown]
# By plan, 1F1B is *no faster* than GPipe. But rank $r$ keeps at most $\min(p-r, m)$ micro-batches. So we can cut the
# batch into more of them, and *that* shrinks the bubble. Exercise: `one_f_one_b_schedule`.
#
# ## Several short stages
#
# Cut the model into 8 stages, each half as long. Rank 0 gets stages 0 and 4, rank 1 gets 1 and 5, and so on. Now the
# last rank gets its first input in half the time. That is **interleaved** 1F1B.
#
# **Predict** the idle share in percent, and the messages of a batch. (1F1B sends 48: three borders between stages,
# times eight micro-batches, times two ways.)

# %%
course.predict("pipeline_interleaved", within=1.4, idle=...)
course.predict("pipeline_messages", messages=...)

# %% tags=["figure:10_interleaved"]
from course_utils.lessons.pipeline import interleaved_schedule

interleaved = interleaved_schedule(4, 8, chunks=2)  # two stages on each rank
plan = simulate_schedule(interleaved, t / 2, t / 2, t / 2)
run = timed_runs(ranks, interleaved, t)[0]
lines = [action for actions in with_messages(interleaved) for action in actions]
sent = sum(action.kind in ("SEND_F", "SEND_B") for action in lines)
busy, idle = disturbed(plan, run), round(100 * run.idle_share)
course.measured("pipeline_interleaved", busy=busy, idle=idle)
course.answer("pipeline_messages", messages=sent)
title, finding = plan_text("Interleaved", plan, run)
pictures.plan_and_run("interleaved", plan, run, title, finding)

# %% [markdown]
# (A rank's second stage is paler.) With $v$ stages on each rank the idle share is $\frac{p-1}{v\,m+p-1}$.
#
# One price is messages: there are $v\,p-1$ borders between stages, not $p-1$. On slow links they cost more than is
# gained. The other price is memory. Rank 0 begins with 11 forward passes of half a rank's layers. 1F1B begins with 4 of
# all: $\frac{11}{2 \cdot 4}$ times the memory, in general $1+\frac{p-1}{p\,v}$.
#
# ## A backward pass has two halves
#
# A linear layer's backward pass makes two products. Who waits for which?

# %%
layer, x = nn.Linear(5, 3), torch.randn(4, 5, requires_grad=True)
y = layer(x)
g = torch.randn_like(y)  # the gradient of y, from the next stage
y.backward(g)
assert torch.allclose(x.grad, g @ layer.weight)  # I: the stage before waits for it
assert torch.allclose(layer.weight.grad, g.T @ x)  # W: only the optimizer does

# %% [markdown]
# `I`, the gradient of the *input*, is urgent. `W`, the gradient of the *weights*, can wait. **Zero bubble** schedules
# use that (Qi and others, 2023): a rank does its W when it would be idle.
#
# With 1F1B, rank 0 is idle for an F, an I and a W of every rank after it. With **ZB-H1**, those ranks put off their W,
# so rank 0 waits for F and I only. And it fills a part of each wait with a W of its own. (Memory: no rank keeps more
# than $p$ micro-batches, as rank 0 does with 1F1B.)
#
# **Predict**, for F, I and W equally long: what percentage of 1F1B's bubble is left?

# %%
course.predict("pipeline_zero", within=1.5, left=...)

# %% tags=["figure:10_zb_h1"]
from course_utils.lessons.pipeline import bubble_text, idle_seconds, zb_h1_schedule
from course_utils.lessons.pipeline import zb_h2_schedule

h1 = zb_h1_schedule(4, 8)
plan, run = simulate_schedule(h1, t, t, t), timed_runs(ranks, h1, t)[0]
planned = idle_seconds(plan) / idle_seconds(simulate_schedule(one_f_one_b, t, t, t))
busy, left = disturbed(plan, run), round(100 * idle_seconds(run) / idle_seconds(plain))
course.measured("pipeline_zero", busy=busy, left=left)
title = BUSY if busy else bubble_text(plain, run, planned, "ZB-H1")
finding = plan_text("", plan, run)[1]
pictures.plan_and_run("ZB-H1", plan, run, title, finding)

# %% [markdown]
# The planned bubble is $(p-1)(F+I-W)$. For 1F1B it was $(p-1)(F+I+W)$.
#
# **ZB-H2** begins with more forward passes, and keeps up to $2p-1$ micro-batches. By plan, no rank then pauses between
# its first action and its last. One batch still takes as long as with ZB-H1. But ranks idle only at the two slanted
# edges of the picture. So the next batch could begin in the gap that this one leaves, if no rank waited for all others
# before its step:

# %% tags=["figure:10_zb_h2"]
from course_utils.lessons.pipeline import window_text

h2 = zb_h2_schedule(4, 8)
plan, run = simulate_schedule(h2, t, t, t), timed_runs(ranks, h2, t)[0]
title = plan_text("ZB-H2", plan, run)[0]
finding = "" if disturbed(plan, run) else window_text(run, kept_by_rank(run))
picture = pictures.plan_and_run("ZB-H2", plan, run, title, finding)
every = {"1F1B": one_f_one_b, "interleaved": interleaved, "ZB-H1": h1, "ZB-H2": h2}
for name, schedule in every.items():
    far = apart(schedule)
    print(f"{name}: at most {far:.0e} from one process")
    assert far < 1e-12
picture

# %% [markdown]
# ## In a V
#
# Let the model go down the ranks and come back up. Rank $r$ holds the stages $r$ and $2p-1-r$, each half as long. So
# rank 0 holds the first stage and the last: it gets the batch, and knows the loss.
#
# **ZB-V** (Qi and others, 2024) is zero bubble in this shape. **DualPipe-V** (DeepSeek, 2024) pairs each forward pass
# with a backward pass of another micro-batch. On GPUs, one of the two computes while the other's messages travel.
#
# **Predict:** for 4 ranks, 8 micro-batches and F, I, W equally long, 1F1B is idle for 27 % of the time by plan, ZB-H1
# for 11 %. ZB-V, with stages half as long?

# %%
course.predict("pipeline_v", within=1.5, percent=...)

# %%
from course_utils.lessons.pipeline import dual_pipe_v_schedule, peak_in_flight
from course_utils.lessons.pipeline import validate_schedule, zb_v_schedule

v_shaped = {"ZB-V": zb_v_schedule(4, 8), "DualPipe-V": dual_pipe_v_schedule(4, 8)}
plans = {}
for name, schedule in ({"1F1B": one_f_one_b, "ZB-H1": h1} | v_shaped).items():
    validate_schedule(schedule)
    share = 0.5 if name in v_shaped else 1.0  # of a rank's layers in a stage
    plans[name] = simulate_schedule(schedule, share * t, share * t, share * t)
    idle, kept = plans[name].idle_share, max(peak_in_flight(schedule, share))
    print(f"{name:10}: {idle:4.0%} idle as planned, keeps {kept:g} micro-batches")
course.answer("pipeline_v", percent=round(100 * plans["ZB-V"].idle_share))

# %% tags=["figure:10_v"]
from course_utils.lessons.pipeline import idle_text

v_runs, busy = {}, False
for name, schedule in v_shaped.items():
    v_runs[name] = timed_runs(ranks, schedule, t)[0]  # a rank's two stages share t
    busy |= disturbed(plans[name], v_runs[name])
    far = apart(schedule)
    print(f"{name}: at most {far:.0e} from one process")
    assert far < 1e-12
title = BUSY if busy else idle_text(v_runs)
pictures.pipelines(v_runs, title, in_seconds=True)

# %% [markdown]
# By plan, ZB-V idles only at its slanted edges, as ZB-H2 does. Yet it keeps no more than rank 0 does with 1F1B. The
# price: twice as many messages. DualPipe-V is as idle by plan. Here a rank does the two passes of a pair one after the
# other, so no messages are hidden.
#
# ## Schedules that do not work
#
# Two ranks, the list of rank 1 after the bar. d has three micro-batches, the others two. **Predict**: which of the four
# *can* be run, if a rank may keep at most two micro-batches?

# %%
tried = {
    "a": ["0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"],
    "b": ["0F0 0F1 0B0 0B1", "1B0 1F0 1F1 1B1"],
    "c": ["0F0 0F1 0B0 0B1", "1F0 1F1 1B1 1B0"],
    "d": ["0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"],
}
choices = {letter: " | ".join(lines) for letter, lines in tried.items()}
course.predict("pipeline_broken", answer=..., choices=choices)


# %%
def told(wrong):
    return "; ".join(map(str, wrong)).replace(", rank", ",\n   rank") or "can be run"


found = {k: problems(parse_schedule(lines), memory=2) for k, lines in tried.items()}
for letter, wrong in found.items():
    print(f"{letter}:", told(wrong))
(works,) = [letter for letter, wrong in found.items() if not wrong]
course.answer("pipeline_broken", answer=works)
hangs = problems(one_f_one_b, synchronous=True)  # a send waits for its receive
print("1F1B with such sends:", told(hangs), sep="\n   ")

# %% [markdown]
# In a, both ranks wait in a circle. b wants a gradient before there is a loss. d keeps too much. c is odd, and works.
#
# Even 1F1B hangs where a *send* waits for its receive, as it does for large messages (lesson 4). So our runner uses
# `isend`.
#
# ## Never empty the pipeline
#
# After each batch the pipeline runs empty, since all stages must step before the next: a **flush**. **PipeDream**
# (2019) does not flush. Each stage steps by itself, after *every* micro-batch. But then weights change between a
# micro-batch's forward and its backward pass:

# %% tags=["nbval-check-output"]
w, v = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
out = v * w  # forward: the slope along w is v = 2
v.data -= 0.5  # a step for another micro-batch
out.backward()
print(f"autograd says {w.grad.item()}")

# %% [markdown]
# The forward pass computed $2w$, whose slope is 2. Nobody computed a function with the slope 1.5. (Without `.data`
# autograd would raise an error.) The cure is **weight stashing**: each forward pass keeps its weights for its backward
# pass.
#
# ```
# F    kept[i] = weights
#      y[i] = stage(x[i], kept[i])
# B    y[i].backward(g)                 # through kept[i]
#      weights = weights - rate * grad  # a new version
# ```
#
# The order is 1F1B's, on four ranks. **Predict**: how many versions of their weights do ranks 0 and 3 keep at most? How
# many steps old are the weights that rank 0's gradient is for, at most?

# %%
course.predict("pipeline_stash", rank_0=..., rank_3=..., late=...)

# %%
from course_utils.lessons.pipeline import flush_text, step_by_step, timing_of

ranks.run(step_by_step, 4)  # the first run of anything takes longer
run = ranks.run(step_by_step, 24, seconds=t)
versions = [each.versions for each in run.results]
late = max(run.results[0].staleness)
course.measured("pipeline_stash", rank_0=versions[0], rank_3=versions[3], late=late)
timing = timing_of(run.events, 4)
title = flush_text(timing, bubble_fraction(4, 8), 8)
pictures.pipelines({"24 micro-batches, 24 steps": timing}, title, in_seconds=True)

# %% [markdown]
# Rank $r$ keeps $p-r$ versions, one for each micro-batch that it keeps. So the first rank steps along a gradient that
# is $p-1$ steps old: lesson 8's staleness. What does that do to a training? We train for 200 steps, and one process
# beside it without a delay:

# %% tags=["figure:10_stashing"]
from course_utils.lessons.pipeline import stashing_text, step_by_step_alone

stream = 200  # micro-batches, each with a step of its own
losses = {"no delay": step_by_step_alone(stream)}
losses["stashed"] = ranks.run(step_by_step, stream).results[3].losses
losses["not stashed"] = ranks.run(step_by_step, stream, stash=False).results[3].losses
delayed = step_by_step_alone(stream, delay=3)
assert np.allclose(losses["stashed"], delayed, rtol=0, atol=1e-12)
mean = np.ones(20) / 20
smooth = {name: np.convolve(line, mean, "valid") for name, line in losses.items()}
course.draw.loss_curves(smooth, stashing_text(losses), x="step", y="loss (mean of 20)")

# %% [markdown]
# With stashing, the four ranks take the same steps as one process that uses old weights (the cell asserts it). That is
# SGD with a delay, and one can reason about it. Without stashing nothing is promised. One run proves little: try
# another rate. Today's large models are trained with a flush. They accept no delay, and make the bubble small by clever
# schedules.
#
# ## PyTorch's own
#
# `torch.distributed.pipelining` has most of these schedules: ZB-V is its `ScheduleZBVZeroBubble`, DualPipe-V its
# `ScheduleDualPipeV`. It has no ZB-H2. We give it the same stages and the same batch, and it sends by itself:

# %%
from course_utils.lessons.pipeline import torch_pipeline

data, cross_entropy = course.data.digits("float64"), nn.functional.cross_entropy


def through_torch(name, schedule):
    rank = torch.distributed.get_rank()
    stages = own_stages(schedule, rank, digit_layers(), plain=True)
    in_all, micro_batches = 4 * len(stages), 8
    pipeline = torch_pipeline.torch_pipeline(
        name, stages, in_all, micro_batches, cross_entropy
    )
    torch_pipeline.run_with_torch(pipeline, data.train_x[:64], data.train_y[:64])
    gradients = {s: [w.grad for w in part.parameters()] for s, part in stages.items()}
    return gradients, torch_pipeline.published_order(pipeline)  # torch's own schedule


# %%
same = nn.Sequential(*digit_layers())
cross_entropy(same(data.train_x[:64]), data.train_y[:64]).backward()
gradients = [w.grad for w in same.parameters()]
for name, schedule in ({"GPipe": gpipe} | every).items():
    if name != "ZB-H2":  # torch has none
        results = ranks.run(through_torch, name, schedule, backend="gloo").results
        far = largest_difference([held for held, order in results], gradients)
        order = results[0][1]  # a list for each rank, as in our schedules
        equal = [rank for rank in range(4) if order[rank] == schedule[rank]]
        print(f"{name}: gradients {far:.0e} apart, our order on ranks", *equal)
        assert far < 1e-12

# %% [markdown]
# Is rank 3 missing for 1F1B? There, torch 2.13 *publishes* its forward passes counted from 1, and *runs* them from 0.
# So validate a framework's schedule, too.
#
# ## Beat 1F1B
#
# Here are four puzzles. Stages take different times, messages take time, and ranks have little memory. Hand in *any*
# schedule: the validator and the simulator judge it. (It is planned, not run.) This is 1F1B on one of them:

# %% tags=["figure:10_puzzle"]
from course_utils.lessons.pipeline import PUZZLES, judge

puzzle = PUZZLES["uneven"]  # for each rank: seconds of F, I and W, and micro-batches
for name in ("forward", "input_gradient", "weight_gradient", "memory"):
    print(f"{name:16}", *getattr(puzzle, name))
print(f"a message takes {puzzle.message} s of the link, and {puzzle.latency} s to arrive")
print(judge(puzzle, one_f_one_b))
plan, finding = puzzle.one_f_one_b(), "Simulated, by the puzzle's times"
title = f"1F1B on uneven stages: {percent(plan.idle_share)} idle"
pictures.pipelines({"1F1B": plan}, title, finding, in_seconds=True)

# %% [markdown]
# Where would you begin? Exercise: `beat_1f1b`. A class shares a list of its best schedules.
#
# And when can you stop? Choose some of a rank's actions, for example all its backward passes. Something must happen
# before the first of them can begin. The rank does one action at a time. And something must follow after the last. No
# schedule is shorter than these three together. The longest such sum is a **lower bound**. For each rank, we choose the
# actions for which the sum is longest:

# %%
from course_utils.lessons.pipeline import best_known, longest_stretches, stretches_text

stretches = longest_stretches(puzzle)
words = "must come before", "the chosen actions", "must follow"
bars = {f"rank {r}": dict(zip(words, each)) for r, each in enumerate(stretches)}
title = stretches_text(stretches, best_known(puzzle).seconds)
course.draw.stacked_bars(bars, title, "What each rank needs in every schedule")

# %% [markdown]
# Could a schedule lie in the gap between this bound and the best known? Suppose that there is one. Then some actions
# must come before others, or it would take too long. Where no order follows, we try both orders of two actions, and
# reason on. If every attempt ends in a contradiction, there is no such schedule: the best known is *proved* to be the
# best. For how many of the four puzzles does that succeed?

# %%
from course_utils.lessons.pipeline import check_proof, lower_bound, proofs_text, prove
from course_utils.lessons.pipeline import proved_text

known = {name: best_known(each).seconds for name, each in PUZZLES.items()}
bounds = {}
for name, each in PUZZLES.items():
    proof, found = prove(each, known[name]), ()
    if proof:
        check_proof(proof)  # by a program of its own; raises where a step is wrong
        found = len(proof), proof.took
    bounds[name] = known[name] if proof else lower_bound(each)
    print(f"{name:10}", proved_text(known[name], lower_bound(each), *found))

# %% tags=["figure:10_proofs"]
plain = {name: each.one_f_one_b().seconds for name, each in PUZZLES.items()}
cases = {
    name: (bounds[name], {"1F1B": plain[name], "best known": known[name]})
    for name in PUZZLES
}
title = proofs_text(known, bounds)
course.draw.above_bound(cases, title, "Simulated, by the puzzles' times")

# %% [markdown]
# ## What you take with you
#
# You can **write** a schedule: lists of `F`, `B` or `I` and `W`, checked before they run. You can **predict** its
# bubble, $\frac{p-1}{m+p-1}$, and what ranks keep, $\min(p-r,m)$ with 1F1B. And you can **judge** the others:
# interleaving buys time with messages and memory, ZB-H2 with memory, a V with messages, stashing with stale gradients.
#
# Next: [the exercises](../exercises/10_pipeline.ipynb). Then
# [lesson 11](11_hybrid_and_sharded.ipynb): which mixture?
#
# **To read**
#
# - Huang and others (2019), [*GPipe*](https://arxiv.org/abs/1811.06965), introduced micro-batches for pipelines.
# - Narayanan and others (2021), [*Efficient Large-Scale Language Model Training on GPU
#   Clusters*](https://arxiv.org/abs/2104.04473), introduced the interleaved schedule.
# - Qi and others (2024), [*Zero Bubble Pipeline Parallelism*](https://arxiv.org/abs/2401.10241), splits the backward
#   pass in two.

# %%
ranks.stop()
