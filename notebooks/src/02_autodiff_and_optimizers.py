# The lesson on automatic differentiation. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Who computes the gradient?
#
# To train a network, you have to know how the loss changes with each of its weights. For the small network of lesson 1,
# we worked out the formulas for these slopes by hand. If you add a layer, you have to do it again, and a mistake in a
# formula gives you no error message. You could also change one weight a little, compute the loss again and see how it
# has changed. But then a network with nine million weights has to compute its loss nine million times. If that takes
# 0.05 seconds on a fast machine, you have to wait 450,000 seconds, or more than five days, for a single gradient.
#
# After computing the loss once, PyTorch finds all nine million slopes in about the time of two more such computations,
# and you don't have to give it a single formula. In this lesson you build a program that does the same. You will also
# be able to say which part of a gradient is ready first and could already be sent to other machines, and how many bytes
# an optimizer keeps for each weight.
#
# *50 minutes · builds on [lesson 1](01_sgd.ipynb) · no ranks*

# %%
import numpy as np

import course_utils as course
from course_utils.lessons.autodiff_and_optimizers import pictures

# %% [markdown]
# ## A number that remembers where it came from
#
# However long a program is, it computes its loss with only a few kinds of **operation**, such as sums and products, and
# the slope of each of them is known from calculus. So while the program runs, we let every number keep a record of the
# operation that made it and of the numbers that went into it. When the loss has been computed, we follow these records
# back to the beginning. This is a form of **automatic differentiation**, or autodiff for short.
#
# To keep records, we need numbers of our own. In Python, a class can decide what `+` and `*` do with its objects,
# because Python calls `x.__add__(y)` for `x + y`, and `x.__mul__(y)` for `x * y`. We call our class `Node`. Its two
# methods compute the result as usual, but they return it as a new `Node`. The new node knows its **parents**, which are
# the nodes that it was computed from. It also has a `rule`, a function that will be called on the way back. The rule
# will be given `g`, the gradient of the new node, and returns each parent's share of it. The next section explains what
# that means. A rule is defined inside the method, and Python lets it remember `self` and `other` until it is called:


# %%
class Node:
    def __init__(self, value, name, parents=(), rule=None):
        self.value = value
        self.name = name
        self.parents = parents  # the nodes that it was computed from
        self.rule = rule  # for the way back
        self.gradient = 0.0

    def __add__(self, other):
        def rule(g):
            return g, g

        return Node(self.value + other.value, "+", (self, other), rule)

    def __mul__(self, other):
        def rule(g):
            return g * other.value, g * self.value

        return Node(self.value * other.value, "*", (self, other), rule)


# %% [markdown]
# Let's compute $y = x \cdot x + x$ for $x = 3$. Now `x * x` is no longer just the number 9. It is a node with the value
# 9, and both its parents are `x`. The picture shows all the nodes:

# %% tags=["figure:02_forward_graph"]
x = Node(3.0, "x")
product = x * x
y = product + x
pictures.graph(y, f"y = x · x + x = {y.value:g} is made of three nodes", given=["x"])

