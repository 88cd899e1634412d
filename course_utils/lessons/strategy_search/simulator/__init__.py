"""The execution simulator: the task graph of a training step, and when every task begins and ends."""
