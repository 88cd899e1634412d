# The lesson on gradient descent. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # How does a network learn?
#
# Training the language model of lesson 0 would keep a single GPU busy for more than 60 years. Nearly all of that time
# would be spent in a loop that fits in a few lines of Python. The loop takes some examples, finds out how the weights
# should change, and changes them a little. People have to choose how many examples it takes and how far it goes in each
# step. If the steps are just 5% too long, they can lead away from the solution instead of towards it, and you will see
# that happen on this page.
#
# After this lesson you can write the loop, say how reliable a step is if it looks at only a few examples, and find the
# largest step that works. You will also see why several computers can share the work of a single step, which is what
# the rest of this course is about.
#
# *50 minutes · builds on [lesson 0](00_first_steps.ipynb) · no ranks*

# %% [markdown]
# ## Is it a 2 or a 5?
#
# A large network has billions of numbers to learn. We begin with a model that has only two, because then we can draw
# everything on a map. It has to tell handwritten 2s from handwritten 5s. There are 359 images of 8 × 8 pixels, and we
# describe each of them with two numbers: the amount of ink in its left half and the amount in its lower left quarter.
# The picture below shows two of the images, with the half framed and the quarter shaded.

# %%
import numpy as np

import course_utils as course
from course_utils.lessons.sgd import best_weights, digit_images, pictures, two_digits

images, _ = digit_images()
x, y = two_digits()  # two numbers for each image; y is 1 for a 5 and 0 for a 2
some = [95, 258]
title = (
    "Both have the same amount of ink on the left, but the 2 has more of it at the bottom"
)
pictures.images_with_regions(images[some], x[some], ["a 2", "a 5"], title)

# %% [markdown]
# We have shifted and scaled both numbers so that they have a mean of 0 and a standard deviation of 1 over all the
# images. A negative number means less ink than average. Here every image is a point:

# %%
inks = ["ink in the left half", "ink in the lower left quarter"]
title = "With the same amount of ink on the left, the 2s tend to lie above the 5s"
pictures.two_classes(x, y, ["a 2", "a 5"], inks, title=title)

# %% [markdown]
# The smallest model that can learn this multiplies each of the two numbers of an image, $x_0$ and $x_1$, by a
# **weight** and adds the results. That gives the image a score, $s = w_0 x_0 + w_1 x_1$. A formula then turns the score
# into the probability that the image is a 5:
#
# $$p = \frac{1}{1 + e^{-s}}$$
#
# A score of 0 gives $p$ = 0.5, and a score of 3 gives 0.95. This model is called **logistic regression**.
#
# We also need a number that tells us how wrong the model is, its **loss**. For a single image, it is minus the natural
# logarithm of the probability that the model assigned to the right answer. Suppose that $p$ is 0.95. If the image
# really is a 5, the loss is −log 0.95 = 0.05. But if it is a 2, the model gave the right answer a probability of only
# 0.05, and the loss is −log 0.05 = 3.0. Being sure and wrong is expensive. The loss of the model is the mean over all
# the images:


# %%
def probability(w, x):
    score = x @ w  # w[0] * x[:, 0] + w[1] * x[:, 1]
    return 1 / (1 + np.exp(-score))


def loss(w):
    p = probability(w, x)
    p_of_right_answer = np.where(y == 1, p, 1 - p)
    return -np.log(p_of_right_answer + 1e-12).mean()  # because log(0) is infinite


# %% [markdown]
# ## The gradient points uphill
#
# You can think of the loss as a landscape. Every choice of the two weights is a point on the map, and the loss is the
# height there. We want to get to the lowest point without knowing where it is, but we can find out how steep the ground
# is under our feet.
#
# This slope is the **gradient**, written $\nabla L$. For each weight, it tells you how fast the loss grows when you
# increase that weight. For our model, calculus gives a short formula. The loss of a 5 is $-\log p = \log(1 + e^{-s})$,
# and its derivative with respect to the score is $-e^{-s}/(1 + e^{-s})$, which is $p - 1$. For a 2, the derivative
# comes out as $p$. So in both cases, when the score of an image grows, its loss changes at the rate $p-y$, where $y$ is
# 1 for a 5 and 0 for a 2. When weight $w_0$ grows, the score changes at the rate $x_0$. Multiplied, the two rates give
# $(p-y)\,x_0$, and for $w_1$ it is $(p-y)\,x_1$. Together they form the gradient of a single image. The gradient of $n$
# images is the mean of their $n$ gradients. If $\mathbf{x}_i$ stands for the two numbers of image $i$, it is
#
# $$\nabla L(w) = \frac{1}{n} \sum_{i=1}^{n} (p_i - y_i)\, \mathbf{x}_i .$$
#
# You don't have to take the calculus on trust. Let's nudge a weight by a millionth and see how much the loss changes:


