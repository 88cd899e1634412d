# The optional second notebook of lesson 16. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: what if only some weights are used?
#
# The gate and the two all-to-alls of the first page are nearly the same in all mixtures of experts. Much of the rest
# has changed since 2022. The mixtures of today have many small experts, drop no tokens, and hide most of their messages
# behind computing. In this notebook you build these parts one by one and run them on four ranks.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, because each of them stands alone. If a section complains that its ranks were stopped, run
# the first code cell again.
#
# 1. *Does it learn better?*: a dense model and mixtures of equal work
# 2. *A limit for each expert*: what a capacity drops, and what it saves
# 3. *Many small experts, and one for all*: a sigmoid gate and a shared expert
# 4. *No token is dropped*: one matrix multiplication for groups of unequal size
# 5. *Two nodes*: half as many messages for the same bytes
# 6. *Each token goes to few nodes*: routing that respects the network
# 7. *Computing while tokens travel*: two halves of a batch
#
# *60 minutes · optional, after [lesson 16](16_experts.ipynb) · 4 ranks, about 9 minutes for each section*

# %%
import math
import time
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import grouped_mm, one_hot

import course_utils as course
from course_utils.lessons.experts import Recipe, better_text, character_experts
from course_utils.lessons.experts import flops_per_token, train_experts
from course_utils.lessons.model_parallel import character_text, text_batches

ranks = course.start(4)
ranks.load_torch()

steps = 60
texts = character_text()
batches = text_batches(texts.training, 64, 16, steps)
(held_out,) = text_batches(texts.held_out, 512, 16, 1, seed=1)  # not used for training


def trained(sizes, build, recipe):
    given = sizes, build, batches, recipe, held_out
    return ranks.run(train_experts, *given, backend="gloo").results[0]


# %% [markdown]
# ## Does it learn better?
#
# On the first page you have seen how balancing spreads the tokens. What does it do to the loss, and is a mixture better
# than a dense model that does the same work per token? In the next cell, the dense model has one MLP in each block, as
# large as an expert, and all four ranks have a copy of it. The mixtures have eight experts, two on each rank, and $k =
# 1$. All models see the same batches. At the end we compare their losses on 512 pieces of text that were not used for
# training.
#
# Before you run it, think about what to expect. The mixtures have 4.7 times as many weights, but each expert sees only
# about an eighth of the tokens, and the runs take only 60 steps.

# %% tags=["figure:16_losses"]
build = partial(character_experts, 8)
found = {
    "dense": trained({"data": 4, "expert": 1}, partial(character_experts, 0), Recipe())
}
balances = {"no balancing": "nothing", "balancing loss": "loss", "balancing bias": "bias"}
for name, balance in balances.items():
    found[name] = trained({"data": 1, "expert": 4}, build, Recipe(balance=balance))
ends = {name: run.held_out for name, run in found.items()}
for name, end in ends.items():
    print(f"{name}: loss {end:.3f} on new text")
losses = {name: run.losses for name, run in found.items()}
course.draw.loss_curves(losses, better_text(ends), y="training loss")

# %% [markdown]
# The title compares the dense model with the best mixture, on new text. It calls differences below 2% a tie, because
# with such tiny models and training runs of seconds they may well be chance. Experts need many tokens each before they
# pay off. With large models and long training runs they do. The authors of Switch Transformers report that their
# mixture reached the quality of a dense model with the same work per token up to seven times as fast.
#
# ## A limit for each expert
#
# An expert with a **capacity** accepts from each rank at most
#
# $$\left\lceil \text{factor} \cdot \frac{k \cdot \text{tokens}}{\text{experts}} \right\rceil$$
#
# tokens, where *tokens* are those of one rank. With a factor of 1 it accepts exactly its fair share. The rest of the
# tokens that want it are dropped, which means that they get no answer from this expert. The block adds its input to
# what comes back from the layer, so a token that was dropped by all its experts passes through unchanged.
#
# Suppose that 40% of all tokens want expert 2, and the others are spread evenly over all four experts, with $k = 1$.
# Then 40% + 60%/4 = 55% of the tokens want expert 2. With a factor of 1.25 it accepts 1.25 × 25% = 31.25% of all
# tokens, so 23.75% are dropped. The other experts are wanted by 15% each, and accept them all.
#
# **Predict.** Now 85% of the tokens want expert 2, as on the first page. What percentage of all tokens is dropped with
# a factor of 1.25?

