"""Lesson 12's sentences, its network that is timed on paper, and two of its pictures."""

import re
from math import prod

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search import sentences
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph
from course_utils.lessons.strategy_search.pictures import (
    changed_by,
    changed_steps,
    cut_text,
    fetched_numbers,
    operator_cuts,
)
from course_utils.lessons.strategy_search.search.certificate import Certificate
from course_utils.lessons.strategy_search.search.known_ways import known_ways
from course_utils.lessons.strategy_search.search.lower_bound import Bound
from course_utils.lessons.strategy_search.search.many_walks import Found
from course_utils.lessons.strategy_search.search.proved import ProvedSearch
from course_utils.lessons.strategy_search.simulator.five_operators import (
    COMPUTE,
    MILLISECOND,
    HandCosts,
    five_operators,
    two_convolutions,
)
from course_utils.lessons.strategy_search.simulator.simulate import makespan
from course_utils.lessons.strategy_search.simulator.task_graph import task_graph
from course_utils.measuring import BUSY, Compared

ONE, HALVES, CHANNELS = Config(), Config(2, 1, 1, (0, 1)), Config(1, 1, 2, (0, 1))


def milliseconds(*configs: Config) -> float:
    """Of a step of the five operators, the input's configuration aside."""
    return makespan(task_graph(five_operators(), [ONE, *configs], HandCosts())) / MILLISECOND


def test_what_the_page_has_counted_on_paper() -> None:
    assert milliseconds(ONE, ONE, ONE, ONE) == sum(map(sum, COMPUTE.values())) == 40
    assert milliseconds(HALVES, HALVES, HALVES, HALVES) == 20 + 6144 / 512 + 512 / 512 == 33
    assert milliseconds(HALVES, HALVES, ONE, ONE) == 5 + 2 + 12 + 2 + 9 + 1 == 31
    assert milliseconds(CHANNELS, CHANNELS, CHANNELS, HALVES) == 20 + 2 * 2 + 2 * 48 / 512


def test_the_five_operators_fit_together() -> None:
    operators = five_operators().operators
    assert [operator.inputs for operator in operators] == [(), (0,), (1,), (2,), (3,)]
    assert operators[3].parameters == operators[3].shape[1] * prod(operators[2].shape[1:])
    assert HandCosts().limits == () and HandCosts().memory(operators[1], ONE, 0) == 0


def test_a_device_fetches_nothing_a_halo_or_half() -> None:
    first, second = two_convolutions()
    rows = Config(1, 2, 1, (0, 1))
    assert [fetched_numbers(first, second, way, 0) for way in (HALVES, rows, CHANNELS)] == [0, 8 * 16 * 12, 8 * 8 * 144]
    assert cut_text(first, second, HALVES, 0) == ("fetches nothing", f"adds up {second.parameters:,} weight gradients")
    assert cut_text(first, second, CHANNELS, 1)[1] == "adds up no weight gradients"


def test_boxes_show_what_is_fetched() -> None:
    ways = {"by sample": HALVES, "by attribute": Config(1, 2, 1, (0, 1)), "by parameter": CHANNELS}
    picture = operator_cuts(*two_convolutions(), ways)
    assert "by attribute: fetches 1,536 numbers" in picture.alt_text
    assert "A cut by sample fetches nothing; a cut by parameter adds up no weight gradients" in picture.alt_text
    assert [len(ax.patches) for ax in picture.axes] == [3 * 4, 3 * 5, 3 * 4]  # three faces of each cell
    with pytest.raises(CourseError):
        operator_cuts(*two_convolutions(), {})
    with pytest.raises(CourseError):
        operator_cuts(*five_operators().operators[2:4], ways)


