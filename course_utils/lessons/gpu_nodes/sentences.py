"""What the measurements of lesson 13 say, in a sentence: written here once, chosen by the numbers."""

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_utils.lessons.allreduce.bandwidth import bus_bandwidth
from course_utils.lessons.gpu_nodes.failures.story import ReportKind, Story
from course_utils.measuring import BUSY, NEAR, Compared, Measured, is_busy, relative_errors, times_text, unless_busy
from course_utils.words import (
    bytes_text,
    capital,
    count,
    days_text,
    join,
    number_text,
    percent,
    ranks,
    ranks_in_words,
    seconds_text,
)

if TYPE_CHECKING:
    from course_utils.lessons.gpu_nodes.ladder import Climb
    from course_utils.lessons.gpu_nodes.rank_memory import RankMemory, RecordedMemory
    from course_utils.lessons.gpu_nodes.transformer_step import NetworkRates

SAME = 1e-4
"""Losses nearer than this, relative, differ by rounding only."""


CHANGES = {
    "float32 without TF32": "the first program",
    "+ pinned memory": "where the images are",
    "+ data on the GPU": "where the images are",
    "+ TF32": "bits for each number in a product",
    "+ bfloat16": "bits for each number in a product",
    "+ channels last": "the order in memory",
    "+ torch.compile": "kernels and how they are launched",
    "+ CUDA graph": "kernels and how they are launched",
    "+ larger batch": "images in a step",
}
"""A rung of the ladder → what it changes."""
DEFAULT, BFLOAT16, GRAPH = "+ TF32", "+ bfloat16", "+ CUDA graph"
"""The rung that is near PyTorch's default, and two that sentences compare."""


def virtual_nodes_text(gpus: Sequence[int], times: Mapping[str, Sequence[float]]) -> tuple[str, str]:
    """Return a title and a line below it: how much faster many virtual GPUs are than one, by the network between nodes.

    Args:
        gpus: how many, from one node to the most.
        times: network → for each of these, how many times the images of one GPU are trained per second.
    """
    ends = {name: line[-1] for name, line in times.items()}
    slow, fast = min(ends, key=ends.get), max(ends, key=ends.get)
    title = (
        f"On virtual clocks, {gpus[-1]} GPUs train {number_text(ends[slow])} times the images of one GPU "
        f"with {slow}, and {number_text(ends[fast])} times with {fast}"
    )
    lost = [name for name, line in times.items() if line[1] < line[0]]
    if lost:
        return title, f"With {join(lost)} between nodes, {gpus[1]} GPUs are slower than {gpus[0]} on one node"
    return title, f"With all these networks, {gpus[1]} GPUs are at least as fast as {gpus[0]} on one node"


def same_loss(losses: Mapping[str, Sequence[float]]) -> bool:
    """Whether all ways of training have ended with the same loss, but for rounding."""
    ends = [line[-1] for line in losses.values()]
    return max(ends) - min(ends) <= SAME * abs(ends[0])


def ways_text(losses: Mapping[str, Sequence[float]]) -> str:
    """A title: what several ways of starting one training have in common."""
    ends = [line[-1] for line in losses.values()]
    runs = count(len(ends), "run")
    if same_loss(losses):
        return f"{runs}, one curve: the loss ends at {ends[0]:.3f}{' each time' if len(ends) > 1 else ''}"
    return f"{runs} end with losses between {min(ends):.3f} and {max(ends):.3f}, so something differs"


def bandwidth_text(
    world_sizes: Sequence[int], algorithm: Sequence[Sequence[float]], bus: Sequence[Sequence[float]]
) -> str:
    """A title: how both bandwidths change with more ranks; the bus bandwidth is predicted to stay the same.

    Args:
        algorithm, bus: for each number of ranks, the bytes/s of all runs.
    """
    if is_busy(bus):
        return BUSY
    span = f"From {world_sizes[0]} to {world_sizes[-1]} ranks"
    first, last = (Measured(tuple(bus[index])) for index in (0, -1))
    if relative_errors([first.median], [last.median])[0] <= NEAR:
        changed = f"the bus bandwidth stays near {bytes_text(last.median)}/s"
    elif _overlap(first, last):
        changed = "the bus bandwidth changes by less than its runs scatter"
    elif last.median < first.median:
        return f"{span} the bus bandwidth falls too, by {percent(1 - last.median / first.median)}"
    else:
        return f"{span} the bus bandwidth rises from {bytes_text(first.median)}/s to {bytes_text(last.median)}/s"
    before, after = (Measured(tuple(algorithm[index])) for index in (0, -1))
    if after.median < before.median and not _overlap(before, after):
        fall = percent(1 - after.median / before.median)
        return f"{span} the algorithm bandwidth falls by {fall}, but {changed}"
    return f"{span} {changed}"


