"""What dumps of torch's Flight Recorder show, in sentences; `recorder_comparison` has found it out."""

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from course_utils.lessons.profiling.dumps.recorder_comparison import (
    DEFAULT_GROUP,
    NO_DESCRIPTION,
    Calls,
    DumpComparison,
    Feature,
    GroupKind,
    GroupState,
    LoneMessage,
    RecordedGroup,
    compare_dumps,
)
from course_utils.lessons.profiling.dumps.recorder_dumps import GLOO, Dumps, RecordedCall, read_dumps
from course_utils.lessons.profiling.dumps.recorder_waits import (
    FirstRanks,
    example_groups,
    example_messages,
    first_ranks,
)
from course_utils.words import capital, count, join, printable, rank_ranges, seconds_text, wrapped

MOST_EXAMPLES = 2
"""Of groups in which something is wrong."""
MOST_GROUPS, MOST_PARTIES, MOST_FILES, MOST_RANGES = 4, 6, 5, 12
"""More of them are counted and not listed."""
NOTICEABLE_SECONDS = 1.0
"""Ranks that come later than the first by less are not called late; clocks of nodes differ by milliseconds."""
PUBLIC_NAMES = {
    "_all_gather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "all_reduce_barrier": "barrier",
}
"""Torch's own names of collectives, and those of the functions that people call."""
NEXT = {
    Feature.OPERATION: "compare these lines of your program, and look for a condition that isn't the same on all ranks",
    Feature.TYPE: "find out why the tensors have different types, for example mixed precision on some ranks only",
    Feature.SIZE: "find out why the tensors have different sizes, for example a shorter last batch on some ranks",
}


def dumps_report(paths: str | Path | Sequence[str | Path], most: int = MOST_EXAMPLES) -> str | None:
    """Return what the Flight Recorder's dumps in a folder, or the given files, show; None if there are no dumps.

    Args:
        most: groups that are described. Others in which something is wrong are counted.

    Raises:
        CourseError: there is no such file or folder.
    """
    dumps = read_dumps(paths)
    return dumps_text(dumps, compare_dumps(dumps), most) if dumps.ranks or dumps.unread else None


def dumps_text(dumps: Dumps, found: DumpComparison, most: int = MOST_EXAMPLES) -> str:
    """Say at which ranks to look first, and show why: where groups stop, who waits there, and who has not come."""
    first = first_ranks(found)
    states = example_groups(first, most) if first.suspects else list(found.causes[:most])
    messages = example_messages(found, first, most - 1 if states else most)
    parts, advised = [f"Flight Recorder: {_first_text(dumps, found, first)}"], set()
    for state in states:
        advice = [] if found.follows(state) or state.kind in advised else _advice(state, found)
        parts.append("\n".join([_group_text(state, found), *advice]))
        advised.add(state.kind)
    if found.is_circle:
        parts.append(
            "These groups wait for each other. Such a deadlock arises if ranks call collectives of several groups in "
            "different orders, or if one of them leaves a collective out. Next: compare the lines above."
        )
    described = {rank for state in states for rank in state.absent}
    parts += [_message_text(lone, found, lone.peer in described) for lone in messages]
    parts.append(" ".join([*_other_texts(found, first, states, messages), *_over_texts(found)]))
    parts.append(" ".join(_read_texts(dumps, found)))
    return wrapped("\n\n".join(filter(None, parts)))


def _first_text(dumps: Dumps, found: DumpComparison, first: FirstRanks) -> str:
    """The first sentence, in which there is what to do."""
    if not dumps.ranks:
        return "none of the dumps can be read."
    if not found.last:
        return "these ranks have recorded nothing."
    if not found.is_wrong:
        return _well_text(found)
    if not first.suspects:
        return "as far as these dumps show, no rank waits for a different one in particular."
    if not first.shows_where:
        return (
            f"{ranks_text(first.waiting)} {'waits' if len(first.waiting) == 1 else 'wait'}, and which of the "
            f"{count(len(first.missing), 'rank')} without a {_dump(first.missing, found)} is to blame can't be known."
        )
    return _suspects_text(first, found)


