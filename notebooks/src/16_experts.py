# The lesson on mixtures of experts. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if only some weights are used?
#
# In the models of this course so far, nearly every weight is used for every token, so twice as many weights need about
# twice as much arithmetic. DeepSeek-V3, a language model of 2024, has 671 billion weights, but it uses only 37 billion
# of them for any one token. Its authors [report](https://arxiv.org/abs/2412.19437) that 2,048 GPUs needed 2.66 million
# GPU hours for the main part of its training, which is 54 days. Using all 671 billion weights for every token would
# have taken 18 times as much arithmetic and, at the same speed, more than two and a half years.
#
# The price is paid in memory and in messages. No GPU can hold all the weights, so the tokens travel to them and back in
# almost every layer.
#
# In this lesson you send tokens to their weights and back, see what happens if too many tokens want the same weights,
# and find out over which ranks each gradient has to be added up.
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
# ## More weights, and little more work
#
# Each block of a transformer has an attention layer and an MLP, and most of the block's weights are in the MLP. A
# **mixture of experts** replaces the MLP with several MLPs, which are called **experts**. Each token goes through only
# $k$ of them, and a small linear layer, the **gate** or *router*, chooses which. A model without experts is called
# *dense*.
#
# Take the character model of lesson 9, in which a token is a vector of 32 numbers. Its dense version has 32,128
# weights, and each of its two blocks has an MLP with 8,352. A forward pass takes 55,296 operations per token in the
# linear layers, two per entry of their matrices. What changes with four experts per block, if each token uses one of
# them ($k = 1$)?
#
# - The three additional MLPs in each of two blocks have 3 × 2 × 8,352 = 50,112 weights. A gate has one weight for each
#   of the 32 numbers and each of the four experts, so two gates have 2 × 32 × 4 = 256. Together that makes 82,496
#   weights, 2.6 times as many as before.
# - A token still goes through one MLP in each block. Only the gates are new, and their 256 weights take 512 operations,
#   so the work grows by less than 1%.
#
# **Predict.** Now take eight experts per block, still with $k = 1$. By what factors do the number of weights and the
# operations per token grow, compared with the dense model?

# %%
course.predict("experts_numbers", within=1.1, weights=..., work=...)  # 1: unchanged

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
# The number of weights doesn't grow by a full factor of eight, because the attention layers, the embedding and the
# output layer are there only once.
#
# ## The gate chooses
#
# For each token, the gate computes a score for every expert. A softmax over all experts turns the scores into positive
# numbers that add up to 1, the token's **shares**. The token goes to the $k$ experts with the largest shares, and the
# answer $E_i(x)$ of a chosen expert is multiplied by its share $p_i$:
#
# $$y = \sum_{i \in \text{chosen}} p_i\, E_i(x)$$

# %% tags=["nbval-check-output"]
scores = torch.tensor([[1.0, 3.0, 2.5, 0.0], [2.0, -1.0, 0.0, 2.2]], requires_grad=True)
shares = scores.softmax(dim=1)
largest, experts = shares.topk(k=2, dim=1)
for token in range(2):
    rounded = [round(share, 2) for share in shares[token].tolist()]
    print(f"token {token}: shares {rounded}, goes to experts {experts[token].tolist()}")

largest[0, 0].backward()  # how does token 0's largest share depend on its four scores?
print("gradient of this share:", [round(g, 2) for g in scores.grad[0].tolist()])

