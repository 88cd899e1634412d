"""The check of `training_memory`: each part, counted from the model's shapes, for every way to cut it."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from course_utils.checks.cases import how_it_ended, in_a_row, rejected
from course_utils.checks.compare import describe
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.promised_errors import Raises
from course_utils.lessons.model_parallel.memory_parts import Memory, Parallelism

PLAIN = {"characters": 40, "width": 32, "heads": 4, "depth": 3, "context": 16}
DEFAULTS = {
    **{"optimizer": "adam", "precision": "float32", "data": 1, "zero": 0, "tensor": 1, "sequence": False},
    **{"checkpointing": False, "in_flight": 1},
}
ALL = {
    **{"optimizer": ("sgd", "momentum", "adam"), "precision": ("float32", "float64", "mixed"), "data": (2, 3, 7)},
    **{"zero": (0, 1, 2, 3), "tensor": (1, 2, 4), "sequence": (False, True)},
    **{"checkpointing": (False, True), "in_flight": (1, 2, 5)},
}
NUMBER = {"float32": 4, "float64": 8, "mixed": 2}
MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2}
PARTS = ("parameters", "gradients", "optimizer state", "activations")


class NotAMemory(TypeError):
    """What came back is something else."""


def call(function: Callable, model: dict, layers: tuple[int, int], batch: int, length: int, ways: dict) -> Any:
    """Call the learner's function on these layers of a model that is built here; a Memory comes back as a dict.

    What is the docstring's default is not handed over.
    """
    from course_utils.lessons.model_parallel.transformer import character_model

    named = {name: value for name, value in ways.items() if value != DEFAULTS[name]}
    cut = {name: named.pop(name) for name in ("data", "zero", "tensor", "sequence") if name in named}
    more = {"parallelism": Parallelism(**cut)} if cut else {}
    found = function(character_model(**model)[slice(*layers)], batch, length, **named, **more)
    if found is not None and not isinstance(found, Memory):
        raise NotAMemory(f"your function returned {describe(found)}, and a Memory is expected")
    return found and {_memory_for(part): size for part, size in found.parts().items()}


def _memory_for(part: str) -> str:
    return f"the memory for {part}"


def rejection(function: Callable, *arguments: Any) -> Raises:
    """Which error such a call raises."""
    return how_it_ended(partial(call, function), *arguments)


def counted(model: dict, layers: tuple[int, int], tensor: int) -> float:
    """Numbers of parameters on each rank, from the shapes."""
    width, tokens = model["width"], model["characters"] + model["context"]
    block = (12 * width**2 + 7 * width) / tensor + 6 * width  # norms and two biases are whole
    numbers = [tokens * width, *[block] * model["depth"], (model["characters"] + 2) * width]
    return sum(numbers[slice(*layers)])


def saved(model: dict, layers: tuple[int, int], batch: int, length: int, ways: dict) -> float:
    """Bytes of activations, as the library computes them, which has measured them."""
    from course_utils.lessons.model_parallel.activation_memory import saved_at_most
    from course_utils.lessons.model_parallel.transformer import character_model

    cut = Parallelism(tensor=ways["tensor"], sequence=ways["sequence"])
    sizes = batch, length, NUMBER[ways["precision"]]
    return saved_at_most(
        character_model(**model)[slice(*layers)], *sizes, cut, ways["checkpointing"], ways["in_flight"]
    )


def by_hand(model: dict, layers: tuple[int, int], batch: int, length: int, ways: dict) -> dict[str, float]:
    """What each rank keeps."""
    number, moments = NUMBER[ways["precision"]], MOMENTS[ways["optimizer"]]
    state = 4 + 4 * moments if ways["precision"] == "mixed" else number * moments
    sharers = [ways["data"] if ways["zero"] >= stage else 1 for stage in (3, 2, 1)]
    numbers = counted(model, layers, ways["tensor"])
    kept = [float(numbers * size / ranks) for size, ranks in zip((number, number, state), sharers, strict=True)]
    return dict(zip(map(_memory_for, PARTS), [*kept, float(saved(model, layers, batch, length, ways))], strict=True))


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(about: str = "", layers: tuple[int, int] = (0, 99), dropout: float = 0.0, **ways: Any) -> Case:
        model = PLAIN | {"characters": int(rng.integers(30, 90)), "depth": int(rng.integers(2, 5)), "dropout": dropout}
        given = (model, layers, int(rng.integers(1, 5)), int(rng.integers(8, 17)), DEFAULTS | ways)
        words = ", ".join(f"{name} {value}" for name, value in ways.items())
        label = "; ".join(part for part in (about or "a character model", words) if part)
        return Case(label, [given], [by_hand(*given)], with_comm=False, tolerance=1e-9, harness=call)

    yield case()
    yield case(optimizer="sgd")
    yield case(optimizer="momentum")
    yield case(precision="float64")
    yield case(precision="mixed")
    yield case(precision="mixed", optimizer="sgd")
    yield case(checkpointing=True)
    yield case("with dropout", dropout=0.1)
    yield case(in_flight=3)
    yield case("two blocks in a pipeline", (1, 3), in_flight=2)
    yield case("the last stage of a pipeline", (2, 99), checkpointing=True, in_flight=2)
    yield case("the head alone, the last stage of a pipeline", (-1, 99), checkpointing=True, in_flight=2)
    yield case(data=5)
    yield case(tensor=2)
    yield case(tensor=4, sequence=True)
    for zero in (1, 2, 3):
        yield case(data=5, zero=zero)
    yield case(precision="mixed", data=8, zero=int(rng.integers(1, 4)), tensor=2, checkpointing=True, in_flight=4)
    for dropout in (0.0, 0.2, 0.0):
        yield case(dropout=dropout, **{name: those[rng.integers(len(those))] for name, those in ALL.items()})
    yield in_a_row(case(optimizer="sgd"), case())
    for ways in ({"optimizer": "adagrad"}, {"precision": "float8"}, {"zero": 4}, {"zero": -1}):
        given = (PLAIN, (0, 99), 2, 8, DEFAULTS | ways)
        words = ", ".join(f"{name} {value}" for name, value in ways.items())
        yield rejected(f"what does not exist: {words}", given, harness=rejection)


def _in_another_order(case: Case, outcome: Outcome) -> bool:
    got, wanted = list(outcome.results[0].values()), list(case.expected[0].values())
    return got != wanted and sorted(got) == sorted(wanted)


EXERCISE = Exercise(
    library="training_memory",
    number=5,
    minutes=15,
    difficulty=2,
    turn="parameters × bytes ÷ replicas, and the activations",
    title="does it fit?",
    cases=_cases,
    needs_torch=True,
    hints=(
        "Begin with n, the sum over the layers, and with the three sizes in bytes. `batch` is already the number of "
        "texts on this rank, so its activations aren't divided. Which of the three products does each row of the "
        "table divide?",
        "`numbers = sum(layer_parameters(layer, parallelism.tensor) for layer in model)`. Multiply it by each of "
        "the three sizes that `bytes_for_each_parameter` returns. Divide by `parallelism.data` if "
        "`parallelism.zero` is at least 3 (parameters), 2 (gradients) or 1 (state). The activations are "
        "`saved_at_most(model, batch, length, NUMBER_BYTES[precision], parallelism, checkpointing, in_flight)`. "
        "Call `check_stage` first.",
    ),
    symptoms={"the parts are in another order": _in_another_order},
    praise=lambda outcome: (
        "every part, in three precisions, with three optimizers, cut over replicas, tensor ranks and micro-batches"
    ),
)