def _dump(ranks: Iterable[int], found: DumpComparison) -> str:
    """What these ranks have none of: a dump, or one that can be read."""
    return "readable dump" if found.unreadable.intersection(ranks) else "dump"


def _well_text(found: DumpComparison) -> str:
    if found.is_compared:
        return "the ranks agree in everything that they have called, and all of it has ended. No collective waits."
    ranks = ranks_text(found.ranks)
    ended = f"all that {ranks} {'has' if len(found.ranks) == 1 else 'have'} called has ended"
    if not found.missing:
        return f"{ended}. No collective waits."
    dumps = "the dump or the log" if len(found.missing) == 1 else "the dumps or the logs"
    return (
        f"{ended}, and there is no dump to compare this with, so no rank can be named as the cause. "
        f"Next: look for {dumps} of {ranks_text(found.missing)}."
    )


def _suspects_text(first: FirstRanks, found: DumpComparison) -> str:
    whom = "it" if len(first.suspects) == 1 else "them"
    waits = "may be waiting" if not first.is_certain else "waits" if len(first.waiting) == 1 else "wait"
    indirectly = "" if first.is_direct else ", directly or through others"
    others = f"{ranks_text(first.waiting)} {waits} for {whom}{indirectly}" if first.waiting else ""
    dump = _dump(first.missing, found)
    if not first.ranks:
        return f"look at {ranks_text(first.missing)} first. There is no {dump} of {whom}, and {others}."
    each_other = f"they {'wait' if first.is_certain else 'may be waiting'} for each other"
    why = [each_other, others] if first.circle == first.ranks else [others]
    further = (
        f" The same may hold for {ranks_text(first.missing)}, of which there is no {dump}." if first.missing else ""
    )
    return f"look at {ranks_text(first.ranks)} first, because {', and '.join(filter(None, why))}.{further}"


def _other_texts(
    found: DumpComparison, first: FirstRanks, states: Sequence[GroupState], messages: Sequence[LoneMessage]
) -> list[str]:
    """How many groups and messages are left, after those that have been described, and what holds for them."""
    shown, followers = set(map(id, states)), found.followers
    waits = {id(wait.cause) for wait in first.waits}
    left = [state for state in found.causes if id(state) not in shown]
    together = [state for state in left if state.kind is GroupKind.TOGETHER and id(state) not in waits and first.waits]
    groups, lone = len(left) - len(together), len(found.messages) - len(messages)
    others = [count(number, f"other {thing}") for number, thing in ((groups, "group"), (lone, "message")) if number]
    texts = [f"The same or similar holds for {join(others)}."] if others else []
    if together:
        texts.append(
            f"In {count(len(together), 'more group')}, all ranks have come to a collective that has not ended, "
            "which may follow from the above."
        )
    if len(followers := [state for state in followers if id(state) not in shown]) == 1:
        return [*texts, _follower_text(followers[0], found)]
    held_up = sum(state.is_held_up for state in followers)
    if behind := len(followers) - held_up:
        verb = "waits" if behind == 1 else "wait"
        texts.append(f"{count(behind, 'more group')} {verb} for ranks that wait elsewhere.")
    if held_up:
        these = "this follows" if held_up == 1 else "these follow"
        texts.append(
            f"In {count(held_up, 'more group')} all ranks have come, but one of them still waits in an older call, so "
            f"{these} from the above."
        )
    return texts


