"""The check of `tree_allreduce`: 2 ⌈log₂ P⌉ rounds and 2 (P − 1) messages, whatever P."""

from course_utils.checks.exercise import Cost, Exercise, Outcome
from course_utils.lessons.allreduce.checks.common import allreduce_cases, wrong_sums
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
    number=2,
    minutes=20,
    difficulty=2,
    turn="add up in pairs, then send the result back",
    title="along a tree to rank 0, and back again",
    cases=lambda rng, world_size: allreduce_cases(rng, world_size, tree_cost),
    wrong_blocks=wrong_sums,
    hints=(
        "This is the tree broadcast of lesson 4, first backwards and then forwards. Which ranks are still taking part "
        "in round 2, and which in round 3? What do their numbers have in common?",
        "Let distance be 1, 2, 4, … as long as it is less than P. If rank % (2 · distance) == distance, the rank sends "
        "to rank − distance. If rank % (2 · distance) == 0 and rank + distance < P, it receives from rank + distance, "
        "into an array of its own, and adds. For the way back, use the same distances in the opposite order. Now those "
        "that have sent receive, into `vector`, and those that have received send.",
    ),
    symptoms=spoken_of(__file__),
    praise=_praise,
)
