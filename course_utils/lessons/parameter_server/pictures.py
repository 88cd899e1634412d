"""Pictures of trainings that wait or do not: accuracy over epochs and seconds, staleness, bytes, and who has what."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from course_utils.draw import style
from course_utils.draw.lines import in_words, label, name_ends, room_for_names, round_numbers
from course_utils.errors import CourseError
from course_utils.lessons.parameter_server.digits_trainings import Curve, Served
from course_utils.words import as_sentences, bytes_text, percent, seconds_text


def races(
    rows: Mapping[str, Mapping[str, Sequence[Curve]]],
    title: str,
    subtitle: str = "",
    target: float | None = None,
    lowest: float = 0.5,
) -> Figure:
    """Draw accuracy against epochs (left) and against seconds (right), one row for each setting.

    All rows share the axis of epochs. Each row has its own axis of seconds, or a slow setting would squeeze the others.

    Args:
        rows: the setting ("no straggler") → the way of training → all its runs; every run is a thin line.
        target: an accuracy that is marked by a dashed line.
        lowest: where the axis of accuracy begins.
    """
    if not rows or not all(runs for ways in rows.values() for runs in ways.values()):
        raise CourseError("races: at least one setting, and one run of every way of training.")
    names = list(dict.fromkeys(name for ways in rows.values() for name in ways))
    colours = {name: style.CURVES[index % len(style.CURVES)] for index, name in enumerate(names)}
    marks = {name: Line2D([], [], color=colours[name], linewidth=2) for name in names}
    above = style.legend_height(list(marks)) + 0.22
    margins = {"above": above, "between": 0.8, "width": style.WIDTH}
    picture, left_axes = style.new_picture(title, subtitle, heights=[1.6] * len(rows), **margins)
    longest_epochs = max(run.epochs[-1] for ways in rows.values() for runs in ways.values() for run in runs)
    for row, (left, (setting, ways)) in enumerate(zip(left_axes, rows.items(), strict=True)):
        box = left.get_position()
        width = (box.width - 0.25 / margins["width"]) / 2
        left.set_position((box.x0, box.y0, width, box.height))
        right = picture.add_axes((box.x1 - width, box.y0, width, box.height))
        longest_seconds = max(run.seconds[-1] for runs in ways.values() for run in runs)
        longest = {"epochs": longest_epochs, "seconds": longest_seconds}
        for ax, what in ((left, "epochs"), (right, "seconds")):
            for name, runs in ways.items():
                for run in runs:
                    ax.plot(getattr(run, what), run.accuracies, color=colours[name], linewidth=1.2, alpha=0.85)
            if target is not None:
                ax.axhline(target, color=style.FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
            ax.set_xlim(0, longest[what])
            _finish(ax, what if what == "seconds" or row == len(rows) - 1 else "", lowest)
            ax.set_title(f"{setting}, against {what}", fontsize=style.TEXT, fontweight="bold", loc="left", pad=4)
        left.set_ylabel("test images recognised", fontsize=style.TEXT)
        right.tick_params(labelleft=False)
    style.draw_legend(left_axes[0], marks, offset=0.28)
    text = "; ".join(
        f"{setting}, {name}: {percent(runs[0].accuracies[-1])} after {runs[0].epochs[-1]:.1f} epochs"
        f" and {seconds_text(runs[0].seconds[-1])}"
        for setting, ways in rows.items()
        for name, runs in ways.items()
    )
    picture.alt_text = as_sentences("Curves of accuracy against epochs and against seconds", title, subtitle, text)
    return picture


def served(virtual: Sequence[Served], real: Sequence[Served], title: str, subtitle: str = "") -> Figure:
    """Draw updates per second, mean staleness and accuracy over the number of workers, one under the other.

    Args:
        virtual: drawn as a line. real: drawn as dots.
    """
    parts = {"rate": "updates per second", "staleness": "mean staleness", "accuracy": "test images recognised"}
    marks = {
        "virtual workers": Line2D([], [], color=style.CURVES[0], marker="o", markersize=4),
        "real workers": Line2D([], [], color=style.CURVES[1], marker="D", markersize=7, linestyle=""),
    }
    margins = {"left": 0.7, "between": 0.6, "above": style.legend_height(list(marks)) + 0.22}
    picture, axes = style.new_picture(title, subtitle, heights=[0.95] * 3, **margins)
    counts = [run.workers for run in virtual]
    for ax, (part, words) in zip(axes, parts.items(), strict=True):
        ax.plot(counts, [getattr(run, part) for run in virtual], color=style.CURVES[0], marker="o", markersize=4)
        there = [run.workers for run in real], [getattr(run, part) for run in real]
        ax.plot(*there, color=style.CURVES[1], marker="D", markersize=7, linestyle="", zorder=1)
        ax.set_xscale("log")
        ax.set_ylim(bottom=0)
        in_words(ax.xaxis, counts)
        ax.yaxis.set_major_locator(MaxNLocator(3))
        if part == "accuracy":
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
        label(ax, "workers" if ax is axes[-1] else "", words, above=True)
    style.draw_legend(axes[0], marks, offset=0.28)
    text = "; ".join(
        f"{kind}, {run.workers}: {run.rate:.0f} updates per second, staleness {run.staleness:.0f}, "
        f"{percent(run.accuracy)} recognised"
        for kind, runs in {"virtual": virtual, "real": real}.items()
        for run in runs
    )
    picture.alt_text = as_sentences("Three panels over the number of workers", title, subtitle, text)
    return picture


def _finish(ax, x: str, lowest: float) -> None:
    """Give axes their style: shares in percent, a grid, no box."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(style.FAINT)
    ax.tick_params(labelsize=style.TEXT, color=style.FAINT)
    ax.set_ylim(lowest, 1.0)
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: percent(share)))
    ax.grid(color=style.GRID, linewidth=0.7)
    ax.set_xlabel(x, fontsize=style.TEXT)


