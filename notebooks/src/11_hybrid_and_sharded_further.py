# The optional second notebook of lesson 11. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: which mixture?
#
# In 2020, a student divided a network over two GPUs and watched the loss fall. The report concluded that "the training
# flow works correctly". It did not. The two processes were training two different networks. The last layers of each
# learned from only half of the images, and their gradients were halved as well. You will see how to find such an error,
# and then look at eight questions that the two pages of lesson 11 leave open.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, because each of them stands alone. If a section complains that its ranks were stopped, run
# the first code cell again.
#
# 1. *A report, redone*: convolutions on all ranks, fully connected layers on one of them
# 2. *Is the planner right?*: formulas against sixty published runs, and nine steps on one GPU
# 3. *How many hours, and how much energy?*: what a published training run cost, from its parameters and tokens
# 4. *An optimizer that needs whole matrices*: what a rank can't do with a few rows, and three ways out
# 5. *Shards inside a node, copies between nodes*: how to spare the slow links
# 6. *A model that fits on no rank*: how to build it all the same
# 7. *When do the shards travel?*: ZeRO and FSDP2 on a timeline
# 8. *What else did Llama 3 send?*: the length of a step and two more axes, on paper
# 9. *PyTorch clips DTensors by itself*: the norm of a gradient that is cut
#
# *95 minutes · optional, after [lesson 11](11_hybrid_and_sharded.ipynb) · 4 ranks, 3 to 20 minutes for each section*

# %%
from itertools import combinations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.lessons.hybrid_and_sharded import largest_difference, small_batches
from course_utils.lessons.hybrid_and_sharded import small_model
from course_utils.trace.recorder import phase
from course_utils.vgg import parameter_count

ranks = course.start(4)
ranks.load_torch()
x, y = small_batches(1)[0]  # 64 pieces of Python's help text, and what comes next

# %% [markdown]
# ## A report, redone
#
# The mixtures of the [first page](11_hybrid_and_sharded.ipynb) treat all layers alike. You can also divide different
# *layers* in different ways, and for networks that look at images there is a good reason to. A convolution has few
# weights and produces many activations. A fully connected layer has many weights and produces few activations. In
# AlexNet, the convolutions hold about 5% of the weights, but do more than 90% of the computation ([Krizhevsky
# 2014](https://arxiv.org/abs/1404.5997)).
#
# D. M. Nguyen's [report](../docs/sources.md) asked a search program, which is the subject of lesson 12, how to train
# AlexNet on two GPUs. The program answered that both GPUs should do the convolutions, each with half of the batch, and
# that one GPU should do the last fully connected layers alone. The student then built a smaller network in PyTorch that
# is divided like this. Here is the same network with our digits, enlarged to the size of the report's images:

# %%
from course_utils.lessons.hybrid_and_sharded import enlarged, report_network

data = course.data.digits("float64")
convolutions, dense = report_network()
image = enlarged(data.train_x[:1]).float()  # from 8 × 8 to 28 × 28 pixels
activations = convolutions(image)
print("an image after the convolutions:", activations.numel(), "activations")
print("convolutions:   ", parameter_count(convolutions), "weights")
print("fully connected:", parameter_count(dense), "weights")

# %% [markdown]
# The convolutions are the smaller part here as well, so every rank gets a copy of them. Only rank 0 gets the fully
# connected layers, and the other ranks send it their *activations*. A training step then has four parts:
#
# 1. Every rank takes its own images through the convolutions. Rank 0 gathers the activations and the labels of all
#    ranks.
# 2. Rank 0 goes forward and backward through the fully connected layers, while the others wait.
# 3. Rank 0 scatters the gradients of the activations, so that each rank gets those of its own images. Every rank then
#    goes backward through its convolutions.
# 4. An all-reduce adds up the gradients of the convolutions.
#
# What does this cost rank 1 if it has only 2 images? It gives 2 × 320 activations and 2 labels to the gather. It
# receives gradients from the scatter, but puts nothing into it. Finally it gives the 5,280 gradients of the
# convolutions to the all-reduces, however many images there are. That makes 640 + 2 + 5,280 = 5,922 numbers. We count
# each number once here, although the library may send it several times on its way through a ring.
#
# **Predict.** How many numbers does rank 1 put into its collectives if each of the 4 ranks has 16 images?

# %%
course.predict("hybrid_numbers", within=1.1, numbers=...)

# %% tags=["here:11_hybrid_step"]
# train_network calls `hybrid_step`, the function of an exercise.
from course_utils.lessons.hybrid_and_sharded import same_text, train_network

steps = 66
alone = {"ranks": 1, "backend": "gloo"}  # one process
serial = ranks.run(train_network, data, "serial", steps, **alone).results[0]
hybrid = ranks.run(train_network, data, "hybrid", steps, backend="gloo")
numbers = hybrid.bytes_per_rank[1] // 8 // steps  # of 8 bytes
course.measured("hybrid_numbers", numbers=numbers)
print(same_text({"the hybrid": hybrid.results[0].losses}, serial.losses))
for trained in hybrid.results:  # weights after every step
    assert largest_difference(trained.convolutions, serial.convolutions) <= 1e-10
assert largest_difference(hybrid.results[0].dense, serial.dense) <= 1e-10
for _ in range(2):  # the first run finds the connections
    once = ranks.run(train_network, data, "hybrid", steps=1, backend="gloo")
once.timeline("A hybrid step: activations to rank 0, their gradients back, all-reduces")

# %% [markdown]
# Rank 1 gives 5,120 activations, 16 labels and 5,280 gradients. With data parallelism alone it would give 21,840
# gradients. So rank 1 sends less, but the advantage shrinks with every image, because each image adds 321 numbers. With
# 52 images per rank it would be gone. For rank 0 it is gone with 18, because the scatter sends 3 · 320 numbers for each
# image of a rank, and 5,280 + 18 · 960 is more than 21,840. The other price is time. While rank 0 goes through the
# fully connected layers, the three others wait at the scatter, which is the third bar of each rank. Our layers are so
# small that this takes only a moment. In a network like AlexNet it would be a noticeable part of every step.
#
# Part 4 adds gradients up and doesn't divide. Rank 0 calculates its loss as the mean over all 64 images, so the
# division by 64 has already happened. Each rank's gradient is what its own images contribute to the sum. The
# [exercise](../exercises/11_hybrid_and_sharded.ipynb) on `hybrid_step` lets you write this step.
#
# ### Which rank holds what?
#
# The report shows its division as a list. Each process prints its rank, the name of each parameter, and the device
# where the parameter is. The student's program creates the fully connected layers in *every* process and moves them to
# the device `"cuda:0"`, because "all fully connected layers are on GPU0". Our ranks have no GPUs, so we move them to
# the device `"cpu"`, which is the same device for all our ranks just as GPU 0 is for theirs:


# %% tags=["here:11_placement", "nbval-check-output"]
def held_parameters(on_every_rank):
    parts = dict(zip(("conv", "fc"), report_network(), strict=True))
    if dist.get_rank() > 0 and not on_every_rank:
        del parts["fc"]
    return {
        f"{part}.{name}": parameter.to("cpu").device
        for part, layers in parts.items()
        for name, parameter in layers.named_parameters()
    }


for title, on_every_rank in (("hybrid", False), ("the report", True)):
    held = ranks.run(held_parameters, on_every_rank, backend="gloo").results
    print(f"{title:14}", *(f"rank {rank}" for rank in range(4)))
    for name in held[0]:
        print(f"{name:14}", *(f"{str(rank.get(name, '-')):6}" for rank in held))

# %% [markdown]
# The two lists differ in the last four lines. In the first, only rank 0 has the fully connected layers. In the second,
# every rank has them. The device is the same in all four columns, but that doesn't make it the same layer. Each process
# has called `nn.Linear` and got a tensor of its own, so there are four copies of these layers. In the report, both
# copies were on the same GPU.
#
# ### What the report did with the gradients
#
# Four copies are no problem as long as they start equal and then all receive the same gradient. But the report
# exchanges gradients like this, where `size` is the number of ranks:
#
# ```
# for name, param in model.named_parameters():
#     if "fc" not in name:              # fc: fully connected
#         dist.all_reduce(param.grad.data)
#     param.grad.data /= size
# ```
#
# Take two ranks, and a weight of a fully connected layer. Suppose that rank 0's images give it the gradient 0.6, and
# rank 1's images 0.2. The right gradient is the mean, 0.4, on both ranks. With this code nothing is added up for `fc`,
# so rank 0 uses 0.6 ÷ 2 = 0.3 and rank 1 uses 0.1. Both steps go in a useful direction, but they are different, and
# their mean is half of what it should be. If all gradients were divided by too much, Adam would even hide it, because
# it divides each gradient by its usual size. So compare the gradients of the first step, too, and not only the losses.
#
# **Predict.** What do the four ranks show after 66 steps?

# %%
course.predict(
    "report_shows",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "the loss does not fall",
        "b": "the loss falls, but almost no image is recognised",
        "c": "the loss falls, and most images are recognised",
    },
)

# %% tags=["here:11_report"]
from course_utils.lessons.hybrid_and_sharded import distances, drift_text, symptom

theirs = ranks.run(train_network, data, "report", steps, backend="gloo").results
course.measured("report_shows", answer=symptom(theirs))
shares = ", ".join(f"{trained.accuracy:.0%}" for trained in theirs)
print(f"test images recognised: {shares}; by one process: {serial.accuracy:.0%}")
lines = {"one process": serial.losses}
lines |= {f"rank {rank}": trained.losses for rank, trained in enumerate(theirs)}
course.draw.loss_curves(lines, "The report's version, each rank's loss on its own images")

# %% [markdown]
# All four losses fall. They fall more slowly than the loss of one process, but if you don't have that curve to compare
# them with, they just look like a network that learns. What gives the error away is a comparison of the things that
# ought to be *equal*. Here is how far the fully connected layers of ranks 1 to 3 are from those of rank 0 after each
# step:

# %% tags=["figure:11_drift"]
print(drift_text(theirs))
away = distances(theirs)
far = max(line[-1] for line in away.values())
title = f"The fully connected layers end up to {far:.2g} away from those of rank 0"
course.draw.loss_curves(away, title, y="distance from rank 0's layers")

# %% [markdown]
# Each rank trains fully connected layers of its own, on a quarter of the images and with gradients divided by four. If
# only rank 0 writes a checkpoint, you will never notice that there were three other networks.
#
# The rule for every mixture is that all copies of a weight must start equal and receive the same gradient in every
# step. For the start, `DistributedDataParallel` broadcasts rank 0's weights. You can check the rule by comparing the
# copies before the first step, after it, and after a hundred steps.
#
# ## Is the planner right?
#
# The [second page](11_hybrid_and_sharded_part_2.ipynb) of this lesson ends with a planner's table, which says how to
# train nine models on 8, 64 and 512 GPUs. None of it was run. If you reserved 512 GPUs for a month because of such a
# table, you would want to know how wrong it can be.
#
# The planner's formulas contain some rates that can't be calculated, such as the share of its peak that a GPU reaches
# in a large matrix product. They have to be **fitted** to real runs, which raises a question that you know from
# training a network. A formula with enough adjustable rates can reproduce the runs it was fitted to, and still be wrong
# about the next one. So we do the same as for a network and split the examples. The course has a table of 60 runs on 8
# to 1,024 GPUs, published by the makers of torchtitan, NeMo, Megatron Bridge and LLM Foundry. The odd rows are the
# **training set**, which the rates are fitted to, and the even rows are the **test set**.
#
# Two things are worth testing. The first is how far off a predicted time is. The second is whether the planner puts two
# mixtures in the right *order*, because this is what you need in order to choose. **Kendall's τ** measures it. Take all
# pairs of runs, and count the pairs that the prediction puts in the right order and those that it puts in the wrong
# order. Then τ is the difference of the two counts, divided by the number of pairs. It is 1 if every pair is right, −1
# if every pair is wrong, and about 0 if the prediction is no better than tossing coins.
#
# Here is an example with three runs. Their published speeds are 100, 200 and 300 tokens per second, and the planner
# predicted 110, 320 and 290. Of the three pairs, first–second and first–third are in the right order, and second–third
# is not. So τ = (2 − 1) ÷ 3 = 0.33.
#
# **Predict.** The published speeds of four runs are 10, 20, 30 and 40 thousand tokens per second. The planner predicts
# 20, 10, 30 and 40. What is τ?

# %%
course.predict("kendall", tau=...)


# %% tags=["nbval-check-output"]
def kendalls_tau(published, predicted):
    score = pairs = 0
    for first, second in combinations(range(len(published)), 2):
        really = published[first] < published[second]
        on_paper = predicted[first] < predicted[second]
        score += 1 if really == on_paper else -1
        pairs += 1
    return score / pairs


print(f"{kendalls_tau([100, 200, 300], [110, 320, 290]):.2f}")
tau = kendalls_tau([10, 20, 30, 40], [20, 10, 30, 40])
course.answer("kendall", tau=tau)

# %% [markdown]
# Five of the six pairs are right and one is wrong. Now the planner. The next cell prints the median errors and τ for
# both sets. It compares only runs from the same published table, because two tables can differ in their software. The
# second τ compares only runs that also train the same model. That leaves 15 pairs in each set, so each pair in the
# wrong order costs 0.13. After that, the cell lists the worst rows of the test set:

# %%
from course_utils.lessons.hybrid_and_sharded import halves, planner_pictures
from course_utils.lessons.hybrid_and_sharded import published_runs

for name, result in zip(("training set", "test set"), halves().values(), strict=True):
    print(f"{name:12} {result}")
