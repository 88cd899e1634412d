# The exercises of lesson 10. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: how are all stages kept busy?
#
# Here you write schedules, and the program that carries them out on real ranks. At the end
# waits a puzzle, whose best schedules are known and proved on the page. The
# exercises belong to [lesson 10](../notebooks/10_pipeline.ipynb).
#
# The check draws your schedule below its verdict: a row for each rank, grey where it is idle.

# %%
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

import course_utils as course
from course_utils.lessons.pipeline import BACKWARD, FORWARD, INPUT, PUZZLES, RECV_B
from course_utils.lessons.pipeline import RECV_F, SEND_B, SEND_F, WEIGHT, Action, Pace
from course_utils.lessons.pipeline import Puzzle, Schedule, Work, address, judge
from course_utils.lessons.pipeline import parse_schedule, rank_of_stages, whole_number
from course_utils.lessons.pipeline import with_messages, write_schedule

if TYPE_CHECKING:
    from mpi4py import MPI

Loss = Callable[[torch.Tensor, int], torch.Tensor]
ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · All forward, then all backward
#
# A schedule is a list for each rank. In the list stand the rank's actions in their order, and
# an action is `Action(kind, stage, micro_batch)`. Written short, `2F0` is the forward pass of
# stage 2 on micro-batch 0, and `2B0` its backward pass.
#
# ```
# rank 0    0F0 0F1 0F2     …
# rank 1    1F0 1F1 1F2     …
# ```

# %% tags=["nbval-check-output"]
print(
    Action(FORWARD, 2, 0), Action(BACKWARD, 2, 0), Action(FORWARD, stage=1, micro_batch=3)
)

# %% [markdown]
# In GPipe every rank does all of its forward passes, then all of its backward passes, both in
# the order of the micro-batches. Stage r lies on rank r. Nothing is run here: you write a plan,
# and the check simulates it.

# %% tags=["exercise"]
# gpipe_schedule

# %% [markdown]
# ## 2 · One forward, one backward
#
# In GPipe every micro-batch of the batch is in memory at once. It goes with less:
#
# ```
# rank 0    0F0 0F1 0F2 0B0 0F3 0B1 …   two ahead, then in turn
# rank 1    1F0 1F1 1B0 1F2 1B1 1F3 …   one ahead
# rank 2    2F0 2B0 2F1 2B1 2F2 2B2 …   waits for no gradient
# ```
#
# What does rank 0 do when all forward passes are done? And what does it do when there are only
# two micro-batches?

# %% tags=["exercise"]
# one_f_one_b_schedule

# %% [markdown]
# ## 3 · How large is the bubble?
#
# Count passes of a stage, forward and backward together:
#
# ```
# rank 0    0 1 2 3 4 5 . .
# rank 1    . 0 1 2 3 4 5 .
# rank 2    . . 0 1 2 3 4 5        three ranks, six micro-batches
# ```
#
# For how much of all the time is a rank idle? In the interleaved schedule a rank has v chunks:
# v stages that are each v times as short.

# %% tags=["exercise"]
# bubble_fraction

# %% [markdown]
# ## 4 · The schedule on real ranks
#
# Each rank goes through its list. `with_messages(schedule)` puts every send and receive into it:
# call it first. Between two stages that lie on one rank it puts none.
#
# ```
# 1RECV_F0   the activation of micro-batch 0 arrives, an input of stage 1
# 1F0        stages[1](input)
# 1SEND_F0   the output leaves for stage 2
# 1RECV_B0   its gradient comes back
# 1B0        backward; now the input has a gradient
# 1SEND_B0   which leaves for stage 0
# ```

# %%
print(
    write_schedule(with_messages(parse_schedule(["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"])))
)

# %% [markdown]
# Three things are ready for you:
#
# - `rank_of = rank_of_stages(schedule)`: on which rank each stage lies.
#   `peer, tag = address(action, rank_of)`: where a message goes.
# - `work = Work(stages, pace)`: do every action inside `with work.on(action):`. It notes it in
#   the trace, and fetches the gradients of weights that some stages put aside. For W that is all
#   there is to do.
# - `comm.isend(array, dest=…, tag=…)` gives a request to wait for at the end;
#   `comm.recv(source=…, tag=…)` an array of NumPy.

# %% [markdown]
# Think of these before you type:
#
# - A graph of autograd ends where a stage ends, on one rank too. Which tensor begins the next?
# - What comes out of a message has no `requires_grad`.
# - `loss(output, index)` is a micro-batch's share of the batch's loss: the shares add up to it.
# - `pace`, for the last picture, goes to `Work` as it is.

# %% tags=["exercise"]
# run_schedule

# %% [markdown]
# ## 5 · The puzzle: beat 1F1B
#
# Stages are not equally long, messages take time, and each rank has memory for a few
# micro-batches only. Hand in any schedule. A backward pass may be cut in two: I, the gradient of the
# stage's input, for which the rank before waits; and W, that of its weights, for which nobody
# waits. Until W is done the micro-batch stays in memory.

# %%
puzzle = PUZZLES["uneven"]
print("forward          ", puzzle.forward)
print("input gradient   ", puzzle.input_gradient)
print("weight gradient  ", puzzle.weight_gradient)
print("memory           ", puzzle.memory, "micro-batches")
print(f"a message takes   {puzzle.message} s of the link, {puzzle.latency} s to arrive")

# %% [markdown]
# `judge(puzzle, schedule)` says what becomes of a schedule, by simulation.

# %%
one_rank_at_a_time = [
    [Action(kind, rank, k) for k in range(8) for kind in (FORWARD, BACKWARD)]
    for rank in range(4)
]
print(judge(puzzle, one_rank_at_a_time))

# %% [markdown]
# Its `.valid`, `.problems`, `.seconds`, `.idle_share` and `.peak` you may use inside your
# function too: it may try as many schedules as it likes, for 20 seconds a puzzle; after 30 it is
# stopped. The check brings puzzles that nobody has seen, and this one at the end. A first answer
# takes a quarter of an hour; a good one may take an evening.

# %% tags=["exercise"]
# beat_1f1b

# %% [markdown]
# ## The leaderboard
#
# Your class may keep one (without one, it is yours alone). Put your name in and run this in a
# cell of its own:
#
# ```python
# from course_utils.lessons.pipeline import Leaderboard
#
# board = Leaderboard()
# for name, puzzle in PUZZLES.items():
#     print(board.submit("your name", puzzle, beat_1f1b(puzzle)))
# board
# ```
#
# `board.picture("uneven")` draws the best that was handed in. Each reader of the board judges
# its schedules again.

# %%
course.progress()

# %% [markdown]
# Next: [lesson 11](../notebooks/11_hybrid_and_sharded.ipynb), where data, stages and layers are
# all cut at once.

# %%
ranks.stop()
