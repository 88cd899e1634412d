"""Drawings of lesson 13: where processes sit, what launchers tell them, how data is dealt, trainings resumed, logs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.ticker import MaxNLocator

from course_utils.draw import style
from course_utils.draw.style import paler
from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.story import FailureReport, ReportKind, explain_failure
from course_utils.lessons.gpu_nodes.launch import find_launch
from course_utils.lessons.gpu_nodes.launcher_variables import variables_read
from course_utils.lessons.gpu_nodes.rail_pictures import rails as rails
from course_utils.lessons.gpu_nodes.sentences import span_text, story_text
from course_utils.lessons.gpu_nodes.tries import Try, tries_text
from course_utils.words import as_sentences, count, ranks, time_unit

_MOST = 128  # ranks whose numbers can be read
_OWN, _FIRST, _MARKED = "#7DB9DE", "#0072B2", "#E69F00"
_ROW = 0.62  # inches of a node with one row of squares


def seats(nodes: Sequence[str], title: str = "", marked: Collection[int] = (), seat: str = "GPU") -> Figure:
    """Draw the nodes of a launch with the ranks on them; above a box is its local rank.

    Args:
        nodes: for each rank the name of its node.
        title: said first; the finding (how ranks are numbered) then stands under it.
        marked: ranks that stand out.
        seat: what a box is: "GPU" or "core".
    """
    if not 1 <= len(nodes) <= _MOST:
        raise CourseError(f"pictures.seats: between 1 and {_MOST} ranks can be drawn, not {len(nodes)}.")
    by_node: dict[str, list[int]] = {}
    for rank, node in enumerate(nodes):
        by_node.setdefault(node, []).append(rank)
    most = max(map(len, by_node.values()))
    across = min(len(by_node), max(1, 20 // most))
    down = -(-len(by_node) // across)
    found = seats_finding(by_node)
    heading = (title, found) if title else (found, "")
    layout = {"left": 0.15, "right": 0.1, "above": 0.02, "below": 0.32}
    picture, (ax,) = style.new_picture(*heading, heights=[(_ROW + 0.3) * down], **layout)
    ax.axis("off")
    ax.set_xlim(0, across * (most + 0.8))
    ax.set_ylim(down * 1.5, 0)
    for index, (name, own) in enumerate(by_node.items()):
        _node(ax, (index % across) * (most + 0.8), 1.5 * (index // across), most, name, own, marked)
    words = {"fontsize": style.SMALL, "color": "#555555", "parse_math": False}
    text = f"Each box is a {seat} with one process. Its rank is inside, its local rank above. Dark blue: rank 0"
    if marked:
        text += f". Orange: rank {', '.join(map(str, marked))}"
    ax.annotate(text, (0, 0), xycoords="axes fraction", xytext=(2, -14), textcoords="offset points", **words)
    ranks_text = "; ".join(f"{name}: ranks {', '.join(map(str, own))}" for name, own in by_node.items())
    stands_out = f" Marked: rank {', '.join(map(str, marked))}." if marked else ""
    picture.alt_text = f"Nodes as boxes with ranks in them. {as_sentences(*heading)} {ranks_text}.{stands_out}"
    return picture


def seats_finding(by_node: dict[str, list[int]]) -> str:
    """How many ranks on how many nodes, and how the rank follows from the place."""
    sizes = {len(own) for own in by_node.values()}
    total = sum(map(len, by_node.values()))
    where = f"{ranks(total)} on {count(len(by_node), 'node')}"
    in_order = [rank for own in by_node.values() for rank in own] == list(range(total))
    if len(sizes) == 1 and len(by_node) > 1 and in_order:
        return f"{where}: rank = node × {sizes.pop()} + local rank"
    return where


def _node(ax: Axes, x: float, y: float, most: int, name: str, own: Sequence[int], marked: Collection[int]) -> None:
    """A box with the node's name, and its ranks."""
    frame = {"boxstyle": "round,pad=0,rounding_size=0.12", "facecolor": "#F3F3F3", "edgecolor": style.FAINT}
    ax.add_patch(FancyBboxPatch((x + 0.1, y + 0.06), most + 0.5, 1.34, linewidth=0.8, **frame))
    write = {"ha": "center", "va": "center_baseline", "parse_math": False}
    ax.text(x + 0.22, y + 0.22, name, fontsize=style.SMALL, fontweight="bold", ha="left", va="center_baseline")
    for local, rank in enumerate(own):
        left = x + 0.35 + local
        colour = _MARKED if rank in marked else _FIRST if rank == 0 else _OWN
        ax.add_patch(Rectangle((left + 0.06, y + 0.6), 0.88, 0.7, facecolor=colour, edgecolor="white"))
        ax.text(left + 0.5, y + 0.48, str(local), fontsize=6.5, color="#555555", **write)
        ink = "white" if colour == _FIRST else style.INK
        ax.text(left + 0.5, y + 0.96, str(rank), fontsize=style.TEXT, fontweight="bold", color=ink, **write)


