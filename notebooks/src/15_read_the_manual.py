# The lesson on other people's manuals. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Can I now read any framework's manual?
#
# After this lesson you can **read** a manual's sentence word by word, **translate** it into a step that you could have
# written, and **ask** what it leaves out. Then comes the capstone.
#
# *50 minutes · builds on all lessons · 4 ranks*

# %%
import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.utils.data import DataLoader

import course_utils as course
from course_utils.lessons.data_parallel import average_gradients, broadcast_parameters
from course_utils.lessons.data_parallel import digits_mlp, flat_parameters

ranks = course.start(4, link="100 Mbit/s")
ranks.load_torch()

# %% [markdown]
# ## Two paragraphs
#
# SURF's course, from which this one comes, begins and ends with the same two paragraphs of TensorFlow's manual. Its
# goal is that you understand them. (*Distributed training with TensorFlow*,
# [tensorflow.org](https://www.tensorflow.org/guide/distributed_training), CC BY 4.0, as it stood in 2022.)

# %% tags=["here:15_paragraphs"]
from course_utils.lessons.read_the_manual import PASSAGES, pictures

title = "Two paragraphs of TensorFlow's manual"
pictures.reading(PASSAGES, title, "Underlined: words to know", lessons=False)

# %% [markdown]
# Take a pencil, and note the underlined words that you could *not* explain to a colleague. We come back to them.
#
# **Predict.** One of the underlined words has had no lesson in this course. Which?

# %%
choices = {
    "a": "Mirrored",
    "b": "gRPC",
    "c": "slices of input data",
    "d": "updating variables asynchronously",
}
course.predict("untaught_word", answer=..., choices=choices)  # "a" to "d"

# %% [markdown]
# ## One step, four times
#
# The best way to understand a framework: write its step yourself, then compare. We take a batch of 64 digits and a
# network of 8,970 weights, in float64. First comes one process alone; then two ranks under lesson 14's profiler, which
# also sees what a framework sends from C++.

# %% tags=["nbval-check-output"]
x, y, *_ = course.data.digits("float64")
x, y = x[:64], y[:64]

model = digits_mlp(seed=0).double()
cross_entropy(model(x), y).backward()
SGD(model.parameters(), lr=0.1).step()
alone = flat_parameters(model)
print(f"{len(x)} digits of {x.shape[1]} pixels, {len(alone):,} weights")

# %%
from course_utils.lessons.read_the_manual import calls_text, same_text, step_seen

steps = {}


def run_on_two(name, way):
    steps[name] = ranks.run(step_seen, way, x, y, backend="gloo", ranks=2).results
    print(same_text(name, steps[name], alone), calls_text(name, steps[name]), sep="\n")


# %% [markdown]
# **By hand**, as in lesson 6. Each rank draws first weights of its own (`seed=rank`), and takes every $P$-th image:


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


run_on_two("by hand", by_hand)

# %% [markdown]
# Six tensors (three layers, each with weights and a bias): six broadcasts, six all-reduces.
#
# **DDP** takes both lines away. What `DistributedDataParallel(model)` does, its manual says in prose. **Predict**: how
# many all-reduces does its step make?

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
# The constructor compares shapes (in small messages, one of which is the other broadcast), and broadcasts rank 0's
# weights as one vector. In its first step DDP sends all gradients as one vector, whatever their size. From the second
# step on it has buckets: the first of 1 MB, the others of 25 MB. These gradients fit into the first.
#
# **FSDP2** is lesson 11's ZeRO, stage 3: `fully_shard` leaves each rank a part of the weights. Again every rank begins
# with `seed=rank`. **Predict.** After the step …

# %%
choices = {
    "a": "all have one process's weights: fully_shard sends rank 0's",
    "b": "the ranks have different weights",
    "c": "all have the same weights, but not one process's",
}
course.predict("fsdp_start", answer=..., choices=choices)  # "a", "b" or "c"

# %%
from functools import partial

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


# %%
from course_utils.lessons.read_the_manual import start_letter

run_on_two("FSDP2, own seeds", partial(with_fsdp, same_seed=False))
unlike = steps.pop("FSDP2, own seeds")
course.measured("fsdp_start", answer=start_letter(unlike, alone))
run_on_two("FSDP2", with_fsdp)

# %% [markdown]
# There is no broadcast: each rank kept *its* part of *its* weights. Together these parts are one network, half rank
# 0's, half rank 1's, and all ranks agree on it: lesson 6's "compare the replicas" finds nothing. It trains, but DDP
# would train another network. So the second run takes the same seed on all ranks.
#
# **Lightning** takes the loop as well. You say what a step *is*, and its Trainer takes the steps. (An extra package;
# `tools/set-up-beside lightning` brings it.)


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
# (`on_these_ranks()` says: these ranks exist already. On a cluster you write `strategy="ddp", devices=4,
# num_nodes=10`.)
#
# **Predict.** Which way sends most, once the ranks have begun alike?

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
from course_utils.lessons.read_the_manual import (
    AT_THE_START,
    largest_difference,
    parts,
    sends_most,
)
from course_utils.lessons.read_the_manual import sent_and_kept_text

