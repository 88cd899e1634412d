"""What runs on the ranks: the learner's program and a slow one by turns, with fresh inputs in every round.

Nobody knows the inputs of the next round, so nothing kept from one call helps in another; and the slow program runs
behind the learner's, which cannot look its results up. Where the processor is the bottleneck its own seconds are
counted, which other programs on the machine do not lengthen; elsewhere the clock's, of the rank that took longest. What
counts is the median of the rounds' ratios.
"""

import cProfile
import inspect
import pstats
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course_utils.checks.compare import difference, is_changed
from course_utils.measuring import MARGIN, Compared

CLOSE = 1e-5
"""So near, relative to the largest one, the losses have to be."""
FEWEST, MOST = 3, 12
"""Rounds, beside a first one that only compares the results."""
LONG = 15.0
"""Seconds of a race after which `FEWEST` rounds are enough: on a busy machine more of them would take too long."""
HOPELESS_AFTER, HOPELESS = 4, 0.9
"""After this many rounds, who has reached less than this share of the factor is as slow as it looks."""
SLOW, YOURS = "slow", "yours"
Program = Callable[..., Any]
Places = Mapping[str, Sequence[tuple[str, str]]]
"""The name of a part → the functions whose time it is, as (file, function)."""


def processor_seconds() -> float:
    """The processor's seconds of this rank, and of the helpers that it has started and that have ended."""
    helpers = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + helpers.ru_utime + helpers.ru_stime


def meeting() -> Callable[[float], float]:
    """What `slowest_rank` does, in a group of its own: what a program sends or forgets to send does not get in."""
    import torch
    import torch.distributed as dist

    group = dist.new_group()

    def slowest(seconds: float) -> float:
        longest = torch.tensor(seconds, dtype=torch.float64)
        dist.all_reduce(longest, dist.ReduceOp.MAX, group=group)
        return longest.item()

    return slowest


def race(
    slow: Program,
    own: Program,
    inputs: Callable[[int], tuple],
    target: float,
    *,
    rounds: int = MOST,
    clock: Callable[[], float] = time.perf_counter,
    meet: Callable[[float], float] = float,
    places: Places | None = None,
) -> dict[str, Any]:
    """Run own, slow, own, slow, …, until the factor is clear, the rounds are over, or a result differs.

    Args:
        inputs: the number of a round → the arguments of both programs, made anew at each call. Round 0 does not count.
        target: the factor that is asked for.
        rounds: at most; with 0 the results are compared once, and no time counts.
        clock: `processor_seconds` where the processor's seconds are to count.
        meet: makes all ranks wait for each other and gives back the longest time; not for a rank on its own.
        places: where given, both run once more under Python's own profiler, and the seconds of each part are counted
            ("parts"), and how often each of its functions was called ("calls").

    Returns:
        Plain data: the results of the last round ("wanted", "found"), its number ("round"), the name of an argument
        that the learner's program changed, or "" ("changed"); the seconds of all rounds ("seconds"), and this rank's
        processor seconds of each ("processor"); and of each program's last run when it computed, and when messages were
        under way ("lanes").
    """
    seconds: dict[str, list[float]] = {SLOW: [], YOURS: []}
    processor: dict[str, list[float]] = {SLOW: [], YOURS: []}
    result: dict[str, Any] = {}
    for number in range(rounds + 1):
        results, lanes, taken, used, changed = {}, {}, {}, {}, ""
        for name, program in ((YOURS, own), (SLOW, slow)):
            arguments = inputs(number)
            meet(0.0)  # all begin together
            with _watched() as seen:
                begin, used_before = clock(), processor_seconds()
                results[name] = program(*arguments)
                took, used[name] = clock() - begin, processor_seconds() - used_before
            taken[name], lanes[name] = meet(took), seen
            if program is own and not number:
                changed = _changed(program, arguments, inputs(number))
        result = {"wanted": results[SLOW], "found": results[YOURS], "round": number, "changed": changed}
        result |= {"lanes": lanes, "seconds": seconds, "processor": processor}
        if meet(float(bool(changed) or difference(0, results[YOURS], results[SLOW], CLOSE) is not None)):
            return result
        if number:
            for name in (SLOW, YOURS):
                seconds[name].append(taken[name])
                processor[name].append(used[name])
            if _decided(Compared(seconds[YOURS], seconds[SLOW]), target):
                break
    if rounds and places is not None:
        result["parts"], result["calls"] = {}, {}
        for name, program in ((SLOW, slow), (YOURS, own)):
            result["parts"][name], result["calls"][name] = _parts(program, inputs(rounds + 1), places)
    return result


