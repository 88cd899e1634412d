"""What the measurements of lesson 3 say, in sentences chosen by the numbers."""

from collections.abc import Mapping, Sequence

from course_utils.lessons.hardware.layer_costs import CLOSE, Layer
from course_utils.lessons.hardware.reading_speed import WAYS, Reading
from course_utils.lessons.hardware.step_shares import PARTS, PUBLISHED, TimedTraining
from course_utils.lessons.hardware.threads import plateau
from course_utils.measuring import BUSY, Compared, Measured, is_busy, larger, tied
from course_utils.words import count, number_text, percent

COUNTED = {"sum": 3, "copy": 2}
"""How many numbers a program asks for, for each result."""


def moved_sentence(moved: Mapping[str, Measured]) -> str:
    """How many numbers each program moved for a result, beside what it asks for, and whether lines were fetched first.

    Args:
        moved: of a "sum" and a "copy", as `numbers_moved` measures them.
    """
    if is_busy(measured.values for measured in moved.values()):
        return f"{BUSY}."
    lines = [
        f"A {name} asks for {asked}, and moves {moved[name].median:.1f} "
        f"({moved[name].low:.1f} to {moved[name].high:.1f} in {len(moved[name].values)} rounds)."
        for name, asked in COUNTED.items()
    ]
    more = moved["sum"].median - COUNTED["sum"]
    if more > 0.5:
        lines.append("So this processor fetches what the sum only overwrites.")
    elif more < 0.25:
        lines.append("So this processor fetches nothing that the sum only overwrites.")
    else:
        lines.append("So this processor fetches a part of what the sum only overwrites.")
    return "\n".join(lines)


def layers_title(layers: Sequence[Layer], ridge: float) -> str:
    """What the layers left of the ridge have in common, as a title."""
    if is_busy(layer.measured.values for layer in layers):
        return BUSY
    bound = [layer for layer in layers if layer.intensity < ridge]
    flops = sum(layer.flops for layer in bound) / sum(layer.flops for layer in layers)
    share = sum(layer.measured.median for layer in bound) / sum(layer.measured.median for layer in layers)
    return (
        f"{len(bound)} of {len(layers)} layers lie left of the ridge: {percent(flops, 1)} of the arithmetic, "
        f"{percent(share)} of the time"
    )


def layers_sentence(layers: Sequence[Layer], ridge: float) -> str:
    """Whether the prediction held, a line for each thing that can be said."""
    if is_busy(layer.measured.values for layer in layers):
        return f"{BUSY}."
    bound, lines = [layer for layer in layers if layer.intensity < ridge], []
    fast = [layer for layer in layers if larger(layer.predicted, layer.measured.median)]
    if cached := [layer for layer in fast if layer in bound]:
        lines.append(
            f"{len(cached)} of the layers left of the ridge are faster than the roof: their numbers are still in the "
            "cache."
        )
    if clever := [layer for layer in fast if layer not in bound]:
        lines.append(
            f"{len(clever)} of those right of it are faster, too: torch's convolution got more out of this processor "
            "than the\nmatrix product that the roof was measured with."
        )
    slow = [layer for layer in layers if layer.measured.median > CLOSE * layer.predicted]
    if slow:
        worst = max(slow, key=lambda layer: layer.measured.median / layer.predicted)
        lines.append(
            f"{len(slow)} layers take more than {CLOSE:.0f} times as long as the roof allows; {worst.name} takes "
            f"{worst.measured.median / worst.predicted:.1f} times as long."
        )
    else:
        lines.append(f"No layer takes more than {CLOSE:.0f} times as long as the roof allows.")
    return "\n".join(lines)


def pooling_sentence(pair: Compared) -> str:
    """Whether the order in which the numbers are stored explains how slow a layer is.

    Args:
        pair: the layer with another order, and with the usual one.
    """
    if pair.is_busy:
        return ""  # the title says so
    if pair.first_is_faster:
        return "The loop over the numbers was slow, not the memory."
    if pair.second_is_faster:
        return "The usual order suits this machine better."
    return "Here the order does not matter."


def reading_sentence(cold: Mapping[str, Reading], warm: Mapping[str, Reading]) -> str:
    """What packing gains, with an empty cache if that could be had, and with a full one."""
    if is_busy(reading.seconds.values for times in (cold, warm) for reading in times.values()):
        return f"{BUSY}."
    ratios = {}
    for name, times in (("cold", cold), ("warm", warm)):
        many, packed = (times[storage].seconds.median for storage in WAYS)
        ratios[name] = many / packed
    if not all(reading.cold for reading in cold.values()):
        return (
            "Warm only: this file system would not forget, or does not say where bytes come from. "
            f"One file each takes {ratios['warm']:.1f} times as long as packed."
        )
    text = f"From the disk, one file each takes {ratios['cold']:.1f} times as long as packed"
    text += f"; from memory {ratios['warm']:.1f} times."
    if not larger(ratios["cold"], 1):
        text += " This disk, or a cache behind it, hardly minds small files."
    elif not larger(ratios["warm"], 1):
        text += " The disk minds many small files: each is a request of its own."
    if larger(1, ratios["warm"]):
        text += " In memory packed loses: read_sample opens the file and jumps twice, for each photo."
    return text


