# The optional second notebook of lesson 10. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: how are all stages kept busy?
#
# On the [first page](10_pipeline.ipynb), cutting the backward pass in two brought the idle share of four ranks down
# from 27% to 11% on paper. It is possible to get to 6%, and in a long training that never empties its pipeline, hardly
# any idle time is left. But each of these schedules has a price, which is memory, messages, or gradients that are out
# of date. This notebook shows you what you get and what you pay for it. At the end you will prove that a schedule
# cannot be improved.
#
# Everything here is optional, and nothing later depends on it. The first two code cells prepare the notebook. After
# that you can go to any section, because each of them stands alone. If a section complains that its ranks were stopped,
# run the first two code cells again.
#
# 1. *No gap on any rank*: ZB-H2, and when its memory pays
# 2. *Down the ranks and up again*: schedules in the shape of a V
# 3. *Schedules that hang*: how to find out before the run
# 4. *Messages behind the computation*: what `isend` is good for
# 5. *A pipeline that never runs empty*: PipeDream and weight stashing
# 6. *PyTorch's own schedules*: the same gradients, and nearly the same lists
# 7. *A puzzle*: beat 1F1B, and know when you can stop
# 8. *A proof by cases*: how to be sure that there is no better schedule
#
# *70 minutes · optional, after [lesson 10](10_pipeline.ipynb) · 4 ranks, about 9 minutes for each section*

# %%
import numpy as np
import torch
from torch import nn

import course_utils as course
from course_utils.lessons.pipeline import disturbed, gpipe_schedule, one_f_one_b_schedule
from course_utils.lessons.pipeline import parse_schedule, pictures, plan_text, problems
from course_utils.lessons.pipeline import simulate_schedule, timed_runs
from course_utils.lessons.pipeline import zb_h1_schedule, zb_h2_schedule
from course_utils.measuring import BUSY
from course_utils.words import percent

ranks = course.start(4)
ranks.load_torch()

t = 0.02  # seconds of a forward pass, and of each half of a backward pass
gpipe = gpipe_schedule(4, 8)  # 4 ranks, 8 micro-batches
one_f_one_b = one_f_one_b_schedule(4, 8)
zb_h1 = zb_h1_schedule(4, 8)
zb_h2 = zb_h2_schedule(4, 8)

# %% [markdown]
# As on the first page, `2F0` is the forward pass of stage 2 on micro-batch 0, and `2B0` its backward pass. If the
# backward pass is cut in two, `2I0` computes the gradient of the stage's input and `2W0` the gradient of its weights.
# *On paper* means that F, I and W all take one unit of time, that B takes two units, and that messages and optimizer
# steps take no time. A stage of half the length takes half as long. A rank keeps a micro-batch from its F to its W.
# There are four ranks and eight micro-batches unless a section says otherwise.
#
# Every schedule has to compute what one process would compute. The function `difference` trains the network for the
# digits for 20 steps through a pipeline, and returns how far its losses and weights are from those of one process:

# %%
from course_utils.lessons.pipeline import digit_batches, digit_layers
from course_utils.lessons.pipeline import largest_difference, micro_batches_of
from course_utils.lessons.pipeline import own_stages, run_schedule, train_alone

steps = 20


def train(comm, schedule):
    stages = own_stages(schedule, comm.rank, digit_layers())  # number → layers
    weights = {number: list(stage.parameters()) for number, stage in stages.items()}
    optimizer = torch.optim.SGD(sum(weights.values(), []), lr=0.2)
    losses = []
    for images, loss in digit_batches(steps, micro_batches_of(schedule)):
        losses.append(run_schedule(comm, schedule, stages, images, loss))
        optimizer.step()
        optimizer.zero_grad()
    return losses, weights


model, serial_losses = train_alone(steps, rate=0.2)


def difference(schedule):
    results = ranks.run(train, schedule).results
    losses = np.sum([losses for losses, _ in results], axis=0)  # 0 on most ranks
    loss_difference = np.abs(losses - serial_losses).max()
    held = [weights for _, weights in results]
    return max(loss_difference, largest_difference(held, model.parameters()))


# %% [markdown]
# ## No gap on any rank
#
# Here is ZB-H1 again, on paper, and below it a schedule of the same authors that keeps more micro-batches in memory.
# They call it **ZB-H2**:

# %% tags=["figure:10_zb_h2"]
on_paper = {
    "ZB-H1": simulate_schedule(zb_h1),
    "ZB-H2": simulate_schedule(zb_h2),
}
pictures.pipelines(on_paper, "With ZB-H2, no rank pauses once it has begun")

