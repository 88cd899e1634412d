# The optional second notebook of lesson 1. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: how does a network learn?
#
# The [first page](01_sgd.ipynb) found the largest learning rate by walking straight across a valley. That works if you
# can see the valley. This notebook shows how to calculate the limit from the loss itself, in any number of dimensions,
# and then what becomes of the limit while a network is being trained.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that,
# you can go to any section, but the fourth one uses two functions of the third.
#
# 1. *Two sliders*: any batch size and any rate
# 2. *No image twice*: why the batches of an epoch have less noise
# 3. *The curvature in every direction*: the Hessian and its eigenvalues
# 4. *The largest rate with momentum*: why a ball may take longer steps
# 5. *A network finds flatter ground*: rates that ought to fail, and don't
#
# *30 minutes · optional, after [lesson 1](01_sgd.ipynb) · no ranks*

# %%
import numpy as np

import course_utils as course
from course_utils.lessons.sgd import best_weights, descend, gradients, loss
from course_utils.lessons.sgd import minibatches, pictures, probability, two_digits

x, y = two_digits()
best = best_weights(x, y)  # the star on the map


def height(w):
    return loss(w, x, y)


def gradient(w):
    return gradients(w, x, y).mean(axis=0)


# %% [markdown]
# ## Two sliders
#
# On the first page, a batch of 8 images got closest to the lowest loss in five epochs with a rate of 1. Try other rates
# and batch sizes. Which rate suits a batch of 1 best, and which a batch of 64? The sliders need a running notebook. If
# you are reading this page on the web, you see the first picture only.


# %%
from ipywidgets import FloatLogSlider, SelectionSlider

from course_utils.draw import with_sliders


def sgd(batch_size, rate, epochs=5):
    rng = np.random.default_rng(0)
    w = np.zeros(2)
    path = [w]
    for _ in range(epochs):
        for batch in minibatches(len(x), batch_size, rng):
            w = w - rate * gradients(w, x[batch], y[batch]).mean(axis=0)
            path.append(w)
    return path


def show(batch_size, rate):
    paths = {f"batch size {batch_size}": sgd(batch_size, rate)}
    return pictures.trajectories(height, paths, best)


with_sliders(
    show,
    batch_size=SelectionSlider(options=[1, 2, 4, 8, 16, 32, 64, 359], value=8),
    rate=FloatLogSlider(value=1.0, min=-1.5, max=1.0, step=0.25),
)

# %% [markdown]
# <details><summary>Which rates are the best?</summary>
#
# Of the rates on the slider, 0.18 is the best for a batch of 1, 1.78 for a batch of 8, and 5.62 for a batch of 64. A
# larger batch has less noise, so it can afford longer steps, and it needs them, because there are fewer steps. Lesson 6
# comes back to this when four ranks make the batch four times larger.
# </details>

# %% [markdown]
# ## No image twice
#
# The noise $\sigma/\sqrt{B}$ of the first page holds for images that are drawn independently, so that an image can be
# in a batch twice. In an epoch this doesn't happen. That makes a difference for large batches. A batch of all $n$
# images, none of them twice, has exactly the gradient of all images, and its noise is 0. In general the noise is
#
# $$\frac{\sigma}{\sqrt{B}}\, \sqrt{\frac{n-B}{n-1}} .$$
#
# The second factor is 1 for $B$ = 1, where there is nothing to be drawn twice, and 0 for $B = n$. In between, it
# depends on the share of the images that is left over. With 180 of our 359 images, for example, the factor is the
# square root of 179 ÷ 358, or 0.71. If the batch is only a small part of the images, which is the rule in practice, you
# can forget about it.
#
# **Predict.** By what factor do 90 of the 359 images reduce the noise further, if no image is drawn twice?

# %%
course.predict("without_replacement", within=1.05, factor=...)

# %%
from course_utils.lessons.sgd import gradient_noise, predicted_noise

of_each_image = gradients(np.zeros(2), x, y)  # where the walk begins
sizes = [1, 2, 5, 10, 20, 50, 100, 200, 350]
rng = np.random.default_rng(0)
noise, line = {}, {}
for name, replace in [("images drawn independently", True), ("no image twice", False)]:
    noise[name] = [
        gradient_noise(of_each_image, size, rng, replace=replace) for size in sizes
    ]
    line[name] = [predicted_noise(of_each_image, size, replace) for size in sizes]

twice = gradient_noise(of_each_image, 90, rng, draws=10_000, replace=True)
once = gradient_noise(of_each_image, 90, rng, draws=10_000, replace=False)
course.measured("without_replacement", factor=once / twice)
title = "If no image is drawn twice, the noise of a large batch falls faster"
pictures.noise_line(sizes, noise, line, title)