# %%
course.predict("experts_dropped", within=1.1, percent=...)

# %% tags=["figure:16_capacity"]
from course_utils.lessons.experts import capacity_text, one_layer

factors, dropped, most = [0.5, 1.0, 1.25, 2.0, 4.0], [], []
for factor in factors:
    limited = partial(one_layer, 512, 16, 4, 1, 0.85, factor)
    results = ranks.run(limited, backend="gloo").results
    assert max(result.error for result in results) <= 1e-10  # as in one process
    dropped.append(100 * np.mean([result.dropped for result in results]))
    most.append(100 * max(result.rows for result in results) / 512)
course.measured("experts_dropped", percent=round(dropped[2], 1))
lines = {"tokens dropped": dropped, "tokens of the busiest rank ÷ fair share": most}
title = capacity_text(factors, dropped, most)
course.draw.over_numbers(factors, lines, title, across="capacity factor", up="percent")

# %% [markdown]
# By calculation, 88.75% − 31.25% = 57.5% are dropped. With a factor of 4 nothing is dropped, but nothing is limited
# either, because an expert can then accept all tokens. A capacity bounds the wait, at the cost of dropped tokens.
#
# It has one more use. If every expert gets a block of the same size, filled or not, no counts have to be sent, and all
# experts can be computed in a single batched multiplication. GShard (2020) and Switch Transformers (2021) were written
# for TPUs, whose compiler wants to know all shapes in advance. Section 4 shows how to do without.
#
# ## Many small experts, and one for all
#
# DeepSeekMoE (2024) cuts each expert into several smaller ones and lets each token go through more of them. The work
# stays the same, but there are many more combinations to choose from. With eight experts and $k = 2$ a token can go to
# one of
#
# $$\binom{8}{2} = \frac{8 \cdot 7}{2} = 28$$
#
# pairs. If each expert is cut into two halves, there are 16 small experts, and with $k = 4$ a token has
# $\binom{16}{4}$ = 1,820 combinations.
#
# **Predict.** Each of the eight experts is cut into *four* small ones. What does $k$ have to be for the same work, and
# how many combinations are there? (`math.comb(n, k)` calculates $\binom{n}{k}$.)

# %%
course.predict("experts_combinations", within=1.05, k=..., combinations=...)

# %%
course.answer("experts_combinations", k=8, combinations=math.comb(32, 8))

# %% [markdown]
# A second change is the **shared expert**, which every token goes through. DeepSpeed-MoE (Rajbhandari and others, 2022)
# had its prototype. Things that all tokens need can be learned there, so the other experts don't each have to learn
# them again. The gate has no say in it, and the tokens don't have to travel, because each rank keeps a copy.
#
# The third change is the gate of DeepSeek-V3. Instead of a softmax over all experts, it puts each score $s_i$ through a
# **sigmoid**, $\frac{1}{1+e^{-s_i}}$, which lies between 0 and 1, so an expert's value doesn't depend on the scores of
# the others. The weights are the values of the $k$ chosen experts, divided by their sum. The bias of the first page is
# added for the choice only.


# %% tags=["nbval-check-output"]
def sigmoid_gate(scores, k, bias=0.0):
    values = scores.sigmoid()
    order = (values + bias).sort(dim=1, descending=True, stable=True).indices
    chosen = order[:, :k]
    weights = values.gather(1, chosen)
    return chosen, weights / weights.sum(dim=1, keepdim=True)


def softmax_gate(scores, k, bias=0.0):
    shares = scores.softmax(dim=1)
    order = (shares + bias).sort(dim=1, descending=True, stable=True).indices
    chosen = order[:, :k]
    return chosen, shares.gather(1, chosen)  # not divided by their sum


for gate in (softmax_gate, sigmoid_gate):
    for k in (1, 2):
        scores = torch.tensor([[1.0, 3.0, 2.5, 0.0]], requires_grad=True)
        experts, weights = gate(scores, k)
        weights[0, 0].backward()  # how does the largest weight depend on the scores?
        rounded = [round(weight, 2) for weight in weights[0].tolist()]
        slopes = [round(slope + 0.0, 2) for slope in scores.grad[0].tolist()]
        print(f"{gate.__name__}, k = {k}: weights {rounded}, gradient {slopes}")