def _overlap(first: Measured, other: Measured) -> bool:
    """Whether some runs of one quantity lie among those of the other."""
    return first.low <= other.high and other.low <= first.high


def link_text(backend: str, nbytes: int, world_size: int, bus: Sequence[float], link: float | None) -> str:
    """How much of an emulated link's bytes/s the bus bandwidth reaches; `link` is None if there is no such link."""
    measured = f"{bytes_text(nbytes)} over {backend}"
    if link is None:
        if backend == "nccl":
            measured += ", which is mainly latency"
        return f"{measured}. The rate of this network isn't known, so the lines go through the fastest run"
    share = percent(statistics.median(bus) / link)
    return f"{measured}; with {world_size} ranks the bus bandwidth is {share} of the link's rate"


def allowed_rates(
    operation: str, world_size: int, sizes: Sequence[int], taken: Sequence[Sequence[float]], rate: float
) -> list[float]:
    """The bus bandwidth of each size that latency and link allow: t = α + β·n, with α from the smallest vector.

    Args:
        sizes: bytes of the vectors.
        taken: for each size the seconds of all runs.
        rate: bytes/s of a link.
    """
    latency = statistics.median(taken[0])
    carried = [bus_bandwidth(operation, world_size, size, 1.0) for size in sizes]  # bytes through a rank's link
    return [nbytes / (latency + nbytes / rate) for nbytes in carried]


LINKS = "All 18 NVLinks of an H100: 450 GB/s in each direction; PCIe 5.0: 63 GB/s; a network of 400 Gbit/s: 50 GB/s"
"""The rates of connections between GPUs according to data sheets. (NVIDIA H100 data sheet; PCI-SIG; InfiniBand NDR.)"""


def sweep_text(
    sizes: Sequence[int], rates: Mapping[str, Sequence[Sequence[float]]], backend: str, world_size: int
) -> tuple[str, str]:
    """A title and a line below: the rates of the smallest and of the largest vector."""
    measured = f"{world_size} ranks over {backend}, from {bytes_text(sizes[0])} to {bytes_text(sizes[-1])}"
    finding = f"{measured}. {LINKS}" if backend == "nccl" else measured
    if is_busy([runs for by_size in rates.values() for runs in by_size]):
        return BUSY, finding
    middle = [
        statistics.fmean(statistics.median(by_size[index]) for by_size in rates.values()) for index in range(len(sizes))
    ]
    names = capital(join([name.replace("_", "-") for name in rates]))
    least, most = (f"{bytes_text(middle[index])}/s with vectors of {bytes_text(sizes[index])}" for index in (0, -1))
    return f"{names} reach a bus bandwidth of {least} and {most}", finding


def compared(seconds: Mapping[str, Sequence[float]], plain: str, switch: str) -> Compared:
    """A way beside the plain one, measured by turns."""
    return Compared(seconds[switch], seconds[plain], (switch, plain))


def gain(seconds: Mapping[str, Sequence[float]], plain: str, switch: str) -> float:
    """How many times as fast one way is as the plain one, measured by turns; below 1 it is slower."""
    return compared(seconds, plain, switch).times


