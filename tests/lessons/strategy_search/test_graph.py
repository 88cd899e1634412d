"""Lesson 12's operator graph: models as they are are read right, their parts cover them, and bad ones are rejected."""

from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.transformer import Block, character_model
from course_utils.lessons.strategy_search.graph.configurations import (
    CUTS,
    Config,
    common,
    configurations,
    input_box,
    output_box,
    parameters_at,
    replicas,
    volume,
)
from course_utils.lessons.strategy_search.graph.example_models import alexnet, mlp, resnet18, transformer_block
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.torchvision_repair import load_torchvision
from course_utils.vgg import vgg11


def block(dropout=0.0):
    return Block(16, 2, dropout, torch.Generator())


MODELS = {
    "alexnet": (lambda: alexnet(0.05, pixels=64), (5, 3, 64, 64)),
    "vgg11": (lambda: vgg11(0.05), (5, 3, 32, 32)),
    "mlp": (mlp, (5, 784)),
    "resnet18": (lambda: resnet18(0.05), (4, 3, 32, 32)),
    "block": (block, (5, 7, 16)),
}


def graph_of(name):
    make, shape = MODELS[name]
    return read_model(make(), shape, name=name)


def names(graph):
    return [operator.name for operator in graph.operators]


# --- reading --------------------------------------------------------------------------------------------------------


def test_alexnet_has_the_operators_of_the_paper_with_their_followers():
    with torch.device("meta"):
        graph = read_model(alexnet(), (64, 3, 224, 224))
    assert " ".join(names(graph)) == "input conv1 pool1 conv2 pool2 conv3 conv4 conv5 pool5 fc6 fc7 fc8 loss"
    conv1, fc6 = graph.operators[1], graph.operators[9]
    assert conv1.modules == ("conv1", "relu1") and conv1.shape == (64, 64, 55, 55) and conv1.cuts == CUTS
    assert fc6.modules == ("flatten", "fc6", "relu6") and fc6.cuts == ("sample", "parameter")
    assert all(operator.inputs == (number - 1,) for number, operator in enumerate(graph.operators) if number)
    assert not graph.notes


@pytest.mark.parametrize("name", MODELS)
def test_shapes_and_parameters_are_those_that_torch_computes(name):
    make, shape = MODELS[name]
    model = make()
    graph, made = read_model(model, shape), {}
    for key, layer in graph.layers.items():
        layer.register_forward_hook(lambda layer, given, out, key=key: made.setdefault(key, []).append(out.shape))
    model(torch.rand(shape))
    for operator in graph.operators:
        own = [key for key in operator.modules if key in dict(model.named_modules())]
        if own:
            assert operator.shape in made[own[-1]], operator.name
    assert sum(operator.parameters for operator in graph.operators) == sum(one.numel() for one in model.parameters())
    assert len(set(names(graph))) == len(graph) and all(one.isidentifier() for one in names(graph))


def test_residual_networks_branch_and_meet():
    graph = graph_of("resnet18")
    additions = [operator for operator in graph.operators if operator.kind == "add"]
    assert len(additions) == 8 and all(len(operator.inputs) == 2 for operator in additions)
    first = graph.operators.index(additions[0])
    assert graph.readers(first) == (first + 1, first + 3)  # the next block's convolution, and its sum
    assert [operator.averages for operator in graph.operators[:4]] == [0, 2, 0, 2]
    evaluated = read_model(resnet18(0.05).eval(), (4, 3, 32, 32))
    assert not any(operator.averages for operator in evaluated.operators)


def test_a_transformer_block_is_read_with_attention_as_one_operator():
    graph = graph_of("block")
    kinds = " ".join(operator.kind for operator in graph.operators)
    assert kinds == "input norm linear attention linear add norm linear linear add loss"
    assert " ".join(names(graph)) == "input norm_1 qkv core_attention out add1 norm_2 up down add2 loss"
    assert graph.operators[7].modules == ("mlp.up", "gelu") and graph.operators[7].cuts == CUTS
    assert [operator.cuts for operator in graph.operators[1:4]] == [CUTS[:2], CUTS, ("sample", "parameter")]
    whole = read_model(character_model(30, depth=2), (4, 16), torch.int64)
    assert [operator.kind for operator in whole.operators].count("attention") == 2


