# The optional second notebook of lesson 15. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: can I now read any framework's manual?
#
# In October 2024, users of Hugging Face's Transformers found that its training runs came out differently if gradients
# were accumulated over several micro-batches, although the large batch was the same ([*Fixing Gradient
# Accumulation*](https://huggingface.co/blog/gradient_accumulation)). The mistake was a mean of means. You will make
# this mistake here and repair it, and then read more manuals: those of JAX, of two frameworks that you will meet in
# older programs, and of the libraries that train large models today.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, because each of them stands alone.
#
# 1. *A mean of means*: what happens if the ranks have different numbers of images
# 2. *JAX, in code*: the compiler adds the collectives, or you do
# 3. *One controller*: who decides what ranks do next, and all ranks in one process
# 4. *Two frameworks of older programs*: Horovod and tf.distribute
# 5. *Who trains large models with what?*: eight choices, and what each one leaves to you
# 6. *What must you know about the network?*: lines of code, counted
# 7. *Two old paragraphs*: where those of lesson 15 come from
#
# *50 minutes · optional, after [lesson 15](15_read_the_manual.ipynb) · 4 ranks, 2 to 15 minutes for each section*

# %%
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.lessons.data_parallel import average_gradients, digits_mlp

ranks = course.start(4)
ranks.load_torch()

x, y, *_ = course.data.digits("float64")
x, y = x[:64], y[:64]

# %% [markdown]
# ## A mean of means
#
# DDP averages over ranks. Each rank calculates the mean over its own images, and the all-reduce takes the mean of these
# means. As long as all ranks have the same number of images, this is the mean over all images. What if they don't?
#
# Suppose that rank 0 has a single image, whose gradient is 8, and that rank 1 has three images with a gradient of 0
# each. The mean over the four images is (8 + 0 + 0 + 0) ÷ 4 = 2. But the mean on rank 0 is 8, the mean on rank 1 is 0,
# and DDP makes (8 + 0) ÷ 2 = 4 of them. The single image of rank 0 counts three times as much as it should in
# comparison with each image of rank 1.
#
# **Predict.** Rank 0 has two images whose gradients are both 6, and rank 1 has six images whose gradients are all 2.
# What is the mean over all images, and what does DDP calculate?

# %%
course.predict("mean_of_means", within=1.01, all_images=..., ddp=...)

# %%
of_rank_0, of_rank_1 = [6] * 2, [2] * 6
all_images = sum(of_rank_0 + of_rank_1) / 8
means = [sum(of_rank_0) / 2, sum(of_rank_1) / 6]
course.answer("mean_of_means", all_images=all_images, ddp=sum(means) / 2)

# %% [markdown]
# This can happen to you whenever the work is not cut into equal parts. Examples are a last batch that doesn't divide by
# the number of ranks, and texts of different lengths, if the loss is a mean over tokens. The repair is to weight the
# loss. If rank $r$ has $n_r$ of all $N$ images, multiply its mean loss by $P n_r / N$ before the backward pass. Its
# images then count with $\frac{1}{n_r} \cdot \frac{P n_r}{N} = \frac{P}{N}$ each, and after DDP's division by $P$ with
# $\frac{1}{N}$, on every rank.


# %%
def gradient_of(x, y, shares, weighted):
    rank, P = dist.get_rank(), dist.get_world_size()
    first = sum(shares[:rank])
    own = slice(first, first + shares[rank])
    model = digits_mlp(seed=0).double()
    loss = cross_entropy(model(x[own]), y[own])
    if weighted:
        loss = loss * P * shares[rank] / len(x)
    loss.backward()
    average_gradients(model)  # a mean over the ranks, as in DDP
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


# %% tags=["nbval-check-output"]
model = digits_mlp(seed=0).double()
cross_entropy(model(x), y).backward()
whole = torch.cat([weight.grad.flatten() for weight in model.parameters()])

for shares in ([16, 16, 16, 16], [4, 12, 20, 28]):
    for weighted in (False, True):
        run = ranks.run(gradient_of, x, y, shares, weighted, backend="gloo")
        off = (run.results[0] - whole).norm() / whole.norm()
        same = "the same gradient" if off < 1e-12 else "a different gradient"
        print(shares, "weighted:" if weighted else "a mean of means:", same)
        assert off < 1e-12 or not weighted