# %% tags=["nbval-check-output"]
def gradient(w, x, y):
    return (probability(w, x) - y) @ x / len(x)  # @ adds up over the images


w = np.zeros(2)
formula = gradient(w, x, y)
for k in range(2):
    nudged = w.copy()
    nudged[k] += 1e-6
    by_nudging = (loss(nudged) - loss(w)) / 1e-6
    print(f"weight {k}: {formula[k]:.2f} by the formula, {by_nudging:.2f} by nudging")

# %% [markdown]
# The gradient points uphill, so we go the opposite way:
#
# $$w \leftarrow w - \eta\, \nabla L(w)$$
#
# The number $\eta$ (eta) is the **learning rate**. With a rate of 4 and the gradient (−0.12, 0.17) that we have just
# seen, the weights change by (0.48, −0.68). **Gradient descent** takes one such step after another:

# %% tags=["figure:01_downhill"]
w = np.zeros(2)
path = [w]
for _ in range(40):
    w = w - 4.0 * gradient(w, x, y)
    path.append(w)

correct = (probability(w, x) > 0.5) == (y == 1)
print(f"After 40 steps, {correct.mean():.0%} of the images are classified correctly.")

best = best_weights(x, y)  # found with a different method, for comparison
title = "40 steps of gradient descent, most of them in a long, narrow valley"
pictures.trajectories(loss, {"gradient descent": path}, best, title)

# %% [markdown]
# This is a hiker's map. Each line joins points with the same loss. Towards the bottom of the valley they are drawn at
# smaller and smaller differences in height, because otherwise there would be none to see. Darker areas are higher, and
# the star marks the lowest point. The path starts at the white circle. Where the ground is steep, the steps are long.
# But soon the path reaches the floor of a long, narrow valley, which is almost level, and there the steps become short,
# although the rate is still the same.
#
# ## A few images are enough for a step
#
# Each of these steps used all 359 images. ImageNet-1k, a famous collection of photos, has 1.28 million images to train
# on, and a network trained in this way would have to look at all of them before its first step. Collections of this
# size are one reason why people train on many machines. But long before all the images have been looked at, a few of
# them will have shown roughly which way is down.
#
# **Stochastic gradient descent**, or SGD, makes use of that. It divides the images at random into small groups. Each
# group is called a **batch**, and its mean gradient is used for one step. When every image has been used once, an
# **epoch** is over, and the images are shuffled for the next one. The function `minibatches` yields the positions of
# the images in each batch of an epoch. Here we use the course's version, and in the first exercise you will write your
# own:

# %%
from course_utils.lessons.sgd import minibatches


def sgd(batch_size, rate=1.0, epochs=5):
    rng = np.random.default_rng(0)  # the source of random numbers
    w = np.zeros(2)
    path = [w]
    for _ in range(epochs):
        for batch in minibatches(len(x), batch_size, rng):
            w = w - rate * gradient(w, x[batch], y[batch])
            path.append(w)
    return path


# %% [markdown]
# With a batch size of 64, an epoch has five full batches and a sixth one with the remaining 39 images. That makes 6
# steps in an epoch and 30 in five epochs. In the same way, a batch size of 1 gives 1,795 steps, a batch size of 8 gives
# 225, and 359 gives 5. Whatever the batch size, each image is used five times. You can take many steps in unreliable
# directions, or a few in reliable ones.
#
# **Predict.** After five epochs with a rate of 1, which batch size will reach the lowest loss?

# %%
course.predict(
    "nearest_batch",
    answer=...,  # "a", "b", "c" or "d"
    choices={
        "a": "1 image (1,795 steps)",
        "b": "8 images (225 steps)",
        "c": "64 images (30 steps)",
        "d": "359 images (5 steps)",
    },
)

# %% tags=["figure:01_four_batches"]
paths = {f"batch size {size}": sgd(size) for size in (1, 8, 64, 359)}
losses = [loss(path[-1]) for path in paths.values()]
course.measured("nearest_batch", answer="abcd"[np.argmin(losses)])

