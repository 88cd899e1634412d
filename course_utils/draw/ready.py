"""When gradients become ready during a backward pass, and what a model's training keeps for each parameter."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from course_utils.draw import style
from course_utils.words import bytes_text, percent, seconds_text, time_unit

PAINTS = {"weights": style.COLOURS["forward"], "gradient": style.COLOURS["backward"]}
PAINTS |= {"optimizer's state": style.COLOURS["optimizer"]}


def ready_order(
    layers: Sequence[tuple[str, int, float]], end: float, title: str, passes: Sequence[float] = ()
) -> Figure:
    """Draw a backward pass: a row for each layer, a bar while it is worked on, a line while its gradient could be sent.

    Below, on the same axis of time, the share of all gradient bytes that is ready.

    Args:
        layers: (name, bytes of its gradients, seconds at which they were ready), in order of readiness.
        end: length of the backward pass in seconds.
        title: said first; the finding then stands under it.
        passes: how long each pass took, where times are medians of several; their spread is said.
    """
    scale, unit = time_unit(end)
    found = ready_finding(layers, end)
    measured = ""
    if len(passes) > 1:
        spread = f"{seconds_text(min(passes))} to {seconds_text(max(passes))}"
        measured = f" (medians of {len(passes)} passes of {spread})"
    work, ready = style.COLOURS["backward"], style.COLOURS["communication"]
    look = {"between": 0.2, "left": 0.8, "right": 0.95, "above": 0.3}
    picture, (ax, under) = style.new_picture(title, found, heights=[0.25 * len(layers) + 0.1, 1.15], **look)
    total, begin = sum(size for _, size, _ in layers), 0.0
    for row, (_, size, seconds) in enumerate(layers):
        bar = {"height": 0.62, "edgecolor": style.INK, "linewidth": 0.5, "color": work}
        ax.barh(row, (seconds - begin) * scale, left=begin * scale, **bar)
        ax.barh(row, max(end - seconds, 0.0) * scale, left=seconds * scale, color=ready, height=0.18)
        share = percent(size / total) if size >= 0.0005 * total else f"< {percent(0.001)}"
        text = f"{bytes_text(size)}, {share}"
        ax.text(1.01, row, text, transform=ax.get_yaxis_transform(), va="center", fontsize=style.SMALL)
        begin = seconds
    ax.set_yticks(range(len(layers)), [name for name, *_ in layers], fontsize=style.SMALL)
    ax.set(ylim=(len(layers) - 0.4, -0.6), xlim=(0, end * scale))
    ax.tick_params(labelbottom=False, length=0)
    words = {"backward pass of the layer": work, "its gradient is ready to be sent": ready}
    style.draw_legend(ax, {word: Patch(facecolor=colour) for word, colour in words.items()})
    draw_share(under, layers, end, scale)
    under.set_xlabel(f"{unit} since the backward pass began{measured}", fontsize=style.TEXT)
    told = "; ".join(f"{name} after {seconds_text(seconds)}" for name, _, seconds in layers)
    picture.alt_text = f"{title}. {found}. Gradients ready: {told}."
    return picture


def draw_share(ax: Axes, layers: Sequence[tuple[str, int, float]], end: float, scale: float) -> None:
    """The share of gradient bytes that is ready, as a staircase over the time, with half of the time marked."""
    total = sum(size for _, size, _ in layers)
    times, shares = [0.0], [0.0]
    for _, size, seconds in layers:
        times.append(seconds * scale)
        shares.append(shares[-1] + 100 * size / total)
    times.append(end * scale)
    shares.append(shares[-1])
    ax.step(times, shares, where="post", color=style.COLOURS["communication"], linewidth=2)
    ax.fill_between(times, shares, step="post", color=style.COLOURS["communication"], alpha=0.2)
    ax.axvline(end * scale / 2, color=style.INK, linewidth=1, linestyle=(0, (4, 3)))
    half = share_at(layers, end / 2)
    right = {"ha": "left", "va": "top" if half > 0.5 else "bottom", "fontsize": style.SMALL}
    ax.text(end * scale * 0.51, 94 * half, f"{percent(half)} at half time", **right)
    ax.set(xlim=(0, end * scale), ylim=(0, 105), yticks=(0, 50, 100))
    ax.set_ylabel("% of bytes\nready", fontsize=style.SMALL)
    ax.grid(axis="y", color=style.GRID, linewidth=0.7)


def share_at(layers: Sequence[tuple[str, int, float]], seconds: float) -> float:
    """The share of all gradient bytes that is ready `seconds` after the backward pass began."""
    total = sum(size for _, size, _ in layers)
    return sum(size for _, size, ready in layers if ready <= seconds) / total if total else 0.0


def ready_finding(layers: Sequence[tuple[str, int, float]], end: float) -> str:
    """What a backward pass shows: how much of the gradient is ready when half of the time is over."""
    half = share_at(layers, end / 2)
    first, last = layers[0][0], layers[-1][0]
    return f"{first} is ready first, {last} last; at half time {percent(half)} of the bytes are ready"


def bytes_per_parameter(kept: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Draw a bar for each way of training: bytes that it keeps for one parameter, by what they hold.

    Args:
        kept: name of the way → {"weights": 4, "gradient": 4, "optimizer's state": 8}.
    """
    parts = list(dict.fromkeys(part for row in kept.values() for part in row))
    colours = PAINTS | {part: colour for part, colour in style.colours_of(parts).items() if part not in PAINTS}
    left = 0.35 + max(style.text_width(name, style.TEXT) for name in kept) / style.DOTS
    picture, (ax,) = style.new_picture(title, heights=[0.42 * len(kept)], left=left, right=0.9, above=0.3)
    for row, (_, amounts) in enumerate(kept.items()):
        begin = 0.0
        for part in parts:
            amount = amounts.get(part, 0.0)
            ax.barh(row, amount, left=begin, height=0.62, color=colours[part], edgecolor="white")
            if amount >= 0.5:
                ink = style.INK if colours[part] == style.COLOURS["backward"] else "white"
                place = {"ha": "center", "va": "center", "fontsize": style.SMALL}
                ax.text(begin + amount / 2, row, f"{amount:.3g}", color=ink, **place)
            begin += amount
        ax.text(begin + 0.15, row, f"{begin:.3g} B", va="center", fontsize=style.TEXT, fontweight="bold")
    ax.set_yticks(range(len(kept)), list(kept), fontsize=style.TEXT)
    ax.set_ylim(len(kept) - 0.5, -0.5)
    ax.set_xlabel("bytes per parameter", fontsize=style.TEXT)
    ax.tick_params(axis="y", length=0)
    style.draw_legend(ax, {part: Patch(facecolor=colours[part]) for part in parts})
    said = {name: [f"{part} {amount:.3g}" for part, amount in row.items()] for name, row in kept.items()}
    rows = [f"{name}: {', '.join(amounts)}" for name, amounts in said.items()]
    picture.alt_text = f"{title}. Bytes per parameter. {'; '.join(rows)}."
    return picture