# %% [markdown]
# With equal shares both give the gradient of one process. With 4, 12, 20 and 28 images only the weighted loss does.
# Accumulation over micro-batches has the same problem, with passes in the place of ranks. So here is a seventh question
# for a manual, next to the six of lesson 15: does it average over examples, over tokens, or over ranks?
#
# ## JAX, in code
#
# The programs of lesson 15 describe what *one rank* does with its part of the data. A **global view** is the opposite.
# The program describes the whole step, with whole arrays. You only tell JAX how the arrays are cut, and the compiler
# works out which collectives are needed. The following two listings are *not run here*, because the course doesn't
# install JAX. We ran them with JAX 0.10.2 on four simulated devices. `w` is the weight matrix of a network with a
# single layer, and `P`, as usual in JAX, says how an array is cut. It isn't the number of ranks here.
#
# ```python
# import jax
# import jax.numpy as jnp
# from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
#
# def loss(w, x, y):
#     chosen = jax.nn.log_softmax(x @ w)[jnp.arange(len(y)), y]
#     return -chosen.mean()                 # the mean over ALL images
#
# @jax.jit
# def step(w, x, y):
#     return w - 0.1 * jax.grad(loss)(w, x, y)
#
# mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
# x, y = jax.device_put((x, y), NamedSharding(mesh, P("data")))  # cut the rows
# w = jax.device_put(w, NamedSharding(mesh, P()))                # a copy on each
# w = step(w, x, y)
# ```
#
# There is no rank in `step`, no all-reduce, and no division by the number of devices. It is the program for a single
# device. The mean in `loss` is the mean over all 64 rows, wherever they are. When we looked at what the compiler had
# made of it, we found exactly one all-reduce, and the new weights agreed with those of a single device up to rounding.
# Now to two of the six questions. Who adds up? The compiler does. Sum or mean? Whatever the program says about the
# whole array, so there is nothing for you to divide.
#
# JAX also has the view that you know. Inside `shard_map`, the program describes what one device does, and you write the
# collectives yourself:
#
# ```python
# @jax.shard_map(mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)
# def step_of_one_device(w, x, y):
#     gradient = jax.grad(loss)(w, x, y)    # the mean over this device's rows
#     return w - 0.1 * jax.lax.pmean(gradient, "data")
# ```
#
# This gives the same weights as well. But look at `check_vma=False`. Without this argument, today's JAX keeps track of
# which values are the same on all devices. The weights `w` are. `jax.grad` therefore returns the gradient for this
# *shared* value, which is already added up over the devices. If four devices have the gradients 1, 2, 3 and 6, each
# gets 12, because a change of `w` changes all four losses. `pmean` then takes the mean of four equal sums, which
# changes nothing. **Predict.** How large was our step without `check_vma=False`, as a multiple of the right one, with
# four devices?

# %%
course.predict("jax_vma", within=1.01, factor=...)

# %%
course.answer("jax_vma", factor=4)

# %% [markdown]
# It was four times too large, without any error or warning. If you take the mean of the *loss* with `pmean`, and then
# the gradient of this mean, the result is right without the argument. You see that even within one framework, "who adds
# up?" can have two answers.
#
# ## One controller
#
# A training loop has run well for weeks. You add a line that stops it as soon as the loss is low enough, and now it
# hangs on four ranks, although it still works on one. Manuals warn of this with a word. Programs with MPI, programs
# that `torchrun` starts, and JAX on several machines are **SPMD**, *single program, multiple data*, which means that
# every rank runs the whole program by itself. Nothing keeps the ranks together except that all of them make the same
# decisions.
#
# The next program has such a line. Each of the four ranks has 16 of the 64 images. With `together=True`, the ranks
# first agree on the mean of their losses. With `together=False`, each of them looks at its own loss only.

# %%
from course_utils.lessons.parameter_server import first_weights, flat_gradient, unflat
from course_utils.lessons.sgd import loss_and_gradients

images, labels = x.numpy(), y.numpy()


