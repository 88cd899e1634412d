"""The check of `match_terms`: steps drawn at random, told in five frameworks' words; gradients are really added."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome, Recogniser
from course_utils.checks.symptoms import same
from course_utils.lessons.read_the_manual.framework_terms import Step
from course_utils.lessons.read_the_manual.manuals import DEEPSPEED, FRAMEWORKS, HOROVOD, JAX, TENSORFLOW, TORCH
from course_utils.words import ranks as ranks_text

PASSES, GLOBAL, TIMES = "passes", "global_batch", "times_mean"
WHOLE, PER_GPU, STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
ADDS = {TORCH: ("sum", "mean"), HOROVOD: ("sum", "mean"), DEEPSPEED: ("mean", "mean"), JAX: ("mean", "mean")}
"""What a framework does with the gradients of a rank's passes, and then with those of the ranks, unless told."""
PLAIN, CHOSEN = 0, 1
"""Of a framework's two ways to add, the one of its manual's first example, and the other."""


@dataclass(frozen=True)
class Drawn:
    """A step, and how a framework is told of it.

    Attributes:
        framework: by its name.
        ranks, passes, micro_batch: its sizes.
        variant: `PLAIN` or `CHOSEN`.
        named: for DeepSpeed, which of its three numbers are given; the others follow.
    """

    framework: str
    ranks: int
    passes: int
    micro_batch: int
    variant: int = PLAIN
    named: tuple[str, ...] = (WHOLE, PER_GPU, STEPS)

    @property
    def settings(self) -> dict[str, Any]:
        """The step in the framework's words."""
        images = self.micro_batch * self.ranks
        accumulated = {"backward_passes_per_step": self.passes, "op": ("Average", "Sum")[self.variant]}
        numbers = {WHOLE: images * self.passes, PER_GPU: self.micro_batch, STEPS: self.passes}
        return {
            TORCH: {
                "batch_size": self.micro_batch,
                "no_sync": self.passes - 1,
                "reduction": ("mean", "sum")[self.variant],
            },
            HOROVOD: {"batch_size": self.micro_batch, **accumulated},
            DEEPSPEED: {name: numbers[name] for name in self.named},
            TENSORFLOW: {"batch": images, "loss": ("compute_average_loss", "reduce_mean")[self.variant]},
            JAX: {"batch": images, "every_k_schedule": self.passes, "collective": ("pmean", "psum")[self.variant]},
        }[self.framework]

    def step(self, rng: np.random.Generator) -> Step:
        """The step in the course's terms; `times_mean` from gradients that are added as the framework adds them."""
        of_images = rng.uniform(1, 2, (self.ranks, self.passes, self.micro_batch))
        chosen = self.variant == CHOSEN
        of_passes = of_images.sum(2) if chosen and self.framework == TORCH else of_images.mean(2)
        if self.framework == TENSORFLOW:
            of_passes = of_images.mean(2) if chosen else of_images.sum(2) / of_images.size
        over_passes, over_ranks = ADDS.get(self.framework, ("mean", "sum"))
        over_ranks = "sum" if chosen and self.framework in (HOROVOD, JAX) else over_ranks
        reached = getattr(getattr(of_passes, over_passes)(axis=1), over_ranks)()
        return Step(self.micro_batch, self.passes, of_images.size, float(reached / of_images.mean()))


def _drawn(rng: np.random.Generator) -> Iterator[Drawn]:
    """One framework after the other, as one writes them: a plain step first; then those that tell mistakes apart."""
    for framework in FRAMEWORKS:
        yield Drawn(framework, 4, 1, 8)
        yield from _steps_of(framework, rng)