def test_a_move_changes_the_operator_and_its_readers() -> None:
    graph = five_operators()
    assert changed_by(graph, 2) == {2, 3} and changed_by(graph, 4) == {4}
    picture = changed_steps(graph, 1)
    words = [text.get_text() for text in picture.axes[0].texts]
    assert "4 of 8 steps change" in picture.alt_text
    assert {"one matrix kept"} == {text for text in words if "kept" in text}  # nothing before, nothing behind
    assert "time left kept" in [text.get_text() for text in changed_steps(graph, 4).axes[0].texts]


def test_the_quickest_is_named() -> None:
    assert sentences.quickest_text({"data": 33.0, "report": 31.0}) == "Data 33 ms, report 31 ms: report is faster"
    assert sentences.quickest_text({"a": 1.0, "b": 1.0}).endswith("equally fast")
    assert sentences.quickest_text({"a": 1.0, "b": 1.001, "c": 2.0}).endswith("a and b are the fastest")


def test_walks_that_arrive_are_counted() -> None:
    walks = {"one": [[3.0, 1.0], [3.0, 2.0]], "two": [[1.0, 3.0], [1.0]]}
    assert [sentences.arrived(found, 1.0) for found in walks.values()] == [1, 2]
    title = sentences.walks_text(walks, 1.0)
    assert title == "The best strategy is reached by 1 of 2 walks (one) and 2 of 2 walks (two)"


def test_a_strategy_in_words() -> None:
    several = Config(2, 1, 2, (0, 1, 2, 3))
    assert sentences.cut_text(several) == "by sample and parameter"
    assert sentences.cut_text(Config(2, 1, 1, (0, 1), row_cut=True)) == "by row"
    said = sentences.strategy_text(five_operators(), [ONE, HALVES, HALVES, CHANNELS, Config(devices=(1,))])
    assert said == "conv1 to pool1 by sample, fc1 by parameter, loss on device 1"
    graph = OperatorGraph("two", (Operator("input", "input", (), (1, 1)), Operator("fc1", "linear", (0,), (1, 1))))
    assert sentences.strategy_text(graph, [ONE, ONE]) == "fc1 on device 0"


def test_a_ratio_is_only_told_where_it_is_one() -> None:
    pair = Compared([1.0, 1.0, 1.0], [2.0, 2.2, 1.9], ("found", "data"))
    assert sentences.ratio_text(pair, 1.8) == (
        "Found is 2 times as fast as data (1.90 to 2.2 in 3 rounds); predicted: 1.8 times"
    )
    assert "no clear difference" in sentences.ratio_text(Compared([1.0, 2.0], [1.02, 2.0]), 1.5)
    assert sentences.ratio_text(Compared([1.0, 2.0], [2.0, 1.0]), 1.5) == BUSY


def test_predictions_are_judged_by_error_and_order() -> None:
    assert sentences.agreement([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]) == 1
    assert sentences.agreement([1.0, 2.0, 3.0], [30.0, 20.0, 10.0]) == -1
    assert sentences.agreement([1.0, 2.0, 3.0], [10.0, 30.0, 20.0]) == pytest.approx(1 / 3)
    assert sentences.honesty_text([1.0, 2.0], [1.0, 2.0]).endswith("its ranking is right")
    assert sentences.honesty_text([1.0, 4.0], [1.0, 2.0]).endswith("at worst, but their ranking is right")
    assert sentences.honesty_text([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]).endswith("2 of 3 pairs are ranked correctly")


def test_rates_are_compared() -> None:
    assert "busy" not in sentences.timed_text(74, 0.04)
    assert sentences.timed_text(74, 0.8).endswith(f". {BUSY}")
    said = sentences.times_text({"tasks": 100.0, "full": 1000.0, "incremental": 8000.0})
    assert (
        said == "Strategies a second: tasks 100, full 1,000, incremental 8,000; incremental is 8 times as fast as full"
    )


def test_what_was_found_stands_beside_what_was_known() -> None:
    assert "25% less than report" in sentences.found_text(0.3, {"data": 1.0, "report": 0.4})
    assert "as quick as report" in sentences.found_text(0.4, {"data": 1.0, "report": 0.4})
    assert "more than data" in sentences.found_text(2.0, {"data": 1.0})