def train_until(comm, limit, together):
    from mpi4py import MPI

    own = slice(comm.rank, None, comm.size)
    weights = first_weights(seed=0)
    for step in range(200):
        loss, _ = loss_and_gradients(unflat(weights), images[own], labels[own])
        if together:
            loss = comm.allreduce(loss) / comm.size
        if loss < limit:
            return step
        gradient = flat_gradient(weights, images[own], labels[own])
        comm.Allreduce(MPI.IN_PLACE, gradient)
        weights -= 0.3 * gradient / comm.size


# %% [markdown]
# **Predict.** All ranks begin with the same weights and make the same steps. What happens with `together=False`?

# %%
choices = {
    "a": "all ranks stop after the same number of steps",
    "b": "each rank stops when its own loss is low enough, and the run ends",
    "c": "the first ranks stop, and the others wait for them for ever",
}
course.predict("own_decisions", answer=..., choices=choices)  # "a", "b" or "c"

# %% tags=["raises-exception"]
ranks.run(train_until, 1.0, False)

# %% tags=["nbval-check-output"]
course.answer("own_decisions", answer="c")
in_spmd = ranks.run(train_until, 1.0, True).results
print("steps until the mean loss is below 1:", in_spmd)

# %% [markdown]
# The ranks have the same weights but different images, so some reach the limit earlier than others. They leave the
# loop, and the others wait in the next `Allreduce` for ranks that will never call it. The repair costs a collective in
# every step.
#
# There is a different kind of program, in which only one process decides. It is called a **single controller**, and the
# ranks carry out its orders. You have used one since lesson 0, because your notebook *is* one. Up to now its orders
# were large, and a whole program was a single order, `ranks.run(program)`. But they can be as small as you like. The
# next cell puts the weights and two functions on the ranks, and the cell after it has the loop, in the notebook.

# %%
ranks.view.push({"images": images, "labels": labels}, block=True)

# %%
# %%px
from mpi4py import MPI
from course_utils.lessons.parameter_server import first_weights, flat_gradient, unflat
from course_utils.lessons.sgd import loss_and_gradients

comm = MPI.COMM_WORLD
own = slice(comm.rank, None, comm.size)
weights = first_weights(seed=0)


def own_loss():
    return loss_and_gradients(unflat(weights), images[own], labels[own])[0]


def take_step():
    gradient = flat_gradient(weights, images[own], labels[own])
    comm.Allreduce(MPI.IN_PLACE, gradient)
    weights[:] -= 0.3 * gradient / comm.size


# %% tags=["figure:15_one_controller"]
from course_utils.lessons.read_the_manual import stopping_text


def order(call):
    return ranks.view.apply_sync(eval, call)  # to all ranks; their answers in a list


losses = [order("own_loss()")]
while sum(losses[-1]) / 4 >= 1.0:
    order("take_step()")
    losses.append(order("own_loss()"))
steps = len(losses) - 1
assert in_spmd == [steps] * 4
course.draw.over_numbers(
    range(steps + 1),
    {f"rank {rank}": own for rank, own in enumerate(zip(*losses))},
    stopping_text(losses, limit=1.0),
    across="steps",
    up="loss on a rank's own images",
    unit="{:g}".format,
)

# %% [markdown]
# The loop has stopped after the same number of steps as before. There is only one loop and one decision, so the ranks
# can't disagree, and no collective is needed to make them agree. The weights have never left the ranks.
#
# What does it cost? Our loop gives two orders per step to each of four ranks, and each order is answered, which makes
# 2 × 2 × 4 = 16 messages. If the controller needs 10 µs for a message, that is 0.16 ms per step.
#
# **Predict.** How many milliseconds would it be with 4,096 ranks?

# %%
course.predict("orders", within=1.1, ms=...)

# %%
course.answer("orders", ms=2 * 2 * 4096 * 0.010)