_LINE = 0.19  # inches of a variable
_ASKED = {
    "rank": "which one am I?",
    "world_size": "how many are we?",
    "local_rank": "which one on this node?",
    "master": "where do we meet?",
}


def launchers(environments: Mapping[str, Mapping[str, str]], title: str = "") -> Figure:
    """Draw a column for each launcher: the variables that `find_launch` reads, and what it makes of them.

    Args:
        environments: a launcher's name → the environment of one process that it started.
        title: said first; the finding (what differs between them) then stands under it.
    """
    found = {name: asdict(find_launch(environment)) for name, environment in environments.items()}
    read = {name: variables_read(environment) for name, environment in environments.items()}
    finding = launchers_finding(found, [name for name in environments if "MASTER_ADDR" not in environments[name]])
    lines = {ask: max(1, *(len(read[name][ask]) for name in read)) for ask in _ASKED}
    height = sum(0.25 + _LINE * number for number in lines.values()) + 0.28
    heading = (title, finding) if title else (finding, "")
    picture, (ax,) = style.new_picture(*heading, heights=[height], left=0.15, right=0.1, below=0.05)
    ax.axis("off")
    wide = style.WIDTH - 0.25
    first = 1.45
    column = (wide - first) / len(environments)
    ax.set_xlim(0, wide)
    ax.set_ylim(height, 0)
    plain = {"va": "center_baseline", "parse_math": False}
    for index, name in enumerate(environments):
        ax.text(first + index * column + 0.1, 0.14, name, fontsize=style.TEXT, fontweight="bold", **plain)
    y = 0.28
    for row, (ask, question) in enumerate(_ASKED.items()):
        tall = 0.25 + _LINE * lines[ask]
        if row % 2 == 0:
            ax.add_patch(Rectangle((0, y), wide, tall, facecolor="#F3F3F3", linewidth=0))
        ax.text(0.08, y + 0.15, ask, fontsize=style.TEXT, fontweight="bold", **plain)
        ax.text(0.08, y + 0.32, question, fontsize=style.SMALL, color="#555555", **plain)
        for index, (name, environment) in enumerate(environments.items()):
            x = first + index * column + 0.1
            texts = [f"{variable}={environment[variable]}" for variable in read[name][ask]] or ["nothing"]
            for line, text in enumerate(texts):
                shown = style.shorten(text, column * style.DOTS * 0.8)
                at = (x, y + 0.15 + _LINE * line)
                ax.text(*at, shown, fontsize=7.2, family="monospace", **plain)
            value = f"→ {found[name][ask]}"
            properties = {"fontsize": style.TEXT, "color": "#0072B2", "fontweight": "bold", **plain}
            ax.text(x, y + 0.15 + _LINE * len(texts) - 0.02, value, **properties)
        y += tall
    sentences = [
        f"{name}: " + ", ".join(f"{ask} {found[name][ask]} from {' and '.join(read[name][ask])}" for ask in _ASKED)
        for name in environments
    ]
    picture.alt_text = f"Table of environment variables. {as_sentences(*heading)} {'. '.join(sentences)}."
    return picture


def launchers_finding(found: Mapping[str, Mapping[str, object]], without_master: Sequence[str] = ()) -> str:
    """Whether all launchers say the same of rank and world size, and which of them name no master."""
    names = list(found)
    known = {tuple(answers[ask] for ask in ("rank", "world_size", "local_rank")) for answers in found.values()}
    if len(known) == 1:
        if without_master:
            missing = " and ".join(without_master)
            return f"The names of rank, world size and local rank differ, and {missing} gives no master"
        return f"{' and '.join(names)} name rank, world size and local rank differently"
    return f"{' and '.join(names)}, for processes that differ"


