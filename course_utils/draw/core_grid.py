"""Who runs where: the cores of a machine, the ranks on them, its memory and its GPUs."""

from collections.abc import Collection, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from course_utils.draw import style
from course_utils.words import bytes_text, count

_OWN, _SHARED, _EMPTY = "#0072B2", "#7DB9DE", "#EFEFEF"
_MOST_COLUMNS = 32  # cores drawn one by one; more of them are drawn as one stretch


def cores(
    placements: Sequence[tuple[int, Collection[int], int]],
    allowed: Collection[int] | int,
    memory: float | None = None,
    gpus: Sequence[str] = (),
    title: str | None = None,
) -> Figure:
    """Draw a column for each core and a row for each rank, filled where the rank may run.

    Args:
        placements: (rank, the cores that it may run on, its number of threads).
        allowed: the cores that the course may use; or only how many cores' worth of time it gets (a container's share).
        memory: bytes that all ranks share, where known.
        gpus: names of the GPUs.
        title: said first; the finding ("4 ranks share 2 cores") then stands under it.
    """
    named = {core for _, own, _ in placements for core in own}
    cores = allowed if isinstance(allowed, int) else len(set(allowed) | named)
    columns = sorted(named | (set() if isinstance(allowed, int) else set(allowed))) or list(range(cores))
    rows = sorted(placements)
    found = cores_finding(rows, columns) + (f", with the time of {cores}" if cores < len(columns) else "")
    height = max(0.24, min(0.4, 4.0 / max(len(rows), 1)))
    heights = [height * max(len(rows), 1) + 0.32, 0.42]
    margins = {"left": 0.75, "right": 1.0, "below": 0.12, "between": 0.12}
    picture, (ax, under) = style.new_picture(title, found, heights=heights, **margins)
    for each in (ax, under):
        each.axis("off")
    draw_grid(ax, rows, columns, height)
    draw_words(under, [memory_text(memory), *gpu_texts(gpus)])
    sentences = [f"rank {rank} on {cores_text(own)}, {count(threads, 'thread')}" for rank, own, threads in rows]
    sentences = [f"Cores and ranks of this machine: {found}", *sentences, memory_text(memory), *gpu_texts(gpus)]
    picture.alt_text = f"{'; '.join(sentences)}."
    return picture


def cores_finding(rows: Sequence[tuple[int, Collection[int], int]], columns: Sequence[int]) -> str:
    """How many ranks on how many cores, and whether they share them."""
    if not rows:
        return f"No rank is running; {count(len(columns), 'core')} to use"
    used = [set(own) for _, own, _ in rows]
    disjoint = sum(len(own) for own in used) == len(set().union(*used))
    on = count(len(set().union(*used)), "core")
    if len(rows) == 1:
        return f"1 rank on {on}"
    if disjoint and all(len(own) == 1 for own in used):
        return f"{count(len(rows), 'rank')} on {on}: each has one of its own"
    if disjoint:
        return f"{count(len(rows), 'rank')} on {on}: each has its own"
    if len(rows) <= len(set().union(*used)):
        return f"{count(len(rows), 'rank')} share {on}: enough for one each"
    return f"{count(len(rows), 'rank')} share {on}: they take turns"


def cores_text(own: Collection[int]) -> str:
    """`core 3`, `cores 0, 1`, `cores 0–15`."""
    numbers = sorted(own)
    if not numbers:
        return "no core"
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"cores {numbers[0]}–{numbers[-1]}"
    return f"{'core' if len(numbers) == 1 else 'cores'} {', '.join(map(str, numbers))}"


def memory_text(memory: float | None) -> str:
    """The memory, in words."""
    return f"{bytes_text(memory)} of memory for all" if memory else "memory: not known"


def gpu_texts(gpus: Sequence[str]) -> list[str]:
    """A few words for each kind of GPU, or that there is none."""
    if not gpus:
        return ["no GPU: everything runs on the cores"]
    return [f"{gpus.count(name)} × {name}" if gpus.count(name) > 1 else name for name in dict.fromkeys(gpus)]


def draw_grid(
    ax: Axes, rows: Sequence[tuple[int, Collection[int], int]], columns: Sequence[int], height: float
) -> None:
    """Fill the field of rank and core where the rank may run on the core."""
    ax.set_xlim(0, max(len(columns), 1))
    ax.set_ylim(max(len(rows), 1), -0.32 / height)
    every = max(1, -(-len(columns) // 16))
    for index, core in enumerate(columns):
        if index % every == 0:
            name = f"core {core}" if len(columns) <= 8 else str(core)
            ax.text(index + 0.5, -0.1 / height, name, ha="center", va="center", fontsize=style.TEXT, color="#555555")
    if len(columns) > 8:
        ax.text(-0.012, -0.1 / height, "core", transform=ax.get_yaxis_transform(), ha="right", **_middle("#555555"))
    shared = {core for core in columns if sum(core in own for _, own, _ in rows) > 1}
    gap = 0.06 if len(columns) <= _MOST_COLUMNS else 0.0
    if not rows:
        for index in range(len(columns)):
            ax.add_patch(Rectangle((index + gap / 2, 0.1), 1 - gap, 0.8, facecolor=_EMPTY, edgecolor="none"))
    for row, (rank, own, threads) in enumerate(rows):
        ax.text(-0.012, row + 0.5, f"rank {rank}", transform=ax.get_yaxis_transform(), ha="right", **_middle())
        words = count(threads, "thread")
        ax.text(1.015, row + 0.5, words, transform=ax.get_yaxis_transform(), ha="left", **_middle("#555555"))
        for index, core in enumerate(columns):
            colour = _EMPTY if core not in own else _SHARED if core in shared else _OWN
            ax.add_patch(Rectangle((index + gap / 2, row + 0.1), 1 - gap, 0.8, facecolor=colour, edgecolor="none"))


def draw_words(ax: Axes, words: Sequence[str]) -> None:
    """Framed words side by side: memory, then GPUs."""
    width = style.WIDTH - 1.75
    ax.set_xlim(0, width)
    ax.set_ylim(0, 1)
    x = 0.0
    for text in words:
        wide = style.text_width(text, style.TEXT) / style.DOTS + 0.24
        frame = {"boxstyle": "round,pad=0,rounding_size=0.06", "facecolor": "white", "edgecolor": style.FAINT}
        ax.add_patch(FancyBboxPatch((x + 0.01, 0.15), wide - 0.02, 0.7, mutation_aspect=1, **frame))
        ax.text(x + wide / 2, 0.5, text, ha="center", parse_math=False, **_middle())
        x += wide + 0.12


def _middle(colour: str = style.INK) -> dict:
    return {"va": "center", "fontsize": style.TEXT, "color": colour}