# %% [markdown]
# That is why large controllers give larger orders, pass them on along a tree (lesson 4), or send the next orders before
# the answers are there. Here are three systems with a single controller. We did not run them.
#
# - [Ray](https://docs.ray.io): a Python program calls functions and objects that live in other processes, on any number
#   of machines, and at once gets a placeholder for each result.
# - [Monarch](https://github.com/meta-pytorch/monarch), of PyTorch: a Python program starts meshes of processes and
#   sends each call to all objects of a mesh.
# - [Pathways](https://arxiv.org/abs/2203.12533) (Barham and others, 2022), of Google: a controller for thousands of
#   TPUs that hands out the work of the next steps while earlier ones are still running.
#
# Often the two kinds are combined. A controller is in charge of several groups that do different things, such as the
# trainers and generators of [Further 8](08_parameter_server_further.ipynb), and each group is SPMD inside.
#
# ### All ranks in one process
#
# Take this idea to its end. If only one process decides, it can also hold what all ranks hold, and do their work one
# after the other. Then you can try out a program for many ranks without starting any. PyTorch has a private tool for
# this, `LocalTensor`. The program has to be one with a global view, such as one with DTensors ([Further
# 9](09_model_parallel_further.ipynb)). This one has two linear layers, and we can choose how each matrix is cut:

# %%
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

torch.manual_seed(0)
tokens = torch.randn(8, 16, dtype=torch.float64)
up = torch.randn(16, 32, dtype=torch.float64)
down = torch.randn(32, 16, dtype=torch.float64)
wanted = (tokens @ up).relu() @ down


def two_layers(mesh, cut_up, cut_down):
    """Return the output, whole on every rank, and the collectives that were needed."""
    spread = distribute_tensor(tokens, mesh, [Replicate()])
    first = distribute_tensor(up, mesh, [cut_up])
    second = distribute_tensor(down, mesh, [cut_down])
    with CommDebugMode() as counted:
        out = (spread @ first).relu() @ second
        out = out.redistribute(mesh, [Replicate()]).to_local()
    calls = {str(call).split(".")[-1]: n for call, n in counted.get_comm_counts().items()}
    return out, calls


# %% [markdown]
# Suppose `up` is cut by columns and `down` by rows, as in lesson 9. Each rank then calculates a quarter of the hidden
# neurons, which are just those that its rows of `down` need. So each rank has a term of the output, and a single
# all-reduce adds them up.
#
# **Predict.** How many collectives are there if both matrices are cut by columns? And if both are cut by rows?
# Remember that the ReLU needs complete sums.

# %%
course.predict("cuts", columns=..., rows=...)

# %% tags=["nbval-check-output"]
from course_utils.lessons.read_the_manual import local_ranks, parts_of

by_rows, by_columns = Shard(0), Shard(1)
cuts = {
    "columns, then rows": (by_columns, by_rows),
    "columns twice": (by_columns, by_columns),
    "rows twice": (by_rows, by_rows),
}
found = {}
with local_ranks(4) as mesh:  # no rank is started
    for name, cut in cuts.items():
        out, found[name] = two_layers(mesh, *cut)
        parts = parts_of(out)  # what each of the four ranks holds
        assert all(torch.allclose(part, wanted, atol=1e-12) for part in parts)
        print(f"{name}: {len(parts)} ranks with the right output, {found[name]}")
columns, rows = (sum(found[name].values()) for name in ("columns twice", "rows twice"))

# %%
course.answer("cuts", columns=columns, rows=rows)

# %% [markdown]
# With columns twice, each rank needs all hidden neurons, so they are gathered, and then it has only some columns of the
# output, which are gathered as well. With rows twice, each rank has terms of both products, and each is completed by an
# all-reduce.
#
# The course's virtual ranks are also simulated in one process, but with a different aim. We run the first of the three
# cuts three times, with `LocalTensor`, on real ranks, and on virtual ranks. The first two run the same program. For
# virtual ranks we have to write it anew, because they know MPI but not DTensors:


# %%
def on_real_ranks():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    out, calls = two_layers(mesh, by_columns, by_rows)
    return (out - wanted).abs().max().item(), calls


def by_hand(comm, tokens, up, down):
    from mpi4py import MPI

    width = up.shape[1] // comm.size
    own = slice(comm.rank * width, (comm.rank + 1) * width)
    out = (tokens @ up[:, own]).clip(min=0) @ down[own]
    comm.Allreduce(MPI.IN_PLACE, out)
    return abs(out - wanted.numpy()).max()


