# The lesson on other people's manuals. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Can I now read any framework's manual?
#
# A colleague moves a training program from TensorFlow to PyTorch. It trains with plain SGD, it runs, no error appears,
# and the loss falls, but far too slowly. With four ranks, each update of the weights turns out to be only a quarter of
# its proper size. Both manuals explain why, in one sentence each: the first framework *adds up* the gradients of all
# ranks, and the second *averages* them. Nothing crashed, because each framework did exactly what its own manual
# promises.
#
# This lesson teaches you to spot such sentences. You will read the same training step written in four ways, see which
# parts of it a framework does for you, and then read a few sentences of manuals so closely that you can calculate what
# they mean. At the end you have six questions that you can ask of any manual, whichever framework comes next.
#
# *50 minutes · builds on all lessons before it · 4 ranks*

# %%
from functools import partial

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

import course_utils as course
from course_utils.lessons.data_parallel import average_gradients, broadcast_parameters
from course_utils.lessons.data_parallel import digits_mlp, flat_parameters

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## Two paragraphs to start with
#
# Here are two paragraphs of TensorFlow's guide to [distributed
# training](https://www.tensorflow.org/guide/distributed_training) (CC BY 4.0). Their wording is from about 2020, before
# TensorFlow 2.4. The words that a reader has to know are underlined.

# %% tags=["here:15_paragraphs"]
from course_utils.lessons.read_the_manual import PASSAGES, pictures

title = "Two paragraphs of TensorFlow's manual"
pictures.reading(PASSAGES, title, "Underlined: words to know", lessons=False)

# %% [markdown]
# Write down every underlined word that you could *not* explain to a colleague. The paragraphs come back at the end of
# the page, where a number below each term tells you which lesson taught it.
#
# **Predict.** One of the underlined terms has not been taught in this course. Which one?

# %%
choices = {
    "a": "Mirrored",
    "b": "gRPC",
    "c": "slices of input data",
    "d": "updating variables asynchronously",
}
course.predict("untaught_word", answer=..., choices=choices)  # "a" to "d"

# %% [markdown]
# ## One step by hand
#
# The surest way to understand what a framework does is to write its step yourself first. We take a batch of 64 digits
# and an MLP with three layers, which has 8,970 weights, and let one process take one step of SGD. Everything is in
# float64, so that we can compare strictly.

# %% tags=["nbval-check-output"]
x, y, *_ = course.data.digits("float64")
x, y = x[:64], y[:64]

model = digits_mlp(seed=0).double()
cross_entropy(model(x), y).backward()
SGD(model.parameters(), lr=0.1).step()
alone = flat_parameters(model)
print(f"{len(x)} digits of {x.shape[1]} pixels, {len(alone):,} weights")

# %% [markdown]
# Now two ranks take the same step, as in lesson 6, while the other two that we started stay idle. To make it harder,
# each rank draws different initial weights (`seed=rank`), so rank 0 has to broadcast its own first. Then each rank
# takes every second image, calculates its gradients, and averages them with those of the other rank.


# %%
def by_hand(x, y):
    rank, P = dist.get_rank(), dist.get_world_size()
    model = digits_mlp(seed=rank).double()
    broadcast_parameters(model)
    optimizer = SGD(model.parameters(), lr=0.1)
    cross_entropy(model(x[rank::P]), y[rank::P]).backward()
    average_gradients(model)
    optimizer.step()
    return model


# %% [markdown]
# How can we see what such a program sends? DDP, which comes next, calls its collectives from C++, where Python can't
# watch them, but the profiler of lesson 14 can. `step_seen` runs a program under that profiler on each rank. It returns
# the weights after the step, the collectives before the first forward pass and after it, and how many weights and
# gradients the rank keeps in memory.

# %%
from course_utils.lessons.read_the_manual import calls_text, same_text, step_seen

steps = {}


def run_on_two(name, program):
    steps[name] = ranks.run(step_seen, program, x, y, backend="gloo", ranks=2).results
    print(same_text(name, steps[name], alone))
    print(calls_text(name, steps[name]))


run_on_two("by hand", by_hand)

