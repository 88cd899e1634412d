"""Mutants of right answers: how they are made (`mutate`), and which of them the checks overlook (`campaign`)."""