# %% [markdown]
# For 90 images the factor is the square root of 269 ÷ 358, which is 0.87. Statisticians call this factor the *finite
# population correction*. They need it when a survey asks a large part of a small town.
#
# ## The curvature in every direction
#
# On the first page we knew from the map which direction leads across the valley. In more dimensions there is no map, so
# we need a way to find the direction of the largest curvature by calculation.
#
# The **Hessian** $H$ is the table of all second derivatives of the loss. Its entry in row $j$ and column $k$ tells how
# fast part $j$ of the gradient changes when weight $k$ changes. If you take a short step $u$ from the star, the
# gradient changes from 0 to $H u$. In most directions the new gradient doesn't point along $u$. But there are some
# special directions in which it does, and then $H u = \lambda u$. These are the main directions of the valley, and each
# number $\lambda$ is called an **eigenvalue** of the Hessian. It is the curvature in that direction.
#
# In each of the main directions, descent near the star behaves exactly as it does on a parabola, independently of the
# others. So it fails as soon as the rate exceeds $2/\lambda$ in one of them. The largest eigenvalue decides, and the
# rate has to be below $2/\lambda_\text{max}$.
#
# For our model the Hessian is again a mean over the images:
#
# $$H(w) = \frac{1}{n} \sum_{i=1}^{n} p_i (1 - p_i)\, x_i x_i^\top$$
#
# You can check one entry by nudging, just as we checked the gradient. NumPy's `eigh` finds the eigenvalues, smallest
# first, and their directions:


# %% tags=["nbval-check-output"]
def hessian(w):
    p = probability(w, x)
    weighted = x * (p * (1 - p)).reshape(-1, 1)
    return weighted.T @ x / len(x)


nudged = best + np.array([1e-6, 0])
by_nudging = (gradient(nudged) - gradient(best)) / 1e-6
print("first column:", hessian(best)[:, 0].round(4), "by nudging:", by_nudging.round(4))

curvatures, directions = np.linalg.eigh(hessian(best))
for curvature, direction in zip(curvatures, directions.T, strict=True):
    direction = direction * np.sign(direction[0])  # the opposite direction is as good
    print(f"curvature {curvature:.4f} in the direction {direction.round(2)}")

# %% [markdown]
# The first direction leads along the valley and the second across it. The curvature across is more than 30 times as
# large. The first page guessed the direction (0.71, 0.71), which was nearly right.
#
# The limit can be found by trying, too, and faster than by trying many rates in a row. We know one rate that works and
# one that fails. We try the rate in the middle, which replaces one of the two, and go on halving the distance between
# them. This is called *bisection*. Each try starts a thousandth from the star in both weights and takes 500 steps:

# %%
from course_utils.lessons.sgd import bisect, largest_stable_lr

nearby = best + 0.001


def comes_nearer(rate, momentum=0.0):
    path = descend(gradient, nearby, rate, 500, momentum)
    return np.linalg.norm(path[-1] - best) < np.linalg.norm(nearby - best)


predicted = largest_stable_lr(hessian(best))
found = bisect(comes_nearer, 0.1 * predicted, 10 * predicted)
assert abs(found / predicted - 1) < 0.05
print(f"2 / λ predicts {predicted:.3f}, and bisection finds {found:.3f}")

# %% [markdown]
# The function `largest_stable_lr` is the fourth [exercise](../exercises/01_sgd.ipynb).
#
# There are two things to keep in mind. First, the limit tells you whether descent *stays* near the star. It is exact
# for a parabola, and a smooth loss resembles one near its lowest point, provided that no eigenvalue is 0 there. (The
# loss $d^4$ has curvature 0 at its lowest point, and resembles no parabola.) In large networks, most eigenvalues are
# close to 0, as [Sagun and others](https://arxiv.org/abs/1706.04454) found in 2017.
#
# Second, the Hessian changes from point to point. At the start of our walk, the largest curvature is more than twice
# that at the star, so the limit there is less than half. Let's begin there with a rate of 10, which is above the limit
# at the start and below the limit at the star:

# %%
path = descend(gradient, np.zeros(2), 10.0, 400)
for step in [0, 2, 4, 6, 8, 10, 20, 400]:
    limit = largest_stable_lr(hessian(path[step]))
    print(f"step {step:3}: loss {height(path[step]):.3f}, limit {limit:5.2f}")

# %% [markdown]
# The loss goes down, up again, and then down to the lowest value. While the limit is below 10, the steps are too long,
# and the path jumps from side to side. But it also moves along the valley, to ground that is less curved, where the
# limit is higher, and from there it leads to the star. You will see the same in a network, in the last section.
#
# ## The largest rate with momentum
#
# Momentum makes steps along the valley longer. Does the rate have to be smaller, then? On the contrary. Across the
# valley, the gradients of long steps point back and forth, so in the velocity they partly cancel.
#
# We can calculate the limit. On a parabola of curvature $\lambda$, the limit without momentum was the rate at which a
# step takes the distance $d$ to $-d$, and the next one takes it back. With momentum we look for the same behaviour. If
# the ball jumps from $d$ to $-d$, its velocity $v$ has to satisfy $-d = d - \eta v$, so $v = 2d/\eta$. In the step
# before it jumped the other way, so its velocity was $-v$. The rule for the velocity is therefore $v = -\beta v +
# \lambda d$, or $(1 + \beta)\,v = \lambda d$. If we put in $v = 2d/\eta$, we get
#
# $$\eta = \frac{2\,(1 + \beta)}{\lambda} .$$
#
# Boris Polyak found this limit in 1964. For $\beta$ = 0 it is the old one, $2/\lambda$.
#
# **Predict.** At the star the limit without momentum is 11.84. What is it with a $\beta$ of 0.5?