def widths_text(taken: Mapping[int, Mapping[str, Sequence[float]]], plain: str) -> str:
    """A title: whether each switch makes a step faster, by the width of the layers; a number only if rounds agree."""
    switches = [switch for switch in taken[min(taken)] if switch != plain]
    if any(compared(ways, plain, switch).is_busy for ways in taken.values() for switch in switches):
        return BUSY
    findings = []
    for switch in switches:
        found = {width: compared(ways, plain, switch) for width, ways in taken.items()}
        if len(found) > 1 and all(each.second_is_faster for each in found.values()):
            times = [f"{_times_of_medians(each):.2f} times as fast with {width:,}" for width, each in found.items()]
            every = "both" if len(found) == 2 else "all"
            findings.append(f"{switch} is slower than {plain} at {every} widths: {join(times)} hidden units")
            continue
        words = {width: _faster(each) for width, each in found.items()}
        narrow = min(words)
        first = f"{words[narrow][0]} {words[narrow][1]} {plain} with {narrow:,} hidden units"
        others = [f"{text} with {width:,}" for width, (text, _) in words.items() if width != narrow]
        findings.append(f"{switch} is {join([first, *others])}")
    return "; ".join(findings)


def _times_of_medians(found: Compared) -> float:
    """How many times as fast the first is by the two medians, as bars show them."""
    return statistics.median(found.second) / statistics.median(found.first)


def _faster(found: Compared) -> tuple[str, str]:
    """How fast the first is beside the second, and the word before the second's name."""
    if found.is_tie:
        return "about as fast", "as"
    if found.second_is_faster:
        return "slower", "than"
    if not found.ratios.calm:
        return "faster", "than"
    return f"{times_text(_times_of_medians(found))} times as fast", "as"


def by_width(taken: Mapping[int, Mapping[str, Sequence[float]]]) -> dict[str, dict[str, Measured]]:
    """The seconds of steps by width and way, as `course.draw.measured_bars` takes them."""
    return {
        f"{width} hidden units": {f"{switch}, {width}": Measured(tuple(seconds)) for switch, seconds in ways.items()}
        for width, ways in taken.items()
    }


def ladder_text(climbed: "Climb") -> str:
    """A title: what the whole ladder gains, and how near its top comes to the peak."""
    top = list(climbed.seconds)[-1]
    first, last = list(climbed.seconds)[0], _change(top)
    times = gain(climbed.image_seconds(), first, top)
    text = f"From {first} to {last}: {times:.1f} times as many images per second, "
    text += f"with an MFU of {percent(climbed.mfu()[top].median)}"
    return unless_busy(is_busy(climbed.seconds.values()), text)


def peak_text(climbed: "Climb") -> str:
    """Return what the MFU of a ladder is a share of."""
    if climbed.peak_on_paper:
        return f"In brackets: MFU, of the {climbed.peak_on_paper / 1e12:.0f} TFLOP/s on the data sheet"
    peak = statistics.median(climbed.peaks)
    return f"In brackets: share of the {peak / 1e12:.3g} TFLOP/s that the GPU reached in a product"


LAUNCH_BOUND = 1.5
"""With a CUDA graph a GPU is more than this many times as fast only if it waited for kernel launches before."""


def gains_text(climbed: "Climb") -> str:
    """What each rung gains over the rung before it: the two that gain most, those that gain nothing, and why."""
    taken = climbed.image_seconds()
    names = list(taken)
    if is_busy(taken.values()):
        return f"{BUSY}."
    steps = {name: compared(taken, before, name) for before, name in zip(names, names[1:], strict=False)}
    most = sorted(steps, key=lambda name: steps[name].times, reverse=True)[:2]
    gains = join([f"{_change(name)} ({steps[name].times:.1f} times as fast as the rung before)" for name in most])
    texts = [f"On the {gpu_name(climbed)} ({climbed.date}), the two largest gains were {gains}."]
    if ties := [_change(name) for name, found in steps.items() if found.is_tie]:
        texts.append(f"No clear gain: {join(ties)}.")
    if slower := [f"{_change(name)} ({_slower(found)})" for name, found in steps.items() if found.second_is_faster]:
        texts.append(f"Slower than the rung before: {join(slower)}.")
    if DEFAULT in taken and names[-1] != DEFAULT:
        times = times_text(gain(taken, DEFAULT, names[-1]))
        texts.append(
            f"From {_change(DEFAULT)}, which is near PyTorch's default, to {_change(names[-1])}: {times} times."
        )
    if GRAPH in steps:
        texts.append(_launches_text(steps))
    return " ".join(texts)


