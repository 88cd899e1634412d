"""The check of `tree_allreduce`: 2 ⌈log₂ P⌉ rounds and 2 (P − 1) messages, whatever P."""

from course_utils.checks.exercise import Cost, Exercise, Outcome
from course_utils.lessons.allreduce.checks.common import allreduce_cases
from course_utils.lessons.allreduce.checks.symptoms import spoken_of
from course_utils.words import count, ranks


def tree_cost(size: int, length: int) -> Cost:
    """⌈log₂ P⌉ rounds up and as many down; no rank sends more than one whole vector in a round."""
    levels = (size - 1).bit_length()
    return Cost(rounds=2 * levels, messages=2 * (size - 1), bytes_per_rank=levels * length)


def _praise(outcome: Outcome) -> str:
    size = outcome.world_size
    return (
        f"{ranks(size)} agree after {count(outcome.run.rounds, 'round')} and {count(outcome.run.messages, 'message')}; "
        f"one rank after the other would take {count(2 * (size - 1), 'round')}"
    )


EXERCISE = Exercise(
    library="tree",
    number=1,
    minutes=20,
    difficulty=2,
    turn="gather the sum in pairs, then tell everybody",
    title="up a tree to rank 0, and down again",
    cases=lambda rng, world_size: allreduce_cases(rng, world_size, tree_cost),
    wrong_blocks=lambda frames, _: frames.incomplete(),
    hints=(
        "It is the tree broadcast of lesson 4 backwards, and then forwards. Of two ranks that meet, one sends its sum "
        "and waits for the result, the other adds. Which ranks still hold something after the first round, and after "
        "the second?",
        "Up: distance = 1, 2, 4, … while distance < P. A rank that leaves the remainder `distance` when divided by 2 "
        "· distance sends to rank − distance. A rank that leaves none receives from rank + distance, if there is one, "
        "into an array of its own, and combines. Down: the same distances backwards; the sender now receives, into "
        "`vector`, and the receiver sends.",
    ),
    symptoms=spoken_of(__file__),
    praise=_praise,
)
