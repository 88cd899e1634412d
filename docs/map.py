"""Draws the map of the course: its lessons, and which builds on which. Run it from anywhere:

    .venv/bin/python docs/map.py

It writes map.png beside itself and prints the alternative text. All words and arrows come from
course_utils/syllabus.py; only the places of the boxes stand here.
"""

import math
from pathlib import Path

from matplotlib.patches import FancyBboxPatch

from course_utils.checks.registry import names_of
from course_utils.draw import style
from course_utils.syllabus import LESSONS, Lesson
from course_utils.words import count

PLACES = {
    0: (0.5, 0),
    **{1: (0, 1), 2: (0, 2), 3: (0, 3), 4: (1, 1), 5: (1, 2)},
    **{6: (1, 3), 7: (1, 4), 8: (4, 4), 9: (2, 4), 10: (3, 5), 17: (3, 4)},
    **{11: (2, 6), 12: (3, 6), 13: (1, 5), 14: (0, 5), 15: (2, 8)},
    16: (2, 7),
}
"""Column and row of each lesson's box."""
FAMILIES = {
    "one machine": ((1, 2, 3), style.COLOURS["forward"]),
    "messages": ((4, 5), style.COLOURS["communication"]),
    "data parallelism": ((6, 7, 8), style.COLOURS["step"]),
    "model and pipeline parallelism": ((9, 10, 17), style.COLOURS["backward"]),
    "mixtures": ((11, 12, 16), "#8F6BB8"),
    "at work": ((13, 14), style.OTHERS[0]),
}
"""Lessons of a kind, and their colour."""
ALL_OF_IT = LESSONS[15]
"""The lesson in which all of it comes together, whose box is wide."""
BOX, ROOM = (150, 62), (160, 88)  # pixels: of a box, and from one to the next
MARGIN, SIZE = 5, (800, 776)
ASIDE = 40  # pixels from a box's middle, where arrows from two lessons come in
WIDE = 790  # pixels: that lesson's box, below all others
Point = tuple[float, float]


def box_of(lesson: Lesson) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a lesson's box, in pixels from the picture's top left corner."""
    column, row = PLACES[lesson.number]
    width = WIDE if lesson is ALL_OF_IT else BOX[0]
    centre, top = MARGIN + column * ROOM[0] + BOX[0] / 2, MARGIN + row * ROOM[1]
    return centre - width / 2, top, centre + width / 2, top + BOX[1]


def path_of(before: Lesson, after: Lesson) -> list[Point]:
    """The corners of the arrow from a lesson to one that builds on it: down, across between two rows, and down."""
    left, top, right, bottom = box_of(before)
    into = box_of(after)
    if top == into[1]:
        return [(right, (top + bottom) / 2), (into[0], (top + bottom) / 2)]
    x, middle = (left + right) / 2, (into[0] + into[2]) / 2
    aside = 0 if x == middle or len(after.builds_on) == 1 else math.copysign(ASIDE, x - middle)
    to = x if after is ALL_OF_IT else middle + aside
    across = bottom + (ROOM[1] - BOX[1]) * 0.45
    return [(x, bottom), (x, across), (to, across), (to, into[1])] if x != to else [(x, bottom), (x, into[1])]


def arrows() -> dict[tuple[int, int], list[Point]]:
    """Every arrow's corners, by the numbers of its two lessons."""
    return {
        (before, lesson.number): path_of(LESSONS[before], lesson) for lesson in LESSONS for before in lesson.builds_on
    }


def effort(lesson: Lesson) -> str:
    """A lesson's minutes and exercises, in words."""
    return f"{lesson.minutes_of_pages} min · {count(len(names_of(lesson)), 'exercise')}"


def colour_of(lesson: Lesson) -> str:
    """The colour of a lesson's family; grey for the first and that with all of it."""
    return next((colour for numbers, colour in FAMILIES.values() if lesson.number in numbers), style.FAINT)


