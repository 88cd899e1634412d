"""Checks answers: what an exercise is, how it is judged, what is said of it, and what a learner has done.

`exercise` says what one is made of, and `judge` runs a learner's function case by case. `compare` finds what is wrong
with a result. Which mistake it is, `behaviour` finds out by running the programs that people write (`written` reads
them), or sees by one of the `symptoms`. `verdict` says it in a line. `submission` reads a whole notebook, and
`judge_submission` judges it. `predictions` are asked before a run; `progress_records` keeps what was done.
"""