test_set = [run for run in published_runs() if not run.fits_rates]
errors = [(run.predicted().step / run.seconds - 1, run) for run in test_set]
errors.sort(key=lambda pair: -abs(pair[0]))
print("the test set's worst rows:")
for error, run in errors[:5]:
    print(f"  {100 * error:+.0f} % step time: {run.name}, {run.table}")
with_memory = [run for run in test_set if run.memory]
low = min(run.predicted().memory.total / run.memory - 1 for run in with_memory)
print(f"  {100 * low:+.0f} % memory: the prediction furthest below a published run")
planner_pictures.published(published_runs())

# %% [markdown]
# The test rows are no further off than the training rows, so the rates aren't tailored to their training set. But a
# median hides the tails. Half of the test rows are further off than the median, and the list shows how far the worst of
# them are. The last line matters, too, because a layout that should fit can run out of memory. And when the planner's
# two best mixtures differ by a few percent, it can't tell you which one is faster, and you have to run both for a few
# steps.
#
# ### One GPU alone
#
# All of these runs sent messages. So an error in what a single GPU computes could hide behind an opposite error in the
# messages. Therefore we also measured nine training steps on one NVIDIA H200, without any messages. The steps differ in
# their network, in the length of the texts, in whether the program is compiled, and in what is recomputed. Again the
# rates are fitted to the odd rows, together with the odd rows of the published table:

# %%
from course_utils.lessons.hybrid_and_sharded import measured_steps

steps = measured_steps()
print(f"{'':30}{'tokens':>14} {'measured':>10} {'predicted':>10}")
for run in steps:
    layout, program = run.layout, run.layout.program
    options = "" if program.compiled else ", not compiled"
    options += f", {layout.again} again" if layout.again != "nothing" else ""
    error = run.predicted().step / run.seconds - 1
    tokens = f"{layout.batch} × {run.length:,}"
    times = f"{1000 * run.seconds:7.0f} ms {1000 * run.predicted().step:7.0f} ms"
    half = "fitted" if run.fits_rates else "tested"
    print(f"{run.name:30}{tokens:>14} {times} {100 * error:+4.0f}%  {half}{options}")
for name, result in zip(
    ("training set", "test set"), halves(runs=steps).values(), strict=True
):
    print(
        f"{name:12} median error: step {100 * result.step:.0f}%, memory {100 * result.memory:.0f}%"
    )

# %% [markdown]
# These steps were worth measuring. An earlier version of the planner had been fitted to the published runs alone. Its
# median error was 4% on the published test set, but 13% on these steps, and nearly all of its predictions were too
# slow. One reason was the last layer. With 50,000 different tokens or more, the last layer and the loss take a good
# part of a small model's step, and the formulas counted too many bytes for them. The other reason was attention. Its
# newest GPU programs are written for this generation of GPUs, and by our fit they compute more than twice as fast as
# those in most of the published runs. So the planner now has a rate for each kind.
#
# The steps that are not compiled are furthest off, and the prediction is too fast for both. How often such a program
# reads and writes its memory depends on how it is written, and the planner has only one rate for all of them.
#
# Nine steps are few, so there is one more test, which takes several minutes. The program `workshop.planner_rates` cuts
# all 69 rows into six parts, and predicts each part with rates that are fitted to the other five. The median error in
# step time is then 6% for the published runs and 3% for the steps on one GPU.
#
# ### What the test doesn't cover
#
# A test says something about cases that resemble its examples. The planner knows some features that not one of the
# published runs has used, for example offloading the optimizer's state to CPU memory. In the table of the second page,
# `tested_only=True` leaves these layouts out. Here is the table without this restriction:

# %%
from course_utils.lessons.hybrid_and_sharded import H100, MODELS, best, plan

plans = {}
for gpus in (8, 64, 512):
    plans[gpus] = {name: plan(name, H100(gpus)) for name in MODELS}
planner_pictures.plans(plans)

# %% [markdown]
# How many of these recommendations use a feature that the published runs have tested? Let's count:

# %%
uses = {
    "ZeRO stage 3 or FSDP": lambda layout: layout.zero == 3,
    "8-bit numbers": lambda layout: layout.program.float8,
    "the schedule ZB-V": lambda layout: layout.zero_bubble,
    "optimizer offloaded": lambda layout: layout.offload,
}
chosen = [best(found) for column in plans.values() for found in column.values()]
recommended = [choice.layout for choice in chosen if choice]
published = [run.layout for run in published_runs()]
print(f"{'':22}{len(published)} published runs {len(recommended):4} recommendations")
for name, is_used in uses.items():
    print(f"{name:22}{sum(map(is_used, published)):6}{sum(map(is_used, recommended)):20}")
untested = [is_used for is_used in uses.values() if not any(map(is_used, published))]
bold = [layout for layout in recommended if any(is_used(layout) for is_used in untested)]
print(f"{len(bold)} recommendations use something that no published run here has used")

# %% [markdown]
# If a line has a 0 on the left and a larger number on the right, no run in the table has tested the planner there, and
# its recommendation rests on formulas alone. If it is the other way round, much of the testing was done somewhere other
# than where the recommendations lie. Either way, the good median says nothing about those recommendations.
#
# There are six more gaps, and they remain if you leave the untested layouts out. A layout may combine tested features
# in a way that no run has. For example, the published runs with stage 1 all computed with 8-bit numbers, while the
# planner recommends stage 1 with 2-byte numbers. Its speeds there are probably optimistic.
# [Megatron-LM](https://github.com/NVIDIA/Megatron-LM) reports 41 to 48% of the peak for its own runs on H100 GPUs.
# Models with experts (lesson 16) are not in the table at all, and neither is any network that is not a transformer in
# the manner of GPT or Llama. All the runs used H100 or H200 GPUs in nodes of eight, so
# different nodes are untested. The steps on one GPU have four networks, texts of 1,024 to 8,192 tokens, and one version
# of PyTorch. A network so small that the GPU waits for the next operation to start is not among them, and the planner
# doesn't count this waiting. The split is a mild one, because a row of the test set often has a neighbour in the
# training set that differs in one setting only. And the formulas themselves were written with all rows in view.
#
# ### The planner in a terminal
#
# For a model of your choice, the command
#
# ```
# course plan "Llama 3 70B" --gpus 64
# ```
#
# prints the ten best mixtures, the reason why each of the other nine is slower than the first, and what would run out
# first. With `--tested-only` it leaves out the untested features, as above. It also considers hybrid sharding, which
# the section *Shards inside a node, copies between nodes* explains. The
# [exercise](../exercises/11_hybrid_and_sharded.ipynb) `break_even` derives how many GPUs you can use before a step has
# to wait for messages.
#
# ## How many hours, and how much energy?
#
# How much did it cost to train the model that you have just downloaded? Many papers don't say, but nearly all print the
# number of parameters and the number of tokens. From these two you can calculate the operations, and from the kind of
# GPU you can estimate the rest.
#
# The forward pass of a transformer takes about 2 operations for each parameter and token, a multiplication and an
# addition. The backward pass takes twice as many. So a training run with $N$ parameters and $D$ tokens needs about
# $6\,N D$ operations.
#
# No GPU reaches the peak of its data sheet for weeks. The share of the peak that went into these operations is called
# **MFU**, model FLOPs utilization:
#
# $$\text{MFU} = \frac{6\,N D}{\text{seconds} \cdot \text{devices} \cdot \text{peak}}$$
#
# Let's calculate it for Llama 2 70B. It has $N = 70 \cdot 10^9$ parameters and was trained with $D = 2 \cdot 10^{12}$
# tokens, which makes $6\,ND = 8.4 \cdot 10^{23}$ operations. Its authors give 1,720,320 hours of one A100 GPU. At 312
# TFLOP/s, these hours could have done $1{,}720{,}320 \cdot 3600 \cdot 312 \cdot 10^{12} = 1.93 \cdot 10^{24}$
# operations. So the MFU was 8.4 ÷ 19.3 = 43%.
#
# For the energy we multiply the hours by the 400 W that an A100 may draw, and add 10% for cooling and other losses of
# the data centre. Both are assumptions that the authors of LLaMA made as well, and the processors and the network of
# the nodes aren't counted. This gives 1,720,320 · 400 W · 1.1 = 757 MWh.
#
# **Predict.** The first LLaMA 7B has 6.7 billion parameters and was trained with 1,000 billion tokens, also on A100s.
# Suppose that the MFU was 43% again. How many GPU hours did it take, and how many MWh?

