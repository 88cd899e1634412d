"""The check of `fits`: models that a mistake of each kind takes for fitting, or for too large, and nobody else."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.lessons.hybrid_and_sharded.checks.zero_memory import by_hand
from course_utils.words import ranks

GIGABYTE = 10**9
PAPER = 12, 2, 2
"""Bytes of state, gradient and parameter that stand in the signature."""


@dataclass(frozen=True)
class Model:
    """What `fits` is asked about."""

    parameters: int
    size: int
    stage: int
    memory: float
    activations: float = 0.0
    bytes_of: tuple[float, ...] = ()

    @property
    def needs(self) -> float:
        """Bytes of parameters, gradients and state on each rank."""
        return by_hand(self.parameters, self.size, self.stage, *self.bytes_of)

    @property
    def fits(self) -> bool:
        """The right answer."""
        return self.needs + self.activations <= self.memory

    @property
    def named_bytes(self) -> dict[str, float]:
        """The bytes as the function is given them: the state's first, and without those that are the paper's."""
        given = zip(("state_bytes", "gradient_bytes", "parameter_bytes"), self.bytes_of[::-1], PAPER, strict=False)
        return {name: number for name, number, usual in given if number != usual}


MISTAKES: Mapping[str, Callable[[Model], bool]] = {
    "all memory is counted": lambda m: m.needs + m.activations <= m.memory * m.size,
    "the activations are forgotten": lambda m: m.needs <= m.memory,
    "the activations are divided": lambda m: m.needs + m.activations / m.size <= m.memory,
    "the stage is forgotten": lambda m: by_hand(m.parameters, m.size, 0, *m.bytes_of) + m.activations <= m.memory,
    "stage 3 is taken": lambda m: by_hand(m.parameters, m.size, 3, *m.bytes_of) + m.activations <= m.memory,
    "the bytes are forgotten": lambda m: by_hand(m.parameters, m.size, m.stage) + m.activations <= m.memory,
    "a tenth of the memory is left": lambda m: m.needs + m.activations <= 0.9 * m.memory,
    "the bytes are taken by place": lambda m: (
        by_hand(m.parameters, m.size, m.stage, *m.named_bytes.values()) + m.activations <= m.memory
    ),
}
"""What people write, and its answer; some are only wrong together, so a case shows the last that is."""


def asked(function: Callable, model: Model) -> bool:
    """Call the learner's function; bytes that are not the paper's are given by name."""
    given = (model.parameters, model.size, model.stage, model.memory)
    more = (model.activations,) if model.activations else ()
    return function(*given, *more, **model.named_bytes)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(model: Model, about: str = "", key: str = "") -> Case:
        words = [f"{model.parameters:,} parameters", ranks(model.size), f"stage {model.stage}"]
        words += [f"{model.memory / GIGABYTE:.6g} GB each"]
        words += [f"{model.activations / GIGABYTE:.6g} GB of activations"] if model.activations else []
        words += [f"{' + '.join(map(str, model.bytes_of))} bytes for each"] if model.bytes_of else []
        label = ", ".join(words) + about
        return Case(label, [(model,)], [model.fits], with_comm=False, harness=asked, key=key)

    yield case(Model(10**9, 4, 1, 20 * GIGABYTE))
    yield case(Model(10**9, 4, 1, GIGABYTE))
    for mistake in MISTAKES:
        for right in (True, False):
            found = _that_shows(mistake, right, rng)
            if found:
                yield case(found)
    for stage in rng.permutation(4):
        of_each = tuple(2 ** int(power) for power in rng.permutation(5)[:3])
        model = Model(int(rng.integers(1, 70)) * 10**9, int(rng.integers(2, 9)), int(stage), 0, GIGABYTE, of_each)
        for share in (0.99, 1.01):
            yield case(replace(model, memory=float(int(share * (model.needs + model.activations)))))
    fitting, too_large = Model(10**9, 4, 1, 20 * GIGABYTE), Model(9 * 10**9, 4, 1, 20 * GIGABYTE)
    yield in_a_row(case(fitting), case(too_large))
    yield in_a_row(case(too_large), case(fitting))
    yield in_a_row(case(fitting), case(replace(fitting, memory=5 * GIGABYTE)))
    yield case(Model(10**9, 1, 3, 20 * GIGABYTE), key="one-rank")
    yield case(Model(10**9, 4, 3, 6 * GIGABYTE, 3 * GIGABYTE))
    yield case(Model(1_060_000_000, 4, 1, 7_200_000_000))  # 7.42 GB
    for exact in (Model(10**9, 4, 1, 7 * GIGABYTE), Model(10**9, 4, 3, 7 * GIGABYTE, 3 * GIGABYTE)):
        yield case(exact, ", exactly as much as it needs", "exact-fit")
    yield case(Model(10**9, 4, 3, 7 * GIGABYTE - 1, 3 * GIGABYTE), ", one byte less than it needs", "one-byte-less")
    yield from rejections(
        "fits", [(10**9, 4, 4, 8e9), (10**9, 4, -1, 8e9), (10**9, 0, 1, 8e9), (10**9, 4, 4, 8e9, 9e9)]
    )


def _wrong(model: Model) -> list[str]:
    """The mistakes whose answer is wrong here."""
    return [name for name, answer in MISTAKES.items() if answer(model) != model.fits]


def _that_shows(mistake: str, right: bool, rng: np.random.Generator) -> Model | None:
    """A model with this right answer, where this mistake is the last to answer wrongly; None where there is none."""
    for _ in range(300):
        bytes_of = tuple(int(number) for number in rng.choice([1, 4, 8, 16], 3)) if rng.random() < 0.5 else ()
        model = Model(int(rng.integers(1, 70)) * 10**9, int(rng.integers(2, 9)), int(rng.integers(4)), 0, 0, bytes_of)
        activations = float(int(model.needs * 10 ** rng.uniform(-1, 1))) if rng.random() < 0.7 else 0.0
        memory = float(int((model.needs + activations) * 2 ** rng.uniform(-2, 2)))
        model = replace(model, memory=memory, activations=activations)
        if model.fits == right and _wrong(model)[-1:] == [mistake]:
            return model
    return None


EXERCISE = Exercise(
    library="zero_formulas",
    number=5,
    minutes=5,
    difficulty=1,
    turn="compare what one rank needs with its memory",
    title="does it fit?",
    cases=_cases,
    hints=(
        "`zero_memory` counts what a rank keeps all the time. What does it need in addition during a step, and is that "
        "divided among the ranks as well?",
        "Compare `zero_memory(parameters, ranks, stage, **bytes_of) + activations` with `memory`. All three numbers "
        "are for one rank.",
    ),
    praise=lambda outcome: "right for models that fit, that just fit, and that do not fit, in all stages",
)
