"""What a planner found on paper: what fits on how many GPUs, how long a training run takes, and how far it is off."""

from collections.abc import Collection, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_utils.draw import style
from course_utils.draw.bars import (
    PARTS,
    draw_parts,
    look_of,
    name_rows,
    room_for_ends,
    room_for_names,
    write_end,
)
from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import Choice, best
from course_utils.lessons.hybrid_and_sharded.planner.published_h100 import GIB, H100Run, errors, published_finding
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import EVERY_OTHER, FULL, NOTHING
from course_utils.lessons.hybrid_and_sharded.planner.training_times import TrainingEstimate, TrainingTime
from course_utils.words import (
    as_sentences,
    bytes_text,
    capital,
    count,
    days_text,
    join,
    percent,
    seconds_text,
)

LAPTOP = 16e9
"""Bytes of memory that many laptops have."""
_ROW = 0.66  # inches
_AGAIN = {EVERY_OTHER: "half", FULL: "all"}
_ON_PAPER = (
    "Calculated, not measured. Each cell gives the best layout, the time of a step, the memory on the fullest GPU, and"
    " the share of peak speed that the model uses. The bar breaks that memory down; its full length is"
)


def plans(
    choices: Mapping[int, Mapping[str, Sequence[Choice]]], title: str | None = None, width: float = style.WIDTH
) -> Figure:
    """Draw a table with a row for each model and a column for each number of GPUs: the best choice, or that none fits.

    Args:
        choices: for each number of GPUs and each model by name what `plan` gives.
        title: said first; the finding (how many models fit on how many GPUs) then stands under it.
        width: of the picture, in inches.
    """
    models = list(dict.fromkeys(name for column in choices.values() for name in column))
    if not models or any(list(column) != models for column in choices.values()):
        raise CourseError("plans: the same models for every number of GPUs, one at least.")
    found = plans_finding(choices)
    left = 0.25 + max(style.text_width(name, style.TEXT, bold=True) for name in models) / style.DOTS
    marks = {part: Patch(facecolor=PARTS[part]) for part in next(iter(best_or_first(choices).values())).memory.parts()}
    above = style.legend_height(list(marks), left, 0.0) + 0.25
    room = max(choice.room for choice in best_or_first(choices).values())
    explained = f"{_ON_PAPER} {bytes_text(room)}."
    heading = (title, f"{found}. {explained}") if title else (found, explained)
    margins = {"left": left, "right": 0.1, "below": 0.08, "above": above, "width": width}
    picture, (ax,) = style.new_picture(*heading, heights=[_ROW * len(models)], **margins)
    ax.set_xlim(0, len(choices))
    ax.set_ylim(len(models), 0)
    ax.set_xticks([index + 0.5 for index in range(len(choices))], [f"{gpus} GPUs" for gpus in choices])
    ax.xaxis.tick_top()
    ax.set_yticks([index + 0.5 for index in range(len(models))], models, parse_math=False)
    ax.tick_params(length=0, labelsize=style.TEXT)
    for label in [*ax.get_xticklabels(), *ax.get_yticklabels()]:
        label.set_fontweight("bold")
    ax.spines[:].set_visible(False)
    pixels = (width - left - 0.1) * style.DOTS / len(choices)
    cells = []
    for index, (gpus, column) in enumerate(choices.items()):
        for row, name in enumerate(models):
            chosen = best(column[name])
            _cell(ax, index, row, chosen, column[name], pixels)
            cells.append(f"{name} on {gpus} GPUs: {cell_text(chosen, column[name])}.")
    style.draw_legend(ax, marks, offset=0.32)
    picture.alt_text = " ".join([f"Table. {found}. {explained}", *cells])
    return picture


def best_or_first(choices: Mapping[int, Mapping[str, Sequence[Choice]]]) -> dict[tuple[int, str], Choice]:
    """For every cell a choice: the best, or where none fits the one that needs least memory."""
    return {(gpus, name): best(found) or found[0] for gpus, column in choices.items() for name, found in column.items()}


def cell_text(chosen: Choice | None, found: Sequence[Choice]) -> str:
    """One cell in words."""
    if chosen is None:
        least = min(choice.memory.total for choice in found)
        return f"none of {count(len(found), 'choice')} fits, the least needs {bytes_text(least)} on a GPU"
    return f"{chosen}: {_amounts(chosen)}"


def _amounts(chosen: Choice) -> str:
    step, kept = seconds_text(chosen.step), bytes_text(chosen.memory.total)
    return f"{step}, {kept}, {percent(chosen.peak_share)}"