# %% [markdown]
# The box with the `*` is `product`, and the box with the `+` is `y`. An arrow runs from each parent to the node that
# was computed from it, its **child**. There is one arrow for each use, so three arrows leave `x`.
#
# ## Walking back
#
# The gradient of a node tells us how fast $y$ grows when this node grows a little. If the gradient is 7, for example,
# $y$ grows by about 0.007 when the node grows by 0.001. We start at the end. The gradient of `y` itself is 1, because
# $y$ grows exactly as fast as itself. Then we go back one node at a time:
#
# - The node `y` is a sum. If either of its parents grows a little, the sum grows by just as much. So `y` passes a 1 to
#   `product` and a 1 to `x`.
# - The node `product` is $3 \cdot 3$, and its gradient is 1. If one factor grows a little, the product grows by three
#   times that, because the other factor is 3. So `product` passes $1 \cdot 3$ to its first parent and $1 \cdot 3$ to
#   its second, and both of them are `x`.
# - By now `x` has received a 1 and two 3s. When $x$ grows, it grows in all three places where it is used, so we add up
#   the parts and get 7.
#
# You can check this with a calculator. If $x$ grows from 3 to 3.001, then $y$ grows from 12 to 12.007001.
#
# This is the **chain rule**. For any node $x$, we add up one part for each arrow that leaves it. If $c$ is the child at
# the end of the arrow, then
#
# $$\text{gradient}(x) = \sum_{c} \text{gradient}(c) \cdot \frac{\partial c}{\partial x} ,$$
#
# where the fraction $\frac{\partial c}{\partial x}$ is the slope of $c$ if only the $x$ at this arrow changes. For
# `product`, for example, it is 3 at each of its two arrows. The node's rule computes these products. Its argument `g`
# is the gradient of the node, and it returns one part for each parent. With that, the walk takes only a few lines. It
# needs a list of the nodes in the order of the visits. For now, we write this list by hand. A node like `x`, which
# wasn't computed from anything, has no rule and passes nothing on:


# %%
def walk(nodes):
    for node in nodes:
        node.gradient = 0.0
    nodes[0].gradient = 1.0  # the first one we visit is the last one computed
    for node in nodes:
        if node.rule:
            parts = node.rule(node.gradient)
            for parent, part in zip(node.parents, parts, strict=True):
                parent.gradient += part


# %% tags=["figure:02_backward_graph"]
walk([y, product, x])
title = f"Three parts arrive at x and add up to {x.gradient:g}"
pictures.graph(y, title, given=["x"], visited=[y, product, x])

# %% [markdown]
# The circled numbers show the order of the visits, and the numbers at the arrows are the parts. This is the whole
# method. It is called *reverse-mode* automatic differentiation because it goes backwards. To add an operation, you only
# have to write its rule. For example, the slope of $e^a$ is $e^a$ itself, so an exponential passes $g \cdot e^a$ to its
# parent.
#
# Now take $z = x \cdot x \cdot x$ for $x = 2$. Python works from left to right, so it computes the square $2 \cdot 2 =
# 4$ first, and then $4 \cdot 2 = 8$.
#
# **Predict.** Follow the walk as above. How many parts arrive at `x`, and what do they add up to?

# %%
course.predict("cube", parts=..., gradient=...)

# %%
x = Node(2.0, "x")
square = x * x
z = square * x
walk([z, square, x])
arrows_from_x = (square.parents + z.parents).count(x)
course.answer("cube", parts=arrows_from_x, gradient=x.gradient)

# %% [markdown]
# The node `z` passes $1 \cdot 4$ to `x` and $1 \cdot 2$ to `square`, which then passes $2 \cdot 2$ to `x` along each of
# two arrows. Three parts of 4 make 12, which agrees with $3x^2$, the slope of $x^3$.
#
# ## A node has to wait for all its children
#
# So far, we have told `walk` which order to use. In a long program, the computer has to find it. The simplest idea is
# to go level by level. We visit the last node, then its parents, then their parents, and so on.


# %%
def level_by_level(last):
    nodes = [last]
    for node in nodes:  # the list grows while we go through it
        for parent in node.parents:
            if parent not in nodes:
                nodes.append(parent)
    return nodes


# %% [markdown]
# Let's try it on $y = a + b$ with $b = a \cdot a$ and $a = x \cdot x$. Since $a$ is $x^2$ and $b$ is $x^4$, the slope
# of $y$ at $x = 2$ should be $2x + 4x^3 = 36$.
#
# Draw the graph on a piece of paper. The parents of `y` are `a` and `b`, so they come next, and after them the parent
# of `a`, which is `x`. Level by level, the order is `y`, `a`, `b`, `x`. So the walk begins with `y`, which passes a 1
# to `a` and a 1 to `b`. Next comes `a`, whose gradient is 1. It passes $1 \cdot 2$ to `x` along each of its two arrows.
#
# **Predict.** Continue from here. What is the gradient of `x` at the end?

