"""Files that torch.profiler wrote elsewhere: found, read leniently, and told which rank each is from."""
