# The lesson on mixtures of experts. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if only some weights are used?
#
# In the models of this course so far, nearly every weight is used for every token. So a model with twice as many
# weights needs about twice as much arithmetic. DeepSeek-V3, a language model of 2024, has 671 billion weights, but it
# uses only 37 billion of them for any one token. Its authors [report](https://arxiv.org/abs/2412.19437) that 2,048 GPUs
# needed 2.66 million GPU hours for the main part of its training, which is 54 days. If every token had used all 671
# billion weights, that would have been 18 times as much arithmetic, and at the same speed the 54 days would have become
# more than two and a half years.
#
# The price is paid in messages. Different tokens need different weights, which are on different GPUs, so the tokens
# have to travel to them and back in almost every layer.
#
# In this lesson you send tokens to their weights on different ranks and get the answers back, you see what happens if
# too many tokens want the same weights, and you find out over which ranks each gradient has to be added up.
#
# *50 minutes · builds on [lesson 11](11_hybrid_and_sharded.ipynb) · 4 ranks*

# %%
from functools import partial

import numpy as np
import torch
import torch.distributed as dist

import course_utils as course

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## More weights, but hardly more work
#
# Each block of a transformer has an attention and an MLP, which has most of the block's weights. A **mixture of
# experts** replaces the MLP with several MLPs, which are called **experts**. Each token goes through only $k$ of them,
# and a small linear layer, the **gate** or *router*, chooses which. A model without experts is called *dense*.
#
# Take the character model of lesson 9. Its dense version has 32,128 weights, and each of its two blocks has an MLP with
# 8,352. A forward pass takes 55,296 operations per token in the linear layers, two for each weight of their matrices.
# What changes with four experts per block, if each token uses one of them ($k = 1$)?
#
# - The three additional MLPs in each of two blocks have 3 × 2 × 8,352 = 50,112 weights. A gate has one weight for each
#   of the 32 numbers of a token and each of the four experts, so two gates have 2 × 32 × 4 = 256. Together that makes
#   82,496 weights, 2.6 times as many as before.
# - A token still goes through one MLP in each block. Only the gates are new, and their 256 weights take 512 operations.
#   So the work grows by less than 1%.
#
# **Predict.** Now take eight experts per block, still with $k = 1$. By what factors do the number of weights and the
# operations per token grow, compared with the dense model?

# %%
course.predict("experts_numbers", within=1.1, weights=..., work=...)  # 1 means equal

# %% tags=["nbval-check-output"]
from course_utils.lessons.experts import character_experts, flops_per_token
from course_utils.vgg import parameter_count

dense = character_experts(0)
for number in (0, 4, 8):
    model = character_experts(number)
    weights, work = parameter_count(model), flops_per_token(model)
    print(f"{number} experts: {weights:7,} weights, {work:,} operations per token")
course.answer(
    "experts_numbers",
    weights=round(weights / parameter_count(dense), 2),
    work=round(work / flops_per_token(dense), 2),
)

# %% [markdown]
# The number of weights doesn't grow by a full factor of eight, because there is still only one attention per block. In
# DeepSeek-V3, where 58 layers have 256 experts each, nearly all the weights belong to experts.
#
# ## The gate chooses
#
# For each token, the gate computes a score for every expert. A softmax over all experts turns the scores into positive
# numbers that add up to 1. We call them the token's **shares**. The token goes to the $k$ experts with the largest
# shares, and the answer $E_i(x)$ of a chosen expert is multiplied by its share $p_i$:
#
# $$y = \sum_{i \in \text{chosen}} p_i\, E_i(x)$$

# %% tags=["nbval-check-output"]
scores = torch.tensor([[1.0, 3.0, 2.5, 0.0], [2.0, -1.0, 0.0, 2.2]], requires_grad=True)
shares = scores.softmax(dim=1)
weights, experts = shares.topk(k=2, dim=1)
for token in range(2):
    rounded = [round(share, 2) for share in shares[token].tolist()]
    print(f"token {token}: shares {rounded}, goes to experts {experts[token].tolist()}")

weights[0, 0].backward()  # how does token 0's largest weight depend on its scores?
print("gradient of this weight:", [round(g, 2) for g in scores.grad[0].tolist()])