# %%
course.predict(
    "walked_by_level",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "36, because parts can be added in any order",
        "b": "4, without any error message",
        "c": "none, because there is an error message",
    },
)

# %% tags=["figure:02_wrong_order"]
x = Node(2.0, "x")
a = x * x
b = a * a
y = a + b
a.name, b.name, y.name = "a", "b", "y"

walk(level_by_level(y))
course.answer("walked_by_level", answer="a" if x.gradient == 36 else "b")
title = f"Level by level, x gets {x.gradient:g} instead of {2 * 2 + 4 * 2**3}"
pictures.graph(y, title, given=["x"], visited=level_by_level(y))

# %% [markdown]
# When the walk reached `a`, that node had received only the 1 from `y`, and this was all it could pass on. After that,
# `b` passed it two more parts of 4. So `a` ends up with the right gradient, which is 9, but `x` never hears of it.
# There is no error message, only a wrong number.
#
# A node may pass on its gradient only when all of its children in the graph have passed on theirs. Such an order is
# easy to describe. List the nodes so that each of them comes after its parents, here `x, a, b, y`. Such a list is in
# **topological order**. Then read it from the end. Writing a function that makes the list is your [first
# exercise](../exercises/02_autodiff_and_optimizers.ipynb). For now we use the one from our library:

# %% tags=["nbval-check-output"]
from course_utils.lessons.autodiff_and_optimizers import topological_order


def backward(last):
    order = topological_order(last)
    walk(order[::-1])  # from the end


backward(y)
print([node.name for node in topological_order(y)], "gradient of x:", x.gradient)

# %% [markdown]
# ## From numbers to arrays
#
# If every weight were a node of its own, the graph of a network would be enormous. So from now on, the value of a node
# is a whole NumPy array. The course has such a `Node` in `course_utils/lessons/autodiff_and_optimizers/autodiff.py`. It
# is the class above with more operations, in a file of about 170 lines, and its method `backward()` does what our
# function does. From here on, `Node` means this class. Two of its rules need some thought.
#
# The first concerns **broadcasting**. If you add a row of 3 numbers to a matrix with 4 rows, NumPy repeats the row four
# times. So each of the three numbers is used four times, and its four parts have to be added up:

# %% tags=["nbval-check-output"]
from course_utils.lessons.autodiff_and_optimizers import Node

matrix = Node(np.ones((4, 3)), "matrix")
row = Node(np.zeros(3), "row")
total = (matrix + row).sum()
total.backward()
print(row.gradient)

# %% [markdown]
# The second is the rule for a product of matrices, $c = a\,b$. Let's begin with a small one:
#
# $$\begin{pmatrix} a_1 & a_2 \end{pmatrix} \begin{pmatrix} 3 & 5 \\ 4 & 6 \end{pmatrix} =
# \begin{pmatrix} 3a_1 + 4a_2 & 5a_1 + 6a_2 \end{pmatrix}$$
#
# Suppose that the gradients of the two results are $g_1$ and $g_2$. If $a_1$ grows a little, the first result grows by
# 3 times that and the second by 5 times that, so the gradient of $a_1$ is $3g_1 + 5g_2$. In the same way, the gradient
# of $a_2$ is $4g_1 + 6g_2$. This is again a product of matrices, of $(g_1\ \ g_2)$ and the matrix $b$ with its rows and
# columns swapped, which is written $b^T$. For the gradient of $b$, a similar calculation leads to $a^T$. The same
# argument applies to every entry of larger matrices, so for matrices of any size
#
# $$\text{gradient}(a) = g\, b^T \qquad \text{gradient}(b) = a^T g ,$$
#
# where $g$ is the gradient of $c$. You will write this rule in the second exercise.
#
# We can now build the network of lesson 1, which computes ten scores for each image. *Softmax* turns the scores $z_1,
# \dots, z_{10}$ into probabilities by dividing each $e^{z_k}$ by the sum $e^{z_1} + \dots + e^{z_{10}}$. The loss is
# the **cross entropy**, the mean over the images of $-\log$ of the probability that the network gave to the right
# digit. You will write its rule in the third exercise.


