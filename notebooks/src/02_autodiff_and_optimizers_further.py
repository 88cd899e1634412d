# What lesson 2 leaves out of its page. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: who computes the gradient?
#
# On the [first page](02_autodiff_and_optimizers.ipynb), our gradients agreed with PyTorch's on one batch of images. But
# do they also train a network? And is Adam better than SGD? The answer that you find depends on the learning rates that
# you try. In this notebook, we try six for each. You will also see why AdamW was needed, although Adam already had an
# option that seemed to do the same, and count how much memory a graph takes until the backward pass has gone through
# it.
#
# Everything here is optional, and the three sections do not depend on each other. Only run the first code cell before
# you start.
#
# *20 minutes · optional, after [lesson 2](02_autodiff_and_optimizers.ipynb) · no ranks*

# %%
import itertools

import numpy as np
import torch

import course_utils as course
from course_utils.lessons.autodiff_and_optimizers import Node, softmax_cross_entropy
from course_utils.lessons.sgd import minibatches, new_network, sgd_step

train_x, train_y, test_x, test_y = course.data.digits_arrays()
start = new_network(np.random.default_rng(0))


def network(x, W1, b1, W2, b2):
    return (x @ W1 + b1).relu() @ W2 + b2


def loss_of(nodes, images, digits):
    return softmax_cross_entropy(network(Node(images, "x"), *nodes), digits)


# %% [markdown]
# ## Training with our own gradients
#
# This is the training loop of lesson 1, except that the gradient now comes from our graph. It goes eight times through
# the 1,437 training images, and `step` is the optimizer:


# %%
def train(step, epochs=8):
    nodes = [Node(array.copy()) for array in start]
    losses = []
    rng = np.random.default_rng(1)
    for _ in range(epochs):
        for batch in minibatches(len(train_x), 32, rng):
            loss = loss_of(nodes, train_x[batch], train_y[batch])
            loss.backward()
            step([node.value for node in nodes], [node.gradient for node in nodes])
            losses.append(float(loss.value))
    answers = network(Node(test_x), *nodes).value.argmax(axis=1)
    return losses, np.mean(answers == test_y)


# %% [markdown]
# SGD needs only the gradients. Adam needs its two averages, and it needs to know which step this is. The library's
# `adam_step` is the function of your fourth exercise:


# %%
from course_utils.lessons.autodiff_and_optimizers import optimizers


def sgd(rate):
    def step(weights, gradients):
        sgd_step(weights, gradients, rate)

    return step


def adam(rate):
    means = [np.zeros_like(array) for array in start]
    squares = [np.zeros_like(array) for array in start]
    numbers = itertools.count(1)  # next(numbers) is 1, then 2, then 3 …

    def step(weights, gradients):
        number = next(numbers)
        optimizers.adam_step(weights, gradients, means, squares, number, rate)

    return step


# %% [markdown]
# In the example on the first page, a weight with a gradient of 0.5 moved by exactly one learning rate in Adam's first
# step, and a gradient of 0.005 gave the same. The gradients of our network have many different sizes.
#
# **Predict.** We take one step of Adam with the rate 0.005. How far does a weight move?

# %%
course.predict("first_step_of_adam", within=1.05, distance=...)

# %%
nodes = [Node(array.copy()) for array in start]
loss_of(nodes, train_x[:64], train_y[:64]).backward()
gradients = np.concatenate([node.gradient.ravel() for node in nodes])
adam(rate=0.005)([node.value for node in nodes], [node.gradient for node in nodes])

pairs = zip(nodes, start, strict=True)
moved = np.concatenate([np.abs(node.value - before).ravel() for node, before in pairs])
course.answer("first_step_of_adam", distance=np.median(moved))
sizes = np.abs(gradients)
print(f"gradients from {sizes.min():.0e} to {sizes.max():.0e}")
print(f"weights moved by {moved.min():.4f} to {moved.max():.4f}")

# %% [markdown]
# All of them move by the rate, to four digits, although their gradients are so different. So a rate means something
# quite different in Adam from what it means in SGD, and it makes no sense to compare the two at the same rate. We give
# each optimizer six rates, each about three times as large as the one before:

# %% tags=["figure:02_learned"]
rates = {
    "SGD": [0.01, 0.03, 0.1, 0.3, 1, 3],
    "Adam": [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1],
}
makers = {"SGD": sgd, "Adam": adam}
best = {}
for name, make in makers.items():
    trainings = {rate: train(make(rate)) for rate in rates[name]}
    for rate, (_, accuracy) in trainings.items():
        print(
            f"{name:4} with rate {rate:<6} recognises {accuracy:.1%} of the test images"
        )
    best[name] = max(trainings, key=lambda rate: trainings[rate][1]), trainings

curves, results = {}, []
for name, (rate, trainings) in best.items():
    losses, accuracy = trainings[rate]
    curves[f"{name}, rate {rate}"] = np.reshape(losses, (8, -1)).mean(axis=1)
    results.append(f"{name} recognises {accuracy:.1%}")
    assert accuracy >= 0.95
title = f"At its best rate, {' and '.join(results)} of the images"
course.draw.loss_curves(curves, title, x="epoch")