def launch_bound(graph: Compared) -> bool:
    """Whether a GPU waited long for kernel launches: the graph, compared with the rung before, needs far less time."""
    return graph.first_is_faster and graph.times > LAUNCH_BOUND


def _launches_text(steps: Mapping[str, Compared]) -> str:
    """How long the GPU waited for kernel launches before the rung `GRAPH`, and what this means for faster kernels."""
    graph = steps[GRAPH]
    if not graph.first_is_faster:
        return "The CUDA graph isn't faster than the rung before, so the GPU hardly waited for kernel launches."
    waited = percent(1 - 1 / graph.times)
    text = (
        f"With the CUDA graph, the step was {times_text(graph.times)} times as fast, so before, the GPU "
        f"probably waited for kernel launches during about {waited} of the time."
    )
    if not launch_bound(graph):
        return f"{text} For the rest of the time it was computing, and there faster kernels do help."
    if BFLOAT16 in steps and steps[BFLOAT16].times < LAUNCH_BOUND:
        gained = times_text(steps[BFLOAT16].times)
        return f"{text} This is probably why bfloat16 gained so little ({gained} times as fast)."
    return text


def _slower(found: Compared) -> str:
    """In how many rounds the first was the slower one: "in 9 of 9 rounds"."""
    ratios = found.ratios.values
    return f"in {sum(ratio < 1 for ratio in ratios)} of {count(len(ratios), 'round')}"


def larger_batch_text(climbed: "Climb") -> str:
    """What the last two rungs give, and where they were measured."""
    before, after = list(climbed.seconds)[-2:]
    taken, images = climbed.image_seconds(), climbed.images
    found = compared(taken, before, after)
    where = f"{capital(climbed.origin)}. "
    if found.is_busy:
        return f"{where}{BUSY}."
    few, many = images[before], images[after]
    times = f"{times_text(found.times)} times as many images per second as {few:,}"
    return f"{where}A step with {many:,} images trains {times}, and its MFU is {percent(climbed.mfu()[after].median)}."


def _change(rung: str) -> str:
    """What a rung adds: "TF32" of "+ TF32"."""
    return rung.removeprefix("+ ")


def rate_text(images: float) -> str:
    """Images per second, with three digits that count: "200,000", "19,800"."""
    return f"{float(f'{images:.3g}'):,.0f}"


def ladder_bars(climbed: "Climb", recorded: "Climb | None" = None) -> dict[str, dict[str, Measured]]:
    """The images per second on each rung, as `course.draw.measured_bars` takes them, by what the rung changes.

    Args:
        recorded: rungs of a different GPU, in a group of their own; they are named with their images.
    """
    groups: dict[str, dict[str, Measured]] = {}
    for climb in filter(None, (climbed, recorded)):
        mfu = climb.mfu()
        for name, rates in climb.rates().items():
            larger = climb.images[name] > min(climb.images.values())
            rung = f"{name}, {climb.images[name]:,} images" if larger or climb is recorded else name
            group = gpu_name(climb) if climb is recorded else CHANGES[name]
            groups.setdefault(group, {})[f"{rung} ({percent(mfu[name].median)})"] = Measured(tuple(rates))
    return groups


def gpu_name(measured: "Climb | NetworkRates") -> str:
    """The GPU's name without the versions that stand behind it."""
    return measured.machine.partition(",")[0]


def ladder_table(climbed: "Climb") -> str:
    """Return a table with the range of each rung: images per second, MFU, and the share of a product's rate."""
    rates, mfu, shares = climbed.rates(), climbed.mfu(), climbed.product_shares()
    lines = [f"{'':24}{'images/s':>23}{'of the peak':>14}{'of a product':>15}"]
    for name in rates:
        taken = Measured(tuple(rates[name]))
        ends = [rate_text(each) for each in (taken.low, taken.high)]
        images = " to ".join(dict.fromkeys(ends))
        lines.append(f"{name:24}{images:>23}{share_text(mfu[name]):>14}{share_text(shares[name]):>15}")
    return "\n".join(lines)


