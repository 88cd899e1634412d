"""What the measurements of lesson 3 show, in sentences that are chosen by the numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_utils.lessons.hardware.data_sheets import Machine, with_prefix
from course_utils.lessons.hardware.layer_costs import CLOSE, Layer
from course_utils.lessons.hardware.reading_speed import WAYS, Reading
from course_utils.lessons.hardware.step_shares import PARTS, PUBLISHED, TimedTraining
from course_utils.lessons.hardware.threads import plateau
from course_utils.measuring import BUSY, Compared, Measured, is_busy, larger, tied
from course_utils.words import count, number_text, percent

COUNTED = {"sum": 3, "copy": 2}
"""How many numbers a program asks for, for each result."""


def moved_sentence(moved: Mapping[str, Measured]) -> str:
    """How many numbers each program moved for a result, next to what it asks for, and if lines were fetched first.

    Args:
        moved: of a "sum" and a "copy", as `numbers_moved` measures them.
    """
    if is_busy(measured.values for measured in moved.values()):
        return f"{BUSY}."
    lines = [
        f"For each result, the {name} asks for {asked} numbers and moves {moved[name].median:.1f} "
        f"({moved[name].low:.1f} to {moved[name].high:.1f} in {len(moved[name].values)} rounds)."
        for name, asked in COUNTED.items()
    ]
    more = moved["sum"].median - COUNTED["sum"]
    if more > 0.5:
        lines.append("So this processor fetches the lines that the sum only overwrites.")
    elif more < 0.25:
        lines.append("So this processor doesn't fetch the lines that the sum only overwrites.")
    else:
        lines.append("So this processor fetches some of the lines that the sum only overwrites.")
    return "\n".join(lines)


def batches_text(seconds: Mapping[int, Measured]) -> tuple[str, str]:
    """A title and a line below it: what a larger batch costs, from the seconds for each number of images."""
    if is_busy(measured.values for measured in seconds.values()):
        return BUSY, ""
    few, many = min(seconds), max(seconds)
    middle = sorted(seconds)[len(seconds) // 2]
    factors = {images: seconds[images].median / seconds[few].median for images in (middle, many)}
    title = f"{middle} images take {number_text(factors[middle])} times as long as {count(few, 'image')}"
    return title, f"{many} images take {number_text(factors[many])} times as long."


HEADS = "", "computes", "memory moves", "memory", "FLOP per byte", "FLOP per number", "link", "source"


def machines_rows(machines: Sequence[Machine], with_address: bool) -> list[tuple[str, ...]]:
    """Return a row of text for each machine, under `HEADS`, whose source is a link in Markdown or its name alone."""
    rows = []
    for machine in machines:
        amounts = with_prefix(machine.flops, "FLOP/s"), with_prefix(machine.bandwidth, "B/s")
        counts = f"{machine.ridge:.0f}", f"{machine.balance:.0f}"
        link = with_prefix(machine.link, "B/s") if machine.link else "–"
        source = machine.source
        if machine.address and with_address:
            source = f"[{machine.source}]({machine.address})"
        rows.append((machine.name, *amounts, with_prefix(machine.memory, "B"), *counts, link, source))
    return rows


def machines_table(machines: Sequence[Machine]) -> str:
    """Machines as a table in Markdown: rates, memory, operations for each byte and each number moved, link, source."""
    rows = [HEADS, ("---", *["---:"] * (len(HEADS) - 2), "---"), *machines_rows(machines, with_address=True)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def machines_text(machines: Sequence[Machine]) -> str:
    """Return the same table in plain text, with its columns aligned, for readers who see no Markdown."""
    rows = [HEADS, *machines_rows(machines, with_address=False)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *amounts, source in rows:
        cells = [cell.rjust(width) for cell, width in zip(amounts, widths[1:-1], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells, source]).rstrip())
    return "\n".join(lines)


@dataclass(frozen=True)
class MachinesTable:
    """A table of machines, which a notebook shows in Markdown, and a terminal in plain text."""

    machines: Sequence[Machine]

    def _repr_markdown_(self) -> str:
        return machines_table(self.machines)

    def __repr__(self) -> str:
        """Return the table in plain text."""
        return machines_text(self.machines)


def machines_title(machine: Machine, operations: float) -> str:
    """Which share of its peak a machine can reach with so many operations for each number that it moves."""
    share = min(1.0, operations / machine.balance)
    name = machine.name.rpartition(" ")[2]
    return f"With a batch of 64, the linear layer can reach {percent(share)} of the peak of an {name}"


def layers_title(layers: Sequence[Layer], ridge: float) -> str:
    """What share of arithmetic and time the layers to the left of the ridge have, as a title."""
    if is_busy(layer.measured.values for layer in layers):
        return BUSY
    bound = [layer for layer in layers if layer.intensity < ridge]
    flops = sum(layer.flops for layer in bound) / sum(layer.flops for layer in layers)
    share = sum(layer.measured.median for layer in bound) / sum(layer.measured.median for layer in layers)
    return (
        f"{len(bound)} of {len(layers)} layers are left of the ridge. They do {percent(flops, 1)} of the arithmetic "
        f"and take {percent(share)} of the time"
    )


def small_layers_sentence(layers: Sequence[Layer], calculated: float, bandwidth: float) -> str:
    """What share of the time batch norm, ReLU and pooling really take, and why it differs from the roofline's.

    Args:
        calculated: their share of the time if every layer reached the roof.
        bandwidth: bytes per second.
    """
    if is_busy(layer.measured.values for layer in layers):
        return f"{BUSY}."
    small = [layer for layer in layers if layer.kind in ("norm", "relu", "pool")]
    seconds = sum(layer.measured.median for layer in small)
    share = seconds / sum(layer.measured.median for layer in layers)
    reached = sum(layer.nbytes for layer in small) / seconds
    lines = [f"The small layers take {percent(share)} of the time. At the roof it would be {percent(calculated)}."]
    if larger(share, calculated):
        lines.append("So they are further from the roof than the convolutions are.")
    elif larger(calculated, share):
        lines.append("So they are closer to the roof than the convolutions are.")
    if larger(bandwidth, reached):
        lines.append(
            f"Between them they move {reached / 1e9:.3g} GB per second, {percent(reached / bandwidth)} of the "
            "bandwidth."
        )
    return "\n".join(lines)


def layers_sentence(layers: Sequence[Layer], ridge: float) -> str:
    """Whether the layers keep to the roof, with a line for each kind of exception."""
    if is_busy(layer.measured.values for layer in layers):
        return f"{BUSY}."
    bound, lines = [layer for layer in layers if layer.intensity < ridge], []
    fast = [layer for layer in layers if larger(layer.predicted, layer.measured.median)]
    if cached := [layer for layer in fast if layer in bound]:
        lines.append(
            f"{count(len(cached), 'layer')} to the left of the ridge took less time than the roof allows, probably\n"
            "because some of the numbers were still in the cache."
        )
    if clever := [layer for layer in fast if layer not in bound]:
        lines.append(
            f"{count(len(clever), 'layer')} to the right of the ridge took less time than the roof allows. Either\n"
            "these convolutions do fewer multiplications than we count, for example by Winograd's\n"
            "method, or the true peak of your machine is higher than our estimate."
        )
    slow = [layer for layer in layers if layer.measured.median > CLOSE * layer.predicted]
    if slow:
        worst = max(slow, key=lambda layer: layer.measured.median / layer.predicted)
        lines.append(
            f"{count(len(slow), 'layer')} of {len(layers)} took more than {CLOSE:.0f} times as long as the roof "
            f"predicts. {worst.name} took {worst.measured.median / worst.predicted:.1f} times as long."
        )
    else:
        lines.append(f"No layer takes more than {CLOSE:.0f} times as long as the roof predicts.")
    return "\n".join(lines)


def pooling_sentence(pair: Compared) -> str:
    """Whether the order in which the numbers are stored explains how slow a layer is.

    Args:
        pair: the layer with a different order, and with the usual one.
    """
    if pair.is_busy:
        return ""  # the title says so
    if pair.first_is_faster:
        return "So it was not the memory that slowed pooling down."
    if pair.second_is_faster:
        return "The usual order suits this machine better."
    return "On this machine the order makes no difference."


def reading_sentence(cold: Mapping[str, Reading], warm: Mapping[str, Reading]) -> str:
    """What packing gains, with an empty cache if there could be one, and with a full one."""
    if is_busy(reading.seconds.values for times in (cold, warm) for reading in times.values()):
        return f"{BUSY}."
    ratios = {}
    for name, times in (("cold", cold), ("warm", warm)):
        many, packed = (times[storage].seconds.median for storage in WAYS)
        ratios[name] = many / packed
    if not all(reading.cold for reading in cold.values()):
        return (
            "Warm only, because this file system didn't forget the files, or doesn't count what comes from the disk. "
            f"Single files take {ratios['warm']:.1f} times as long as the packed one."
        )
    text = f"From the disk, single files take {ratios['cold']:.1f} times as long as the packed one"
    text += f", and from memory {ratios['warm']:.1f} times."
    if not larger(ratios["cold"], 1):
        text += " So this disk, or a cache behind it, copes well with small files."
    elif not larger(ratios["warm"], 1):
        text += " So it is the disk that suffers from small files, since each is a request of its own."
    if larger(1, ratios["warm"]):
        text += " In memory the packed file is slower, because read_sample opens it and seeks twice for each photo."
    return text


def workers_sentence(seconds: Mapping[str, Mapping[int, Measured]], cores: int) -> str:
    """Which number of workers was the fastest for packed photos, and why that may be."""
    if is_busy(measured.values for measured in seconds["packed"].values()):
        return f"{BUSY}."
    times = {workers: measured.median for workers, measured in seconds["packed"].items()}
    best = min(times, key=times.__getitem__)
    most, gain = max(times), times[0] / times[best]
    if tied(times[0], times[best]):
        return (
            "For packed photos workers gain nothing, either because handing the images over costs as much as decoding "
            "them, or because no core is free."
        )
    text = f"For packed photos {best} worker{'s are' if best > 1 else ' is'} {gain:.1f} times as fast as none."
    if larger(gain, best + 1):
        return f"{text} That is more than {best + 1} processes can explain."
    if best == most and cores >= most:
        return f"{text} Decoding is work for cores, and each worker is a process that has a core of its own."
    return f"{text} More workers than that gain nothing on {count(cores, 'core')}."


def shares_sentence(timed: TimedTraining) -> str:
    """Which part takes the most time, whether the report's finding holds here, and how even the iterations are."""
    if is_busy([timed.epoch().values]):
        return f"{BUSY}."
    totals = {part: sum(iteration.parts[part] for iteration in timed.iterations) for part in PARTS}
    whole = sum(totals.values())
    first = max(totals, key=totals.__getitem__)
    ratio = timed.ratio()
    as_published = "as in the report" if first == "backward" else "unlike in the report, where it is backward"
    return (
        f"The {first} pass takes the most time, {as_published}. Here it is {percent(totals[first] / whole)}.\n"
        f"Backward takes {ratio.median:.1f} times as long as forward "
        f"({ratio.low:.1f} to {ratio.high:.1f} in {len(timed.iterations)} iterations)."
    )


