"""Checks answers: what an exercise is, how it is judged, what is said of it, and what a learner has done.

`exercise` says what one is made of. `judging_plan` decides on which ranks an answer runs, `judge` runs it there, stage
by stage, and `run_cases` case by case. What is wrong is a `finding`, a value; `compare` finds it in a result. Which
mistake is behind it, `mistake_search` finds out by running the programs that people write (`sample_answers` reads
them), or by what their files say of the finding (`recognition`, `symptoms`). All this becomes a `verdict`, and the
words are made at the end: `finding_text`, `verdict`, `verdict_panel`. `submission` reads a whole notebook, and
`judge_submission` judges it. `predictions` are asked before a run; `progress_records` keeps what was done.
"""
