"""Lesson 2, Who computes the gradient? Read `autodiff` first: reverse mode in about 150 lines.

`optimizers` has Adam and what optimizers remember; `ready_order` records when each gradient is ready.
"""