# %% [markdown]
# Both optimizers teach the network to read digits, and every gradient came from our 170 lines of code. In the table you
# can find pairs of rates for which SGD looks better, and other pairs for which Adam looks better. That is why a
# comparison of optimizers that tried only one rate for each proves nothing. To be strict, we should even have chosen
# the rates on images other than those on which we compare. For large language models, Adam and AdamW are the usual
# choice. Why SGD does worse there is still a subject of research.
#
# ## Why AdamW?
#
# To keep weights from growing without need, one often makes each of them a little smaller in each step. This is called
# **weight decay**. There are two obvious ways to do it. You can multiply the weight by $1 - \eta\lambda$ in each step,
# where $\eta$ is the learning rate and $\lambda$ is a small number such as 0.1. Or you can add $\lambda w$ to the
# gradient, as if the loss contained a term that grows with the weights.
#
# For SGD, the two are the same. It moves a weight by $-\eta\,(g + \lambda w)$, so the part with $\lambda$ makes $w$
# smaller by $\eta\lambda w$, as a factor of $1 - \eta\lambda$ would.
#
# Now think of Adam, with $\lambda w$ added to the gradient. Adam divides its mean gradient by $\sqrt{\hat s}$, the
# typical size of the gradient. Take two weights of 1 whose gradients change sign from step to step, so that their mean
# is close to 0. For the first weight, the gradients are $\pm 10$, so $\lambda w = 0.1$ is divided by about 10. For the
# second weight, the gradients are $\pm 1$.
#
# **Predict.** Adam with $\lambda w$ added to the gradient takes 100 steps. Which of the two weights becomes smaller?

# %%
course.predict(
    "decay_in_adam",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "the first, whose gradients are ±10",
        "b": "the second, whose gradients are ±1",
        "c": "neither, because both shrink equally",
    },
)


# %%
def after_100_steps(optimizer_class, decay):
    weights = torch.tensor([1.0, 1.0], requires_grad=True)
    optimizer = optimizer_class([weights], lr=0.01, weight_decay=decay)
    for number in range(100):
        sign = (-1) ** number
        weights.grad = torch.tensor([10.0 * sign, 1.0 * sign])
        optimizer.step()
    return weights.detach()


def lost_by_decay(optimizer_class):
    without = after_100_steps(optimizer_class, decay=0)
    return (without - after_100_steps(optimizer_class, decay=0.1)).tolist()


first, second = lost_by_decay(torch.optim.Adam)
smaller = "c" if np.isclose(first, second, rtol=0.2) else "a" if first > second else "b"
course.measured("decay_in_adam", answer=smaller)
for optimizer_class in (torch.optim.Adam, torch.optim.AdamW):
    first, second = lost_by_decay(optimizer_class)
    name = optimizer_class.__name__
    print(
        f"{name:5} made the first weight smaller by {first:.3f}, the second by {second:.3f}"
    )

# %% [markdown]
# The gradients move the weights a little, too, so we compare each weight with one that was trained without decay. In
# Adam, the weight with the large gradients hardly shrinks, because its decay is divided by the size of its gradients.
# AdamW takes the other way. It multiplies the weights by $1 - \eta\lambda$, separately from everything else, so both
# shrink by the same factor. After 100 steps this is $(1 - 0.01 \cdot 0.1)^{100} = 0.905$, and a weight of 1 has lost
# about 0.095. Loshchilov and Hutter ([2019](https://arxiv.org/abs/1711.05101)) found that networks trained this way
# recognise new images better. The optimizer keeps the same two numbers for each weight.
#
# ## What the graph keeps
#
# The backward pass needs values from the forward pass, so every node keeps its own until we are done. How much memory
# is that? Take our network with a batch of 64 images. There are 64 × 64 pixels. The first product, the sum with `b1`
# and the `relu` have 64 × 32 numbers each, and the second product and the sum with `b2` have 64 × 10. With the loss,
# that makes 11,521 numbers of 8 bytes, or 92 KB. The weights take 2,410 × 8 bytes, which is 19 KB.
#
# **Predict.** How many KB are the values, and how many are the weights, with a batch of 256 images?

# %%
course.predict("graph_keeps", within=1.05, values=..., weights=...)

# %% tags=["nbval-check-output"]
from course_utils.lessons.autodiff_and_optimizers import topological_order

for batch in (64, 256):
    nodes = [Node(array, "weights") for array in start]
    order = topological_order(loss_of(nodes, train_x[:batch], train_y[:batch]))
    weights = sum(node.value.nbytes for node in order if node.name == "weights") / 1000
    values = sum(node.value.nbytes for node in order) / 1000 - weights
    print(f"{batch:3} images: {values:5.1f} KB of values, {weights:4.1f} KB of weights")
course.answer("graph_keeps", values=values, weights=weights)

# %% [markdown]
# The weights stay the same, but the values grow with the batch. Our graph even keeps more than it needs. The rule of a
# sum uses neither of its parents' values, so these could be thrown away at once, and PyTorch does not store them for a
# sum. In networks with many layers, the values often take up most of the memory, and [lesson
# 9](09_model_parallel.ipynb) shows how to do with less.
#
# ## What you can do now
#
# You can train a network with an autodiff of your own, compare two optimizers without fooling yourself, explain what
# the W in AdamW changes, and estimate the memory that a forward pass leaves behind.
#
# Now go on with the [exercises](../exercises/02_autodiff_and_optimizers.ipynb) or with [lesson 3](03_hardware.ipynb).
