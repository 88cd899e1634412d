"""Programs that strategies become: for any strategy the losses, gradients and weights of one process."""

import copy
import random
import re
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.model_parallel.differentiable_collectives import all_reduced
from course_utils.lessons.model_parallel.transformer import Block, Head, character_model
from course_utils.lessons.strategy_search.costs.described_costs import described_costs
from course_utils.lessons.strategy_search.costs.device_topology import describe
from course_utils.lessons.strategy_search.experiments import PredictedAndMeasured, predicted_seconds
from course_utils.lessons.strategy_search.graph.configurations import ROW, Config, configurations
from course_utils.lessons.strategy_search.graph.example_models import alexnet, mlp, resnet18, transformer_block
from course_utils.lessons.strategy_search.graph.operator_graph import Window
from course_utils.lessons.strategy_search.graph.plain_strategies import data_parallel, megatron, on_one_device
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.lessons.strategy_search.program.run_program import (
    parallel_model,
    train_program,
    train_serial,
)
from course_utils.lessons.strategy_search.program.tensor_layouts import input_spread, move_between, output_spread
from course_utils.lessons.strategy_search.program.tensor_moves import Spread, exchange, own, plan
from course_utils.lessons.strategy_search.program.write_program import program_text
from course_utils.lessons.strategy_search.simulator import program_steps
from course_utils.syllabus import ROOT
from course_utils.trace.torch.torch_distributed import unrecorded
from course_utils.vgg import vgg11
from workshop.bench.strategy import comparison_rows, varied_strategies

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
    "heads": (lambda: transformer_block(8, 4), (BATCH, 5, 8)),
    "characters": (lambda: character_model(CLASSES, 8, 2, 1, 6), (BATCH, 6)),
}


TEXTS = ("block", "heads", "characters")


