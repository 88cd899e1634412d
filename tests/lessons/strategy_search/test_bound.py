"""The bound of lesson 12's search, held against all strategies tried one by one, and its certificate."""

import json
from copy import deepcopy
from dataclasses import asdict, replace

import numpy as np
import pytest

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.costs.described_costs import described_costs
from course_utils.lessons.strategy_search.costs.device_topology import describe
from course_utils.lessons.strategy_search.experiments import GTX_1080_TI, REPORT, WIDE_VGG11, Workload, report_costs
from course_utils.lessons.strategy_search.graph.example_models import mlp
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.lessons.strategy_search.search.certificate import Certificate
from course_utils.lessons.strategy_search.search.certificate_check import check_certificate
from course_utils.lessons.strategy_search.search.lower_bound import bound_below
from course_utils.lessons.strategy_search.search.many_walks import find_strategy
from course_utils.lessons.strategy_search.search.proved import search_and_prove, shares_of_work
from course_utils.lessons.strategy_search.simulator.five_operators import HandCosts, five_operators
from course_utils.lessons.strategy_search.simulator.random_graphs import random_costs, random_graph
from course_utils.lessons.strategy_search.simulator.simulate import makespan
from course_utils.lessons.strategy_search.simulator.step_tables import make_tables
from course_utils.lessons.strategy_search.simulator.task_graph import task_graph
from workshop.bench.exhaustive_search import optimum_of

ALEXNET = Workload(
    "AlexNet", "course_utils.lessons.strategy_search.graph.example_models.alexnet", {}, (64, 3, 224, 224)
)


def costs_of(graph, devices, rate=12e9):
    nodes = describe({f"gpu{n}": 11 << 30 for n in range(devices)}, (10e-6, rate))
    return described_costs(graph, nodes, **GTX_1080_TI)


def test_the_bound_is_the_best_of_all_that_were_tried() -> None:
    tables = make_tables(five_operators(), HandCosts(), 2)
    best = optimum_of(tables)[1]
    assert bound_below(tables, 10 * best).nanoseconds == best
    assert bound_below(tables, best - 1).nanoseconds == best - 1


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("rate", [1e8, 1e9, 12e9, 1e12])
def test_small_networks_on_links_of_all_rates(devices, rate) -> None:
    graph = read_model(mlp((64, 300, 200, 10)), (32, 64))
    tables = make_tables(graph, costs_of(graph, devices, rate), devices)
    best = optimum_of(tables)[1]
    assert bound_below(tables, 10 * best).nanoseconds == best


@pytest.mark.parametrize("case", [REPORT, WIDE_VGG11], ids=lambda case: case.name)
def test_on_two_gpus_the_walks_find_the_best(case) -> None:
    graph = case.graph()
    costs = costs_of(graph, 2)
    found = find_strategy(graph, costs, 2, iterations=25_000)
    bound = bound_below(make_tables(graph, costs, 2), found.nanoseconds)
    assert 0.95 * found.nanoseconds <= bound.nanoseconds <= found.nanoseconds
    assert check_certificate(graph, costs, 2, bound.certificate)


@pytest.mark.long
@pytest.mark.parametrize("case", [REPORT, WIDE_VGG11], ids=lambda case: case.name)
def test_on_four_gpus_the_bound_is_reached_and_its_certificate_holds(case) -> None:
    graph = case.graph()
    costs = costs_of(graph, 4)
    found = find_strategy(graph, costs, 4, iterations=25_000)
    bound = bound_below(make_tables(graph, costs, 4), found.nanoseconds)
    assert 0.95 * found.nanoseconds <= bound.nanoseconds <= found.nanoseconds
    assert makespan(task_graph(graph, bound.strategy or found.strategy, costs)) == bound.nanoseconds
    assert check_certificate(graph, costs, 4, bound.certificate)


def test_on_four_devices_a_perceptron_is_bounded_and_the_bound_is_reached() -> None:
    graph = read_model(mlp((64, 300, 10)), (32, 64))
    costs = costs_of(graph, 4, 1e9)
    best = optimum_of(make_tables(graph, costs, 4))[1]
    bound = bound_below(make_tables(graph, costs, 4), 2 * best)
    assert bound.nanoseconds == best == makespan(task_graph(graph, bound.strategy, costs))
    assert check_certificate(graph, costs, 4, bound.certificate)