# %%
from course_utils.lessons.autodiff_and_optimizers import softmax_cross_entropy


def network(x, W1, b1, W2, b2):
    return (x @ W1 + b1).relu() @ W2 + b2  # relu replaces negative numbers by 0


# %% tags=["figure:02_network_graph"]
from course_utils.lessons.sgd import new_network

train_x, train_y, test_x, test_y = course.data.digits_arrays()
images, digits = train_x[:64], train_y[:64]
start = new_network(np.random.default_rng(0))
names = ["W1", "b1", "W2", "b2"]
nodes = [Node(array, name) for array, name in zip(start, names, strict=True)]

loss = softmax_cross_entropy(network(Node(images, "x"), *nodes), digits)
order = topological_order(loss)[::-1]
title = f"The network and its loss: {len(order)} nodes, of which 4 hold the weights"
pictures.graph(loss, title, given=["x"], visited=order)

# %% [markdown]
# Below its name, each box shows the shape of its array, except for the loss, which is a single number. There are 64
# images of 64 pixels each, 32 hidden units and 10 scores. The arrows already point the way back, and the circled
# numbers are a possible order for the visits, from the loss to the weights.
#
# Are our gradients right? We compare them with those of PyTorch, whose arrays are called **tensors**. If you create a
# tensor with `requires_grad=True`, PyTorch records everything that is computed from it, as our nodes do. And because
# `network` needs nothing but `@`, `+` and `relu()`, we can pass tensors to the same function:

# %%
import torch
from torch.nn.functional import cross_entropy

loss.backward()

tensors = [torch.tensor(array, requires_grad=True) for array in start]
scores = network(torch.tensor(images), *tensors)
cross_entropy(scores, torch.tensor(digits)).backward()
for node, tensor in zip(nodes, tensors, strict=True):
    difference = np.abs(node.gradient - tensor.grad.numpy()).max()
    assert difference <= 1e-10
    print(f"{node.name}: the largest difference is {difference:.0e}")

# %% [markdown]
# All these arrays hold 8-byte numbers (`float64`), which are accurate to about 16 digits, so tiny differences are to be
# expected. In [Further](02_autodiff_and_optimizers_further.ipynb), the network learns to read digits with our own
# gradients. From here on, we let PyTorch do the walking.
#
# ## What does a gradient cost?
#
# Computing the loss is called the **forward pass**, and the walk back from it is the **backward pass**. To compare
# them, take a product $c = a\,b$ again, where $a$ is a 64 × 64 matrix and $b$ is 64 × 32. The forward pass needs 64 ×
# 64 × 32 = 131,072 multiplications. The backward pass has to compute $g\,b^T$, where $g$ has 64 × 32 numbers and $b^T$
# has 32 × 64. That takes 64 × 32 × 64 multiplications, which is just as many. It also has to compute $a^T g$, which
# takes the same number again. So this backward pass does twice the work of the forward pass. (Only the first layer of a
# network can skip one of the two products, because nobody needs to know how the loss changes with the images.)
#
# To measure this, we need a larger network. **VGG-11**, which you will meet again in lessons 3, 6 and 7, is a network
# for images. It consists of eight **convolutions**, followed by **linear layers**, `x @ W + b`. A convolution slides
# small filters over an image. The input of the first layer has three numbers at each position, for red, green and blue,
# and a filter has 3 × 3 × 3 numbers. They are multiplied by the numbers at 3 × 3 positions in the image, and the
# products are added up. That sum is one number in the result. Then the filter moves on by one position and uses the
# same numbers again. The first layer has 64 such filters, so its result has 64 numbers at each position, and a filter
# of the second layer has 3 × 3 × 64. After some of the convolutions, the image is reduced to half its width and height.
# The original from 2014 takes images of 224 × 224 pixels and has three linear layers and 133 million weights. Ours is a
# smaller version for images of 32 × 32 pixels, with one linear layer and 9.2 million weights. (It also has a *norm*
# layer after each convolution, which lesson 3 explains.) In both, nearly all of the arithmetic consists of multiplying
# numbers and adding up the products.
#
# **Predict.** How many forward passes could you run in the time of one backward pass? (Anything within a factor of 1.5
# counts as right.)

