# The lesson on data parallelism. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Can P workers train as one?
#
# In 2017, a network that classifies photographs was trained on 256 GPUs in one hour, and it ended up as accurate as the
# same network trained on 8 GPUs ([Goyal and others](https://arxiv.org/abs/1706.02677)). That is 32 times as many GPUs.
# At the scaling efficiency of about 90 percent that they report, the large run was 0.9 × 32, or about 29 times as fast.
# The smaller one would have taken more than a day.
#
# How can 256 processors train *one* network? The training loop needs three new lines. But if one of them is wrong,
# there is usually no error message. On this page you will see four workers whose steps are 16 times as long as
# intended, and four others that never agree on a network. Both programs run to their end without a complaint.
#
# You will turn a serial training loop into a parallel one, show that the two do the same thing, and learn to recognise
# the mistakes that raise no warning.
#
# *50 minutes · builds on lessons [2](02_autodiff_and_optimizers.ipynb) and [5](05_allreduce.ipynb) · 4 ranks*

# %%
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.lessons.data_parallel import History, Sgd, accuracy, batches
from course_utils.lessons.data_parallel import digits_mlp, flat_parameters, mean_losses
from course_utils.trace.recorder import phase

ranks = course.start(4, link="200 Mbit/s")
ranks.load_torch()  # importing torch takes seconds: the ranks do it while you read

# %% [markdown]
# As in lesson 5, each rank plays the part of a node with a network link of its own. This time a link carries 200
# million bits per second, which is 25 MB per second.
#
# ## One process trains alone
#
# We need something to compare with, so we begin with a single process that learns to recognise handwritten digits. You
# know this loop from lessons 1 and 2. In each epoch it shuffles the 1,437 training images and cuts them into 22 batches
# of 64. The 29 images that are left over are not used in this epoch. For each batch it computes the loss (*forward*),
# then the gradient (*backward*), and then it takes a step. The network `digits_mlp` has three linear layers: 64 pixels
# to 64 hidden units, 64 to 64, and 64 to the 10 digits. `batches` cuts an order into batches and drops what is left
# over. `Sgd` subtracts rate × gradient from the weights, just as `torch.optim.SGD` does.


# %%
def shuffled(n, epoch):
    generator = torch.Generator().manual_seed(epoch)  # a new order for each epoch
    return torch.randperm(n, generator=generator)


def train_serial(data, epochs=1, batch_size=64, rate=0.2):
    x, y, test_x, test_y = data
    model = digits_mlp(seed=0).double()
    optimizer = Sgd(model.parameters(), rate)
    losses = []
    for epoch in range(epochs):
        for batch in batches(shuffled(len(x), epoch), batch_size):
            loss = cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return History(losses, accuracy(model, test_x, test_y), flat_parameters(model))


# %% tags=["nbval-check-output"]
data = course.data.digits("float64")
epochs = 4
serial = train_serial(data, epochs)
print(f"{serial.test_accuracy:.1%} recognised after {len(serial.losses)} steps")

# %% [markdown]
# Here `data` is a named tuple of images and labels, first those for training and then those for testing. A `History`
# holds the loss at every step, the share of the test images that the network recognises, and its final weights. All
# numbers are of type `float64`, which has about 16 decimal digits. If two runs differ by more than rounding errors, we
# will know that something is wrong.
#
# ## Four ranks share every batch
#
# Now four workers take over. In **data parallelism**, each rank holds a copy of the whole network, called a
# **replica**, and works on a part of every batch, called its **shard**. With four ranks and a batch of 64, a shard has
# 16 images.
#
# No process hands out the images. Every rank has all of them, and all ranks shuffle with the same seed, so they get the
# same order without sending a single message. From each batch, rank $r$ takes every fourth image, beginning with image
# $r$. Here is what that gives for 12 images in batches of 4:

# %% tags=["nbval-check-output"]
order = shuffled(12, epoch=0)
print("one process:", order.tolist())
for rank in range(4):
    shards = [batch[rank::4].tolist() for batch in batches(order, 4)]
    print(f"rank {rank} takes", *shards)