# %% [markdown]
# How can the gate learn? The choice itself has no gradient, because you can't choose expert 1 "slightly more". But the
# share has a gradient. If the answer of an expert was helpful, a gradient step makes its share larger and all other
# shares smaller. The experts that were not chosen gave no answer, so the gate learns nothing about how good theirs
# would have been.
#
# With $k = 2$ the two weights of a token add up to less than 1. Many models divide them by their sum, among them
# Mixtral and DeepSeek-V3. That is fine with two or more experts, since the gate still learns which of them should count
# more. With $k = 1$ it isn't, because a single weight divided by itself is 1, whatever the scores are. Its gradient is
# zero, and the gate never learns. So models with $k = 1$, such as Switch Transformers, use the share as it is, and so
# does this page.
#
# You write the gate in the [exercise](../exercises/16_experts.ipynb) `route`.
#
# ## Tokens travel to their experts and back
#
# The routed experts of DeepSeek-V3 have 58 layers × 256 experts × 44 million weights, about 654 billion. With 2 bytes
# per weight that is 1.3 TB, far more than the memory of a GPU. In **expert parallelism**, the experts of a layer are on
# different ranks. Everything else works as in data parallelism, so each rank has its own part of the batch and a copy
# of the attention and the gate.
#
# So the tokens have to move. First, each rank sends its tokens to the ranks of their experts. This is called
# **dispatch**. Then every expert computes an answer for each token it has received, and finally the answers travel back
# to where the tokens came from. This is called **combine**. Both are an all-to-all (lesson 4), because every rank sends
# something different to every other rank. Here is the whole layer for one expert per rank and $k = 1$. Only the
# multiplication by the gate's weights is left out:


# %%
def there_and_back(tokens, wanted, expert):
    """Return the rows that arrived at this rank's expert, and the answers for its tokens."""
    order = wanted.argsort(stable=True)  # tokens for rank 0 first, then those for rank 1
    sent = torch.bincount(wanted, minlength=dist.get_world_size())
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)  # how many tokens will arrive from each rank?
    sent, received = sent.tolist(), received.tolist()

    rows = tokens.new_empty(sum(received), tokens.shape[1])
    dist.all_to_all_single(rows, tokens[order], received, sent)  # dispatch
    made = expert(rows)
    back = torch.empty_like(tokens)
    dist.all_to_all_single(back, made, sent, received)  # combine
    answers = torch.empty_like(tokens)
    answers[order] = back  # each answer at the position of its token
    return rows, answers


# %% [markdown]
# The gate decides anew in each step where the tokens go, so a rank can't know how many are coming. That is why a small
# all-to-all of the counts goes first. The lists `received` and `sent` then tell `all_to_all_single` how many tokens to
# expect from each rank and to send to it.
#
# In the next cell each token is a single number, so that we can see where it goes. Token 2a, the first one of rank 2,
# is the number 20, token 2b is 21, and so on. The expert of rank $e$ adds $100(e+1)$.


# %%
def numbered_tokens(wanted):
    rank = dist.get_rank()
    tokens = 10 * rank + torch.arange(len(wanted)).reshape(-1, 1)
    rows, answers = there_and_back(tokens, wanted, lambda rows: rows + 100 * (rank + 1))
    return [part.flatten().tolist() for part in (tokens, rows, answers)]


# %% tags=["figure:16_there_and_back"]
from course_utils.lessons.experts import pictures

wanted = [[1, 0, 2, 1], [3, 1, 2, 1], [0, 3, 3, 1], [2, 0, 1, 3]]  # of ranks 0 to 3
each = course.per_rank([torch.tensor(experts) for experts in wanted])
run = ranks.run(numbered_tokens, each, backend="gloo")
pictures.tokens_there_and_back(*zip(*run.results))

# %% [markdown]
# Follow token 0a. It goes to expert 1, so in the second frame it is on rank 1, among the other tokens for this expert.
# In the third frame its answer is back on rank 0, at the position where the token was.
#
# How much does this cost? Suppose each of four ranks has 64 tokens of 32 numbers with 8 bytes each, which is 16,384
# bytes. If all experts are equally busy and $k = 1$, a quarter of the tokens stay on their own rank, because their
# expert is there. The other three quarters have to leave, so each rank sends 12,288 bytes for the dispatch, and just as
# much for the combine. In general, a rank sends
#
# $$k \cdot \text{tokens} \cdot \text{bytes of a token} \cdot \frac{P-1}{P}$$
#
# bytes in each direction if there are $P$ ranks.
#
# **Predict.** In DeepSeek-V3, a token has 7,168 numbers, and it goes to $k = 8$ experts. The experts of a layer are on
# $P = 64$ GPUs. How many KB does a GPU send per token and layer in one direction, if all experts are equally busy and
# each number takes 2 bytes?