def share_text(share: Measured) -> str:
    """Between which two percentages a share lies in its rounds, or the one that it is in all of them."""
    low, high = (f"{100 * end:.0f}" for end in (share.low, share.high))
    return f"{low}%" if low == high else f"{low} to {high}%"


def networks_text(rates: "NetworkRates") -> tuple[str, str]:
    """Return a title and a line below it: which share of a large product's rate each network reaches."""
    per_flop = {name: [s / rates.flops[name] for s in taken] for name, taken in rates.seconds.items()}
    shares = rates.product_shares()
    first, second = per_flop
    found = compared(per_flop, first, second)
    parts = [f"{name} {share_text(shares[name])}" for name in shares]
    product = f"{rate_of_product(rates)} in a product of two large matrices; {rates.machine}"
    below = f"All measured by turns in {count(len(rates.peaks), 'round')}: {join(parts)}. 100% is {product}"
    busy = found.is_busy or is_busy([share.values for share in shares.values()])
    slow, fast = sorted((first, second), key=lambda name: shares[name].median)
    low, high = (percent(shares[name].median) for name in (slow, fast))
    if found.is_tie:
        text = f"{capital(fast)} and {slow} reach about the same share of a product's rate: {high} and {low}"
    else:
        text = f"{capital(fast)} reaches {high} of a product's rate, {slow} only {low}"
    return unless_busy(busy, text), below


def rate_of_product(rates: "NetworkRates") -> str:
    """The median FLOP/s of the product, in words: "750 TFLOP/s", "312 GFLOP/s"."""
    peak = statistics.median(rates.peaks)
    return f"{peak / 1e12:.3g} TFLOP/s" if peak >= 1e12 else f"{peak / 1e9:.3g} GFLOP/s"


def network_bars(rates: "NetworkRates", recorded: "NetworkRates | None" = None) -> dict[str, dict[str, Measured]]:
    """The shares of a product's rate, as `course.draw.measured_bars` takes them: measured here, and recorded."""
    groups = {"measured here": dict(rates.product_shares())}
    if recorded:
        groups[gpu_name(recorded)] = {f"{name} ": share for name, share in recorded.product_shares().items()}
    return groups


def compiling_text(first: float, seconds: Mapping[str, Sequence[float]], plain: str, compiled: str) -> str:
    """After how many steps the time that compiling took is won back: seconds of the first step, and of the others."""
    if is_busy([seconds[plain], seconds[compiled]]):
        return f"{BUSY}."
    saved = statistics.median(seconds[plain]) - statistics.median(seconds[compiled])
    if saved <= 0:
        return f"Compiling took {seconds_text(first)} and is never won back: compiled steps are not shorter here."
    steps = round(first / saved)
    return f"Compiling took {seconds_text(first)}, which is won back after {steps:,} steps."


def intervals_text(
    minutes: Sequence[float], shares: Mapping[str, Sequence[Sequence[float]]], formula: Mapping[str, float]
) -> tuple[str, str]:
    """Return a title and a line below it: the best of the simulated intervals for each cost of a checkpoint.

    Args:
        minutes: the intervals.
        shares: cost → for each interval the goodput of all runs.
        formula: cost → the best interval on paper, in minutes.
    """
    texts = []
    for name, by_interval in shares.items():
        middles = [statistics.median(runs) for runs in by_interval]
        best = max(range(len(minutes)), key=middles.__getitem__)
        texts.append(f"{minutes[best]:g} minutes if {name} (goodput {percent(middles[best])})")
    runs = count(len(next(iter(shares.values()))[0]), "run")
    on_paper = join([number_text(formula[name]) for name in shares])
    below = f"On paper: {on_paper} minutes. A simulation with failures at random moments, {runs} for each point"
    return f"Best of the intervals tried: {join(texts)}", below


def kept_shares(whole: "RankMemory", divided: "RankMemory") -> dict[str, float]:
    """Return what a rank keeps with a sharded model, in percent of a whole one: of the "model", and of "everything".

    The model is the weights, the gradients and the optimizer's state, without activations.
    """
    sharded, replicated = divided.counted, whole.counted
    model = (sharded.total - sharded.activations) / (replicated.total - replicated.activations)
    return {"model": 100 * model, "everything": 100 * sharded.total / replicated.total}