# %% [markdown]
# Read down the first column. The images 8, 0, 5 and 9 are the first four in the order of the single process, so
# together the four shards are exactly the batch that one process would have used. PyTorch's `DistributedSampler` deals
# out images in the same order, except that it repeats a few images if their number isn't a multiple of the number of
# ranks. You will write it in an exercise, and [Further](06_data_parallel_further.ipynb) shows what happens if you
# forget to tell it the epoch.
#
# ## The mean of four gradients
#
# Each rank now computes a gradient from 16 images instead of 64. How do we get the gradient of the whole batch?
#
# Take a batch of four images whose losses are 1, 2, 3 and 6. The loss of the batch is their mean, which is 3. If two
# ranks share them, rank 0 takes the first and the third and finds a mean of 2, and rank 1 finds a mean of 4. The mean
# of these two is 3 again. This works because both shards have the same size. And it works for gradients, too, because
# the gradient of a mean is the mean of the gradients. If $g_r$ is the gradient that rank $r$ computes from its shard,
# and $P$ is the number of ranks, the gradient of the batch is
#
# $$g = \tfrac{1}{P}\,(g_0 + g_1 + \dots + g_{P-1}).$$
#
# So we need the all-reduce of lesson 5 and a division by $P$. In PyTorch the call is `dist.all_reduce`, where `dist` is
# short for `torch.distributed`. It replaces the tensor you pass with the sum over all ranks. Two more calls tell us
# what `comm.rank` and `comm.size` told us before: `dist.get_rank()` and `dist.get_world_size()`. Let's try it with the
# gradient of the last layer's bias. It has ten numbers, and we print the first of them:


# %%
def gradient_of_a_shard(data, average):
    rank, P = dist.get_rank(), dist.get_world_size()
    model = digits_mlp(seed=0).double()
    batch = shuffled(len(data.train_x), epoch=0)[:64]
    mine = batch[rank::P]
    cross_entropy(model(data.train_x[mine]), data.train_y[mine]).backward()
    gradient = list(model.parameters())[-1].grad  # of the last bias
    if average:
        dist.all_reduce(gradient)
        gradient /= P
    return gradient.tolist()


# %% tags=["nbval-check-output"]
def gradients(average, P=4):
    run = ranks.run(gradient_of_a_shard, data, average, backend="gloo", ranks=P)
    return np.array(run.results)  # a row for each rank


alone, own, mean = gradients(False, P=1), gradients(False), gradients(True)
print("one process, 64 images:", alone[:, 0].round(6))  # the first of the ten
print("each rank, 16 images:  ", own[:, 0].round(6))
print("after the all-reduce:  ", mean[:, 0].round(6))

# %% [markdown]
# Each rank finds a different gradient, because each has seen different images. After the all-reduce and the division,
# all four hold what the single process computed.
#
# In lesson 5, `comm` kept track of who was taking part. Where has it gone? Because we passed `backend="gloo"`,
# `ranks.run` did this on every rank:
#
# ```python
# dist.init_process_group("gloo")  # before our function
# ...
# dist.destroy_process_group()  # after it
# ```
#
# In your own programs you write these lines yourself, and the end of lesson 7 shows how the processes then find each
# other. The first line connects the processes and creates a **process group**, which does the work of `comm`. The group
# contains the list of the ranks that take part, this process's own number in the list, and the connections to the
# others. PyTorch keeps this first group in a global variable and calls it the *default process group*. All the
# functions of `dist` that send something use it, unless you pass a different one with `group=`, as you will in lesson
# 11.
#
# The library that carries a group's messages is its **backend**. Ours is **gloo**, which comes with PyTorch and needs
# no special hardware. On NVIDIA's GPUs you would use NCCL (lesson 13). [Further](06_data_parallel_further.ipynb)
# compares gloo with MPI and with your ring.
#
# ## The training loop
#
# Here is the whole parallel loop. Two small functions come first. One copies the weights of rank 0 to every other rank,
# and the other replaces each gradient with its mean over the ranks.


