"""Numbers in words, for the sentences that the course writes."""


def count(number: int, thing: str) -> str:
    """A number of things: "1 round", "3 rounds"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