_BROKEN, _AGAIN, _WHOLE = style.STUCK, "#0072B2", "#D0D0D0"


def tries(taken: Sequence[Try], undisturbed: Sequence[float], title: str = "") -> Figure:
    """Draw every try's loss over the steps, with a cross where a rank was killed and an arrow back to the checkpoint.

    Args:
        taken: the tries, in order.
        undisturbed: the loss at the end of each epoch of the same training when nobody is killed.
        title: said first; the finding (steps done twice, where it ended) then stands under it.
    """
    found = tries_text(taken, undisturbed[-1])
    heading = (title, found) if title else (found, "")
    picture, (ax,) = style.new_picture(*heading, heights=[2.6], left=0.75, right=0.3, above=0.25)
    per_epoch = taken[-1].steps[-1] // len(undisturbed)
    steps = [per_epoch * (epoch + 1) for epoch in range(len(undisturbed))]
    ax.plot(steps, undisturbed, color=_WHOLE, linewidth=12, solid_capstyle="round", zorder=1)
    words = {"fontsize": style.TEXT, "textcoords": "offset points", "parse_math": False}
    third = len(steps) // 4
    at = (steps[third], undisturbed[third])
    ax.annotate("undisturbed", at, xytext=(9, 6), color="#777777", fontweight="bold", **words)
    top = max(undisturbed)
    for index, attempt in enumerate(taken):
        colour = _AGAIN if attempt.died is None else _BROKEN
        properties = {"linewidth": 1.8 if attempt.died is None else 4.5, "markersize": 4 if attempt.died is None else 7}
        ax.plot(attempt.steps, attempt.losses, color=colour, marker="o", zorder=3 + index, **properties)
        if attempt.died is None:
            continue
        y = attempt.losses[-1] if attempt.losses else top
        ax.plot([attempt.died], [y], marker="X", color=_BROKEN, markersize=11, zorder=9)
        note = f"rank {attempt.rank} is killed after step {attempt.died}"
        ax.annotate(note, (attempt.died, y), xytext=(8, 12), color=_BROKEN, fontweight="bold", **words)
        if index + 1 < len(taken):
            _back(ax, attempt.died, taken[index + 1].began, top)
    ax.set_xlim(0, steps[-1] * 1.02)
    ax.set_ylim(0, top * 1.22)
    ax.set_xlabel("step", fontsize=style.TEXT)
    ax.set_title("loss on all training images", fontsize=style.TEXT, loc="left", color="#555555", pad=4)
    ax.grid(axis="y", color=style.GRID, linewidth=0.7)
    parts = [
        f"try {n + 1} from step {attempt.began} to {attempt.ended}" + (", killed" if attempt.died is not None else "")
        for n, attempt in enumerate(taken)
    ]
    picture.alt_text = f"Loss over steps. {as_sentences(*heading)} {'; '.join(parts)}."
    return picture


def _back(ax, died: int, began: int, top: float) -> None:
    """A band over the steps that are done twice, and an arrow back over it."""
    ax.axvspan(began, died, color="#F7E3D4", zorder=0)
    high = top * 1.06
    ax.annotate("", (began, high), (died, high), arrowprops={"arrowstyle": "-|>", "color": _AGAIN, "linewidth": 1.8})
    text = f"back to the checkpoint of step {began}"
    middle = {"ha": "center", "va": "bottom", "fontsize": style.TEXT, "color": _AGAIN, "fontweight": "bold"}
    ax.annotate(text, ((began + died) / 2, high), xytext=(0, 3), textcoords="offset points", **middle)


_START_ROW = 0.42  # inches
_EPOCHS = ("#0072B2", "#E69F00", "#009E73")


@dataclass(frozen=True)
class StartRow:
    """One start.

    Attributes:
        name: "first start".
        done: (epoch, batch) of each of its steps, in order.
        due: those that it had to do.
        written: after how many steps in all it wrote a checkpoint.
        ended: how, in a word or two.
    """

    name: str
    done: Sequence[tuple[int, int]]
    due: Sequence[tuple[int, int]]
    written: Sequence[int]
    ended: str