# %%
course.predict("backward_price", within=1.5, forward_passes=...)

# %%
from course_utils.lessons.autodiff_and_optimizers import measure_ready_order
from course_utils.measuring import is_busy
from course_utils.vgg import parameter_count, vgg11

model = vgg11(seed=0)
photos, labels = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))


def forward():
    return cross_entropy(model(photos), labels)


times = measure_ready_order(model, forward, repeats=5)  # times of five passes
one_forward, one_backward = np.median(times.forwards), np.median(times.ends)
print(f"forward:  {1000 * one_forward:.0f} ms")
print(f"backward: {1000 * one_backward:.0f} ms")
busy = is_busy([times.forwards, times.ends])
course.measured("backward_price", busy=busy, forward_passes=one_backward / one_forward)

days = parameter_count(model) * one_forward / (24 * 60 * 60)
print(f"{parameter_count(model):,} such forward passes would take {days:.1f} days.")

# %% [markdown]
# By our count, a backward pass takes twice the work of a forward pass. The measured ratio may be somewhat different,
# since a network doesn't only multiply, and no processor is equally fast at everything. But whatever the factor is, it
# doesn't grow with the number of weights, while changing the weights one by one takes a forward pass for each of them.
# Griewank and Walther call this the *cheap gradient principle*. In their book *Evaluating Derivatives* (2008) they show
# that for any program that computes a single number from such operations, the number and its whole gradient together
# cost at most about four times the work of the number alone. Our own count gives 1 + 2 = 3.
#
# You pay for it in memory. The rule for a product needs both factors, so the values of the forward pass must be kept
# until the backward pass has used them. Lesson 9 comes back to this.
#
# ## The last layer's gradient is ready first
#
# The backward pass begins at the loss, so it reaches the last layer first. The gradients there are complete long before
# those of the first layer. You can watch this happen, because PyTorch lets you attach a **hook** to a weight. A hook is
# a function of your own, which PyTorch calls as soon as the gradient of that weight is ready. Ours only writes down a
# name:

# %% tags=["nbval-check-output"]
ready = []


def note_when_ready(name):
    def hook(parameter):
        ready.append(name)

    return hook


for name, parameter in model.named_parameters():
    if name.startswith(("conv", "linear")) and name.endswith("weight"):
        parameter.register_post_accumulate_grad_hook(note_when_ready(name))

forward().backward()
print(*ready, sep=", ")

# %% [markdown]
# How much of the gradient is ready halfway through the backward pass? As an example, imagine a network of three layers.
# From first to last they have 1, 2 and 5 million weights, and the backward pass takes equally long in each of them.
# Halfway through, the last layer is done and the second is not, so 5 of the 8 million gradients are ready, or about
# 63%.
#
# In our network, some layers take longer than others. Each weight of a convolution is used once for each position of
# the result. So for one image, the work of a layer is the number of its weights times the number of positions in its
# result:

# %% tags=["nbval-check-output"]
sides = {"conv1": 32, "conv2": 16, "conv3": 8, "conv4": 8, "conv5": 4, "conv6": 4}
sides.update({"conv7": 2, "conv8": 2, "linear": 1})  # the result is side × side pixels
weights, work = {}, {}
for name, side in sides.items():
    weights[name] = model.get_submodule(name).weight.numel()
    work[name] = weights[name] * side**2 / 1e6
    print(
        f"{name:6} {weights[name]:9,} weights, {work[name]:5.2f} million multiplications"
    )

# %% [markdown]
# **Predict.** That makes 153 million multiplications for the forward pass, and about twice as many in each layer for
# the backward pass. Suppose that the time a layer takes is proportional to its number of multiplications. When the
# first quarter of the backward pass is over, some layers are done. What percentage of the 9.2 million gradients do they
# account for? (Within a factor of 1.1 counts as right.)

# %%
course.predict("ready_after_a_quarter", within=1.1, percent=...)

# %% tags=["figure:02_ready"]
from course_utils.lessons.autodiff_and_optimizers import layers

spent, ready_weights = 0, 0
for name in reversed(sides):  # from the last layer to the first
    spent += work[name]
    if spent <= sum(work.values()) / 4:
        ready_weights += weights[name]
percent = 100 * ready_weights / sum(weights.values())
course.answer("ready_after_a_quarter", percent=round(percent))

# a norm layer counts with the convolution before it
by_layer = layers(times, lambda layer: layer.replace("norm", "conv"))
pictures.gradient_readiness(
    by_layer,
    times.end,
    "A backward pass of VGG-11, from the last layer to the first",
    times.ends,
)

# %% [markdown]
# By our count, `linear`, `conv8` and `conv7` take 19 of the 153 million multiplications, and `conv6` alone takes
# another 38. So after a quarter, `conv6` isn't done, and the three layers before it account for 4.7 of the 9.2 million
# gradients, or 51%. The picture shows the measured times. An orange bar is the time between the end of one layer's
# backward pass and the end of the next, and the pink line shows how long the finished gradient then waits for the pass
# to end. Multiplications aren't the whole story. For example, `conv1` usually takes far longer than our count says. Its
# bar also covers the layers that follow it in the network, which touch every number in the largest images but do little
# multiplying. Lesson 3 is about such layers. But the order and the overall pattern are what we counted. In VGG-11, the
# last convolutions have many weights and small images, and the first ones have few weights and large images. That is
# why most of the gradient is ready well before the end.
#
# If several machines have to exchange their gradients, each gradient can therefore be sent while the others are still
# being computed. Lesson 7 does this with the hooks that you have just seen.
#
# ## What an optimizer remembers
#
# An **optimizer** is the part of a training program that turns gradients into steps. SGD, from lesson 1, uses the same
# learning rate for all weights, so a weight with small gradients moves only a little. **Adam** adapts the step to each
# weight. It keeps two **running averages** for each weight: $m$, of its gradient $g$, and $s$, of $g^2$. It updates
# both at every step $t = 1, 2, 3, \dots$
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g$$
#
# $$s \leftarrow \beta_2 s + (1 - \beta_2)\, g^2$$
#
# Since $\beta_1$ is usually 0.9, the new $m$ is nine tenths of the old one plus one tenth of the latest gradient. For
# $s$, the usual $\beta_2$ is 0.999. Both averages start at 0, so at first they are too small. Adam corrects for this
# with two divisions, and then moves the weight $w$, using the learning rate $\eta$:
#
# $$\hat m = \frac{m}{1 - \beta_1^t} \qquad \hat s = \frac{s}{1 - \beta_2^t}$$
#
# $$w \leftarrow w - \eta\, \frac{\hat m}{\sqrt{\hat s} + \varepsilon}$$
#
# Suppose that the gradient of a weight is 0.5. After the first step, $m$ is 0.05 and $s$ is 0.00025. Divided by $1 -
# 0.9$ and $1 - 0.999$, they become 0.5 and 0.25, and $0.5 / \sqrt{0.25}$ is 1, so the weight moves by one learning
# rate. (The tiny $\varepsilon$, usually $10^{-8}$, prevents a division by zero.) If the gradient is 0.005, the same
# calculation gives 1 again. So if its gradient doesn't change from step to step, a weight with a small gradient moves
# as far as a weight with a large one.
#
# You will write this step in the fourth exercise. Many large language models are trained with a variant, **AdamW**,
# which also pulls each weight slightly towards zero in each step. It keeps the same two averages.
#
# All of this takes memory. A `float32`, PyTorch's usual type of number, takes 4 bytes. So a weight takes 4 bytes, and
# its gradient takes another 4.
#
# **Predict.** How many bytes does each optimizer keep for one weight, in addition to the weight and its gradient? SGD
# with momentum, from lesson 1, keeps one number, the velocity.

