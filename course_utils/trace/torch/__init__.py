"""Calls of torch.distributed, recorded as MPI's are, on a learner's own groups too. Read `torch_distributed` first."""
