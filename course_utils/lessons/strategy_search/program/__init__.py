"""From a strategy to the torch.distributed program that runs it, and what such programs call."""