# %%
course.predict("hours", within=1.5, gpu_hours=..., megawatt_hours=...)

# %%
from course_utils.lessons.hybrid_and_sharded import SPENT, energy, utilizations_text

llama = SPENT["LLaMA 7B"]  # its hours: Touvron and others 2023, table 15
by_formula = 6 * llama.parameters * llama.tokens / (0.43 * llama.peak) / 3600
print(f"{by_formula:,.0f} GPU hours by the formula, {llama.device_hours:,} published")
used = energy(llama.device_hours, watts=400) / 1e6
course.answer("hours", gpu_hours=llama.device_hours, megawatt_hours=used)
reached = {name: training.utilizations() for name, training in SPENT.items()}
panel = course.draw.SharesPanel("MFU", reached, say=lambda share: f"{100 * share:.3g}%")
course.draw.shares([panel], utilizations_text(reached), "From published numbers")

# %% [markdown]
# The bars differ, so an estimate is only as good as the MFU that you assume. The rest of the peak is lost in many ways.
# GPUs wait (for messages, for memory, for other stages, after failures), and even large matrix products stay below
# the peak. Recomputed operations don't count either. PaLM's authors defined the MFU this way, so that a program can't
# get a better score by computing more ([Chowdhery and others 2022](https://arxiv.org/abs/2204.02311), appendix B).
#
# The bars have a second part, because $6\,N$ leaves out attention's products. PaLM's authors include them in the MFU,
# and so does the title. Attention multiplies activations by activations, so no parameter takes part in it. Counted
# without a mask, these products take $12\,L s h$ operations for each token, forward and backward. Here $L$ is the
# number of layers, $s$ the tokens of a text, and $h$ the width of all heads together. LLaMA 7B has $L = 32$, $s = 2048$
# and $h = 4096$. That makes $3.2 \cdot 10^9$ operations, compared with $6\,N = 40 \cdot 10^9$, so 8% are missing. With
# four times longer texts, it would be 32%.
#
# ### A convolution uses each weight many times
#
# For convolutions, $2N$ is not even close, because a convolution uses each weight at every pixel of its output. PyTorch
# can count the operations of a forward pass. Here is the network of *A report, redone* with one image, once by the rule
# of $2N$ and once by counting:

# %%
from torch.utils.flop_counter import FlopCounterMode

from course_utils.lessons.hybrid_and_sharded import report_network

convolutions, dense = report_network()
image = torch.zeros(1, 1, 28, 28)
for name, layers in {"convolutions": convolutions, "fully connected": dense}.items():
    with FlopCounterMode(display=False) as counter:
        image = layers(image)
    rule = 2 * parameter_count(layers)
    print(f"{name:16} 2 N = {rule:6,}, counted {counter.get_total_flops():7,}")

# %% [markdown]
# The first convolution has 250 weights without its biases, and an output of 24 × 24 pixels. So it does 2 · 250 · 576 =
# 288,000 operations. The second one has 5,000 weights and 8 × 8 pixels, which makes 640,000. For the fully connected
# layers the rule is right, except that the counter leaves out the biases. For the forward and the backward pass
# together, the usual factor is 3. It is a little too much, because nothing needs the gradient of the images, and the
# first layer's backward pass therefore only takes 288,000 operations. The exercise `mfu` works for both kinds of
# network.
#
# ## An optimizer that needs whole matrices
#
# ZeRO and FSDP2 rest on a property of Adam that you may never have thought about. Adam changes each weight with the
# help of that weight's own gradients and of nothing else. A rank that owns 12 rows of a matrix can therefore do Adam's
# step for its 12 rows without asking any other rank. Not every optimizer allows this, and since 2024 large models have
# been trained with one that doesn't.
#
# **Muon** ([Jordan 2024](https://kellerjordan.github.io/posts/muon/)) looks at the gradient of a layer as a matrix, or
# to be exact, at the average of its recent gradients. If a few directions dominate this matrix, a plain step changes
# the layer mainly in these directions. So Muon replaces it by the nearest matrix whose rows (or columns, if there are
# fewer of them) are perpendicular to each other and have length 1. This is called **orthogonalisation**. Afterwards no
# direction dominates.
#
# Here is an example with two rows:
#
# $$G = \begin{pmatrix} 2 & 1 \\ 1 & 2 \end{pmatrix} \quad\text{becomes}\quad \begin{pmatrix} 1 & 0 \\ 0 & 1
# \end{pmatrix}.$$
#
# The two rows of $G$ point in similar directions. In the result, what they had in common is gone. Now let two ranks own
# one row each, and let each orthogonalise what it has. A single row is perpendicular to all the other rows it knows of,
# as there are none, so it is only shortened to length 1. Rank 0 gets $(2, 1) ÷ \sqrt 5 = (0.89, 0.45)$ and rank 1 gets
# $(0.45, 0.89)$. The part that they have in common is still there.
#
# How do you orthogonalise a large matrix quickly? Muon repeats a polynomial of matrix products five times, which is
# called a Newton–Schulz iteration. It leaves the directions of the matrix as they are and brings all its singular
# values near 1. The three coefficients are Jordan's. The result is only nearly orthogonal, which according to Jordan is
# enough for training:


# %%
def orthogonalised(gradient, rounds=5):
    X = gradient / gradient.norm()
    for _ in range(rounds):
        A = X @ X.T
        X = 3.4445 * X - 4.7750 * A @ X + 2.0315 * A @ A @ X
    return X