def _cell(ax: Axes, column: int, row: int, chosen: Choice | None, found: Sequence[Choice], pixels: float) -> None:
    """Three lines of text over a bar of memory; grey where nothing fits."""
    edge = {"edgecolor": "white", "linewidth": 2}
    ax.add_patch(Rectangle((column, row), 1, 1, facecolor="#F3F3F3" if chosen else "#DDDDDD", **edge))
    x = column + 8 / pixels
    write = {"va": "center", "fontsize": style.SMALL, "color": style.INK, "parse_math": False}
    if chosen is None:
        least = min(choice.memory.total for choice in found)
        ax.text(x, row + 0.38, "does not fit", fontweight="bold", **write)
        ax.text(x, row + 0.62, f"at least {bytes_text(least)} per GPU", **write)
        return
    layout = chosen.layout
    ways = [f"ZeRO {layout.zero}"] if layout.data > 1 else []
    ways += ["ZB-V"] if layout.zero_bubble else []
    ways += ["offloaded"] if layout.offload else []
    ways += [f"{_AGAIN.get(layout.again, layout.again)} recomputed"] if layout.again != NOTHING else []
    lines = [
        f"DP {layout.data} × TP {layout.tensor} × PP {layout.pipeline}",
        ", ".join(ways) or "nothing to divide",
        _amounts(chosen),
    ]
    for line, (text, weight) in enumerate(zip(lines, ("bold", "normal", "normal"), strict=True)):
        ax.text(x, row + 0.18 + 0.22 * line, style.shorten(text, pixels - 12), fontweight=weight, **write)
    start, wide = x, 1 - 16 / pixels
    ax.add_patch(Rectangle((x, row + 0.78), wide, 0.12, facecolor="white", edgecolor=style.FAINT, linewidth=0.6))
    for part, amount in chosen.memory.parts().items():
        length = wide * amount / chosen.room
        ax.add_patch(Rectangle((start, row + 0.78), length, 0.12, facecolor=PARTS[part], linewidth=0))
        start += length


def plans_finding(choices: Mapping[int, Mapping[str, Sequence[Choice]]]) -> str:
    """How many of the models fit on how many GPUs, by the formulas."""
    fitting = {gpus: [name for name, found in column.items() if best(found)] for gpus, column in choices.items()}
    (fewest, names), *rest = fitting.items()
    models = count(len(next(iter(choices.values()))), "model")
    first = f"{len(names) or 'none'} of {models} fit on {fewest} GPUs"
    others = [f"{len(names) or 'none'} on {gpus}" for gpus, names in rest]
    return f"On paper {join([first, *others])}"


def published(runs: Sequence[H100Run]) -> Figure:
    """Draw predicted against published: seconds of a step and peak memory, a mark for each run, both halves apart.

    Args:
        runs: of `published_runs`.
    """
    found = published_finding()
    kinds = {
        "training set": (True, style.CURVES[5], "o"),
        "test set": (False, style.CURVES[1], "s"),
    }
    marks = {name: Patch(facecolor=colour) for name, (_, colour, _) in kinds.items()}
    margins = {"left": 0.75, "right": 0.2, "above": style.legend_height(list(marks), 0.75) + 0.1}
    under = "Published runs on 8 to 1,024 H100 and H200 GPUs; points on the line are exact."
    picture, axes = style.new_picture(found, under, heights=[2.8, 2.8], side_by_side=True, **margins)
    values = [(run, run.predicted()) for run in runs]
    panels = {
        "seconds of a step": [(run, run.seconds, choice.step) for run, choice in values],
        "GiB at the peak": [(run, run.memory / GIB, choice.memory.total / GIB) for run, choice in values if run.memory],
    }
    for ax, (name, points) in zip(axes, panels.items(), strict=True):
        for half, colour, mark in kinds.values():
            here = [(there, predicted) for run, there, predicted in points if run.fits_rates == half]
            x, y = zip(*here, strict=True)
            ax.scatter(x, y, s=22, color=colour, marker=mark, linewidths=0.6, edgecolors="white", zorder=3)
        both = [value for _, *pair in points for value in pair]
        ends = [min(both) * 0.85, max(both) * 1.15]
        ax.plot(ends, ends, color=style.FAINT, linewidth=1)
        if ends[1] > 20 * ends[0]:
            ax.set_xscale("log")
            ax.set_yscale("log")
        ax.set_xlim(ends)
        ax.set_ylim(ends)
        ax.set_xlabel(f"published: {name}", fontsize=style.TEXT)
        ax.set_ylabel("predicted", fontsize=style.TEXT)
        ax.tick_params(labelsize=style.SMALL)
        ax.spines[["top", "right"]].set_visible(False)
    style.draw_legend(axes[0], marks)
    fitted, judged = (errors([run for run in runs if run.fits_rates == half]) for half in (True, False))
    picture.alt_text = (
        f"Two panels, predicted against published. {found}. The training set has {fitted.rows} runs, with the step off "
        f"by {100 * fitted.step:.0f} percent and memory by {100 * fitted.memory:.0f}. The test set has {judged.rows}, "
        f"with {100 * judged.step:.0f} and {100 * judged.memory:.0f} percent."
    )
    return picture