def _read_texts(dumps: Dumps, found: DumpComparison) -> list[str]:
    sentences = []
    if dumps.ranks:
        sentences.append(f"Read: {'the dump' if len(dumps.ranks) == 1 else 'dumps'} of {ranks_text(dumps.ranks)}.")
    if absent := [rank for rank in found.missing if rank not in found.unreadable]:
        sentences.append(f"There is no dump of {ranks_text(absent)}.")
    for file, why in list(dumps.unread.items())[:MOST_FILES]:
        sentences.append(f"{printable(file.name)} can't be read: {why}.")
    if len(dumps.unread) > MOST_FILES:
        sentences.append(f"Nor can {count(len(dumps.unread) - MOST_FILES, 'other file')}.")
    if dumps.left_out:
        names = join([printable(f"{file.parent.name}/{file.name}") for file in dumps.left_out[:MOST_FILES]])
        sentences.append(f"Some ranks have a second dump, from a different run, which is left out: {names}.")
    if dumps.has_open_calls_only:
        sentences.append("These dumps hold only calls that have not ended.")
    elif dropped := [rank for rank, dump in dumps.ranks.items() if dump.has_dropped]:
        whose = "these ranks" if len(dropped) == len(dumps.ranks) else ranks_text(dropped)
        sentences.append(f"The first calls of {whose} are no longer in the buffer.")
    if found.last and not any(call.line for dump in dumps.ranks.values() for call in dump.calls):
        sentences.append("The dumps have no stacks, so the lines of the program are not known.")
    return [*sentences, *_gloo_texts(found)]


def _group_text(state: GroupState, found: DumpComparison) -> str:
    texts = {
        GroupKind.DIFFERENT: _different_text,
        GroupKind.BEHIND: _behind_text,
        GroupKind.UNKNOWN: _unknown_text,
        GroupKind.ALONE: _alone_text,
        GroupKind.TOGETHER: _together_text,
    }
    group = name_text(state.group) if state.kind is GroupKind.ALONE else group_text(state.group)
    return "\n".join([f"In {group}, {_agreed_text(state)}{texts[state.kind](state, found)}", *_lagging_lines(state)])


def _lagging_lines(state: GroupState) -> list[str]:
    """On which ranks earlier collectives go on, if others have ended them."""
    called = state.called
    ranks_of: dict[tuple[int, int], list[int]] = {}
    for rank, number in state.lagging.items():
        if number < state.sequence:
            ranks_of.setdefault((number, min(called[rank], state.ended_elsewhere)), []).append(rank)
    return [
        f"    {ranks_text(ranks)}: {_collectives_text(first, last)} not ended here, though "
        f"{'it has' if first == last else 'they have'} elsewhere"
        for (first, last), ranks in list(ranks_of.items())[:MOST_PARTIES]
    ]


def _collectives_text(first: int, last: int) -> str:
    several = f"{first} {'and' if last == first + 1 else 'to'} {last}"
    return f"collectives {several} have" if first < last else f"collective {first} has"


def _agreed_text(state: GroupState) -> str:
    """How far the ranks agree, as the beginning of a sentence that ends with what comes then."""
    if not state.agreed or len(state.group.members) - len(state.missing) < 2 or state.kind is GroupKind.TOGETHER:
        return ""
    first, last = state.agreed
    several = f"{first} {'and' if last == first + 1 else 'to'} {last}"
    return f"the ranks agree in {f'collectives {several}' if first < last else f'collective {first}'}, but "


def _different_text(state: GroupState, found: DumpComparison) -> str:
    differs = {
        Feature.OPERATION: "different operations",
        Feature.TYPE: "different types",
        Feature.SIZE: "different sizes",
    }[state.feature]
    what = f"collective {state.sequence} has {differs}:"
    if len(state.parties) < 2:
        what = f"in collective {state.sequence} all ranks together send more or fewer numbers than they expect:"
    absent = [f"    {ranks_text(state.absent)}: not called yet"] if state.absent else []
    return "\n".join([what, *_party_lines(state), *absent])


def _behind_text(state: GroupState, found: DumpComparison) -> str:
    verb = "hasn't" if len(state.absent) == 1 else "haven't"
    what = f"{ranks_text(state.absent)} {verb} called collective {state.sequence}:"
    return "\n".join([what, *_party_lines(state), *(f"    {text}" for text in _absent_texts(state, found))])