# %% [markdown]
# Now take the matrix `mlp.down` of the lesson's small transformer, which has 48 rows and 192 columns. With FSDP2 each
# of four ranks owns 12 of its rows, and also the gradients of these rows. One process that has the whole gradient
# orthogonalises it, and then each rank tries to do the same with its 12 rows.
#
# **Predict.** How do the ranks' 48 rows together compare with the 48 rows of the one process?

# %%
choices = {
    "a": "they are the same up to rounding",
    "b": "each rank's rows have a different length, but the same directions",
    "c": "they point in different directions",
}
course.predict("muon", answer=..., choices=choices)


# %%
def both_updates(x, y):
    model = small_model()
    for layer in [*model, model]:
        fully_shard(layer)
    mine = slice(16 * dist.get_rank(), 16 * (dist.get_rank() + 1))  # of 64 texts
    loss = cross_entropy(model(x[mine]).flatten(0, 1), y[mine].flatten())
    loss.backward()
    gradient = model[1].mlp.down.weight.grad  # a DTensor, of which 12 rows are here
    by_shard = orthogonalised(gradient.to_local())
    gathered = orthogonalised(gradient.full_tensor())  # an all-gather
    return by_shard, gathered.chunk(4)[dist.get_rank()]


model = small_model()
cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
whole = orthogonalised(model[1].mlp.down.weight.grad)

results = ranks.run(both_updates, x, y, backend="gloo").results
by_shard, gathered = (torch.cat(parts) for parts in zip(*results, strict=True))
assert largest_difference(gathered, whole) < 1e-10
cosines = torch.cosine_similarity(by_shard, whole, dim=1)
same_length = largest_difference(by_shard.norm(dim=1), whole.norm(dim=1)) < 1e-10
turned = float(cosines.min()) < 1 - 1e-10
course.measured("muon", answer="c" if turned else "a" if same_length else "b")
for name, update in {"by shard": by_shard, "gathered": gathered}.items():
    off = float((update - whole).norm() / whole.norm())
    print(f"{name}: {off:.1g} of its length away from what one process gets")

# %% [markdown]
# Each rank makes its 12 rows nearly perpendicular to each other, but knows nothing of the 36 rows of the other ranks.
# When the ranks gather the gradient first, they agree with one process up to rounding.
#
# ### The loss doesn't tell
#
# Does it matter, as long as each rank's update goes in a useful direction? Let's train with both versions. The network
# is a chain of four matrices of 64 × 64 numbers, which learns our digits. Each of the four ranks keeps 16 rows of every
# matrix and 16 rows of each average of recent gradients. `train_muon` gathers the weights for the forward pass,
# reduce-scatters the gradients and adds them to the averages. Then it calls a function of ours, which gets this rank's
# rows of all averages, the `momenta`, and returns its rows of every update. This is the version that has no messages:


# %%
def own_rows(momenta, orthogonalise):
    return [orthogonalise(rows) for rows in momenta]


# %%
from course_utils.lessons.data_parallel import mean_losses
from course_utils.lessons.hybrid_and_sharded import first_matrices, muon_drift_text
from course_utils.lessons.hybrid_and_sharded import train_muon, train_muon_serially

digits = course.data.digits("float64")
cuts = [slice(64 * step, 64 * step + 64) for step in range(20)]
batches = [(digits.train_x[cut], digits.train_y[cut]) for cut in cuts]
serial = train_muon_serially(batches)
wrong = ranks.run(train_muon, own_rows, batches, backend="gloo").results
losses = {"one process": serial.losses, "own rows": mean_losses(wrong)}
moved = (serial.weights[-1] - torch.stack(first_matrices())).norm()
apart = float((wrong[0].weights[-1] - serial.weights[-1]).norm() / moved)
course.draw.loss_curves(losses, muon_drift_text(losses["own rows"], serial.losses, apart))

# %% [markdown]
# From the losses alone you can't tell that something is wrong. All shapes fit, no rank raises an error, and all ranks
# have the same weights. It is simply a different optimizer, which depends on the number of ranks. The rate that was
# best on 8 GPUs may then be a bad one on 64.
#
# There is a quick test, though. The polynomial brings the singular values of a matrix near 1, and leaves none of them
# above 1.21. Suppose now that two shards contain the same row. Each shard makes its row 1 long and knows nothing of the
# other. But the matrix with the rows $(1, 0)$ and $(1, 0)$ has a singular value of $\sqrt 2$. With four shards it can
# be up to twice the largest value of a shard. So look at the largest singular value of an update:


# %%
def largest_singular_values(updates):
    return [round(float(torch.linalg.matrix_norm(each, ord=2)), 2) for each in updates]


print("one process:", *largest_singular_values(serial.updates))
print("own rows:   ", *largest_singular_values(wrong[0].updates))

# %% [markdown]
# ### Three right ways
#
# 1. *Gather*: every rank gathers the average of every matrix, orthogonalises all of them, and keeps its own rows of
#    the result. All ranks do the same work.
# 2. *Owner*: each matrix has an owner. In an all-to-all, every rank sends each owner its rows of the owner's matrix.
#    The owner orthogonalises this one matrix. A second all-to-all takes the rows of the update back.
# 3. *Replicate*: there are no shards. An all-reduce gives every rank the whole gradients, and each rank keeps
#    everything and computes everything.


# %%
from course_utils.lessons.hybrid_and_sharded import whole_matrix


def gather(momenta, orthogonalise):
    updates = [orthogonalise(whole_matrix(rows)) for rows in momenta]  # an all-gather
    return [update.chunk(4)[dist.get_rank()] for update in updates]


def owner(momenta, orthogonalise):  # with as many matrices as ranks
    rows = torch.cat(momenta)  # 16 rows of each matrix
    mine, back = torch.empty_like(rows), torch.empty_like(rows)
    dist.all_to_all_single(mine, rows)  # 64 rows of one matrix
    dist.all_to_all_single(back, orthogonalise(mine))
    return back.chunk(4)


def replicate(momenta, orthogonalise):  # whole matrices
    return [orthogonalise(momentum) for momentum in momenta]


# %% [markdown]
# Here is what a rank has in each of them, found in a run of one step. In the second column you can see which rows are
# there when a rank orthogonalises:

# %%
from course_utils.lessons.hybrid_and_sharded import shard_pictures

ways = {"own rows": own_rows, "gather": gather, "owner": owner, "replicate": replicate}


def trained(name, batches):
    sharded = name != "replicate"
    return ranks.run(train_muon, ways[name], batches, sharded, backend="gloo")


one_step = {name: trained(name, batches[:1]).results for name in ways}
shard_pictures.muon(one_step, train_muon_serially(batches[:1]))

# %% [markdown]
# How many bytes does Muon add to a step? A rank's 16 rows of 64 numbers of 8 bytes are 8.2 KB. With *gather*, they go
# to three other ranks, for each of the four matrices. This makes 4 × 3 × 8.2 = 98 KB.
#
# **Predict.** How many KB does a rank send with *owner*, in both directions together?