# %% [markdown]
# The network has three layers with a weight matrix and a bias each, so six tensors in all. `broadcast_parameters` sends
# each of them in a broadcast of its own, and `average_gradients` makes one all-reduce for each. Hence the two sixes in
# the output.
#
# ## DDP replaces two lines
#
# With PyTorch's `DistributedDataParallel`, or DDP, two of these lines disappear: the broadcast and the averaging. As
# you know from lesson 7, DDP doesn't send gradients tensor by tensor but collects them in buckets and makes one
# all-reduce for each bucket. DDP closes a bucket with the tensor that takes it to its limit, which is 1 MB for the
# first bucket and 25 MB for the others. From its second step on, a network with 36 MB of gradients in many small
# tensors, for example, needs three buckets, of about 1, 25 and 10 MB. If the 36 MB were a single weight matrix, there
# would be only one, because a tensor is never split.
#
# **Predict.** Our network has 8,970 gradients of 8 bytes. How many all-reduces does its step make with DDP?

# %%
course.predict("ddp_calls", all_reduces=...)

# %%
from torch.nn.parallel import DistributedDataParallel


def with_ddp(x, y):
    rank, P = dist.get_rank(), dist.get_world_size()
    model = digits_mlp(seed=rank).double()
    model = DistributedDataParallel(model)
    optimizer = SGD(model.parameters(), lr=0.1)
    cross_entropy(model(x[rank::P]), y[rank::P]).backward()
    optimizer.step()
    return model


run_on_two("DDP", with_ddp)
course.measured("ddp_calls", all_reduces=steps["DDP"][0].count("all-reduce"))

# %% [markdown]
# The gradients take 72 KB, so they fit into one bucket. In its very first step DDP would use a single bucket for any
# number of gradients, because it doesn't yet know in which order they will be ready. The collectives before the step
# belong to DDP's constructor. It first checks that the tensors have the same shapes on all ranks. To do so, the ranks
# tell each other how many tensors they have, and rank 0 then broadcasts every size and stride, which is 18 numbers
# here. Then it broadcasts the weights of rank 0 as one vector, so you don't need the same seed everywhere.
#
# ## FSDP2 leaves the start to you
#
# In lesson 11 you met FSDP2, PyTorch's version of ZeRO stage 3. `fully_shard` cuts each weight matrix and leaves each
# rank only its own part. We call it on each layer, so that only one layer at a time has to be whole, and finally on the
# model itself, which ties the layers together:

# %%
from torch.distributed.fsdp import fully_shard


def with_fsdp(x, y, same_seed=True):
    rank, P = dist.get_rank(), dist.get_world_size()
    model = digits_mlp(seed=0 if same_seed else rank).double()
    for layer in [*model, model]:
        fully_shard(layer)
    optimizer = SGD(model.parameters(), lr=0.1)
    cross_entropy(model(x[rank::P]), y[rank::P]).backward()
    optimizer.step()
    return model


# %% [markdown]
# Suppose that a layer has four weights, and that the ranks draw different ones. Rank 0 has drawn 1, 2, 3, 4, and rank 1
# has drawn 5, 6, 7, 8. With DDP both ranks have 1, 2, 3, 4 after the constructor. With FSDP2 rank 0 keeps only the
# first two of its four numbers, and rank 1 only the last two of its own. Before the forward pass an all-gather
# reassembles the layer from the parts that the ranks have kept.
#
# **Predict.** Every rank uses its own seed, and `fully_shard` sends nothing when it cuts the weights. What do we find
# after the step?

# %%
choices = {
    "a": "all ranks have the weights of a single process, as with DDP",
    "b": "the ranks have different weights",
    "c": "all ranks have the same weights, but not those of a single process",
}
course.predict("fsdp_start", answer=..., choices=choices)  # "a", "b" or "c"

# %%
from course_utils.lessons.read_the_manual import start_letter

run_on_two("FSDP2, own seeds", partial(with_fsdp, same_seed=False))
unlike = steps.pop("FSDP2, own seeds")
course.measured("fsdp_start", answer=start_letter(unlike, alone))
run_on_two("FSDP2", with_fsdp)

# %% [markdown]
# In the example, rank 0 keeps 1, 2 and rank 1 keeps 7, 8, and the all-gather gives both of them 1, 2, 7, 8. That is one
# network, half drawn by rank 0 and half by rank 1. All ranks agree on it, so a comparison of the replicas, as in lesson
# 6, would find nothing wrong. Such a network does train, but you did not choose its initial weights, and a run on a
# different number of ranks starts from different ones. The second run above uses the same seed on all ranks, and its
# weights agree with those of a single process up to rounding. It gathers each of the three layers twice, for the
# forward and for the backward pass, and reduce-scatters the gradients of each once.
#
# ## Lightning owns the loop
#
# The three programs so far had one thing in common: the training loop was yours. In **Lightning**, a library on top of
# PyTorch, you only define what a step *is*, and its `Trainer` runs the loop, here with DDP inside. Lightning is an
# extra package, which `tools/set-up-beside lightning` installs. You can read the program and answer the next prediction
# without it.


