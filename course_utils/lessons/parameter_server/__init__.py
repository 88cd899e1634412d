"""Lesson 8, What if nobody waits? Read `server` first.

`local_sgd` talks less: weights are averaged now and then; `digits_trainings` trains in all these ways.
"""