for one in steps.values():
    assert largest_difference(one, alone) <= 1e-9
most = sends_most(steps)
course.measured("sends_most", answer="abcd"[list(ways).index(most)])
sent, kept = parts(steps)
once = {way: {AT_THE_START: each.pop(AT_THE_START, 0)} for way, each in sent.items()}
columns = {"sent at the start": once, "sent in the step": sent, "kept": kept}
count = "{:,.0f}".format
panels = [
    course.draw.SharesPanel(what, bars, say=count) for what, bars in columns.items()
]
course.draw.shares(
    panels, sent_and_kept_text(steps, most), "Numbers of rank 0, as rings send them"
)

# %% [markdown]
# Each program takes the same step: the same weights to the last digits. (What they send is counted from their calls, as
# rings would carry them out.) FSDP2's broadcast is missing because *you* must make the start equal.
#
# Here are all four programs. Blue lines are those that the first one does not have.

# %% tags=["here:15_side_by_side"]
from course_utils.lessons.read_the_manual import side_by_side

side_by_side(ways)

# %% [markdown]
# | Who … | by hand | DDP | FSDP2 | Lightning |
# |---|---|---|---|---|
# | makes the start equal? | you | its constructor | **you** | DDP inside |
# | deals the images out? | you | you | you | **its sampler** |
# | adds the gradients up? | you | `backward()` | `backward()` | `fit()` |
# | divides by the number of ranks? | you | DDP | FSDP2 | DDP inside |
# | owns the loop? | you | you | you | **the Trainer** |
#
# Every framework is a choice of who does what. Look for *these* lines in a manual first.

# %% [markdown]
# ## Five frameworks, one dictionary
#
# The words differ, the things do not. **Predict**, before you open the dictionary:
#
# - In which framework is a plain all-reduce a *mean*?
# - Which framework comes with a whole strategy for lesson 8's parameter server?
# - In which one are gradients summed, so that *you* must divide the loss by the batch of all ranks?

# %%
from course_utils.lessons.read_the_manual import FRAMEWORKS

choices = dict(zip("abcde", FRAMEWORKS))
answers = {"mean": ..., "server": ..., "you_divide": ...}  # letters, "a" to "e"
course.predict("dictionary", choices=choices, **answers)

# %% tags=["here:15_dictionary"]
from course_utils.lessons.read_the_manual import dictionary_table

course.answer("dictionary", mean="b", server="d", you_divide="d")
dictionary_table()

# %% [markdown]
# Each entry links to the manual's page where it stands. We looked them all up. Only PyTorch is installed here, so we
# did not *run* the others.
#
# JAX's column needs one more idea. Most manuals describe what *one rank* does with its own part. Under `jit`, a program
# of JAX names whole arrays, and the mean over all examples: a **global view**. You say how arrays are cut, and the
# compiler adds the messages. Inside `shard_map` the program is that of one device again, and you call `pmean`.
#
# ## A sentence, translated
#
# TensorFlow's manual: gradients are summed over the replicas, so divide the loss "by `GLOBAL_BATCH_SIZE`". A colleague
# brings that loss to PyTorch, and puts DDP around the model. **Predict** the length of the step with 4 ranks, as a
# multiple of one process's step.

# %%
course.predict("translated", within=1.01, factor=...)


# %%
def translated(x, y, mean):
    rank, P = dist.get_rank(), dist.get_world_size()
    model = digits_mlp(seed=0).double()
    start = flat_parameters(model)
    losses = cross_entropy(model(x[rank::P]), y[rank::P], reduction="none")
    (losses.sum() / len(x)).backward()  # len(x): the global batch
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= P if mean else 1
    SGD(model.parameters(), lr=0.1).step()
    return flat_parameters(model) - start


# %%
step = alone - flat_parameters(digits_mlp(seed=0).double())
for mean, name in ((False, "as in TensorFlow, a sum"), (True, "as in DDP, a mean")):
    moved = ranks.run(translated, x, y, mean, backend="gloo").results[0]
    print(f"{name}: {moved.norm() / step.norm():.4f} times one process's step")
course.measured("translated", factor=float(moved.norm() / step.norm()))

