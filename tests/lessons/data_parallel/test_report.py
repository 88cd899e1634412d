"""`course.report()`: kept runs, sentences chosen from numbers, figures, and one page that needs no other file."""

import dataclasses
import json
import os
import re
import types

import pytest

import course_utils as course
from course_utils.checks import progress_records
from course_utils.errors import CourseError
from course_utils.lessons.data_parallel import published_numbers, report_figures, report_sentences
from course_utils.lessons.data_parallel.kept_runs import FORM, KEY, keep_run, kept_runs
from course_utils.lessons.data_parallel.report import NONE_YET, part_of
from course_utils.lessons.data_parallel.timed_steps import ONE_PROCESS, PARTS
from course_utils.lessons.data_parallel.train_way import train_way
from course_utils.lessons.data_parallel.training_run import Series, TrainingRun
from course_utils.lessons.overlap.buckets import overlapped
from course_utils.ranks.links.network import obstacle
from course_utils.reporting.page import Report, page_of
from workshop.bench import vgg
from workshop.bench.ranks import nodes_of

GRADIENTS = 1_000_000
SECONDS = {"gather-scatter": 2.0, "all-reduce, each": 1.0, "DDP": 0.6, ONE_PROCESS: 0.9}


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    monkeypatch.setattr(progress_records.SESSION, "_path", None)


def made(way: str, world_size: int = 4, with_nodes: bool = True, exchange: float | None = None) -> TrainingRun:
    """A run as it might have been measured."""
    exchange = SECONDS.get(way, 1.0) - 0.5 if exchange is None else exchange
    seconds = {"forward": 0.2, "backward": 0.29, "communication": max(exchange, 0.0), "optimizer": 0.01}
    root = world_size - 1 if way == "gather-scatter" else 1
    sent = [2 * GRADIENTS * (root if rank == 0 else 1) for rank in range(world_size)] if with_nodes else []
    line = [0, 1_000_000, 2_000_000]
    series = Series([0.0, 0.5, 1.0], [line] * world_size, [line] * world_size, [[0.0, 0.2, 0.4]] * world_size)
    return TrainingRun(
        way=way,
        world_size=world_size,
        width=0.25,
        images=48,
        bucket_bytes=None,
        gradient_bytes=GRADIENTS,
        rates=[200_000_000] * world_size if with_nodes else [],
        cores=2,
        parts={part: [[seconds[part]] * 2] * world_size for part in PARTS},
        seconds=2 * sum(seconds.values()),
        user=[0.4] * world_size,
        system=[0.1] * world_size,
        sent=sent,
        received=sent,
        losses=[[2.3, 2.2]] * world_size,
        series=series if with_nodes else None,
    )


def all_runs() -> list[TrainingRun]:
    parallel = [made(way) for way in SECONDS if way != ONE_PROCESS]
    return [made(ONE_PROCESS, 1), *parallel, *(made("DDP", workers) for workers in (2, 3))]


# --- sentences ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (
            (0.6, 1.0, 2.0),
            "as long. The order is that of the report: “DDP” < “all-reduce, each” < “ga",
        ),
        (
            (1.2, 1.0, 2.0),
            "“all-reduce, each” is the fastest, and “gather-scatter” takes 2 times as long. The report has a different",
        ),
        ((1.01, 1.0, 2.0), "here two of them are too close to tell apart"),
        ((1.0, 1.01, 1.02), "All methods take the same time"),
    ],
)
def test_the_order_is_compared_with_the_reports(seconds, said) -> None:
    assert said in report_sentences.order_finding(dict(zip(report_sentences.ORDER, seconds, strict=True)))


def test_one_process_beside_them_is_not_compared() -> None:
    said = report_sentences.order_finding({"gather-scatter": 2.0, "DDP": 1.0}, one_process=True)
    assert said == "Of 2 methods with several ranks, “DDP” is the fastest, and “gather-scatter” takes 2 times as long"


def test_an_epochs_title_names_the_fastest_and_the_slowest_way() -> None:
    said = report_sentences.epoch_finding({"one process": 60.0, "all-reduce, each": 240.0, "DDP": 120.0})
    assert said == "50,000 images take 60 s with “one process”, 240 s with “all-reduce, each”"
    assert "with every method" in report_sentences.epoch_finding({"DDP": 100.0, "flat": 103.0})