def epoch_sentence(measured: Mapping[str, Measured], cores: int) -> str:
    """This machine's epoch next to the report's, in words."""
    if is_busy([measured["CPU"].values]):
        return f"{BUSY}."
    cpu = measured["CPU"].median
    ratio = PUBLISHED["CPU, 5 or 8 threads"] / cpu
    text = (
        f"At this pace an epoch takes {cpu:.0f} s on {count(cores, 'core')}. The report's processors took about 300 s"
    )
    text += "." if tied(ratio, 1) else f", {number_text(ratio)} times as long."
    if "GPU" in measured:
        gpu = measured["GPU"].median
        text += f" The GPU here is {cpu / gpu:.0f} times as fast as the processor; theirs was 20 times as fast."
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
        text = "With one core, more threads than one gain nothing."
    elif found == cores:
        text = f"{gain:.1f} times as fast with {found} threads, one for each core, and no faster with more."
    elif found < cores:
        begin = f"{gain:.1f} times as fast with {found} threads, and no faster with more" if found > 1 else "No gain"
        text = (
            f"{begin}, although there are {count(cores, 'core')}. Either the work is too small for more threads, or "
            "memory is the limit, or other programs use the cores."
        )
    else:
        text = f"The shortest time was with {found} threads, on {count(cores, 'core')}."
    beyond = [compared(times, found, count) for count in times if count > max(cores, found)]
    if slower := [pair.times for pair in beyond if pair.first_is_faster]:
        text += (
            f" With more threads it slows down, by a factor of up to {max(slower):.1f}, probably because they have to "
            "take turns and wait for each other."
        )
    return text