# %% [markdown]
# Each rule is right *at home*. Together they divide twice, and nothing fails: the steps are just four times too short.
# Exercise: [`match_terms`](../exercises/15_read_the_manual.ipynb).
#
# ## What manuals leave out
#
# | Ask any manual | You measured it in |
# |---|---|
# | Who waits for whom? | [6](06_data_parallel.ipynb): a straggler; [8](08_parameter_server.ipynb): staleness |
# | Who sums, over which links? | [5](05_allreduce.ipynb), [7](07_overlap.ipynb): bytes, exposed time |
# | Sum or mean? Whose batch size? | [6](06_data_parallel.ipynb): 16 times the step |
# | Who makes the start equal? | [6](06_data_parallel.ipynb): different replicas; here: FSDP2 |
# | What does each rank keep? | [9](09_model_parallel.ipynb), [11](11_hybrid_and_sharded.ipynb): bytes |
# | What if a rank dies? | [13](13_gpu_nodes.ipynb): steps done twice |
#
# ## The two paragraphs again

# %%
from course_utils.lessons.read_the_manual import words_text

course.answer("untaught_word", answer="b")
under = "Below each word: the lesson that taught it"
pictures.reading(PASSAGES, words_text(PASSAGES), under)

# %% [markdown]
# The table says what each word means, and what you measured of it. Today's manual says `CommunicationImplementation`
# where this one says `CollectiveCommunication`. Names change; what you can measure stays.

# %% tags=["here:15_words"]
from course_utils.lessons.read_the_manual import words_table

words_table()

# %% [markdown]
# And what do the two paragraphs *not* say? "Aggregating": as a sum or as a mean? "In sync": how long do all wait for
# the slowest? RING: how fast is it?
#
# ## The capstone
#
# Train a VGG-11 with an eighth of the channels on four nodes with links of 100 Mbit/s, within three budgets. You write
# one function; the course measures.
#
# The naive way makes one all-reduce of all 145,898 gradients, in float32, after each backward pass. **Predict.** For
# how many such steps does the budget of bytes last?

# %%
from course_utils.lessons.read_the_manual import BUDGET, NAIVE_STEPS

print(f"at least {BUDGET.accuracy:.0%} of images that no rank has seen,")
print(f"at most {BUDGET.bytes / 1e6:g} MB out of each node, counted by the kernel,")
print(f"at most {BUDGET.seconds:.0%} of the time of {NAIVE_STEPS} naive steps")
course.predict("capstone_steps", within=1.15, steps=...)

# %%
from course_utils.lessons.read_the_manual import as_images, deal, naive_step
from course_utils.lessons.read_the_manual import naive_steps_text, network


def naive(pixels, labels):
    return naive_step(network(0), as_images(pixels), torch.from_numpy(labels))


images, labels = zip(*deal(np.random.default_rng(0)).shards)
run = ranks.run(naive, course.per_rank(images), course.per_rank(labels), backend="gloo")
sent = max(one["naive_sent"] for one in run.results)
course.measured("capstone_steps", steps=BUDGET.bytes / sent)
print(naive_steps_text(sent, BUDGET.bytes, NAIVE_STEPS))

# %% [markdown]
# The usual start alone is over this budget: in its broadcast, rank 0 sends its weights twice. So you need two ideas
# at least (in brackets: the lessons): a cheaper start (6, and FSDP2 above), and local SGD (8) or compression (7) after
# it. A rate that falls (1) helps. [The exercise](../exercises/15_read_the_manual.ipynb) has a table of what each idea
# reaches alone.
#
# Held-out images never reach a rank. For them, batch norm uses its **running means**, which follow each rank's batches
# slowly, a tenth of the way in each training pass. After few passes they lag behind the weights, and they differ from
# rank to rank. Expect to miss a budget first.
#
# ## What you have done
#
# `course.progress()` lists it. Your report shows your runs of the Further notebooks of lessons
# [6](06_data_parallel_further.ipynb) and [7](07_overlap_further.ipynb) in the figures of the students' report, and your
# capstone, once it has been judged. (`course.report("report.html")` writes a file to keep.)

# %% tags=["here:15_report"]
course.report()

# %% [markdown]
# ## What you take with you
#
# You can **read** a manual word by word: behind each word stands something you have measured. You can **translate**
# its step into lines of your own, and see who does what. You can **ask** what it leaves out: who waits, who sums, sum
# or mean, who starts equal, who keeps what, who dies.
#
# Next: [the exercises](../exercises/15_read_the_manual.ipynb), the capstone among them. After that: your own training.
#
# **To read**
#
# - Ben-Nun and Hoefler (2018), [*Demystifying Parallel and Distributed Deep
#   Learning*](https://arxiv.org/abs/1802.09941), surveys the whole field.
# - PyTorch's [overview of its distributed packages](https://docs.pytorch.org/tutorials/beginner/dist_overview.html)
#   tells you which one to choose.
# - Google DeepMind's [*How to Scale Your Model*](https://jax-ml.github.io/scaling-book/) (2025) calculates everything
#   for TPUs, and lately for GPUs.

# %%
ranks.stop()
