# The lesson on automatic differentiation. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Who computes the gradient?
#
# After this lesson you can **walk** a program backwards and get all its gradients at once, **predict** when each of
# them is ready, and **count** the bytes that an optimizer keeps for every weight.
#
# *50 minutes · builds on [lesson 1](01_sgd.ipynb) · no ranks*

# %%
import itertools

import numpy as np

import course_utils as course
from course_utils.lessons.autodiff_and_optimizers import Node, pictures, topological_order

# %% [markdown]
# In lesson 1 somebody derived the gradient with pencil and paper. Nobody does that for nine million weights.
#
# The way out: a program, however long, is made of a dozen kinds of **operation**, and the derivative of each is known.
# So let every number remember how it came about. A `Node` holds its `value` and its `parents`, the nodes that it was
# computed from.

# %% tags=["figure:02_forward_graph"]
x = Node(3.0, "x")
y = x * x + x
boxes, edges = pictures.boxes_of(topological_order(y), given=["x"])
pictures.computation_graph(boxes, edges, "y = x · x + x, as a graph")

# %% [markdown]
# Arrows run from parents to what was made of them, the **children**. There is one arrow for each use: `x` has three.
#
# **Predict.** The *gradient* of `x` says how fast `y` grows with `x`, as in lesson 1. What is it at `x = 3`?

# %%
course.predict("gradient_of_x", answer=...)  # a number

# %% [markdown]
# The **chain rule** finds it by working backwards. The gradient of `y` itself is 1. Every node $c$ passes a *part* on
# to each parent $x$: its own gradient, times the slope $\frac{\partial c}{\partial x}$, which says how fast $c$ grows
# with $x$. The node's `rule` computes these parts. A parent adds up all parts that arrive, one for each arrow:
#
# $$\text{gradient}(x) = \sum_{\text{child } c \text{ of } x} \text{gradient}(c) \cdot \frac{\partial c}{\partial x}$$


# %%
def walk(order):  # a list of all nodes, from the last back to the inputs
    for node in order:
        node.gradient = np.zeros_like(node.value)
    order[0].gradient = np.ones_like(order[0].value)
    for node in order:
        parts = node.rule(node.gradient) if node.rule else ()
        for parent, part in zip(node.parents, parts):
            parent.gradient = parent.gradient + part


def backward(last):
    walk(topological_order(last)[::-1])  # which order this is: the next section


# %% tags=["figure:02_backward_graph"]
backward(y)
course.measured("gradient_of_x", answer=float(x.gradient))
boxes, edges = pictures.boxes_of(topological_order(y), given=["x"], gradients=True)
title = f"Three arrows lead back to x, and 3 + 3 + 1 = {x.gradient:.0f}"
pictures.computation_graph(boxes, edges, title, order=[2, 1, 0], backward=True)

# %% [markdown]
# (The small numbers are the order of the walk. The product $3 \cdot 3$ passes 3 on along each of its two arrows, the
# sum passes 1 on.) That is **reverse-mode automatic differentiation**, all of it: one walk, eight lines. Each operation
# brings its own rule, which starts from $g$, the gradient of the result:
#
# | operation | its parents get |
# |---|---|
# | `a + b` | $g$ and $g$ |
# | `a * b` | $g \cdot b$ and $g \cdot a$ |
# | `exp(a)` | $g \cdot e^a$ |
# | `relu(a)`, the larger of $a$ and 0 | $g$ where $a > 0$, else 0 |

# %% [markdown]
# ## In which order?
#
# We gave `walk` the nodes in an order made by `topological_order`. Must it be that order? A plainer idea: the last
# node, then its parents, then *their* parents, level by level. We try it on $y = a + e^a$ with $a = x \cdot x$.


# %%
def level_by_level(last):
    found = [last]
    for node in found:
        for parent in node.parents:
            if parent not in found:
                found.append(parent)
    return found


x = Node(1.0, "x")
a = x * x
y = a + a.exp()

# %% [markdown]
# **Predict.** At $x = 1$ the gradient is $2 + 2e \approx 7.44$. What does `walk` find, level by level?

# %%
course.predict(
    "walked_by_level",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "the same: sums may be taken in any order",
        "b": "another number, without any error",
        "c": "nothing: it raises an error",
    },
)