def test_one_way_alone_has_no_order() -> None:
    assert report_sentences.order_finding({"DDP": 0.5}) == "A step takes 500 ms with DDP"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (
            {"gather-scatter": [3.0, 1, 1, 1], "DDP": [1.5, 1.5, 1.5, 1.4]},
            "With gather-scatter, rank 0 sends 3 times",
        ),
        ({"gather-scatter": [3.0, 1, 1, 1], "DDP": [1.5] * 4}, "with the other methods all nodes send the same"),
        ({"DDP": [1.5] * 4}, "All nodes send the same"),
        ({"DDP": [1.0, 1.0, 2.0, 1.0]}, "With DDP some nodes send more"),
    ],
)
def test_the_load_goes_where_the_bytes_say(sent, said) -> None:
    assert said in report_sentences.load_finding(sent)


@pytest.mark.parametrize(
    ("four", "said"),
    [(0.4, "2.5 times as fast as one (report"), (0.99, "no faster than one"), (1.5, "take 1.5 times as long as one")],
)
def test_workers_are_faster_or_not(four, said) -> None:
    told = report_sentences.speed_up_finding({1: 1.0, 4: four}, {1: 437, 4: 153}, cores=2)
    assert said in told and told.endswith("(report: 2.9 times as fast), but only 2 cores compute here")


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.8, 0.6), "The messages take longer than the backward pass before them"),
        ((0.8, 0.4), "With a the messages take longer"),
        ((0.2, 0.4), "The backward pass takes longer"),
    ],
)
def test_messages_or_backward_take_longer(shares, said) -> None:
    assert said in report_sentences.split_finding(dict(zip("ab", shares, strict=True)))


@pytest.mark.parametrize(
    ("times", "cores", "said"),
    [
        (1.02, 2, "With DDP, messages that travel during the backward pass do not slow it down."),
        (2.0, 2, "takes 2 times as long as without messages, because 4 ranks and their messages share 2 cores"),
        (2.0, 8, "takes 2 times as long as without messages. Hiding messages is not free."),
    ],
)
def test_hidden_messages_are_free_or_not(times, cores, said) -> None:
    assert said in report_sentences.slowed_finding("DDP", times, 4, cores)


def test_bytes_in_a_second_follow_from_the_length_of_a_step() -> None:
    rates = {"gather-scatter": 4.0, "all-reduce, each": 8.0, "DDP": 10.0}
    told = report_sentences.rates_finding(rates, dict.fromkeys(rates, 1.5))
    sent = (
        "With all-reduce a node sends, in a second, 2 times what gather-scatter sends (report: less than 0.6) "
        "and 0.8 times what DDP sends (report: less than 0.8)."
    )
    more = (
        "In a step it sends the same with every method, 1.5 gradients on average. "
        "So the faster the step is, the more a node sends in a second."
    )
    assert told == f"{sent} {more}"
    assert report_sentences.rates_finding(rates, {**dict.fromkeys(rates, 1.5), "DDP": 3.0}) == sent
    assert report_sentences.rates_finding({"DDP": 1.0}, {"DDP": 1.5}) == ""


def test_the_reports_tables_agree_with_arithmetic() -> None:
    """By tables 1 and 3 a node sends 2 (P − 1)/P gradients in a step, but for three workers a seventh more."""
    assert published_numbers.gradients_per_step(2) == pytest.approx(1.0, rel=0.02)
    assert published_numbers.gradients_per_step(4) == pytest.approx(1.5, rel=0.02)
    assert published_numbers.gradients_per_step(3) == pytest.approx(8 / 7 * 4 / 3, rel=0.02)


# --- figures --------------------------------------------------------------------------------------------------------

DRAWN = ("total_time", "backward_split", "stages", "mean_cpu", "mean_send")
TABLES = ("time_by_workers", "cpu_by_workers", "traffic_by_workers")


@pytest.mark.parametrize("name", [*DRAWN, *TABLES])
def test_every_figure_says_in_words_what_it_shows(name) -> None:
    picture = getattr(report_figures, name)(all_runs())
    assert len(picture.alt_text) > 100
    if name not in ("backward_split", "stages"):  # for which the report gives no numbers
        assert "published, not measured here" in picture.alt_text or "CS744 report, 2020" in picture.alt_text


def test_figures_of_what_is_missing_say_what_to_run() -> None:
    for name in ("mean_cpu", "mean_send", "backward_split"):
        with pytest.raises(CourseError, match="train_way"):
            getattr(report_figures, name)([made(ONE_PROCESS, 1)])
    with pytest.raises(CourseError, match="None of these runs had links"):
        report_figures.mean_send([made("DDP", with_nodes=False)])


def test_gradients_that_a_node_sends() -> None:
    assert report_figures.gradients_per_step([made("DDP")]) == 1.0
    assert "2.1 times as fast on 4 ranks" in report_sentences.forward_finding(2.1, 3.0, 4, cores=2)