def starts(rows: Sequence[StartRow], in_epoch: int, title: str) -> Figure:
    """Draw each start as a row of batches, numbered within their epoch; a frame stands where one was due.

    Args:
        in_epoch: batches in an epoch.
        title: the finding.
    """
    layout = {"left": 1.0, "right": 0.95, "above": 0.1, "below": 0.45}
    note = "A colour for each epoch; red: not the batch that was due; ▲ a checkpoint"
    picture, (ax,) = style.new_picture(title, note, heights=[_START_ROW * len(rows)], **layout)
    for y, row in enumerate(rows):
        _draw(ax, y, row, in_epoch)
    last = max(
        [len(row.done) + _steps_before(row.done, in_epoch) for row in rows] + [_end(row, in_epoch) for row in rows]
    )
    ax.set_xlim(0, max(1, last))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=style.TEXT)
    ax.set_xlabel("steps done in all", fontsize=style.TEXT, color="#555555")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    rows_text = "; ".join(f"{row.name}: {len(row.done)} steps, {row.ended}" for row in rows)
    picture.alt_text = f"The starts of one training. {title}. {rows_text}."
    return picture


def _draw(ax: Axes, y: int, row: StartRow, in_epoch: int) -> None:
    first = _steps_before(row.done or row.due, in_epoch)
    for number, (epoch, batch) in enumerate(row.done):
        wrong = number >= len(row.due) or row.due[number] != (epoch, batch)
        face = style.STUCK if wrong else paler(_EPOCHS[epoch % 3], 0.45)
        ax.add_patch(Rectangle((first + number, y - 0.3), 1, 0.46, facecolor=face, edgecolor="white"))
        properties = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": "white" if wrong else style.INK}
        ax.text(first + number + 0.5, y - 0.07, str(batch), **properties)
    if row.due:
        where = _steps_before(row.due, in_epoch), y - 0.3
        ax.add_patch(Rectangle(where, len(row.due), 0.46, fill=False, edgecolor=style.FAINT, linewidth=1, zorder=5))
    for step in row.written:
        ax.plot([step], [y + 0.3], marker="^", color=style.INK, markersize=5, clip_on=False)
    ax.text(1.01, y - 0.07, row.ended, transform=ax.get_yaxis_transform(), va="center", fontsize=style.SMALL)


def _steps_before(batches: Sequence[tuple[int, int]], in_epoch: int) -> int:
    """How many steps are done before the first of these."""
    return batches[0][0] * in_epoch + batches[0][1] if batches else 0


def _end(row: StartRow, in_epoch: int) -> int:
    return _steps_before(row.due, in_epoch) + len(row.due)


_MARKS = {
    ReportKind.CAUSE: ("X", style.STUCK, 9.5, "explains a failure"),
    ReportKind.SIGN: ("s", "#E69F00", 7.0, "shows a failure, but not its reason"),
    ReportKind.CONSEQUENCE: ("o", "#CC79A7", 7.0, "follows from a different rank"),
}
"""Kind of a report → its marker, colour and size in points, and the words of the legend."""
_FEW_RANKS, _FEW_ROW, _MANY_ROW = 10, 0.32, 0.17  # inches
_APART = 15  # pixels from one report of a rank to its next, at least
_SILENT = "reports nothing"


def story(reports: Sequence[FailureReport], world_size: int, title: str = "") -> Figure:
    """Draw what each rank of a failed launch reports and when, and which ranks are silent.

    The cause has a dark edge; if all reports are consequences, none has. Reports of one rank that are too near each
    other to be seen are moved apart.

    Args:
        reports: what the lines of the log report, in any order.
        world_size: the number of ranks.
        title: said first; the finding (what is the cause, and what else was reported) then stands under it.
    """
    if not 1 <= world_size <= _MOST:
        raise CourseError(f"pictures.story: between 1 and {_MOST} ranks can be drawn, not {world_size}.")
    found = explain_failure(reports, world_size)
    cause = found.cause if found and found.cause.kind != ReportKind.CONSEQUENCE else None
    heading = (title, story_text(found, world_size)) if title else (story_text(found, world_size), "")
    writers = [*([None] if any(report.rank is None for report in reports) else []), *range(world_size)]
    high = _FEW_ROW if len(writers) <= _FEW_RANKS else _MANY_ROW
    legend = {_MARKS[kind][3]: _mark(kind) for kind in ReportKind if any(report.kind == kind for report in reports)}
    layout = {"left": 0.85, "right": 0.2, "below": 0.5, "above": style.legend_height(list(legend), 0.85)}
    picture, (ax,) = style.new_picture(*heading, heights=[high * len(writers)], **layout)
    first = min((report.time for report in reports), default=0.0)
    last = max((report.time for report in reports), default=0.0)
    scale, unit = _axis_unit(last - first)
    span = (last - first) * scale or 1.0
    ax.set_xlim(-0.03 * span, 1.03 * span)
    ax.set_ylim(len(writers) - 0.5, -0.5)
    if last == first:
        ax.set_xticks([0])
    named: set[str] = set()
    for y, writer in enumerate(writers):
        if y % 2 == 0:
            ax.axhspan(y - 0.5, y + 0.5, facecolor="#F5F5F5", linewidth=0)
        own = sorted((report for report in reports if report.rank == writer), key=lambda report: report.time)
        if not own:
            ax.text(0, y, _SILENT, fontsize=style.SMALL, color=style.FAINT, style="italic", va="center_baseline")
        _row(ax, y, own, [(report.time - first) * scale for report in own], cause, named)
    labels = ["the job" if writer is None else f"rank {writer}" for writer in writers]
    ax.set_yticks(range(len(writers)), labels, fontsize=style.TEXT if high == _FEW_ROW else style.SMALL)
    ax.set_xlabel(f"time after the first report ({unit})", fontsize=style.TEXT, color="#555555")
    ax.tick_params(axis="y", length=0)
    ax.spines[["left"]].set_visible(False)
    style.draw_legend(ax, legend)
    picture.alt_text = f"The reports of each rank over time. {as_sentences(*heading)} {_listed(reports, first)}"
    return picture