def staleness(histograms: Mapping[str, Sequence[int]], predicted: float, title: str, subtitle: str = "") -> Figure:
    """Draw how many updates were how old, an axes for each run, the mean and the predicted mean marked.

    Args:
        histograms: the setting → the staleness of every update.
        predicted: the mean that was predicted, the same for all.
    """
    if not histograms or not all(len(ages) for ages in histograms.values()):
        raise CourseError("staleness: at least one run, with at least one update.")
    margins = {"left": 0.55, "right": 0.15, "above": 0.28, "below": 0.55, "side_by_side": True}
    picture, axes = style.new_picture(title, subtitle, heights=[2.1] * len(histograms), **margins)
    oldest = max(max(ages) for ages in histograms.values())
    for ax, (setting, ages) in zip(axes, histograms.items(), strict=True):
        counts = np.bincount(np.asarray(ages), minlength=oldest + 1)
        ax.bar(np.arange(oldest + 1), counts, width=0.85, color=style.COLOURS["forward"])
        mean = float(np.mean(ages))
        ax.axvline(mean, color=style.STUCK, linewidth=1.8)
        ax.axvline(predicted, color=style.INK, linewidth=1.4, linestyle=(0, (3, 3)))
        ax.set_title(setting, fontsize=style.TEXT, fontweight="bold", loc="left", pad=4)
        text = f"mean {mean:.2f}\npredicted {predicted:g}"
        late = mean > 0.5 * oldest
        text_position = {
            "xytext": (-6 if late else 6, -3),
            "textcoords": "offset points",
            "ha": "right" if late else "left",
        }
        at = min(mean, predicted) if late else max(mean, predicted)
        ax.annotate(text, (at, 1), xycoords=ax.get_xaxis_transform(), va="top", fontsize=style.SMALL, **text_position)
        ax.set_xlim(-0.7, oldest + 0.7)
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        ax.set_xlabel("staleness of an update", fontsize=style.TEXT)
        ax.grid(axis="y", color=style.GRID, linewidth=0.7)
        ax.set_axisbelow(True)
    axes[0].set_ylabel("updates", fontsize=style.TEXT)
    means_text = "; ".join(
        f"{setting}: mean {np.mean(ages):.2f}, from {min(ages)} to {max(ages)}" for setting, ages in histograms.items()
    )
    picture.alt_text = as_sentences(
        "Histograms of staleness", title, subtitle, f"Predicted mean {predicted:g}; {means_text}"
    )
    return picture