# %% [markdown]
# With $k = 1$ the normalised weight is 1 and its gradient is zero, as the first page said, so this gate needs $k \geq
# 2$. With $k = 2$, the gradient of the sigmoid gate reaches only the scores of the two chosen experts. In the softmax,
# it reaches those of all experts.
#
# Now we build a mixture with all three changes. It has 32 small experts with 32 hidden units each and a shared expert
# of the same size. Each token goes through 7 of the 32 and through the shared one, so it uses 8 × 32 = 256 hidden
# units. The mixture that we compare it with has eight experts with 128 hidden units, and $k = 2$, which makes 256 as
# well. Altogether the small experts have 33 × 32 = 1,056 hidden units and the large ones 8 × 128 = 1,024, so the
# weights are nearly as many, too. Both mixtures are balanced with the bias. First we check that four ranks do the same
# as one process, in float64, and count weights and operations:

# %%
from course_utils.lessons.experts import largest_difference, train_in_one
from course_utils.vgg import parameter_count

large = partial(character_experts, 8, k=2)
small = partial(character_experts, 32, k=7, hidden=32, shared=True, choose=sigmoid_gate)
recipe, sizes, few = Recipe(balance="bias"), {"data": 1, "expert": 4}, batches[:6]
one = ranks.run(train_in_one, small, few, recipe, ranks=1, backend="gloo").results[0]
four = ranks.run(train_experts, sizes, small, few, recipe, backend="gloo").results
gap = largest_difference(four, one, sizes, number=32)
assert gap <= 1e-10
print(f"after {len(few)} steps at most {gap:.0e} from one process")
for name, build in {"large experts": large, "small experts": small}.items():
    weights, work = parameter_count(build()), flops_per_token(build())
    print(f"{name}: {weights:,} weights, {work:,} operations per token")

# %%
found = {
    "large experts": trained(sizes, large, recipe),
    "small experts": trained(sizes, small, recipe),
}
ends = {name: run.held_out for name, run in found.items()}
for name, run in found.items():
    crowded = np.median(run.imbalances[-10:])
    print(
        f"{name}: loss {run.held_out:.3f}, busiest expert {crowded:.1f} times its fair share"
    )
losses = {name: run.losses for name, run in found.items()}
course.draw.loss_curves(losses, better_text(ends), y="training loss")

# %% [markdown]
# The small experts need a few more operations, because the gate has 32 scores to compute instead of 8. As before, a run
# of 60 steps with a tiny model can't tell you which design is better for a large one. The authors of DeepSeekMoE report
# that their mixture with 2 billion weights did as well as a conventional one with 2.9 billion.
#
# What about the load? Each rank has two large experts or eight small ones. Suppose that of a rank's two experts one has
# 1.6 times its fair share of the tokens, and the other 0.6 times. Then the rank has (1.6 + 0.6) ÷ 2 = 1.1 times its own
# fair share, because the load of a rank is the mean of the loads of its experts. The next picture shows both for the
# last step of the two training runs:

# %%
from course_utils.lessons.experts import load_text, pictures

loads = {name: run.loads[-1] for name, run in found.items()}
pictures.expert_loads(loads, 4, *load_text(loads, ranks=4))

# %% [markdown]
# A mean is never larger than the largest of its parts, so a rank is never more crowded than its most crowded expert.
# The more experts a rank has, the better the crowded ones and the idle ones can make up for each other. All ranks wait
# for the busiest *rank*, so this is one more reason for small experts.
#
# ## No token is dropped
#
# A mixture that drops no token is called **dropless**. The messages are no problem, because the all-to-all of the first
# page already takes any number of tokens for each rank. What about computing? A rank with several experts has a group
# of rows for each of them, and the groups have different sizes. There are three ways to multiply them by their experts'
# matrices:
#
# - a loop with one multiplication for each expert, which on a GPU means many small kernels;
# - one *batched* multiplication, for which every group has to be padded with zeros to the size of the largest group;
# - a **grouped** multiplication, a single call that is told where each group ends.
#
# Suppose four experts have groups of 10, 30, 0 and 20 rows. The loop and the grouped version compute 60 rows. With
# padding there are 4 × 30 = 120, so half of the work is wasted.
#
# **Predict.** A rank has four experts with groups of 5, 64, 12 and 15 rows. How many rows are computed with padding,
# and how many without?

# %%
course.predict("experts_padding", padded=..., grouped=...)


# %%
def with_loop(rows, sizes, matrices):
    groups = rows.split(sizes)
    return torch.cat([group @ matrix for group, matrix in zip(groups, matrices)])


