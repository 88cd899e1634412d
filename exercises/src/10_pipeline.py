# The exercises of lesson 10. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: how are all stages kept busy?
#
# In this notebook you write two schedules of [lesson 10](../notebooks/10_pipeline.ipynb), calculate their bubble, and
# write the program that carries out any schedule on real ranks. The last exercise is a puzzle, in which you look for a
# schedule that is faster than 1F1B. The first three take about 20 minutes together, and they are enough to go on to
# lesson 11.
#
# Replace the line `raise NotImplementedError` with your code and run the cell. The next cell checks your function. If
# it returns a schedule, the check also draws it, with a row for each rank and in grey the time that the rank is idle.

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
# A schedule is a list of lists, one for each rank. Each holds that rank's actions, in order. An action is `Action(kind,
# stage, micro_batch)`, and it is printed in the short notation of the lesson:

# %% tags=["nbval-check-output"]
print(
    Action(FORWARD, 2, 0), Action(BACKWARD, 2, 0), Action(FORWARD, stage=1, micro_batch=3)
)

# %% [markdown]
# In GPipe, every rank does all of its forward passes and then all of its backward passes, both in the order of the
# micro-batches 0, 1, 2, … Stage $r$ is on rank $r$. With two ranks and three micro-batches, the two lists are
#
# ```
# rank 0    0F0 0F1 0F2 0B0 0B1 0B2
# rank 1    1F0 1F1 1F2 1B0 1B1 1B2
# ```
#
# Your function only writes the lists. Nothing is run, and the lists contain no messages.

# %% tags=["exercise"]
# gpipe_schedule

# %% [markdown]
# ## 2 · One forward, one backward
#
# In GPipe, each rank has all micro-batches in memory at once. You can get by with fewer. Here is 1F1B for three ranks
# and five micro-batches:
#
# ```
# rank 0    0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 0B3 0B4
# rank 1    1F0 1F1 1B0 1F2 1B1 1F3 1B2 1F4 1B3 1B4
# rank 2    2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4
# ```
#
# A rank begins with one forward pass for each rank *after* it. With $P$ ranks, these are $P-r-1$ forward passes on rank
# $r$. Then it does one forward and one backward pass in turn. When no forward pass is left, it does the backward passes
# that are still missing.
#
# There may be fewer micro-batches than ranks. What does rank 0 do if there are three ranks and only one micro-batch?

# %% tags=["exercise"]
# one_f_one_b_schedule

# %% [markdown]
# ## 3 · How large is the bubble?
#
# The function returns the share of the time in which a rank is idle, as a number between 0 and 1:
#
# $$\text{idle share} = \frac{\text{idle time}}{\text{idle time} + \text{working time}}$$
#
# Let us count in *passes*, where the forward and the backward pass of a micro-batch on one rank count as one. With
# three ranks and six micro-batches, each rank works for 6 passes. The last rank waits for as long as 2 passes take,
# partly at the beginning and partly at the end. So the batch takes 8 passes, and the idle share is 2 ÷ 8 = 0.25:
#
# ```
# rank 0    0 1 2 3 4 5 . .
# rank 1    . 0 1 2 3 4 5 .
# rank 2    . . 0 1 2 3 4 5
# ```
#
# In the interleaved schedule, each rank has $v$ **chunks**, which are stages that take only $1/v$ of the time. The rank
# has just as much work as before. What it waits for are passes of other ranks through a *single* chunk. Without a third
# argument, $v$ is 1.

# %% tags=["exercise"]
# bubble_fraction

# %% [markdown]
# ## 4 · The schedule on real ranks
#
# The loop of the lesson knows only one stage on each rank. Now you write one that carries out any schedule, with
# several stages on a rank, and with backward passes that are cut in two. Every rank calls your function with the same
# schedule and with its own stages, and goes through its own list. `with_messages(schedule)` returns the schedule with
# all sends and receives in it:

# %%
print(
    write_schedule(with_messages(parse_schedule(["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"])))
)

