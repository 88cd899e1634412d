"""Words for numbers, for the sentences that stand beside measurements."""


def plural(count: int, word: str) -> str:
    """`1 thread`, `3 threads`."""
    return f"{count} {word}{'' if count == 1 else 's'}"