columns = 2  # how many maps are drawn side by side
title = f"After five epochs, {list(paths)[np.argmin(losses)]} has the lowest loss"
pictures.trajectories(loss, paths, best, title, columns=columns)

# %% [markdown]
# With all 359 images in a batch, the steps point in the right direction, but five steps don't get far. With a single
# image in each step, the path soon comes near the star. But because each step follows only one image, it then keeps
# wandering about, mostly beyond the star, where the valley is even flatter and little pulls it back. A batch of 8 is a
# good compromise here. With a different rate the result could be different, and in [Further](01_sgd_further.ipynb) you
# can try that with two sliders.
#
# ## Noise falls with the square root of the batch size
#
# How unreliable is the gradient of a batch? Let's draw many batches at random and measure how far the gradient of each
# is from the gradient of all the images. We square these distances, take their mean, and take the square root. The
# result is called the **noise** of the gradient.
#
# Let $\sigma$ (sigma) be the noise if a batch is a single image. The gradient of four images is the mean of four such
# gradients, so its error is the mean of their errors. If the images are drawn independently, these errors point in
# unrelated directions and partly cancel. How much is left? Suppose two errors happen to be at a right angle. Then their
# sum is the long side of a right triangle, and by Pythagoras its square is the sum of their squares. Two independent
# errors can meet at any angle, and the sum is longer if the angle is smaller than a right angle and shorter if it is
# larger. For independent errors an angle and its opposite are equally likely, so this evens out, and on average over
# many pairs the squares still add up. In the same way we can add a third error and a fourth. So the sum of four errors
# has a mean square of $4\sigma^2$, which means a noise of $2\sigma$, and their mean has a quarter of that, $\sigma/2$.
# Four times as many images give half the noise.
#
# **Predict.** By what factor is the noise of 100 images smaller than the noise of one? (Anything within a factor of 1.2
# counts as right.)

# %%
course.predict("noise_ratio", within=1.2, answer=...)  # a number

# %% tags=["figure:01_noise"]
w = np.zeros(2)  # where all our paths begin
of_each_image = (probability(w, x) - y).reshape(-1, 1) * x  # 359 gradients
of_all = of_each_image.mean(axis=0)
rng = np.random.default_rng(0)


def noise(batch_size, draws=2000):
    squares = []
    for _ in range(draws):
        batch = rng.integers(len(x), size=batch_size)  # any images, even twice
        error = of_each_image[batch].mean(axis=0) - of_all
        squares.append(error @ error)  # the squared length
    return np.sqrt(np.mean(squares))


batch_sizes = [1, 2, 5, 10, 20, 50, 100, 200]
measured = [noise(size) for size in batch_sizes]
sigma = np.sqrt(((of_each_image - of_all) ** 2).sum(axis=1).mean())  # of one image
predicted = [sigma / np.sqrt(size) for size in batch_sizes]

ratio = measured[0] / measured[batch_sizes.index(100)]
course.measured("noise_ratio", answer=ratio)
name = "images drawn independently"
title = f"A batch of 100 images has 1/{ratio:.0f} of the noise of one image"
pictures.noise_line(batch_sizes, {name: measured}, {name: predicted}, title)

# %% [markdown]
# The noise of $B$ images is $\sigma/\sqrt{B}$, which is the line in the picture. (It is straight because both axes are
# logarithmic.) To halve the noise, you have to look at four times as many images. If images are looked at one after the
# other, this is an argument for small batches. It is less clear for hardware that can look at many images at the same
# time, and lesson 6 asks how large a batch many machines should use. Within an epoch, no image is drawn twice, which
# makes the noise smaller. For batches that are small compared with all the images this hardly matters, and
# [Further](01_sgd_further.ipynb) shows how large the effect is for large ones.
#
# ## How large may a step be?
#
# On the floor of the valley, larger steps would have helped. So what stops us from taking them? Let's look at the
# simplest landscape with a lowest point, a parabola. At a distance $d$ from the lowest point, let its height be
# $\tfrac{\lambda}{2} d^2$. The derivative of $d^2$ is $2d$, so the slope is $\lambda d$. The number $\lambda$ (lambda)
# is the **curvature**. It tells you how much the slope changes for each unit of distance. One step of gradient descent
# changes the distance by the rate times the slope:
#
# $$d \leftarrow d - \eta \lambda d = (1 - \eta\lambda)\, d$$
#
# So each step multiplies the distance by the same number, $1 - \eta\lambda$. Take a curvature of 0.5. With a rate of 2,
# this number is 0, and the first step lands exactly on the lowest point. With a rate of 3 it is −0.5, so each step
# crosses over to the other side and ends at half the distance. Here is what larger rates do:

# %% tags=["nbval-check-output"]
curvature = 0.5
visited = {}
for rate in [3.0, 3.9, 4.1]:
    d = 1.0
    distances = [d]
    for _ in range(5):
        slope = curvature * d
        d = d - rate * slope
        distances.append(d)
    print(f"rate {rate}:", *(f"{d:5.2f}" for d in distances))
    visited[f"rate {rate}"] = distances

# %%
title = "On a parabola with a curvature of 0.5, a rate of 4.1 leads upwards"
pictures.steps_on_parabola(curvature, visited, title)

# %% [markdown]
# With a rate of 4.1, each step ends farther away than the one before. The limit is the rate that makes $1 -
# \eta\lambda$ equal to −1, and that is $\eta = 2/\lambda$. For a curvature of 0.5 it is 4, and for a curvature of 1 it
# is 2.
#
# Our valley has two weights, and it is not a parabola. But near the star, a cut through it in any direction looks very
# much like one. On the maps above, you meet the next line soonest if you walk away from the star straight across the
# valley, to the lower left or to the upper right. So in this direction the slope grows fastest, the curvature is
# largest, and steps fail first. At the star the slope is
# 0. The next cell moves 0.001 to the upper right and divides the slope there by that distance, because $\lambda d$
#    divided by $d$ is $\lambda$:

# %%
across = np.array([1.0, 1.0]) / np.sqrt(2)  # an arrow of length 1
start = best + 0.001 * across
slope = gradient(start, x, y) @ across  # the part of it that points along the arrow
print(f"curvature across the valley: {slope / 0.001:.3f}")

# %% [markdown]
# **Predict.** Suppose that gradient descent starts this close to the star and takes 120 steps. What is the largest rate
# at which it still ends up closer to the star than where it started? (Your answer counts as right if it is within 5%.)

# %%
course.predict("largest_rate", within=1.05, answer=...)


# %% tags=["figure:01_too_long"]
def distances_from_star(rate):
    w = start
    distances = [np.linalg.norm(w - best)]
    for _ in range(120):
        w = w - rate * gradient(w, x, y)
        distances.append(np.linalg.norm(w - best))
    return distances


gets_closer = []
for rate in np.arange(8, 16, 0.1):
    distances = distances_from_star(rate)
    if distances[-1] < distances[0]:
        gets_closer.append(rate)
largest = max(gets_closer)
course.measured("largest_rate", answer=largest)

curves = {}
for factor in [0.5, 0.95, 1.05, 1.5]:
    curves[f"{factor} × {largest:.1f}"] = distances_from_star(factor * largest)
title = f"The largest rate that leads to the star is {largest:.1f}"
pictures.distances(curves, title, y="distance from the star")

# %% [markdown]
# The formula gives 2 ÷ 0.169 = 11.8. With a rate 5% below that, the steps lead to the star. With a rate 5% above it,
# they lead away from it, until they are so far out that the ground is less curved, where they keep jumping from one
# side to the other. The blue curve, with half the largest rate, falls steeply once and then very slowly. Its first step
# lands almost exactly on the floor of the valley, because half of $2/\lambda$ makes $1 - \eta\lambda$ equal to 0. All
# that is left is a tiny distance along the floor, which it has to cover at a crawl. (Notice that the vertical axis is
# logarithmic, so a straight line means that each step multiplies the distance by the same number.)
#
# So near the lowest point, the direction with the largest curvature sets the limit. *Along* the valley much larger
# steps would be safe, but they would throw us out sideways. A network with millions of weights has steep and gentle
# directions, too. [Further](01_sgd_further.ipynb) calculates the curvature in all directions at once.
#
# ## Momentum: a ball instead of a hiker
#
# Gradient descent forgets each step as soon as it has been taken, like a hiker who stops after every step to feel which
# way is down. A ball keeps rolling. Descent with **momentum** keeps a velocity $v$. In each step, a fraction $\beta$
# (beta) of the old velocity is kept and the new gradient is added. The velocity takes the place of the gradient, so the
# weights move against it:
#
# $$v \leftarrow \beta v + \nabla L(w), \qquad w \leftarrow w - \eta v$$
#
# Suppose that the gradient is 1 in every step and $\beta$ is 0.5. The velocity is 1 after the first step, 0.5 × 1 + 1 =
# 1.5 after the second, then 1.75, then 1.875. It approaches 2, where it stops changing, because 0.5 × 2 + 1 = 2. So the
# ball's steps become twice as long as the hiker's.
#
# **Predict.** What velocity does the ball approach if the gradient stays at 1 and $\beta$ is 0.8?