# %%
course.predict("experts_bytes", within=1.1, kilobytes=...)

# %%
from course_utils.lessons.experts import balanced_bytes, counted_bytes
from course_utils.lessons.experts import rows_by_messages, sent_text

large = balanced_bytes(tokens=1, k=8, width=7168, itemsize=2, ranks=64)
course.answer("experts_bytes", kilobytes=round(large / 1000, 1))

tokens, width, k = 64, 32, 2
run = ranks.run(rows_by_messages, tokens, width, 4, k, backend="gloo")
counted = [counted_bytes(sent, rank, width, 8) for rank, sent in enumerate(run.results)]
print("tokens from each rank (row) to each rank (column):")
print(np.array(run.results))
print(sent_text(counted, balanced_bytes(tokens, k, width, itemsize=8, ranks=4)))

# %% [markdown]
# The table comes from a run on our four ranks with $k = 2$, where a gate with random weights chose the experts. A real
# gate doesn't spread tokens evenly, so some ranks send a little more than the formula predicts and some a little less.
# `rows_by_messages` uses plain messages instead of the collective, so that the timeline can show them:

# %% tags=["figure:16_messages"]
run = ranks.run(rows_by_messages, tokens, width, 4, k, backend="gloo")  # connected now
run.timeline(f"There and back: {run.messages} messages; {sent_text(counted)}")

# %% [markdown]
# Each of the four ranks sends a message to each of the three others, once there and once back. In a ring all-reduce, a
# rank sends only to its neighbour, but here it sends to *every* other rank. With 64 ranks that is 63 messages per rank
# in each direction, and in each layer. DeepSeek-V3's authors report that without countermeasures, communication would
# have taken about as long as computing. [Further](16_experts_further.ipynb) shows two of their countermeasures, and how
# fewer messages can be sent between two nodes.
#
# In the backward pass everything happens in reverse. The gradients of the answers are on the ranks that own the tokens,
# and they travel to the experts along the routes of the dispatch. What the experts compute from them, the gradients of
# the tokens, then travels back along the routes of the combine. So a layer has two all-to-alls forward and two
# backward, besides that of the counts.
#
# Is it still the same layer? The course's own `dispatch` and `combine`, which you write in the exercises, also handle
# $k > 1$, several experts on a rank, and the weights. We compare them with one process that has all experts, in
# float64:

# %%
from course_utils.lessons.experts import one_layer

cases = {
    "4 experts, k = 1": {"number": 4, "k": 1},
    "8 experts, k = 2": {"number": 8, "k": 2},
    "all tokens to one expert": {"number": 4, "k": 1, "crowd": 1.0},
}
for name, settings in cases.items():
    layer = partial(one_layer, tokens, width, **settings)
    found = ranks.run(layer, backend="gloo").results
    worst = max(result.error for result in found)
    assert worst <= 1e-10
    rows = [result.rows for result in found]
    print(f"{name}: tokens at the ranks {rows}, at most {worst:.0e} from one process")

# %% [markdown]
# ## The most crowded expert sets the pace
#
# Nothing forces the gate to be fair. Suppose that 40% of all tokens want expert 2, and the others are spread evenly
# over the four experts. Then expert 2 gets 40% + 60% ÷ 4 = 55% of the tokens, and each of the others gets 15%. The
# layer is finished when the *last* answer is back. If the computing time is proportional to the number of tokens, the
# other ranks are done after 15 ÷ 55 = 27% of rank 2's time, and they wait for the remaining 73%.
#
# The next picture shows a more extreme case, where most tokens want expert 2:

# %% tags=["figure:16_crowd_blocks"]
wanted = [[2, 2, 0, 2], [2, 2, 2, 1], [2, 2, 2, 2], [3, 2, 2, 2]]
each = course.per_rank([torch.tensor(experts) for experts in wanted])
run = ranks.run(numbered_tokens, each, backend="gloo")
pictures.crowd([rows for tokens, rows, answers in run.results])