real = ranks.run(on_real_ranks, backend="gloo")
apart, calls = real.results[0]
assert apart < 1e-12 and calls == found["columns, then rows"]
calls_of_0 = [e for e in real.events if e.kind == "collective" and e.rank == 0]
print("real ranks: rank 0 puts in", [call.bytes for call in calls_of_0], "bytes")

matrices = [matrix.numpy() for matrix in (tokens, up, down)]
for link in ("100 Mbit/s", "1 Gbit/s"):
    nowhere = course.start(4, where="nowhere", link=link)
    run = nowhere.run(by_hand, *matrices)
    assert max(run.results) < 1e-12
    put_in, microseconds = run.bytes_per_rank[0], 1e6 * run.seconds
    print(f"virtual ranks, {link}: {put_in} bytes, {microseconds:.0f} µs")

# %% [markdown]
# The output has 8 × 16 numbers of 8 bytes, which are the 1,024 bytes of the all-reduce, the last collective in the list
# of the real ranks. The three before it hand out the tokens and the two matrices. On virtual ranks with links of 100
# Mbit/s, the all-reduce takes $2 \cdot \frac34$ times as long as a link needs for 1,024 bytes (lesson 5), which makes
# 1.5 × 82 = 123 µs. This is what each of the three can tell you:
#
# | | real ranks | `LocalTensor` | virtual ranks |
# |---|---|---|---|
# | processes | one for each rank | one | one |
# | programs | all | those with DTensors | those with MPI |
# | results of every rank | yes | yes | yes |
# | collectives counted | yes | yes | yes |
# | bytes counted | yes | no | yes |
# | time | on this computer | no | on a network that you describe |
# | can it hang? | yes | no, because the program runs only once | yes |
#
# ## Two frameworks of older programs
#
# **Horovod** made data parallelism popular in several frameworks at once. It has the words *rank* and *size* from MPI,
# and a program needs only a few extra lines. Its last release, 0.28.1, is from June 2023. You will still meet it in
# programs on clusters, and PyTorch's DDP does the same job today. The documentation of `hvd.allreduce` says about its
# argument `op`: "Defaults to Average if None is given."
#
# **tf.distribute** is TensorFlow's. A *strategy* object decides how variables are kept. `MirroredStrategy` keeps a copy
# on each GPU of a machine, `MultiWorkerMirroredStrategy` does so on several machines, and `ParameterServerStrategy`
# keeps the variables on parameter servers, which workers read and update asynchronously, as in lesson 8.
#
# Compare these with `dist.all_reduce(tensor)` of PyTorch, which adds up unless you say otherwise, and with
# `jax.lax.psum` and `jax.lax.pmean`, which have their operation in the name.
#
# **Predict.** In which of the five frameworks of [lesson 15's dictionary](15_read_the_manual.ipynb) is a plain
# all-reduce a *mean*, and which of them comes with a whole strategy for a parameter server?

# %%
from course_utils.lessons.read_the_manual import FRAMEWORKS

choices = dict(zip("abcde", FRAMEWORKS))
course.predict("dictionary", choices=choices, mean=..., server=...)  # letters

# %%
course.answer("dictionary", mean="b", server="d")

# %% [markdown]
# PyTorch has the parts for a parameter server, namely remote procedure calls, but not the whole. DeepSpeed and JAX have
# neither.
#
# ## Who trains large models with what?
#
# The six questions help you to choose, too. These are libraries that you are likely to meet in 2026. We read their
# pages in November 2026, and did not run any of them except FSDP2.
#
# | Library | What it is | What it leaves to you |
# |---|---|---|
# | FSDP2, DTensor | parts of PyTorch | the loop, the layers to shard, an equal start |
# | torchtitan | a pretraining program built from these parts | the configuration and the mesh |
# | Megatron-Core | NVIDIA's building blocks for transformers | the program around them |
# | DeepSpeed | ZeRO and more behind an engine | the loop, which calls the engine |
# | Accelerate | one interface to DDP, FSDP and DeepSpeed | the loop |
# | Transformers' `Trainer` | a training loop on top of Accelerate | the model, the data, many options |
# | Lightning | a Trainer with strategies for DDP and FSDP | what a step is |
# | MaxText | a program in JAX, cut up by the compiler | the configuration and the mesh |
#
# The pages are [`fully_shard`](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html),
# [torchtitan](https://github.com/pytorch/torchtitan), the [Megatron Core user
# guide](https://docs.nvidia.com/megatron-core/developer-guide/latest), [DeepSpeed](https://www.deepspeed.ai/),
# [Accelerate in Transformers](https://huggingface.co/docs/transformers/accelerate),
# [Lightning](https://lightning.ai/docs/pytorch/stable/) and [MaxText](https://github.com/AI-Hypercomputer/maxtext).
# torchtitan combines FSDP2 with tensor, pipeline, expert (lesson 16) and context parallelism (lesson 17). Megatron-Core
# has the same kinds, but usually shards with its own distributed optimizer or its own FSDP. Megatron-LM is its example
# of a whole program.
#
# Read the last column from top to bottom. The libraries differ less in what they can do than in how much they decide
# for you. If you change the model a lot, you want to own the loop. If you train a known kind of model on many GPUs, a
# program that others have tuned will save you weeks.
#
# ## What must you know about the network?
#
# Some methods fit into any program, and others need to know your network inside out. This is one more reason why some
# manuals are short and others are long. The next cell counts the lines of three methods in the course's own library,
# without comments and docstrings.

