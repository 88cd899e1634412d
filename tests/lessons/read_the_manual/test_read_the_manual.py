"""Lesson 15: the page's four ways to write a step train as one process does, and what is said and shown of them."""

import ast
import os
from functools import partial

import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.data_parallel.training import digits_mlp, flat_parameters
from course_utils.lessons.read_the_manual import sentences
from course_utils.lessons.read_the_manual.dictionary import DICTIONARY
from course_utils.lessons.read_the_manual.framework_steps import (
    AT_THE_START,
    Stepped,
    largest_difference,
    parts,
    step_seen,
)
from course_utils.lessons.read_the_manual.lightning import is_there, missing
from course_utils.lessons.read_the_manual.manuals import FRAMEWORKS
from course_utils.lessons.read_the_manual.passages import PASSAGES, Passage, Term
from course_utils.lessons.read_the_manual.pictures import reading, sent_and_kept_panels
from course_utils.lessons.read_the_manual.tables import dictionary_table, side_by_side, words_table
from course_utils.syllabus import LESSONS
from course_utils.words import percent
from workshop.publish.sources import ROOT, read_cells

STEM = "15_read_the_manual"


def page_functions() -> dict:
    """What the page imports and defines; nothing else of it is run."""
    names: dict = {"__name__": "__page__"}  # no module that can be imported, so ranks get the functions whole
    for cell in read_cells(ROOT / "notebooks" / "src" / f"{STEM}.py"):
        if cell.cell_type == "code":
            kept = [node for node in ast.parse(cell.source).body if isinstance(node, DEFINITIONS)]
            exec(compile(ast.Module(kept, []), STEM, "exec"), names)
    return names


DEFINITIONS = ast.Import | ast.ImportFrom | ast.FunctionDef
PAGE = page_functions()
WAYS = {name: PAGE[name] for name in ("by_hand", "with_ddp", "with_fsdp", "with_lightning")}
WEIGHTS = 8_970


@pytest.fixture(scope="module")
def ranks():
    started = course.start(2)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    x, y, *_ = course.data.digits("float64")
    return x[:64], y[:64]


@pytest.fixture(scope="module")
def alone(batch) -> torch.Tensor:
    """One process's weights after the step, w − 0.1 · gradient."""
    model = digits_mlp(seed=0).double()
    cross_entropy(model(batch[0]), batch[1]).backward()
    return torch.cat([(one - 0.1 * one.grad).detach().flatten() for one in model.parameters()])


def seen(ranks, batch, way, world_size: int) -> list[Stepped]:
    return ranks.run(step_seen, way, *batch, backend="gloo", ranks=world_size).results


@pytest.mark.parametrize("world_size", [2, 1])
@pytest.mark.parametrize("name", WAYS)
def test_every_way_makes_the_step_of_one_process(ranks, batch, alone, name: str, world_size: int) -> None:
    if name == "with_lightning" and not is_there():
        assert os.environ.get("CI") != "true", missing()
        pytest.skip(missing())
    steps = seen(ranks, batch, WAYS[name], world_size)
    assert largest_difference(steps, alone) <= 1e-12
    kept = WEIGHTS // world_size if name == "with_fsdp" else WEIGHTS
    assert steps[0].kept == {"weights": kept, "gradients": kept}
    if world_size == 2:
        all_reduces = {"by_hand": 6, "with_ddp": 1, "with_fsdp": 0, "with_lightning": 1}
        assert steps[0].count("all-reduce") == all_reduces[name]
        sent = steps[0].sent(2)
        start = {"by_hand": WEIGHTS, "with_ddp": 1 + 18 + WEIGHTS, "with_fsdp": 0}
        assert sent.pop(AT_THE_START, 0) == start.get(name, pytest.approx(WEIGHTS, abs=99))
        in_step = 1.5 * WEIGHTS if name == "with_fsdp" else WEIGHTS
        assert sum(sent.values()) == (pytest.approx(in_step, abs=8) if name == "with_lightning" else in_step)
    else:
        assert not sum(steps[0].sent(1).values())


def test_fully_shard_makes_one_network_of_two(ranks, batch, alone) -> None:
    steps = seen(ranks, batch, partial(WAYS["with_fsdp"], same_seed=False), 2)
    assert sentences.start_letter(steps, alone) == "c"
    assert "not those of a single process" in sentences.same_text("FSDP2", steps, alone)


def test_a_loss_for_a_sum_under_a_mean(ranks, batch, alone) -> None:
    step = alone - flat_parameters(digits_mlp(seed=0).double())
    for mean, share in ((False, 1.0), (True, 0.5)):
        moved = ranks.run(PAGE["translated"], *batch, mean, backend="gloo").results[0]
        assert moved == pytest.approx(share * step, abs=1e-12)


def stepped(weights: float, calls: list, kept: int = WEIGHTS, start: int = 0) -> Stepped:
    return Stepped(torch.full((3,), weights, dtype=torch.float64), {"weights": kept, "gradients": kept}, calls, start)


def test_ranks_that_would_stop_earlier_are_named() -> None:
    assert sentences.stopping_text([[3.0, 2.0, 4.0], [1.2, 0.9, 1.3], [0.8, 0.7, 1.1]], 1.0) == (
        "The mean loss is below 1 after 2 steps, but rank 1 alone would have stopped earlier"
    )
    assert sentences.stopping_text([[2.0, 2.0], [0.5, 0.5]], 1.0).endswith(
        "after 1 step, and no rank was below it earlier"
    )