# %%
def broadcast_parameters(model):
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)  # .data: autograd doesn't record this


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def train(
    data,
    epochs=1,
    batch_size=64,
    rate=0.2,
    build=digits_mlp,
    share_start=broadcast_parameters,
    share_gradients=average_gradients,
):
    x, y, test_x, test_y = data
    rank, P = dist.get_rank(), dist.get_world_size()
    model = build(seed=rank).double()  # every rank draws different weights
    share_start(model)  # new
    optimizer = Sgd(model.parameters(), rate)
    losses = []
    for epoch in range(epochs):
        for batch in batches(shuffled(len(x), epoch), batch_size):
            mine = batch[rank::P]  # new
            with phase("forward"):
                loss = cross_entropy(model(x[mine]), y[mine])
            with phase("backward"):
                optimizer.zero_grad()
                loss.backward()
            with phase("communication"):
                share_gradients(model)  # new
            with phase("step"):
                optimizer.step()
            losses.append(loss.item())
    return History(losses, accuracy(model, test_x, test_y), flat_parameters(model))


# %% [markdown]
# The three lines with the comment *new* do what the serial loop doesn't. The first gives all ranks the same weights to
# start with. (We let every rank draw different ones, so that you can see, later on, what happens if this line is
# missing.) The second picks this rank's shard, and the third exchanges the gradients. The weights are never sent again,
# because replicas that start equal and subtract the same mean gradient stay equal. The last three arguments of `train`
# are functions, so that we can exchange them later on this page. The calls to `phase` merely note when each part of a
# step begins and ends, so that we can draw it.
#
# How closely do the two runs agree? The serial run adds up 64 losses. Here, each rank adds up 16, and then the four
# results are added. From lesson 5 you know that a different grouping changes the rounding, and that one rounding in
# `float64` changes a number by at most $2^{-53}$ of its size, which is about 1e-16.
#
# **Predict.** We train for 88 steps, once with one process and once with four ranks. What is the largest difference
# between the two losses at any step?

# %%
course.predict(
    "apart",
    answer=...,  # "a", "b" or "c"
    choices={"a": "exactly 0", "b": "about 1e-15", "c": "about 1e-3"},
)

# %% tags=["figure:06_same_loss"]
parallel = ranks.run(train, data, epochs, backend="gloo")
losses = mean_losses(parallel.results)  # the mean of the four ranks' losses, at each step
difference = np.abs(np.subtract(losses, serial.losses)).max()
assert difference <= 1e-6, difference
letter = "a" if difference == 0 else "b" if difference < 1e-12 else "c"
course.measured("apart", answer=letter)
print("recognised:", *(f"{history.test_accuracy:.1%}" for history in parallel.results))
course.draw.loss_curves({"serial": serial.losses, "4 ranks": losses})

# %% [markdown]
# At each of the 88 steps the two losses agree, except perhaps for their last digits. In this sense four workers really
# train as one. Such training is called **synchronous**, because in every step each rank waits for all the others.
#
# Keep this comparison, because it is the best test for parallel training code. Train a few steps both ways in `float64`
# and compare the loss at each step. A mistake shows up as a difference far too large for rounding. Try it. Delete the
# division by `dist.get_world_size()` and run that cell again, and then the one with the picture. The `assert` will stop
# you. Put the line back and run both cells once more. In the [exercises](../exercises/06_data_parallel.ipynb) you write
# such a loop yourself.
#
# ## Six calls or one?
#
# Our network has three weight matrices and three biases, so `average_gradients` calls `all_reduce` six times in each
# step. Together the gradients have 8,970 numbers of 8 bytes, which is 72 KB. In a ring of four ranks, each rank sends
# 1.5 times that, or 108 KB, and at 25 MB per second this takes about 4 ms. (Our emulated links let the first few KB
# after a pause through at once, so it may be a little less.) But every call to `all_reduce` also has a fixed cost,
# however little it sends. In a ring of four ranks, each of them has to wait for 2 × 3 messages, one after the other.
# With six calls we pay this cost six times. If we copy all the gradients into one vector first, the same bytes travel
# in one call:


# %%
def in_one_vector(model):
    gradients = [parameter.grad for parameter in model.parameters()]
    vector = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(vector)
    vector /= dist.get_world_size()
    start = 0
    for gradient in gradients:
        piece = vector[start : start + gradient.numel()]
        gradient.copy_(piece.view_as(gradient))
        start += gradient.numel()


# %%
from course_utils.lessons.data_parallel import exchange_text, last_step, phase_durations
from course_utils.lessons.data_parallel import quickest


def train_on_ranks(data=data, share_gradients=in_one_vector, **options):
    return ranks.run(
        train, data, share_gradients=share_gradients, backend="gloo", **options
    )