def alt_text() -> str:
    """The map in words: by families, what each lesson builds on."""
    families = {name: numbers for name, (numbers, _) in FAMILIES.items()} | {"all of it": (ALL_OF_IT.number,)}
    texts = [
        f"{name.capitalize()}: {', '.join(f'{number} on {listed(LESSONS[number].builds_on)}' for number in numbers)}"
        for name, numbers in families.items()
    ]
    return f"Map of the course, which lesson builds on which. {'. '.join(texts)}."


def listed(numbers: tuple[int, ...]) -> str:
    """Numbers in words: "7", "7 and 10"."""
    *before, last = map(str, numbers)
    return f"{', '.join(before)} and {last}" if before else last


def description() -> str:
    """All that the picture says: what tells an old one from a new one."""
    return " ".join([alt_text(), *(f"{lesson.number} {lesson.title} {effort(lesson)}." for lesson in LESSONS)])


def draw() -> style.Picture:
    """The map: a box for each lesson, an arrow from each to those that build on it."""
    picture = style.Picture(figsize=(SIZE[0] / style.DOTS, SIZE[1] / style.DOTS), dpi=style.DOTS, facecolor="white")
    ax = picture.add_axes((0, 0, 1, 1), xlim=(0, SIZE[0]), ylim=(SIZE[1], 0))
    ax.axis("off")
    for corners in arrows().values():
        xs, ys = zip(*corners, strict=True)
        ax.plot(xs[:-1] + xs[-1:], ys, color=style.FAINT, linewidth=1.2, solid_joinstyle="round", zorder=1)
        tip = {"arrowstyle": "-|>", "color": style.FAINT, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", corners[-1], corners[-2], arrowprops=tip, zorder=1)
    for lesson in LESSONS:
        draw_box(ax, lesson)
    draw_legend(ax)
    picture.alt_text = alt_text()
    return picture


def draw_box(ax, lesson: Lesson) -> None:
    """One lesson: its number and question, minutes and exercises."""
    left, top, right, bottom = box_of(lesson)
    colour, middle = colour_of(lesson), (left + right) / 2
    style_of = {"boxstyle": "round,pad=0,rounding_size=5", "linewidth": 1.4, "edgecolor": colour, "zorder": 2}
    for face, alpha in (("white", 1.0), (colour, 0.13)):
        ax.add_patch(FancyBboxPatch((left, top), right - left, BOX[1], facecolor=face, alpha=alpha, **style_of))
    lines = style.wrap(f"{lesson.number} · {lesson.title}", style.SMALL, True, right - left - 8)
    lines_high = 13 * len(lines) + 12
    y = (top + bottom) / 2 - lines_high / 2 + 6
    for line in lines:
        ax.text(middle, y, line, size=style.SMALL, weight="bold", color=style.INK, ha="center", va="center", zorder=3)
        y += 13
    ax.text(middle, y, effort(lesson), size=style.SMALL, color="#444444", ha="center", va="center", zorder=3)


def draw_legend(ax) -> None:
    """The families and their colours, where there are no boxes."""
    x, y = MARGIN + 2 * ROOM[0] + 90, MARGIN + 8
    ax.text(x, y, "What builds on what", size=style.TITLE, weight="bold", color=style.INK, va="center")
    for name, (_, colour) in FAMILIES.items():
        y += 22
        ax.add_patch(
            FancyBboxPatch((x, y - 6), 18, 12, boxstyle="round,pad=0,rounding_size=3", color=colour, alpha=0.6)
        )
        ax.text(x + 26, y, name, size=style.TEXT, color=style.INK, va="center")


def main() -> None:
    """Draw the map and write it."""
    picture = draw()
    described = {"Software": None, "Description": description()}
    picture.savefig(Path(__file__).with_suffix(".png"), dpi=2 * style.DOTS, metadata=described)
    print(picture.alt_text)


if __name__ == "__main__":
    main()