def with_padding(rows, sizes, matrices):
    padded = nn.utils.rnn.pad_sequence(rows.split(sizes), batch_first=True)
    products = torch.bmm(padded, matrices)
    return torch.cat([part[:size] for part, size in zip(products, sizes)])


def with_groups(rows, sizes, matrices):
    ends = torch.tensor(sizes).cumsum(0).to(torch.int32)  # where each group ends
    return grouped_mm(rows, matrices, offs=ends)


# %% tags=["nbval-check-output"]
group_sizes = [5, 64, 12, 15]
torch.manual_seed(0)
rows = torch.randn(sum(group_sizes), 32)
upstream = torch.randn(sum(group_sizes), 128)  # a gradient that arrives from behind
results = {}
for multiply in (with_loop, with_padding, with_groups):
    matrices = torch.randn(4, 32, 128, generator=torch.Generator().manual_seed(1))
    matrices.requires_grad_()
    product = multiply(rows, group_sizes, matrices)
    product.backward(upstream)
    results[multiply.__name__] = product.detach(), matrices.grad
for name, (product, gradient) in results.items():
    torch.testing.assert_close(product, results["with_loop"][0])
    torch.testing.assert_close(gradient, results["with_loop"][1])
    print(f"{name}: the same products and gradients as with the loop")
course.answer("experts_padding", padded=4 * max(group_sizes), grouped=sum(group_sizes))

# %% [markdown]
# `grouped_mm` is PyTorch's function for this, and it also has a gradient. Its documentation promises it for `bfloat16`
# on NVIDIA GPUs from the A100 on; the CPU version that you have just used also takes `float32`. On a GPU it starts a
# single kernel for all experts, if PyTorch has one for this GPU and the numbers are `bfloat16`. Otherwise it falls back
# to a loop. MegaBlocks (2022) showed how to train large mixtures efficiently without dropping a token, with kernels for
# block-sparse matrices. In Megatron-Core, dropless is now the default, and you have to ask for a capacity.
# DeepSeek-V3's authors write that it "does not drop any tokens during training".
#
# Now we put the whole layer together and run it on four ranks, with 16 small experts, four on each rank, and $k = 4$.
# Before any token can travel, every rank has to know how many rows will arrive, from whom, and for which of its
# experts. So the *sizes* go first, in an all-to-all of their own. What does that cost? A rank with 512 tokens of 32
# numbers sends its sizes as one integer of 8 bytes for each of the 16 experts, which makes 128 bytes. Its tokens go to
# four experts each. With 8 bytes per number, they are 512 × 4 rows of 32 × 8 bytes, or 524,288 bytes. (Both numbers
# include what the rank gives to its own experts.) The sizes are less than a thousandth of that.
#
# **Predict.** In DeepSeek-V3, a layer has 256 experts, $k$ is 8, and a token is a vector of 7,168 numbers. Suppose that
# a GPU has 4,096 tokens, with 1 byte per number for the dispatch, and that sizes are integers of 8 bytes. How many
# bytes are the sizes, and how many MB are the rows of tokens?

# %%
course.predict("experts_sizes", within=1.05, sizes_bytes=..., rows_megabytes=...)

# %%
course.answer("experts_sizes", sizes_bytes=256 * 8, rows_megabytes=4096 * 8 * 7168 / 1e6)


