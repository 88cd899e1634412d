# The lesson on other people's manuals. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Can I now read any framework's manual?
#
# A colleague moves a training program from TensorFlow to PyTorch. The program runs, no error appears, and the loss goes
# down, only much too slowly. With four ranks, each step turns out to be a quarter as long as it should be. Both manuals
# had said what happens, in one sentence each: the first framework *adds up* the gradients of all ranks, and the second
# *averages* them. Nothing failed because each sentence is right for its own framework.
#
# In this lesson you learn to find such sentences. You will write one and the same training step in four ways, see which
# parts of it a framework does for you, and then read a few sentences of manuals so closely that you can calculate what
# they mean. At the end you have six questions to ask of any manual, whatever framework comes next.
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
# ## Two paragraphs to begin with
#
# Here are two paragraphs of a manual, TensorFlow's guide to [distributed
# training](https://www.tensorflow.org/guide/distributed_training) (CC BY 4.0, as it stood in 2022). The words that a
# reader has to know are underlined.

# %% tags=["here:15_paragraphs"]
from course_utils.lessons.read_the_manual import PASSAGES, pictures

title = "Two paragraphs of TensorFlow's manual"
pictures.reading(PASSAGES, title, "Underlined: words to know", lessons=False)

# %% [markdown]
# Take a pencil and note each underlined word that you could *not* explain to a colleague. You will see the two
# paragraphs again at the end of the page, with the lesson that taught each word.
#
# **Predict.** One underlined word has had no lesson in this course. Which one?

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
# and an MLP with three layers, which has 8,970 weights. One process takes one step of SGD with it. All numbers are in
# float64, so that the comparisons below can be strict.

# %% tags=["nbval-check-output"]
x, y, *_ = course.data.digits("float64")
x, y = x[:64], y[:64]

model = digits_mlp(seed=0).double()
cross_entropy(model(x), y).backward()
SGD(model.parameters(), lr=0.1).step()
alone = flat_parameters(model)
print(f"{len(x)} digits of {x.shape[1]} pixels, {len(alone):,} weights")

# %% [markdown]
# Now two ranks take the same step, as in lesson 6. To make it harder, each rank draws different initial weights
# (`seed=rank`). Rank 0 therefore broadcasts its weights first. Then each rank takes every second image, calculates its
# gradients, and averages them with those of the other rank.


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
# How can we see what such a program sends? Frameworks call collectives from C++, where Python cannot watch them, but
# the profiler of lesson 14 can. `step_seen` runs a program under that profiler on each rank. It returns the weights
# after the step, a list of the collectives, and how much the rank keeps.

# %%
from course_utils.lessons.read_the_manual import calls_text, same_text, step_seen

steps = {}


def run_on_two(name, program):
    steps[name] = ranks.run(step_seen, program, x, y, backend="gloo", ranks=2).results
    print(same_text(name, steps[name], alone))
    print(calls_text(name, steps[name]))


run_on_two("by hand", by_hand)

# %% [markdown]
# The network has three layers with a weight matrix and a bias each, which makes six tensors. `broadcast_parameters`
# sends each of them in a broadcast of its own, and `average_gradients` makes one all-reduce for each. That explains the
# two sixes in the output.
#
# ## DDP replaces two lines
#
# With PyTorch's `DistributedDataParallel`, or DDP, two of these lines disappear: the broadcast and the averaging. You
# know from lesson 7 what DDP does with gradients. It doesn't send them tensor by tensor, but collects them in buckets,
# the first of 1 MB and the others of 25 MB, and makes one all-reduce for each bucket. A network with 9 million
# gradients in float32, for example, has 36 MB of them. They fill the first bucket and more than one of the others, so
# they need at least three all-reduces.
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
# The gradients take 72 KB and fit into one bucket. (In its very first step DDP makes do with a single bucket anyway,
# because it doesn't yet know in which order the gradients will be ready.) The collectives before the all-reduce belong
# to the constructor. It first checks with a few small messages, a broadcast of 18 numbers among them, that all ranks
# have tensors of the same shapes. Then it broadcasts the weights of rank 0 as one vector. So with DDP you don't need
# the same seed everywhere.
#
# ## FSDP2 leaves the start to you
#
# In lesson 11 you met FSDP2, PyTorch's version of ZeRO stage 3. `fully_shard` cuts each weight matrix and leaves each
# rank only its own part. Here is the step with FSDP2:

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
# has drawn 5, 6, 7, 8. With DDP both ranks have 1, 2, 3, 4 after the constructor. With FSDP2 each rank is to keep two
# of the four numbers. Before the forward pass an all-gather puts the layer together again from what the ranks have
# kept.
#
# **Predict.** Every rank uses its own seed, and `fully_shard` sends nothing when it cuts the weights. What do we find
# after the step?