# %% tags=["figure:02_wrong_order"]
backward(y)
right = float(x.gradient)
walk(level_by_level(y))
wrong = float(x.gradient)
order = [topological_order(y).index(node) for node in level_by_level(y)]
course.measured("walked_by_level", answer="a" if np.isclose(wrong, right) else "b")
boxes, edges = pictures.boxes_of(topological_order(y), given=["x"], gradients=True)
title = f"Level by level: {wrong:.4g}. In topological order: {right:.4g}"
pictures.computation_graph(boxes, edges, title, order=order, backward=True)

# %% [markdown]
# Follow the numbers. The product `a` came second, and passed on the 1 that it had. Then came the part from `exp`, and
# the gradient of `a` became $1 + e = 3.718$: too late for `x`. There was no error, only a wrong number.
#
# A node may pass its gradient on only when it has *all* its parts, so after all its children. To get such an order,
# list each node after its parents, and read the list from the end. The list is in **topological order**; to make one is
# [your first exercise](../exercises/02_autodiff_and_optimizers.ipynb).

# %% [markdown]
# ## Arrays
#
# A graph of single numbers would be huge. So let a value be an array: the rules stay the same, entry by entry. Two
# things are new. The first is **broadcasting**: NumPy repeats the smaller array, here a row of 3 for each of 4 rows. A
# number that was used four times gets four parts, and they are added up.

# %% tags=["nbval-check-output"]
bias = Node(np.zeros(3), "bias")
total = (Node(np.ones((4, 3))) + bias).sum()
total.backward()
print("value", bias.value, " gradient", bias.gradient)

# %% [markdown]
# *Forward repeats, backward adds.* The helper `unbroadcast` does the adding, for any two shapes.
#
# The second is the product of matrices. Let `c = a @ b`, and let $g$ be the gradient of `c`. The shapes leave only one
# way to put the factors together ($b^T$ is $b$ with rows and columns swapped):
#
# $$\text{gradient}(a) = g\, b^T \qquad \text{gradient}(b) = a^T g$$
#
# Your second exercise is `matmul_backward`, also for *stacks*: arrays that hold many matrices.
#
# Now a real network: two layers, and a batch of 64 handwritten digits, of 64 pixels each.


# %%
from course_utils.lessons.autodiff_and_optimizers import softmax_cross_entropy


def network(x, parameters):
    W1, b1, W2, b2 = parameters
    return (x @ W1 + b1).relu() @ W2 + b2


def loss_of(nodes, images, digits):
    return softmax_cross_entropy(network(Node(images, "x"), nodes), digits)


# %% tags=["figure:02_network_graph"]
from course_utils.lessons.sgd import new_network

train_x, train_y, test_x, test_y = course.data.digits_arrays()
names = ["W1", "b1", "W2", "b2"]
start = new_network(np.random.default_rng(0))
nodes = [Node(array.copy(), name) for array, name in zip(start, names)]
loss = loss_of(nodes, train_x[:64], train_y[:64])

boxes, edges = pictures.boxes_of(topological_order(loss), given=["x"])
order = range(len(boxes))[::-1]
title = f"{len(boxes)} nodes, of which 4 hold the weights"
pictures.computation_graph(boxes, edges, title, order=order, backward=True)

# %% [markdown]
# The walk begins at the **cross entropy**, the loss of lesson 1 for ten classes. (*Softmax* makes ten probabilities of
# the ten scores.) Its rule is your third exercise, `softmax_cross_entropy_backward`.
#
# Are the gradients right? `network` says nothing of Node; PyTorch's arrays, called **tensors**, go through it as well.
# `torch.autograd` remembers their graph and walks it as we do.

# %%
import torch
from torch.nn.functional import cross_entropy

loss.backward()
# requires_grad: torch remembers what is made of these
tensors = [torch.tensor(array, requires_grad=True) for array in start]
scores = network(torch.tensor(train_x[:64]), tensors)
cross_entropy(scores, torch.tensor(train_y[:64])).backward()
for node, tensor in zip(nodes, tensors):
    apart = np.abs(node.gradient - tensor.grad.numpy()).max()
    assert apart <= 1e-10
    print(f"{node.name}: at most {apart:.0e} apart")

# %% [markdown]
# Equal up to rounding. The whole library, `course_utils/lessons/autodiff_and_optimizers/autodiff.py`, has about 170
# lines, and its tests compare it with PyTorch on 150 random graphs.
#
# From here on PyTorch walks, for a network of another size: **VGG-11**. It has eight **convolutions**, layers that
# slide small filters over the image, and a **linear layer** (`x @ W + b`) at the end. Behind each convolution a *norm*
# scales its results (lesson 3). You will meet VGG-11 again in lessons 3, 6 and 7.