def _changed(program: Program, after: tuple, before: tuple) -> str:
    """The first argument that is no longer what it was, by name."""
    names = inspect.signature(program).parameters
    return next((name for name, was, now in zip(names, before, after, strict=False) if is_changed(was, now)), "")


def _decided(taken: Compared, target: float) -> bool:
    """Whether more rounds would not change the verdict: clearly reached, in every round, or out of reach."""
    if len(taken.first) >= FEWEST and taken.times >= MARGIN * target and taken.ratios.low >= target:
        return True
    if len(taken.first) >= FEWEST and sum(taken.first) + sum(taken.second) > LONG:
        return True
    return len(taken.first) >= HOPELESS_AFTER and taken.times < HOPELESS * target


@contextmanager
def _watched() -> Iterator[dict[str, Any]]:
    """What a program did: all times are readings of `time.perf_counter`, in seconds.

    "begin" and "end" of all; "computing" on its played processor, and the seconds that were "asked" for; what was on
    the played "link", and up to when it was "waited" for; its "messages", the collectives; the names of all operations
    that were "called"; how long it would take on the played hardware "alone", and how much of its computing is "before"
    each collective; when the last training step was done ("stepped"), or 0.0.
    """
    from course_utils.lessons.data_parallel.training import Sgd
    from course_utils.lessons.overlap import played_hardware
    from course_utils.trace.recorder import recorder

    plain, plain_wait, first = played_hardware.compute, played_hardware.UnderWay.wait, len(recorder.events)
    plain_send, plain_step = played_hardware.PlayedLink.all_reduce, Sgd.step
    seen: dict[str, Any] = {"computing": [], "asked": 0.0, "waited": 0.0, "begin": time.perf_counter(), "alone": 0.0}
    seen["stepped"] = 0.0
    free: dict[int, float] = {}  # when each link has sent all that it was given, if nothing else ran
    done: dict[int, float] = {}  # the same of each of its all-reduces
    kept, work = [], []

    def compute(seconds: float) -> None:
        begin = time.perf_counter()
        plain(seconds)
        seen["computing"].append((begin, time.perf_counter()))
        seen["asked"] += seconds
        seen["alone"] += seconds
        work.append((begin, seconds))

    def send(link: played_hardware.PlayedLink, tensor: Any) -> played_hardware.UnderWay:
        under_way = plain_send(link, tensor)
        kept.extend((link, under_way))  # so that no other object gets the same id
        begin = max(free.get(id(link), 0.0), seen["alone"])
        free[id(link)] = done[id(under_way)] = begin + tensor.numel() * tensor.element_size() / link.rate
        return under_way

    def wait(under_way: played_hardware.UnderWay) -> None:
        plain_wait(under_way)
        seen["waited"] = max(seen["waited"], under_way.done_at)
        seen["alone"] = max(seen["alone"], done.get(id(under_way), 0.0))

    def step(optimizer: Sgd) -> None:
        plain_step(optimizer)
        seen["stepped"] = time.perf_counter()

    played_hardware.compute, played_hardware.UnderWay.wait = compute, wait
    played_hardware.PlayedLink.all_reduce, Sgd.step = send, step
    try:
        yield seen
    finally:
        played_hardware.compute, played_hardware.UnderWay.wait = plain, plain_wait
        played_hardware.PlayedLink.all_reduce, Sgd.step = plain_send, plain_step
    seen["end"] = time.perf_counter()
    seen["link"] = [(e.start, e.end) for e in recorder.events[first:] if e.name == played_hardware.ON_LINK]
    seen["called"] = sorted({event.name for event in recorder.events[first:] if event.kind != "phase"})
    seen["messages"] = [(e.start, e.end) for e in recorder.events[first:] if e.kind == "collective"]
    starts = sorted(start for start, _ in seen["messages"])
    seen["before"] = [sum(seconds for begin, seconds in work if begin < start) for start in starts]


def _parts(program: Program, arguments: tuple, places: Places) -> tuple[dict[str, float], dict[str, int]]:
    """The processor's seconds for each part, and for the rest, under the name ""; and the calls of each function."""
    profiler = cProfile.Profile(time.process_time)
    profiler.runcall(program, *arguments)
    seconds, calls = dict.fromkeys(places, 0.0), {name: 0 for own in places.values() for _, name in own}
    stats = pstats.Stats(profiler).stats  # (file, line, function) → (…, own seconds, seconds with all it called, …)
    for (file, _, function), (_, number, _, with_called, _) in stats.items():
        for part, functions in places.items():
            if (Path(file).name, function) in functions:
                seconds[part] += with_called
                calls[function] += number
    whole = sum(own for _, _, own, _, _ in stats.values())
    return seconds | {"": max(0.0, whole - sum(seconds.values()))}, calls
