"""Checks answers: what an exercise is, how it is judged, what is said of it, and what a learner has done.

`exercise` says what one is made of, and `judge` runs a learner's function case by case. `compare` finds what is wrong
with a result, `recognisers` what kind of mistake it is, and `verdict` says it in a line. `predictions` are asked before
a run; `records` keeps what was done.
"""
