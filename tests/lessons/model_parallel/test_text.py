"""The text that ships with Python, as codes and batches."""

import sys

import pytest
import torch

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel import text
from course_utils.lessons.model_parallel.text import (
    CHARACTERS,
    character_text,
    decode,
    encode,
    generate,
    python_text,
    text_batches,
)


def test_the_text_is_long_and_of_known_characters() -> None:
    whole = python_text()
    assert len(whole) > 100_000 and set(whole) <= set(CHARACTERS)
    assert len(CHARACTERS) == len(set(CHARACTERS)) == 96
    assert "for" in whole and decode(encode(whole[:500])) == whole[:500]


def test_the_last_part_is_held_out() -> None:
    training, held_out = character_text()
    assert decode(torch.cat([training, held_out])) == python_text()
    assert len(held_out) / len(training) == pytest.approx(1 / 9, abs=1e-3)


def test_batches_are_of_the_text_and_repeat_with_their_seed() -> None:
    codes = encode("to be or not to be")
    first = text_batches(codes, batch=3, context=5, steps=4, seed=1)
    assert len(first) == 4
    for (x, y), (again, _) in zip(first, text_batches(codes, 3, 5, 4, seed=1), strict=True):
        assert x.shape == y.shape == (3, 5) and torch.equal(x, again)
        for piece, following in zip(x, y, strict=True):
            assert decode(piece) + decode(following)[-1] in "to be or not to be"
            assert torch.equal(piece[1:], following[:-1])
    assert not torch.equal(first[0][0], text_batches(codes, 3, 5, 1, seed=2)[0][0])
    (whole, _), *_ = text_batches(codes, 2, len(codes) - 1, 1)
    assert whole.tolist() == [codes[:-1].tolist()] * 2


def test_what_cannot_be_is_rejected() -> None:
    with pytest.raises(CourseError, match="5 characters"):
        text_batches(encode("hello"), 1, 5, 1)
    with pytest.raises(CourseError, match="'é' is not among"):
        encode("café")


def test_a_python_without_the_text_is_told_what_to_do(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, text._SOURCE, None)
    python_text.cache_clear()
    with pytest.raises(CourseError, match="python3-full"):
        python_text()
    monkeypatch.undo()
    python_text.cache_clear()
    assert python_text()


def test_a_model_that_knows_what_comes_next_writes_it() -> None:
    class Alphabet(torch.nn.Module):
        """Is sure that the next code follows."""

        def forward(self, codes: torch.Tensor) -> torch.Tensor:
            assert codes.shape[1] <= 3
            return 50.0 * torch.nn.functional.one_hot((codes + 1) % len(CHARACTERS), len(CHARACTERS))

    assert generate(Alphabet(), "abcd", 4, context=3) == "abcdefgh"
    flat = generate(Alphabet(), "a", 200, context=3, temperature=1e6)
    assert len(set(flat)) > 30, "nearly everything is equally likely"