def threads_answer(times: Mapping[int, Measured], cores: int) -> str:
    """With twice as many threads as cores: "a" faster than with one for each core, "b" as fast, "c" slower."""
    pair = compared(times, 2 * cores, cores)
    return "b" if pair.is_tie else "a" if pair.first_is_faster else "c"


def hyperthreads_sentence(times: Mapping[int, Measured], cores: int, logical: int | None, physical: int | None) -> str:
    """Whether this machine's cores pretend to be more, and what twice as many threads as cores gain.

    Args:
        times: with one thread for each core, and with twice as many.
        cores: that the process may use, as the system counts them.
        logical, physical: the machine's cores as the system counts them, and those that are really there; None if it
            doesn't tell.
    """
    if not logical or not physical:
        text = "The system doesn't tell whether its cores pretend to be more."
    elif logical > physical:
        text = f"The system counts {logical} cores, but this machine has {physical}, which pretend to be more."
    else:
        text = f"The system counts {count(logical, 'core')}, none of which pretends to be two, as far as it can tell."
    pair = compared(times, 2 * cores, cores)
    if pair.is_busy:
        return f"{text}\n{BUSY}."
    factor = number_text(max(pair.times, 1 / pair.times))
    gains = {
        "a": f"With {2 * cores} threads it is {factor} times as fast as with {cores}.",
        "b": f"Between {cores} and {2 * cores} threads there is no clear difference.",
        "c": f"With {2 * cores} threads it takes {factor} times as long as with {cores}.",
    }
    return f"{text}\n{gains[threads_answer(times, cores)]}"


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
        return f"With {count(below[0], 'worker')} it took less than the lower bound, so the clock or the unit is off."
    if above:
        over = percent(max(measured[p] / bounds[p][1] - 1 for p in above))
        return (
            f"With {count(above[0], 'worker')} it took longer than the upper bound, by up to {over}, because waking a "
            "thread takes time, too, which the bound doesn't count."
        )
    return f"All {len(measured)} times lie between the bounds."