# %% [markdown]
# Follow rank 0. The first micro-batch needs 4 units to pass the forward passes of four ranks, and 3 more until the
# ranks 3, 2 and 1 have done their I. So rank 0 can't do its first I before 7 units have passed. With ZB-H1 it does four
# forward passes in that time and then waits for 3 units, because it may not keep more than four micro-batches. With
# ZB-H2 it does seven forward passes, which is exactly enough. In general, every rank keeps up to $2p-1$ micro-batches
# instead of $p$, where $p$ is the number of ranks.
#
# All this memory doesn't make a batch any shorter. Each rank has 8 × 3 = 24 units of work, and rank 3 can't begin
# before the first micro-batch has passed three other ranks. So with one stage on each rank, a batch takes at least
# 3 + 24 = 27 units, and both schedules reach that. What ZB-H2 changes is *where* rank 0 is idle. Its gap has moved
# from the middle of the batch to the end, where the next batch can use it.
#
# As an example, take 1F1B, which you saw on the first page. A batch takes 33 units, and rank 0 works until the very end
# of it. The next batch can't begin before that, so ten batches take 330 units.
#
# **Predict.** How long do ten batches take with ZB-H1, and with ZB-H2, if each rank begins with its next batch as soon
# as it is done with the last one?

# %%
course.predict("pipeline_ten", within=1.02, zb_h1=..., zb_h2=...)

# %% tags=["nbval-check-output"]
from dataclasses import replace


def in_a_row(schedule, batches):
    longer = []
    for actions in schedule:
        own = []
        for batch in range(batches):
            for action in actions:
                own.append(replace(action, micro_batch=8 * batch + action.micro_batch))
        longer.append(own)
    return longer


units = {}
for name, schedule in {"1F1B": one_f_one_b, "ZB-H1": zb_h1, "ZB-H2": zb_h2}.items():
    units[name] = simulate_schedule(in_a_row(schedule, 10)).seconds
    print(f"{name:5}: {units[name]:g} units")

# %%
course.answer("pipeline_ten", zb_h1=units["ZB-H1"], zb_h2=units["ZB-H2"])

# %% [markdown]
# With ZB-H1, rank 0 works until unit 27, so nothing can overlap. With ZB-H2 it is done after 24 units, and the batches
# fit into each other. The 3 units at the slanted edge are lost only once.
#
# In practice there is an obstacle. In many programs, no rank may take its optimizer step until it has a value that
# depends on *all* stages. Gradient clipping (lesson 11) needs the norm of the gradient over the whole model, and
# training in float16 (lesson 13) first checks whether any number in the gradient has become infinite. Both need an
# all-reduce, and an all-reduce has to wait for the rank that finishes last. The authors therefore let each rank take
# its step at once and do the check afterwards. If the check fails, which is rare, the rank undoes the step and does it
# again correctly.
#
# Now the same on real ranks, where each stage sleeps for 20 ms instead of computing, as on the first page:

# %%
from course_utils.lessons.pipeline import kept_by_rank, window_text

plan, run = simulate_schedule(zb_h2, t, t, t), timed_runs(ranks, zb_h2, t)[0]
far = difference(zb_h2)
print(f"ZB-H2: at most {far:.0e} from one process")
assert far < 1e-12
finding = "" if disturbed(plan, run) else window_text(run, kept_by_rank(run))
pictures.plan_and_run("ZB-H2", plan, run, plan_text("ZB-H2", plan, run)[0], finding)

# %% [markdown]
# ## Down the ranks and up again
#
# ZB-H2, the last schedule of section 1, has no gaps on any rank, but all ranks keep seven micro-batches in memory. Can
# you avoid gaps with less? The idea is to change which rank holds what. Cut the model into 8 stages, each half as long
# as before, and lay them down the ranks and up again:
#
# | | going down | coming up |
# |---|---|---|
# | rank 0 | stage 0 | stage 7 |
# | rank 1 | stage 1 | stage 6 |
# | rank 2 | stage 2 | stage 5 |
# | rank 3 | stage 3 | stage 4 |
#
# In general, rank $r$ holds the stages $r$ and $2p-1-r$. Rank 0 now has the first stage and the last one. It sees a
# micro-batch come back up, knows its loss, and can begin with the backward pass itself. Memory is shared out evenly,
# too. The activations of an early stage are kept for a long time, those of a late stage only briefly, and each rank has
# one of both kinds.
#
# Qi and others designed a schedule for this shape, **ZB-V**, in section 6 of the paper that introduced ZB-H1 and ZB-H2.
# On paper, it leaves no gap on any rank either. So you can calculate its idle share just like that of ZB-H2, where rank
# 3 began after 3 units, each rank worked for 24 units without a gap, and the idle share was therefore 3 ÷ 27 = 11%.
#
# **Predict.** When can rank 3 begin if each stage is only half as long? So what is the idle share of ZB-V?

# %%
course.predict("pipeline_v", within=1.25, percent=...)

