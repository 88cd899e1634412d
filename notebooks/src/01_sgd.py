# The lesson on gradient descent. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How does a network learn?
#
# After this lesson you can **write** the loop that trains every network, **predict** which learning rate is too large
# for it, and **choose** a batch size, knowing how much noise it brings.
#
# *50 minutes · builds on [lesson 0](00_first_steps.ipynb) · no ranks*

# %% [markdown]
# Learning needs a task. Here is one that fits on a map: 359 handwritten images, each a 2 or a 5. Two numbers describe
# an image: how much ink is in its left half, and how much of this ink is in the lower part of that half. (Both are
# shifted and scaled to mean 0 and standard deviation 1.)

# %%
import numpy as np

import course_utils as course
from course_utils.lessons.sgd import best_weights, gradients, pictures, two_digits

x, y = two_digits()  # shapes (359, 2) and (359,); y is 1 for a 5, 0 for a 2
inks = ["ink in the left half", "ink in the lower left quarter"]
pictures.two_classes(x, y, ["a 2", "a 5"], inks, title="Each point is an image")

# %% [markdown]
# Of a 2 and a 5 with the same amount of ink on the left, the 2 usually has more of it at the bottom: the dots lie above
# the triangles. The smallest model that can learn this has two **weights**, $w = (w_0, w_1)$. It weighs the two numbers
# of an image, adds them up, $w \cdot x = w_0 x_0 + w_1 x_1$, and turns this sum into a probability that the image is a
# 5:
#
# $$p = \frac{1}{1 + e^{-w \cdot x}}$$
#
# How wrong is the model? The **loss** is the mean, over the images, of $-\log$ of the probability that the model gave
# to the right answer. A model that is sure and right pays nothing; a model that is sure and wrong pays much. This is
# **logistic regression**.


# %%
def probability(w, x):
    return 1 / (1 + np.exp(-x @ w))


def loss(w, x=x, y=y):
    score = np.where(y == 1, x @ w, -x @ w)  # large: right and sure
    return np.mean(np.log(1 + np.exp(-score)))  # -log of its probability


# %% [markdown]
# ## Downhill
#
# Picture the loss as a landscape: a place is a choice of weights, its height is the loss. Learning is walking
# downhill in fog: all you feel is the slope under your feet.
#
# That slope is the **gradient** $\nabla L$: for each weight, how fast the loss grows with it. For this model, calculus
# gives the mean, over the images, of *(answer minus truth) times input*:
#
# $$\nabla L(w) = \frac{1}{n} \sum_{i=1}^{n} (p_i - y_i)\, x_i$$
#
# Do not trust a formula: change one weight a little, and see how the loss changes.


# %% tags=["nbval-check-output"]
def gradient(w, x=x, y=y):
    return (probability(w, x) - y) @ x / len(x)


w, tiny = np.array([1.0, -0.5]), 1e-6
by_trying = [(loss(w + step) - loss(w - step)) / (2 * tiny) for step in tiny * np.eye(2)]
print("formula:", gradient(w).round(6), " by trying:", np.round(by_trying, 6))

# %% [markdown]
# **Gradient descent** takes one step after the other against the gradient:
#
# $$w \leftarrow w - \eta\, \nabla L(w)$$
#
# $\eta$ (eta) is the **learning rate**: how far to go for a given slope. Here is the whole algorithm.

# %% tags=["figure:01_downhill"]
w, rate = np.zeros(2), 4.0
path = [w]
for _ in range(40):
    w = w - rate * gradient(w)
    path.append(w)
right = np.mean((probability(w, x) > 0.5) == (y == 1))
print(f"after 40 steps, {right:.0%} of the images are read right")

best = best_weights(x, y)  # of the smallest loss: the star on the map
pictures.trajectories(loss, {"gradient descent": path}, best, "40 steps downhill")

# %% [markdown]
# A map as hikers use it: each line joins points of equal loss, dark is high, the star is the lowest place. Each step
# starts at a right angle to the line, because the gradient points straight uphill. The path soon reaches the floor of a
# long, narrow valley. There the slope is small, and so are the steps.

# %% [markdown]
# ## One look at a few images
#
# Each of those steps looked at all 359 images. With a million images, that is a long look for one step.
#
# **Stochastic gradient descent** (SGD) looks at a few images, a **batch**, uses their mean gradient in the place of the
# true one, and steps. Then comes the next batch. An **epoch** goes once through all images, in a new random order.


# %%
from course_utils.lessons.sgd import minibatches


