# The lesson on mixtures of experts. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if only some weights work?
#
# After this lesson you can **send** tokens to experts on other ranks and back, **keep** the experts equally busy, and
# **add up** the right gradients over the right ranks.
#
# *60 minutes · builds on [lesson 11](11_hybrid_and_sharded.ipynb) · 4 ranks*

# %%
from functools import partial

import numpy as np
import torch

import course_utils as course

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# So far every weight works for every token. Twice the weights is twice the work.
#
# In a **mixture of experts** a layer has several multilayer perceptrons, its **experts**. Each token goes to $k$ of
# them only; a small linear layer, the **gate**, chooses.
#
# **Predict.** Lesson 9's character model is *dense*: each block has one perceptron. Now each block gets 8 experts, with
# $k = 1$. How many times as many weights does the model have? And how many times as much work does a token cost?

# %%
course.predict(
    "experts_numbers", within=1.25, weights=..., work=...
)  # times the dense model's

# %%
from course_utils.lessons.experts import character_experts, flops_per_token
from course_utils.vgg import parameter_count

dense, sparse = character_experts(0), character_experts(8)
weights = parameter_count(sparse) / parameter_count(dense)
work = flops_per_token(sparse) / flops_per_token(dense)
course.answer("experts_numbers", weights=round(weights, 2), work=round(work, 2))
for name, model in {"dense": dense, "8 experts": sparse}.items():
    cost = f"{flops_per_token(model):,} operations for a token"
    print(f"{name}: {parameter_count(model):,} weights, {cost}")

# %% [markdown]
# (Only the perceptrons are there 8 times, not attention: so the model has less than 8 times the weights. The little
# more work is the gate's.)
#
# ## The gate
#
# The gate's scores become **shares** by a softmax over all experts. The expert with the largest share wins; with $k =
# 2$, the two largest win. The share $p_i$ is also the *weight* of the answer $E_i(x)$:
#
# $$y = \sum_{i \in \text{chosen}} p_i\, E_i(x)$$
#
# (Shazeer and others, 2017, took several experts for each token; Switch Transformers, Fedus and others, 2021, take
# one.)

# %% tags=["nbval-check-output"]
from course_utils.lessons.experts import route

scores = torch.tensor([[1.0, 3.0, 2.5, 0.0], [2.0, -1.0, 0.0, 2.2]], requires_grad=True)
print(
    "shares:", [[round(share, 2) for share in row] for row in scores.softmax(1).tolist()]
)
for k in (1, 2):
    experts, weights = route(scores, k)
    print(
        f"k = {k}: experts {experts.tolist()}, weights",
        [[round(w, 2) for w in row] for row in weights.tolist()],
    )
route(scores, 1)[1].sum().backward()
print("the gradient of token 0's scores:", [round(g, 2) for g in scores.grad[0].tolist()])

# %% [markdown]
# The choice itself has no gradient: nobody can choose "a little more" of expert 1. But its weight has. If the answer
# helped, the share of the chosen expert grows, and that of all others falls.
#
# Why not scale the weights up to a sum of 1? With $k = 1$ every weight would be 1, and the gate would never learn.
#
# [Exercise](../exercises/16_experts.ipynb): `route`.

# %% [markdown]
# ## There and back
#
# Many experts do not fit on one rank. **Expert parallelism** puts them on different ranks; each still reads its own
# part of the batch. So tokens travel:
#
# 1. **dispatch**: each rank sends its tokens to the ranks of their experts;
# 2. every expert computes what came;
# 3. **combine**: the answers go back, and are added up with their weights.
#
# Dispatch and combine are each an **all-to-all**: every rank has something else for every other rank. On the way
# nothing is summed.

# %% [markdown]
# A **row** is one token's vector on its way to one expert; with $k = 2$ a token makes two. The gate decides, anew at
# each step, how many rows go to each rank. So a small all-to-all of *counts* comes first. Then `dist.all_to_all_single`
# with unequal parts brings the rows. Backward, the gradients of answers travel as in dispatch, and the gradients of
# tokens as in combine.
#
# **Predict.** 4 ranks, each with 64 tokens of 32 numbers in float64, $k = 2$, all experts equally busy. How many bytes
# does a rank send to *other* ranks in one direction?

# %%
course.predict("experts_bytes", within=1.1, one_direction=...)

# %%
from course_utils.lessons.experts import balanced_bytes, counted_bytes, rows_by_messages
from course_utils.lessons.experts import sent_text

tokens, width, k = 64, 32, 2
formula = balanced_bytes(tokens, k, width, itemsize=8, ranks=4)
course.answer("experts_bytes", one_direction=formula)
run = ranks.run(rows_by_messages, tokens, width, 4, k, backend="gloo")
there = [counted_bytes(sent, rank, width, 8) for rank, sent in enumerate(run.results)]
back = [sum(run.results[s][r] for s in range(4) if s != r) * width * 8 for r in range(4)]
for rank in range(4):
    sends = [e.bytes for e in run.events if e.rank == rank and e.kind == "send"]
    assert sum(sends) == there[rank] + back[rank]  # counted from the messages