# %%
from course_utils.lessons.pipeline import dual_pipe_v_schedule, peak_in_flight
from course_utils.lessons.pipeline import with_messages, zb_v_schedule

zb_v, dual_pipe_v = zb_v_schedule(4, 8), dual_pipe_v_schedule(4, 8)


def describe(name, schedule, share):
    assert not problems(schedule)
    plan = simulate_schedule(schedule, share * t, share * t, share * t)
    sent = sum("SEND" in action.kind for own in with_messages(schedule) for action in own)
    kept = max(peak_in_flight(schedule, share))  # a stage's activations count as a share
    idle = percent(plan.idle_share)
    print(f"{name:10} {idle:>4} idle, keeps {kept:g} micro-batches, {sent} messages")
    return plan


describe("1F1B", one_f_one_b, share=1)
describe("ZB-H1", zb_h1, share=1)
describe("ZB-H2", zb_h2, share=1)
plans = {"ZB-V": describe("ZB-V", zb_v, share=1 / 2)}
plans["DualPipe-V"] = describe("DualPipe-V", dual_pipe_v, share=1 / 2)
course.answer("pipeline_v", percent=100 * plans["ZB-V"].idle_share)

# %% [markdown]
# Rank 3 begins after 1.5 units, so a batch takes 25.5 units, of which 1.5 are idle. That is less than the 27 units of
# section 1, because the stages are shorter. ZB-V does it with the memory that rank 0 needs with 1F1B. The price is
# messages. Eight stages have seven borders between them. Only stages 3 and 4 are on the same rank, so messages are sent
# at six borders, compared with three for 1F1B.
#
# The last line of the table is a schedule with a longer history. DeepSeek trained its model V3 (report of December
# 2024) with a schedule called *DualPipe*, in which two pipelines run through the same ranks in opposite directions. A
# rank pairs a forward pass from one pipeline with a backward pass from the other. On a GPU, both run at the same time,
# and while one of them computes, the messages of the other travel. This matters for a model with experts (lesson 16),
# because every layer with experts sends messages. But each rank holds two stages, one for each direction, so every
# weight of the model is stored twice.
#
# Engineers at Sea AI Lab then cut DualPipe in half. They kept one pipeline in the shape of a V, in which passes going
# down are paired with passes coming up, and so needed each weight only once. This is **DualPipe-V**, which DeepSeek
# took into [its repository](https://github.com/deepseek-ai/DualPipe) in March 2025. Compared with ZB-V, it keeps the
# activations of one more stage, which is half a micro-batch. Our ranks do the two passes of a pair one after the other,
# so here you see its order but not its purpose:

# %% tags=["figure:10_v"]
from course_utils.lessons.pipeline import idle_text

v_runs, busy = {}, False
for name, schedule in {"ZB-V": zb_v, "DualPipe-V": dual_pipe_v}.items():
    v_runs[name] = timed_runs(ranks, schedule, t)[0]  # a rank's two stages share t
    busy |= disturbed(plans[name], v_runs[name])
    far = difference(schedule)
    print(f"{name}: at most {far:.0e} from one process")
    assert far < 1e-12
on_paper = [f"{percent(plan.idle_share)} with {name}" for name, plan in plans.items()]
finding = "On paper: " + ", ".join(on_paper)
title = BUSY if busy else idle_text(v_runs)
pictures.pipelines(v_runs, title, finding, in_seconds=True)

# %% [markdown]
# The stage on the way up is paler, and B is twice as wide as I. A real run is usually more idle than the schedule on
# paper, which ignores messages and delays. Qi and others have also described [a whole family of
# schedules](https://arxiv.org/abs/2405.15362) in this shape. Some of its members need only a half or a third of the
# memory of 1F1B, but leave ranks idle for longer than ZB-V does.
#
# ## Schedules that hang
#
# A schedule is only a table of names, and you can write down one that can't be carried out. Take two ranks and two
# micro-batches:
#
# ```
# rank 0    0F0 0B0 0F1 0B1
# rank 1    1F0 1F1 1B0 1B1
# ```
#
# Rank 0 does `0F0`, and rank 1 can do `1F0`. Now rank 0 wants to do `0B0`, and this needs a gradient from `1B0`. But
# rank 1 wants to do `1F1` first. That needs the output of `0F1`, which rank 0 computes only after `0B0`. Each rank
# waits for the other, and the program hangs. If you swap `1F1` and `1B0`, it runs.
#
# A schedule can also be wrong in other ways. It can ask for a gradient before there is a loss, or keep more
# micro-batches than fit into memory.
#
# **Predict.** Suppose that a rank can keep at most two micro-batches. Which of these four schedules can be run?

