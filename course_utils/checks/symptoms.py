"""Symptoms: what an outcome shows of a mistake that no program could stand for; for the exercises of all lessons.

None of it asks a learner's object anything. `COMMON` names those that an exercise's file may speak of.
"""

import math
from typing import TYPE_CHECKING, Any

from course_utils.checks.compare import difference
from course_utils.checks.exercise import NO_RESULT, Case, Outcome, Recogniser
from course_utils.checks.finding import Kind
from course_utils.ranks.ending import Ending
from course_utils.trace.wait_graph import Receive, Send, single_needs

if TYPE_CHECKING:
    from course_utils.trace.events import Event


def same(got: Any, wanted: Any, tolerance: float | None = None) -> bool:
    """Whether a result is what is wanted."""
    return got is not NO_RESULT and difference(0, got, wanted, tolerance) is None


def raised(outcome: Outcome, words: str = "") -> bool:
    """Whether a rank raised an error whose type or text has these words in it."""
    errors = [reply.error for reply in outcome.attempt.replies if reply.error]
    return any(words.lower() in f"{error.type} {error.message}".lower() for error in errors)


def nothing_returned(case: Case, outcome: Outcome) -> bool:
    """Whether every rank returned None."""
    return all(result is None for result in outcome.results)


def only_some_returned(case: Case, outcome: Outcome) -> bool:
    """Whether all ranks came to their end, and some of them returned something, others None."""
    returned = [result is not None for result in outcome.results]
    return any(returned) and not all(returned) and not any(result is NO_RESULT for result in outcome.results)


def hangs(case: Case, outcome: Outcome) -> bool:
    """Whether a rank was interrupted while it waited, and none raised.

    In a deadlock of some, another may still compute when it is interrupted: it raised nothing of its own.
    """
    interrupted = any(reply.kind == "interrupted" for reply in outcome.attempt.replies)
    return interrupted and (outcome.attempt.ending == Ending.DEADLOCK or not raised(outcome))


def all_need(outcome: Outcome, kind: type[Send] | type[Receive]) -> bool:
    """Whether every rank that hangs waits for this: that its message is taken, or that one comes."""
    needs = [[*single_needs(reply.need)] for reply in outcome.attempt.replies if reply.kind == "interrupted"]
    return bool(needs) and all(parts and all(isinstance(part, kind) for part in parts) for parts in needs)


def uses_collectives(case: Case, outcome: Outcome) -> bool:
    """Whether any rank called a collective."""
    return any(event.kind == "collective" for reply in outcome.attempt.replies for event in reply.events or ())


def nothing_sent(case: Case, outcome: Outcome) -> bool:
    """Whether several ranks took part, and none of them sent a message or called a collective.

    Of a rank that was lost nobody knows.
    """
    replies = outcome.attempt.replies
    sent = any(event.kind != "phase" for reply in replies for event in reply.events or ())
    return outcome.world_size > 1 and not sent and all(reply.kind != "lost" for reply in replies)


def completed(outcome: Outcome, rank: int, kind: str) -> int:
    """How many messages `rank` has sent ("send") or received ("recv") for certain."""
    events = outcome.attempt.replies[rank].events or ()
    return sum(event.kind == kind and math.isfinite(event.end) for event in events)


def collectives(outcome: Outcome, rank: int) -> list["Event"]:
    """The collective calls of `rank` that were waited for, in the order in which they began."""
    events = outcome.attempt.replies[rank].events or ()
    return sorted((event for event in events if event.kind == "collective"), key=lambda event: event.start)


def collective_calls(outcome: Outcome, rank: int, name: str = "") -> int:
    """How many collective calls `rank` made (of one name)."""
    events = outcome.attempt.replies[rank].events or ()
    return sum(event.kind == "collective" and name in ("", event.name) for event in events)


def argument_changed(case: Case, outcome: Outcome) -> bool:
    """Whether something is wrong with nothing but an argument that was to stay as it was."""
    return outcome.finding is not None and outcome.finding.kind == Kind.ARGUMENT_CHANGED


def request_open(case: Case, outcome: Outcome) -> bool:
    """Whether all ranks returned, and a request was never waited for."""
    replies = outcome.attempt.replies
    return all(reply.kind == "returned" for reply in replies) and not all(reply.clean for reply in replies)


def endless(case: Case, outcome: Outcome) -> bool:
    """Whether a rank was still computing when it was broken off."""
    return any(reply.error and reply.error.type == "KeyboardInterrupt" for reply in outcome.attempt.replies)


def all_wait_in_a_send(case: Case, outcome: Outcome) -> bool:
    """Whether every rank that hangs waits in a send."""
    return hangs(case, outcome) and all_need(outcome, Send)


def all_wait_in_a_receive(case: Case, outcome: Outcome) -> bool:
    """Whether every rank that hangs waits in a receive."""
    return hangs(case, outcome) and all_need(outcome, Receive)


def nobody_sends(case: Case, outcome: Outcome) -> bool:
    """Whether every rank waits in a receive."""
    replies = outcome.attempt.replies
    return all_wait_in_a_receive(case, outcome) and all(reply.kind == "interrupted" for reply in replies)


def digits_lost(case: Case, outcome: Outcome) -> bool:
    """Whether all results are right to a few digits, as after numbers of a shorter dtype on the way."""
    if outcome.finding is None or outcome.finding.kind != Kind.VALUE or case.expected is None:
        return False
    pairs = zip(outcome.results, case.expected, strict=True)
    return all(wanted is ... or same(got, wanted, 2e-3) for got, wanted in pairs)


COMMON: dict[str, Recogniser] = {
    "it hangs": hangs,
    "it computes without end": endless,
    "all wait in a send": all_wait_in_a_send,
    "all wait in a receive": all_wait_in_a_receive,
    "every rank waits for a message": nobody_sends,
    "a request stays open": request_open,
    "a collective is called": uses_collectives,
    "nothing is sent": nothing_sent,
    "nothing is returned": nothing_returned,
    "only some ranks return": only_some_returned,
    "an argument is changed": argument_changed,
    "digits are lost": digits_lost,
}
"""Their names in an exercise's file: "Recognised when it hangs."."""