# %% [markdown]
# How can the gate learn? The choice itself has no gradient, because you can't choose expert 1 "slightly more". But the
# share has one. The last line of the output shows it for token 0's share for expert 1. It is positive for the score of
# this expert and negative for the others, so if the answer was helpful, a gradient step raises this score and lowers
# the others. The gate doesn't learn how good the answers of other experts would have been.
#
# Many models divide the chosen shares by their sum. With $k = 1$ the quotient would always be 1, and the gate would
# learn nothing from the predictions, so this page uses the shares as they are.
#
# ## Tokens travel to their experts and back
#
# In DeepSeek-V3, 58 layers have 256 experts with 44 million weights each, about 654 billion in all. At 2 bytes per
# weight that is 1.3 TB, far more than the memory of a GPU. In **expert parallelism**, the experts of a layer are on
# different ranks. Everything else works as in data parallelism, so each rank has its own part of the batch and a copy
# of the attention layer and the gate.
#
# First, each rank sends its tokens to the ranks of their experts, which is called **dispatch**. Then every expert
# computes an answer for each token, and the answers travel back to where the tokens came from, which is called
# **combine**. Both are all-to-alls (lesson 4), because every rank sends something different to every other rank.
#
# The next cell has the forward pass for one expert per rank and $k = 1$. The gate has already chosen the expert of each
# token, `wanted`, and the multiplication by the share is left out.


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
# The gate decides anew in each step, so a rank can't know in advance how many tokens are coming. That is why a small
# all-to-all of the counts goes first. The lists `received` and `sent` then tell `all_to_all_single` how many rows to
# expect from each rank, and how many to send to each. On the way back they change places.
#
# The answers come back in the order in which the tokens were sent. If the four tokens of rank 0 want the experts
# `[1,0,2,1]`, `order` is `[1,0,3,2]`. The first answer belongs to token 1, and `answers[order] = back` puts it there.
#
# In the next cell each token is a number. The tokens of rank 2 are 20 to 23, and the picture calls them 2a to 2d. The
# expert of rank $e$ adds $100(e+1)$, so 120 is expert 0's answer to token 2a, which the picture shows as "2a →0".


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
# Follow token 0a. In the second panel it is on rank 1, among the other tokens for expert 1. In the third, its answer is
# back on rank 0, at the position where the token was.
#
# How much does this cost? Suppose each of four ranks has 64 tokens of 32 numbers with 8 bytes each, which is 16,384
# bytes. If $k = 1$ and each rank's tokens are spread evenly over all four ranks, a quarter of them stay, because their
# expert is on their own rank. The others leave, so each rank sends 12,288 bytes for the dispatch, and just as much for
# the combine. In general, if there are $P$ ranks, a rank sends
#
# $$k \cdot \text{tokens} \cdot \text{bytes of a token} \cdot \frac{P-1}{P}$$
#
# bytes in each direction. This counts a token once for each of its $k$ experts, even if two of them are on the same
# rank.
#
# **Predict.** In DeepSeek-V3, a token has 7,168 numbers, and it goes to $k = 8$ experts. The experts of a layer are on
# $P = 64$ GPUs. How many KB does a GPU send per token and layer in one direction, if its tokens are spread evenly and
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
# In this run, a gate with random weights chose two experts for each token. A rank keeps what is on the diagonal and
# sends the rest of its row. The formula assumes that a quarter of each row is on the diagonal, but the gate doesn't
# spread tokens that evenly.
#
# With 64 ranks, each rank sends 63 messages in each direction in every layer. DeepSeek-V3's authors report that without
# countermeasures, communication would have taken about as long as computing. [Further](16_experts_further.ipynb) draws
# the messages and shows some countermeasures.
#
# The backward pass needs two more all-to-alls. The gradients of the answers are on the ranks that own the tokens, and
# they travel to the experts along the routes of the dispatch. From these, the experts compute the gradients with
# respect to the tokens, which travel back the way the answers did. Autograd can't go through `dist.all_to_all_single`,
# so with `there_and_back` no gradient would reach the experts.
#
# The course's own `dispatch` and `combine`, which you write in the exercises, have this backward pass. They also handle
# $k > 1$, several experts on a rank, and the shares. The next cell compares their forward pass, in float64, with the
# same layer in a single process:

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
    print(
        f"{name}: tokens per rank {rows}, largest difference from one process {worst:.0e}"
    )

# %% [markdown]
# ## The most crowded expert sets the pace
#
# Nothing forces the gate to be fair. Suppose that 40% of all tokens want expert 2, and the remaining 60% are spread
# evenly over all four experts, expert 2 included. Then expert 2 gets 40% + 60% ÷ 4 = 55% of the tokens, and each of the
# others gets 15%. If the computing time is proportional to the number of tokens, the other ranks need 15 ÷ 55 = 27% of
# rank 2's time, or 73% less. But the layer is finished only when the *last* answer is back.
#
# The next picture shows a more extreme case:

# %% tags=["figure:16_crowd_blocks"]
wanted = [[2, 2, 0, 2], [2, 2, 2, 1], [2, 2, 2, 2], [3, 2, 2, 2]]
each = course.per_rank([torch.tensor(experts) for experts in wanted])
run = ranks.run(numbered_tokens, each, backend="gloo")
pictures.crowd([rows for tokens, rows, answers in run.results])

# %% [markdown]
# **Predict.** Now 85% of the tokens want expert 2, and the others are again spread evenly over all four experts. By
# what percentage is the computing time of the other ranks shorter than that of rank 2?

# %%
course.predict("experts_crowd", within=1.1, percent=...)

# %% tags=["figure:16_crowd"]
from course_utils.lessons.experts import busy_seconds, computing_gap, skew_text
from course_utils.measuring import is_busy, unless_busy

crowded = partial(one_layer, 512, 128, 4, 1, crowd=0.85, dtype=torch.float32)
runs = [ranks.run(crowded, backend="gloo") for _ in range(5)][2:]  # two to warm up
working = [busy_seconds(run.events, ranks=4) for run in runs]  # in the phase experts
gaps = [computing_gap(seconds) for seconds in working]
busy = is_busy([gaps])
course.measured("experts_crowd", busy=busy, percent=round(100 * np.median(gaps)))
rows = [result.rows for result in runs[-1].results]
runs[-1].timeline(unless_busy(busy, skew_text(rows, working[-1])))

# %% [markdown]
# On paper, expert 2 gets 85% + 15% ÷ 4 = 88.75% of the tokens and each of the others 3.75%, so the others should spend
# 1 − 3.75 ÷ 88.75 = 96% less time computing. The measured figure compares the average time that the other three ranks
# spend in the phase *experts* with rank 2's. This is not the time they wait in *combine*, because the four processes
# share the cores of one computer, and some may even reach the dispatch late. But no rank can leave *combine* before
# rank 2's answers arrive. With four GPUs you would pay for four and use little more than one.
#
# An early remedy is a **capacity**, a limit on the number of tokens that an expert accepts from each rank. The rest are
# dropped, which means that they get no answer from it. Many of today's models are **dropless**. They drop no tokens and
# instead try to make the gate spread them evenly.
#
# ## Two ways to keep experts equally busy
#
# The first way is a **balancing loss**, an extra term in the loss that usually grows when a few experts get most of the
# tokens. Let $N$ be the number of experts, $f_i$ the fraction of all tokens that expert $i$ got, and $\bar p_i$ the
# average of its share $p_i$ over all tokens. Switch Transformers add
#
# $$0.01 \cdot N \sum_{i=1}^{N} f_i\, \bar p_i$$
#
# to the loss. Without the factor 0.01, this is 1 if all experts are equally busy. If one of four experts gets 70% of
# the tokens and has an average share of 0.7, and the others get 10% and 0.1 each, it is 4 × (0.49 + 3 × 0.01) = 2.08.
# Its gradient flows through the shares. The drawback is that it changes the gate whether or not the change helps to
# predict the text.
#
# The second way leaves the loss alone. Every expert has a **balancing bias** $b_i$. A token goes to the experts with
# the largest $p_i + b_i$, but the answers are still multiplied by the shares $p_i$. After each step, the bias of an
# expert with more tokens than the average is lowered by a small constant, and that of an expert with fewer is raised.


# %%
def next_bias(bias, load, rate):
    """Return the biases for the next step; `load` has the number of tokens of each expert."""
    load = load.to(bias.dtype)
    return bias + rate * torch.sign(load.mean() - load)


# %% [markdown]
# Suppose four experts have just received 70, 10, 10 and 10 tokens. The average is 25, so with a rate of 0.01, biases
# that were all 0 become −0.01, 0.01, 0.01 and 0.01. After this first update, a token with the shares 0.43, 0.38, 0.14
# and 0.05 has the sums 0.42, 0.39, 0.15 and 0.06. It still goes to expert 0.
#
# **Predict.** Suppose these loads stay as they are. After how many updates of the biases, counting the first one, does
# this token go to expert 1? And by what weight is the answer of expert 1 then multiplied?

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
# multiplied by its share, 0.38.
#
# The next cell trains the character model with eight experts per block, two on each of our four ranks. In each step,
# `train_experts` computes exactly what a single process would. The course's tests check this for all three methods.

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
    "First layer with experts. Dots: medians of ten steps; bars: their lowest to highest value",
    across="steps trained",
    up="tokens of the busiest expert ÷ fair share",
)