@pytest.mark.parametrize(("devices", "parts"), [(2, {1, 2}), (3, {1, 2}), (4, {1, 2, 4})])
def test_attention_is_cut_between_heads_into_equal_parts(devices, parts):
    attention = read_model(transformer_block(16, 4), (2, 3, 16)).operators[3]
    assert {config.parameter for config in configurations(attention, devices)} == parts
    config = Config(parameter=2, devices=(0, 1))
    assert output_box(attention, config, 1) == ((0, 2), (0, 3), (8, 16))
    assert input_box(attention, config, 1, (2, 3, 48)) == ((0, 2), (0, 3), (24, 48))


def test_attention_with_dropout_is_cut_by_example_only():
    assert read_model(block(dropout=0.5), (5, 7, 16)).operators[3].cuts == ("sample",)
    assert read_model(block(dropout=0.5).eval(), (5, 7, 16)).operators[3].cuts == ("sample", "parameter")


@pytest.mark.parametrize(
    ("name", "operators", "parameters"),
    [
        ("alexnet", 13, 61_100_840),
        ("vgg11", 18, 132_863_336),
        ("resnet18", 33, 11_689_512),
        ("resnet50", 74, 25_557_032),
    ],
)
def test_torchvisions_models_are_read_as_they_are_without_weights(name, operators, parameters):
    with torch.device("meta"):
        model = getattr(load_torchvision().models, name)()
    graph = read_model(model, (64, 3, 224, 224))
    assert len(graph) == operators and sum(operator.parameters for operator in graph.operators) == parameters
    assert not any(operator.kind == "other" for operator in graph.operators)
    assert all("mask of its own" in note for note in graph.notes) and bool(graph.notes) == ("resnet" not in name)