print("rows from each rank to each rank:", run.results)
print(sent_text(there, formula))

# %% [markdown]
# The formula: $k \cdot \text{tokens} \cdot \text{width} \cdot \frac{P-1}{P} \cdot \text{bytes of a number}$, in each
# direction. A real gate is never quite balanced; then the counts give the bytes exactly.
#
# Here we wrote the all-to-all as plain messages, so that they can be counted and seen:

# %% tags=["figure:16_messages"]
for _ in range(2):  # the first run finds the connections
    run = ranks.run(rows_by_messages, tokens, width, 4, k, backend="gloo")
run.timeline(f"There and back: {run.messages} messages, {sent_text(there, formula)}")

# %% [markdown]
# $P(P-1)$ messages each way. In an all-reduce by a ring a rank only ever sends to one neighbour; here it sends to
# *every* other rank.
#
# Is it still the same layer? We compare it with one process that has all experts, in float64. In the last case all
# tokens go to one expert:

# %%
from course_utils.lessons.experts import one_layer

cases = {
    "4 experts, k = 1": {"number": 4, "k": 1},
    "8 experts, k = 2": {"number": 8, "k": 2},
    "all tokens to one expert": {"number": 4, "k": 1, "crowd": 1.0},
}
for name, settings in cases.items():
    found = ranks.run(
        partial(one_layer, tokens, width, **settings), backend="gloo"
    ).results
    worst = max(result.error for result in found)
    assert worst <= 1e-10
    rows = [result.rows for result in found]
    print(f"{name}: rows on the ranks {rows}, at most {worst:.0e} from one process")

# %% [markdown]
# Exercises: `dispatch`, `combine`.
#
# ## A crowded expert
#
# Nothing makes the gate fair. Say that 85 % of all tokens want expert 2, on rank 2, and the others any of the four. (We
# push the gate by hand.) The layer ends when the *last* answer is back.
#
# **Predict.** For what share of rank 2's computing time do the others wait, in percent, on average?

# %%
course.predict("experts_crowd", within=1.2, percent=...)

# %% tags=["figure:16_crowd"]
from course_utils.lessons.experts import busy_seconds, skew_text, waiting_share
from course_utils.measuring import is_busy, unless_busy

crowded = partial(one_layer, 512, 128, 4, 1, crowd=0.85, dtype=torch.float32)
runs = [ranks.run(crowded, backend="gloo") for _ in range(5)][2:]
# the first two find memory and connections; do the others scatter too much?
working = [busy_seconds(run.events, ranks=4) for run in runs]
waits = [waiting_share(seconds) for seconds in working]
busy = is_busy([waits])
course.measured("experts_crowd", busy=busy, percent=round(100 * np.median(waits)))
rows = [result.rows for result in runs[-1].results]
runs[-1].timeline(unless_busy(busy, skew_text(rows, working[-1])))

# %% [markdown]
# Three ranks wait for one: they stand in *combine*, an all-to-all that needs rank 2. There are four ranks, and hardly
# more than one is at work. And rank 2 needs memory for all these rows.
#
# ## Capacity
#
# The first remedy is blunt. An expert has a **capacity**: from each rank it takes at most
#
# $$\left\lceil \text{factor} \cdot \frac{k \cdot \text{tokens}}{\text{experts}} \right\rceil$$
#
# rows. (Here `tokens` are those of one rank.)

# %% [markdown]
# Rows above the capacity are *dropped*: no expert answers, and the token passes the layer unchanged, for the block adds
# its input to what comes back.
#
# **Predict.** Again 85 % of tokens want expert 2, and the others any of the four; $k = 1$, and the factor is 1.25. What
# percentage of tokens is dropped?

# %%
course.predict("experts_dropped", within=1.1, percent=...)

# %% tags=["figure:16_capacity"]
from course_utils.lessons.experts import capacity_text

factors, dropped, most = [0.5, 1.0, 1.25, 2.0, 4.0], [], []
for factor in factors:
    limited = partial(one_layer, 512, 16, 4, 1, 0.85, factor)
    found = ranks.run(limited, backend="gloo").results
    assert max(result.error for result in found) <= 1e-10
    dropped.append(100 * np.mean([result.dropped for result in found]))
    most.append(100 * max(result.rows for result in found) / 512)
course.measured("experts_dropped", percent=round(dropped[2]))
lines = {"tokens dropped": dropped, "the busiest rank's rows, of its fair part": most}
look = {"across": "capacity factor", "up": "percent"}
course.draw.over_numbers(factors, lines, capacity_text(factors, dropped, most), **look)