# %%
course.predict("optimizer_bytes", sgd=..., momentum=..., adam=...)

# %%
from course_utils.lessons.autodiff_and_optimizers import optimizers


def sgd_with_momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


makers = {"sgd": torch.optim.SGD, "momentum": sgd_with_momentum, "adam": torch.optim.Adam}
kept = optimizers.state_bytes_per_parameter(model, makers)  # after one step
kept = {name: round(amount, 2) for name, amount in kept.items()}
course.measured("optimizer_bytes", **kept)


# %% tags=["figure:02_kept"]
def bar(weight, gradient, state):
    return {"parameters": weight, "gradients": gradient, "optimizer state": state}


bars = {
    "SGD": bar(4, 4, kept["sgd"]),
    "momentum": bar(4, 4, kept["momentum"]),
    "Adam": bar(4, 4, kept["adam"]),
    "Adam, 16 bits": bar(2, 2, 12),  # from a paper, see below
}
title = f"Adam keeps {kept['adam']:g} bytes for each parameter, SGD keeps none"

pictures.bytes_per_parameter(bars, title)

# %% [markdown]
# For the first three bars, we let PyTorch's optimizers take a step and counted the bytes that they keep. The last bar
# is from a paper ([Rajbhandari and others 2020](https://arxiv.org/abs/1910.02054), section 3.1). Large models are often
# trained with 16-bit weights and gradients, which take 2 bytes each. Such a number has so few digits that a small step
# doesn't change it: in `bfloat16`, the next number after 1 is 1.008. So the optimizer also keeps a `float32` copy of
# the weights, to which it adds its steps. Together with Adam's two averages, that makes 4 + 4 + 4 bytes.
#
# Either way, Adam needs 16 bytes for each weight. This is where the 512 GB for 32 billion weights in lesson 0 came
# from. In lesson 11, several ranks divide the optimizer's part among them.
#
# ## What you take with you
#
# Every operation makes a node that remembers its parents and has a rule for passing a gradient back to them. If the
# walk visits each node after all of its children, it finds all gradients at once, for about twice the work of the
# forward pass. The last layers' gradients are ready first, and in VGG-11 they make up most of the bytes. For each
# weight, plain SGD keeps nothing, momentum keeps 4 bytes, and Adam keeps 8.
#
# Next come the [exercises](../exercises/02_autodiff_and_optimizers.ipynb), with four functions for you to write.
# [Lesson 3](03_hardware.ipynb) then asks what limits one machine.
#
# **To read**
#
# - Karpathy (2020), [*micrograd*](https://github.com/karpathy/micrograd), is an autodiff engine for single numbers in
#   about a hundred lines, very much like ours.
# - Baydin and others (2018), [*Automatic differentiation in machine learning: a
#   survey*](https://arxiv.org/abs/1502.05767), explains this and other ways to let a computer find derivatives.
# - Kingma and Ba (2015), [*Adam: a method for stochastic optimization*](https://arxiv.org/abs/1412.6980), gives the
#   step that you have just seen as its algorithm 1.