def test_sentences_are_chosen_by_the_numbers() -> None:
    here, there = stepped(1.0, []), stepped(2.0, [])
    assert "the weights of a single process (largest difference 0e+00)" in sentences.same_text(
        "A", [here, here], here.weights
    )
    assert "different" in sentences.same_text("A", [here, there], here.weights)
    letters = [sentences.start_letter(one, here.weights) for one in ([here, here], [here, there], [there, there])]
    assert letters == ["a", "b", "c"]
    calls = [("all_gather", 1), ("broadcast", 10), ("broadcast", 20), ("all_reduce", 30)]
    whole = "A: 1 × all-gather and 2 × broadcast at the start, 1 × all-reduce in the step"
    assert sentences.calls_text("A", [stepped(0, calls, start=3)]) == whole
    assert sentences.calls_text("A", [stepped(0, calls[3:])]) == "A: 1 × all-reduce in the step"
    assert sentences.calls_text("A", [here]) == "A: no collectives"
    assert sentences.ran_text(["A", "B"], ["A", "B"]) == "The same step on every rank: A and B."
    assert sentences.ran_text(["A"], ["A", "B"]).endswith("rank: A. Not run here: B.")
    first = [stepped(0, [("broadcast", 100), ("all_reduce", 100)], start=1)] * 2
    more = [stepped(0, [("all_reduce", 200)], kept=WEIGHTS // 2)] * 2
    steps = {"by hand": first, "B": more}
    assert sentences.sends_most(steps) == "B"
    assert parts(steps)[0]["by hand"] == {AT_THE_START: 100, "all-reduce": 100}
    said = sentences.sent_and_kept_text(steps, "B")
    assert said == f"B sends 2 times as much per step as the program by hand, and keeps {percent(0.5)} as much"
    equal = "by hand sends as much per step as the program by hand, and keeps as much"
    assert sentences.sent_and_kept_text(steps, "by hand") == equal
    once, in_step, kept = sent_and_kept_panels(steps)
    assert once.bars == {"by hand": {AT_THE_START: 100}, "B": {AT_THE_START: 0}}
    assert sum(in_step.bars["B"].values()) == 200 and kept.bars["B"]["weights"] == WEIGHTS // 2
    assert "sends nothing" in sentences.sent_and_kept_text({"by hand": first[:1]}, "by hand")
    assert (
        sentences.naive_steps_text(1e6, 12_000_000, 60)
        == "In a step each node sends 1 MB, so 12 MB last for 12 of 60 steps"
    )
    assert sentences.naive_steps_text(1e6, 1_200_000, 60).endswith(" 1 of 60 steps")
    assert sentences.naive_steps_text(1e5, 12_000_000, 60).endswith(" all 60 steps")


def test_every_word_has_its_lesson() -> None:
    terms = [term for passage in PASSAGES for term in passage.terms]
    assert [term.words for term in terms if term.lesson is None] == ["gRPC"]
    assert all(term.lesson is None or (0 <= term.lesson < 15 and term.measured) for term in terms)
    assert "".join(text for text, _ in PASSAGES[1].pieces) == PASSAGES[1].text
    assert PASSAGES[1].text.startswith("MultiWorkerMirroredStrategy currently")
    assert sentences.words_text(PASSAGES) == "18 of the 19 words were taught, in 7 lessons"
    with pytest.raises(ValueError):
        Passage("a [word]", (Term("other", 1, "no"),))


@pytest.mark.parametrize("lessons", [False, True])
def test_the_text_is_drawn_without_overlaps(lessons: bool) -> None:
    picture = reading(PASSAGES, "A title", "below", lessons)
    renderer = FigureCanvasAgg(picture).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in picture.axes[0].texts]
    for place, box in enumerate(boxes):
        assert box.x0 >= 0 and box.x1 <= picture.get_figwidth() * style.DOTS
        for other in boxes[place + 1 :]:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            assert across < 8 or min(box.y1, other.y1) - max(box.y0, other.y0) < 3
    assert ("all-reduce: lesson 5." in picture.alt_text) is lessons


def test_tables_say_it_all() -> None:
    table = dictionary_table()
    assert table.html.count("<tr") == 1 + len(DICTIONARY)
    assert table.html.count("<a ") >= len(DICTIONARY) * len(FRAMEWORKS)
    assert "hvd.size()" in table.text
    words = words_table()
    assert words.text.count("\n") + 1 == sum(len(passage.terms) for passage in PASSAGES)
    assert "gRPC" in words.html.replace("<wbr>", "") and "no lesson" in words.text


def test_the_predictions_about_the_dictionary_are_what_it_says() -> None:
    said = {entry.term: {name: cell.says for name, cell in entry.cells.items()} for entry in DICTIONARY}
    assert [name for name in FRAMEWORKS if said["all-reduce"][name].endswith(": a mean")] == ["Horovod"]
    assert [name for name in FRAMEWORKS if "Strategy" in said["parameter server"][name]] == ["tf.distribute"]
    assert [name for name in FRAMEWORKS if "you divide" in said["sum or mean"][name]] == ["tf.distribute"]


def first_way(x):
    y = x
    return y


def second_way(x):
    y = x
    y = y + 1
    return y


def test_new_lines_are_marked() -> None:
    panel = side_by_side({"one": first_way, "two": second_way})
    assert panel.text.splitlines()[0] == "one: 3 lines"
    assert "two: 4 lines, 1 of them new" in panel.text and "+     y = y + 1" in panel.text
    assert panel.html.count("<span") == 1


def test_the_page_links_to_lessons_that_are_there() -> None:
    assert all(LESSONS[term.lesson].written for passage in PASSAGES for term in passage.terms if term.lesson)
