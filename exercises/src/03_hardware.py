# The exercises of lesson 3. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what limits one machine?
#
# Five functions: two say how long a layer must take, one how far more workers help, and two keep many samples in one
# file. They belong to [lesson 3](../notebooks/03_hardware.ipynb).
#
# Replace the line `raise NotImplementedError`, run the cell, and the next one checks it, with new numbers each time.

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
# On paper first: a fully connected (linear) layer of 2 inputs and 3 outputs, and a batch of 4. How many multiplications
# are there? How many numbers are read, how many written? A convolution does the same at every place of the image, with
# a window's worth of inputs.

# %% tags=["exercise"]
# arithmetic_intensity

# %% [markdown]
# ## 2 · Under the roof
#
# `peak` and `bandwidth` say how fast the machine computes and moves bytes, at the same time. The layers run one after
# the other, each when the one before is done.

# %% tags=["exercise"]
# roofline_time

# %% [markdown]
# ## 3 · Brent's bounds
#
# `needs` says of each task which tasks come before it. Here is a sum of four numbers, as a tree:
#
# ```python
# needs = {"all": ["left", "right"], "left": [], "right": []}
# ```
#
# Work 3, depth 2. With two processors: at least 2, and at most 1.5 + 2. Depth is what makes you think: tasks may be
# listed in any order, a task may need several others, and many paths may lead to one task.

# %% tags=["exercise"]
# brent_bounds

# %% [markdown]
# ## 4 · Pack
#
# Many samples, one file: first how many samples there are, then the offsets, then the samples. The offsets
# of `[b"cat", b"goose", b"ox"]` are 40, 43, 48 and 50. Why 40? On paper, before you write a line.
#
# `struct.pack("<Q", 40)` makes the 8 bytes of a number, with the lowest byte first.

# %% tags=["exercise"]
# pack_samples

# %% [markdown]
# ## 5 · Read one of them
#
# Any one, without reading the others, while another rank reads too. And a copy may have been interrupted: a file that
# ends too early must not hand out half a sample as if it were a whole one.
#
# `file.seek(place)` goes to a byte, `file.read(count)` reads from there (and returns less, if the file ends),
# `struct.unpack("<QQ", sixteen_bytes)` gives two numbers, `os.path.getsize(path)` the length of the file.

# %% tags=["exercise"]
# read_sample

# %% [markdown]
# ## Done?
#
# Put your two together: `pack_samples` writes a file here in the notebook, and two ranks read it with
# `ranks.run(lambda comm: read_sample(path, comm.rank))`, if you like.

# %%
course.progress()

# %%
ranks.stop()
