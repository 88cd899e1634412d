"""Numbers in words, for the sentences that the course writes."""


def count(number: int, thing: str) -> str:
    """A number of things: "1 round", "3 epochs", "2 switches"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}{'es' if thing.endswith(('s', 'tch')) else 's'}"


def ranks(number: int) -> str:
    """A number of ranks: "1 rank", "3 ranks"."""
    return count(number, "rank")


def percent(share: float, digits: int | None = None) -> str:
    """A share in words, with a space that does not break: `25 %`. Small ones get a digit more: `0.4 %`."""
    if digits is None:
        digits = 1 if 0 < share < 0.0095 else 0
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"
