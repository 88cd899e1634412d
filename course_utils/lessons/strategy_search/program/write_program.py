"""From a strategy to the torch.distributed program that runs it: a script as a person would have written it.

Every rank runs the same lines. In `__init__` each operator says how it is cut; in `forward` a move stands wherever an
operator does not find what it needs on its own rank.
"""

import re
from collections.abc import Iterator
from itertools import count, groupby

from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import Config, Strategy
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph, Shape
from course_utils.lessons.strategy_search.program.source_lines import called, imported, layer, literal, tensor_name
from course_utils.lessons.strategy_search.program.tensor_layouts import input_spread, move_between, output_spread
from course_utils.lessons.strategy_search.program.tensor_moves import Spread
from course_utils.words import ranks as so_many_ranks

PIECES = {"sample": "examples", "attribute": "rows", "parameter": "channels"}
"""What each kind of cut cuts, in words."""
OURS = {
    "course_utils.lessons.gpu_nodes.launch": {"process_group"},
    "course_utils.lessons.strategy_search.graph.operator_graph": {"Window"},
    "course_utils.lessons.strategy_search.program.tensor_moves": {
        *("Spread", "own", "exchange", "all_gather", "gather", "scatter"),
        *("broadcast", "all_to_all", "halo_exchange", "send"),
    },
    "course_utils.lessons.strategy_search.program.operator_parts": {"Part", "loss_share"},
    "course_utils.lessons.model_parallel.differentiable_collectives": {"all_reduced"},
    "course_utils.lessons.data_parallel.training": {"Sgd"},
}
"""What a program may use of the course."""


def program_text(
    model: nn.Module,
    graph: OperatorGraph,
    strategy: Strategy,
    build: str,
    ranks: int,
    file: str = "program.py",
    found: str = "",
) -> str:
    """The script that trains a model under a strategy.

    It runs under torchrun or srun, and on the ranks of a notebook (`run_program`), with the losses of one process.

    Args:
        model: may be without numbers, on the "meta" device.
        graph: of the model, for the batch that the program will have.
        strategy: any; a configuration for each operator, on devices that are ranks.
        build: how the script makes the model, an importable call: "my.models.alexnet(width=0.25, pixels=64)".
        ranks: how many it is for; the strategy need not use all.
        file: what the script's first lines call it.
        found: a sentence for them, on where the strategy comes from.

    Raises:
        CourseError: `build` is not a call; the strategy is for another graph or for more ranks; the model calls a
            function that cannot be written down.
    """
    made = re.fullmatch(r"([\w.]+)\.(\w+)(\(.*\))", build.strip(), re.DOTALL)
    if made is None:
        raise CourseError(
            f"{build!r} does not make a model. Write a module and a call in it: torchvision.models.alexnet()."
        )
    _check(graph, strategy, ranks)
    script = _Script(model, graph, list(strategy), made[2], ranks)
    body = "\n".join([*script.model(), *script.training(made[2] + made[3])])
    return "\n".join(
        [*script.head(file, found), *_imports(body, made[1], made[2]), f"BATCH = {script.batch}", body, ""]
    )


def _check(graph: OperatorGraph, strategy: Strategy, ranks: int) -> None:
    """Reject a strategy that is for another graph, or for more ranks."""
    if len(strategy) != len(graph.operators):
        raise CourseError(
            f"The strategy has {len(strategy)} configurations, and {graph.name} has {len(graph.operators)} operators. "
            "Give it one for each, the input and the loss included."
        )
    for operator, config in zip(graph.operators, strategy, strict=True):
        last = max(config.devices)
        if last >= ranks:
            raise CourseError(
                f"{operator.name} is on device {last}; the last of {so_many_ranks(ranks)} is device {ranks - 1}. "
                "Write the program for more ranks, or search for fewer devices."
            )


def _imports(body: str, module: str, function: str) -> Iterator[str]:
    """The imports of what a program uses, in ruff's order."""
    used = {module: {function}}
    for ours, names in OURS.items():
        used[ours] = used.get(ours, set()) | {name for name in names if re.search(rf"\b{name}\(", body)}
    theirs = {"torch": {"nn"}} | {
        module_name: names for module_name, names in used.items() if not module_name.startswith("course_utils")
    }
    yield "from collections.abc import Iterable"
    yield ""
    if "operator." in body:
        yield from ("import operator", "")
    yield "import torch"
    for section in (theirs, {module_name: names for module_name, names in used.items() if module_name not in theirs}):
        for module_name, names in sorted(section.items()):
            yield from imported(module_name, names) if names else ()
        yield ""