def test_row_cuts_are_bounded_and_certified_too() -> None:
    graph = read_model(mlp((64, 300, 10)), (32, 64), row_cuts=True)
    assert "row" in graph.operators[2].cuts and "row" not in graph.operators[1].cuts  # a ReLU follows fc1
    costs = costs_of(graph, 3, 1e9)
    tables = make_tables(graph, costs, 3)
    best = optimum_of(tables)[1]
    bound = bound_below(tables, 2 * best)
    assert bound.nanoseconds == best == makespan(task_graph(graph, bound.strategy, costs))
    assert check_certificate(graph, costs, 3, bound.certificate)


def certified(target=1.5, rate=1e9):
    """A perceptron, its costs, the certificate of its bound on two devices, and the best of all its strategies."""
    graph = read_model(mlp((64, 300, 200, 10)), (32, 64))
    costs = costs_of(graph, 2, rate)
    tables = make_tables(graph, costs, 2)
    best = optimum_of(tables)[1]
    return graph, costs, bound_below(tables, round(target * best)).certificate, best


def test_a_certificate_is_data_that_can_be_written_to_a_file() -> None:
    graph, costs, certificate, best = certified()
    read = Certificate(**json.loads(json.dumps(asdict(certificate))))
    assert read.nanoseconds == best
    assert check_certificate(graph, costs, 2, read) == check_certificate(graph, costs, 2, certificate) > 0


def numbers_of(nested) -> list[tuple[list, int]]:
    """Where each number of nested lists stands."""
    found = []
    for place, one in enumerate(nested):
        found += numbers_of(one) if isinstance(one, list) else [(nested, place)] if one is not None else []
    return found


def test_a_falsified_certificate_is_rejected() -> None:
    graph, costs, certificate, best = certified()
    certificate = Certificate(**json.loads(json.dumps(asdict(certificate))))
    with pytest.raises(CourseError, match="partial strategy"):
        check_certificate(graph, costs, 2, replace(certificate, nanoseconds=best + 1))
    for name, words in {"follow": "may take less|nothing follows", "work": "less work|nothing follows"}.items():
        for number in range(len(numbers_of(getattr(certificate, name)))):
            changed = deepcopy(getattr(certificate, name))
            where, place = numbers_of(changed)[number]
            where[place] += 10**9
            with pytest.raises(CourseError, match=words):
                check_certificate(graph, costs, 2, replace(certificate, **{name: changed}))


def test_a_certificate_that_leaves_out_partial_strategies_is_rejected() -> None:
    graph, costs, certificate, best = certified(target=100)
    nothing = [[[[None] * 2] * 2 for _ in own] for own in certificate.work]
    alone = replace(certificate, follow=nothing, work=[[0] * len(own) for own in certificate.work])
    assert check_certificate(graph, costs, 2, alone), "all partial strategies are kept, so no bound is needed"
    needed = []
    for level, kept in enumerate(certificate.partial):
        for choice, own in enumerate(kept):
            changed = list(map(list, certificate.partial))
            changed[level][choice] = []
            needed.append(any(sum(clocks) + sum(rest) <= 2 * (best - 1) for clocks, rest in own))  # both devices work
            if needed[-1]:
                with pytest.raises(CourseError, match="missing for no reason"):
                    check_certificate(graph, costs, 2, replace(alone, partial=changed))
            else:
                assert check_certificate(graph, costs, 2, replace(alone, partial=changed))
    assert sum(needed) > len(needed) / 2