# %%
from course_utils.lessons.read_the_manual import load_lightning, on_these_ranks


def with_lightning(x, y):
    L = load_lightning()  # import pytorch_lightning as L

    class Digits(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = digits_mlp(seed=dist.get_rank()).double()

        def training_step(self, batch, number):
            return cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self):
            return SGD(self.parameters(), lr=0.1)

    digits = Digits()
    loader = DataLoader(list(zip(x, y)), len(x) // dist.get_world_size())
    L.Trainer(max_epochs=1, **on_these_ranks()).fit(digits, loader)
    return digits.model


# %% [markdown]
# Nowhere does this program choose a rank's images. The Trainer adds a sampler that does, so the batch size of the
# loader, 32, is the batch size of *one rank*. `on_these_ranks()` tells the Trainer to use the ranks that already exist.
# On a cluster you would write `strategy="ddp", devices=4, num_nodes=10` instead. Then the process group exists only
# once `fit` has started, so the two calls of `dist` before it would fail, and you would have to write the seed and the
# batch size as numbers.
#
# Which of the four programs sends the most? A ring all-reduce consists of a reduce-scatter and an all-gather. With two
# ranks and 1,000 gradients, each of the two phases sends 500 numbers per rank, so DDP sends 1,000 numbers in a step.
# FSDP2 gathers the weights for the forward pass, gathers them *again* for the backward pass, and reduce-scatters the
# gradients.
#
# **Predict.** Which program sends the most in a step? Don't count what it sends once at the start.

# %%
ways = {"by hand": by_hand, "DDP": with_ddp, "FSDP2": with_fsdp}
ways["Lightning"] = with_lightning
course.predict("sends_most", answer=..., choices=list(ways))  # "a" to "d"

# %%
from course_utils.lessons.read_the_manual import is_there, missing

if is_there():
    run_on_two("Lightning", with_lightning)
else:
    print(missing())

# %% tags=["figure:15_shares"]
from course_utils.lessons.read_the_manual import largest_difference, ran_text, sends_most
from course_utils.lessons.read_the_manual import sent_and_kept_panels
from course_utils.lessons.read_the_manual import sent_and_kept_text

for seen in steps.values():
    assert largest_difference(seen, alone) <= 1e-9
print(ran_text(steps, ways))
most = sends_most(steps)
course.measured("sends_most", answer="abcd"[list(ways).index(most)])
panels = sent_and_kept_panels(steps)
note = "Values of rank 0. Sent: if every collective ran on a ring. Kept: weights and gradients"
course.draw.shares(panels, sent_and_kept_text(steps, most), note)

# %% [markdown]
# The `assert` checked that every program in this picture took the same step: on every rank, all weights agree with
# those of a single process to nine decimal places. What differs is what they send and what they keep. For 1,000 weights
# FSDP2 sends 3 × 500 = 1,500 numbers per step, 50% more than DDP, and a rank keeps half of the weights and of the
# gradients, as you calculated for stage 3 in lesson 11. DDP's buckets, which hold a copy of the gradients, are not
# counted.
#
# Here are all four programs side by side. The marked lines are those that the first program doesn't have.

# %% tags=["here:15_side_by_side"]
from course_utils.lessons.read_the_manual import side_by_side

side_by_side(ways)

# %% [markdown]
# DDP and FSDP2 change only a few lines, and Lightning wraps the step in a class. What matters more than the number of
# lines is who is responsible for what, because that is what you need to know before you can use a framework:
#
# | | by hand | DDP | FSDP2 | Lightning |
# |---|---|---|---|---|
# | Who makes the start equal? | you | its constructor | **you** | DDP inside |
# | Who chooses a rank's images? | you | you | you | **its sampler** |
# | Who adds the gradients up? | you | `backward()` | `backward()` | `fit()` |
# | Who divides by the number of ranks? | you | DDP | FSDP2 | DDP inside |
# | Who owns the loop? | you | you | you | **the Trainer** |
#
# With FSDP2 you can make the start equal with equal seeds, as here, or by loading the same checkpoint. With Lightning
# you have to know what the Trainer does behind your back. Every framework divides the work between itself and you, so
# look for *these* answers first when you open a manual.
#
# ## A sentence that divides once too often
#
# Back to the colleague from the introduction. TensorFlow's manual says that in a training loop of your own the
# gradients are summed over the replicas, and that you should therefore divide the sum of the losses by the [global
# batch size](https://www.tensorflow.org/tutorials/distribute/custom_training). Let's check this with two ranks and two
# images each. The gradients of the images are 1 and 3 on rank 0, and 5 and 7 on rank 1, so their mean is 16 ÷ 4 = 4.
#
# | | rank 0 | rank 1 | all-reduce | result |
# |---|---|---|---|---|
# | each rank divides by its own batch, 2; then a mean | 4 ÷ 2 = 2 | 12 ÷ 2 = 6 | (2 + 6) ÷ 2 | 4 |
# | each rank divides by the global batch, 4; then a sum | 4 ÷ 4 = 1 | 12 ÷ 4 = 3 | 1 + 3 | 4 |
#
# The first row is PyTorch's DDP with its usual loss, and the second row is TensorFlow's custom loop. Both are right.
# The colleague keeps the loss of the second row, which is divided by the global batch, and uses DDP, which takes a
# mean. The program below does the same, with the all-reduce written out so that we can switch between the two rules.
#
# **Predict.** With 4 ranks, how large is the colleague's step, as a multiple of the step that a single process takes?

# %%
course.predict("translated", within=1.01, factor=...)


# %%
def translated(x, y, mean):
    rank, P = dist.get_rank(), dist.get_world_size()
    model = digits_mlp(seed=0).double()
    start = flat_parameters(model)
    losses = cross_entropy(model(x[rank::P]), y[rank::P], reduction="none")
    (losses.sum() / len(x)).backward()  # len(x) is the global batch size
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        if mean:
            parameter.grad /= P
    SGD(model.parameters(), lr=0.1).step()
    return flat_parameters(model) - start


# %% tags=["nbval-check-output"]
step = alone - flat_parameters(digits_mlp(seed=0).double())
for mean, name in ((False, "a sum, as in TensorFlow"), (True, "a mean, as in DDP")):
    moved = ranks.run(translated, x, y, mean, backend="gloo").results[0]
    print(f"{name}: {moved.norm() / step.norm():.4f} times the step of a single process")
course.measured("translated", factor=float(moved.norm() / step.norm()))

# %% [markdown]
# The gradients are divided by the number of ranks twice, once in the loss and once in the all-reduce. No error appears,
# and with plain SGD the step is only a quarter as large, as if someone had divided the learning rate by four. On 64
# ranks it would be a sixty-fourth. Adam would hide the mistake almost entirely, because it divides each gradient by a
# running estimate of its size, so a constant factor cancels out.
#
# ## One dictionary for many frameworks
#
# You can look up such rules before you run anything. Read these three sentences, each from the documentation of a
# different framework:
#
# 1. DeepSpeed: "`train_batch_size` must be equal to `train_micro_batch_size_per_gpu` * `gradient_accumulation_steps` *
#    number of GPUs" ([configuration](https://www.deepspeed.ai/docs/config-json/)).
# 2. JAX, on `pmean`: "Compute an all-reduce mean on x over the pmapped axis axis_name"
#    ([`jax.lax.pmean`](https://docs.jax.dev/en/latest/_autosummary/jax.lax.pmean.html)).
# 3. tf.distribute: "after the gradients are calculated on each replica, they are synced across the replicas by
#    **summing** them" ([custom training](https://www.tensorflow.org/tutorials/distribute/custom_training)).
#
# Take the first one as an example. It multiplies by the number of GPUs, so `train_batch_size` counts the images of
# *all* ranks. With four GPUs, 8 images per GPU and 3 accumulation steps, it is 8 · 3 · 4 = 96. The `batch_size` of
# PyTorch's `DataLoader` would be 8, because it counts the images of one rank.
#
# **Predict.** Each rank (JAX calls it a device, tf.distribute a replica) has the gradient of the mean loss over its own
# images. The JAX program then combines these gradients with `pmean`. In JAX or in a custom training loop of
# tf.distribute, must you divide by the number of ranks yourself to get the right step?

# %%
choices = {"a": "neither", "b": "JAX with pmean", "c": "tf.distribute", "d": "both"}
course.predict("who_divides", answer=..., choices=choices)  # "a" to "d"

# %% tags=["here:15_dictionary"]
from course_utils.lessons.read_the_manual import dictionary_table

course.answer("who_divides", answer="c")
dictionary_table()

# %% [markdown]
# `pmean` divides by the number of ranks itself. A sum doesn't, so in a custom training loop of tf.distribute you have
# to. Keras's `compile` and `fit` do it for you. In JAX there is a second question: does each device really have its
# *own* gradient? With the old `pmap` it does. In today's `shard_map`, `jax.grad` has already added up the gradients of
# weights that all devices share, unless you set `check_vma=False`. Applied to such a sum, `pmean` changes nothing, and
# the step is too large by a factor of the number of ranks. One remedy is to take `pmean` of the loss before the
# gradient. [Further](15_read_the_manual_further.ipynb) shows the code.
#
# The table shows what five frameworks call 22 of this course's terms, and each entry links to the page of the manual
# that we took it from. We ran only PyTorch here and looked the other columns up. You will meet Horovod, whose last
# release, 0.28.1, is from 2023, and tf.distribute mostly in older programs. The Further notebook also describes
# libraries for large models, such as Megatron-Core, torchtitan, DeepSpeed and Accelerate.
#
# ## Six questions for any manual
#
# Manuals tell you how to switch a feature on. They say less about what it costs, and about what happens when something
# goes wrong. You have measured these things in this course, so you know what to ask:
#
# | Question | What you measured |
# |---|---|
# | Who waits for whom? | a slow rank ([6](06_data_parallel.ipynb)); staleness ([8](08_parameter_server.ipynb)) |
# | Who adds up the gradients, over which links? | bytes ([5](05_allreduce.ipynb)), overlap ([7](07_overlap.ipynb)) |
# | Sum or mean? Whose batch size? | a step that is $P$ times too large ([6](06_data_parallel.ipynb)) or too small |
# | Who makes the start equal? | replicas that never agree ([6](06_data_parallel.ipynb)); a network of two halves |
# | What does each rank keep? | memory ([9](09_model_parallel.ipynb), [11](11_hybrid_and_sharded_part_2.ipynb)) |
# | What happens if a rank dies? | steps that are repeated ([13](13_gpu_nodes.ipynb)) |
#
# ## The two paragraphs again
#
# Let's return to the paragraphs we started with. The number below each word is the lesson that taught it.

# %%
from course_utils.lessons.read_the_manual import words_text

course.answer("untaught_word", answer="b")
pictures.reading(PASSAGES, words_text(PASSAGES), "Below each word: its lesson")

# %% [markdown]
# The following table explains each word, and says what you measured about it.

# %% tags=["here:15_words"]
from course_utils.lessons.read_the_manual import words_table

words_table()

# %% [markdown]
# Now ask the six questions. The paragraphs say who waits: in sync training, all workers do. They name the algorithm
# that adds up the gradients. They don't say whether "aggregating" means a sum or a mean, who makes the start equal, or
# what happens if a worker dies. For these you have to read on, or run an experiment. Names also change. Today's guide
# has `CommunicationImplementation` where this text has `CollectiveCommunication`. The questions stay the same.
#
# ## What you have done so far
#
# `course.report()` puts your own runs on one page. It shows the training runs of the Further notebooks of lessons
# [6](06_data_parallel_further.ipynb) and [7](07_overlap_further.ipynb), and, once it has been checked, your first
# capstone, which is one of this lesson's exercises. To keep the page as a file, call `course.report("report.html")`.

# %% tags=["here:15_report"]
course.report()

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# Every framework divides the work of a training step between itself and you. You read the same step written in four
# ways. Once they began with the same weights, all programs that ran also ended with the same weights, but each left
# different duties to you. DDP broadcasts the weights of rank 0, while FSDP2 leaves it to you to make them equal.
# Lightning splits up the images and owns the loop. Some frameworks add gradients up and others average them, and if you
# mix the two rules, a step of SGD is wrong by a factor of $P$ without any error. So ask any manual who waits, who adds
# up, whether it is a sum or a mean, who makes the start equal, what each rank keeps, and what happens when a rank dies.
#
# In [the exercises](../exercises/15_read_the_manual.ipynb) you translate the settings of five frameworks. The others
# are two **capstones**. In the first, you train a network over slow links within a budget, and it brings together what
# lessons 1 to 8 taught. The second brings together the lessons from 9 on. You plan how a model of 13 billion parameters
# is trained on 16 GPUs, decide how to go on when one of them dies, and find what makes a training slow. You can do both
# now, or after the lessons that follow. [Lesson 16](16_experts.ipynb) is about networks that use only some of their
# weights for each token.
#
# **To read**
#
# - Ben-Nun and Hoefler (2018), [*Demystifying Parallel and Distributed Deep
#   Learning*](https://arxiv.org/abs/1802.09941), surveys the whole field. You now know most of its vocabulary.
# - PyTorch's [overview of its distributed packages](https://docs.pytorch.org/tutorials/beginner/dist_overview.html)
#   tells you which one to choose.
# - Google DeepMind's [*How to Scale Your Model*](https://jax-ml.github.io/scaling-book/) (2025) calculates everything
#   for TPUs, with examples in JAX and a chapter on GPUs.