correct = train_on_ranks()
assert np.allclose(mean_losses(correct.results), serial.losses[:22], atol=1e-6)
seconds = {
    "six calls": phase_durations(parallel.events, "communication"),
    "one call": phase_durations(correct.events, "communication"),
}
print(exchange_text(seconds))
few = [part[:128] for part in data]  # enough for two steps; we draw the second
six = quickest([last_step(train_on_ranks(few, average_gradients)) for _ in range(3)])
single = quickest([last_step(train_on_ranks(few)) for _ in range(3)])
titles = ["six calls", "one call"]
title = "One step: the same gradients in six calls to all_reduce, and in a single one"
course.draw.timelines(six, single, titles=titles, title=title)

# %% [markdown]
# Unless your computer was too busy, the printed line compares all the steps. The picture shows one step of each
# version, the fastest of three. Count the dark blocks in each row, one for each call. The pale parts show how long a
# rank was busy with a call before or after the others. The `assert` confirms that the losses still match the serial
# run, so from now on we use the single vector. That has one drawback. Neither version sends anything until the whole
# backward pass is over, and with a single vector there is no way around that. In lesson 7 you will collect the
# gradients in a few vectors, and send the first of them while the backward pass is still going on.
#
# ## A sum is a longer step
#
# Some programs add up the gradients of all workers and never divide. That is fine, as long as you know about it.
# Suppose four ranks have the gradients 1, 2, 3 and 6 for some weight, and the rate is 0.1. Their mean is 3, and a step
# moves the weight by 0.1 × 3 = 0.3. Their sum is 12, and now the step moves it by 1.2, four times as far. So with SGD,
# taking the sum has the same effect as multiplying the rate by $P$. (AdamW divides each gradient by its usual size, so
# it would hardly notice.)
#
# You may also have read that the rate should be multiplied by the number of workers. The next section explains when
# that is a good idea. If the library already takes the sum, you would multiply twice.
#
# **Predict.** A program on four ranks takes the sum *and* multiplies the rate by 4. By what factor does its first step
# become longer than that of a program that does neither?

# %%
course.predict("step_factor", answer=...)  # a number


# %%
def sum_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)


def curve(**options):
    return mean_losses(train_on_ranks(**options).results)


curves = {
    "mean, 0.1": curve(rate=0.1),
    "mean, 4 · 0.1": curve(rate=0.4),
    "sum, 0.1": curve(rate=0.1, share_gradients=sum_gradients),
    "sum, 4 · 0.1": curve(rate=0.4, share_gradients=sum_gradients),
}
assert np.allclose(curves["sum, 0.1"], curves["mean, 4 · 0.1"], atol=1e-6)

# %% tags=["figure:06_sum_or_mean"]
start = flat_parameters(digits_mlp(seed=0).double())


def first_step(**options):
    run = train_on_ranks([part[:64] for part in data], **options)
    return (run.results[0].parameters - start).norm().item()


both = first_step(rate=0.4, share_gradients=sum_gradients)
times = both / first_step(rate=0.1)
course.measured("step_factor", answer=round(times, 6))
title = f"With the sum and 4 times the rate, the first step is {times:.0f} times as long"
course.draw.loss_curves(curves, title)

# %% [markdown]
# Two of the four curves lie on top of each other, because the sum with a rate of 0.1 is the mean with a rate of 0.4.
# Each of the two changes makes the step 4 times as long, and both together make it 4 × 4 = 16 times as long. For this
# small network a rate of 0.4 happens to be better than 0.1, but 1.6 is too large. So before you change the rate, find
# out what a library takes, sum or mean. PyTorch's `DistributedDataParallel`, which you will meet in lesson 7, averages.
#
# ## A larger batch allows a larger rate
#
# So far we have cut one batch into four. But with a batch of 64, each of 256 GPUs would get a quarter of an image. In
# practice each rank often takes as many images as it would alone. (In our function, `batch_size` is the number for all
# ranks together.) The images that all ranks use in one step form the **global batch**. If each of our four ranks takes
# 32 images, the global batch has 128. An epoch then has a quarter of the steps that one rank alone would take.
#
# Should we raise the rate to make up for taking fewer steps? One rank alone takes four steps at a rate of $\eta$, with
# the gradients $g_0$ to $g_3$ of four batches. Together they move the weights by $\eta\,(g_0 + g_1 + g_2 + g_3)$. Four
# ranks compute four gradients at the same time and take one step with their mean, $\frac14(g_0 + g_1 + g_2 + g_3)$. At
# a rate of $4\eta$, this one step covers the same distance as the four together. That is the **linear rule**: with $P$
# times the batch, take $P$ times the rate. It isn't exact, because a single rank computes each gradient at the point
# that its previous step has reached, while the four ranks compute all of theirs at the same point.
#
# There is a more cautious rule, too. The noise in a gradient falls with the square root of the number of images (lesson
# 1), so the mean of four gradients has half the noise of one. The **square root rule** takes $\sqrt P$ times the rate,
# which keeps the noise of a step as large as it was.
#
# **Predict.** One rank with 32 images trains at a rate of 0.1. With four ranks and four epochs, which of these rates
# gives the highest test accuracy?