# %%
course.predict("velocity", answer=...)

# %% [markdown]
# Let's try that in our valley. We begin with a rate of 2 and three values of $\beta$, where 0 means no momentum. With
# $\beta$ = 0.8 the steps may become five times as long, so for a fair comparison we also let the hiker use five times
# the rate. The cell counts the steps after which the loss stays within 0.001 of the lowest loss, and then draws the
# first 30 steps.

# %% tags=["figure:01_ball"]
course.answer("velocity", answer=1 / (1 - 0.8))


def with_momentum(beta, rate=2.0, steps=400):
    w, v = np.zeros(2), np.zeros(2)
    path = [w]
    for _ in range(steps):
        v = beta * v + gradient(w, x, y)
        w = w - rate * v
        path.append(w)
    return path


rolls = {}
for beta, rate in [(0, 2.0), (0, 10.0), (0.8, 2.0), (0.9, 2.0)]:
    path = with_momentum(beta, rate)
    too_high = [step for step, w in enumerate(path) if loss(w) > loss(best) + 0.001]
    print(f"β = {beta}, rate {rate:g}: {max(too_high) + 1} steps")
    rolls[f"β = {beta}, rate {rate:g}"] = path[:31]
title = "A hiker with a rate of 10 zigzags; the ball stays on the valley floor"
pictures.trajectories(loss, rolls, best, title, together=True)

# %% [markdown]
# While the gradient stays the same, momentum makes the steps up to $1/(1-\beta)$ times as long. Most of the saving here
# comes from that, because a hiker with a rate of 10 reaches the star in a similar number of steps. But this rate is
# close to the limit, and at the beginning of the path, where the ground is more sharply curved, it is even above it.
# That is why this hiker zigzags across the valley. The ball takes small steps across the valley and still gets up to
# speed along it, because there all the gradients point the same way. In a more sharply curved valley, a hiker couldn't
# use such a rate at all. But its speed also carries it past the star, a little with $\beta$ = 0.8 and far with $\beta$
# = 0.9, and then it has to come back. Momentum also needs memory, since the velocity has as many numbers as there are
# weights.
#
# ## The same loop trains a network
#
# Now let's recognise all ten digits with a small network. It has 32 **hidden units**. Each of them multiplies the 64
# pixels of an image by 64 weights, adds the results and one more number, its bias, and replaces a negative result by 0.
# Each of the ten digits then gets a score from the 32 hidden units in the same way, except that negative results stay
# as they are. The digit with the highest score is the network's answer.


# %%
def scores(weights, x):
    first, first_bias, second, second_bias = weights
    hidden = np.maximum(x @ first + first_bias, 0)
    return hidden @ second + second_bias


# %% [markdown]
# A formula called softmax, which you will meet in lesson 2, turns the ten scores into ten probabilities, and the loss
# is again minus the logarithm of the probability of the right digit. The network has 64 × 32 + 32 + 32 × 10 + 10 =
# 2,410 numbers to learn, in four arrays. A landscape in 2,410 dimensions can't be drawn, but the loop doesn't need a
# drawing. It needs the gradient, which the function `loss_and_gradients` calculates with formulas that we worked out by
# hand. Lesson 2 shows how a computer can find the gradient.
#
# We train with 1,437 images for 15 epochs, with a batch size of 32 and a rate of 0.1 that we found by trying. The
# function `sgd_step`, your second exercise, takes the step for all four arrays.
#
# **Predict.** How many steps will that be in total?

# %%
course.predict("steps", within=1.001, answer=...)

# %% tags=["figure:01_digits"]
from course_utils.lessons.sgd import loss_and_gradients, new_network, sgd_step

train_x, train_y, test_x, test_y = course.data.digits_arrays()
rng = np.random.default_rng(0)
weights = new_network(rng)  # random numbers to start from
losses = []
for _ in range(15):  # epochs
    for batch in minibatches(len(train_x), 32, rng):
        batch_x, batch_y = train_x[batch], train_y[batch]
        batch_loss, gradients = loss_and_gradients(weights, batch_x, batch_y)
        sgd_step(weights, gradients, rate=0.1)
        losses.append(batch_loss)

