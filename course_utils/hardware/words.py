"""Words for numbers, for the sentences that stand beside measurements."""


def plural(count: int, word: str) -> str:
    """`1 thread`, `3 threads`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def percent(share: float, digits: int = 0) -> str:
    """`25 %`, with a space that does not break."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"
