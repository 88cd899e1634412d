"""The exercises of lesson 1: batches, steps against the gradient, and how long a step may be."""