def sgd(batch_size, rate=1.0, epochs=5):
    rng, w = np.random.default_rng(0), np.zeros(2)
    path = [w]
    for _ in range(epochs):
        for batch in minibatches(len(x), batch_size, rng):
            w = w - rate * gradient(w, x[batch], y[batch])
            path.append(w)
    return path


# %% [markdown]
# With each batch size we go through the images five times, with rate 1. Small batches mean more steps: 1,795 with a
# batch of 1, but 5 with a batch of 359. They also mean worse directions.
#
# **Predict.** Which batch size ends nearest to the smallest loss?

# %%
course.predict(
    "nearest_batch",
    answer=...,  # "a", "b", "c" or "d"
    choices={
        "a": "1: the most steps",
        "b": "8",
        "c": "64",
        "d": "359: no step goes astray",
    },
)

# %% tags=["figure:01_four_batches"]
sizes = [1, 8, 64, 359]
columns = 2  # of maps
paths = {f"batch of {size}": sgd(size) for size in sizes}
ends = [loss(path[-1]) for path in paths.values()]
course.measured("nearest_batch", answer="abcd"[np.argmin(ends)])
nearest = list(paths)[np.argmin(ends)]
title = f"Each image seen five times: the {nearest} ends nearest"
pictures.trajectories(loss, paths, best, title, columns=columns)

# %% [markdown]
# A batch of 359 walks straight and hardly gets anywhere: five steps are few. A batch of 1 is near the star first, and
# then dances round it, because every image pulls its own way. (The middle of its dance is a little beyond the star,
# where the valley is flatter.) A batch of 8 is the bargain: 225 steps, each roughly right. With 64 there are 30 steps,
# again too few.
#
# Try other sizes and rates. (The slider needs a running kernel; the page goes on without it.)

# %%
from ipywidgets import FloatLogSlider, SelectionSlider

from course_utils.draw import with_sliders


def show(batch_size, rate):
    return pictures.trajectories(
        loss, {f"batch of {batch_size}": sgd(batch_size, rate)}, best
    )


with_sliders(
    show,
    batch_size=SelectionSlider(options=[1, 2, 4, 8, 16, 32, 64, 359], value=8),
    rate=FloatLogSlider(value=1.0, min=-1.5, max=0.5, step=0.25),
)


# %% [markdown]
# ## How much noise?
#
# How far is a batch's gradient from that of all images? Let us measure: draw 2,000 batches, and take the root of the
# mean squared distance. That is the gradient's **noise**.
#
# **Predict.** How many times smaller is the noise with a batch 100 times as large?

# %%
course.predict("noise_ratio", within=1.2, answer=...)  # a number

# %% tags=["figure:01_noise"]
from course_utils.lessons.sgd import gradient_noise, predicted_noise

each = gradients(np.zeros(2), x, y)  # one row per image, at the start of the walk
sizes = [1, 2, 5, 10, 20, 50, 100, 200, 359]
rng, noise, line = np.random.default_rng(0), {}, {}
for name, replace in {"any images": True, "no image twice": False}.items():
    noise[name] = [gradient_noise(each, B, rng, replace=replace) for B in sizes]
    line[name] = [predicted_noise(each, B, replace) for B in sizes]

ratio = noise["any images"][0] / noise["any images"][sizes.index(100)]
course.measured("noise_ratio", answer=ratio)
off = np.divide(noise["any images"], line["any images"]) - 1
assert np.abs(off).max() < 0.1  # every dot is near its line
title = f"100 times the batch: 1/{ratio:.0f} of the noise"
pictures.noise_line(sizes, noise, line, title)

# %% [markdown]
# Blue: images drawn at random, perhaps the same image twice. Errors partly cancel: the mean of $B$ images has the noise
# $\sigma/\sqrt{B}$, where $\sigma$ is the noise of one image. **Four times the work for half the noise.**
#
# Orange: no image twice, as in an epoch. A batch of nearly all images has nearly their mean: the line is multiplied by
# $\sqrt{(n-B)/(n-1)}$. With all 359 that is 0. A logarithmic axis has no 0, so there is no dot.

# %% [markdown]
# ## How large may a step be?
#
# If the rate is slightly too large, the loss goes up instead of down. Where is the edge? Take the simplest valley, a
# parabola $\tfrac{\lambda}{2} d^2$ at distance $d$ from its lowest point. Its slope is $\lambda d$, so a step makes
#
# $$d \leftarrow d - \eta \lambda d = (1 - \eta\lambda)\, d.$$
#
# $\lambda$ (lambda) is the **curvature**: how fast the slope changes as you walk.