def who_has_what(counts: np.ndarray, rows: str, columns: str, title: str, subtitle: str = "") -> Figure:
    """Draw a dot for each holder and each class, its area the number of examples.

    Args:
        counts: (holders, classes), how many examples each holder has of each class.
        rows, columns: what holders and classes are, "clinic" and "digit".
    """
    counts = np.asarray(counts)
    if counts.ndim != 2 or not counts.size:
        raise CourseError("who_has_what: needs a table of numbers, a row for each holder.")
    holders, classes = counts.shape
    picture, (ax,) = style.new_picture(
        title, subtitle, heights=[0.42 * holders], left=1.0, right=1.3, above=0.1, below=0.55
    )
    across, down = np.meshgrid(np.arange(classes), np.arange(holders))
    ax.scatter(across, down, s=260 * counts / max(1, counts.max()), color=style.COLOURS["forward"])
    ax.set_xlim(-0.6, classes - 0.4)
    ax.set_ylim(holders - 0.4, -0.6)
    ax.set_xticks(range(classes))
    ax.set_yticks(range(holders), [f"{rows} {row}" for row in range(holders)])
    ax.tick_params(length=0)
    ax.set_xlabel(columns, fontsize=style.TEXT)
    for row, total in enumerate(counts.sum(axis=1)):
        at = {"xytext": (12, 0), "textcoords": "offset points", "va": "center", "fontsize": style.TEXT}
        ax.annotate(f"{total:,} images", (1, row), xycoords=ax.get_yaxis_transform(), **at)
    text = "; ".join(
        f"{rows} {row}: {', '.join(f'{n} of {columns} {c}' for c, n in enumerate(line) if n)}"
        for row, line in enumerate(counts)
    )
    picture.alt_text = as_sentences(f"Dots: how many examples each {rows} has", title, subtitle, text)
    return picture


def loss_over_bytes(
    sent: Mapping[str, Sequence[float]], losses: Mapping[str, Sequence[float]], title: str, subtitle: str = ""
) -> Figure:
    """Draw the loss of each way of training over the bytes that one rank has sent; both axes are logarithmic.

    Args:
        sent: the way → bytes of one rank up to each point.
        losses: the way → the loss there.
    """
    picture, (ax,) = style.new_picture(title, subtitle, heights=[2.7], left=0.75, right=room_for_names(list(losses)))
    colours = {name: style.CURVES[index % len(style.CURVES)] for index, name in enumerate(losses)}
    for name, values in losses.items():
        ax.plot(sent[name], values, color=colours[name], linewidth=1.8, marker="o", markersize=3)
    ax.set_xscale("log")
    ax.set_yscale("log")
    amounts = [each for nbytes in sent.values() for each in nbytes]
    all_losses = [each for values in losses.values() for each in values]
    in_words(ax.xaxis, round_numbers(min(amounts), max(amounts)), bytes_text)
    in_words(ax.yaxis, round_numbers(min(all_losses), max(all_losses)))
    label(ax, "sent by one rank", "loss")
    name_ends(ax, {name: values[-1] for name, values in losses.items()}, colours)
    text = "; ".join(f"{name}: {values[-1]:.2g} after {bytes_text(sent[name][-1])}" for name, values in losses.items())
    picture.alt_text = as_sentences("Curves of the loss over the bytes of one rank", title, subtitle, text)
    return picture
