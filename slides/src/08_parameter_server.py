"""How deck 8 runs its pages as a draft: with fewer learning rates and a single race."""

DRAFT = {"PAGE": {"rates": [0.1, 0.8], "repeats": 1}}