# %% tags=["nbval-check-output"]
from course_utils.vgg import parameter_count, vgg11

model = vgg11(seed=0)
for name, parameter in model.named_parameters():
    if parameter.ndim > 1:
        print(f"{name}: {parameter.numel():,}")
print(f"all, with biases and norms: {parameter_count(model):,}")

# %% [markdown]
# ## What does a gradient cost?
#
# A **forward pass** computes the loss; a **backward pass** walks back from it.
#
# There is a way without rules: nudge one weight a little, run forward, see how the loss changes, as in lesson 1. For
# all nine million weights that is nine million forward passes.
#
# **Predict.** How many forward passes does one *backward* pass cost, in time?

# %%
course.predict("backward_price", within=1.5, forward_passes=...)  # a number

# %%
from course_utils.lessons.autodiff_and_optimizers import measure_ready_order
from course_utils.measuring import is_busy

images, labels = torch.randn(16, 3, 32, 32), torch.randint(10, (16,))


def forward():
    return cross_entropy(model(images), labels)


# Seven times: seconds of the forward pass, and when each gradient was there.
times = measure_ready_order(model, forward, repeats=7)

# %%
for name, seconds in {"forward": times.forwards, "backward": times.ends}.items():
    low, middle, high = 1000 * np.quantile(seconds, [0.25, 0.5, 0.75])
    print(f"{name}: {middle:.0f} ms (half of the runs: {low:.0f} to {high:.0f})")
one = np.median(times.forwards)
busy = is_busy([times.forwards, times.ends])  # do the seven scatter too much?
course.measured("backward_price", busy=busy, forward_passes=round(times.end / one, 1))
days = parameter_count(model) * one / 86_400
print(f"a nudge for each weight would take {days:.1f} days")

# %% [markdown]
# Each product of the forward pass means *two* products backward, one for each factor. So the work of a backward pass is
# about that of two forward passes, *whatever the number of weights*: Griewank and Walther's cheap gradient principle.
#
# The price is memory: every value is kept until the backward walk has used it.

# %% [markdown]
# ## Which gradient is ready first?
#
# Gradients do not appear all at once, and half of this course lives on that. PyTorch lets us put a **hook** on a
# parameter: a function that it calls the moment this parameter's gradient is complete.
#
# **Predict.** Which weights get their gradient first? And when *half of the time* of the backward pass is over, what
# percentage of the gradient's bytes is ready?

# %%
course.predict(
    "ready_first",
    answer=...,  # "a", "b" or "c"
    choices={"a": "conv1", "b": "linear", "c": "all at the same time"},
)
course.predict("ready_at_half_time", within=1.2, percent=...)

# %%
ready = []
for name, parameter in model.named_parameters():
    # name=name: each hook keeps its own name
    parameter.register_post_accumulate_grad_hook(lambda _, name=name: ready.append(name))
forward().backward()

weights = [name for name in ready if name.startswith(("conv", "linear"))]
print("ready, one after the other:", *[n for n in weights if n.endswith("weight")])
answers = {"conv1": "a", "linear": "b"}
course.measured("ready_first", answer=answers[weights[0].partition(".")[0]])

# %% tags=["figure:02_ready"]
from course_utils.lessons.autodiff_and_optimizers import layers

# The seven passes that we timed had such hooks, too. Each hook noted the time.
half_time = round(100 * times.share_ready(0.5))
course.measured("ready_at_half_time", busy=busy, percent=half_time)
# What scales a convolution's results, its norm, counts as a part of it.
by_layer = layers(times, lambda layer: layer.replace("norm", "conv"))
pictures.gradient_readiness(
    by_layer, times.end, "One backward pass of VGG-11", times.ends
)

# %% [markdown]
# The last layers come first, and the last convolutions are heavy: many filters, small images. The first layers have few
# weights and large images. So when most of the *bytes* are ready, much of the *time* still lies ahead.
#
# A pink line shows how long a gradient waits. The gradient could travel to other machines while the rest is computed:
# lesson 7 does just that, with these hooks.

