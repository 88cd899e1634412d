# The exercises of lesson 3. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what limits one machine?
#
# Here you write five functions. The first two predict how long a layer takes, and the third tells how much more workers
# can help. They belong to [lesson 3](../notebooks/03_hardware.ipynb). The last two keep many samples in one file. They
# belong to [Further](../notebooks/03_hardware_further.ipynb), but you can write them without having read it.
#
# Replace the line `raise NotImplementedError` and run the cell. The next cell checks your function, with new numbers
# each time.

# %%
import math
import os
import struct
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

import course_utils as course

ranks = course.start(2)

# %% [markdown]
# ## 1 · How much arithmetic for a byte?
#
# Begin on paper. Take a fully connected (linear) layer with 2 inputs and 3 outputs, and a batch of 4. Each of the 4 · 3
# outputs is a sum of 2 products, so there are 2 · 12 · 2 = 48 FLOPs. The input has 4 · 2 numbers, the weights are 3 ·
# 2, and the output has 4 · 3. That makes 26 numbers, or 104 bytes if each takes 4.
#
# A convolution has an output for each pixel of each image and each output channel. It is a sum of as many products as
# there are numbers in the window, in all the input channels.

# %% tags=["exercise"]
# arithmetic_intensity

# %% [markdown]
# ## 2 · Under the roof
#
# A layer takes at least as long as its arithmetic, and at least as long as moving its bytes:
#
# $$T \ge \max\left(\frac{\text{FLOPs}}{\text{peak}},\ \frac{\text{bytes}}{\text{bandwidth}}\right)$$
#
# The layers run one after the other. Each begins when the one before it is done.

# %% tags=["exercise"]
# roofline_time

# %% [markdown]
# ## 3 · Brent's bounds
#
# For each task, `needs` lists the tasks that have to be done before it. A sum of four numbers, as a tree, looks like
# this:
#
# ```python
# needs = {"all": ["left", "right"], "left": [], "right": []}
# ```
#
# The work is 3 and the depth is 2. With two processors the lower bound is max(1.5, 2) = 2, and the upper bound is 1.5 +
# 2 = 3.5. To find the depth is the tricky part. The tasks may be listed in any order, a task may need several others,
# and many paths may lead to the same task.

# %% tags=["exercise"]
# brent_bounds

# %% [markdown]
# ## 4 · Pack many samples into one file
#
# (After the section *Many small files or a single large one* of [Further](../notebooks/03_hardware_further.ipynb).)
#
# The file begins with the number of samples. Then come the offsets, which are the positions at which the samples begin,
# and the position at which the last one ends. After them come the samples themselves. For `[b"cat", b"goose", b"ox"]`
# the offsets are 40, 43, 48 and 50. The first is 40 because five numbers of 8 bytes come before the samples, the 3 and
# the four offsets.
#
# `struct.pack("<Q", 40)` returns the 8 bytes of a number, with the lowest byte first.

# %% tags=["exercise"]
# pack_samples

# %% [markdown]
# ## 5 · Read one of them
#
# (After the section *Two ranks, one file* of [Further](../notebooks/03_hardware_further.ipynb).)
#
# Read any one of the samples, without reading the others. With a million samples, even the index is large, so read only
# the two offsets that you need. Another rank may be reading from the same file at the same time. A copy of the file may
# also have been interrupted, so that it ends too early. Your function must not return half a sample as if it were
# whole.
#
# You can use `file.seek(position)`, which goes to a byte of the file, and `file.read(count)`, which reads from there
# and returns fewer bytes if the file ends. `struct.unpack("<QQ", sixteen_bytes)` returns two numbers, and
# `os.path.getsize(path)` returns the length of the file.

# %% tags=["exercise"]
# read_sample

# %% [markdown]
# ## Done?
#
# If you like, put your two functions together. Let `pack_samples` write a file here in the notebook, and let two ranks
# read it with `ranks.run(lambda comm: read_sample(path, comm.rank))`.

# %%
course.progress()

# %%
ranks.stop()
