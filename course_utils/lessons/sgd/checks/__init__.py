"""The exercises of lesson 1: batches, steps against the gradient, and the largest learning rate."""