class Functions(nn.Module):
    """Functions and methods where others have modules: the network of torch's tutorial on distributed training."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5)
        self.conv2_drop, self.fc1, self.fc2 = nn.Dropout2d(), nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x):
        x = functional.relu(functional.max_pool2d(self.conv1(x), 2))
        x = functional.relu(functional.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = functional.relu(self.fc1(x.view(-1, 320)))
        x = functional.dropout(x, training=self.training)
        return functional.log_softmax(self.fc2(x), dim=1)


def test_functions_are_modules_without_weights():
    graph = read_model(Functions(), (8, 1, 28, 28))
    assert " ".join(names(graph)) == "input conv1 pool1 conv2 pool2 fc1 fc2 norm1 loss"
    assert [type(graph.layers[key]) for key in graph.operators[5].modules] == [
        nn.Flatten,
        nn.Linear,
        nn.ReLU,
        nn.Dropout,
    ]
    assert len(graph.notes) == 2 and len(read_model(Functions().eval(), (8, 1, 28, 28)).notes) == 0


class InDoublePrecision(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.fc, self.dtype = nn.Linear(4, 3), dtype

    def forward(self, x):
        return functional.softmax(functional.log_softmax(self.fc(x), dim=1, dtype=self.dtype), 1, dtype=self.dtype)


def test_a_softmax_with_a_dtype_is_no_module():
    assert names(read_model(InDoublePrecision(None), (2, 4))) == ["input", "fc", "norm1", "norm2", "loss"]
    graph = read_model(InDoublePrecision(torch.float64), (2, 4))
    assert [one.kind for one in graph.operators] == ["input", "linear", "other", "other", "loss"]
    x = graph.layers["softmax"](torch.ones(2, 3))
    assert x.dtype == torch.float64


class Strange(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(7 * 8 * 8, 10)
        self.scale = nn.Parameter(torch.ones(7, 1, 1))

    def forward(self, x):
        y = self.scale * torch.cat([x, self.conv(x)], dim=1)
        return self.linear(y.view(y.size(0), -1))


def test_unknown_operators_stay_on_one_device_and_a_note_says_so():
    model = Strange()
    graph = read_model(model, (4, 3, 8, 8))
    others = [operator for operator in graph.operators if operator.kind == "other"]
    assert [operator.inputs for operator in others] == [(0, 1), (2,)]
    assert [note.partition(":")[0] for note in graph.notes] == ["other1 (cat)", "other2 (mul)"]
    assert "one device" in graph.notes[0]
    assert configurations(others[0], 3) == tuple(Config(devices=(device,)) for device in range(3))
    x, conv = torch.rand(4, 3, 8, 8), torch.rand(4, 4, 8, 8)
    joined = graph.layers[others[0].modules[0]](x, conv)
    assert torch.equal(graph.layers[others[1].modules[0]](joined), torch.cat([x, conv], dim=1))
    assert sum(operator.parameters for operator in graph.operators) == sum(one.numel() for one in model.parameters())


# --- rejected --------------------------------------------------------------------------------------------------------


class Branches(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # this line
            return x
        return -x


class TakesTwo(nn.Module):
    def forward(self, x, y):
        return x + y


class Shares(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(self.layer(x))


@pytest.mark.parametrize(
    ("model", "shape", "said"),
    [
        (Branches(), (3, 4), "`if x.sum() > 0:"),
        (mlp(), (3, 4), "fc1 gets (3, 4)"),
        (TakesTwo(), (3, 4), "must take one tensor"),
        (Shares(), (3, 4), "share their weights"),
        (nn.Sequential(nn.Conv2d(3, 4, 3)), (2, 3, 8, 8), "must return one tensor"),
    ],
)
def test_models_that_cannot_be_spread_are_rejected_in_a_line(model, shape, said):
    with pytest.raises(CourseError) as caught:
        read_model(model, shape)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_the_line_that_cannot_be_traced_is_named():
    with pytest.raises(CourseError) as caught:
        read_model(Branches(), (3, 4))
    lines = Path(__file__).read_text().splitlines()
    line = next(n for n, text in enumerate(lines, start=1) if text.endswith("# this line"))
    assert f"line {line} of test_graph.py" in str(caught.value)


# --- configurations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("devices", [2, 3, 4])
def test_parts_are_disjoint_and_cover_the_output(name, devices):
    for operator in graph_of(name).operators:
        for config in configurations(operator, devices):
            seen = np.zeros(operator.shape, np.int8)
            for place in range(len(config.devices)):
                box = output_box(operator, config, place)
                assert volume(box) > 0
                seen[tuple(slice(*bounds) for bounds in box)] += 1
            assert (seen == 1).all(), (operator.name, config)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_with_each_part_once_and_equal_among_replicas(name):
    for operator in graph_of(name).operators:
        for config in configurations(operator, 4):
            groups = replicas(config)
            assert sorted(device for group in groups for device in group) == sorted(config.devices)
            held = [parameters_at(operator, config, place) for place in range(config.parameter)]
            assert sum(held) == operator.parameters


@pytest.mark.parametrize("name", MODELS)
def test_a_part_computes_its_piece_of_the_output_from_what_it_reads(name):
    """By autograd: numbers outside the box that a part reads have no influence on the box that it makes."""
    make, shape = MODELS[name]
    model = make().eval()  # batch norm with the statistics of one process
    graph = read_model(model, shape)
    unlike = {
        (operator.kind, operator.window): operator for operator in graph.operators[1:-1] if operator.kind != "add"
    }
    for operator in unlike.values():
        x = torch.rand(graph.operators[operator.inputs[0]].shape, requires_grad=True)
        y = x
        for key in operator.modules:
            y = graph.layers[key](y)
        config = configurations(operator, 4)[-1]
        for place in {0, len(config.devices) - 1}:
            made = output_box(operator, config, place)
            (gradient,) = torch.autograd.grad((y[tuple(slice(*one) for one in made)] ** 2).sum(), x, retain_graph=True)
            read = input_box(operator, config, place, tuple(x.shape))
            gradient[tuple(slice(*one) for one in read)] = 0
            assert not gradient.any(), (operator.name, config, place)


def test_boxes_have_what_they_have_in_common():
    assert common(((0, 4), (2, 6)), ((2, 8), (0, 3))) == ((2, 4), (2, 3))
    assert volume(common(((0, 2),), ((5, 9),))) == 0


def test_a_halo_is_one_row_on_each_side_of_a_window_of_three():
    conv = graph_of("vgg11").operators[1]
    config = Config(1, 4, 1, (0, 1, 2, 3))
    rows = [input_box(conv, config, place, (5, 3, 32, 32))[2] for place in range(4)]
    assert rows == [(0, 9), (7, 17), (15, 25), (23, 32)]


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_configurations_use_each_device_once_and_only_allowed_cuts(devices):
    for operator in graph_of("alexnet").operators:
        found = configurations(operator, devices)
        assert len(set(found)) == len(found)
        for config in found:
            assert prod(config.parts) == len(config.devices) == len(set(config.devices)) <= devices
            assert all(parts == 1 or cut in operator.cuts for cut, parts in zip(CUTS, config.parts, strict=True))
