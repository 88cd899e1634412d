"""The check of `train_ddp`: trainings that die, are stopped and started again, beside one that nobody interrupts."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, hangs, raised, same
from course_utils.lessons.gpu_nodes.checks import LESSON
from course_utils.lessons.gpu_nodes.checks.starts import (
    BATCHES,
    ENDED,
    IMAGES,
    LOSSES,
    NAMES,
    RESUMED,
    STEPS,
    THERE,
    WRITTEN,
    Start,
    after_starts,
    losses_of,
    steps_text,
    what_is_due,
)
from course_utils.words import ranks

CLOSE = 1e-4
"""Of losses: sums of 32-bit numbers in another order."""
Options = dict[str, Any]


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(size: int, about: str, *starts: Start, every: int = 4, batch: int = 240, **more: float) -> Case:
        options = {"batch_size": batch, "save_every": every, "seed": int(rng.integers(1000)), **more}
        losses = [] if options.get("dropout") else losses_of(options, max(start.epochs for start in starts))
        due = [what_is_due(options, starts, rank, losses) for rank in range(size)]
        label = f"{ranks(size)}, {about}; {IMAGES // batch} batches in an epoch, a checkpoint every {every} steps"
        with_group = {"backend": "gloo", "harness": after_starts, "judge": _as_without_interruption}
        return Case(label, [(options, starts)] * size, due, tolerance=CLOSE, **with_group)

    two = min(2, world_size)
    yield case(two, "nobody interrupts", Start())
    dies = (Start(dies_after=7), Start(dies_after=5), Start(), Start())
    yield case(two, "killed after step 7 and after step 9, then started twice more", *dies)
    yield case(
        two, "the last rank hears SIGTERM in step 3, and in step 5", Start(hears_in=3), Start(hears_in=2), Start()
    )
    whole, parts = Start(folder="whole"), [Start(dies_after=6, folder="parts"), Start(folder="parts")]
    yield case(two, "units are left out at random; killed after step 6", whole, *parts, dropout=0.3)
    yield case(1, "killed in the middle of its second writing", Start(breaks_off=2), Start())
    epochs = Start(epochs=1), Start(epochs=3, hears_in=5), Start(epochs=3)
    yield case(world_size, "one epoch, then two more, stopped at the end of one", *epochs, every=7)
    first, second = (int(step) for step in rng.integers(1, 6, 2))
    drawn = Start(3, dies_after=4 + first), Start(3, hears_in=second), Start(3)
    about = f"killed after step {4 + first}, stopped {second} later"
    yield case(min(3, world_size), about, *drawn, every=int(rng.integers(3, 6)), batch=int(rng.choice([204, 288])))


def _as_without_interruption(outcome: Outcome) -> str | None:
    options, starts = outcome.case.arguments[0]
    if not options.get("dropout"):
        return None
    whole, parts = (outcome.results[0][LOSSES.format(NAMES[number])] for number in (0, len(starts) - 1))
    if same(parts, whole, 1e-6):
        return None
    return (
        f"interrupted and started again, the training ends with the losses {_short(parts)}, else with {_short(whole)}"
    )


def _short(losses: Sequence[float]) -> str:
    return "[" + ", ".join(f"{loss:.5f}" for loss in losses) + "]"


def _seen(outcome: Outcome, key: str) -> Iterator[tuple[Any, Any, int]]:
    """What each rank saw of one kind, what is due, and the number of the start; those that are right are left out."""
    for result, due in zip(outcome.results, outcome.case.expected, strict=True):
        for number, name in enumerate(NAMES):
            one = key.format(name)
            if result is not NO_RESULT and one in due and not same(result.get(one), due[one], CLOSE):
                yield result.get(one), due[one], number


def _no_stop(case: Case, outcome: Outcome) -> bool:
    return any(str(due).startswith("Interrupted") for _, due, _ in _seen(outcome, ENDED))


def _waits_for_who_has_left(case: Case, outcome: Outcome) -> bool:
    return hangs(case, outcome) and any(start.hears_in for start in case.arguments[0][1])


def _one_order(case: Case, outcome: Outcome) -> bool:
    """Every batch is one of epoch 0, where others were due."""
    wrong = list(_seen(outcome, BATCHES))
    return bool(wrong) and all(batch.startswith("epoch 0,") for got, _, _ in wrong for batch in got)


def _goes_on_at(batch: str) -> Recogniser:
    """A recogniser of starts whose first batch is this one, or the first of another epoch."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return any(number and got and got[0].endswith(batch) for got, _, number in _seen(outcome, BATCHES))

    return recognises


def _losses_are_lost(case: Case, outcome: Outcome) -> bool:
    return any(got is not None and len(got) < len(due) for got, due, _ in _seen(outcome, LOSSES))