# %%
two_ranks = {
    "a": ["0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"],
    "b": ["0F0 0F1 0B0 0B1", "1B0 1F0 1F1 1B1"],
    "c": ["0F0 0F1 0B0 0B1", "1F0 1F1 1B1 1B0"],
    "d": ["0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"],
}
choices = {letter: " | ".join(lists) for letter, lists in two_ranks.items()}
course.predict("pipeline_broken", answer=..., choices=choices)

# %% [markdown]
# The function `problems` finds out without running anything. It looks for missing and repeated passes, for passes that
# come too early, and for more micro-batches in memory than allowed. Then it simulates the schedule. If it reaches a
# point where no rank can continue and some are unfinished, it has found a deadlock.

# %% tags=["nbval-check-output"]
for letter, lists in two_ranks.items():
    found = problems(parse_schedule(lists), memory=2)
    print(f"{letter}:", *(found or ["can be run"]), sep="\n   ")

# %%
can_be_run = [
    letter
    for letter, lists in two_ranks.items()
    if not problems(parse_schedule(lists), memory=2)
]
course.answer("pipeline_broken", answer=can_be_run[0])

# %% [markdown]
# In the line of schedule a, `0RECV_B0` is where rank 0 receives the gradient that `0B0` needs. These messages are not
# in our lists, because they follow from the passes. Schedule c is unusual, because rank 1 takes the gradients in the
# opposite order. Before its backward passes, rank 0 has to wait until rank 1 has finished everything, but the gradient
# does arrive.
#
# Even a correct schedule can hang if a *send* waits until the other side receives, as MPI's `send` may do for long
# messages (lesson 4). This is what would happen to 1F1B:

# %%
print(*problems(one_f_one_b, synchronous=True), sep="\n")

# %% [markdown]
# Rank 2 sends an activation to rank 3, and at the same time rank 3 sends a gradient to rank 2. Neither of them
# receives, because each is still busy sending, and ranks 0 and 1 wait behind them. The runner of the first page avoids
# this with `isend`, which doesn't wait.
#
# ## Messages behind the computation
#
# There is another reason for `isend`. On paper, messages take no time. Now suppose that each message needs half a unit
# to travel from rank to rank. Does every message make the batch longer?
#
# Take GPipe with two ranks and three micro-batches. On paper, a batch takes 12 units, because each rank works for 9 and
# waits for 3. Now add the messages, sent with `isend`. Rank 1 gets its first input half a unit later than before. While
# it works on that, the second one arrives, and so does the third, and it doesn't have to wait for them. The first
# gradient also reaches rank 0 half a unit late, and all further ones arrive while rank 0 is busy. So out of six
# messages only two make the batch longer, and it takes 13 units.
#
# **Predict.** With four ranks and eight micro-batches, GPipe takes 33 units on paper and sends 48 messages. How many
# units does it take if a message needs half a unit?

# %%
course.predict("pipeline_hidden", within=1.03, units=...)

# %%
late = simulate_schedule(gpipe, message=0.5)
print(f"{late.seconds:g} units, and {percent(late.idle_share)} of the time idle")
course.answer("pipeline_hidden", units=late.seconds)

# %% [markdown]
# A message makes the batch longer only if a rank has nothing else to do in the meantime. With GPipe, that is the case
# on the way of the first micro-batch to the last rank, and of the first gradient back to rank 0. These are two times
# three messages of half a unit. The other 42 are hidden behind computation. Does every schedule hide them?

# %% tags=["nbval-check-output"]
makers = {"GPipe": gpipe_schedule, "1F1B": one_f_one_b_schedule, "ZB-H2": zb_h2_schedule}
for name, make in makers.items():
    for m in (8, 16):
        schedule = make(4, m)
        longer = [simulate_schedule(schedule, message=sent).seconds for sent in (0, 0.5)]
        print(f"{name:5}, {m:2} micro-batches: {longer[0]:g} → {longer[1]:g} units")

# %% [markdown]
# GPipe loses 3 units, however many micro-batches there are. 1F1B loses more and more, because rank $r$ has only $p-r$
# micro-batches on their way and soon runs out of other passes to do. To hide messages, a schedule has to keep more
# micro-batches, as ZB-H2 does.
#
# Now we do this with real messages. The next cell starts four ranks as four nodes, each with a link of 10 Mbit per
# second. With 800 images in a batch, an activation has 100 rows of 16 numbers of 8 bytes. That is 12.8 KB, which takes
# about 10 ms at that rate and so half as long as a forward pass. After a rest, however, an emulated link lets the first
# 8 KB through at once, so a single message may take only half of that. For comparison, `WaitingSends` behaves like the
# ranks' communicator, except that its `isend` waits until the receiver has taken the message. GPipe doesn't hang with
# it, because two neighbours never send to each other at the same time.


# %%
from course_utils.lessons.pipeline import hidden_text, timing_of