# %% [markdown]
# ## What an optimizer remembers
#
# An **optimizer** turns gradients into steps. **Adam** and AdamW, which also shrinks the weights a little in each step,
# are used most. For each weight Adam keeps two **running averages**: of the gradient (the mean) and of its square. Each
# keeps most of its old value, and takes up a little of the new one. Adam moves the weight *against* the mean, by
#
# $$\text{rate} \cdot \frac{\text{mean}}{\sqrt{\text{square}} + \text{eps}}$$
#
# (The tiny eps avoids 0 / 0.) So a weight with small gradients moves as far as one with large ones, if they keep
# their sign. Both averages begin at 0, so at first they are too small. They need a correction: your fourth exercise. We
# compare Adam with SGD, on our own gradients:


# %%
from course_utils.lessons.autodiff_and_optimizers import optimizers
from course_utils.lessons.sgd import minibatches, sgd_step


def train(step, epochs=8):
    nodes, losses = [Node(array.copy()) for array in start], []
    rng = np.random.default_rng(1)
    for _ in range(epochs):
        for batch in minibatches(len(train_x), 32, rng):
            loss = loss_of(nodes, train_x[batch], train_y[batch])
            loss.backward()
            step([node.value for node in nodes], [node.gradient for node in nodes])
            losses.append(float(loss.value))
    found = network(Node(test_x), nodes).value.argmax(axis=1)
    return losses, (found == test_y).mean()


# %%
means = [np.zeros_like(array) for array in start]
squares = [np.zeros_like(array) for array in start]
steps = itertools.count(1)  # next(steps) is 1, then 2, then 3 …


def adam(parameters, gradients):
    optimizers.adam_step(parameters, gradients, means, squares, next(steps), rate=0.005)


def sgd(parameters, gradients):
    sgd_step(parameters, gradients, rate=0.1)


# %% tags=["figure:02_learned"]
runs = {"SGD, rate 0.1": train(sgd), "Adam, rate 0.005": train(adam)}
found, by_epoch = [], {}
for name, (losses, accuracy) in runs.items():
    assert accuracy >= 0.95
    found.append(f"{name.partition(',')[0]} reads {accuracy:.1%}")
    by_epoch[name] = np.reshape(losses, (8, -1)).mean(axis=1)
title = f"With our own gradients: {' and '.join(found)} of the test images"
course.draw.loss_curves(by_epoch, title, x="epoch")

# %% [markdown]
# Handwritten digits, read by a network whose every gradient came from 170 lines. (Which of the two is ahead depends on
# their rates: try others.)
#
# But look at `means` and `squares`: each is as large as the model. A float32, the usual number in PyTorch, has 4 bytes.
#
# **Predict.** How many bytes does each optimizer keep *for one weight*, beside the weight and its gradient?

# %%
course.predict("optimizer_bytes", sgd=..., momentum=..., adam=...)

# %%
from torch.optim import SGD, Adam

makers = {
    "SGD": lambda parameters: SGD(parameters, lr=0.1),
    "momentum": lambda parameters: SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": Adam,
}
kept = optimizers.state_bytes_per_parameter(model, makers)
rounded = {name.lower(): round(value, 2) for name, value in kept.items()}
course.measured("optimizer_bytes", **rounded)


# %% tags=["figure:02_kept"]
def row(weights, gradient, state):
    return {"parameters": weights, "gradients": gradient, "optimizer state": state}


bars = {name: row(4, 4, state) for name, state in kept.items()}
bars["Adam, 16 bit (cited)"] = row(2, 2, 12)
megabytes = parameter_count(model) * (8 + kept["Adam"]) / 1e6
title = f"VGG-11 with Adam: {megabytes:.0f} MB before the first image"
pictures.bytes_per_parameter(bars, title)

# %% [markdown]
# The first three rows are measured, in PyTorch's own optimizers. The last is cited: with weights and gradients in 16
# bits, Adam keeps a 32-bit copy of the weights beside its two averages (Rajbhandari et al. 2020, §3.1).
#
# Both ways of Adam take 16 bytes for each weight: $4 + 4 + 8$, or $2 + 2 + 12$. 7 billion weights need 112 GB, before
# the first image. Lesson 11 cuts the state into pieces, one for each rank.

# %% [markdown]
# ## What you take with you
#
# You can **walk** a graph backwards: in topological order, with one rule for each operation, adding up the parts. You
# can **predict** when gradients are ready: the last layer's first, and most of the bytes long before the end. And you
# can **count**: 0, 4 or 8 bytes for each weight.
#
# Next: [the exercises](../exercises/02_autodiff_and_optimizers.ipynb). Then [lesson 3](03_hardware.ipynb) asks what
# limits one machine.