# %% [markdown]
# **Predict.** Now 85% of the tokens want expert 2, and the others are again spread evenly over all four experts. For
# what percentage of rank 2's computing time do the other ranks wait?

# %%
course.predict("experts_crowd", within=1.1, percent=...)

# %% tags=["figure:16_crowd"]
from course_utils.lessons.experts import busy_seconds, skew_text, waiting_share
from course_utils.measuring import is_busy, unless_busy

crowded = partial(one_layer, 512, 128, 4, 1, crowd=0.85, dtype=torch.float32)
runs = [ranks.run(crowded, backend="gloo") for _ in range(5)][2:]  # two to warm up
working = [busy_seconds(run.events, ranks=4) for run in runs]
waits = [waiting_share(seconds) for seconds in working]
busy = is_busy([waits])
course.measured("experts_crowd", busy=busy, percent=round(100 * np.median(waits)))
rows = [result.rows for result in runs[-1].results]
runs[-1].timeline(unless_busy(busy, skew_text(rows, working[-1])))

# %% [markdown]
# By calculation, expert 2 gets 85% + 15% ÷ 4 = 88.75% of the tokens and each of the others 3.75%, so the others should
# wait for 1 − 3.75 ÷ 88.75 = 96% of the time. While they wait they are in the phase *combine*, since this all-to-all
# can't finish without the answers of rank 2. With four GPUs you would pay for four and use little more than one. And
# rank 2 needs enough memory for the tokens of all ranks.
#
# An early remedy is a **capacity**, a limit on the number of tokens that an expert accepts from each rank. It bounds
# the wait, at the cost of dropped tokens. A dropped token gets no answer from this expert, and if that was its only
# one, it passes through the layer unchanged, because the block adds its input to the layer's output. Papers of 2020 to
# 2022 typically set the limit to between 1 and 2 times the tokens that an expert would get if all were equally busy.
# Many large models of today are **dropless**, which means that no token is dropped. DeepSeek-V3 is one of them. You
# write `capacity` in an exercise, and [Further](16_experts_further.ipynb) measures what it drops. Either way it is
# better if the gate spreads the tokens more evenly to begin with.
#
# ## Two ways to keep experts equally busy
#
# The first way is a **balancing loss**, an additional term of the loss that is smallest if all experts are equally
# busy. Let $N$ be the number of experts, $f_i$ the fraction of all tokens that expert $i$ got, and $P_i$ its share
# $p_i$, averaged over all tokens. Switch Transformers add
#
# $$0.01 \cdot N \sum_{i=1}^{N} f_i\, P_i$$
#
# to the loss. The fractions $f_i$ are counted and have no gradient, but the shares $P_i$ have one. A gradient step
# lowers the share of the busiest expert the most. The drawback is that this pulls at the gate, whether or not it helps
# to predict the text.
#
# The second way leaves the loss alone. Every expert has a **balancing bias** $b_i$. A token goes to the experts with
# the largest $p_i + b_i$, but the answers are still multiplied by the shares $p_i$. After each step, the bias of an
# expert with more tokens than the average is lowered by a small constant, and that of an expert with fewer is raised by
# it.


# %%
def next_bias(bias, load, rate):
    """Return the biases for the next step; `load` has the number of tokens of each expert."""
    load = load.to(bias.dtype)
    return bias + rate * torch.sign(load.mean() - load)


# %% [markdown]
# For example, four experts have just received 70, 10, 10 and 10 tokens. The average is 25. With a rate of 0.01 and
# biases that are all 0, the next biases are −0.01, 0.01, 0.01 and 0.01. A token with the shares 0.43, 0.38, 0.14 and
# 0.05 now has the sums 0.42, 0.39, 0.15 and 0.06. It still goes to expert 0.
#
# **Predict.** Suppose these loads stay as they are. After how many updates of the biases does this token go to expert
# 1? And by what is the answer of expert 1 then multiplied?

# %%
course.predict("experts_bias", within=1.01, updates=..., weight=...)

# %% tags=["nbval-check-output"]
shares = torch.tensor([0.43, 0.38, 0.14, 0.05])
load = torch.tensor([70, 10, 10, 10])
bias, updates = torch.zeros(4), 0
while (shares + bias).argmax() == 0:
    bias, updates = next_bias(bias, load, rate=0.01), updates + 1
