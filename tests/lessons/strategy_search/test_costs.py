"""Lesson 12's costs: described and measured, kept on the disk; devices and links that make no sense are rejected."""

import itertools
import json

import pytest
import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.lessons.model_parallel.transformer import Block, character_model
from course_utils.lessons.strategy_search.costs import cost_files, measured_costs, measured_links
from course_utils.lessons.strategy_search.costs.described_costs import described_costs
from course_utils.lessons.strategy_search.costs.device_topology import DeviceTopology, Link, describe
from course_utils.lessons.strategy_search.costs.local_modules import local_modules
from course_utils.lessons.strategy_search.costs.measured_costs import measure_costs
from course_utils.lessons.strategy_search.costs.measured_links import measured_topology
from course_utils.lessons.strategy_search.costs.part_shapes import part_shapes
from course_utils.lessons.strategy_search.graph.configurations import Config, configurations
from course_utils.lessons.strategy_search.graph.example_models import alexnet, mlp, resnet18, transformer_block
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.lessons.strategy_search.simulator.step_tables import make_tables

GB = 10**9
PCIE = (10e-6, 12e9)
NETWORKS = {
    "alexnet": lambda: read_model(alexnet(0.05, pixels=64), (8, 3, 64, 64)),
    "resnet18": lambda: read_model(resnet18(0.05), (8, 3, 32, 32)),
    "block": lambda: read_model(Block(16, 2, 0.1, torch.Generator()), (8, 6, 16)),
    "row cuts": lambda: read_model(transformer_block(16, 4), (8, 6, 16), row_cuts=True),
    "characters": lambda: read_model(character_model(9, 16, 2, depth=1), (8, 6), torch.int64),
}


def two(memory=8 * GB, link=PCIE):
    return describe({"gpu0": memory, "gpu1": memory}, link)


def small():
    return read_model(mlp((12, 8, 4)), (6, 12))


# --- devices and links ----------------------------------------------------------------------------------------------


def test_a_message_takes_latency_and_bytes_over_bandwidth():
    costs = described_costs(small(), two(), 1e12, 1e11)
    assert costs.exchange(12_000, 0, 1, (0, 1)) == 10_000 + 1_000
    assert costs.exchange(12_000, 6_000, 2, (0, 1)) == 11_000  # both directions at once
    assert costs.all_reduce(12_000, 2, (0, 1)) == 2 * 10_000 + 1_000  # a ring: half of it there, half back
    assert costs.exchange(12_000, 0, 1) == costs.exchange(12_000, 0, 1, (1, 0))


def test_on_a_device_with_half_the_speed_a_part_takes_twice_as_long():
    graph, halves = small(), Config(sample=2, devices=(0, 1))
    alike = described_costs(graph, two(), 1e12, 1e11)
    unlike = described_costs(graph, describe({"a": GB, "b": GB}, PCIE, speeds=(1, 0.5)), 1e12, 1e11)
    for operator in graph.operators[1:]:
        for way in ("forward", "backward"):
            first, second = (unlike.compute(operator, halves, place, way) for place in range(2))
            assert first == alike.compute(operator, halves, 0, way)
            assert second == 2 * alike.compute(operator, halves, 1, way)
            assert unlike.compute(operator, Config(devices=(1,)), 0, way) == 2 * unlike.compute(
                operator, Config(), 0, way
            )
    assert unlike.exchange(12_000, 0, 1, (0, 1)) == alike.exchange(12_000, 0, 1, (0, 1)), "links are as quick"


def test_at_equal_speeds_all_is_as_without_speeds():
    graph = NETWORKS["alexnet"]()
    tables = [
        make_tables(graph, described_costs(graph, describe({"a": GB, "b": GB}, PCIE, speeds), 1e12, 1e11), 2)
        for speeds in ((), (1, 1))
    ]
    for one, other in zip(*(itertools.chain(*own.factors) for own in tables), strict=True):
        assert (one.forward == other.forward).all() and (one.backward == other.backward).all()