def _forgets(what: str) -> Recogniser:
    """A recogniser of the losses of a training that forgets something at each restart."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        options, starts = case.arguments[0]
        wrong = losses_of(options, max(start.epochs for start in starts), what, _restarts(case))
        return any(same(got, wrong[: len(got)], 1e-3) for got, _, _ in _seen(outcome, LOSSES))

    return recognises


def _restarts(case: Case) -> set[int]:
    """After how many steps a start that did any went on."""
    options, starts = case.arguments[0]
    in_epoch = IMAGES // options["batch_size"]
    found = set()
    for name, _ in zip(NAMES, starts):
        done = case.expected[0][BATCHES.format(name)]
        if done:
            epoch, batch = (int(word.split()[1]) for word in done[0].split(", "))
            found.add(epoch * in_epoch + batch)
    return found - {0}


def _says(key: str) -> Recogniser:
    return lambda case, outcome: any(_seen(outcome, key))


def _others_write(case: Case, outcome: Outcome) -> bool:
    first = WRITTEN.format(NAMES[0])
    seen = [result[first] for result in outcome.results[1:] if result is not NO_RESULT]
    return raised(outcome, "checkpoint.new") or any(written != steps_text([]) for written in seen)


def _writes_when_killed(case: Case, outcome: Outcome) -> bool:
    """A start that was to die has written once more, after its last step."""
    extra = [(got, due) for got, due, number in _seen(outcome, WRITTEN) if case.arguments[0][1][number].dies_after]
    return any(len(got) > len(due) and got != steps_text([]) for got, due in extra)


def _random(case: Case, outcome: Outcome) -> bool:
    return "interrupted and started again" in outcome.wrong


def _drawing(outcome: Outcome) -> Any:
    """What rank 0 did in each start, beside what was due."""
    from course_utils.lessons.gpu_nodes.pictures import StartRow, starts

    options, given = outcome.case.arguments[0]
    result, due = outcome.results[0], outcome.case.expected[0]
    rows = []
    for name, _ in zip(NAMES, given):
        did, was_due = (_numbers(seen[BATCHES.format(name)]) for seen in (result, due))
        written = [int(number) for number in re.findall(r"\d+", result[WRITTEN.format(name)]) if did]
        ended = result[ENDED.format(name)].replace("Interrupted after", "stopped\nafter") if did else "nothing\nto do"
        rows.append(StartRow(f"{name} start", did, was_due, written, ended))
    right = all(row.done == row.due for row in rows)
    title = "Every start does the batches that are due" if right else "A start does other batches than were due"
    return starts(rows, IMAGES // options["batch_size"], title)


def _numbers(batches: Sequence[str]) -> list[tuple[int, int]]:
    """(epoch, batch) of each; another batch than there is counts as batch −1."""
    found = [re.findall(r"\d+", one) for one in batches]
    return [(int(one[0]), int(one[1])) if len(one) == 2 else (0, -1) for one in found]


TRAIN_DDP = Exercise(
    name="train_ddp",
    library="course_utils.lessons.gpu_nodes.train_ddp:train_ddp",
    lesson=LESSON,
    place=1,
    minutes=20,
    difficulty=3,
    turn="go on where the checkpoint ends; train, write, and stop together",
    title="a training that can be killed",
    cases=_cases,
    needs_torch=True,
    picture=False,
    drawing=_drawing,
    hints=(
        "Write the loop first, without any checkpoint: epochs, batches, steps, losses. Then ask of each thing that "
        "changes in it: where does it stand after a restart? Which of them has only rank 0, which has every rank?",
        "`found = read_checkpoint(training.file)` has what you saved: `load_state_dict` of model and optimizer, "
        '`set_random_states(found["random"])`, `Place(**found["place"])`. Then epoch by epoch: `set_epoch`, and for '
        "`batch in training.batches()[place.batch:]`: step, `agreed()`, perhaps save, perhaps raise. To save: all "
        "ranks call `gather_random_states()`, rank 0 `save_checkpoint`s a dict, all meet in `dist.barrier()`.",
    ),
    mistakes=(
        Mistake("Which rank hears the signal, and how do the others learn of it?", _waits_for_who_has_left),
        Mistake("Does every rank make the same calls?", hangs),
        Mistake("What does a reader find while the file is being written?", lambda _, o: raised(o, "cannot be read")),
        Mistake("Does a process that is killed come to its `finally`?", _writes_when_killed),
        Mistake("Which ranks have to write what is the same on all of them?", _others_write),
        Mistake("What does the docstring promise for a training that is asked to stop?", _no_stop),
        Mistake("Who deals the images out anew in each epoch, and from what does it know the epoch?", _one_order),
        Mistake("Which batches of this epoch are done already?", _goes_on_at("batch 0")),
        Mistake("Is the checkpoint on the disk when a rank leaves?", _says(THERE)),
        Mistake("Where does the training go on?", _says(BATCHES)),
        Mistake("After which steps is a checkpoint due, and where else?", _says(WRITTEN)),
        Mistake("What became of the losses of the epochs before the restart?", _losses_are_lost),
        Mistake("What does the optimizer remember from step to step?", _forgets("optimizer")),
        Mistake("With which weights does the training go on?", _forgets("weights")),
        Mistake("Which random numbers does each rank draw after the restart?", _random),
        Mistake("After which step did this start begin, and after which did it end?", _says(RESUMED)),
        Mistake("After which step did this start begin, and after which did it end?", _says(STEPS)),
        Mistake("Which loss belongs into the list at the end of an epoch?", _says(LOSSES)),
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)}, killed in the middle of an epoch, of a writing, and stopped by a signal to one "
        "rank: every time the same batches and losses as without interruption; rank 0 alone writes"
    ),
)
