"""Numbers in words, for the sentences that the course writes."""


def count(number: int, thing: str) -> str:
    """A number of things: "1 round", "3 epochs", "2 switches"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}{'es' if thing.endswith(('s', 'tch')) else 's'}"


def ranks(number: int) -> str:
    """A number of ranks: "1 rank", "3 ranks"."""
    return count(number, "rank")