# --- kept runs ------------------------------------------------------------------------------------------------------


def test_a_run_comes_back_as_it_was_kept() -> None:
    runs = all_runs()
    for run in runs:
        keep_run(run)
    kept = kept_runs()
    assert kept.runs == runs and kept.notes == []


def line_of(**changes) -> str:
    return json.dumps({"schema": 2, "order": 1, KEY: {"form": FORM, **dataclasses.asdict(made("DDP")), **changes}})


BROKEN = {
    "no run at all": json.dumps({"schema": 2, "order": 2, KEY: 7}),
    "too few ranks": line_of(world_size=3),
    "a word for a number": line_of(seconds="long"),
    "no time": line_of(seconds=0),
    "no steps": line_of(losses=[[]] * 4),
    "a step too few": line_of(losses=[[2.3]] * 4),
    "parts are missing": line_of(parts={"forward": [[0.2]] * 4}),
    "below zero": line_of(user=[-1.0] * 4),
    "not a number": line_of(user=[float("nan")] * 4),
    "a series of another length": line_of(series={"seconds": [0, 1], "sent": [], "received": [], "cpu": []}),
    "nothing": line_of(parts=None),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_run_is_counted_and_left_as_it_is(tmp_path, name) -> None:
    keep_run(made("DDP"))
    (tmp_path / "progress" / "0.jsonl").write_text(BROKEN[name] + "\n")
    kept = kept_runs()
    assert [run.way for run in kept.runs] == ["DDP"]
    assert (kept.newer, kept.broken) == (0, 1)
    assert (tmp_path / "progress" / "0.jsonl").read_text() == BROKEN[name] + "\n"


def test_other_versions_and_torn_lines_lose_nothing(tmp_path) -> None:
    keep_run(made("DDP"))
    more = json.loads(line_of(further="unknown"))
    newer = json.loads(line_of(form=FORM + 1))
    lines = [json.dumps(more), json.dumps(newer), '{"schema": 2, "training_run": {"fo', '{"exercise": "a"}']
    (tmp_path / "progress" / "0.jsonl").write_text("\n".join(lines))
    kept = kept_runs()
    assert (len(kept.runs), kept.newer, kept.broken) == (2, 1, 0)
    assert kept.notes == ["1 run of a newer version of the course: not shown, and left as they are."]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_is_said(tmp_path) -> None:
    keep_run(made("DDP"))
    next((tmp_path / "progress").iterdir()).chmod(0)
    assert "cannot be read" in kept_runs().notes[0]


# --- the page -------------------------------------------------------------------------------------------------------


def test_without_runs_one_line_says_what_to_run(tmp_path, capsys) -> None:
    assert course.report() is None
    assert capsys.readouterr().out == NONE_YET + "\n"
    assert course.report(tmp_path / "report.html") is None and not list(tmp_path.glob("*.html"))
    assert "report.html was not written" in capsys.readouterr().out


def test_the_page_needs_no_other_file_and_has_text_for_every_picture(tmp_path, capsys) -> None:
    for run in all_runs():
        keep_run(run)
    page = course.report(tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert capsys.readouterr().out == f"Your report is in {tmp_path / 'report.html'}.\n"
    assert len(re.findall(r'<img src="data:image/png;base64,[^"]+" width="\d+" alt="[^"]{80,}"', html)) == 11
    assert "http" not in html and html.count("<img") == 11 and "<script" not in html and "<link" not in html
    assert [section.heading for section in page.sections if section.picture is None] == []
    assert "text/html" in page._repr_mimebundle_() and "Figure 11" in repr(page)


def test_an_old_report_is_replaced_and_nothing_else(tmp_path) -> None:
    page = Report("Mine", ("Nothing but words.",), ())
    page.save(tmp_path / "report.html")
    page.save(tmp_path / "report.html")
    (tmp_path / "mine.txt").write_text("my notes")
    with pytest.raises(CourseError, match="exists already and is not a report"):
        page.save(tmp_path / "mine.txt")
    with pytest.raises(CourseError, match="cannot be written"):
        page.save(tmp_path / "nowhere" / "report.html")
    assert (tmp_path / "mine.txt").read_text() == "my notes"


def test_what_is_missing_says_what_to_run_and_other_settings_are_counted() -> None:
    other = dataclasses.replace(made("gather-scatter"), images=96)
    page = part_of([other, made("DDP", with_nodes=False)])
    missing = {section.heading.split(".")[0]: section.text for section in page.sections if section.picture is None}
    assert set(missing) == {"Figure 5", "Figure 7", "Figure 8", "Figure 9", "Figure 11", "Table 3"}
    assert 'train_way(ranks, "gather-scatter")' in missing["Figure 7"]
    assert page.notes == ("1 run with a different network, batch, link or number of cores.",)


def test_nodes_at_work_are_those_of_the_run_on_most_ranks() -> None:
    page = part_of(all_runs())
    shown = next(section for section in page.sections if section.heading.startswith("Figure 9"))
    assert "node 3 sent" in shown.picture.alt_text


def test_a_machine_that_was_not_at_rest_is_named() -> None:
    late = dataclasses.replace(made("DDP"), parts=made("DDP", exchange=3.0).parts)
    for runs, calm in ((all_runs(), True), ([made("DDP"), late], False)):
        assert all(report_figures.epoch(each).calm for each in report_figures.by_way(runs).values()) == calm
        assert ("something else used this machine" in report_figures.total_time(runs).alt_text) == (not calm)


def test_the_page_shows_the_setting_with_most_ways_or_the_latest() -> None:
    other = dataclasses.replace(made("DDP"), images=96)
    page = page_of([part_of([*all_runs(), other])])
    assert "48 images a step" in page.text and "`course.report(latest=True)`" in page.notes[0]
    assert "96 images a step" in page_of([part_of([*all_runs(), other], latest=True)]).text


@pytest.mark.parametrize("runs", [[made(ONE_PROCESS, 1)], [made("DDP", 2)], [made("my own way")]])
def test_any_single_run_has_a_page(runs) -> None:
    assert "Figure 4" in page_of([part_of(runs)]).html


# --- the bench ------------------------------------------------------------------------------------------------------


def test_the_benchs_rows_hold_stages_bytes_order_and_published_numbers() -> None:
    ways = ("gather-scatter", "all-reduce, each", "all-reduce, flat", "overlapped", "DDP")
    one = {(way, 4): made(way) for way in ways} | {("DDP", workers): made("DDP", workers) for workers in (1, 2, 3)}
    one[ONE_PROCESS, 1] = made(ONE_PROCESS, 1)
    rows = {row.metric: row for row in vgg.rows_of([one] * 3)}
    assert rows["DDP, P = 4: exposed communication"].value == pytest.approx(0.1)
    assert rows["DDP / all-reduce, each, step"].value == pytest.approx(0.6) and rows["DDP / all-reduce, each, step"].ok
    assert rows["gather-scatter: bytes of node 0 / another's"].value == 3.0
    assert rows["DDP, 1 worker, CS744 report, 2020, not measured here: epoch"].value == 437
    assert {row.runs for name, row in rows.items() if "not measured" not in name} == {3}


# --- on the ranks ---------------------------------------------------------------------------------------------------


def test_a_run_on_ranks_is_measured_and_kept(four_ranks) -> None:
    run = train_way(four_ranks, overlapped, world_size=2, width=0.05, images=4, steps=2, bucket_bytes=10_000)
    assert run.world_size == 2 and run.steps == 2 and run.rates == [] and run.sent == []
    assert set(run.parts) == set(PARTS) and run.step.median > 0 and run.exposed.low >= 0
    assert kept_runs().runs == [run]


@pytest.mark.parametrize(
    ("way", "options", "said"),
    [
        ("DDP", {"images": 5}, "5 images do not divide among 4 ranks"),
        ("my way", {}, "There is no way 'my way' for 4 ranks. Take one of 'gather-scatter'"),
        ("DDP", {"steps": 0}, "above zero"),
        ("DDP", {"batch": 4}, "train_way has no batch=. It takes width, images"),
    ],
)
def test_what_cannot_be_run_is_rejected_before_it_begins(way, options, said) -> None:
    ranks = types.SimpleNamespace(world_size=4)  # they are not asked
    with pytest.raises(CourseError, match=said):
        train_way(ranks, way, **options)


@pytest.mark.skipif(obstacle() is not None, reason="no namespaces here")
def test_the_kernel_counts_what_passes_through_rank_0() -> None:
    with nodes_of(4, 1000) as ranks:
        run = train_way(ranks, "gather-scatter", keep=False, width=0.125, images=8, steps=2)
        even = train_way(ranks, "all-reduce, flat", keep=False, width=0.125, images=8, steps=2)
    others = sum(run.sent[1:]) / 3
    assert run.sent[0] == pytest.approx(3 * others, rel=0.2)
    assert report_figures.gradients_per_step([even]) == pytest.approx(1.5, rel=0.2)
    assert max(even.sent) < 1.1 * min(even.sent)
    assert run.series is not None and run.series.sent[0][-1] - run.series.sent[0][0] >= 0.9 * run.sent[0]
