"""Lesson 2's optimizers: Adam as torch takes it, what optimizers keep, and when gradients become ready."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.autodiff_and_optimizers.optimizers import adam_step, state_bytes, state_bytes_per_parameter
from course_utils.lessons.autodiff_and_optimizers.pictures import (
    bytes_per_parameter,
    gradient_readiness,
    ready_finding,
    share_at,
)
from course_utils.lessons.autodiff_and_optimizers.ready_order import (
    BackwardTimes,
    layers,
    measure_ready_order,
    watch_gradients,
)
from course_utils.lessons.data_parallel.training import digits_mlp
from course_utils.vgg import parameter_count, vgg11


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"rate": 0.05, "beta1": 0.5, "beta2": 0.9, "eps": 0.01}])
def test_adam_is_torchs_over_300_steps(dtype, options, seed):
    rng = np.random.default_rng(seed)
    start = [rng.normal(size=shape).astype(dtype) for shape in [(5, 4), (4,), (0, 3), (1,)]]
    ours, theirs = [array.copy() for array in start], [torch.tensor(a, requires_grad=True) for a in start]
    means, squares = ([np.zeros_like(a) for a in start] for _ in range(2))
    given = {"rate": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8} | options
    optimizer = torch.optim.Adam(theirs, given["rate"], (given["beta1"], given["beta2"]), given["eps"])
    for step in range(1, 301):
        gradients = [rng.normal(size=a.shape).astype(dtype) for a in start]
        for tensor, gradient in zip(theirs, gradients, strict=True):
            tensor.grad = torch.tensor(gradient)
        optimizer.step()
        adam_step(ours, gradients, means, squares, step, **options)
    for array, tensor in zip(ours, theirs, strict=True):
        assert array.dtype == dtype
        tolerance = 1e-4 if dtype == "float32" else 1e-11
        assert np.allclose(array, tensor.detach().numpy(), rtol=tolerance, atol=tolerance)


def test_optimizers_keep_what_the_lesson_says():
    model = vgg11(0.25)
    count = parameter_count(model)
    makers = {
        "SGD": lambda weights: torch.optim.SGD(weights, lr=0.1),
        "momentum": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
        "Adam": torch.optim.Adam,
    }
    before = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    kept = state_bytes_per_parameter(model, makers)
    steps = 4 * len(list(model.parameters()))  # Adam counts its steps, once for each parameter, in float32
    assert kept == {"SGD": 0, "momentum": 4, "Adam": 8 + steps / count}
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(before, nn.utils.parameters_to_vector(model.parameters()))
    assert state_bytes(torch.optim.Adam(model.parameters())) == 0
    assert state_bytes_per_parameter(model.double(), {"Adam": torch.optim.Adam})["Adam"] > 16


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize(("width", "classes"), [(1.0, 10), (0.25, 7), (0.01, 2)])
def test_vgg_takes_images_of_32_pixels(width, classes, norm):
    model = vgg11(width, classes, norm, seed=0)
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, classes)
    assert [name for name, _ in model.named_children()][0] == "conv1"
    same = vgg11(width, classes, norm, seed=0)
    assert torch.equal(model.conv1.weight, same.conv1.weight)


def test_vgg_has_9_2_million_parameters_of_which_the_linear_layer_has_few():
    model = vgg11()
    assert round(parameter_count(model) / 1e6, 1) == 9.2
    assert (model.linear.in_features, model.linear.out_features) == (512, 10)


def test_gradients_become_ready_from_the_last_layer_to_the_first():
    model = vgg11(0.125, seed=0)
    x, y = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
    with watch_gradients(model) as ready:
        cross_entropy(model(x), y).backward()
    order = [name.partition(".")[0] for name, _ in model.named_parameters()]
    assert list(dict.fromkeys(one.name.partition(".")[0] for one in ready)) == list(dict.fromkeys(reversed(order)))
    assert {one.name: one.bytes for one in ready} == {n: p.nbytes for n, p in model.named_parameters()}
    seconds = [one.seconds for one in ready]
    assert seconds == sorted(seconds) and seconds[0] >= 0


def test_hooks_are_gone_after_the_block_even_after_an_error():
    model = digits_mlp(0)
    with pytest.raises(ZeroDivisionError), watch_gradients(model) as ready:
        raise ZeroDivisionError
    cross_entropy(model(torch.randn(2, 64)), torch.tensor([0, 1])).backward()
    assert ready == []


def test_a_frozen_parameter_is_left_out_and_a_shared_one_noted_once():
    shared = nn.Linear(3, 3)
    model = nn.Sequential(shared, nn.ReLU(), shared, nn.Linear(3, 2))
    model[3].bias.requires_grad_(False)
    with watch_gradients(model) as ready:
        model(torch.randn(5, 3)).sum().backward()
    assert sorted(one.name for one in ready) == ["0.bias", "0.weight", "3.weight"]


def test_several_passes_give_one_order():
    model = digits_mlp(0)
    x, y = torch.randn(8, 64), torch.randint(10, (8,))
    times = measure_ready_order(model, lambda: cross_entropy(model(x), y), repeats=3, warm_up=1)
    assert times.seconds.shape == (3, len(times.names)) and times.ends.shape == times.forwards.shape == (3,)
    assert set(times.names) == {name for name, _ in model.named_parameters()}
    assert sum(size for _, size, _ in layers(times)) == sum(times.bytes)
    assert [name for name, *_ in layers(times)] == ["6", "3", "0"]


def example() -> BackwardTimes:
    """Two passes of 10 and 12 s: b ready after 2 and 4 s, a.weight after 8 and 9, a.bias after 8 and 8."""
    seconds = np.array([[2.0, 8.0, 8.0], [4.0, 9.0, 8.0]])
    names = ("b.weight", "a.weight", "a.bias")
    return BackwardTimes(names, (300, 60, 40), seconds, np.array([10.0, 12.0]), np.array([5.0, 5.0]))


def test_medians_never_go_back_and_layers_wait_for_their_last_gradient():
    times = example()
    assert times.median.tolist() == [3.0, 8.5, 8.5] and times.end == 11
    assert layers(times) == [("b", 300, 3.0), ("a", 100, 8.5)]
    assert layers(times, lambda layer: "all") == [("all", 400, 8.5)]


def test_pictures_say_what_they_show():
    found = layers(example())
    assert ready_finding(found, 11.0).startswith("b is ready first, a last; halfway, 75")
    assert share_at(found, 0.0) == 0 and share_at(found, 11.0) == 1
    picture = gradient_readiness(found, 11.0, "A pass", passes=[10.0, 12.0])
    assert "b after 3 s; a after 8.5 s" in picture.alt_text
    bars = bytes_per_parameter({"SGD": {"parameters": 4, "optimizer state": 0.0}}, "Kept")
    assert "SGD: parameters 4 B, optimizer state 0 B" in bars.alt_text
