"""From notebooks to pages of the website: predictions as questions, answers in words, links, and lessons that fail."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_utils.checks import predictions
from course_utils.checks.panel import Panel
from workshop.publish import site
from workshop.publish.reading import links_for_readers, questions_for_readers
from workshop.publish.sources import ROOT, AuthoringError, pages


def outputs_of(monkeypatch, tmp_path, *calls) -> list[dict]:
    """What calls of `course.predict` and `course.measured` leave on a page of the website."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    shown: list[Panel] = []
    monkeypatch.setattr(predictions.parts, "show", shown.append)
    for call in calls:
        call()
    outputs = [new_output("display_data", data=panel._repr_mimebundle_()) for panel in shown]
    notebook = new_notebook(cells=[new_code_cell("", outputs=[output]) for output in outputs])
    questions_for_readers(notebook)
    return [output["data"]["text/html"] for output in outputs]


def test_a_prediction_is_a_question_with_its_choices_and_a_way_to_the_answer_in_words(monkeypatch, tmp_path) -> None:
    choices = {"a": "0", "b": "about `1e-7`"}
    asked, told, again = outputs_of(
        monkeypatch,
        tmp_path,
        lambda: predictions.predict("site_error", answer=..., choices=choices),
        lambda: predictions.measured("site_error", answer="b"),
        lambda: predictions.measured("site_error", answer="a"),
    )
    assert "decide before you read on" in asked and "the dots" not in asked and "a) 0" in asked
    assert 'href="#measured-site_error"' in asked and 'id="measured-site_error"' in told
    assert 'b) about <code style="white-space: pre-wrap">1e-7</code>' in told and "no prediction" not in told
    assert "id=" not in again


def test_several_questions_are_named_and_one_that_nothing_answers_has_no_link(monkeypatch, tmp_path) -> None:
    asked, told = outputs_of(
        monkeypatch,
        tmp_path,
        lambda: predictions.predict("site_asked", rounds=..., vectors=...),
        lambda: predictions.measured("site_other", rounds=6, vectors=1.5),
    )
    assert "rounds, vectors? Decide before you read on." in asked and "href" not in asked
    assert all(word in told for word in ("rounds", ">6<", "vectors", ">1.5<"))


def test_an_answer_is_not_called_measured(monkeypatch, tmp_path) -> None:
    _, several, single = outputs_of(
        monkeypatch,
        tmp_path,
        lambda: predictions.predict("site_known", gpu=..., energy=...),
        lambda: predictions.answer("site_known", gpu=8, energy=3),
        lambda: predictions.answer("site_single", answer=4),
    )
    assert all("answer" in told and "measured" not in told.replace("measured-site_", "") for told in (several, single))


def test_a_prediction_that_somebody_made_stays_as_it_is(monkeypatch, tmp_path) -> None:
    asked, told = outputs_of(
        monkeypatch,
        tmp_path,
        lambda: predictions.predict("site_made", answer=5),
        lambda: predictions.measured("site_made", answer=6),
    )
    assert "noted" in asked and "missed" in told


def test_links_in_outputs_lead_to_pages() -> None:
    data = {"text/html": '<a href="05_allreduce.ipynb#x">5</a> <a href="https://example.org/a.ipynb">a</a>'}
    notebook = new_notebook(cells=[new_code_cell("", outputs=[new_output("display_data", data=data)])])
    links_for_readers(notebook)
    html = notebook.cells[0].outputs[0].data["text/html"]
    assert 'href="05_allreduce.html#x"' in html and "https://example.org/a.ipynb" in html


def test_the_build_says_which_lesson_fails_and_why_and_runs_the_others(monkeypatch, tmp_path) -> None:
    def executed(page, root):
        if page.stem.startswith("01"):
            raise AuthoringError("a cell fails: ZeroDivisionError")
        return new_notebook(cells=[new_code_cell("1 / 1")])

    monkeypatch.setattr(site, "executed", executed)
    lessons = [page for page in pages(ROOT, ["00", "01", "02"]) if page.kind == "lesson"]
    told: list[str] = []
    with pytest.raises(AuthoringError, match="01_sgd failed"):
        for line in site.write_pages(lessons, ROOT, tmp_path, set(), None):
            told.append(line)
    assert "1 of 3  notebooks/00_first_steps.ipynb: run in " in told[0]
    assert "notebooks/01_sgd.ipynb: fails after " in told[1] and "ZeroDivisionError" in told[1]
    assert "notebooks/02_autodiff_and_optimizers.ipynb: run in " in told[2]


def test_decks_that_are_built_whole_are_copied(tmp_path) -> None:
    built = tmp_path / "slides" / "build"
    for stem in ("04_messages", "05_allreduce"):
        (built / stem).mkdir(parents=True)
        (built / stem / "index.html").touch()
    (built / "04_messages.pdf").touch()
    assert site.copy_decks(tmp_path, tmp_path / "copied", {"04_messages", "05_allreduce"}) == {"04_messages"}
    assert sorted(path.name for path in (tmp_path / "copied").iterdir()) == ["04_messages", "04_messages.pdf"]