# %% [markdown]
# The fair share of an expert is an eighth of all tokens. Shazeer and others (2017) explain that an expert that gets
# many tokens learns faster than the others, so the gate prefers it, and it gets even more tokens. Our 60 steps of a
# tiny model are too few to rank the two methods. DeepSeek-V3 uses the bias and a balancing loss with a very small
# factor.
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
# Along the axis `data`, ranks 0 and 2 have the same expert.
#
# Let's begin with ranks 0 and 1 alone. Each runs its backward pass from the mean loss of *its own* tokens, but we want
# the gradient of the mean over all tokens. The attention layer of rank 0 has seen only rank 0's tokens. So for
# attention and gate we add up the gradients of both ranks and divide by 2, as in lesson 6. Expert 0 is different. It
# has processed tokens of both ranks, and the backward pass of the combine has brought it the gradients of both losses,
# so its gradient is already their sum. Adding rank 1's would be wrong, since that belongs to a different expert. But it
# still has to be divided by 2, because we want the mean of the two losses.
#
# **Predict.** Now take all four ranks. The gradients of the attention layer and of the gate are summed over 4 ranks and
# divided by 4. Over how many ranks do you have to sum the gradient of an expert, and by what do you divide it?

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
        case = square, build, few, recipe
        run = ranks.run(train_experts, *case, gradients=adding, backend="gloo")
        found = run.results
        name = f"sum over {sum_over}, divide by {divisor}"
        curves[name] = found[0].losses
        distances[name] = largest_difference(found, one, square, number=2)
        if distances[name] <= 1e-10:
            course.measured("experts_gradients", sum_over=sum_over, divide_by=divisor)

# %% tags=["figure:16_gradients"]
from course_utils.lessons.experts import gradients_text

for name, gap in distances.items():
    print(f"{name}: after {len(few)} steps, {gap:.0e} away from one process at most")
course.draw.loss_curves(curves, gradients_text(distances, curves))

# %% [markdown]
# An expert's gradient is summed over the two ranks that hold this expert and divided by 4, because the mean is over the
# tokens of all four ranks. Only this version matches the training run of one process, apart from rounding. All versions
# *learn*, and in these few steps you would not notice the mistake from the loss.
#
# If you sum over all 4 ranks, you mix the gradients of different experts, and both experts end up with the same
# gradient. If you divide by 2, the experts' gradients are twice as large as they should be. Adam, which this run uses,
# divides each gradient by its typical size, so its steps hardly change, and this mistake is even harder to see. So
# check your program against a single process, in float64, one step at a time.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# A mixture of experts has many more weights than a dense model, but a token's work grows only with the $k$ experts that
# it goes through. With $k = 1$ it stays almost the same, and with several experts per token, models keep it low by
# making each expert small. The gate chooses the experts by their shares and learns through the shares of the chosen
# ones. If the experts are on different ranks, a layer needs two all-to-alls forward and two backward, plus the small
# one for the counts, and the rank with the most tokens sets the pace. The gradient of an expert is summed over the
# ranks that have this expert, and divided by the number of all ranks.
#
# [Further](16_experts_further.ipynb) measures how many tokens a capacity limit drops and how well a mixture learns, and
# it builds what is standard today, many small experts and a shared one. In [the
# exercises](../exercises/16_experts.ipynb) you write the gate, the dispatch, the combine, the capacity, and the sum of
# the gradients. [Lesson 17](17_long_texts.ipynb) divides something that we have kept in one piece so far: the text
# itself.
#
# **To read**
#
# - Shazeer and others (2017), [*Outrageously Large Neural Networks*](https://arxiv.org/abs/1701.06538), introduces the
#   gate that chooses only $k$ experts and describes how it comes to favour a few of them.
# - Fedus and others (2021), [*Switch Transformers*](https://arxiv.org/abs/2101.03961), is about $k = 1$, capacity and
#   the balancing loss.
# - Wang and others (2024), [*Auxiliary-Loss-Free Load Balancing Strategy for
#   Mixture-of-Experts*](https://arxiv.org/abs/2408.15664), introduces the bias.