# %%
course.predict("largest_with_momentum", within=1.05, rate=...)

# %% tags=["figure:01_bounds"]
betas = [0.0, 0.2, 0.4, 0.5, 0.6, 0.8]
bounds = [largest_stable_lr(hessian(best), beta) for beta in betas]
found = []
for beta in betas:

    def works(rate, beta=beta):
        return comes_nearer(rate, beta)

    found.append(bisect(works, 1.0, 100.0))

course.measured("largest_with_momentum", rate=found[betas.index(0.5)])
errors = np.abs(np.divide(found, bounds) - 1)
assert errors.max() < 0.05
title = f"The largest rates are within {max(errors.max(), 0.001):.1%} of 2(1 + β)/λ"
course.draw.over_numbers(
    betas,
    {"largest rate that works": found},
    title,
    across="β, the share of the velocity that is kept",
    up="learning rate",
    predicted={"largest rate that works": bounds},
    unit="{:.3g}".format,
)

# %% [markdown]
# With $\beta$ = 0.9, the rate may be almost twice as large, and the steps along the valley are ten times as long on top
# of that. This is why momentum helps so much in narrow valleys.
#
# ## A network finds flatter ground
#
# The Hessian of a network with 2,410 weights has 2,410 rows and columns, which is more than we want to calculate. But
# to find its largest eigenvalue, you only need to know what it does to a vector $u$, and that is easy to find out.
# Nudge the weights a tiny bit in the direction $u$, compute the gradient before and after, and divide the difference by
# the size of the nudge. That gives $H u$ without $H$. SciPy's function `eigsh` needs nothing more.
#
# The next cell trains the digits network of the first page with three learning rates. Each step uses all 1,437 images,
# so there is no noise. As it goes along, it compares the largest curvature with $2/\eta$, the curvature from which on
# descent should fail. In the picture, this limit is the number 1.

# %%
from scipy.sparse.linalg import LinearOperator, eigsh

from course_utils.lessons.sgd import flat, loss_and_gradients, new_network, unflat

train_x, train_y, _, _ = course.data.digits_arrays()


def network_gradient(w):
    batch_loss, arrays = loss_and_gradients(unflat(w), train_x, train_y)
    return flat(arrays)  # all four arrays in one vector


def largest_curvature(w):
    def times_hessian(u):
        nudge = 1e-8 * u.ravel()
        return (network_gradient(w + nudge) - network_gradient(w - nudge)) / 2e-8

    hessian = LinearOperator((len(w), len(w)), matvec=times_hessian, dtype=float)
    return eigsh(hessian, k=1, which="LA", tol=1e-2, return_eigenvectors=False)[0]


steps = [1, 2, 4, 8, 16, 32, 64, 128, 256]
relative = {}
for rate in [0.2, 0.5, 1.0]:
    w = flat(new_network(np.random.default_rng(0)))
    curve = []
    for step in range(1, max(steps) + 1):
        if step in steps:
            curve.append(largest_curvature(w) / (2 / rate))
        w = w - rate * network_gradient(w)
    relative[f"rate {rate}"] = curve

above = [name for name, curve in relative.items() if curve[0] > 1]
below = [name for name, curve in relative.items() if curve[-1] < 1]
print(f"At the start, {len(above)} of 3 trainings are above the limit.")
print(f"Before step {steps[-1]}, {len(below)} of 3 are below it.")
title = (
    f"{len(above)} of 3 trainings start above the limit, and {len(below)} end below it"
)
across, up = "before step", "largest curvature ÷ (2 / rate)"
course.draw.over_numbers(steps, relative, title, across=across, up=up, log=True)

# %% [markdown]
# A training that starts above the limit can't stay where it is. Its first steps are too long for the ground at the
# start, so they take it somewhere else, and it can only come to rest where the curvature is below $2/\eta$. In this way
# a large rate chooses flat ground. [Lewkowycz and others](https://arxiv.org/abs/2003.02218) studied this in 2020 and
# called it the *catapult mechanism*. In our network the curvature also falls with the small rate, probably because with
# this loss it becomes small when the network is sure of its answers.
#
# So for a network, you can't calculate the largest rate once and for all from the curvature at the start. And in many
# larger networks the curvature does not fall at first. If each step uses all the examples, it grows during the training
# until it reaches about $2/\eta$, and then stays there for a long time, for a wide range of rates. [Cohen and
# others](https://arxiv.org/abs/2103.00065) discovered this in 2021 and called it the *edge of stability*.
#
# **To read**
#
# - Cohen and others (2021), [*Gradient Descent on Neural Networks Typically Occurs at the Edge of
#   Stability*](https://arxiv.org/abs/2103.00065), shows the same measurement for many networks, mostly in pictures.
# - Goh (2017), [*Why Momentum Really Works*](https://distill.pub/2017/momentum/), derives the limit with momentum, and
#   much more.
