"""What a run's events say, in words: the title of its picture and the text for people who do not see it."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from course_utils.trace.events import Event, count_rounds, pair_messages, phase_seconds
from course_utils.words import bytes_text, count, join, percent, ranks_in_words, seconds_text

_TOLD = 8  # messages that the text alternative tells one by one


def extent(events: Sequence[Event]) -> tuple[float, float]:
    """When the first event began and the last one ended (those that never did end when they began), in seconds."""
    times = [time for event in events for time in (event.start, event.end) if math.isfinite(time)]
    return (min(times), max(times)) if times else (0.0, 0.0)


def collective_groups(events: Sequence[Event]) -> list[list[Event]]:
    """The k-th call of a collective on each rank, taken together: one list of events for each call."""
    seen: Counter[tuple[int, str]] = Counter()
    groups: dict[tuple[str, int], list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.start):
        if event.kind == "collective":
            groups[event.name, seen[event.rank, event.name]].append(event)
            seen[event.rank, event.name] += 1
    return list(groups.values())


def call_text(event: Event) -> str:
    """An operation as one would say it: `recv from 3`, `Send to 1`, `Allreduce`."""
    other = "any rank" if event.peer is None else event.peer
    return f"{event.name} {'to' if event.kind == 'send' else 'from'} {other}" if is_message(event) else event.name


def is_message(event: Event) -> bool:
    """Is it one side of a message?"""
    return event.kind in ("send", "recv")


def stuck_text(events: Sequence[Event]) -> str:
    """Who never got on, and where: empty where every operation ended."""
    waits = {event.rank: call_text(event) for event in events if not math.isfinite(event.end)}
    if not waits:
        return ""
    return f"stuck: {join([f'rank {rank} is waiting in {call}' for rank, call in sorted(waits.items())])}"


def phases_text(events: Sequence[Event]) -> str:
    """The share of each phase in the time spent in phases, over all ranks; empty where all are of one kind.

    Those that take less than 1% are not named.
    """
    seconds: dict[str, float] = defaultdict(float)
    for (_, name), spent in phase_seconds([event for event in events if math.isfinite(event.end)]).items():
        seconds[name] += spent
    total = sum(seconds.values())
    if len(seconds) < 2 or not total:
        return ""
    return join([f"{name} {percent(spent / total)}" for name, spent in seconds.items() if spent >= 0.01 * total])


def messages_text(events: Sequence[Event]) -> str:
    """How many messages in how many rounds, and how many never reached a receive."""
    sent = sum(event.kind == "send" and math.isfinite(event.end) for event in events)
    if not sent:
        return ""
    lost = sent - sum(math.isfinite(send.end) for send, _ in pair_messages(events))
    text = f"{count(sent, 'message')} in {count(count_rounds(events), 'round')}"
    return f"{text} ({lost} never received)" if lost else text


def collectives_text(events: Sequence[Event]) -> str:
    """Which collectives, and how often each."""
    calls = Counter(group[0].name for group in collective_groups(events))
    return join([name if number == 1 else f"{number} × {name}" for name, number in calls.items()])


def finding(events: Sequence[Event]) -> str:
    """The title: `3 messages in 2 rounds, 1.2 ms`."""
    if not events:
        return "Nothing was sent and nothing was recorded"
    start, end = extent(events)
    stuck, phases = stuck_text(events), phases_text(events)
    what = " and ".join(filter(None, [messages_text(events), collectives_text(events)]))
    if not stuck and phases:
        whole = f"{phases} of the time in phases, {seconds_text(end - start)} in all"
        return f"{what}: {whole}" if what else whole
    text = ", ".join(filter(None, [what, stuck or seconds_text(end - start)]))
    return text[:1].upper() + text[1:] if stuck else text


def description(events: Sequence[Event], ranks: Sequence[int]) -> str:
    """The text alternative of a timeline: the finding, then the messages and collectives in order of time."""
    first_ones = list(ranks) == list(range(len(ranks)))
    whose = f" of {count(len(ranks), 'rank') if first_ones else ranks_in_words(list(ranks))}" if ranks else ""
    if not events:
        return f"Timeline{whose}: nothing was sent and nothing was recorded."
    began, ended = extent(events)
    over = "" if stuck_text(events) else f" over {seconds_text(ended - began)}"
    sentences = [f"Timeline{whose}{over}: {finding(events)}."]
    pairs = [pair for pair in pair_messages(events) if math.isfinite(pair[1].end)]
    totals = [
        f"rank {send.rank} to rank {send.peer}, {bytes_text(send.bytes)}, "
        f"{seconds_text(send.start - began)} to {seconds_text(got.end - began)}"
        for send, got in pairs[:_TOLD]
    ]
    if totals:
        more = f"; and {len(pairs) - _TOLD} more" if len(pairs) > _TOLD else ""
        sentences.append(f"Messages: {'; '.join(totals)}{more}.")
    for group in collective_groups(events)[:_TOLD]:
        last = max(group, key=lambda event: event.start)
        ranks = ", ".join(str(rank) for rank in sorted(event.rank for event in group))
        came = f"; rank {last.rank} was the last" if len(group) > 1 else ""
        sentences.append(f"{last.name} on {'ranks' if len(group) > 1 else 'rank'} {ranks}{came}.")
    return " ".join(sentences)