def test_no_changed_certificate_proves_more_than_is_true(seed) -> None:
    random = np.random.default_rng(seed)
    graph, costs, certificate, best = certified()
    passed = 0
    for _ in range(40):
        changed = json.loads(json.dumps(asdict(certificate)))
        name = ("partial", "follow", "work")[random.integers(3)]
        where, place = numbers_of(changed[name])[random.integers(len(numbers_of(changed[name])))]
        where[place] += int(random.integers(-best, best))
        changed["nanoseconds"] += int(random.integers(-best // 2, 2))
        try:
            check_certificate(graph, costs, 2, Certificate(**changed))
        except CourseError:
            continue
        passed += 1
        assert changed["nanoseconds"] <= best
    assert passed, "some certificates say less than they could"


def test_a_certificate_of_other_devices_or_another_network_is_rejected() -> None:
    graph, costs, certificate, _ = certified()
    with pytest.raises(CourseError, match="another network"):
        check_certificate(graph, costs_of(graph, 3), 3, certificate)
    short = [[[row[:1] for row in own] for own in level] for level in certificate.follow]
    with pytest.raises(CourseError, match="not of 2 devices"):
        check_certificate(graph, costs, 2, replace(certificate, follow=short))
    slower = costs_of(graph, 2, 1e12)
    with pytest.raises(CourseError):
        check_certificate(graph, slower, 2, certificate)


def test_a_network_that_is_no_chain_is_rejected_in_a_line() -> None:
    for number in range(20):
        graph = random_graph(np.random.default_rng(number), 6)
        if any(one.inputs != (n,) for n, one in enumerate(graph.operators[1:])):
            break
    costs = random_costs(np.random.default_rng(0), graph)
    with pytest.raises(CourseError, match="reads the one before"):
        bound_below(make_tables(graph, costs, 2), 10**12)
    with pytest.raises(CourseError, match="reads the one before"):
        check_certificate(graph, costs, 2, Certificate(0, [], [], []))


def test_of_random_chains_the_bound_is_the_optimum_and_its_certificate_holds(seed) -> None:
    chains = 0
    for number in range(seed, seed + 20):
        random = np.random.default_rng(number)
        graph = random_graph(random, 5, skips=False)
        if all(one.inputs == (n,) for n, one in enumerate(graph.operators[1:])):
            costs, chains = random_costs(random, graph), chains + 1
            tables = make_tables(graph, costs, 2)
            best = optimum_of(tables)[1]
            bound = bound_below(tables, best + 1)
            assert bound.nanoseconds == best and check_certificate(graph, costs, 2, bound.certificate)
            with pytest.raises(CourseError):
                check_certificate(graph, costs, 2, replace(bound.certificate, nanoseconds=best + 1))
    assert chains > 5


def test_with_too_many_partial_strategies_the_search_gives_up(monkeypatch) -> None:
    monkeypatch.setattr("course_utils.lessons.strategy_search.search.lower_bound.MOST", 2)
    assert bound_below(make_tables(five_operators(), HandCosts(), 2), 10**9) is None


def test_walks_and_bound_are_told_together() -> None:
    graph, costs, _, best = certified()
    answer = search_and_prove(graph, costs, 2, iterations=2000, check=True)
    assert answer.bound.nanoseconds == best and answer.checked > 0
    assert makespan(task_graph(graph, answer.strategy, costs)) == best
    assert answer.gap == 1 - best / answer.walks.nanoseconds
    assert all(seconds * 1e9 >= best - 1 for seconds in answer.seconds().values())
    assert search_and_prove(graph, costs, 2, iterations=100).checked is None


def test_the_slower_a_device_the_less_work_it_gets() -> None:
    graph = read_model(mlp((64, 3000, 2000, 10)), (320, 64))
    alike, shares, times = report_costs(graph, 3), [], []
    for speed in (1.0, 0.8, 0.6, 0.4, 0.01):
        costs = report_costs(graph, 3, (1, 1, speed))
        answer = search_and_prove(graph, costs, 3, iterations=2000)
        shares.append(shares_of_work(graph, answer.strategy, alike, 3))
        times.append(answer.bound.nanoseconds)
    last = [own[2] for own in shares]
    assert all(sum(own) == pytest.approx(1) for own in shares)
    assert last[0] == pytest.approx(1 / 3, abs=0.05) and last[-1] == 0
    assert last == sorted(last, reverse=True) and times == sorted(times)
    without = search_and_prove(graph, report_costs(graph, 2), 2, iterations=2000)
    assert times[-1] == without.bound.nanoseconds, "as if it were not there"