class WaitingSends:
    def __init__(self, comm):
        self.comm = comm

    def isend(self, array, dest, tag):
        from mpi4py import MPI

        self.comm.ssend(array, dest=dest, tag=tag)  # returns when it has been received
        return MPI.REQUEST_NULL  # nothing is left to wait for

    def __getattr__(self, name):  # everything else is the communicator's
        return getattr(self.comm, name)


def pace(action):  # how long a stage sleeps instead of computing
    return 2 * t if action.kind == "B" else t


def one_batch(comm, waiting):
    stages = own_stages(gpipe, comm.rank, digit_layers())
    ((images, loss),) = digit_batches(1, micro_batches=8, examples=800)
    comm.Barrier()
    messages = WaitingSends(comm) if waiting else comm
    run_schedule(messages, gpipe, stages, images, loss, pace)


# %%
ranks = course.start(4, link="10 Mbit/s")
ranks.load_torch()
isend, waiting = [], []
for _ in range(4):  # by turns; the first round only warms up
    isend.append(timing_of(ranks.run(one_batch, False).events, 4))
    waiting.append(timing_of(ranks.run(one_batch, True).events, 4))
if ranks.facts["network"] is None:
    print("Your system allows no emulated links, so these messages took hardly any time.")
ranks = course.start(4)  # without links again
ranks.load_torch()


