"""What the checks of lesson 0 share."""

from course_utils.checks.exercise import NO_RESULT, Case, Outcome


def world_sizes(world_size: int) -> list[int]:
    """All of them first, because that is what the learner has just seen; then fewer."""
    return list(range(world_size, 0, -1))


def only_some_returned(case: Case, outcome: Outcome) -> bool:
    """Some ranks returned something, and others nothing."""
    returned = [result is not None for result in outcome.results]
    return any(returned) and not all(returned) and not any(result is NO_RESULT for result in outcome.results)


def lists_returned(case: Case, outcome: Outcome) -> bool:
    """Every rank returned a list or a tuple."""
    return all(type(result) in (list, tuple) for result in outcome.results)
