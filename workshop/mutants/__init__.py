"""Mutants of the library's own answers: how they are made (`mutate`), and which of them the checks overlook."""