# %%
course.predict(
    "rule",
    answer=...,  # "a", "b" or "c"
    choices={"a": "0.1", "b": "√4 times that, 0.2", "c": "4 times that, 0.4"},
)

# %% tags=["figure:06_scaling"]
one_rank = train_serial(data, epochs, batch_size=32, rate=0.1)
by_four = np.reshape(one_rank.losses, (-1, 4)).mean(axis=1)  # four steps are 128 images
curves = {f"one rank: {one_rank.test_accuracy:.1%}": by_four}
shares = []
for rate in (0.1, 0.2, 0.4):
    run = train_on_ranks(rate=rate, epochs=epochs, batch_size=128)
    shares.append(run.results[0].test_accuracy)
    curves[f"rate {rate}: {shares[-1]:.1%}"] = mean_losses(run.results)
best = int(np.argmax(shares))
course.measured("rule", answer="abc"[best])
title = (
    f"Of three rates on 4 ranks, {(0.1, 0.2, 0.4)[best]} gives the highest test accuracy"
)
course.draw.loss_curves(curves, title, x="step of 128 images")

# %% [markdown]
# The percentages are the shares of test images recognised. Compare the curves with that of one rank, which has taken
# four steps where the others take one. With the old rate of 0.1, four ranks lag far behind it. At 0.4 the loss jumps up
# a few times, yet of the three rates it ends lowest. The linear rule is meant to close this gap, and it can do so as
# long as the gradient hardly changes during the four steps that it replaces. Early in training the gradient changes
# quickly. The network at the top of this page was therefore trained with the linear rule and a **warm-up**, in which
# the rate begins at the value for a small batch and grows in a straight line to its full value. In their run this took
# five epochs. Without the warm-up it had an error of 24.8%, and with it 23.7%. Our network is too small to show a
# benefit, but you can try it yourself with `scaled_learning_rate` from the exercises.
#
# Both are rules of thumb. For Adam and its relatives, theory predicts a square root rule under certain conditions
# ([Malladi and others](https://arxiv.org/abs/2205.10287)). [Further](06_data_parallel_further.ipynb) puts that to the
# test, and shows how the ranks can measure from which size on a larger batch no longer pays.
#
# ## Different weights, and no error message
#
# Suppose the line that broadcasts the weights is missing. Every rank then starts from its own random weights. The
# gradients are still averaged, and all ranks still subtract the same mean gradient.
#
# Take a single weight, which is 5 on rank 0 and 8 on rank 1. If the mean gradient is 2 and the rate is 0.5, then after
# one step rank 0 holds 5 − 1 = 4 and rank 1 holds 8 − 1 = 7.
#
# **Predict.** Over 22 steps, do the weights of the four networks come closer to each other?

# %%
course.predict(
    "replicas",
    answer=...,  # "a", "b" or "c"
    choices={"a": "they come closer", "b": "they drift apart", "c": "neither of the two"},
)


# %%
def no_broadcast(model):
    pass


run = train_on_ranks(share_start=no_broadcast)
first = [flat_parameters(digits_mlp(seed=rank).double()) for rank in range(4)]
last = [history.parameters for history in run.results]
before = [(weights - first[0]).norm().item() for weights in first]
after = [(weights - last[0]).norm().item() for weights in last]
print("distance from rank 0 before:", np.round(before, 6))
print("distance after 22 steps:    ", np.round(after, 6))
for name, each in (("with", correct), ("without", run)):
    print(f"{name} the broadcast, rank 0 recognises {each.results[0].test_accuracy:.1%}")