course.measured("steps", answer=len(losses))
correct = scores(weights, test_x).argmax(axis=1) == test_y
title = (
    f"Of {len(test_x)} new images, the network classifies {correct.mean():.1%} correctly"
)
course.draw.loss_curves({"SGD": losses}, title)

# %% [markdown]
# An epoch has 44 full batches and one with the remaining 29 images, so 15 epochs have 15 × 45 = 675 steps. The curve is
# ragged because each batch has different images, and some of them are harder than others. This loop is at the heart of
# nearly every training run. Larger programs add to it, for example by changing the rate as they go, but you will
# recognise the batch, its gradient and the step.
#
# ## The same gradient, in four parts
#
# Finally, here is why this course exists. We take a batch of 64 images and compute its gradient. Then we cut the batch
# into four parts of 16 images, compute the gradient of each part separately, and take the mean of the four. Do we get
# the same?

# %% tags=["nbval-check-output"]
_, whole = loss_and_gradients(weights, train_x[:64], train_y[:64])

parts = []
for first in [0, 16, 32, 48]:
    part = slice(first, first + 16)
    _, gradients = loss_and_gradients(weights, train_x[part], train_y[part])
    parts.append(gradients)

for k in range(4):  # the network has four arrays
    mean = (parts[0][k] + parts[1][k] + parts[2][k] + parts[3][k]) / 4
    equal = np.allclose(mean, whole[k], rtol=0, atol=1e-12)
    print(f"array {k}: equal to 12 decimal places: {equal}")

# %% [markdown]
# We do, and it couldn't be otherwise. The gradient of the batch is a sum over 64 images, divided by 64. The mean of the
# four parts is a quarter of four sums, each divided by 16. Either way, every image counts for 1/64. (Only the last
# digits can differ, because the computer rounds in a different order. If the parts had different sizes, each would have
# to be weighted by its number of images.) The next picture shows the gradients of the ten biases of the output, one for
# each digit:

# %% tags=["figure:01_parts"]
biases = {f"part {k + 1}": parts[k][3] for k in range(4)}
assert np.allclose(np.mean(list(biases.values()), axis=0), whole[3], rtol=0, atol=1e-12)
title = "The gradients of the parts differ, but their mean is the gradient of the batch"
name = "all 64 images = mean of the four parts"
pictures.parts_and_whole(
    biases, whole[3], title, x="bias of the output", y="gradient", name=name
)

# %% [markdown]
# To compute the gradient of one part, we needed the weights and the 16 images of that part, and nothing from the other
# parts. So four computers could do this at the same time, if each of them had a copy of the weights. They would have to
# communicate only once in each step, to take the mean. [Lesson 4](04_messages.ipynb) shows how computers exchange
# numbers, and in [lesson 6](06_data_parallel.ipynb) four ranks train a network together in this way.
#
# ## What you can do now
#
# You can write the loop that trains a network: take a batch, compute its gradient, and take a step in the opposite
# direction. You know that the noise of a batch of $B$ independently drawn images is $\sigma/\sqrt{B}$, that near a
# lowest point the steps lead away from it if the learning rate exceeds $2/\lambda$, where $\lambda$ is the largest
# curvature there, and that momentum can make steps $1/(1-\beta)$ times as long. Most importantly, you know that the
# gradient of a batch is the mean of the gradients of its equal parts, each of which can be computed on its own.
#
# In the [exercises](../exercises/01_sgd.ipynb) you write the pieces of the loop. [Lesson
# 2](02_autodiff_and_optimizers.ipynb) asks who computes the gradient. [Further](01_sgd_further.ipynb) is about
# curvature in many dimensions, the largest rate with momentum, and batches in which no image is drawn twice.
#
# **To read**
#
# - Goh (2017), [*Why Momentum Really Works*](https://distill.pub/2017/momentum/), has pictures of balls and valleys
#   that you can change with the mouse.
# - Bottou, Curtis and Nocedal (2018), [*Optimization Methods for Large-Scale Machine
#   Learning*](https://arxiv.org/abs/1606.04838), gives the theory behind SGD and its noise.
# - Ruder (2016), [*An overview of gradient descent optimization algorithms*](https://arxiv.org/abs/1609.04747), is a
#   short tour of what came after momentum.
