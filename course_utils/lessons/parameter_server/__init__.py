"""Lesson 8, What if nobody waits? Read `server` first.

`local_sgd` talks less: weights are averaged now and then; `outer_optimizer` makes a step of their mean change;
`digits_trainings` trains in all these ways.
"""