# %% tags=["nbval-check-output"]
curvature = 0.5
for rate in [2.0, 3.9, 4.1]:
    d, visited = 1.0, []
    for _ in range(6):
        d = d - rate * curvature * d
        visited.append(round(d, 2) + 0.0)  # + 0.0 turns -0 into 0
    print(f"rate {rate}: {visited}")

# %% [markdown]
# With rate 2 one step is enough. With 3.9 each step lands on the other side, a little nearer; with 4.1 it lands a
# little farther away. The edge is at $|1 - \eta\lambda| = 1$, hence $\eta = 2/\lambda$.
#
# A valley of two weights has a curvature in every direction. The **Hessian** $H$ says how fast each part of the
# gradient changes with each weight: all second derivatives. Its **eigenvalues** are the curvatures along the main
# directions, here along the valley and across it. For our model the Hessian is a mean again:
#
# $$H(w) = \frac{1}{n} \sum_{i} p_i (1 - p_i)\, x_i x_i^\top$$


# %% tags=["nbval-check-output"]
def hessian(w):
    p = probability(w, x)
    return (x * (p * (1 - p))[:, None]).T @ x / len(x)


along, across = np.linalg.eigvalsh(hessian(best))
print(f"curvature along the valley: {along:.4f}, across it: {across:.4f}")

# %% [markdown]
# **Predict.** From a place very near the star, what is the largest rate that still leads to it? A number, please.
#
# Then try. We start a thousandth beside the star, take 500 steps, and ask whether we are nearer than before. We know a
# rate that works and a rate that fails. We try the rate in the middle, and so on: *bisection*.

# %%
course.predict("largest_rate", within=1.05, answer=...)

# %%
from course_utils.lessons.sgd import bisect, descend, largest_stable_lr

nearby = best + 0.001


def comes_nearer(rate, momentum=0.0):
    path = descend(gradient, nearby, rate, 500, momentum)
    return np.linalg.norm(path[-1] - best) < np.linalg.norm(nearby - best)


predicted = largest_stable_lr(hessian(best))
found = bisect(comes_nearer, 0.1 * predicted, 10 * predicted)
assert abs(found / predicted - 1) < 0.05
print(f"2 / λ predicts {predicted:.3f}; measured: {found:.3f}")
course.measured("largest_rate", answer=found)

# %% tags=["figure:01_too_long"]
apart = {}
for share in [0.5, 0.95, 1.05, 1.5]:
    path = descend(gradient, nearby, share * predicted, 120)
    apart[f"{share} · 2/λ"] = np.linalg.norm(path - best, axis=1)
title = f"2/λ = {predicted:.1f}: below it steps lead to the star, above it away"
pictures.distances(apart, title, y="distance from the star")

# %% [markdown]
# The *largest* eigenvalue decides, the curvature across the valley, although nearly the whole way lies *along* it. That
# is the misery of narrow valleys: the steep direction forbids long steps, the flat one needs them. (The blue kink: with
# half of this rate, one step goes the whole way across.)
#
# Too large a rate does not explode here: the distance grows and then stays. Far from the star the loss is nearly a
# straight slope, so the steps stop growing.

# %% [markdown]
# <details><summary>Where is the Hessian taken? An honest footnote</summary>
#
# At the star. The bound says whether descent *stays* there. It is exact for a parabola, and near a minimum every smooth
# loss is nearly a parabola. At $w = 0$ our λ is more than twice as large, so 2/λ is less than half of that at the star.
# Start there with a rate of 10: the loss first jumps up, then comes down to the star all the same. A large network's λ
# changes all the time during training.
# </details>

# %% [markdown]
# ## A ball, not a hiker
#
# A hiker forgets each step. A ball rolls on. **Momentum** keeps a velocity $v$, which remembers a share $\beta$ (beta)
# of itself and takes up each new gradient:
#
# $$v \leftarrow \beta v + \nabla L(w) \qquad w \leftarrow w - \eta v$$
#
# Where gradients point the same way, step after step, the velocity grows to $1/(1-\beta)$ gradients; and a ball that
# comes from a steep slope brings its speed along.
#
# How many steps does the hiker take, with rate 2, until the loss is within 0.001 of the smallest? Look, and then
# **predict**: how many steps does the ball take with $\beta = 0.8$ and the same rate?


# %% tags=["nbval-check-output"]
def steps_needed(path):
    above = np.array([loss(w) for w in path]) - loss(best)
    return int(np.flatnonzero(above > 0.001)[-1]) + 1  # the one after the last above


walk = descend(gradient, np.zeros(2), 2.0, 400)
print("without momentum:", steps_needed(walk), "steps")

# %%
course.predict("steps_with_momentum", within=3, answer=...)