class _Script:
    """The pieces of a program."""

    def __init__(self, model: nn.Module, graph: OperatorGraph, strategy: list[Config], build: str, ranks: int) -> None:
        self.whole, self.graph, self.strategy, self.title = model, graph, strategy, build
        self.world_size = ranks
        self.batch = graph.operators[0].shape[0]
        self.name = "Parallel" + "".join(word[:1].upper() + word[1:] for word in build.split("_"))

    def head(self, file: str, found: str) -> Iterator[str]:
        """What the program says of itself: how it is run, and how it is spread."""
        yield f'"""{self.title} on {so_many_ranks(self.world_size)}.{" " * bool(found)}{found}'
        yield from ("", f"    torchrun --nproc-per-node={self.world_size} {file}", "")
        both = zip(self.graph.operators, self.strategy, strict=True)
        numbered = [(operator, config) for operator, config in both if operator.kind != "input"]
        rows, is_text = [], len(self.graph.operators[1].shape) == 3
        for config, group in groupby(numbered, key=lambda pair: pair[1]):
            names = [operator.name for operator, _ in group]
            words = in_words(config, is_text)
            rows.append((", ".join(names) if len(names) < 3 else f"{names[0]} … {names[-1]}", words))
        width = max(len(names) for names, _ in rows)
        yield from (f"{names.ljust(width)}  {words}" for names, words in rows)
        yield from ('"""', "")

    def model(self) -> Iterator[str]:
        """The class of the parallel model."""
        yield from ("", "", f"class {self.name}(nn.Module):")
        yield from ('    """One rank\'s part of the model, and what moves between ranks."""', "")
        yield from ("    def __init__(self, model: nn.Module) -> None:", "        super().__init__()")
        for operator, config in zip(self.graph.operators, self.strategy, strict=True):
            if operator.kind != "input" and (operator.kind != "loss" or operator.modules):
                yield from called(2, f"self.{operator.name} = ", "Part", self._part(operator, config))
        yield from ("", "    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:")
        yield '        """This rank\'s share of the batch\'s mean loss; it reads what it needs of the batch."""'
        yield from self._forward()

    def _part(self, operator: Operator, config: Config) -> list[str]:
        """The arguments that make one rank's part of an operator."""
        arguments = [layer(self.graph.layers[key], key, self.whole) for key in operator.modules]
        arguments += [f"{cut}={parts}" for cut, parts in zip(PIECES, config.parts, strict=True) if parts > 1]
        arguments.append(f"ranks={config.devices}")
        arguments += ["row_cut=True"] * config.row_cut
        if config.attribute > 1 and operator.window:
            arguments.append(f"rows={self.graph.operators[operator.inputs[0]].shape[2]}")
        return arguments

    def _forward(self) -> Iterator[str]:
        operators, names = self.graph.operators, self._variables()
        for number, operator in enumerate(operators):
            given, taken = [], "x" in [names[source] for source in operator.inputs]
            free = map(tensor_name, count(int(taken)))
            for source in operator.inputs:
                here = "x" if names[source] == "x" else next(free)
                move = list(self._move(source, number, names[source], here))
                yield from move
                given.append(here if move else names[source])
            if operator.kind == "loss":
                logits = f"self.loss({given[0]})" if operator.modules else given[0]
                yield f"        return loss_share({logits}, labels, ranks={self.strategy[number].devices})"
            elif operator.kind != "input":
                yield from called(2, f"{names[number]} = ", f"self.{operator.name}", given)

    def _variables(self) -> list[str]:
        """What each operator's output is called: x, if the next operator and no other reads it."""
        names = ["inputs"]
        for number, operator in list(enumerate(self.graph.operators))[1:]:
            is_next = self.graph.readers(number) == (number + 1,)
            names.append("x" if is_next else f"after_{operator.name}")
        return names

    def _move(self, source: int, reader: int, name: str, here: str) -> Iterator[str]:
        """The lines that bring an operator its input; none where every rank has it."""
        operator, shape = self.graph.operators[reader], self.graph.operators[source].shape
        need = input_spread(operator, self.strategy[reader], shape)
        if source == 0:
            if any(parts > 1 for parts in need.parts):
                yield f"        # {operator.name} reads {_read(need, 'the batch')}"
                yield from called(2, f"{here} = ", "own", [name, literal(need)])
            return
        move = move_between(
            shape, output_spread(self.graph.operators[source], self.strategy[source]), need, self.world_size
        )
        if move:
            yield f"        # {operator.name} reads {_read(need, self.graph.operators[source].name)}"
            arguments = [f"{key}={literal(value)}" for key, value in move.arguments.items()]
            yield from called(2, f"{here} = ", move.name, [name, self._shape(shape), *arguments])

    def _shape(self, shape: Shape) -> str:
        return f"({', '.join(['BATCH', *map(str, shape[1:])])}{',' * (len(shape) == 1)})"

    def training(self, build: str) -> Iterator[str]:
        """How the model is trained, and a program that does so."""
        given, made = self.graph.operators[0], self.graph.operators[-2]
        embeddings = [
            layer for each in self.graph.layers.values() for layer in each.modules() if hasattr(layer, "num_embeddings")
        ]
        inputs = f"torch.randn{self._shape(given.shape)}"
        if embeddings:
            inputs = f"torch.randint({embeddings[0].num_embeddings}, {self._shape(given.shape)})"
        places = (self.batch, *made.shape[1:-1]) if not self.graph.operators[-1].modules else (self.batch,)
        labels = f"torch.randint({made.shape[-1]}, {self._shape(places)})"
        text = TRAINING.format(name=self.name, ranks=self.world_size, build=build, inputs=inputs, labels=labels)
        yield from text.splitlines()