def kept_text(kept: Mapping[str, "RankMemory"]) -> str:
    """Return a title: what each rank keeps, counted; and on a GPU, the most that its allocator had given out."""
    (whole, most), (divided, least) = kept.items()
    text = (
        f"With {divided} a rank keeps {bytes_text(least.counted.total)}, with {whole} {bytes_text(most.counted.total)}"
    )
    if most.given_out:
        text += f" (most in use at one moment: {bytes_text(least.given_out)} and {bytes_text(most.given_out)})"
    return text


def recorded_memory_text(recorded: "RecordedMemory") -> str:
    """Return the most that a GPU's allocator had given out at one moment, and what the formula predicts."""
    lines = [f"Recorded on {recorded.date}: {recorded.machine}. {count(recorded.ranks, 'rank')} shared the GPU."]
    for method, given in recorded.given_out.items():
        formula = recorded.formula[method]
        off = 100 * (given / formula - 1)
        name = {"whole": "without sharding"}.get(method, f"with {method}")
        lines.append(f"{name}: at most {bytes_text(given)}; by the formula {bytes_text(formula)} ({off:+.0f}%)")
    return "\n".join(lines)


def scales_text(magnitudes: Sequence[float], errors: Mapping[str, Sequence[float]]) -> tuple[str, str]:
    """A title and a line below it: what a scaling factor does to the error of a product of 8-bit numbers.

    Args:
        magnitudes: sizes of the numbers in one of the matrices.
        errors: format, with a scale or without → for each size the relative error; "E4M3" and "E4M3 with a scale" are
            compared.
    """
    without, with_scale = errors["E4M3"], errors["E4M3 with a scale"]
    near = [size for size, bare in zip(magnitudes, without, strict=True) if bare <= 1.5 * max(with_scale)]
    lost = [size for size, bare in zip(magnitudes, without, strict=True) if bare > 0.995]
    title = f"With a scale, the error of E4M3 is at most {percent(max(with_scale))} at every size"
    if near:
        title += f"; without one, it stays that low only for sizes from {min(near):g} to {max(near):g}"
    finding = f"Without a scale, E4M3 loses all numbers of size {max(lost):g} or less" if lost else ""
    return title, finding


def story_text(story: Story | None, world_size: int) -> str:
    """Return what is the cause of a failed launch, who shares it, and what else was reported and when."""
    if story is None:
        return "No rank reports a failure"
    silent = f"{_which(story.silent, world_size)} {'report' if len(story.silent) > 1 else 'reports'} nothing"
    rest = [silent] if story.silent else []
    if story.cause.kind == ReportKind.CONSEQUENCE:
        return ", and ".join(["All reports complain about other ranks", *rest])
    owner = f" on {_which(story.ranks, world_size)}" if story.ranks else ""
    explains = "explains the most" if story.cause.kind == ReportKind.CAUSE else "explains the most, but gives no reason"
    parts = [f"{capital(story.cause.failure)}{owner} {explains}"]
    if others := story.others:
        earlier = sum(report.time < story.cause.time for report in others)
        last = others[-1].time - story.cause.time
        some = "the last of them " if len(others) > 1 else ""
        when = f", {some}{span_text(last)} later" if last > 0 else ""
        if earlier:
            when = f", {earlier} of them earlier" if len(others) > 1 else ", which is earlier"
        parts.append(f"there {'are' if len(others) > 1 else 'is'} {count(len(others), 'other report')}{when}")
    return "; ".join([*parts, *rest])


def _which(some: Sequence[int], world_size: int) -> str:
    """Some of the ranks by their numbers, or how many they are."""
    if len(some) == world_size > 1:
        return "both ranks" if world_size == 2 else f"all {world_size} ranks"
    return ranks_in_words(list(some)) if 1 <= len(some) <= 6 else f"{len(some)} of {ranks(world_size)}"


def span_text(seconds: float) -> str:
    """A time from a moment to hours in words: `1.2 ms`, `45 s`, `10 minutes`, `3 hours`."""
    if seconds < 120:
        return seconds_text(seconds)
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else days_text(seconds)
