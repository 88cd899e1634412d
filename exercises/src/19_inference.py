# The exercises of lesson 19. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what does one answer cost?
#
# Here you write the parts of [lesson 19](../notebooks/19_inference.ipynb) yourself. You count the bytes of a KV cache,
# take one token through a layer that is spread over ranks, and decide who has which slot of a batch. Then you accept or
# replace the guesses of a small model, and decide on which rank a prompt is read.
#
# The checks compare your functions with a whole layer in one process, on 1 to 4 ranks, and with a simulation that goes
# through every step. They also count your messages, and thousands of your draws.

# %%
import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import gelu

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.data_parallel import Group
from course_utils.lessons.inference import LayerCache, LayerPart, check_requests

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · How many bytes does a cache take?
#
# A server answers several texts at once. For each of their tokens, every layer keeps a key and a value for each KV
# head. Your function gets the number of tokens of each text:
#
# ```
# texts = [3, 5]      3 + 5 tokens
# each token          in every layer:  a key and a value for every KV head
# each key            head_size numbers of itemsize bytes
# ```
#
# With tensor parallelism, the ranks divide the KV heads among themselves, and you return the bytes of one rank. If
# there are more ranks than KV heads, several ranks need the same head, and each of them keeps it. So with 8 KV heads, a
# rank keeps 4 of them if there are 2 ranks, and 1 of them if there are 8 or 16.

# %% tags=["exercise"]
# kv_cache_bytes

# %% [markdown]
# How many tokens would fit on a GPU with 80 GB if the weights of Llama 3 8B take 16 GB? Divide the rest by the bytes of
# one token:
#
# ```python
# (80e9 - 16e9) / kv_cache_bytes([1], layers=32, kv_heads=8, head_size=128)
# ```

# %% [markdown]
# ## 2 · One token through one layer
#
# This is the heart of decoding over ranks. Each rank has some of a layer's heads and some of its MLP's columns, as in
# lesson 9. The vector `x` of the new token is the same on all ranks:
#
# ```
# x ── norm_1 ── qkv ── attention with the cache ── out ── Σ ──(+ out_bias + x)──┐
#                                                                               │
#    ┌──────────────────────────────────────────────────────────────────────────┘
#    └── norm_2 ── up ── gelu ── down ── Σ ──(+ down_bias + what went into norm_2)── the result
# ```
#
# A Σ is a sum over the ranks. `layer` has the parts that you see here as `layer.norm_1`, `layer.qkv` and so on. You can
# call each of them like a function, except for the two biases, `layer.out_bias` and `layer.down_bias`, which are
# vectors. They are apart from `layer.out` and `layer.down` because a bias may be added only once, after the sum.
# `layer.size` is the number of values in a head's key.
#
# `layer.qkv(…)` gives one long vector. The query, key and value of this rank's first head come first, then those of its
# second head, and so on. `kept.append(keys, values)` takes tensors of the shape (heads, 1, size), and returns the keys
# and values of all tokens so far, (heads, tokens, size). A mask isn't needed, because all of them come before the new
# token or belong to it. `dist.all_reduce(term, group=group)` replaces a tensor by the sum over the ranks.

# %% tags=["exercise"]
# decode_step

# %% [markdown]
# ## 3 · Who has which slot, and when?
#
# With continuous batching, a request that is done leaves its slot, and the next in the queue takes it. Your function
# gets all requests, each with the step in which it arrives and the number of its tokens, and returns for each of them
# its slot, the step in which it begins, and the step after its last one. With two slots, the requests (0, 5), (0, 1),
# (0, 2) and (0, 2) are placed like this:
#
# ```
# step      0  1  2  3  4
# slot 0    a  a  a  a  a         a = (0, 0, 5)
# slot 1    b  c  c  d  d         b = (1, 0, 1), c = (1, 1, 3), d = (1, 3, 5)
# ```
#
# No request overtakes another. If several slots are free, the one with the lowest number is taken. Answers can be
# very long, so your function shouldn't go through all steps one by one. `check_requests(requests, slots)` raises the
# error that the docstring promises.

# %% tags=["exercise"]
# continuous_batch

# %% [markdown]
# ## 4 · Accept a guess, or replace it
#
# A small model has drafted a token, with the probabilities `draft`. The large model has its own probabilities,
# `target`. Your function decides which token goes into the text, so that the text has exactly the distribution of the
# large model. It returns this token, and whether it is the drafted one that was accepted. Two tokens as an example:
#
# ```
# token                    0      1
# draft proposes it      0.8    0.2
# the target wants it    0.6    0.4
# accepted with        0.6/0.8    1
# still missing            0    0.2      these are drawn if a guess is rejected
# ```
#
# All random numbers must come from `generator`, so that a run can be repeated. `generator.random()` gives a number from
# 0 up to, but not including, 1. `generator.choice(n, p=shares)` draws one of 0 … n - 1 with these probabilities, which
# must add up to 1. The check calls your function 4,000 times for each pair of distributions, and counts.

# %% tags=["exercise"]
# accept_or_resample

# %% [markdown]
# ## 5 · Where is a prompt read?
#
# One rank is writing `running` answers, and several prompts have just arrived. A second rank, which writes nothing,
# could read some of them. Go through the prompts in order. Each of them is read where it causes less waiting, summed
# over all answers:
#
# | read where? | its own answer waits for | each running answer waits for |
# |---|---|---|
# | here | the reading of earlier prompts that stay here | the reading of this prompt |
# | on the second rank | the reading of earlier prompts there, and the move of its cache | nothing |
#
# Reading the prompt itself takes equally long in both places, so you can leave that out. Take a prompt of 100 tokens,
# 1 ms per token, and a move of 105 ms. If it is alone and two answers are running, it causes 2 · 100 = 200 ms of
# waiting here, and 105 ms there, so it is read there. A second prompt of this kind would cause 200 ms here as well, but
# there it waits until the first has been read, and then for its move, 100 + 105 ms. So it stays here.

# %% tags=["exercise"]
# place_prefill

# %%
course.progress()

# %% [markdown]
# That was the last exercise of this lesson. [The page](../notebooks/19_inference.ipynb) runs all of it on real ranks.

# %%
ranks.stop()
