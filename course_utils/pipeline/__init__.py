"""Pipeline parallelism: a schedule is data, and everything else reads it.

`schedules`, `interleaved` and `zero_bubble` write one; `messages` puts the sends and receives in; `validate` says what
is wrong with one; `timing` says when everything happens; `run` does it on real ranks.
"""