closer = "a" if sum(after) < sum(before) else "b"
same = np.allclose(before, after, rtol=1e-9)
course.measured("replicas", answer="c" if same else closer)

# %% [markdown]
# All four take the same step, each from a different point, so the distances never change. And it is the right step for
# none of them. Rank 0 computed its gradient at its own point, but the step also contains three gradients that were
# computed elsewhere and say little about the slope where rank 0 is. The two percentages show what that does to the
# result.
#
# `all_reduce` raises no error, because it has no way of knowing that these gradients belong to different networks. So
# compare the weights of your replicas once, after the first step. For example, let each rank add up its weights, and
# check that the four sums are equal.
#
# ## The slowest rank sets the pace
#
# Suppose one of the four computers is slower than the others, for example because someone else is using it too. Such a
# rank is called a **straggler**. We imitate it by letting rank 3 sleep for 20 ms in each forward pass, and add up how
# long each rank spends in each part of its steps. The part *communication* begins when the rank calls `share_gradients`
# and ends when it has the result.
#
# Without the sleep, all ranks call `share_gradients` at about the same time, and all have the result soon after.
#
# **Predict.** With the sleep, which ranks spend the most time in communication?

# %%
course.predict(
    "straggler",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "rank 3's",
        "b": "that of ranks 0, 1 and 2",
        "c": "all take equally long",
    },
)

# %% tags=["figure:06_straggler"]
from course_utils.lessons.data_parallel import phase_bars, waiting_text
from course_utils.measuring import Compared, unless_busy


def slow_on_rank_3(seed):
    model = digits_mlp(seed)
    if dist.get_rank() == 3:
        # PyTorch calls this function before each forward pass
        model.register_forward_pre_hook(lambda *_: time.sleep(0.02))
    return model


late = train_on_ranks(build=slow_on_rank_3)
each = [phase_durations(late.events, "communication", rank) for rank in range(4)]
waiting = [sum(durations) for durations in each]
busy = any(Compared(each[3], other).is_busy for other in each[:3])
letter = "b" if min(waiting[:3]) > waiting[3] else "a"
course.measured("straggler", busy=busy, answer=letter)
title = unless_busy(busy, waiting_text(waiting, late=3))
course.draw.stacked_bars(phase_bars(late.events), title)

# %% [markdown]
# No rank can have the sum before rank 3 has sent its part. So the three fast ranks call `all_reduce` early and wait
# there for rank 3, which means that all four finish their step at about the same time. In a picture like this one it is
# the fast ranks that look as if their network were slow, because what is labelled communication is communication *and
# waiting*. Before you buy a faster network, find out whether one of your ranks is late. In [lesson
# 8](08_parameter_server.ipynb) you will see what happens if nobody waits.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can turn a serial training loop into a data-parallel one: broadcast the weights once, take your shard of each
# batch, and average the gradients before the step. You can test that the two do the same thing by comparing their
# losses at every step. You know that with SGD a sum makes the step $P$ times as long, and why a larger batch allows a
# larger rate. You know that different starting weights raise no error, and if communication looks slow, you will first
# ask who is late.
#
# In the [exercises](../exercises/06_data_parallel.ipynb) you write the loop and its parts yourself.
# [Further](06_data_parallel_further.ipynb) repeats on your ranks what a report measured on real machines, and covers
# layers that need to see the whole batch. In [lesson 7](07_overlap.ipynb) you make the loop faster.
#
# **To read**
#
# - Goyal and others, 2017, [*Accurate, Large Minibatch SGD*](https://arxiv.org/abs/1706.02677): the linear rule, the
#   warm-up, and a list of mistakes in distributed training.
# - Li and others, 2020, [*PyTorch Distributed*](https://arxiv.org/abs/2006.15704): how `DistributedDataParallel` does
#   what you did here.
# - Ben-Nun and Hoefler, 2019, [*Demystifying Parallel and Distributed Deep
#   Learning*](https://arxiv.org/abs/1802.09941): a survey of the ways to parallelise training, with a long list of
#   sources.
