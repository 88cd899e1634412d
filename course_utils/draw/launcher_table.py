"""A table: what a process must know, and which environment variables tell it under which launcher."""

from collections.abc import Mapping
from dataclasses import asdict

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.draw import style
from course_utils.lessons.gpu_nodes.launch import find_launch
from course_utils.lessons.gpu_nodes.launcher_variables import variables_read

_LINE = 0.19  # inches of a variable
_ASKED = {
    "rank": "which am I?",
    "world_size": "how many are we?",
    "local_rank": "which on this node?",
    "master": "where do we meet?",
    "restarts": "which try is it?",
}


def launchers(environments: Mapping[str, Mapping[str, str]], title: str = "") -> Figure:
    """Draw a column for each launcher: the variables that `find_launch` reads, and what it makes of them.

    Args:
        environments: a launcher's name → the environment of one process that it started.
        title: said first; the finding (whether they say the same) then stands under it.
    """
    found = {name: asdict(find_launch(environment)) for name, environment in environments.items()}
    read = {name: variables_read(environment) for name, environment in environments.items()}
    said = launchers_finding(found)
    lines = {ask: max(1, *(len(read[name][ask]) for name in read)) for ask in _ASKED}
    height = sum(0.25 + _LINE * number for number in lines.values()) + 0.28
    heading = (title, said) if title else (said, "")
    picture, (ax,) = style.new_picture(*heading, heights=[height], left=0.15, right=0.1, below=0.05)
    ax.axis("off")
    wide = style.WIDTH - 0.25
    first = 1.45
    column = (wide - first) / len(environments)
    ax.set_xlim(0, wide)
    ax.set_ylim(height, 0)
    plain = {"va": "center_baseline", "parse_math": False}
    for place, name in enumerate(environments):
        ax.text(first + place * column + 0.1, 0.14, name, fontsize=style.TEXT, fontweight="bold", **plain)
    y = 0.28
    for row, (ask, question) in enumerate(_ASKED.items()):
        tall = 0.25 + _LINE * lines[ask]
        if row % 2 == 0:
            ax.add_patch(Rectangle((0, y), wide, tall, facecolor="#F3F3F3", linewidth=0))
        ax.text(0.08, y + 0.15, ask, fontsize=style.TEXT, fontweight="bold", **plain)
        ax.text(0.08, y + 0.32, question, fontsize=style.SMALL, color="#555555", **plain)
        for place, (name, environment) in enumerate(environments.items()):
            x = first + place * column + 0.1
            texts = [f"{variable}={environment[variable]}" for variable in read[name][ask]] or ["nothing"]
            for line, text in enumerate(texts):
                shown = style.shorten(text, column * style.DOTS * 0.8)
                at = (x, y + 0.15 + _LINE * line)
                ax.text(*at, shown, fontsize=7.2, family="monospace", **plain)
            value = f"→ {found[name][ask]}"
            look = {"fontsize": style.TEXT, "color": "#0072B2", "fontweight": "bold", **plain}
            ax.text(x, y + 0.15 + _LINE * len(texts) - 0.02, value, **look)
        y += tall
    told = [
        f"{name}: " + ", ".join(f"{ask} {found[name][ask]} from {' and '.join(read[name][ask])}" for ask in _ASKED)
        for name in environments
    ]
    picture.alt_text = f"Table of environment variables. {title} {said}. {'. '.join(told)}."
    return picture


def launchers_finding(found: Mapping[str, Mapping[str, object]]) -> str:
    """Whether all launchers say the same of rank and world size."""
    names = list(found)
    known = {tuple(one[ask] for ask in ("rank", "world_size", "local_rank")) for one in found.values()}
    if len(known) == 1:
        return f"{' and '.join(names)} use other words for the same five facts"
    return f"{' and '.join(names)}, for processes that differ"