def _absent_texts(state: GroupState, found: DumpComparison) -> list[str]:
    ranks_of: dict[str, list[int]] = {}
    for rank in state.absent:
        own, last = state.last.get(rank), found.last.get(rank)
        here = f"the last collective here is number {own.sequence}" if own else _uncalled_text(rank, state, found)
        if own and own == last:
            text = f"{here}, {call_text((own,))}"
        else:
            text = f"{here}{f'; the last call is {_last_text(last)}' if last else ''}"
        ranks_of.setdefault(text, []).append(rank)
    lines = [f"{ranks_text(ranks)}: {text}" for text, ranks in ranks_of.items()]
    left = len(lines) - MOST_PARTIES
    return [*lines[:MOST_PARTIES], f"and {count(left, 'more line')} like these"] if left > 0 else lines


def _uncalled_text(rank: int, state: GroupState, found: DumpComparison) -> str:
    """What is known of a rank in whose dump there is no call of this group."""
    progress = state.progress.get(rank)
    if progress and progress.called:
        ended = "has ended" if progress.ended == progress.called else "has not ended"
        return f"the last collective here is number {progress.called}, which {ended}"
    return "no open call here" if found.has_open_calls_only else "nothing called here"


def _last_text(call: RecordedCall) -> str:
    """The call, its group, and whether it goes on; over gloo, that it is over means little."""
    group = "the default group" if call.description == DEFAULT_GROUP else f"group {call.group}"
    goes_on = "" if call.is_over else ", which has not ended"
    return f"{call_text((call,))}, in {group}{goes_on}"


def _alone_text(state: GroupState, found: DumpComparison) -> str:
    (rank,) = state.calls
    who = f"; {ranks_text(state.group.candidates)} may be" if state.group.candidates else ""
    return (
        f"only rank {rank} has called collective {state.sequence}, {call_text(state.calls[rank])}. "
        f"Torch hasn't recorded who else is in this group{who}."
    )


def _unknown_text(state: GroupState, found: DumpComparison) -> str:
    if any(calls[-1].is_over for calls in state.calls.values()):
        what = f"collective {state.sequence} is the last that they have called"
    else:
        what = f"collective {state.sequence} has not ended"
    return "\n".join(
        [f"{what}, and there is no {_dump(state.missing, found)} of {_unseen(state)}:", *_party_lines(state)]
    )


def _unseen(state: GroupState) -> str:
    """The ranks of the group without a dump, which torch may not have recorded either."""
    further = count(state.group.size - len(state.group.members), "further rank")
    return ranks_text(state.missing) if state.missing else further


def _together_text(state: GroupState, found: DumpComparison) -> str:
    lines = [f"all ranks have come to collective {state.sequence}, which has not ended:", *_party_lines(state)]
    if over := [rank for rank in state.present if rank not in state.waiting]:
        lines.append(f"    it has ended on {ranks_text(over)}")
    scheduled, started = (
        [rank for rank, calls in state.calls.items() if calls[-1].state == name] for name in ("scheduled", "started")
    )
    if scheduled and started:
        lines.append(
            f"    on the GPUs of {ranks_text(scheduled)} it has not begun, on those of {ranks_text(started)} it has"
        )
    latest, seconds = lateness(state)
    if seconds >= NOTICEABLE_SECONDS:
        lines.append(f"    rank {latest} came last, {seconds_text(seconds)} after the first")
    return "\n".join(lines)


def _lagging_advice(state: GroupState) -> str:
    """Where to look if some ranks have called what others have ended, and it goes on there."""
    is_single = len(state.lagging) == 1
    log, gpu = ("the log", "whose GPU is") if is_single else ("the logs", "whose GPUs are")
    failed = "The GPU may have failed or hang" if is_single else "These GPUs may have failed or hang"
    process, node = ("its process", "its node") if is_single else ("their processes", "their nodes")
    return (
        f"Next: look into {log} of {ranks_text(state.lagging)}, {gpu} behind, for a CUDA error for example. {failed}, "
        f"or {process} may hang. For errors of NVIDIA's GPUs, run `dmesg | grep -i xid` and `nvidia-smi` on {node}."
    )