def _steps_of(framework: str, rng: np.random.Generator) -> Iterator[Drawn]:
    """Each way with and without accumulation, in sizes that tell mistakes apart, and on one rank."""
    for variant, more in product((PLAIN, CHOSEN), (False, True)):
        ranks, passes, micro_batch = (int(number) for number in rng.permutation([2, 3, 5, 7, 11])[:3])
        passes = passes if more and framework != TENSORFLOW else 1
        if framework != DEEPSPEED:
            yield Drawn(framework, ranks, passes, micro_batch, variant)
        elif variant == PLAIN and more:
            for named in ((WHOLE, PER_GPU), (WHOLE, STEPS), (PER_GPU, STEPS), (PER_GPU, WHOLE, STEPS)):
                yield Drawn(framework, ranks, passes, micro_batch, named=named)
        elif variant == PLAIN:
            for named in ((WHOLE,), (PER_GPU,)):
                yield Drawn(framework, ranks, 1, micro_batch, named=named)
    for variant in (PLAIN, CHOSEN):
        yield Drawn(framework, 1, 1 if framework == TENSORFLOW else 3, 16, variant)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(drawn: Drawn) -> Case:
        words = ", ".join(f"{name}: {value}" for name, value in drawn.settings.items())
        given = (drawn.framework, drawn.settings, drawn.ranks)
        label = f"{drawn.framework}, {ranks_text(drawn.ranks)}, {words}"
        key = "summed-loss" if drawn.framework == TORCH and drawn.variant == CHOSEN else ""
        return Case(label, [given], [drawn.step(rng)], with_comm=False, tolerance=1e-9, key=key)

    for drawn in _drawn(rng):
        yield case(drawn)
    whole = Drawn(DEEPSPEED, 3, 2, 4, named=(WHOLE, STEPS))
    micro = Drawn(DEEPSPEED, 3, 1, 4, named=(PER_GPU,))
    yield in_a_row(case(whole), case(micro))


def _by(name: str, factor: str, power: int) -> Recogniser:
    """A recogniser of a number that is the right one times (1), or divided by (-1), the case's ranks or passes."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        got, due = getattr(outcome.results[0], name), getattr(case.expected[0], name)
        by = case.arguments[0][2] if factor == "ranks" else getattr(case.expected[0], factor)
        return by > 1 and same(got, due * by**power, 1e-9)

    return recognises


def _number_missing(case: Case, outcome: Outcome) -> bool:
    framework, settings, _ = case.arguments[0]
    return framework == DEEPSPEED and len(settings) < 3 and TIMES not in outcome.finding.where


def _turned_over(case: Case, outcome: Outcome) -> bool:
    got, due = outcome.results[0].times_mean, case.expected[0].times_mean
    return due != 1 and same(got, 1 / due, 1e-9)


EXERCISE = Exercise(
    library="framework_terms",
    number=1,
    minutes=15,
    difficulty=2,
    turn="for each framework: what is a batch, how many passes, and who divides?",
    title="five frameworks' settings in the course's terms",
    cases=_cases,
    hints=(
        "Draw the step: ranks side by side, in each rank its passes, in each pass its images. A sum in the place of a "
        "mean makes the gradient larger, as many times as there are things to add. At which of the three levels does "
        "this manual take a sum, and at which a mean?",
        "torch: `passes = settings['no_sync'] + 1`, and `times_mean` is `passes`, times the micro-batch if the loss is "
        "a sum. Horovod: `passes`, times `ranks` if `op` is Sum. DeepSpeed: always 1; a missing number follows from "
        "`train_batch_size = micro_batch * passes * ranks`, and `passes` is 1 where it does not follow. "
        "tf.distribute and JAX: `micro_batch = batch // ranks`, and `times_mean` is 1, or `ranks` where means are "
        "summed.",
    ),
    symptoms={
        "one of DeepSpeed's numbers is missing": _number_missing,
        "the ranks are missing in the global batch": _by(GLOBAL, "ranks", -1),
        "the passes are missing in the global batch": _by(GLOBAL, PASSES, -1),
        "times_mean has the ranks in it once too often": _by(TIMES, "ranks", 1),
        "times_mean has the ranks in it once too seldom": _by(TIMES, "ranks", -1),
        "times_mean has the passes in it once too often": _by(TIMES, PASSES, 1),
        "times_mean has the passes in it once too seldom": _by(TIMES, PASSES, -1),
        "times_mean is turned over": _turned_over,
    },
    praise=lambda outcome: (
        f"every number is right for {len(FRAMEWORKS)} frameworks, with sums and with means, and with and without "
        "accumulated gradients"
    ),
)