chosen = (shares + bias).argmax()
sums = [round(value, 2) for value in (shares + bias).tolist()]
print(f"after {updates} updates the sums are {sums}")
course.answer("experts_bias", updates=updates, weight=round(shares[chosen].item(), 2))

# %% [markdown]
# After two updates the two sums are 0.41 and 0.40, and after the third, expert 1 is ahead. Its answer is still
# multiplied by its share, 0.38, since the bias affects only the choice. No gradient flows through the bias, so nothing
# pulls at the gate.
#
# Let's see what this does in a training run. The next cell trains the character model with eight experts per block, two
# on each of our four ranks. One run leaves the gate alone, one adds the balancing loss, and one uses the bias.
# `train_experts` does the same in each step as one process would do; the next section checks that.

# %% tags=["figure:16_balance"]
from course_utils.lessons.experts import Recipe, balance_text, train_experts
from course_utils.lessons.model_parallel import character_text, text_batches

steps = 60
batches = text_batches(character_text().training, 64, 16, steps)
build = partial(character_experts, 8)
methods = {"no balancing": "nothing", "balancing loss": "loss", "balancing bias": "bias"}
sizes = {"data": 1, "expert": 4}
crowding = {}  # tokens of the busiest expert, in multiples of its fair share
for name, balance in methods.items():
    recipe = Recipe(balance=balance)
    run = ranks.run(train_experts, sizes, build, batches, recipe, backend="gloo")
    crowding[name] = np.reshape(run.results[0].imbalances, (-1, 10))  # ten steps a row
course.draw.over_numbers(
    range(10, steps + 1, 10),
    crowding,
    balance_text(crowding),
    "Each dot is the median of ten steps, each bar goes from their lowest value to the highest",
    across="steps trained",
    up="tokens of the busiest expert ÷ fair share",
)

# %% [markdown]
# The picture shows the first of the model's two layers with experts. The fair share of an expert is an eighth of all
# tokens. If the busiest expert has 2 times its fair share, its rank has to compute twice as much for it as it should.
# The title states what came out in this run. Why does a gate become unfair at all? Shazeer and others, who introduced
# this kind of gate in 2017, explain it like this. An expert that gets many tokens learns faster than the others, so the
# gate prefers it, and it gets even more tokens. These 60 steps of a tiny model can't rank the two methods, but you can
# see how large the imbalance is with and without them. Switch Transformers use the balancing loss. DeepSeek-V3 uses the
# bias, together with a balancing loss whose factor its authors call "extremely small".
# [Further](16_experts_further.ipynb) asks how well such a model learns, compared with a dense one.
#
# ## Whose gradient is it?
#
# With more ranks than experts, you can have several copies of each expert. Our four ranks then form a mesh (lesson 11):
#
# | | expert 0 | expert 1 |
# |---|---|---|
# | **first set** | rank 0 | rank 1 |
# | **second set** | rank 2 | rank 3 |
#
# Along the axis `expert`, ranks 0 and 1 together have one complete set, and their tokens travel between these two.
# Along the axis `data`, ranks 0 and 2 have the same expert. After the backward pass, which gradients have to be added
# up?
#
# Let's begin with ranks 0 and 1 alone. Each of them goes backward from the mean loss of *its own* tokens, but we want
# the gradient of the mean over all tokens. The attention of rank 0 has seen only rank 0's tokens. So for attention and
# gate we add up the gradients of both ranks and divide by 2, as in lesson 6. Expert 0 is different. It has processed
# tokens of both ranks, and the backward pass of the dispatch has brought it the gradients of both losses, which have
# been added up already. Its gradient must not be added to that of rank 1, which belongs to a different expert. But it
# does have to be divided by 2, because it is a sum of the gradients of two means.
#
# **Predict.** Now take all four ranks. Attention and gate are summed over 4 ranks and divided by 4. Over how many ranks
# do you have to sum the gradient of an expert, and by what do you divide it?

# %%
course.predict("experts_gradients", sum_over=..., divide_by=...)


# %%
def add_gradients(shared, own, data, over_all, divisor):
    """Add up gradients of what all ranks share, and of this rank's own experts.

    `data` is the group of the ranks that have the same experts.
    """
    for parameter in shared:
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    for parameter in own:
        dist.all_reduce(parameter.grad, group=None if over_all else data)
        parameter.grad /= divisor