def _idle_text(state: GroupState, found: DumpComparison) -> str:
    """Say of ranks that have not come that their calls have ended, if that is known, as it leaves out their GPUs."""
    counted = [state.progress.get(rank) for rank in state.absent]
    has_ended = all(progress and progress.ended == progress.called for progress in counted)
    if not has_ended or any(rank in found.last and not found.last[rank].is_over for rank in state.absent):
        return ""
    if len(counted) == 1:
        return "All that it has called here has ended, so it is or hangs in its own program. "
    return "All that they have called here has ended, so they are or hang in their own programs. "


def _advice(state: GroupState, found: DumpComparison) -> list[str]:
    """What to do next, in a line; nothing if that is not known."""
    is_gloo = any(calls[-1].backend == GLOO for calls in state.calls.values())
    if state.kind is GroupKind.DIFFERENT:
        return [f"Next: {NEXT[state.feature]}."]
    if state.lagging:
        return [_lagging_advice(state)]
    if state.kind is GroupKind.BEHIND:
        last = found.last.get(state.absent[0]) if len(state.absent) == 1 else None
        after = f" after {line_text(last)}" if last and last.line else ""
        unrecorded = "data or a message" if is_gloo else "data"
        doing, they = ("does", "It") if len(state.absent) == 1 else ("do", "They")
        return [
            f"Next: find out what {ranks_text(state.absent)} {doing}{after}. "
            f"{_idle_text(state, found)}{they} may be computing, have taken a different branch, have returned, have "
            f"raised an error, or be waiting for something that isn't recorded, such as {unrecorded}."
        ]
    if state.kind is GroupKind.UNKNOWN:
        return [
            f"Next: look into the {'log' if len(state.missing) == 1 else 'logs'} of {_unseen(state)}. A rank that dies "
            "or raises an error often writes no dump, so it may be the cause. Whether it came to this collective "
            "can't be known."
        ]
    if state.kind is GroupKind.TOGETHER:
        return [
            "Next: look outside of your program, which calls the same on all of these ranks: at the network, "
            f"{'' if is_gloo else 'at the GPUs, '}or at a rank that is slow."
            f"{'' if is_gloo else ' NCCL_DEBUG=INFO shows which connections NCCL uses.'}"
        ]
    return []


def lateness(state: GroupState) -> tuple[int, float]:
    """Return the rank that came last to the collective, and how many seconds after the first."""
    created = {rank: calls[0].created for rank, calls in state.calls.items() if calls[0].created > 0}
    if len(created) < len(state.calls):
        return -1, 0.0
    latest = max(created, key=created.__getitem__)
    return latest, created[latest] - min(created.values())


def _party_lines(state: GroupState) -> list[str]:
    parties: list[tuple[tuple[int, ...], Calls]] = []
    for party in state.parties:
        by_line: dict[str, list[int]] = {}
        for rank in party:
            by_line.setdefault(call_text(state.calls[rank]), []).append(rank)
        parties += [(tuple(ranks), state.calls[ranks[0]]) for ranks in by_line.values()]
    lines = [f"    {ranks_text(ranks)}: {call_text(calls)}" for ranks, calls in parties[:MOST_PARTIES]]
    left = len(parties) - MOST_PARTIES
    return [*lines, f"    and {count(left, 'more line')} like these"] if left > 0 else lines


def _gloo_texts(found: DumpComparison) -> list[str]:
    """What torch doesn't record over gloo, as far as it matters here."""
    texts = []
    if any(call.backend == GLOO for call in found.last.values()):
        texts.append("Over gloo, torch records no sends or receives, and a collective that has failed counts as ended.")
        if any(not state.group.is_known and state.group.description != DEFAULT_GROUP for state in found.groups):
            texts.append("Nor does it record who is in a group, so the ranks above are those that have used it.")
    return [" ".join(texts)] if texts else []