def workers_sentence(seconds: Mapping[str, Mapping[int, Measured]], cores: int) -> str:
    """Which number of workers was fastest for packed photos, and why that may be."""
    if is_busy(measured.values for measured in seconds["packed"].values()):
        return f"{BUSY}."
    times = {workers: measured.median for workers, measured in seconds["packed"].items()}
    best = min(times, key=times.__getitem__)
    most, gain = max(times), times[0] / times[best]
    if tied(times[0], times[best]):
        return (
            "For packed photos workers gain nothing: handing the images over costs as much as decoding them, or no "
            "core is free."
        )
    text = f"For packed photos {best} worker{'s are' if best > 1 else ' is'} {gain:.1f} times as fast as none."
    if larger(gain, best + 1):
        return f"{text} That is more than {best + 1} processes can explain."
    if best == most and cores >= most:
        return f"{text} Decoding is work for cores, and each worker is a process with a core of its own."
    return f"{text} More than that gain nothing on {cores} core{'s' if cores > 1 else ''}."


def shares_sentence(timed: TimedTraining) -> str:
    """Which part takes most, whether the report's finding holds here, and how even the iterations are: some lines."""
    if is_busy([timed.epoch().values]):
        return f"{BUSY}."
    totals = {part: sum(iteration.parts[part] for iteration in timed.iterations) for part in PARTS}
    whole = sum(totals.values())
    first = max(totals, key=totals.__getitem__)
    ratio = timed.ratio()
    as_published = "as in the report" if first == "backward" else "unlike in the report, where backward does"
    return (
        f"The {first} pass takes most of the time, {as_published}; here {percent(totals[first] / whole)}.\n"
        f"Backward takes {ratio.median:.1f} times as long as forward "
        f"({ratio.low:.1f} to {ratio.high:.1f} in {len(timed.iterations)} iterations)."
    )


def epoch_sentence(measured: Mapping[str, Measured], cores: int) -> str:
    """This machine's epoch beside the report's, in words."""
    if is_busy([measured["CPU"].values]):
        return f"{BUSY}."
    cpu = measured["CPU"].median
    ratio = PUBLISHED["CPU, 5 or 8 threads"] / cpu
    text = (
        f"At this pace an epoch takes {cpu:.0f} s on {count(cores, 'core')}; the report's processors took about 300 s"
    )
    text += "." if tied(ratio, 1) else f", {number_text(ratio)} times as long."
    if "GPU" in measured:
        gpu = measured["GPU"].median
        text += f" The GPU here is {cpu / gpu:.0f} times as fast as that; theirs was 20 times."
    else:
        text += " torch finds no GPU here; theirs was 20 times as fast as their processors."
    return text


def threads_sentence(times: Mapping[int, Measured], cores: int) -> str:
    """Where the plateau begins, whether at the number of cores, and what more threads do."""
    if is_busy(measured.values for measured in times.values()):
        return f"{BUSY}."
    found = plateau(times)
    gain = times[min(times)].median / times[found].median
    if found == cores == 1:
        text = "One core: more threads than one gain nothing."
    elif found == cores:
        text = f"{gain:.1f} times as fast with {found} threads, one for each core; no more after that."
    elif found < cores:
        begin = f"{gain:.1f} times as fast with {found} threads, and no more after that" if found > 1 else "No gain"
        text = (
            f"{begin}, although there are {count(cores, 'core')}: the work is too small for more threads, or memory is "
            "the limit."
        )
    else:
        text = f"The shortest time was with {found} threads, on {count(cores, 'core')}."
    beyond = [compared(times, found, count) for count in times if count > max(cores, found)]
    if slower := [pair.times for pair in beyond if pair.first_is_faster]:
        text += (
            f" With too many it gets slower, up to {max(slower):.1f} times: they take turns and wait for each other."
        )
    return text


def threads_answer(times: Mapping[int, Measured], cores: int) -> str:
    """With twice as many threads as cores: "a" faster than with one a core, "b" as fast, "c" slower."""
    pair = compared(times, 2 * cores, cores)
    return "b" if pair.is_tie else "a" if pair.first_is_faster else "c"


def compared(times: Mapping[int, Measured], first: int, second: int) -> Compared:
    """Two numbers of threads, round by round."""
    names = count(first, "thread"), count(second, "thread")
    return Compared(times[first].values, times[second].values, names)


def brent_sentence(bounds: Mapping[int, tuple[float, float]], measured: Mapping[int, float]) -> str:
    """Whether the times, in units of a task, lie between the bounds, by the number of workers."""
    if is_busy([[seconds] for seconds in measured.values()], planned=[bounds[p][1] for p in measured]):
        return f"{BUSY}."
    above = [p for p in measured if measured[p] > bounds[p][1]]
    below = [p for p in measured if measured[p] < bounds[p][0]]
    if below:
        return f"With {count(below[0], 'worker')} it took less than the lower bound: the clock, or the unit, is off."
    if above:
        over = percent(max(measured[p] / bounds[p][1] - 1 for p in above))
        return (
            f"With {count(above[0], 'worker')} it took longer than the upper bound, by up to {over}: waking a "
            "thread takes time too, which the theorem does not count."
        )
    return f"All {len(measured)} times lie between the bounds."