def test_links_decide_or_not() -> None:
    known = {"one device": [1.0, 1.0, 1.0], "data parallel": [2.0, 0.9, 0.8]}
    title = "The fastest known strategy: one device on 1 link and data parallel on 2 links"
    assert sentences.links_text(known) == title
    known["data parallel"] = [2.0, 2.0, 2.0]
    assert sentences.links_text(known) == "Of the known strategies, one device is the fastest on all 3 links"


def test_the_four_published_ways() -> None:
    ways = known_ways(five_operators())
    said = {name: sentences.strategy_text(five_operators(), way) for name, way in ways.items()}
    assert said == {
        "one device": "conv1 to loss on device 0",
        "data parallel": "conv1 to loss by sample",
        "the report's": "conv1 to pool1 by sample, fc1 to loss on device 0",
        "fc by parameter": "conv1 to pool1 by sample, fc1 by parameter, loss by sample",
    }


def test_only_what_is_proved_is_called_so() -> None:
    def said(bound):
        return sentences.bound_text(10**7, 2.0, bound and Bound(bound, None, Certificate(bound, [], [], []), 0.5, 1))

    assert said(10**7) == ("Proved: no strategy is quicker than 10 ms, simulated (walks 2 s, proof 500 ms)")
    assert said(9_700_000) == (
        "The best takes 9.7 ms, simulated; the walks are 3.00% from it (walks 2 s, proof 500 ms)"
    )
    assert "nothing is proved" in said(None)


def searched(walks: int, bound: int | None, checked: float | None = None) -> ProvedSearch:
    """As if walks had come to this many nanoseconds, and the bound were so."""
    found = Found([ONE] * 5, walks, 2.0, {}, [], 0)
    proved = bound and Bound(bound, None, Certificate(bound, [], [], []), 0.5, 1)
    return ProvedSearch(five_operators(), HandCosts(), 2, found, proved or None, checked)


def test_gaps_are_told_in_a_table_and_in_a_title() -> None:
    searches = [searched(10**7, 10**7, 0.1), searched(10**7, 9_700_000), searched(10**7, None)]
    head, reached, missed, unknown = sentences.gaps_table(searches).splitlines()
    assert re.split(r"\s{2,}", head.strip()) == [
        "walks' best",
        "bound",
        "gap",
        "walks took",
        "bound took",
        "check took",
    ]
    assert re.split(r"\s{2,}", reached) == [
        "five operators, 2 devices",
        "10.00 ms",
        "10.00 ms",
        "0%",
        "2 s",
        "500 ms",
        "100 ms",
    ]
    assert "3.00%" in missed and missed.endswith("not run")
    assert "none" in unknown and "unknown" in unknown and "gave up" in unknown
    assert sentences.gaps_text(searches) == (
        "The walks' best is proved to be the best in 1 of 3 cases; 1 other could save up to 3.00% of the time; "
        "nothing is proved in 1"
    )
    assert [each.gap for each in searches[:2]] == [0, pytest.approx(0.03)]
    assert ";" not in sentences.gaps_text(searches[:1])


def test_a_slow_device_is_told_by_what_it_gets() -> None:
    speeds = [0.5, 0.75, 1.0]
    shares = {(0, 0.3, 0.5): (0.5, 0.75), (0.2, 0.3, 0.5): (None, 0.5), (0, 0, 0): (1.0, None)}
    assert {each: sentences.idle_and_busy(speeds, each) for each in shares} == shares
    half, even, never = (sentences.slow_device_text(speeds, each) for each in shares)
    assert half == "At speed 0.75 the slow device gets 30% of the work, at 0.5 nothing"
    assert even == "Even at speed 0.5 the slow device gets 20% of the work"
    assert never == "The last device gets no work at any speed"