def middle_run(runs):
    return sorted(runs, key=lambda run: run.idle_share)[len(runs) // 2]


title = hidden_text(isend[1:], waiting[1:])
pair = {
    "isend": middle_run(isend[1:]),
    "sends that wait": middle_run(waiting[1:]),
}
pictures.pipelines(pair, title, in_seconds=True)

# %% [markdown]
# In both runs the same messages travel over the same links. The difference is what the sender does in the meantime. If
# your system emulates links, the lower picture has gaps even between the forward passes of rank 0, because a rank can't
# begin its next pass before its last output has been taken. With `isend`, messages hide behind the passes of other
# micro-batches, and schedules such as DualPipe are built so that a rank has such a pass at hand.
#
# ## A pipeline that never runs empty
#
# A stage must take its optimizer step before its own first forward pass of the next batch. With GPipe and 1F1B, rank 0
# is the last to finish a batch, so the pipeline is empty by then. This is called a **flush**. The pipeline has to be
# filled again for each batch, and this is when ranks are idle. ZB-H2 avoids that with memory (section 1). What if
# stages don't wait for the end of a batch at all?
#
# **PipeDream** ([Narayanan and others, 2019](https://doi.org/10.1145/3341301.3359646)) does that. It runs 1F1B on and
# on, and each stage takes a step by itself after the backward pass of *every* micro-batch. But then the weights can
# change between the forward and the backward pass of the same micro-batch. Here is what that does to a gradient:

# %% tags=["nbval-check-output"]
w = torch.tensor(1.0, requires_grad=True)
v = torch.tensor(2.0, requires_grad=True)
out = v * w  # the forward pass; the derivative with respect to w is v, which is 2
v.data -= 0.5  # meanwhile, v takes a step for a different micro-batch
out.backward()
print(f"autograd says {w.grad.item()}")

# %% [markdown]
# The derivative is 2, but autograd took the new value of `v`. The result is not the derivative of anything that was
# computed. We had to use `.data` to make this mistake, because otherwise autograd would have noticed the change and
# raised an error. The cure is **weight stashing**. Each forward pass keeps the weights that it used, and the backward
# pass of the same micro-batch uses them again:
#
# ```
# F    kept[i] = weights
#      y[i] = stage(x[i], kept[i])
# B    y[i].backward(g)                 # gradient at the weights in kept[i]
#      weights = weights - rate * grad  # a new version
# ```
#
# The price is memory for several versions of the weights, and gradients that are out of date. Take two ranks. Their
# lists begin with
#
# ```
# rank 0    0F0 0F1 0B0 0F2 0B1 0F3 0B2 …
# rank 1    1F0 1B0 1F1 1B1 1F2 1B2 …
# ```
#
# Rank 1 does the backward pass of a micro-batch right after its forward pass, so one version is enough and its gradient
# is up to date. Rank 0 uses version 0 for `0F0` and `0F1`. After `0B0` it has version 1, which `0F2` uses. At this
# moment it keeps two versions, because it still needs version 0 for `0B1`. The step after `0B1` is then applied to
# version 1, although its gradient was computed at version 0. So the gradient is one step out of date.
#
# **Predict.** With four ranks, how many versions does rank 0 keep at most, and how many steps out of date are its
# gradients at most? Write down the beginning of its list first. As with every 1F1B, it starts with four forward passes.

# %%
course.predict("pipeline_stash", versions=..., steps_late=...)

# %%
from course_utils.lessons.pipeline import bubble_fraction, flush_text
from course_utils.lessons.pipeline import step_by_step, timing_of

ranks.run(step_by_step, 4)  # the first run of anything takes longer
run = ranks.run(step_by_step, 24, seconds=t)
rank_0 = run.results[0]
latest = max(rank_0.staleness)
course.measured("pipeline_stash", versions=rank_0.versions, steps_late=latest)
timing = timing_of(run.events, 4)
title = flush_text(timing, flushed=bubble_fraction(4, 8))
formula = (
    f"By the formula, {percent(bubble_fraction(4, 24))} for 24 micro-batches in a row, "
)
formula += f"and {percent(bubble_fraction(4, 8))} with a flush after every 8"
pictures.pipelines(
    {"24 micro-batches, 24 steps": timing}, title, formula, in_seconds=True
)

# %% [markdown]
# The pipeline is filled and emptied only once, so the longer the training, the less idle the ranks are. Rank $r$ keeps
# $p-r$ versions, one for each micro-batch that is on its way, and its gradients are up to $p-1-r$ steps out of date. In
# lesson 8, this was called staleness. What does it do to the training? Let's train for 200 steps in three ways. The
# first is one process without any delay, the second is PipeDream with stashing, and the third is PipeDream without it:

# %% tags=["figure:10_stashing"]
from course_utils.lessons.pipeline import stashing_text, step_by_step_alone

stream = 200  # micro-batches, each with a step of its own
losses = {"no delay": step_by_step_alone(stream)}
losses["stashed"] = ranks.run(step_by_step, stream).results[3].losses
losses["not stashed"] = ranks.run(step_by_step, stream, stash=False).results[3].losses
delayed = step_by_step_alone(stream, delay=3)  # in one process, with old weights
assert np.allclose(losses["stashed"], delayed, rtol=0, atol=1e-12)
mean = np.ones(20) / 20
smooth = {name: np.convolve(line, mean, "valid") for name, line in losses.items()}
course.draw.loss_curves(smooth, stashing_text(losses), x="step", y="loss (mean of 20)")

# %% [markdown]
# Each point is the mean of 20 steps and is drawn at the first of them. This is one run at one learning rate, so if the
# two lines with a delay cross, their order at the end says little. What can be said is in the assertion. With stashing,
# the losses are, up to rounding, those of one process that computes each stage's gradient at weights as old as that
# rank's. So PipeDream is SGD with a delay that differs from stage to stage. Without stashing, nothing of the kind can
# be said, however good the curve looks.
#
# Large language models are usually trained without such a delay today. Each stage takes one step per batch, so the
# pipeline computes what one process would, and there are no delays to worry about. The bubble is made small by other
# means. The first is a large number of micro-batches, which is limited by the batch size and, with GPipe, by memory.
# Interleaving comes next, and then schedules that split the backward pass in two.
#
# ## PyTorch's own schedules
#
# `torch.distributed.pipelining` comes with most of these schedules as classes: `ScheduleGPipe`, `Schedule1F1B`,
# `ScheduleInterleaved1F1B`, `ScheduleInterleavedZeroBubble` (which is ZB-H1 if each rank has one stage),
# `ScheduleZBVZeroBubble` and `ScheduleDualPipeV`. There is none for ZB-H2.
#
# We use four of them. torch gets the same stages and the same batch, cuts the batch into 8 micro-batches, and sends all
# messages itself. Then we compare two things, the gradients with those of one process, and the list of each rank with
# ours. torch keeps its lists in the same notation, and `published_order` reads them.

# %%
from course_utils.lessons.pipeline import interleaved_schedule, torch_pipeline

data = course.data.digits("float64")
cross_entropy = nn.functional.cross_entropy


def through_torch(name, schedule):
    rank = torch.distributed.get_rank()
    stages = own_stages(schedule, rank, digit_layers(), plain=True)
    pipeline = torch_pipeline.torch_pipeline(
        name, stages, stages=4 * len(stages), micro_batches=8, loss=cross_entropy
    )
    torch_pipeline.run_with_torch(pipeline, data.train_x[:64], data.train_y[:64])
    gradients = {}
    for number, stage in stages.items():
        gradients[number] = [weight.grad for weight in stage.parameters()]
    return gradients, torch_pipeline.published_order(pipeline)


# %%
alone = nn.Sequential(*digit_layers())
cross_entropy(alone(data.train_x[:64]), data.train_y[:64]).backward()
expected = [weight.grad for weight in alone.parameters()]

ours = {"GPipe": gpipe, "1F1B": one_f_one_b, "ZB-H1": zb_h1}
ours["interleaved"] = interleaved_schedule(4, 8, chunks=2)
for name, schedule in ours.items():
    results = ranks.run(through_torch, name, schedule, backend="gloo").results
    far = largest_difference([gradients for gradients, _ in results], expected)
    assert far < 1e-12
    print(f"{name}: gradients at most {far:.0e} from one process")
    lists = results[0][1]  # torch's list for each rank
    for rank in range(4):
        if lists[rank] != schedule[rank]:
            print(f"   torch, rank {rank}: ", *lists[rank][:6], "…")
            print(f"   ours, rank {rank}:  ", *schedule[rank][:6], "…")

# %% [markdown]
# The gradients agree, so torch computed the right thing. If a rank's list differs from ours, both are printed. With
# torch 2.13, this is rank 3 of 1F1B. The list that torch shows numbers the forward passes of that rank from 1, so it
# would do the backward pass of micro-batch 0 without a forward pass. What torch *does* is not affected, as the
# gradients prove. But if you draw or check a framework's schedule, compare it with what really ran.
#
# ## A puzzle
#
# All formulas so far assume stages that take equally long. In real models they don't. The first stage has the
# embedding, the last one has the loss, messages take time, and memory is short. Then no schedule from a book fits
# exactly, and you can look for a better one. Here is such a case, with 4 ranks and 8 micro-batches:

# %%
from course_utils.lessons.pipeline import PUZZLES, judge

puzzle = PUZZLES["uneven"]
print("seconds of F, by rank:       ", *puzzle.forward)
print("seconds of I, by rank:       ", *puzzle.input_gradient)
print("seconds of W, by rank:       ", *puzzle.weight_gradient)
print("micro-batches that fit:      ", *puzzle.memory)
print("a message uses the link for  ", puzzle.message, "s")
print("and then arrives after       ", puzzle.latency, "s")

# %%
print(judge(puzzle, one_f_one_b))
plan = puzzle.one_f_one_b()
title = f"1F1B on uneven stages: {percent(plan.idle_share)} idle"
pictures.pipelines(
    {"1F1B": plan}, title, "Simulated, with the puzzle's times", in_seconds=True
)

# %% [markdown]
# Where would you begin? In the exercise `beat_1f1b` you can hand in *any* schedule, and it will be validated and
# simulated like this one. A class can keep a leaderboard of its best schedules.
#
# While you search, it helps to know when you can stop. For that you need a number of seconds that no schedule can beat,
# which is called a **lower bound**. Here is the argument for a puzzle with one stage on each rank, in which F, I and W
# take 1 s each and messages are free. Rank 3 can't begin before the first micro-batch has passed the three ranks before
# it, which takes 3 s. After that it has 8 × 3 = 24 s of work, and it can do only one action at a time. So no schedule
# of this puzzle takes less than 27 s. ZB-H1 takes exactly 27 s. It can't be improved, and we know that without having
# looked at any other schedule. ZB-V is faster, but it cuts the stages, which the puzzle doesn't allow.
#
# **Predict.** Apply this argument to rank 2 of the puzzle above. There are two ranks before it, and each of their
# messages takes 0.1 + 0.2 s. How many seconds does every schedule need at least?

# %%
course.predict("pipeline_bound", within=1.01, seconds=...)

# %%
link = puzzle.message + puzzle.latency
before = puzzle.forward[0] + link + puzzle.forward[1] + link
work = 8 * (puzzle.forward[2] + puzzle.input_gradient[2] + puzzle.weight_gradient[2])
print(f"{before:.1f} s before + {work:.1f} s of work = {before + work:.1f} s")
course.answer("pipeline_bound", seconds=before + work)

# %% [markdown]
# You need not count all actions of a rank. Choose only some of them, add what must come before the first of them, and
# add what must still follow the last. Take rank 0, which has room for four micro-batches. All micro-batches are alike,
# so we may number them in the order in which they are done. Then the last F, `0F7`, has to wait for four I, four W and
# the three F of micro-batches 4 to 6, which are 4 × 1.3 + 4 × 1.1 + 3 × 1.1 = 12.9 s of work. None of these can begin
# before the first micro-batch has gone to the last rank and back, which takes 9.5 s. After them, micro-batch 7 must
# still go there and back, which takes 11.9 s. The sum of 34.3 s is a lower bound. A program can try many choices for
# each rank and take the largest sum:

# %%
from course_utils.lessons.pipeline import best_known, longest_stretches, stretches_text

stretches = longest_stretches(puzzle)
parts = "must come before", "the chosen actions", "must follow"
bars = {
    f"rank {rank}": dict(zip(parts, seconds, strict=True))
    for rank, seconds in enumerate(stretches)
}
title = stretches_text(stretches, best_known(puzzle).seconds)
course.draw.stacked_bars(bars, title, "For each rank, the choice with the largest sum")

# %% [markdown]
# The longest bar is the best bound that this argument gives. If it is shorter than the best known schedule, there is a
# gap, and you can't tell yet which of the two could be improved. The next section closes such a gap.
#
# ## A proof by cases
#
# How can you be sure that there is no better schedule, when there are far too many to try them all? Let's do it by hand
# for a small puzzle with two ranks and two micro-batches, free messages, and room for two micro-batches on each rank.
# Here is a schedule for it:

# %%
from course_utils.lessons.pipeline import PUZZLES, Puzzle, best_known, lower_bound

small = Puzzle(
    forward=(4, 1),  # seconds on rank 0, and on rank 1
    input_gradient=(3, 2),
    weight_gradient=(1, 3),
    latency=0,
    message=0,
    memory=(2, 2),
    micro_batches=2,
)
schedule = parse_schedule(["0F0 0F1 0I0 0I1 0W0 0W1", "1F0 1I0 1F1 1I1 1W0 1W1"])
plan = small.simulate(schedule)
title = (
    f"This schedule takes {plan.seconds:g} s, the lower bound is {lower_bound(small):g} s"
)
pictures.pipelines({"a small puzzle": plan}, title, in_seconds=True)

# %% [markdown]
# The bound of 16 s is just the work of rank 0, which is 2 × (4 + 3 + 1). Could a schedule take 16 s? Look at two
# actions of rank 1, the W of micro-batch 0 and the F of micro-batch 1. Each schedule does one of them before the other.
# As before, we number the micro-batches in the order in which they are done.
#
# - **`1W0` comes before `1F1`.** `0F0` takes 4 s, and then rank 1 does `1F0`, `1I0` and `1W0`, which take 1, 2 and 3 s.
#   So `1F1` can't begin before 10 s. After that, `1F1`, `1I1`, `0I1` and `0W1` have to follow one after the other, and
#   they take 1 + 2 + 3 + 1 = 7 s. That makes at least 17 s.
# - **`1F1` comes before `1W0`.** Rank 0 needs 8 s for its two forward passes, so `1F1` can't begin before 8 s. After
#   that, rank 1 has to do `1F1`, `1I1`, `1W0` and `1W1`, which take 1 + 2 + 3 + 3 = 9 s. That makes at least 17 s, too.
#
# There is no third case, so no schedule takes less than 17 s, and the one in the picture is among the best.
#
# A program can do the same for larger puzzles. It supposes that there is a schedule faster than the best known one, and
# records every ordering that this would force. When it can deduce nothing more, it picks two actions whose order is
# still undecided and follows up both cases. If every case ends with a total that is too long, the proof is complete. A
# second program, which uses nothing of the search, checks every step:

# %%
from course_utils.lessons.pipeline import check_proof, proofs_text, prove, proved_text

known = {name: best_known(each).seconds for name, each in PUZZLES.items()}
bounds = {}
for name, each in PUZZLES.items():
    proof = prove(each, known[name])  # None if it gave up
    if proof:
        check_proof(proof)  # raises an error if a step is wrong
        text = proved_text(known[name], lower_bound(each), len(proof), proof.took)
    else:
        text = proved_text(known[name], lower_bound(each))
    bounds[name] = known[name] if proof else lower_bound(each)
    print(f"{name:10}", text)

# %% tags=["figure:10_proofs"]
cases = {
    name: (bounds[name], {"1F1B": each.one_f_one_b().seconds, "best known": known[name]})
    for name, each in PUZZLES.items()
}
title = proofs_text(known, bounds)
course.draw.above_bound(
    cases, title, "Simulated; the bound is what every schedule is proved to need"
)

# %% [markdown]
# The method is that of [Carlier and Pinson, 1989](https://doi.org/10.1287/mnsc.35.2.164), who solved a scheduling
# problem with it that had been open for more than twenty years. It works for four ranks and eight micro-batches. If a
# larger puzzle has too many cases, the lower bound still tells you how much a better schedule could gain at most.

# %%
ranks.stop()

# %% [markdown]
# **To read**
#
# - Qi and others, 2023, [*Zero Bubble Pipeline Parallelism*](https://arxiv.org/abs/2401.10241): ZB-H1, ZB-H2, ZB-V, and
#   how to take an optimizer step without waiting for all ranks.
# - Narayanan and others, 2019, [*PipeDream*](https://doi.org/10.1145/3341301.3359646): weight stashing, and how to cut
#   a model into stages.
# - DeepSeek-AI, 2024, [*DeepSeek-V3 Technical Report*](https://arxiv.org/abs/2412.19437), section 3.2: DualPipe, and
#   the messages that it hides.
#
# The [exercises](../exercises/10_pipeline.ipynb) of lesson 10 end with the puzzle. [Lesson
# 11](11_hybrid_and_sharded.ipynb) combines pipelines with the other ways to divide the work.
