"""Functions that need no ranks, or virtual ones alone: a process beside the notebook, the worker, runs them."""
