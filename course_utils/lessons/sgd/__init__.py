"""Lesson 1, How does a network learn? Read `gradient_descent` first.

`logistic` has a loss with two weights, which can be drawn as a map; `digits_network` reads handwritten
digits.
"""
