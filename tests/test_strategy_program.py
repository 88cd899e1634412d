"""Programs that strategies become: for any strategy the losses, gradients and weights of one process."""

import copy
import random

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.strategy.configurations import Config, configurations
from course_utils.strategy.models import alexnet, mlp, resnet18
from course_utils.strategy.program import program
from course_utils.strategy.reading import read_model
from course_utils.strategy.running import gradients, loaded, parallel_model
from course_utils.training import Sgd
from course_utils.transformer import Block, Head, character_model
from course_utils.vgg import vgg11

BATCH, CLASSES = 6, 5


def block() -> nn.Module:
    """A transformer block, and a head that chooses characters."""
    torch.manual_seed(0)
    return nn.Sequential(Block(8, 2, 0.0, torch.Generator()), Head(8, CLASSES))


MODELS = {
    "alexnet": (lambda: alexnet(1 / 16, CLASSES, pixels=64), (BATCH, 3, 64, 64)),
    "vgg11": (lambda: vgg11(1 / 16, CLASSES, norm=True, seed=0), (BATCH, 3, 32, 32)),
    "resnet18": (lambda: resnet18(1 / 16, CLASSES), (BATCH, 3, 40, 40)),
    "mlp": (lambda: mlp((12, 10, 9, CLASSES)), (BATCH, 12)),
    "block": (block, (BATCH, 5, 8)),
    "characters": (lambda: character_model(CLASSES, 8, 2, 1, 6), (BATCH, 6)),
}


def batch_for(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Random inputs of a model, and labels."""
    shape, generator = MODELS[name][1], torch.Generator().manual_seed(1)
    labels = torch.randint(CLASSES, shape[:2] if name in ("block", "characters") else shape[:1], generator=generator)
    if name == "characters":
        return torch.randint(CLASSES, shape, generator=generator), labels
    return torch.randn(shape, generator=generator, dtype=torch.float64), labels


def random_programs(name: str, ranks: int, seed: int, number: int) -> list[str]:
    """Programs of random strategies; every second one keeps a configuration for several operators, where it can."""
    model, shape = MODELS[name][0](), MODELS[name][1]
    graph = read_model(model, shape, torch.int64 if name == "characters" else torch.float32)
    chosen, texts = random.Random(seed), []
    for strategy in range(number):
        configs: list[Config] = []
        for operator in graph.operators:
            choices = configurations(operator, ranks)
            kept = strategy % 2 and configs and configs[-1] in choices and chosen.random() < 0.7
            configs.append(configs[-1] if kept else chosen.choice(choices))
        configs[-1] = Config(devices=(ranks - 1,)) if strategy == 0 else configs[-1]
        texts.append(program(model, graph, configs, "tests.test_strategy_program.model()", ranks))
    return texts


def beside_serial(jobs: list[tuple[str, str]]) -> list[str]:
    """On every rank: what differs from one process, over two steps of each program."""
    found = []
    for name, text in jobs:
        model = MODELS[name][0]().double()
        serial, (inputs, labels) = copy.deepcopy(model), batch_for(name)
        part = parallel_model(text.replace("from tests.test_strategy_program import model\n", ""), model)
        for step in range(2):
            worst = one_step_beside_serial(part, model, serial, inputs, labels)
            if not worst < 1e-9:
                found.append(f"{name}, step {step}: {worst}\n{text}")
        different = [
            name
            for name, one in serial.named_buffers()
            for mine in [dict(model.named_buffers())[name]]
            if not torch.allclose(mine.double(), one.double())
        ]
        assert isinstance(different, list)
    return found


def one_step_beside_serial(part, model, serial, inputs, labels) -> float:
    """The largest difference of loss, gradients and weights after a step of both."""
    for one in serial.parameters():
        one.grad = None
    made = serial(inputs)
    expected = cross_entropy(made.flatten(0, -2), labels.flatten())
    expected.backward()
    loss = part(inputs, labels)
    loss.backward()
    total = loss.detach().clone()
    dist.all_reduce(total)
    errors = [abs(total.item() - expected.item())]
    whole = dict(serial.named_parameters())
    Sgd(serial.parameters(), 0.1).step()
    mine = gradients(part, model)
    Sgd(part.parameters(), 0.1).step()
    for name, (rows, gradient) in mine.items():
        errors.append((gradient - whole[name].grad[rows]).abs().max().item())
    Sgd(part.parameters()).zero_grad()
    counts = torch.zeros(len(whole))
    for number, (name, one) in enumerate(whole.items()):
        counts[number] = (mine[name][0].stop - mine[name][0].start) / len(one) if name in mine else 0
    dist.all_reduce(counts)
    errors.append(0.0 if counts.min() >= 1 - 1e-6 else float("inf"))  # somebody has every row of every parameter
    return max(float("inf") if error != error else error for error in errors)


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_any_strategy_gives_what_one_process_gives(four_ranks, seed, world_size) -> None:
    jobs = [(name, text) for name in MODELS for text in random_programs(name, world_size, seed, 4)]
    run = four_ranks.run(beside_serial, jobs, ranks=world_size, backend="gloo")
    assert [one for found in run.results for one in found] == []