# %%
course.predict("muon_owner", within=1.05, KB=...)

# %%
from course_utils.lessons.hybrid_and_sharded import muon_ways_text, sent_for
from course_utils.lessons.hybrid_and_sharded import times_orthogonalised

sent, kept, computed = {}, {}, {}
for name in ("gather", "owner", "replicate"):
    run = trained(name, batches)
    for of_rank in run.results:
        for weights, expected in zip(of_rank.weights, serial.weights, strict=True):
            assert largest_difference(weights, expected) < 1e-10  # after every step
    purposes = ("weights", "gradients", "Muon")
    sent[name] = {each: sent_for(run.events, each, 4, len(batches)) for each in purposes}
    kept[name] = {"weights and momentum": run.results[0].kept}
    computed[name] = times_orthogonalised(run.events, len(batches))
course.measured("muon_owner", KB=round(sent["owner"]["Muon"] / 1000, 1))
times = {name: {"matrices": number} for name, number in computed.items()}
panels = [
    course.draw.SharesPanel("sent in a step", sent),
    course.draw.SharesPanel("kept by rank 0", kept),
    course.draw.SharesPanel("orthogonalised", times, say="{:g}".format),
]
course.draw.shares(panels, muon_ways_text(sent, computed))

# %% [markdown]
# All three agree with one process after every step, as the `assert` has checked. With *owner*, a rank sends three
# quarters of its rows away, which are 3 × 8.2 = 25 KB, and three quarters of an update back.
#
# Let $n$ be the bytes of all matrices. With $P$ ranks, *gather* adds $\frac{P-1}{P} n$ to a step, and *owner* adds
# $2\frac{P-1}{P^2} n$, so the more ranks there are, the better it is. On 64 ranks these are $0.98\,n$ and $0.03\,n$.
# It also divides the arithmetic. What it needs is a number of matrices that can be dealt out evenly, because all ranks
# wait for the one that has the largest share. *Replicate* sends the least here, but a rank keeps four times as much.
#
# So what do large training runs do? [Liu and others (2025)](https://arxiv.org/abs/2502.16982) trained a model with 16
# billion parameters and divided Muon's state as in ZeRO stage 1. In each step, a rank gathers the gradients of its
# matrices, orthogonalises the whole matrices, and keeps its own part of the result. Jordan's own implementation deals
# out the matrices. The first implementations of ZeRO were less suitable. They put all parameters into one long flat
# vector and cut that into equal parts, so that the border between two ranks could be in the middle of a row. For Adam
# this makes no difference. For Muon, such a part isn't even a matrix.
#
# ### What about torch.optim.Muon?
#
# PyTorch has had Muon since version 2.9. It knows nothing of ranks, so everything depends on what you give it. If you
# give it a rank's rows as an ordinary tensor, you get the wrong update from above. But a DTensor (lesson 9) knows that
# it is a part of something larger, and each of its matrix products asks the other ranks for what it needs:


# %%
from torch.distributed.tensor import Shard, distribute_tensor

from course_utils.lessons.hybrid_and_sharded import matrix_gradients, torchs_muon
from course_utils.lessons.model_parallel import collectives_in

same_settings = {"lr": 0.05, "momentum": 0.9, "nesterov": False, "weight_decay": 0}


def muon_of_dtensors(x, y):
    mesh = dist.init_device_mesh("cpu", (4,))
    matrices = first_matrices()
    weights = [
        nn.Parameter(distribute_tensor(each, mesh, [Shard(0)])) for each in matrices
    ]
    for weight, gradient in zip(weights, matrix_gradients(matrices, x, y), strict=True):
        weight.grad = distribute_tensor(gradient, mesh, [Shard(0)])
    optimizer = torch.optim.Muon(weights, **same_settings)
    with phase("step"):
        optimizer.step()
    return torch.stack([weight.full_tensor().detach() for weight in weights])


after_one_step = torchs_muon(batches[:1])[0]  # ordinary tensors, in one process
run = ranks.run(muon_of_dtensors, *batches[0], backend="gloo")
difference = largest_difference(run.results[0], after_one_step)
print(f"DTensors differ from one process by {difference:.1g}")
number = len(collectives_in(run.events, "step"))
print(f"collectives for each of four matrices: {number / 4:g}")
theirs = torchs_muon(batches)[-1]
share = float((theirs - serial.weights[-1]).norm() / moved)
print(f"after {len(batches)} steps torch's weights are {share:.1%} away from ours")

# %% [markdown]
# With DTensors the result is right, but each matrix takes 15 all-gathers and an all-reduce. Five rounds have three
# products each, and every product gathers what it needs again. The all-reduce is for the norm. One all-gather before
# the first round would be enough. And torch's weights aren't quite ours, because it calculates the five rounds in
# bfloat16, in which a number has only 7 binary digits after the point (lesson 13).
#
# ## Shards inside a node, copies between nodes
#
# By default, FSDP2 gathers every weight twice per step. Inside a node this is cheap, but between nodes the links are
# perhaps ten times slower. On 512 GPUs, plain FSDP2 sends nearly all weights through these slow links, although a model
# with 7 billion parameters would also fit if you divided it over the 8 GPUs of one node.
#
# **HSDP**, hybrid sharding, does exactly that. It needs a mesh with two axes. Along the inner axis, inside a node, the
# weights are divided as in FSDP. Along the outer axis, every node has the same copy, and the gradients are added up
# with an all-reduce. Each rank only contributes the part of the gradients that it owns.
#
# How much does that save? Let $X$ be the bytes of all weights, and also those of all gradients, and take two nodes of 8
# GPUs. With plain FSDP, two all-gathers and a reduce-scatter go around a ring through all 16 GPUs. Every link of a ring
# carries $\frac{15}{16}X$ in each of the three, so the link that leaves a node carries $3 \cdot \frac{15}{16}X = 2.8X$.
# With HSDP all of this stays inside the nodes. Only the all-reduce crosses between the nodes. Each of the 8 GPUs in a
# node owns $\frac18 X$ of the gradients, and in a ring of two ranks it sends $2\cdot\frac12\cdot\frac18 X = \frac18 X$.
# All 8 GPUs together send $X$.
#
# Two nodes are the best case for HSDP. In the same way, 64 nodes give $3.0X$ for plain FSDP and $2.0X$ for HSDP. And if
# plain FSDP gathers between the two nodes before it gathers inside them, it sends $3 \cdot \frac12 X = 1.5X$ instead of
# $2.8X$. The price of HSDP is memory. On 16 GPUs, plain FSDP keeps $\frac1{16}$ of the weights on each, and HSDP keeps
# $\frac18$. In PyTorch the difference is only the mesh. `fully_shard` divides along the last axis of a two-dimensional
# mesh, and copies along the first.
#
# **Predict.** Four ranks play two nodes with two GPUs each. The matrix `mlp.up` has 192 rows. How many rows does a rank
# keep with plain FSDP2, and how many with HSDP?

# %%
course.predict("hybrid_shards", plain=..., hybrid=...)