def _message_text(lone: LoneMessage, found: DumpComparison, is_described: bool) -> str:
    """`is_described`: whether the last call of the other rank has already been named."""
    call, peer = lone.call, lone.peer
    waits = f"Rank {call.rank} {'waits in' if not call.is_over else 'has called'} {call_text((call,))}"
    direction = "to" if call.operation == "send" else "from"
    counterpart = "receive" if call.operation == "send" else "send"
    text = f"{waits}, {direction} rank {peer}"
    if lone.other:
        return f"{text}, but rank {peer} has called {call_text((lone.other,))}. Next: {NEXT[Feature.SIZE]}."
    if not lone.has_dump:
        return f"{text}, of which there is no {_dump([peer], found)}. Next: look into the log of rank {peer}."
    last = found.last.get(peer)
    doing = f" Its last call is {_last_text(last)}." if last and not is_described else ""
    return f"{text}, but rank {peer} has not called the matching {counterpart}.{doing}"


def _follower_text(state: GroupState, found: DumpComparison) -> str:
    if state.is_held_up:
        return (
            f"In {group_text(state.group)}, all ranks have come to collective {state.sequence}, but one of them still "
            "waits in an older call. So this follows from the above."
        )
    waited_for = state.waited_for
    reason = found.waits_in(waited_for[0], state.group.name)
    where = group_text(reason.group) if isinstance(reason, GroupState) else "a send or a receive"
    verb = "is" if len(waited_for) == 1 else "are"
    return (
        f"{capital(group_text(state.group))}: collective {state.sequence} waits for {ranks_text(waited_for)}, which "
        f"{verb} waiting in {where}. So this follows from the above."
    )


def _over_texts(found: DumpComparison) -> list[str]:
    over = [state for state in found.groups if state.kind is GroupKind.OVER and state.last and len(state.present) > 1]
    if not over or not found.is_wrong:
        return []
    names = join([group_text(state.group) for state in over[:MOST_GROUPS]])
    more = f" and {count(len(over) - MOST_GROUPS, 'other group')}" if len(over) > MOST_GROUPS else ""
    return [f"In {names}{more}, the ranks agree, and all that they have called has ended."]


def group_text(group: RecordedGroup) -> str:
    """Return a group's name and its ranks: "group 3 (row) of ranks 0 and 1"."""
    return f"{name_text(group)} of {ranks_text(group.members)}"


def name_text(group: RecordedGroup) -> str:
    """Return a group's name: "group 3 (row)", "the default group"."""
    if group.description == DEFAULT_GROUP:
        return "the default group"
    if not group.name:
        return "a group without a name"
    return f"group {group.name}" if group.description in NO_DESCRIPTION else f"group {group.name} ({group.description})"


def call_text(calls: Calls) -> str:
    """Return what was called: "all_reduce of 15 float32, line 3 of train.py"."""
    call = calls[0]
    name = PUBLIC_NAMES.get(call.operation, call.operation)
    given, result = (sum(_elements(shape) for shape in shapes) for shapes in (call.inputs, call.outputs))
    types = "/".join(sorted(set(call.types)))
    numbers = f" of {given or result} {types}".rstrip() if given or result else ""
    giving = f" for {result}" if given and result not in (0, given) else ""
    coalesced = f" and {len(calls) - 1} more, coalesced" if len(calls) > 1 else ""
    line = f", {line_text(call)}" if call.line else ""
    return f"{name}{numbers}{giving}{coalesced}{line}"


def _elements(shape: Iterable[int]) -> int:
    product = 1
    for length in shape:
        product *= length
    return product


def line_text(call: RecordedCall) -> str:
    """Return where the program made a call: "line 3 of train.py"."""
    line = call.line
    if line is None:
        return ""
    return f"line {line.line} of {'a cell' if line.is_in_notebook else PurePosixPath(line.file).name}"


def ranks_text(ranks: Iterable[int]) -> str:
    """Return ranks as `rank_ranges` does, at most `MOST_RANGES` of them."""
    return rank_ranges(ranks, MOST_RANGES)