# %% [markdown]
# There are eight kinds of actions. For stage $s$ and micro-batch $k$, they mean:
#
# | kind | what the rank has to do |
# |---|---|
# | `RECV_F` | receive the output of stage $s-1$, which is the input of stage $s$ |
# | `FORWARD` | compute the output of stage $s$; on the last stage of all, also the loss of $k$ |
# | `SEND_F` | send the output of stage $s$ |
# | `RECV_B` | receive the gradient of the output of stage $s$ |
# | `BACKWARD` | compute the gradients of the input and of the weights |
# | `SEND_B` | send the gradient of the input of stage $s$ |
# | `INPUT` | the first half of `BACKWARD`, the gradient of the input |
# | `WEIGHT` | the second half, the gradients of the weights |
#
# Three helpers are ready for you.
#
# - `rank_of = rank_of_stages(schedule)` is a dictionary with the rank of each stage. `peer, tag = address(action,
#   rank_of)` gives you the rank at the other end of a message, and its tag. You can call it for any action, but its
#   answer is only of use for a message.
# - `work = Work(stages, pace)` takes care of two things if you do every pass in a block `with work.on(action):`. It
#   makes the pass last as long as `pace` asks for, and it cuts backward passes in two, so you don't have to. For an
#   `INPUT`, your code does exactly what it does for a `BACKWARD`, which is to call `backward` once. For a `WEIGHT`, it
#   does nothing inside the block. The block changes nothing for a message, so it is simplest to do every action in one.
# - `comm.isend(array, dest=peer, tag=tag)` sends a NumPy array without waiting, and returns a request. Wait for all
#   requests at the end. `comm.recv(source=peer, tag=tag)` returns a NumPy array.
#
# Three things decide whether the gradients are right.
#
# - A stage's input has to be a tensor at which autograd's graph *begins*, and which asks for a gradient. What arrives
#   in a message is only numbers. If stage $s+1$ is on the same rank, there is no message, so you hand its input on
#   yourself. Cut the graph there, too, because the two stages do their backward passes at different times.
# - The backward pass of the last stage starts from the loss. Any other starts from the gradient of its output, which
#   was received or computed by stage $s+1$ on this rank. Afterwards the gradient of the input is in `.grad` of the
#   input tensor.
# - `loss(output, index)` is called for the last stage only, with the number of the micro-batch. It returns a share of
#   the batch's loss, so the shares have to be added up and not averaged.

# %% tags=["exercise"]
# run_schedule

# %% [markdown]
# ## 5 · The puzzle: beat 1F1B
#
# (After the section *A puzzle* of [Further](../notebooks/10_pipeline_further.ipynb), which also explains when you can
# stop searching.)
#
# Here the stages take different times, messages take time, and each rank has memory for only a few micro-batches. Your
# function gets such a puzzle and returns any schedule that is done before 1F1B. Stage $s$ is on rank $s$.
#
# You may cut backward passes in two, but you need not. `I` is the gradient of the stage's input, which the rank before
# is waiting for. `W` is the gradient of the weights, which no other rank needs. A micro-batch stays in memory until its
# `B` or its `W` is done.

# %%
puzzle = PUZZLES["uneven"]
print("seconds of F, by rank:       ", *puzzle.forward)
print("seconds of I, by rank:       ", *puzzle.input_gradient)
print("seconds of W, by rank:       ", *puzzle.weight_gradient)
print("micro-batches that fit:      ", *puzzle.memory)
print("number of micro-batches:     ", puzzle.micro_batches)
print("a message uses the link for  ", puzzle.message, "s")
print("and then arrives after       ", puzzle.latency, "s")

# %% [markdown]
# `judge(puzzle, schedule)` simulates a schedule and tells you how long it takes, or why it can't be run:

# %%
one_rank_at_a_time = [
    [Action(kind, rank, k) for k in range(8) for kind in (FORWARD, BACKWARD)]
    for rank in range(4)
]
print(judge(puzzle, one_rank_at_a_time))

# %% [markdown]
# What it returns has the attributes `.valid`, `.problems`, `.seconds`, `.idle_share` and `.peak` (the most
# micro-batches that each rank keeps). You may call `judge` inside your function, too, and try many schedules. Stop
# after 20 seconds for each puzzle, because after 30 seconds the function is stopped.
#
# The check invents new puzzles each time, with 2 to 5 ranks, and comes to this one at the end. Your schedule has to be
# faster than 1F1B in all of them. A first solution takes about a quarter of an hour, and a very good one may take an
# evening.

# %% tags=["exercise"]
# beat_1f1b

# %% [markdown]
# ## The leaderboard
#
# A class can keep a leaderboard of its best schedules. If yours has none, the file is on your own computer. Put in your
# name and run this in a new cell:
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
# `board.picture("uneven")` draws the best schedule that has been handed in. The board stores the schedules and judges
# them again whenever it is read, so its numbers can't be made up.

# %%
course.progress()

# %% [markdown]
# Next is [lesson 11](../notebooks/11_hybrid_and_sharded.ipynb), in which data, stages and layers are all cut at the
# same time.

# %%
ranks.stop()
