"""What the checks of lesson 0 share."""

from course_utils.checks.exercise import Case, Outcome


def world_sizes(world_size: int) -> list[int]:
    """All of them first, because that is what the learner has just seen; then fewer."""
    return list(range(world_size, 0, -1))


def all_listed(case: Case, outcome: Outcome) -> bool:
    """Every rank returned a list or a tuple with an entry for each rank."""
    return lists_returned(case, outcome) and all(len(result) == outcome.world_size for result in outcome.results)


def lists_returned(case: Case, outcome: Outcome) -> bool:
    """Every rank returned a list or a tuple."""
    return all(type(result) in (list, tuple) for result in outcome.results)