# %%
from course_utils.lessons.experts import largest_difference, train_in_one

square, few = {"data": 2, "expert": 2}, batches[:6]
build, recipe = partial(character_experts, 2), Recipe()
one = ranks.run(train_in_one, build, few, recipe, ranks=1, backend="gloo").results[0]
distances, curves = {}, {"one process": one.losses}
for sum_over in (4, 2):
    for divisor in (4, 2):
        adding = partial(add_gradients, over_all=sum_over == 4, divisor=divisor)
        case = square, build, few, recipe, None, adding
        found = ranks.run(train_experts, *case, backend="gloo").results
        name = f"sum over {sum_over}, divide by {divisor}"
        curves[name] = found[0].losses
        distances[name] = largest_difference(found, one, square, number=2)
        if distances[name] <= 1e-10:
            course.measured("experts_gradients", sum_over=sum_over, divide_by=divisor)

# %% tags=["figure:16_gradients"]
from course_utils.lessons.experts import gradients_text

for name, gap in distances.items():
    print(f"{name}: at most {gap:.0e} from one process, after {len(few)} steps")
course.draw.loss_curves(curves, gradients_text(distances))

# %% [markdown]
# An expert's gradient is summed over the ranks that have this expert, which are 2, and divided by 4, because the mean
# is over the tokens of all four ranks. Only this version matches the training run of one process, in every loss and
# every weight. All versions *learn*, and their curves lie close together, so you would not notice the mistake from the
# loss.
#
# If you sum over all 4 ranks, you mix the gradients of different experts, and both get the same one. If you divide by
# 2, the gradients of the experts are twice as large as they should be. With plain SGD, the experts would take steps
# twice as long as intended. This run uses Adam, which divides each gradient by its typical size, so its steps hardly
# change, and the mistake is even harder to see. So compare your program with one process, in float64 and step by step.
# You write `expert_gradients` in the last exercise.
#
# ## How today's models do it
#
# Many models since 2024 use more and smaller experts, and they have changed some details. DeepSeek-V3 has 256 experts
# per layer with only 2,048 hidden units each, and uses 8 of them for a token. In addition, every token goes through one
# **shared expert**, which no gate has to choose. Its gate uses a sigmoid for each expert instead of the softmax, and
# divides the 8 weights by their sum. No token is dropped. A token goes to at most 4 of the 8 nodes that have a set of
# experts between them, and while tokens travel, the GPUs compute on a different part of the batch. In a dropless
# mixture, a GPU can compute all its experts with one *grouped* matrix multiplication, which allows a different number
# of tokens for each of them. [Further](16_experts_further.ipynb) builds all of this and runs it on our ranks.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# A mixture of experts has many more weights than a dense model, for nearly the same work per token. The gate chooses
# the experts by a softmax and learns through the weights of their answers. If the experts are on different ranks, a
# layer needs two all-to-alls forward and two backward, and the rank of the most crowded expert sets the pace. A
# balancing loss pulls at the gate to prevent this, and a balancing bias only affects the choice. The gradient of an
# expert is summed over the ranks that have this expert, and divided by the number of all ranks.
#
# In [the exercises](../exercises/16_experts.ipynb) you write the gate, the dispatch, the combine, the capacity, and the
# sum of the gradients. [Lesson 17](17_long_texts.ipynb) divides something that we have kept in one piece so far, the
# text itself.
#
# **To read**
#
# - Shazeer and others (2017), [*Outrageously Large Neural Networks*](https://arxiv.org/abs/1701.06538), placed
#   thousands of experts between the layers of a language model, and describes how a gate becomes unfair.
# - Fedus and others (2021), [*Switch Transformers*](https://arxiv.org/abs/2101.03961), is about $k = 1$, capacity and
#   the balancing loss.
# - Wang and others (2024), [*Auxiliary-Loss-Free Load Balancing Strategy for
#   Mixture-of-Experts*](https://arxiv.org/abs/2408.15664), introduces the bias.
# - DeepSeek-AI (2024), [*DeepSeek-V3 Technical Report*](https://arxiv.org/abs/2412.19437), describes a large mixture
#   and its training in detail.