# %%
def dropless_layer(tokens, chosen, weights, matrices, multiply):
    """Return the answers for this rank's tokens, and how many rows each of its experts got.

    `chosen` and `weights` are the gate's, [token, choice]. `matrices` has one for each of
    this rank's experts, and `multiply` takes rows sorted by expert, the sizes of the
    groups, and the matrices.
    """
    P, here, k = dist.get_world_size(), len(matrices), chosen.shape[1]
    order = chosen.flatten().argsort(stable=True)  # by expert, and so by rank
    leaving = torch.bincount(chosen.flatten(), minlength=P * here)
    arriving = torch.empty_like(leaving)
    dist.all_to_all_single(arriving, leaving)  # the sizes go first
    arriving = arriving.view(P, here)  # [from this rank, for this expert of mine]
    sent = leaving.view(P, here).sum(dim=1).tolist()
    received = arriving.sum(dim=1).tolist()

    rows = tokens.new_empty(sum(received), tokens.shape[1])
    dist.all_to_all_single(rows, tokens[order // k], received, sent)  # unequal blocks
    expert = torch.arange(here).repeat(P).repeat_interleave(arriving.flatten())
    by_expert = expert.argsort(stable=True)
    group_sizes = arriving.sum(dim=0).tolist()
    made = torch.empty_like(rows)
    made[by_expert] = multiply(rows[by_expert], group_sizes, matrices)

    back = torch.empty(len(order), tokens.shape[1], dtype=tokens.dtype)
    dist.all_to_all_single(back, made, sent, received)  # the way back
    weighted = back * weights.flatten()[order].unsqueeze(1)
    answers = torch.zeros_like(tokens).index_add(0, order // k, weighted)
    return answers, group_sizes


# %% [markdown]
# Rows arrive sorted by the rank that sent them, so `by_expert` sorts them by expert, and the answers go back into the
# old order. To make it difficult, the next cell can push the scores towards the experts of the first ranks, so that the
# groups become very unequal. In one process, each token is simply multiplied by the matrices of its four experts. Any
# difference between the two has to be rounding, in float64 as well as in float32:


# %%
def beside_one_process(multiply, dtype, push):
    rank = dist.get_rank()
    every = torch.Generator().manual_seed(0)  # the same on all ranks
    matrices = torch.randn(16, 32, 32, generator=every).to(dtype)
    own = torch.Generator().manual_seed(1 + rank)
    tokens = torch.randn(512, 32, generator=own).to(dtype)
    scores = torch.randn(512, 16, generator=own) - push * torch.arange(16)

    values, chosen = scores.sigmoid().to(dtype).topk(k=4, dim=1)
    weights = values / values.sum(dim=1, keepdim=True)
    mine = matrices[4 * rank : 4 * rank + 4]
    answers, group_sizes = dropless_layer(tokens, chosen, weights, mine, multiply)
    wanted = torch.zeros_like(tokens)
    for choice in range(4):
        made = (tokens.unsqueeze(1) @ matrices[chosen[:, choice]]).squeeze(1)
        wanted += made * weights[:, [choice]]
    return (answers - wanted).abs().max().item(), group_sizes


# %%
from course_utils.lessons.experts import load_text, pictures

loads = {}
for name, push in {"an even gate": 0, "a pushed gate": 0.1}.items():
    run = ranks.run(beside_one_process, with_loop, torch.float64, push, backend="gloo")
    apart = max(gap for gap, _ in run.results)
    assert apart <= 1e-12
    loads[name] = sum([group_sizes for _, group_sizes in run.results], [])
    assert sum(loads[name]) == 4 * 512 * 4  # every rank's tokens, four times each
    print(f"{name}: at most {apart:.0e} from one process, in float64")
run = ranks.run(beside_one_process, with_groups, torch.float32, 0.1, backend="gloo")
assert max(gap for gap, _ in run.results) <= 1e-4
sizes_bytes, rows_bytes, _ = [
    event.bytes for event in run.events if event.kind == "collective" and event.rank == 0
]
print(f"rank 0's sizes: {sizes_bytes} bytes; its rows, in float32: {rows_bytes:,} bytes")
pictures.expert_loads(loads, 4, *load_text(loads, ranks=4))

# %% [markdown]
# The sizes are tiny, but they are not free. They cost a latency in every layer, and on a GPU, the program has to wait
# for them before it can start the all-to-all of the tokens, because `all_to_all_single` takes its sizes as Python
# numbers.
#
# Without a capacity nothing bounds the memory of a crowded rank any more. That makes balancing all the more important.
#
# ## Two nodes
#
# In an all-to-all every rank sends a message to every other rank. The next cell sends the tokens of the first page to
# their experts and back by plain messages, so that the timeline can show them. It does so twice, because in the first
# run the ranks have to open their connections.

# %% tags=["figure:16_messages"]
from course_utils.lessons.experts import counted_bytes, rows_by_messages, sent_text

tokens, width = 64, 32
for _ in range(2):
    run = ranks.run(rows_by_messages, tokens, width, 4, 2, backend="gloo")
counted = [counted_bytes(sent, rank, width, 8) for rank, sent in enumerate(run.results)]
run.timeline(f"There and back: {run.messages} messages; {sent_text(counted)}")

# %% [markdown]
# After the all-to-all of the counts, each rank sends one message to each of the other three on the way out and one on
# the way back. In a ring all-reduce, a rank sends only to its neighbour, but here it sends to *every* other rank. If
# there are two nodes with two ranks each, a rank sends two messages to the other node. Could it be one? On *two
# levels*, as in lesson 5, the ranks of a node first sort out among themselves who sends what. Ranks 0 and 2 are the
# first ranks of their nodes, ranks 1 and 3 the second ones.
#
# - Level 1, inside each node: rank 0 collects everything that its node has for the *first* ranks of any node, which are
#   ranks 0 and 2. Rank 1 collects everything for the *second* ranks, 1 and 3. Ranks 2 and 3 do the same on their node.
# - Level 2, between the nodes: rank 0 exchanges blocks with rank 2, and rank 1 with rank 3.
#
# Why does rank 0 not collect the blocks for rank 3 as well? Then rank 0 would have to send two messages, one to each
# rank of the other node, and rank 1 would have none. In this way each rank has exactly one partner on every other node.
#
# **Predict.** With eight GPUs per node and two nodes, how many messages does a GPU send to the other node in a plain
# all-to-all, and how many on two levels?

# %%
course.predict("experts_levels", plain=..., two_levels=...)

# %%
from course_utils.lessons.experts import all_to_all_by_messages, pictures, two_levels

course.answer("experts_levels", plain=8, two_levels=1)
ranks = course.start(4, link="100 Mbit/s", latency="3 ms", ranks_per_node=2)
ranks.load_torch()


# %%
def exchange(blocks, group):
    ones = [1] * dist.get_world_size(group)  # one block for each rank of the group
    return all_to_all_by_messages(blocks.contiguous(), ones, ones, group)


def plain(blocks):
    return exchange(blocks, None)


def on_two_levels(blocks):
    """`blocks[s]` is for rank s. Return what this rank holds after each level."""
    groups = two_levels.levels(node_size=2)
    by_position = blocks.unflatten(0, (2, 2)).transpose(0, 1)  # [position, node, …]
    inside = exchange(by_position, groups.node)  # [from this rank of my node, node, …]
    by_node = inside.transpose(0, 1)  # [node, from this rank of my node, …]
    across = exchange(by_node, groups.across)
    return inside.flatten(0, 1), across.flatten(0, 1)


# %% tags=["figure:16_two_levels"]
numbers = course.per_rank([10.0 * r + torch.arange(4.0).reshape(4, 1) for r in range(4)])
run = ranks.run(on_two_levels, numbers, backend="gloo")
inside, across = [
    [held[level].flatten().int().tolist() for held in run.results] for level in (0, 1)
]
pictures.two_level_blocks(inside, across)

# %% [markdown]
# In the middle panel, rank 0 holds the blocks that its node has for ranks 0 and 2. Then it sends those for rank 2 in
# one message.

# %%
from course_utils.lessons.experts import faster_text, levels_text

blocks = course.per_rank([torch.full((4, 2048), float(rank)) for rank in range(4)])
runs = {
    "plain": ranks.run(plain, blocks, backend="gloo"),
    "on two levels": ranks.run(on_two_levels, blocks, backend="gloo"),
}
for once, (_, twice) in zip(*(run.results for run in runs.values())):
    assert torch.equal(once, twice)
counted = {}
for name, run in runs.items():
    counted[name] = two_levels.crossing(run.events, node_size=2)
print(faster_text({name: run.events for name, run in runs.items()}))
course.draw.timelines(*runs.values(), titles=list(runs), title=levels_text(counted))

# %% [markdown]
# The same bytes cross the link between the nodes in half as many messages; with eight GPUs per node, it is an eighth.
# This saves the overhead of each message, and large messages use a fast link better. It saves no latency (lesson 4),
# because messages in flight together wait for it only once. The price is an additional all-to-all inside the node,
# where links are faster. With so few ranks it can exceed the gain, and as all ranks share your computer, the times mean
# less than the counts. In a *round*, each rank sends and receives one message. Plain could do with three rounds, but
# usually needs more, because ranks 1 to 3 all begin with rank 0. The method is called *hierarchical all-to-all*; the
# library Tutel (2022) has a version of it. Our function wants blocks of equal size, as a capacity makes them.
#
# ## Each token goes to few nodes
#
# The last section has sent fewer messages. Can we also send fewer *bytes* between nodes? Let's take four ranks, each on
# a node of its own, with 16 experts, four on each node, and $k = 4$. If the experts are chosen at random, three
# quarters of them are not on the token's own node, so a token is sent to other nodes 4 × 3/4 = 3 times.
#
# The first improvement is cheap. If two of a token's experts are on the same node, send the token there only once, and
# let the node pass it on to both and add up their answers, at the price of an extra hop inside the node. The second one
# is **node-limited routing**, which changes the gate. DeepSeek-V3 first chooses the $M$ best nodes for each token, by
# the sum of the token's $k/M$ highest values on each node ($k = 8$ and $M = 4$, so two). Then it chooses the $k$
# experts on these nodes only.
#
# **Predict.** With $M = 2$, nearly every token goes to two of the four nodes, which may include its own. How often is a
# token sent to a node other than its own, on average, if the nodes are chosen at random?

# %%
course.predict("experts_nodes", within=1.1, copies=...)


# %%
def chosen_experts(scores, k, nodes, limit):
    """Return the k experts of each token, on at most `limit` of the nodes."""
    values = scores.sigmoid()
    best = values.unflatten(1, (nodes, -1)).topk(k // limit, dim=2).values.sum(dim=2)
    kept = best.topk(limit, dim=1).indices
    allowed = torch.zeros_like(best).scatter(1, kept, 1.0)  # 1 for the chosen nodes
    experts_per_node = scores.shape[1] // nodes
    values = values * allowed.repeat_interleave(experts_per_node, dim=1)
    return values.topk(k, dim=1).indices


def send_to_nodes(limit, one_copy):
    """Send this rank's tokens to the nodes of their experts; return their number."""
    nodes, tokens, width = dist.get_world_size(), 512, 16
    torch.manual_seed(dist.get_rank())
    x, scores = torch.randn(tokens, width), torch.randn(tokens, 16)
    node = chosen_experts(scores, 4, nodes, limit) // 4  # of each chosen expert
    copies = one_hot(node, nodes).sum(dim=1)  # of each token, for each node
    if one_copy:
        copies = copies.clamp(max=1)
    sent = copies.sum(dim=0)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    numbers = torch.arange(tokens)
    rows = torch.cat([x[numbers.repeat_interleave(copies[:, n])] for n in range(nodes)])
    all_to_all_by_messages(rows, sent.tolist(), received.tolist())
    return tokens, rows[0].nbytes


# %%
ranks = course.start(4, link="100 Mbit/s")
ranks.load_torch()
cases = {
    "a copy for each expert": (4, False),
    "a copy for each node": (4, True),
    "at most two nodes": (2, True),
}
for name, case in cases.items():
    run = ranks.run(send_to_nodes, *case, backend="gloo")
    tokens, row_bytes = run.results[0]
    messages, nbytes = two_levels.crossing(run.events, node_size=1)  # sent by rank 0
    copies = nbytes / row_bytes / tokens
    print(f"{name}: {messages} messages, {copies:.2f} copies per token, {nbytes:,} bytes")
course.measured("experts_nodes", copies=round(copies, 2))

# %% [markdown]
# Two nodes, each of them not the token's own with probability 3/4, make 1.5 copies. (It may be a little less, because
# all four experts of a token can be on the same node.) The number of messages stays the same, because the tokens for
# one node travel together.
#
# In DeepSeek-V3, the 256 experts of a layer are on 8 nodes, 32 on each. On how many nodes would 8 experts be that are
# chosen at random? A given node has none of them if all 8 are among the other 224 experts:

# %% tags=["nbval-check-output"]
absent = math.comb(224, 8) / math.comb(256, 8)  # no chosen expert is on a given node
print(f"{8 * (1 - absent):.1f} nodes on average")

# %% [markdown]
# The limit is 4. That saves bytes, but the gate can no longer choose any eight experts.
#
# ## Computing while tokens travel
#
# Even so, DeepSeek-V3's authors found that communication between nodes took about as long as computing. Their remedy is
# to hide it, as DDP does with gradients in lesson 7. Within one batch, only a shared expert can compute while tokens
# travel (Megatron-Core has `--moe-shared-expert-overlap` for this). The others have to wait for their tokens, and the
# answers can't leave before they are computed. But if you cut the batch into two halves, the second half can travel
# while the first one is computed.
#
# Suppose that dispatch, computing and combine take 30 ms each for the whole batch. One after the other they take 90 ms.
# With two halves, each part takes 15 ms:
#
# | ms | 0–15 | 15–30 | 30–45 | 45–60 |
# |---|---|---|---|---|
# | **network** | half 1 there | half 2 there | half 1 back | half 2 back |
# | **processor** | | half 1 | half 2 | |
#
# Together this takes 60 ms.
#
# **Predict.** On a faster network, dispatch and combine take 10 ms each for the whole batch, and computing still takes
# 30 ms. How many milliseconds does it take without halves, and how many with two halves?

# %%
course.predict("experts_overlap", whole=..., halves=...)

# %% [markdown]
# In the code, `travel` starts an all-to-all with `async_op=True` and returns at once, with the tensor that will be
# filled and an object to wait for. All groups of tokens have the same size here, so no counts are needed.


# %%
from course_utils.trace.recorder import phase


def travel(rows):
    arriving = torch.empty_like(rows)
    return arriving, dist.all_to_all_single(arriving, rows, async_op=True)


def layer(tokens, expert, parts):
    parts = tokens.chunk(parts)
    returning = []
    arriving, work = travel(parts[0])
    for number in range(len(parts)):
        with phase("dispatch"):
            work.wait()
        rows = arriving
        if number + 1 < len(parts):
            arriving, work = travel(parts[number + 1])  # travels while we compute
        with phase("experts"):
            made = expert(rows)
        returning.append(travel(made))
    with phase("combine"):
        for _, work in returning:
            work.wait()
    return torch.cat([answers for answers, _ in returning])


# %%
from course_utils.measuring import Compared, slowest_rank


def an_expert():
    torch.manual_seed(dist.get_rank())
    return nn.Sequential(nn.Linear(256, 2048), nn.GELU(), nn.Linear(2048, 256))


@torch.no_grad()
def timed_by_turns(rounds):
    """Return the seconds of each round, with the whole batch and with two halves."""
    expert, tokens = an_expert(), torch.randn(512, 256)
    order = torch.arange(512).reshape(4, 2, -1)  # [for this rank, half, token]
    for_halves = order.transpose(0, 1).flatten()  # half 1 for all ranks, then half 2
    whole = layer(tokens, expert, 1)
    halves = layer(tokens[for_halves], expert, 2)
    torch.testing.assert_close(halves, whole[for_halves])  # the same answers

    seconds = {1: [], 2: []}
    for _ in range(rounds):
        for parts in (1, 2):
            slowest_rank(0.0)  # all ranks begin together
            begin = time.perf_counter()
            layer(tokens, expert, parts)
            seconds[parts].append(slowest_rank(time.perf_counter() - begin))
    return seconds


# %%
course.answer("experts_overlap", whole=10 + 30 + 10, halves=5 + 15 + 15 + 5)
ranks = course.start(4, link="100 Mbit/s")
ranks.load_torch()
seconds = ranks.run(timed_by_turns, 9, backend="gloo").results[0]
pair = Compared(seconds[2], seconds[1], ("the split batch", "the whole batch"))
course.draw.measured_bars({"one layer, forward": pair.bars}, pair.title)


# %%
@torch.no_grad()
def one_pass(parts):
    expert, tokens = an_expert(), torch.randn(512, 256)
    expert(tokens)
    dist.barrier()
    layer(tokens, expert, parts)


for _ in range(2):  # the first run finds the connections
    run = ranks.run(one_pass, 2, backend="gloo")
run.timeline("One layer, with the batch in two halves")

# %% [markdown]
# In our calculation for the faster network, half 1 arrives after 5 ms, computing takes 30 ms without a break, and half
# 2 goes back in another 5 ms, which makes 40 ms instead of 50. On your ranks, the processor also has to carry the
# messages, and four nodes share its cores, so you will usually gain less than the calculation promises.
#
# Large models are trained with pipelines (lesson 10), so there are many micro-batches to choose from. DualPipe,
# DeepSeek-V3's schedule, pairs the forward pass of one micro-batch with the backward pass of another, and lets one
# compute while the tokens of the other travel. [Further 10](10_pipeline_further.ipynb) explains it.

# %%
ranks.stop()

# %% [markdown]
# **To read**
#
# - Dai and others (2024), [*DeepSeekMoE*](https://arxiv.org/abs/2401.06066), introduces small experts and shared ones.
# - Gale and others (2022), [*MegaBlocks*](https://arxiv.org/abs/2211.15841), computes experts without a capacity.
# - Hwang and others (2022), [*Tutel*](https://arxiv.org/abs/2206.03382), has a hierarchical all-to-all and hides
#   messages behind computing.
# - [DeepEP](https://github.com/deepseek-ai/DeepEP) is a library for dispatch and combine on GPUs.
