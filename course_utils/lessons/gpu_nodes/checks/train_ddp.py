"""The check of `train_ddp`: runs that are killed or stopped and started again, compared with an undisturbed one."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Outcome, Recogniser
from course_utils.checks.finding import Finding, Kind, own
from course_utils.checks.symptoms import hangs, raised, same
from course_utils.lessons.gpu_nodes.checks.starts import (
    BATCH,
    BATCHES,
    ENDED,
    IMAGES,
    INTERRUPTED,
    LEFT_AFTER,
    LOSSES,
    NAMES,
    STARTS,
    WRITTEN,
    WRITTEN_AFTER,
    Start,
    after_starts,
    losses_of,
    what_is_due,
)
from course_utils.words import ranks

EPOCHS = 3
"""At most, in any case."""
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
    yield case(two, "undisturbed", Start())
    dies = (Start(dies_after=7), Start(dies_after=5), Start(), Start())
    yield case(two, "killed after step 7 and after step 9, then started twice more", *dies)
    yield case(
        two, "the last rank hears SIGTERM in step 3, and in step 5", Start(hears_in=3), Start(hears_in=2), Start()
    )
    whole, parts = Start(folder="whole"), [Start(dies_after=6, folder="parts"), Start(folder="parts")]
    yield case(two, "with dropout, killed after step 6", whole, *parts, dropout=0.3)
    yield case(1, "killed while it writes the second checkpoint", Start(breaks_off=2), Start())
    damaged = Start(epochs=1, dies_after=3), Start(epochs=1, damaged=True)
    yield case(
        two, "killed after step 3, and half of the checkpoint is lost before the second start", *damaged, every=2
    )
    epochs = Start(epochs=1), Start(epochs=3, hears_in=5), Start(epochs=3)
    yield case(world_size, "one epoch, then two more, stopped at the end of one", *epochs, every=7)
    first, second = (int(step) for step in rng.integers(1, 6, 2))
    drawn = Start(3, dies_after=4 + first), Start(3, hears_in=second), Start(3)
    about = f"killed after step {4 + first}, stopped {second} later"
    yield case(min(3, world_size), about, *drawn, every=int(rng.integers(3, 6)), batch=int(rng.choice([204, 288])))


def _as_without_interruption(outcome: Outcome) -> Finding | None:
    options, starts = outcome.case.arguments[0]
    if not options.get("dropout"):
        return None
    whole, parts = (outcome.results[0][STARTS[number]][LOSSES] for number in (0, len(starts) - 1))
    if same(parts, whole, 1e-6):
        return None
    words = "after an interruption, the run ends with the losses {got}, and without one it ends with {expected}"
    return own("losses-after-a-restart", words, got=_short(parts), expected=_short(whole))


def _short(losses: Sequence[float]) -> str:
    return "[" + ", ".join(f"{loss:.5f}" for loss in losses) + "]"


def _waits_for_who_has_left(case: Case, outcome: Outcome) -> bool:
    return hangs(case, outcome) and any(start.hears_in for start in case.arguments[0][1])


def _first_start_is_longer_or_shorter(case: Case, outcome: Outcome) -> bool:
    return outcome.finding.kind == Kind.LENGTH and outcome.finding.where == (STARTS[0], BATCHES)


def _others_write(case: Case, outcome: Outcome) -> bool:
    others = [result for result in outcome.results[1:] if result is not NO_RESULT]
    return raised(outcome, "checkpoint.new") or any(result[STARTS[0]][WRITTEN_AFTER] for result in others)


def _writes_when_killed(case: Case, outcome: Outcome) -> bool:
    return WRITTEN in outcome.finding.where and any(start.dies_after for start in case.arguments[0][1])


def _forgets(what: str) -> Recogniser:
    """A recogniser of the losses of a training that forgets something at each restart."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        options, starts = case.arguments[0]
        result, due = outcome.results[0], case.expected[0]
        losses = losses_of(options, max(start.epochs for start in starts), what, _restarts(options, due))
        ends = [(result[name][LOSSES], due[name][LOSSES]) for name in due if LOSSES in due[name]]
        found = [got for got, wanted in ends if not same(got, wanted, CLOSE)]
        return any(same(got, losses[: len(got)], 1e-3) for got in found)

    return recognises


def _restarts(options: Options, due: dict[str, Any]) -> set[int]:
    """After how many steps a start that did any went on."""
    first_batches = _numbers([start[BATCHES][0] for start in due.values() if start[BATCHES]], options)
    return {epoch * (IMAGES // options["batch_size"]) + batch for epoch, batch in first_batches} - {0}


def _drawing(outcome: Outcome) -> Any:
    """What rank 0 did in each start, beside what was due."""
    from course_utils.lessons.gpu_nodes.pictures import StartRow, starts

    options, given = outcome.case.arguments[0]
    result, due = outcome.results[0], outcome.case.expected[0]
    rows = []
    for name, start, _ in zip(NAMES, STARTS, given):
        seen = result[start]
        did, was_due = (_numbers(batches[BATCHES], options) for batches in (seen, due[start]))
        written = sorted({*seen[WRITTEN_AFTER]}) if did else []
        stopped = f"stopped\nafter step {seen[LEFT_AFTER]}" if seen[ENDED] == INTERRUPTED else seen[ENDED]
        rows.append(StartRow(f"{name} start", did, was_due, written, stopped if did else "nothing\nto do"))
    right = all(row.done == row.due for row in rows)
    title = (
        "Every start trains on the batches that are due"
        if right
        else "A start trains on different batches than are due"
    )
    return starts(rows, IMAGES // options["batch_size"], title)


def _numbers(batches: Sequence[str], options: Options) -> list[tuple[int, int]]:
    """(epoch, batch) of each; another batch than there is counts as batch −1."""
    in_epoch = range(IMAGES // options["batch_size"])
    known = {BATCH.format(epoch, batch): (epoch, batch) for epoch in range(EPOCHS) for batch in in_epoch}
    return [known.get(batch, (0, -1)) for batch in batches]


EXERCISE = Exercise(
    library="train_ddp",
    number=1,
    minutes=40,
    difficulty=3,
    turn="resume from the checkpoint; train, save, and stop together",
    title="a training run that can be killed",
    cases=_cases,
    needs_torch=True,
    drawing=_drawing,
    hints=(
        "Write the loop over epochs and batches first, without any checkpoint. Then look at everything that changes "
        "in it. What value must it have after a restart? Which of these values are the same on all ranks?",
        "If `found = read_checkpoint(training.file)` is not None, load the model and the optimizer with "
        '`load_state_dict`, call `set_random_states(found["random"])`, and set `progress = Place(**found["place"])`. '
        "In each epoch call `set_epoch`, and go through `training.batches()[progress.batch:]`. After each step ask "
        "`agreed()`, save if it is time or if they agreed, and then raise if they agreed. To save, all ranks call "
        "`gather_random_states()`, rank 0 calls `save_checkpoint`, and all ranks meet in `dist.barrier()`.",
    ),
    symptoms={
        "it waits for a rank that has left": _waits_for_who_has_left,
        "the killed write": _writes_when_killed,
        "other ranks write too": _others_write,
        "the first start is longer or shorter": _first_start_is_longer_or_shorter,
        "the optimizer is forgotten": _forgets("optimizer"),
        "the weights are forgotten": _forgets("weights"),
    },
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} were killed in the middle of an epoch and while writing, and stopped by a signal "
        "to one rank; every time the batches and losses were those of an undisturbed run, and only rank 0 wrote"
    ),
    shares_files=True,
    search_runs=0,
)