@pytest.mark.parametrize(
    ("speeds", "words"),
    [
        ((1, 0), "b has a speed of 0; a speed is a finite number above 0"),
        ((-1, 1), "a has a speed of -1"),
        ((1, float("nan")), "b has a speed of nan"),
        ((1, float("inf")), "b has a speed of inf"),
        ((1,), "2 devices need a speed each; here are 1"),
        ((1, 1, 1), "2 devices need a speed each; here are 3"),
    ],
)
def test_speeds_that_make_no_sense_are_rejected_in_a_line(speeds, words):
    with pytest.raises(CourseError, match=words) as error:
        describe({"a": GB, "b": GB}, PCIE, speeds)
    assert "\n" not in str(error.value)


def test_what_comes_while_something_goes_costs_what_was_measured():
    link = Link(Network(1e-3, 1e-6), Network(2e-3, 3e-6))
    assert link.seconds(1000, 0) == link.seconds(0, 1000) == pytest.approx(2e-3)
    assert link.seconds(1000, 1000) == pytest.approx(5e-3)
    assert 2e-3 < link.seconds(1000, 500) < 5e-3


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: describe({}, PCIE), "no devices"),
        (lambda: two(link=(1e-6, 0.0)), "nothing would ever arrive"),
        (lambda: two(link=(-1e-6, 1e9)), "nothing would ever arrive"),
        (lambda: two(memory=0), "has no memory"),
        (lambda: DeviceTopology(("a", "b"), (1,), Link(Network(0, 1))), "a memory each"),
        (lambda: described_costs(small(), two(), 0, 1e9), "more than 0"),
        (lambda: described_costs(small(), two(memory=100), 1e12, 1e11), "fc1 needs"),
        (lambda: described_costs(small(), two(memory=900), 1e12, 1e11), "the devices have 1.8 KB together"),
    ],
)
def test_devices_that_cannot_train_the_model_are_rejected_in_a_line(make, said):
    with pytest.raises(CourseError) as caught:
        make()
    assert said in str(caught.value) and "\n" not in str(caught.value)


# --- computations ---------------------------------------------------------------------------------------------------


def test_the_roofline_is_that_of_lesson_3():
    graph = small()
    fc1 = graph.operators[1]
    products = 2 * 6 * 8 * 12
    slow = described_costs(graph, two(), 1e6, 1e15)
    assert slow.compute(fc1, Config(), 0, "forward") == round(1e9 * (products + 6 * 8) / 1e6)  # and a ReLU
    assert slow.compute(fc1, Config(), 0, "backward") == slow.compute(fc1, Config(), 0, "forward")  # first: no input
    fc2 = slow.compute(graph.operators[2], Config(), 0, "forward")
    assert slow.compute(graph.operators[2], Config(), 0, "backward") == 2 * fc2
    launched = described_costs(graph, two(), 1e6, 1e15, launch_seconds=1e-3)
    assert launched.compute(graph.operators[2], Config(), 0, "forward") == fc2 + 10**6
    narrow = described_costs(graph, two(), 1e15, 1e6)
    moved = 4 * (6 * 12 + 6 * 8) + 2 * 4 * 6 * 8 + 4 * fc1.parameters
    assert narrow.compute(fc1, Config(), 0, "forward") == moved * 1000


@pytest.mark.parametrize("name", NETWORKS)
def test_parts_are_whole_nanoseconds_and_smaller_than_the_whole(name):
    graph = NETWORKS[name]()
    costs = described_costs(graph, describe(dict.fromkeys("abcd", 8 * GB), PCIE), 1e9, 1e9)
    for operator in graph.operators:
        for direction in ("forward", "backward"):
            whole = costs.compute(operator, Config(), 0, direction)
            for config in configurations(operator, 4):
                for place in range(len(config.devices)):
                    part = costs.compute(operator, config, place, direction)
                    assert isinstance(part, int) and 0 <= part <= whole
                    assert (part > 0) == (operator.kind != "input")
                    assert costs.memory(operator, config, place) <= costs.memory(operator, Config(), 0)