TRAINING = '''

def train(model: nn.Module, batches: Iterable[tuple[torch.Tensor, torch.Tensor]], rate: float = 0.01) -> list[float]:
    """Train with plain SGD; returns the loss of each whole batch, the same on all ranks."""
    parallel, losses = {name}(model), []
    optimizer = Sgd(parallel.parameters(), rate)
    for inputs, labels in batches:
        loss = parallel(inputs, labels)
        optimizer.zero_grad()
        loss.backward()  # where several ranks have the same weights, sums their gradients on the way
        optimizer.step()
        losses.append(all_reduced(loss).item())
    return losses


def main() -> None:
    """Train on random numbers; put your own data in their place."""
    with process_group(backend="gloo") as group:  # the tensors below lie on the processor
        if group.world_size != {ranks}:
            raise SystemExit(f"{{group.world_size}} ranks were started; this program is for {ranks}.")
        torch.manual_seed(0)
        model = {build}
        inputs, labels = {inputs}, {labels}
        losses = train(model, [(inputs, labels)] * 5)
        if group.rank == 0:
            print("loss:", *(f"{{loss:.6f}}" for loss in losses))


if __name__ == "__main__":
    main()'''


def in_words(config: Config, is_text: bool = False) -> str:
    """How an operator is spread: "examples cut in 2, ranks 0, 1"; of a text, positions are cut and not rows."""
    if len(config.devices) == 1:
        return f"rank {config.devices[0]} alone"
    pieces = PIECES | ({"attribute": "positions"} if is_text else {})
    cut = [f"{pieces[cut]} cut in {parts}" for cut, parts in zip(PIECES, config.parts, strict=True) if parts > 1]
    if config.row_cut:
        cut = [f"input channels and then {cut[0]}"]
    return f"{' and '.join(cut)}, ranks {', '.join(map(str, config.devices))}"


def _read(need: Spread, source: str) -> str:
    """What a rank reads of what another operator makes, in words."""
    words = {2: ("examples", "channels"), 3: ("examples", "positions", "channels")}
    names = words.get(len(need.parts), ("examples", "channels", "rows", "columns"))
    cut = [name for name, parts in zip(names, need.parts, strict=False) if parts > 1]
    if not cut:
        return f"all of {source}"
    around = ", and the rows around them" if need.window else ""
    return f"a part of the {' and of the '.join(cut)} of {source}{around}"