# %% tags=["here:15_lines"]
from course_utils.lessons.data_parallel import broadcast_parameters
from course_utils.lessons.model_parallel import column_parallel_linear
from course_utils.lessons.model_parallel import row_parallel_linear
from course_utils.lessons.pipeline import one_f_one_b_schedule, run_schedule
from course_utils.lessons.pipeline import with_messages
from course_utils.lessons.read_the_manual import lines_of_code

methods = {
    "data parallelism": [broadcast_parameters, average_gradients],
    "tensor parallelism": [column_parallel_linear, row_parallel_linear],
    "pipeline": [one_f_one_b_schedule, with_messages, run_schedule],
}
for name, functions in methods.items():
    lines = sum(lines_of_code(function) for function in functions)
    print(f"{name:20} {lines:3} lines of code")

# %% [markdown]
# | | What it needs to know about the network |
# |---|---|
# | data parallelism | nothing: it treats all weights alike, and the loop around them stays as it is |
# | tensor parallelism | which linear layers follow each other, what is between them, and how many heads there are |
# | pipeline | the order of the layers and how long each takes; the loss has to work on micro-batches |
#
# The number of lines does not tell you how hard a method is. Tensor parallelism has the fewest here, but its two
# functions cover only linear layers, need collectives with a backward pass, and have to be put into each block of the
# network in the right order ([lesson 9](09_model_parallel.ipynb)). Data parallelism takes no notice of the network at
# all. If a model fits on one GPU, it is therefore where to start, and the other methods are for models that don't.
#
# ## Two old paragraphs
#
# The two paragraphs of TensorFlow's manual, with which lesson 15 begins and ends, also begin and end a course by SURF,
# the Dutch national computing centre, from which this course took its goal: that you understand every word of them
# ([sources](../docs/sources.md)). The slides are from 2022, and the wording is from about 2020, before TensorFlow 2.4.
# The same page of the manual today uses `CommunicationImplementation.RING`, where the paragraph has
# `CollectiveCommunication.RING`.

# %%
ranks.stop()

# %% [markdown]
# ## What to take away
#
# A mean of means is the mean of all only if the parts are equally large. Otherwise weight the loss. A program in JAX
# can describe the whole step and let the compiler add the collectives, or describe one device and leave them to you,
# and it depends on an argument whether the gradient has been added up already. In SPMD, all ranks have to make the same
# decisions, and with a single controller only one process makes them. Horovod averages by default, and
# tf.distribute leaves the division to you in a custom training loop. The libraries that train large models differ most
# in how much they decide for you.
#
# **To read**
#
# - The JAX documentation on [`shard_map`](https://docs.jax.dev/en/latest/notebooks/shard_map.html) explains both views
#   with many small examples.
# - Liang and others (2024), [*TorchTitan*](https://arxiv.org/abs/2410.06511), describes how the parts of PyTorch that
#   you know are combined for pretraining.
# - Hugging Face (2024), [*Fixing Gradient Accumulation*](https://huggingface.co/blog/gradient_accumulation), tells the
#   story of the mean of means.