# %% [markdown]
# A capacity bounds the waiting, and pays with tokens. Papers take factors from 1.0 to 2.0. A capacity has one more use:
# every block of rows can have the same size, filled or not, so no counts need to travel.
#
# A fair gate would be better. Exercise: `capacity`.
#
# ## Balance
#
# **With a loss.** Switch Transformers add a **balancing loss** (eq. 4), with a factor of 0.01:
#
# $$N \sum_{i=1}^{N} f_i\, P_i$$
#
# $N$ is the number of experts, $f_i$ the part of all rows that expert $i$ got, and $P_i$ its share $p_i$, averaged over
# the tokens.

# %% [markdown]
# $f_i$ is counted and has no gradient; $P_i$ has one. So the busiest expert's shares are pushed down most. The price:
# this loss pulls at the gate *against* what the text asks for.
#
# **Without a loss** (Wang and others 2024). Each expert has a bias $b_i$. The gate chooses the experts with the largest
# $p_i + b_i$; the weight is still $p_i$. After each step, an expert with fewer rows than the mean gets a little more
# bias, and an expert with more rows a little less.

# %%
from course_utils.lessons.experts import balancing_loss, next_bias

load = torch.tensor([70, 10, 10, 10])  # rows of four experts
shares = torch.tensor([[0.7, 0.1, 0.1, 0.1]])
print("balancing loss:", round(balancing_loss(shares, load).item(), 2))
print(
    "if all were equal:", balancing_loss(torch.full((1, 4), 0.25), torch.ones(4)).item()
)
biases = next_bias(torch.zeros(4), load, rate=0.01)
print("the next biases:", [round(bias, 2) for bias in biases.tolist()])

# %% [markdown]
# Does it work? On four ranks, we train small versions of lesson 9's character model on Python's help text. One is
# dense: its perceptron is as large as an expert. Three have four experts and $k = 1$, so each token takes as much work
# (but for the gate). Of these, one balances by nothing, one by a loss, and one by a bias.
#
# **Predict.** Whose busiest expert is least crowded in the end?

# %%
choices = {"a": "nothing", "b": "loss", "c": "bias"}
course.predict("experts_balanced", answer=..., choices=choices)

# %%
from course_utils.lessons.experts import Recipe, train_experts
from course_utils.lessons.model_parallel import character_text, text_batches

steps = 40
texts = character_text()
batches = text_batches(texts.training, 64, 16, steps)
(held_out,) = text_batches(texts.held_out, 512, 16, 1, seed=1)


def trained(number, balance, sizes):
    build, recipe = partial(character_experts, number), Recipe(balance=balance)
    given = (sizes, build, batches, recipe, held_out)
    return ranks.run(train_experts, *given, backend="gloo").results[0]


found = {"dense": trained(0, "nothing", {"data": 4, "expert": 1})}  # 4 copies
for balance in ("nothing", "loss", "bias"):
    found[balance] = trained(4, balance, {"data": 1, "expert": 4})  # one on each rank

# %% tags=["figure:16_balance"]
from course_utils.lessons.experts import balance_text, most_balanced

lines = {name: run.imbalances for name, run in found.items() if name != "dense"}
letters = {name: letter for letter, name in choices.items()}
course.measured("experts_balanced", answer=letters[most_balanced(lines)])
look = {"y": "busiest expert, times its fair part"}
course.draw.loss_curves(lines, balance_text(lines), **look)

# %% tags=["figure:16_losses"]
from course_utils.lessons.experts import better_text

ends = {name: run.held_out for name, run in found.items()}
for name, end in ends.items():
    print(f"{name}: loss {end:.3f} on text that it was not trained on")
title = better_text(ends.pop("dense"), ends)
course.draw.loss_curves({name: run.losses for name, run in found.items()}, title)

# %% [markdown]
# Four times the perceptrons for the work of one. (These models are tiny, and train for seconds: a percent more or less
# is chance, and more weights hardly help yet. In large trainings they help: Switch's authors reach the quality of a
# dense model up to seven times as fast.)
#
# An expert that gets tokens learns, and so gets more of them: without balance one expert may stay crowded.
#
# ## Experts × data
#
# With more ranks than experts, the set of experts is copied. The ranks are a mesh (lesson 11): along its axis `expert`
# they share one set, and along its axis `data` they hold the same experts.

# %% [markdown]
# Take 2 × 2 ranks, all with other tokens. The loss is the mean over all these tokens, but each rank goes backward from
# the mean of *its* tokens. So the gradients of attention, norms and gate are summed over all 4 ranks and divided by 4,
# as in lesson 6.
#
# And an expert? The backward pass of dispatch already brought it the gradients of both ranks that share it.
#
# **Predict.** Over how many ranks must an expert's gradient still be summed? By how many is it divided?

