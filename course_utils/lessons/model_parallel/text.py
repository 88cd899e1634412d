"""Text to learn from that every Python brings along: its own help on the language, as one reads it with `help("for")`.

A model that reads characters learns from it to write what looks like English about Python. The text differs a little
from one version of Python to the next; the characters are always the same ones.
"""

import importlib
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from course_utils.errors import CourseError

if TYPE_CHECKING:
    import torch
    from torch import nn

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
"""The vocabulary: the end of a line and the 95 printable characters of ASCII; a character's code is its place here."""

_SPELT = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "…": "..."})
_SOURCE = "pydoc_data.topics"


class Text(NamedTuple):
    """A text as codes, int64, cut once: the first part to train on, the last to judge by."""

    training: "torch.Tensor"
    held_out: "torch.Tensor"


@cache
def python_text() -> str:
    """Python's help on itself: about 460,000 characters, of `CHARACTERS` only, topics in alphabetical order.

    Raises:
        CourseError: this Python was installed without it.
    """
    try:
        topics = importlib.import_module(_SOURCE).topics
    except (ImportError, AttributeError):
        raise CourseError(
            f"This Python has no {_SOURCE}, the text that this lesson learns from. "
            "Python from python.org, conda-forge or a Linux distribution's full package (python3-full) has it."
        ) from None
    text = "\n".join(topics[name] for name in sorted(topics)).translate(_SPELT)
    known = set(CHARACTERS)
    return "".join(character for character in text if character in known)


def encode(text: str) -> "torch.Tensor":
    """The codes of a text's characters, int64.

    Raises:
        CourseError: a character that is not in `CHARACTERS`.
    """
    import torch

    places = {character: index for index, character in enumerate(CHARACTERS)}
    if strange := sorted(set(text) - set(places)):
        raise CourseError(f"{strange[0]!r} is not among the {len(CHARACTERS)} characters. Leave it out.")
    return torch.tensor([places[character] for character in text], dtype=torch.int64)


def decode(codes: "torch.Tensor") -> str:
    """The text of a row of codes."""
    return "".join(CHARACTERS[code] for code in codes.tolist())


def character_text() -> Text:
    """Python's help as codes, its last tenth held out. The same on every rank.

    Raises:
        CourseError: no such text (see `python_text`).
    """
    codes = encode(python_text())
    cut = round(len(codes) * 0.9)
    return Text(codes[:cut], codes[cut:])


def text_batches(
    codes: "torch.Tensor", batch: int, context: int, steps: int, seed: int = 0
) -> list[tuple["torch.Tensor", "torch.Tensor"]]:
    """Pieces of a text from random places, and for each character the one that comes next.

    Nothing moves between ranks: the same seed gives all of them the same batches, of which each takes its part.

    Args:
        codes: a text, longer than `context`.
        batch: pieces in a batch.
        context: characters in a piece.
        steps: how many batches.

    Returns:
        (x, y) pairs, both (batch, context) of int64; y[i, k] comes after x[i, k].

    Raises:
        CourseError: the text is too short for one piece.
    """
    import torch

    if len(codes) <= context:
        raise CourseError(f"A text of {len(codes)} characters is too short: {context} are needed, and one more.")
    generator = torch.Generator().manual_seed(seed)
    windows = codes.unfold(0, context + 1, 1)  # a view: nothing is copied
    made = []
    for _ in range(steps):
        pieces = windows[torch.randint(len(windows), (batch,), generator=generator)]
        made.append((pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()))
    return made


def generate(
    model: "nn.Module", start: str, characters: int, context: int = 64, temperature: float = 1.0, seed: int = 0
) -> str:
    """What a trained model writes after `start`: it draws one character after the other from what it predicts.

    Args:
        model: (1, length) codes → (1, length, len(CHARACTERS)) logits.
        start: at least one character.
        characters: how many to add.
        context: the longest text that the model reads.
        temperature: above 0; the lower it is, the more often the likeliest character comes.

    Returns:
        `start` and what was added.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    codes = encode(start)
    with torch.no_grad():
        for _ in range(characters):
            shares = (model(codes[None, -context:])[0, -1] / temperature).softmax(dim=-1)
            codes = torch.cat([codes, torch.multinomial(shares, 1, generator=generator)])
    return decode(codes)
