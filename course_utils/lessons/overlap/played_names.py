"""The names of what is emulated by waiting, in a profile: for those who read one, and need no torch for it."""

COMPUTING = "computing, emulated by waiting"
"""The name under which torch.profiler sees it."""
ON_LINK = "all_reduce, on a played link"
"""The name under which the course's recorder has it."""