def _axis_unit(span: float) -> tuple[float, str]:
    """The factor from seconds, and the name, of the unit in which an axis of this length reads best."""
    if span < 120:
        return time_unit(span or 1.0)
    return (1 / 60, "minutes") if span < 7200 else (1 / 3600, "hours")


def _mark(kind: ReportKind, is_cause: bool = False, **at: list[float]) -> Line2D:
    """The mark of a report."""
    marker, colour, size, _ = _MARKS[kind]
    edge = {"markeredgecolor": style.INK, "markeredgewidth": 1.4} if is_cause else {"markeredgecolor": "white"}
    data = at or {"xdata": [], "ydata": []}
    return Line2D(
        **data, linestyle="", marker=marker, color=colour, markersize=size + 2 * is_cause, clip_on=False, **edge
    )


def _row(
    ax: Axes,
    y: int,
    own: Sequence[FailureReport],
    at: Sequence[float],
    cause: FailureReport | None,
    named: set[str],
) -> None:
    """The reports of one rank; failures that no row above has named get their names, if there is room."""
    begin, end = ax.get_xlim()
    pixel = (end - begin) / (ax.get_position().width * style.WIDTH * style.DOTS)
    clusters: list[list[tuple[float, FailureReport]]] = []
    for x, report in zip(at, own, strict=True):
        least = clusters[-1][-1][0] + _APART * pixel if clusters else begin
        if not clusters or x > least:
            clusters.append([])
        clusters[-1].append((max(x, least), report))
    for index, cluster in enumerate(clusters):
        for x, report in cluster:
            ax.add_line(_mark(report.kind, report == cause, xdata=[x], ydata=[y]))
        names = dict.fromkeys(each.failure for _, each in cluster if each.failure not in named or each == cause)
        text = ", ".join(names)
        wide = (style.text_width(text) + 16) * pixel
        left, right = cluster[0][0], cluster[-1][0]
        before = clusters[index - 1][-1][0] if index else begin
        after = clusters[index + 1][0][0] if index + 1 < len(clusters) else end
        fits_right, fits_left = right + wide < after, left - wide > before
        if text and (fits_right or fits_left or cause in [each for _, each in cluster]):
            named |= {*names}
            words = {"fontsize": style.SMALL, "va": "center_baseline", "color": style.INK, "parse_math": False}
            x, side = (left - 13 * pixel, "right") if fits_left and not fits_right else (right + 13 * pixel, "left")
            ax.text(x, y, text, ha=side, fontweight="bold" if cause and cause.failure in names else "normal", **words)


def _listed(reports: Sequence[FailureReport], first: float) -> str:
    """All reports in words, in the order of time."""
    in_time = sorted(reports, key=lambda report: report.time)
    return "; ".join(
        f"{'the job' if report.rank is None else f'rank {report.rank}'}: {report.failure}, "
        + (f"{span_text(report.time - first)} after the first report" if report.time > first else "first")
        for report in in_time
    )