@pytest.mark.parametrize("name", NETWORKS)
def test_local_modules_make_the_shape_of_their_part(name):
    graph = NETWORKS[name]()
    for key, part in part_shapes(graph, 2 if name == "resnet18" else 4).items():  # many alike
        if part.operator.kind not in ("loss", "other"):
            whole = part.operator.kind == "embedding"
            dtype, modules = torch.int64 if whole else torch.float32, local_modules(part)
            made = modules.eval()(*(torch.zeros(one, dtype=dtype, device="meta") for one in part.reads))
            assert tuple(made.shape) == part.makes, key
            assert sum(one.numel() for one in modules.parameters()) == part.parameters()


def test_memory_is_near_what_training_keeps():
    model = alexnet(0.25, pixels=64)
    graph = read_model(model, (32, 3, 64, 64))
    costs = described_costs(graph, two(), 1e12, 1e11)
    claimed = sum(costs.memory(operator, Config(), 0) for operator in graph.operators)
    numbers = sum(one.numel() for one in model.parameters())
    kept = 4 * (2 * numbers + sum(torch.Size(one.shape).numel() for one in graph.operators))
    assert kept <= claimed <= 2.5 * kept, "an upper bound that is not far away"


# --- measured -------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", NETWORKS)
def test_every_part_is_measured_and_measured_once(name, home, monkeypatch):
    graph = NETWORKS[name]()
    costs = measure_costs(graph, two(), rounds=1)
    for operator in graph.operators[1:]:
        for config in configurations(operator, 2):
            for place in range(len(config.devices)):
                assert costs.compute(operator, config, place, "forward") > 0
                assert costs.compute(operator, config, place, "backward") > 0
    assert costs.spread >= 0
    monkeypatch.setattr(measured_costs, "time_passes", None)  # whoever measures again, fails
    assert measure_costs(graph, two()).times == costs.times


def test_a_second_model_brings_only_what_is_new(home, monkeypatch):
    jobs = []
    timed = measured_costs.time_passes
    monkeypatch.setattr(
        measured_costs, "time_passes", lambda passes, rounds: jobs.append(passes) or timed(passes, rounds)
    )
    measure_costs(small(), two(), rounds=1)
    measure_costs(read_model(mlp((12, 8, 4, 3)), (6, 12)), two(), rounds=1)
    counted = [sum(len(parts) for _, parts in passes) for passes in jobs]
    assert counted[1] < 2 * counted[0]
    measure_costs(small(), two(), rounds=1, fresh=True)
    assert len(jobs) == 3


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"times": 3}', '{"times": {"a": [1]}}', '{"times": {"a": ["x", 1, 2]}}']
)
def test_a_file_that_cannot_be_read_is_measured_again(text, home):
    measure_costs(small(), two(), rounds=1)
    (file,) = (home / "operator_costs").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    file.write_text(text)
    measure_costs(small(), two(), rounds=1)
    assert json.loads(file.read_text())["times"] and len(list(file.parent.iterdir())) == 1


def test_nothing_is_kept_where_nobody_may_write(home, monkeypatch):
    (home / "operator_costs").write_text("in the way")
    measure_costs(small(), two(), rounds=1)
    assert cost_files.kept_times(1) == {}


def test_an_unknown_operator_is_timed_whole(home):
    class Doubled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.scale = nn.Linear(4, 4), nn.Parameter(torch.ones(4))

        def forward(self, x):
            return self.layer(torch.cumsum(x * self.scale, dim=1))

    graph = read_model(Doubled(), (6, 4))
    costs = measure_costs(graph, two(), rounds=1)
    assert costs.compute(graph.operators[1], Config(devices=(1,)), 0, "backward") > 0


def test_ranks_measure_links_and_parts(four_ranks, home, monkeypatch):
    monkeypatch.setattr(measured_links, "SIZES", (1 << 17, 1 << 18, 1 << 19, 1 << 20))
    topology = measured_topology(four_ranks, repeats=1)
    assert len(topology) == 4 and set(topology.sums) == {2, 3, 4}
    assert topology.exchange_seconds(1 << 20, 0, 1) > 0 and topology.message >= 0
    graph = small()
    costs = measure_costs(graph, topology, four_ranks, rounds=1)
    assert set(costs.times) == set(part_shapes(graph, 4))
    assert costs.all_reduce(1 << 20, 3) > 0 and not costs.limits
    assert len(cost_files.kept_times(4)) > 0 and not cost_files.kept_times(1)