# %%
course.predict("experts_gradients", sum_over=..., divide_by=...)

# %%
from course_utils.lessons.experts import largest_difference, summing, train_in_one

square, few = {"data": 2, "expert": 2}, batches[:6]
build, recipe = partial(character_experts, 4), Recipe()
alone = {"ranks": 1, "backend": "gloo"}  # one process
serial = ranks.run(train_in_one, build, few, recipe, **alone).results[0]
ways = {(over, by): summing(over == 4, by == 4) for over in (4, 2) for by in (4, 2)}
far, curves = {}, {}  # how far the weights end from those of one process; losses
for (over, by), way in ways.items():
    runs = ranks.run(
        train_experts, square, build, few, recipe, None, way, backend="gloo"
    ).results
    name = f"sum over {over}, divide by {by}"
    far[name], curves[name] = largest_difference(runs, serial, square, 4), runs[0].losses
    if far[name] <= 1e-10:
        course.measured("experts_gradients", sum_over=over, divide_by=by)

# %% tags=["figure:16_gradients"]
from course_utils.lessons.experts import gradients_text

for name, gap in far.items():
    print(f"{name}: at most {gap:.0e} from one process, after {len(few)} steps")
course.draw.loss_curves({"one process": serial.losses, **curves}, gradients_text(far))

# %% [markdown]
# All four ways *learn*, and their curves lie close together: no loss shows the mistake. Summed over all 4 ranks, the
# gradients of *different* experts are mixed, and all experts grow alike. Divided by 2, the experts' gradients are twice
# too large. Plain SGD would then take steps twice too long for the experts. This run uses Adam, which divides a
# gradient by its own typical size, so its steps hardly change, and the mistake is harder to see.
#
# So compare with one process, in float64, step by step. Exercise: `expert_gradients`.

# %% [markdown]
# ## Two nodes
#
# Ranks 0 and 1 are on one node, 2 and 3 on the other; between the nodes is a slow link. *Flat*, each rank sends a
# message to each rank of the other node. On *two levels* (lesson 5), rank 0 first collects what its node has for rank
# 2, and rank 1 what its node has for rank 3. Then each of the two sends one message.
#
# **Predict.** How many messages does a rank send to the other node, flat and on two levels? And how many times as many
# bytes does it send there on two levels?

# %%
course.predict("experts_levels", flat=..., two_levels=..., bytes=...)

# %%
from course_utils.lessons.experts import all_to_all_by_messages, two_levels

ranks = course.start(4, link="100 Mbit/s", latency="3 ms", ranks_per_node=2)
ranks.load_torch()


# %%
def one_exchange(way):
    blocks = torch.ones(4, 32, 64)  # 32 rows of 64 numbers for each rank
    if way == "flat":
        return two_levels.flat_all_to_all(blocks, all_to_all_by_messages)
    return two_levels.two_level_all_to_all(
        blocks, two_levels.levels(2), all_to_all_by_messages
    )


runs = {
    way: ranks.run(one_exchange, way, backend="gloo") for way in ("flat", "two levels")
}
counted = {way: two_levels.crossing(run.events, node_size=2) for way, run in runs.items()}
flat, levels = counted.values()
course.measured(
    "experts_levels", flat=flat[0], two_levels=levels[0], bytes=levels[1] / flat[1]
)

# %%
from course_utils.lessons.experts import levels_text

assert all(torch.equal(a, b) for a, b in zip(*(run.results for run in runs.values())))
course.draw.timelines(*runs.values(), titles=list(runs), title=levels_text(counted))

# %% [markdown]
# The same bytes travel in half as many messages; with 8 GPUs in each node, in an eighth. Each message costs its latency
# (lesson 4). (Times say little here: all four ranks share this machine.) Our function wants blocks of equal size: a
# capacity makes them so.

# %% [markdown]
# ## What you take with you
#
# - You can **send** tokens to experts and back: two all-to-alls forward, two backward.
# - You can **keep** experts busy: capacity drops, a loss pulls, a bias only chooses.
# - You can **add up** gradients: an expert's over the ranks that hold it, divided by the number of *all* ranks.
#
# Next: [the exercises](../exercises/16_experts.ipynb).
#
# **To read**
#
# - Shazeer and others (2017), [*Outrageously Large Neural Networks*](https://arxiv.org/abs/1701.06538), introduced the
#   layer of experts with a learned router.
# - Fedus and others (2021), [*Switch Transformers*](https://arxiv.org/abs/2101.03961), sends each token to a single
#   expert.
# - Wang and others (2024), [*Auxiliary-Loss-Free Load Balancing Strategy for
#   Mixture-of-Experts*](https://arxiv.org/abs/2408.15664), balances with a bias instead of a loss.

# %%
ranks.stop()
