"""Every lesson's deck, built with figures from real runs, the smaller ones of drafts."""

import os

import pytest

from tests.workshop.test_slides import CHROMIUM, Loaded, faults_of, outside_addresses, pages_of
from workshop.publish.mathjax import mathjax_script
from workshop.publish.slides import build_decks, count_slides, decks
from workshop.publish.sources import ROOT, AuthoringError

DECKS = [
    pytest.param(deck.stem, marks=pytest.mark.weekly if number % 5 else pytest.mark.long)
    for number, deck in enumerate(decks())
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("stem", DECKS)
def test_a_lesson_has_ten_to_twenty_slides_with_pictures_and_notes(stem, tmp_path):
    try:
        mathjax_script(ROOT / "slides" / "build" / "cache")
    except AuthoringError as error:
        assert os.environ.get("CI") != "true", error
        pytest.skip(str(error))
    list(build_decks(ROOT, [stem], out=tmp_path, draft=True))
    page = tmp_path / stem / "index.html"
    slides, loaded = count_slides(page), Loaded(page.read_text(encoding="utf-8"))
    assert 10 <= slides <= 20
    assert loaded.without_alt == []
    assert loaded.pictures >= slides // 3, (slides, loaded.pictures)
    assert loaded.notes == slides, "a slide has no note for the speaker"
    assert outside_addresses(tmp_path / stem) == []
    if CHROMIUM:  # which also refuses to print a slide that holds too much
        pdf = tmp_path / f"{stem}.pdf"
        assert pages_of(pdf) == slides and faults_of(pdf) == []