# %% tags=["figure:01_ball"]
rolls = {"β = 0": walk}
for beta in [0.8, 0.95]:
    rolls[f"β = {beta}"] = descend(gradient, np.zeros(2), 2.0, 400, beta)
    print(f"β = {beta}: {steps_needed(rolls[f'β = {beta}'])} steps")
course.measured("steps_with_momentum", answer=steps_needed(rolls["β = 0.8"]))
first = {name: path[:31] for name, path in rolls.items()}
nearest = min(first, key=lambda name: loss(first[name][-1]))
title = f"After 30 steps with rate 2, {nearest} is nearest"
pictures.trajectories(loss, first, best, title, together=True)

# %% [markdown]
# Along the valley all gradients point the same way, and the velocity adds them up: to $1/(1-\beta)$ of them, five
# for $\beta = 0.8$. That is the steady gain. The rest is speed from the steep start: where the hiker creeps, the ball
# still rolls fast. With too much memory the ball rolls past the star and has to come back.
#
# Across the valley, long steps make the gradients point to and fro, and in the velocity they partly cancel. So longer
# steps are *stable*. Polyak's bound (1964) is $2(1+\beta)/\lambda$:

# %%
from functools import partial  # the same function, some arguments given

for beta in [0.0, 0.5, 0.8]:
    predicted = largest_stable_lr(hessian(best), beta)
    found = bisect(partial(comes_nearer, momentum=beta), 1.0, 100.0)
    assert abs(found / predicted - 1) < 0.05
    print(f"β = {beta}: predicted {predicted:.2f}, measured {found:.2f}")

# %% [markdown]
# ## All ten digits
#
# Now a network. Each of 32 **hidden units** weighs the 64 pixels of an image, and each of 10 digits weighs the hidden
# units. Each unit and each digit also adds a number of its own, its *bias*. All these are called weights: 2,410 numbers
# in four arrays. Nobody can draw the landscape of this loss, but nothing else changes. Its gradient comes from
# `loss_and_gradients`, 12 lines written by hand.
#
# The loop below trains *every* network. This one sees 1,437 images. **Predict**: after the training, what share of 360
# other images, which it never saw, does it read right?

# %%
from course_utils.lessons.sgd import accuracy, loss_and_gradients, new_network, sgd_step

train_x, train_y, test_x, test_y = course.data.digits_arrays()
rng = np.random.default_rng(0)
weights, losses = new_network(rng), []
for _ in range(15):  # epochs
    for batch in minibatches(len(train_x), 32, rng):
        now, slopes = loss_and_gradients(weights, train_x[batch], train_y[batch])
        sgd_step(weights, slopes, rate=0.1)
        losses.append(now)

# %%
course.predict("digits_read", within=1.02, answer=...)  # between 0 and 1

# %% tags=["figure:01_digits"]
share = accuracy(weights, test_x, test_y)
assert share >= 0.95
course.measured("digits_read", answer=share)
course.draw.loss_curves({"SGD": losses}, f"{share:.1%} of the test images are read right")

# %% [markdown]
# The curve is ragged: each step sees another batch of 32, and that is the noise you measured. It goes down
# nevertheless.
#
# ## The same gradient, in four parts
#
# One last experiment, and the reason why this course exists. A batch of 64 images: one gradient. Now cut the batch
# into four parts of 16, find the gradient of each part *by itself*, and take the mean of the four.

# %% tags=["nbval-check-output"]
batch = np.arange(64)
whole = loss_and_gradients(weights, train_x[batch], train_y[batch])[1]
parts = [
    loss_and_gradients(weights, train_x[part], train_y[part])[1]
    for part in np.split(batch, 4)
]
for k in range(4):
    mean = np.mean([part[k] for part in parts], axis=0)
    print(f"array {k}: equal to 1e-12:", np.allclose(mean, whole[k], rtol=0, atol=1e-12))

# %% [markdown]
# The mean of a batch is the mean of the means of its equally large parts, and no part needs another part. So four
# computers could work *at the same time*, if only they could take the mean at the end. [Lesson 4](04_messages.ipynb)
# shows how computers talk, and [lesson 6](06_data_parallel.ipynb) how four of them train as one.

# %% [markdown]
# ## What you take with you
#
# You can **write** the loop: draw a batch, find its gradient, take a step against it. You can **predict** the rate at
# which it fails: $2/\lambda$ of the steepest direction, and why a narrow valley wants momentum. And you can **choose**
# a batch size: its noise is $\sigma/\sqrt{B}$, so half the noise costs four times the work.
#
# Next: [the exercises](../exercises/01_sgd.ipynb). Then [lesson 2](02_autodiff_and_optimizers.ipynb) asks who computes
# the gradient.