def why_many(estimate: TrainingEstimate) -> Figure:
    """Draw what a training run needs: its memory beside a GPU's and a laptop's, and its time on few GPUs and on many.

    Args:
        estimate: of `estimate_training`.
    """
    need, times = f"to train {estimate.training.name}", estimate.times
    node, each = estimate.cluster.node, estimate.cluster.memory
    machines = {f"a machine with {node} GPUs": node * each, "one GPU": each, "a laptop": LAPTOP}
    rows = [count(time.gpus, "GPU") for time in times]
    ends = [bytes_text(estimate.memory.total), *(days_text(time.seconds) for time in times)]
    left, right = room_for_names([need, *machines, *rows]), room_for_ends(ends, 0.2)
    marks = {part: Patch(facecolor=PARTS[part]) for part in estimate.memory.parts()}
    margins = {"left": left, "right": right, "between": 0.42, "below": 0.3}
    margins["above"] = style.legend_height(list(marks), left, right) + 0.24
    title, under = why_many_finding(estimate), f"{_against_published(estimate)}."
    heights = [0.34 * (1 + len(machines)), 0.34 * len(rows)]
    picture, (memory, time_axes) = style.new_picture(title, under, heights=heights, **margins)
    _memory_panel(memory, estimate, need, machines)
    style.draw_legend(memory, marks, offset=0.28)
    _times_panel(time_axes, times, rows)
    parts = join([f"{part} {bytes_text(amount)}" for part, amount in estimate.memory.parts().items()])
    picture.alt_text = as_sentences(
        f"Two panels of bars. {title}",
        f"{under} Memory {need}: {bytes_text(estimate.memory.total)} ({parts})",
        capital(join([f"{name} has {bytes_text(amount)}" for name, amount in machines.items()])),
        "Time: " + "; ".join(f"{row} {time}" for row, time in zip(rows, times, strict=True)),
    )
    return picture


def why_many_finding(estimate: TrainingEstimate) -> str:
    """How long few GPUs and many would take, and whether the memory of the few would do."""
    few, many = estimate.times[0], estimate.times[-1]
    name, long, short = estimate.training.name, days_text(few.seconds), days_text(many.seconds)
    if few.fits:
        return f"Training {name} takes {long} on {count(few.gpus, 'GPU')} and {short} on {many.gpus}"
    lacking = f"{count(few.gpus, 'GPU')} would take {long}, if {'it' if few.gpus == 1 else 'they'} had enough memory"
    return f"On paper, {many.gpus} GPUs train {name} in {short}; {lacking}"


def _against_published(estimate: TrainingEstimate) -> str:
    """That nothing was measured, and what the planner says, on the most GPUs, beside what the real training took."""
    training, most = estimate.training, estimate.times[-1]
    size = f"{training.model.parameters / 1e9:.0f} billion parameters, {training.tokens / 1e12:.2g} trillion tokens"
    real, paper = (f"{hours / 1e6:.2f} million" for hours in (training.gpu_hours, most.gpu_hours))
    return (
        f"Calculated for H100 GPUs: {size}, activations of one text of {training.length:,} tokens."
        f" {capital(days_text(most.seconds))} on {most.gpus} GPUs is {paper} GPU hours; the real training used {real}"
    )


def _memory_panel(ax: Axes, estimate: TrainingEstimate, need: str, machines: Mapping[str, float]) -> None:
    looks = {part: {"color": PARTS[part]} for part in estimate.memory.parts()}
    ax.set_xlim(0, max(estimate.memory.total, *machines.values()))
    bars = {need: estimate.memory.parts(), **{name: {name: amount} for name, amount in machines.items()}}
    for row, (name, parts) in enumerate(bars.items()):
        whole = name == need
        end = draw_parts(ax, row, parts, looks if whole else {name: {"color": style.FAINT}}, whole and bytes_text)
        write_end(ax, row, end, bytes_text(end), bold=whole)
    ax.xaxis.set_visible(False)
    _name_panel(ax, "memory", bars)


def _times_panel(ax: Axes, times: Sequence[TrainingTime], rows: Sequence[str]) -> None:
    """A bar for each number of GPUs; a note stands in the bar where it has room, and else behind the time."""
    longest = max(time.seconds for time in times)
    ax.set_xlim(0, longest)
    ax.xaxis.set_visible(False)
    for row, time in enumerate(times):
        ax.barh(row, time.seconds, height=0.68, **look_of(style.COLOURS["computing"] if time.fits else None))
        inside = time.note and time.seconds > longest / 2
        write_end(ax, row, time.seconds, days_text(time.seconds) if inside or not time.note else str(time), bold=True)
        if inside:
            ink = style.ink_on(style.COLOURS["computing"]) if time.fits else style.INK
            box = None if time.fits else {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
            at = {"xytext": (8, 0), "textcoords": "offset points", "va": "center_baseline", "bbox": box}
            ax.annotate(time.note, (0, row), fontsize=style.SMALL, color=ink, **at)
    _name_panel(ax, "time", rows)


def _name_panel(ax: Axes, name: str, rows: Collection[str]) -> None:
    name_rows(ax, rows)
    ax.spines[:].set_visible(False)
    ax.set_title(name, fontsize=style.TEXT, fontweight="bold", loc="left", pad=5)