def batch_for(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Random inputs of a model, and labels."""
    shape, generator = MODELS[name][1], torch.Generator().manual_seed(1)
    labels = torch.randint(CLASSES, shape[:2] if name in TEXTS else shape[:1], generator=generator)
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
        texts.append(
            program_text(
                model, graph, configs, "course_utils.lessons.strategy_search.graph.example_models.alexnet()", ranks
            )
        )
    return texts


def beside_serial(jobs: list[tuple[str, str]]) -> list[str]:
    """On every rank: what differs from one process, over two steps of each program."""
    found = []
    with unrecorded():
        for name, text in jobs:
            model = MODELS[name][0]().double()
            serial, (inputs, labels) = copy.deepcopy(model), batch_for(name)
            part = parallel_model(text, model)
            for step in range(2):
                errors = one_step_beside_serial(part, model, serial, inputs, labels)
                if not all(error < 1e-9 for error in errors.values()):
                    found.append(f"{name}, step {step}: {errors}\n{text}")
    return found


def gradients(part: nn.Module, model: nn.Module) -> dict[str, tuple[slice, torch.Tensor]]:
    """For each parameter of the model that this rank has a part of: which rows of it, and their gradient."""
    names = {id(one): name for name, one in model.named_parameters()}
    found = {}
    for parameter in part.parameters():
        whole = getattr(parameter, "whole", parameter)
        rows = getattr(parameter, "rows", slice(0, len(whole)))
        found[names[id(whole)]] = rows, parameter.grad
    return found


def one_step_beside_serial(part, model, serial, inputs, labels) -> dict[str, float]:
    """The largest difference of loss, gradients and averages in a step of both; whether a row is nobody's."""
    expected = cross_entropy(serial(inputs).flatten(0, -2), labels.flatten())
    expected.backward()
    loss = part(inputs, labels)
    loss.backward()
    whole, mine = dict(serial.named_parameters()), gradients(part, model)
    shares = torch.tensor([whole[one][mine[one][0]].numel() if one in mine else 0 for one in whole])
    dist.all_reduce(shares)
    errors = {
        "loss": (all_reduced(loss) - expected).abs().item(),
        "gradients": max([(g - whole[n].grad[rows]).abs().max().item() for n, (rows, g) in mine.items()], default=0.0),
        "averages": max(running_averages(part, model, serial), default=0.0),
        "nobody's": float(any(share < one.numel() for share, one in zip(shares.tolist(), whole.values(), strict=True))),
    }
    for one in (serial, part):
        Sgd(one.parameters(), 0.1).step()
        Sgd(one.parameters()).zero_grad()
    return {name: error if error == error else float("inf") for name, error in errors.items()}


def running_averages(part, model, serial) -> list[float]:
    """How far the running means and variances of this rank's batch norms are off."""
    names, errors = {id(one): name for name, one in model.named_parameters()}, []
    expected = dict(serial.named_buffers())
    for module in part.modules():
        if isinstance(module, nn.BatchNorm2d):
            rows = getattr(module.weight, "rows", slice(None))
            path = names[id(getattr(module.weight, "whole", module.weight))].removesuffix("weight")
            for name in ("running_mean", "running_var"):
                errors.append((getattr(module, name) - expected[path + name][rows]).abs().max().item())
    return errors


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_any_strategy_gives_what_one_process_gives(four_ranks, seed, world_size) -> None:
    jobs = [(name, text) for name in MODELS for text in random_programs(name, world_size, seed, 2)]
    run = four_ranks.run(beside_serial, jobs, ranks=world_size, backend="gloo")
    assert [one for found in run.results for one in found] == []


def by_heads(ranks: int, generator: random.Random, number: int) -> list[str]:
    """Programs for a block whose heads are cut over all ranks, with random strategies for everything else.

    Of the two layers that may have a row cut, one has it in each; the first is Megatron-LM's.
    """
    model, shape = MODELS["heads"][0](), MODELS["heads"][1]
    graph, texts = read_model(model, shape, row_cuts=True), []
    for turn in range(number):
        configs = [generator.choice(configurations(operator, ranks)) for operator in graph.operators]
        configs[3] = Config(parameter=ranks, devices=tuple(range(ranks)))
        by_row = (4, 8)[turn % 2]  # out, down
        assert ROW in graph.operators[by_row].cuts
        choices = [config for config in configurations(graph.operators[by_row], ranks) if config.row_cut]
        configs[by_row] = generator.choice(choices)
        configs = configs if turn else megatron(graph, ranks)
        texts.append(program_text(model, graph, configs, "course_utils.vgg.vgg11()", ranks))
    assert graph.operators[3].kind == "attention"
    return texts


@pytest.mark.parametrize("world_size", [2, 4])
def test_a_block_cut_by_heads_gives_what_one_process_gives(four_ranks, seed, world_size) -> None:
    jobs = [("heads", text) for text in by_heads(world_size, random.Random(seed), 6)]
    run = four_ranks.run(beside_serial, jobs, ranks=world_size, backend="gloo")
    assert [wrong for found in run.results for wrong in found] == []


class Counting:
    """Costs of an exchange that only note what each device sends and receives."""

    def __init__(self) -> None:
        self.bytes: dict[int, tuple[int, int]] = {}

    def exchange(self, sent: int, received: int, messages: int, devices: tuple[int, ...] = ()) -> int:
        self.bytes[devices[0]] = sent, received
        return 1


def simulated_bytes(made, a: Config, reads, b: Config) -> dict[int, tuple[int, int]]:
    """Bytes that each device sends and receives between two operators, as the simulator counts them."""
    costs = Counting()
    program_steps.exchange(made, a, reads, b, costs, "forward")
    return costs.bytes


def sent_bytes(made, a: Config, reads, b: Config) -> dict[int, tuple[int, int]]:
    """The same, as the program's exchange sends and receives them, of float32."""
    have, need = output_spread(made, a), input_spread(reads, b, made.shape)
    held, wanted, found = have.boxes(made.shape), need.boxes(made.shape), {}
    for rank in held.keys() | wanted.keys():
        moves = plan(made.shape, have, need, rank)
        out = sum(numbers_in(held[rank], what) for _, what in moves.sends)
        back = sum(numbers_in(wanted[rank], where) for _, where in moves.receives)
        if out or back:
            found[rank] = 4 * out, 4 * back
    return found


def numbers_in(box, slices) -> int:
    """How many numbers a piece of a box has."""
    return torch.empty([end - begin for begin, end in box], device="meta")[slices].numel()


def test_the_simulator_counts_what_a_blocks_program_moves() -> None:
    graph = read_model(transformer_block(8, 4), (BATCH, 5, 8), row_cuts=True)
    for reader, reads in enumerate(graph.operators):
        for source in [source for source in reads.inputs if source]:
            made = graph.operators[source]
            for a in configurations(made, 4):
                for b in configurations(reads, 4):
                    assert simulated_bytes(made, a, reads, b) == sent_bytes(made, a, reads, b), (reader, a, b)


@pytest.mark.parametrize(
    ("qkv", "attention", "moved"),
    [
        (Config(parameter=2, devices=(0, 1)), Config(parameter=2, devices=(0, 1)), {}),
        # of half of the queries, keys and values each device has half of the texts
        (Config(sample=2, devices=(0, 1)), Config(parameter=2, devices=(0, 1)), {0: 180, 1: 180}),
        # 24 channels, cut at 8 and 16 for qkv and at 12 for the heads
        (Config(parameter=3, devices=(0, 1, 2)), Config(parameter=2, devices=(0, 1)), {0: 0, 1: 120, 2: 240}),
        (Config(), Config(parameter=2, devices=(0, 1)), {0: 360, 1: 0}),
    ],
)
def test_what_moves_to_the_heads_is_as_on_paper(qkv, attention, moved) -> None:
    operators = read_model(transformer_block(8, 4), (BATCH, 5, 8)).operators
    sent = {rank: out for rank, (out, _) in simulated_bytes(operators[2], qkv, operators[3], attention).items()}
    assert sent == {rank: 4 * numbers for rank, numbers in moved.items()}


def test_programs_are_as_ruff_wants_them(tmp_path, seed) -> None:
    for name in MODELS:
        for number, text in enumerate(random_programs(name, 4, seed, 3)):
            (tmp_path / f"{name}_{number}.py").write_text(
                text.replace("tests.test_strategy_program", "somewhere.models")
            )
    settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", str(tmp_path)]
    for order in (["check"], ["format", "--diff"]):
        done = subprocess.run([sys.executable, "-m", "ruff", *order, *settings], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def random_spreads(generator: random.Random, shape, world_size) -> tuple[Spread, Spread]:
    """What ranks have, each another part, and what they need, some of them the same."""
    rows = [(2, 1, 1), (1, 3, 1), (1, 1, 1), (1, 2, 1), (3, 1, 1), (1, 1, 2)]
    have, need = (generator.choice([one for one in rows if torch.tensor(one).prod() <= world_size]) for _ in "ab")
    owners = generator.sample(range(world_size), int(torch.tensor(have).prod()))
    readers: list[list[int]] = [[] for _ in range(int(torch.tensor(need).prod()))]
    for place, rank in enumerate(generator.sample(range(world_size), generator.randint(len(readers), world_size))):
        readers[place % len(readers)].append(rank)
    return Spread(have, tuple(owners)), Spread(need, tuple(map(tuple, readers)))


def exchanged(shape, spreads) -> list[str]:
    """On every rank: exchanges whose result or gradient is wrong."""
    rank, wrong = dist.get_rank(), []
    whole = torch.arange(torch.tensor(shape).prod().item(), dtype=torch.float64).view(shape)
    for have, need in spreads:
        x = own(whole, have).clone().requires_grad_()
        got = exchange(x, shape, have, need)
        (got * (rank + 1)).sum().backward()
        readers = torch.zeros(shape, dtype=torch.float64)
        for reader, box in need.boxes(shape).items():
            readers[tuple(slice(*one) for one in box)] += reader + 1
        right = torch.equal(got, own(whole, need)) or not (got.numel() or rank in need.boxes(shape))
        if not (right and torch.equal(x.grad, own(readers, have))):
            wrong.append(f"{have} → {need}")
    return wrong


def test_an_exchange_brings_pieces_there_and_gradients_back(four_ranks, seed) -> None:
    generator, shape = random.Random(seed), (5, 7, 3)
    spreads = [random_spreads(generator, shape, 4) for _ in range(12)]
    run = four_ranks.run(exchanged, shape, spreads, backend="gloo")
    assert [one for wrong in run.results for one in wrong] == []


BOTH, FIRST = Spread((1, 1, 1, 1), ((0, 1),)), Spread((1, 1, 1, 1), (0,))
EXAMPLES, CHANNELS, ROWS = (Spread(parts, (0, 1)) for parts in ((2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1)))
HALO = Spread((1, 1, 2, 1), (0, 1), Window(3, 1, 1))


@pytest.mark.parametrize(
    ("have", "need", "name"),
    [
        (EXAMPLES, BOTH, "all_gather"),
        (EXAMPLES, FIRST, "gather"),
        (FIRST, CHANNELS, "scatter"),
        (FIRST, BOTH, "broadcast"),
        (EXAMPLES, CHANNELS, "all_to_all"),
        (ROWS, HALO, "halo_exchange"),
        (FIRST, Spread((1, 1, 1, 1), (1,)), "send"),
        (EXAMPLES, HALO, "exchange"),
        (ROWS, ROWS, None),
    ],
)
def test_moves_have_the_names_of_the_field(have, need, name) -> None:
    move = move_between((4, 4, 6, 6), have, need, 2)
    assert (move and move.name) == name


class Joined(nn.Module):
    """Joins two parts of its hidden numbers in a way that the search knows nothing of."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.last = nn.Linear(6, 4), nn.Linear(6, 4), nn.Linear(8, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.cat((self.first(x), self.second(x)), dim=1))


def test_what_is_unknown_runs_on_one_rank(four_ranks) -> None:
    graph = read_model(Joined(), (BATCH, 6))
    halves = [
        Config(sample=2, devices=(0, 1)) if one.kind != "other" else Config(devices=(1,)) for one in graph.operators
    ]
    text = program_text(Joined(), graph, halves, "course_utils.lessons.strategy_search.graph.example_models.mlp()", 2)
    assert "Part(lambda x, y: torch.cat((x, y), dim=1), ranks=(1,))" in text
    batches = [(torch.randn(BATCH, 6), torch.randint(CLASSES, (BATCH,))) for _ in range(3)]
    losses = train_program(four_ranks, text, Joined, batches, 0.1)
    assert losses == pytest.approx(train_serial(Joined(), batches, 0.1), abs=1e-6)


class ManyJoined(nn.Module):
    """Joins seven tensors, more than there are short names for."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.parts, self.last = nn.ModuleList(nn.Linear(6, 2) for _ in range(7)), nn.Linear(14, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.cat([part(x) for part in self.parts], dim=1))


def test_an_operator_may_read_from_seven(four_ranks) -> None:
    graph = read_model(ManyJoined(), (BATCH, 6))
    halves = [
        Config(sample=2, devices=(0, 1)) if one.kind != "other" else Config(devices=(1,)) for one in graph.operators
    ]
    text = program_text(
        ManyJoined(), graph, halves, "course_utils.lessons.strategy_search.graph.example_models.mlp()", 2
    )
    assert "lambda x, y, z, u, v, w, x7: torch.cat([x, y, z, u, v, w, x7], dim=1)" in text
    batches = [(torch.randn(BATCH, 6), torch.randint(CLASSES, (BATCH,))) for _ in range(2)]
    losses = train_program(four_ranks, text, ManyJoined, batches, 0.1)
    assert losses == pytest.approx(train_serial(ManyJoined(), batches, 0.1), abs=1e-6)


def test_a_program_runs_under_torchrun(tmp_path) -> None:
    model = mlp((12, 10, 9, CLASSES))
    graph = read_model(model, (BATCH, 12))
    cut = [Config(sample=2, devices=(0, 1)), *[Config(parameter=2, devices=(0, 1))] * 3, Config(devices=(1,))]
    build = f"course_utils.lessons.strategy_search.graph.example_models.mlp((12, 10, 9, {CLASSES}))"
    file = tmp_path / "mlp_on_2_ranks.py"
    file.write_text(program_text(model, graph, cut, build, 2, file.name, "The search found it."))
    order = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(file)]
    done = subprocess.run(order, capture_output=True, text=True, timeout=120, cwd=ROOT)
    torch.manual_seed(0)
    model = mlp((12, 10, 9, CLASSES))
    batch = torch.randn(BATCH, 12), torch.randint(CLASSES, (BATCH,))
    [printed] = re.findall(r"^loss: (.*)$", done.stdout, re.MULTILINE) or [done.stdout + done.stderr]
    assert [float(loss) for loss in printed.split()] == pytest.approx(train_serial(model, [batch] * 5), abs=2e-6)


def test_what_builds_no_model_is_rejected() -> None:
    model = mlp((4, 3))
    with pytest.raises(CourseError, match="does not make a model"):
        program_text(model, read_model(model, (2, 4)), [Config(), Config(), Config()], "alexnet", 2)


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ([Config(), Config()], "2 configurations, .* 3 operators"),
        ([Config()] * 4, "4 configurations, .* 3 operators"),
        ([Config(), Config(devices=(2,)), Config()], "fc1 is on device 2; the last of 2 ranks is device 1"),
    ],
)
def test_a_strategy_for_another_graph_or_more_ranks_is_rejected(strategy, said) -> None:
    model = mlp((4, 3))
    with pytest.raises(CourseError, match=said):
        program_text(
            model,
            read_model(model, (2, 4)),
            strategy,
            "course_utils.lessons.strategy_search.graph.example_models.mlp((4, 3))",
            2,
        )


