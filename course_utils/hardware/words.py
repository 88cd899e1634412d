"""Words for numbers, for the sentences that stand beside measurements."""


def percent(share: float, digits: int = 0) -> str:
    """`25 %`, with a space that does not break."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"