# %%
def sharded_step(nodes, x, y):
    sizes = (nodes, 4 // nodes)
    mesh = dist.init_device_mesh("cpu", sizes, mesh_dim_names=("nodes", "gpus"))
    model = small_model()
    for layer in [*model, model]:
        fully_shard(layer, mesh=mesh)
    mine = slice(16 * dist.get_rank(), 16 * (dist.get_rank() + 1))
    cross_entropy(model(x[mine]).flatten(0, 1), y[mine].flatten()).backward()
    weight = model[1].mlp.up.weight
    return len(weight.to_local()), weight.grad.full_tensor()


model = small_model()
cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
rows = {}
for name, nodes in {"plain": 1, "hybrid": 2}.items():
    results = ranks.run(sharded_step, nodes, x, y, backend="gloo").results
    for _, gradient in results:
        assert largest_difference(gradient, model[1].mlp.up.weight.grad) < 1e-10
    rows[name] = results[0][0]
course.measured("hybrid_shards", **rows)

# %% [markdown]
# Both give every rank the gradient that one process calculates. With plain FSDP2 the mesh has one node of four GPUs
# here, which does the same as no mesh at all, so each rank keeps a quarter of the rows. With HSDP it keeps half of
# them.
#
# ## A model that fits on no rank
#
# `small_model()` builds the whole model on every rank, and `fully_shard` then throws most of it away. With 70 billion
# parameters in `float32`, that would need 280 GB in every process before the first step. Eight processes on a node
# would need more than 2 TB of CPU memory for a model of which each should keep one eighth.
#
# The **meta device** solves this. A tensor on it has a shape and a data type, but no numbers and no memory, and so you
# can build a model of any size in a moment:

# %%
from course_utils.lessons.model_parallel import character_model

with torch.device("meta"):
    large = character_model(96, width=8192, depth=80, heads=64, context=16)
device = large[1].mlp.up.weight.device
print(f"{parameter_count(large) / 1e9:.0f} billion parameters on the device {device}")

# %% [markdown]
# Next you shard the empty model, call `to_empty` to get memory for the shards, and load the numbers. The order of the
# first two is what matters. Let's count how many bytes `to_empty` allocates on rank 0 if it comes after `fully_shard`,
# and if it comes before.


# %% tags=["nbval-check-output"]
def local_part(parameter):
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


def allocated(shard_first):
    with torch.device("meta"):
        model = small_model()
    if shard_first:
        for layer in [*model, model]:
            fully_shard(layer)
    model.to_empty(device="cpu")
    return sum(local_part(parameter).nbytes for parameter in model.parameters())


for shard_first in (True, False):
    order = "fully_shard, then to_empty" if shard_first else "to_empty first"
    nbytes = ranks.run(allocated, shard_first, backend="gloo").results[0]
    print(f"{order:27}{nbytes:8,} bytes")

# %% [markdown]
# If you shard first, each rank allocates a quarter. If not, every rank allocates the whole model, which is what you
# wanted to avoid.
#
# There is a second trap. After `to_empty`, the tensors contain whatever bytes were in that memory before. A checkpoint
# fills the weights, but it doesn't fill buffers that aren't saved in it, such as a table of positions. You have to
# calculate these again by hand, or the model will train with whatever they contain, without any error.
#
# ### Mixed precision and clipping with FSDP2
#
# Here are all the steps in one function, together with two more things that large training runs need. A
# `MixedPrecisionPolicy` asks FSDP2 to gather the weights as bfloat16, a 2-byte format (lesson 13), and to add up the
# gradients as float32. And `clip_grad_norm_` clips the gradient. Only rank 0 has the weights at first, all of them,
# which is what `full_state_dict` means. With `broadcast_from_rank0` it sends every tensor to all ranks, and each rank
# keeps its shard. So rank 0 still needs room for the whole model. If that is too much,
# `torch.distributed.checkpoint.load` lets each rank read its own shards from a file.

# %%
from torch.distributed.checkpoint.state_dict import StateDictOptions
from torch.distributed.checkpoint.state_dict import set_model_state_dict

from_rank_0 = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


def three_layers():
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(64, 64) for _ in range(3)])


def in_practice(inputs):
    weights = three_layers().state_dict() if dist.get_rank() == 0 else {}
    with torch.device("meta"):
        model = three_layers()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    dtypes = {}

    def note_dtype(layer, inputs, outputs):  # while the weight is gathered
        dtypes["computing"] = layer.weight.dtype

    model[0].register_forward_hook(note_dtype)
    for layer in [*model, model]:
        fully_shard(layer, mp_policy=policy)
    model.to_empty(device="cpu")
    set_model_state_dict(model, weights, options=from_rank_0)

    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    loss = model(inputs.chunk(4)[dist.get_rank()]).float().square().mean()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.05)
    optimizer.step()
    weight = model[0].weight
    dtypes["shard"] = weight.dtype
    dtypes["Adam's averages"] = optimizer.state[weight]["exp_avg"].dtype
    return dtypes, norm.full_tensor().item()


inputs = torch.randn(32, 64)
run = ranks.run(in_practice, inputs, backend="gloo")
for name, dtype in run.results[0][0].items():
    print(f"{name}: {dtype}")
print("norms on the ranks:", *(f"{norm:.8f}" for dtypes, norm in run.results))
whole = three_layers()
whole(inputs).square().mean().backward()
serial_norm = nn.utils.clip_grad_norm_(whole.parameters(), max_norm=0.05).item()
print(f"norm in one process, with float32 throughout: {serial_norm:.8f}")

# %% [markdown]
# The shards keep the format in which the model was built, which is float32 here, and Adam works on them. With this
# policy, a weight takes 4 bytes, its gradient 4 and Adam's averages 8. That again makes 16 bytes per weight, which the
# ZeRO paper splits into 2 + 2 + 12. Megatron-LM also keeps its gradients in 4 bytes, for a total of 2 + 4 + 12 = 18.
#
# The weights are DTensors (lesson 9), which know how they are cut. So `clip_grad_norm_` adds up the squares of all
# shards by itself, and all ranks get the same norm. It differs a little from the serial norm because bfloat16 rounds.
# This works if all gradients are on *one* mesh. If some weights are also cut along `tensor` and others aren't, PyTorch
# may stop with an error, and along `pipeline` you still have to add up the squares yourself, because each stage is a
# model of its own.
#
# ## When do the shards travel?
#
# The second page drew blocks, which show what is where. Here are the same two methods on a timeline, which shows what
# happens when. First come two steps of ZeRO's stage 1 with 50,000 weights. The "backward pass" is a multiplication
# here, because we are interested in what comes after it:


# %%
def two_steps(length):
    P, rank = dist.get_world_size(), dist.get_rank()
    weights = torch.linspace(1, 2, length, dtype=torch.float64)
    own = weights.chunk(P)[rank]  # shares its memory with weights
    own.grad = torch.empty_like(own)
    optimizer = torch.optim.Adam([own], lr=0.1)
    for _ in range(2):
        with phase("backward"):
            gradient = (rank + 1) * weights
        dist.reduce_scatter_single(own.grad, gradient)
        with phase("Adam"):
            own.grad /= P
            optimizer.step()
        dist.all_gather_single(weights, own.clone())
    return weights


expected = torch.linspace(1, 2, 50_000, dtype=torch.float64)
optimizer = torch.optim.Adam([expected], lr=0.1)
for _ in range(2):
    expected.grad = 2.5 * expected  # the mean of 1, 2, 3 and 4 times the weights
    optimizer.step()
for _ in range(2):  # the first run finds the connections
    run = ranks.run(two_steps, 50_000, backend="gloo")
assert all(largest_difference(weights, expected) < 1e-10 for weights in run.results)
run.timeline("In ZeRO-1, Adam runs between the two halves of an all-reduce")

# %% [markdown]
# In each of the two steps there is a reduce-scatter, then Adam on a quarter of the weights, then an all-gather. The
# result is that of Adam in one process, as the `assert` has checked.
#
# Now FSDP2, with the small transformer. It has four layers, an embedding, two blocks and the last layer. The cell also
# lists the collectives of rank 0 in one step:


# %%
def fully_sharded(x):
    model = small_model()
    for layer in [*model, model]:
        fully_shard(layer)
    with phase("forward"):
        loss = model(x).square().mean()
    with phase("backward"):
        loss.backward()


for _ in range(2):  # the first run finds the connections
    run = ranks.run(fully_sharded, x, backend="gloo")
on_rank_0 = [event for event in run.events if event.rank == 0]
in_order = sorted(on_rank_0, key=lambda event: event.start)
print(*(event.name for event in in_order if event.kind == "collective"), sep=", ")
run.timeline("FSDP2: collectives in the forward pass and in the backward pass")

# %% [markdown]
# In the forward pass, each layer's weights are gathered before the layer computes. In the backward pass they are
# gathered again, and each layer's gradients are reduce-scattered. The list shows the order. On GPUs, these messages run
# while the layers before and after them compute. Our ranks share a few cores, so there is little to hide them behind.
#
# ## What else did Llama 3 send?
#
# The [first page](11_hybrid_and_sharded.ipynb) compares 240 GB, which one of Llama 3's GPUs sent along `tensor`, with a
# step of 6.2 s. How long was a step? For each of 16 × 8,192 tokens, every weight costs two operations forward and four
# backward, and the 8 × 16 = 128 GPUs of a pipeline share this work. (Attention adds a few percent, which we leave out.)
# The paper reports that each GPU did 400 · 10¹² FLOPs per second, so a step took
#
# $$\frac{6 \times 405 \cdot 10^9 \times 16 \times 8192}{128 \times 400 \cdot 10^{12}} = 6.2 \text{ s} .$$
#
# What about the other two axes? Along `data`, a GPU all-reduces the gradients of 405 billion ÷ 128 weights. At 2 bytes
# each, these are 6.3 GB, and in a ring of 128 the factor is almost 2. Along `pipeline`, with the 1F1B of lesson 10, it
# sends the 268 MB of each of 16 sequences forward and, unless it is at an end, as much back:
#
# | axis | a GPU sends in a step | at 450 GB/s (in a node, NVLink of lesson 13) | at 50 GB/s (between nodes) |
# |---|---|---|---|
# | `tensor` | 16 × 15 GB = 240 GB | 0.53 s | 4.8 s |
# | `data` | 2 × 6.3 GB = 12.6 GB | 0.03 s | 0.25 s |
# | `pipeline` | 16 × 2 × 0.27 GB = 8.6 GB | 0.02 s | 0.17 s |
#
# For these bytes, the seconds are lower bounds, because no message travels faster than its link allows. The paper
# differs from our calculation in two respects. Its ranks along `data` divide gradients and optimizer state, much like
# ZeRO's stage 2, and send 12.6 GB of gradients (as 4-byte numbers) and 6.3 GB of weights. And its schedule is
# interleaved (lesson 10). If each rank has two smaller stages instead of one, for example, the last row doubles.
# Neither changes the conclusion of the first page, that only `tensor` has to stay inside a node. The other messages
# take a fraction of the step even between nodes.
#
# ## PyTorch clips DTensors by itself
#
# On the first page we added up the squares of a gradient along `tensor` by hand. A DTensor knows how it is distributed
# over a mesh, so PyTorch can do this for you. Here is the example of that page, a gradient of (3, 4, 12) on two ranks,
# of which the first two numbers are cut (`Shard`) and the third is copied (`Replicate`):


# %%
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn.utils import clip_grad_norm_


def clip_dtensors():
    mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("tensor",))
    parameters = []
    for gradient, placement in (([3.0, 4.0], Shard(0)), ([12.0], Replicate())):
        gradient = distribute_tensor(torch.tensor(gradient), mesh, [placement])
        parameter = torch.nn.Parameter(torch.zeros_like(gradient))
        parameter.grad = gradient
        parameters.append(parameter)
    norm = clip_grad_norm_(parameters, max_norm=6.5).full_tensor().item()
    return norm, [round(p.grad.to_local().item(), 3) for p in parameters]


results = ranks.run(clip_dtensors, ranks=2, backend="gloo").results
for rank, (norm, clipped) in enumerate(results):
    print(f"rank {rank}: norm {norm:.1f}, clipped gradients {clipped}")
assert all(abs(norm - 13) < 1e-5 for norm, _ in results)

# %% [markdown]
# `clip_grad_norm_` finds 13 on both ranks, and halves everything. Along `pipeline` you still have to do it yourself, as
# above.
#
# ## What you take with you
#
# All copies of a weight must start equal and receive the same gradient, and a loss curve won't tell you if they don't.
# A planner's median error says how good it is on cases like those of its test set, so find out which features no test
# case has used. The operations of a training run are about $6ND$. With an assumed MFU they give an estimate of its
# hours and its energy. Sharding relies on the optimizer treating each weight on its own.
# If it doesn't, as with Muon, whole matrices have to be somewhere, and a test of the singular values shows whether they
# were. HSDP keeps the gathers inside
# a node, and the meta device builds models that no rank could hold.
#
# **To read**
#
# - Austin and others (2025), [*How to Scale Your Model*](https://jax-ml.github.io/scaling-book/), works out for TPUs
#   and GPUs which mixture is limited by what.
# - Jordan (2024), [*Muon*](https://kellerjordan.github.io/posts/muon/), derives the optimizer and its polynomial.
# - Liu and others (2025), [*Muon is Scalable for LLM Training*](https://arxiv.org/abs/2502.16982), shows how Muon and
#   ZeRO go together.
# - Liang and others (2024), [*TorchTitan*](https://arxiv.org/abs/2410.06511), composes FSDP2, HSDP, tensor and pipeline
#   parallelism in PyTorch, and measures them.

# %%
ranks.stop()
