"""How deck 12 runs its pages as a draft: with fewer rounds of timing."""

DRAFT = {"PAGE": {"rounds": 2}}