def test_too_few_strategies_for_a_comparison_are_rejected_with_their_number() -> None:
    graph = read_model(mlp((4, 3)), (2, 4))
    costs = described_costs(graph, describe({"a": 1 << 30, "b": 1 << 30}, (1e-3, 1e8)), 1e10, 1e10)
    with pytest.raises(CourseError, match=r"only \d+ differ .* 100 are asked for"):
        varied_strategies(graph, costs, 2, 100, {"one": on_one_device(graph)}, tries=30)


def test_strategies_for_the_comparison_are_spread_over_their_times() -> None:
    graph = read_model(alexnet(1 / 8, pixels=64), (16, 3, 64, 64))
    costs = described_costs(graph, describe({"a": 1 << 30, "b": 1 << 30}, (1e-3, 1e8)), 1e10, 1e10)
    known = {"one": on_one_device(graph), "data": data_parallel(graph, 2)}
    found = varied_strategies(graph, costs, 2, 8, known)
    seconds = [predicted_seconds(graph, one, costs) for one in found]
    assert len(set(seconds)) == 8 and max(seconds) > 2 * min(seconds)


def test_rows_of_a_comparison_say_how_far_off_and_in_what_order() -> None:
    found = PredictedAndMeasured([[]] * 3, [1.0, 2.0, 3.0], [[1.1, 1.0, 1.1], [2.0, 2.0, 2.0], [3.3, 3.3, 3.0]])
    off, worst, order, noise = comparison_rows("net", found)
    assert off.value == pytest.approx(100 / 11) and worst.value == pytest.approx(100 / 11)
    assert not off.ok and order.value == 1 and order.ok and noise.value >= 0