# %%
choices = {
    "a": "all ranks have the weights of one process, as with DDP",
    "b": "the ranks have different weights",
    "c": "all ranks have the same weights, but not those of one process",
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
# 6, would find nothing wrong. Such a network does train. But you did not choose its initial weights, and with a
# different number of ranks they would be different ones, so you can't repeat the run. The second run above uses the
# same seed on all ranks, and it ends with exactly the weights of one process, up to rounding.
#
# ## Lightning owns the loop
#
# The three programs so far had one thing in common: the training loop was yours. In **Lightning**, a library on top of
# PyTorch, you only define what a step *is*, and its `Trainer` runs the loop. It is an extra package, which
# `tools/set-up-beside lightning` installs. Without it you can still read the program.


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
# Nowhere does this program choose a rank's images. The Trainer adds a sampler that does. The batch size of the loader,
# 32, is therefore the batch size of *one rank*. `on_these_ranks()` tells the Trainer to use the ranks that already
# exist. On a cluster you would write `strategy="ddp", devices=4, num_nodes=10` instead.
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
from course_utils.lessons.read_the_manual import largest_difference, sends_most
from course_utils.lessons.read_the_manual import sent_and_kept_panels
from course_utils.lessons.read_the_manual import sent_and_kept_text

for seen in steps.values():
    assert largest_difference(seen, alone) <= 1e-9
most = sends_most(steps)
course.measured("sends_most", answer="abcd"[list(ways).index(most)])
panels = sent_and_kept_panels(steps)
note = "Numbers of rank 0, counted from its calls, as rings would send them"
course.draw.shares(panels, sent_and_kept_text(steps, most), note)

# %% [markdown]
# The `assert` checked that each program which ran has taken the same step: on every rank, all weights agree with those
# of one process to nine decimal places. What differs is what they send and what they keep. For 1,000 weights FSDP2
# sends three times 500 numbers in a step, half as much again as DDP, and a rank keeps half of the weights and of the
# gradients. That is what you calculated for stage 3 in lesson 11.
#
# Here are all four programs side by side. A blue line is one that the first program doesn't have, and above each
# program you see how many lines it has.

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
# With the program by hand you need to know every collective, and when it must be called. With DDP it is enough to know
# that gradients are averaged, and that you share out the images. With FSDP2 you decide in addition which layers are
# sharded, and you make the seeds equal. With Lightning you need the names of the Trainer's methods and options, and you
# need to know what they do without being asked.
#
# Every framework is a choice of who does what, so look for *these* answers first when you open a manual.
#
# ## A sentence that divides once too often
#
# Now to the colleague of the beginning. TensorFlow's manual says that the gradients are summed over the replicas, and
# that you should therefore divide the sum of the losses by the [global batch
# size](https://www.tensorflow.org/tutorials/distribute/custom_training). Let's check this with two ranks and two images
# each. The gradients of the images are 1 and 3 on rank 0, and 5 and 7 on rank 1, so their mean is 16 ÷ 4 = 4.
#
# | | rank 0 | rank 1 | all-reduce | result |
# |---|---|---|---|---|
# | each rank divides by its own batch, 2; then a mean | 4 ÷ 2 = 2 | 12 ÷ 2 = 6 | (2 + 6) ÷ 2 | 4 |
# | each rank divides by the global batch, 4; then a sum | 4 ÷ 4 = 1 | 12 ÷ 4 = 3 | 1 + 3 | 4 |
#
# The first row is PyTorch's DDP with its usual loss, and the second row is TensorFlow. Both are right. The colleague
# keeps the loss of the second row, which is divided by the global batch, and uses DDP, which takes a mean.
#
# **Predict.** With 4 ranks, how long is the colleague's step, as a multiple of the step that one process takes?

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
    print(f"{name}: {moved.norm() / step.norm():.4f} times one process's step")
course.measured("translated", factor=float(moved.norm() / step.norm()))

# %% [markdown]
# The gradients are divided by the number of ranks twice, once in the loss and once in the all-reduce. No error appears,
# and the step is only a quarter as long, exactly as if someone had divided the learning rate by four. On 64 ranks it
# would be a sixty-fourth.
#
# ## One dictionary for many frameworks
#
# You can look up such rules before you run anything. Read these three sentences, each from the documentation of a
# different framework:
#
# 1. DeepSpeed: "`train_batch_size` must be equal to `train_micro_batch_size_per_gpu` * `gradient_accumulation_steps` *
#    number of GPUs" ([configuration](https://www.deepspeed.ai/docs/config-json/)).
# 2. JAX, on `pmean`: "Compute an all-reduce mean on x over the pmapped axis"
#    ([`jax.lax.pmean`](https://docs.jax.dev/en/latest/_autosummary/jax.lax.pmean.html)).
# 3. tf.distribute: "after the gradients are calculated on each replica, they are synced across the replicas by
#    **summing** them" ([custom training](https://www.tensorflow.org/tutorials/distribute/custom_training)).
#
# Take the first one as an example. It multiplies by the number of GPUs, so `train_batch_size` counts the images of
# *all* ranks. With four GPUs, 8 images per GPU and 3 accumulation steps, it is 8 · 3 · 4 = 96. In PyTorch you would
# write 8 in the same place, because the `batch_size` of a `DataLoader` counts the images of one rank.
#
# **Predict.** Each rank, or each device in JAX, has the gradient of the mean loss of its own images. For which of the
# two other frameworks must you divide by the number of ranks, so that the step is right? In JAX you combine the
# gradients with `pmean`.

# %%
choices = {"a": "neither", "b": "JAX with pmean", "c": "tf.distribute", "d": "both"}
course.predict("who_divides", answer=..., choices=choices)  # "a" to "d"

# %% tags=["here:15_dictionary"]
from course_utils.lessons.read_the_manual import dictionary_table

course.answer("who_divides", answer="c")
dictionary_table()

# %% [markdown]
# `pmean` divides by the number of ranks itself. A sum doesn't, so with tf.distribute you have to. The table has what 22
# terms of this course are called in five frameworks, and each entry links to the page of the manual that we took it
# from. Two of the columns are there because you will meet them in older programs. Horovod's last release, 0.28, is from
# 2023, and few new projects start with tf.distribute. [Further](15_read_the_manual_further.ipynb) shows what JAX's
# column means in code, and what the libraries do that most large models are trained with today, such as Megatron-Core,
# torchtitan, DeepSpeed and Accelerate.
#
# Only PyTorch is installed here. We looked the other columns up in the manuals and didn't run them.
#
# ## Six questions for any manual
#
# Manuals tell you how to switch a feature on. They are less talkative about what it costs, and about what happens when
# something goes wrong. You have measured these things in this course, so you know what to ask:
#
# | Question | What you measured |
# |---|---|
# | Who waits for whom? | a slow rank ([6](06_data_parallel.ipynb)); staleness ([8](08_parameter_server.ipynb)) |
# | Who adds up, over which links? | bytes ([5](05_allreduce.ipynb)), hidden time ([7](07_overlap.ipynb)) |
# | Sum or mean? Whose batch size? | a step that is $P$ times too long ([6](06_data_parallel.ipynb)) or too short |
# | Who makes the start equal? | replicas that never agree ([6](06_data_parallel.ipynb)); a network of two halves |
# | What does each rank keep? | memory ([9](09_model_parallel.ipynb), [11](11_hybrid_and_sharded_part_2.ipynb)) |
# | What happens if a rank dies? | steps that are repeated ([13](13_gpu_nodes.ipynb)) |
#
# ## The two paragraphs again
#
# Let's return to the paragraphs of the beginning. The number below each word is the lesson that taught it.

# %%
from course_utils.lessons.read_the_manual import words_text

course.answer("untaught_word", answer="b")
pictures.reading(PASSAGES, words_text(PASSAGES), "Below each word: its lesson")

# %% [markdown]
# The following table says what each word means, and what you measured about it.

# %% tags=["here:15_words"]
from course_utils.lessons.read_the_manual import words_table

words_table()

# %% [markdown]
# Now ask the six questions. The paragraphs say who waits: in sync training, all workers do. They name the algorithm
# that adds up. They don't say whether "aggregating" means a sum or a mean, who makes the start equal, or what happens
# if a worker dies. For these you have to read on, or run an experiment. Names also change. Today's guide has
# `CommunicationImplementation` where this text has `CollectiveCommunication`. The questions stay the same.
#
# ## What you have done so far
#
# `course.report()` puts your own runs on one page. It shows the training runs of the Further notebooks of lessons
# [6](06_data_parallel_further.ipynb) and [7](07_overlap_further.ipynb), and your capstone once it has been judged. To
# keep the page as a file, call `course.report("report.html")`.

# %% tags=["here:15_report"]
course.report()

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# A framework is a choice of who does what. You wrote one training step in four ways, and they all ended with the same
# weights, but each left different duties to you. DDP broadcasts the weights of rank 0, while FSDP2 expects that you
# have made them equal. Lightning shares out the images and owns the loop. Some frameworks add gradients up and others
# average them, and if you mix the two rules, the step is wrong by a factor of $P$ without any error. So ask any manual
# who waits, who adds up, whether it is a sum or a mean, who makes the start equal, what each rank keeps, and what
# happens when a rank dies.
#
# In [the exercises](../exercises/15_read_the_manual.ipynb) you translate the settings of five frameworks. The other
# exercise is the **capstone**, in which you train a network over slow links within a budget. It brings together what
# lessons 1 to 8 taught, so you can do it now, or after lessons 16 and 17. [Lesson 16](16_experts.ipynb) is about
# networks that use only some of their weights for each token.
#
# **To read**
#
# - Ben-Nun and Hoefler (2018), [*Demystifying Parallel and Distributed Deep
#   Learning*](https://arxiv.org/abs/1802.09941), surveys the whole field. You now know most of its vocabulary.
# - PyTorch's [overview of its distributed packages](https://docs.pytorch.org/tutorials/beginner/dist_overview.html)
#   tells you which one to choose.
# - Google DeepMind's [*How to Scale Your Model*](https://jax-ml.github.io/scaling-book/) (2025) calculates everything
#   for TPUs, with a chapter on GPUs, and shows it in JAX.
