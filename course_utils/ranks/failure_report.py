"""What ranks have done, in words: which raised an error, which are waiting and where, which have returned."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from course_utils.ranks.ending import BrokenOff
from course_utils.ranks.engine.reply import Reply
from course_utils.trace.activity import IDLE, RUNNING, TESTING, WAITING, Activity
from course_utils.trace.latent_errors import mismatched_collectives
from course_utils.trace.ledger import threads_left
from course_utils.trace.standing import Standing
from course_utils.trace.wait_graph import ACTING_THREADS
from course_utils.words import capital, ranks_in_words


def replies_text(replies: list[Reply], world_size: int = 0, alone: str = "") -> str:
    """One clause for each thing that ranks do, those that wait first.

    Args:
        replies: of the ranks.
        world_size: all ranks of so many are not numbered.
        alone: what the only rank is called; "" for its number.
    """
    return _clauses(((reply.rank, _reply_clause(reply)) for reply in replies), world_size, alone)


@dataclass(frozen=True)
class Doing:
    """What a rank does while a call goes on.

    Attributes:
        activity: as the rank tells it.
        reply: its reply, if it has come.
        standing: where its code is, as far as that is known.
        computes: whether it uses the processor.
    """

    activity: Activity
    reply: Reply | None = None
    standing: Standing = Standing()
    computes: bool = True


def doings_text(doings: Mapping[int, Doing]) -> str:
    """The same, of ranks of a call that goes on."""
    return _clauses((rank, _doing_clause(doing)) for rank, doing in doings.items())


def activity_text(activity: Activity) -> str:
    """What a rank does at this moment."""
    return _activity_clause(activity)[1]


def reply_text(reply: Reply) -> str:
    """What a rank did when its call ended: "recv(source=1), line 3 of your cell", "has returned"."""
    return reply.waiting or _reply_clause(reply)[1]


def _clauses(doings: Iterable[tuple[int, tuple[int, str, str]]], world_size: int = 0, alone: str = "") -> str:
    groups: dict[tuple[int, str, str], list[int]] = defaultdict(list)
    for rank, doing in doings:
        groups[doing].append(rank)
    clauses = []
    for (_, singular, plural), ranks in sorted(groups.items(), key=lambda item: (item[0][0], item[1])):
        everyone = "both ranks" if world_size == 2 else f"all {world_size} ranks"
        who = alone or (everyone if len(ranks) == world_size > 1 else ranks_in_words(ranks))
        clauses.append(f"{who} {singular if len(ranks) == 1 else plural}")
    return "; ".join(clauses)


def _doing_clause(doing: Doing) -> tuple[int, str, str]:
    reply, standing = doing.reply, doing.standing
    if reply is not None and reply.kind == "returned" and threads_left(doing.activity.snapshot) == ACTING_THREADS:
        text = "returned, and a thread that its code started is still running"
        return 4, f"has {text}", f"have {text}"
    if reply is not None:
        return _reply_clause(reply)
    if standing.importing:
        return 2, f"is importing {standing.importing}", f"are importing {standing.importing}"
    if doing.activity.state == IDLE:
        return 4, "has returned", "have returned"
    if doing.activity.state != RUNNING or not (standing.line or not doing.computes):
        return _activity_clause(doing.activity)
    text = standing_text(standing.line, standing.call, doing.computes)
    return 2, f"is {text}", f"are {text}"


def standing_text(line: str, call: str, computes: bool) -> str:
    """What code does in a line: "computing at line 7 of your cell", "waiting in Queue.get, line 7 of your cell"."""
    if computes:
        return f"computing at {line}" if line else "computing"
    if not line:
        return "waiting"
    return f"waiting in {call}, {line}" if call else f"waiting at {line}"


def _activity_clause(activity: Activity) -> tuple[int, str, str]:
    if activity.state == WAITING:
        return 1, f"is waiting in {activity.text}", f"are waiting in {activity.text}"
    if activity.state == TESTING:
        return 1, f"keeps testing: {activity.text}", f"keep testing: {activity.text}"
    return (4, "is free", "are free") if activity.state == IDLE else (2, "is computing", "are computing")


def _reply_clause(reply: Reply) -> tuple[int, str, str]:
    """(order, words for one rank, words for several)."""
    if reply.kind == "raised":
        return 0, f"raised {reply.error}", f"raised {reply.error}"
    if reply.kind == "unusable":
        return 0, "can no longer use MPI", "can no longer use MPI"
    if reply.waiting:
        return 1, f"is waiting in {reply.waiting}", f"are waiting in {reply.waiting}"
    if reply.kind == "interrupted":
        line, call = (reply.error.line, reply.error.call) if reply.error else ("", "")
        text = standing_text(line, call, reply.computing)
        return 2, f"was {text}", f"were {text}"
    if reply.kind == "lost" and reply.error:
        where = reply.error.line
        return 3, f"was at {where} and has ended", f"were at {where} and have ended"
    if reply.kind == "lost":
        return 3, "has ended", "have ended"
    return 4, "has returned", "have returned"


def describe(replies: list[Reply], cause: BrokenOff | None = None, alone: str = "") -> str | None:
    """The whole report, which begins with a small letter; None when every rank returned.

    Args:
        replies: of all ranks.
        cause: why the run was broken off, if it was.
        alone: what the only rank is called, where there is one; "" for its number.
    """
    why = [cause.text] if cause else []
    explanation = [cause.explanation] if cause and cause.explanation else []
    if all(reply.kind == "returned" for reply in replies):
        return f"{cause.text} After that every rank returned, so the results may be wrong." if cause else None
    if cause and all(reply.kind == "lost" and not (reply.waiting or reply.error) for reply in replies):
        return cause.text
    if unusable := [reply for reply in replies if reply.kind == "unusable"]:
        return f"{replies_text(unusable, len(replies))}: an earlier call has broken it."
    raised = [reply for reply in replies if reply.kind == "raised"]
    others = [reply for reply in replies if reply.kind not in ("raised", "returned")]
    if raised:
        meanwhile = [f"Meanwhile, {replies_text(others)}."] if others else []
        events = sorted((event for reply in replies for event in reply.events), key=lambda event: event.start)
        what = [f"{replies_text(raised, len(replies), alone)}.", *meanwhile, *explanation]
        return " ".join([*what, *mismatched_collectives(events)])
    doings = replies_text(replies, len(replies), alone)
    return " ".join([*why, f"{capital(doings) if why else doings}.", *explanation])


def print_from(rank: int, text: str) -> None:
    """Print what a rank has printed, each line with its rank."""
    for line in text.splitlines():
        print(f"[rank {rank}] {line}")
