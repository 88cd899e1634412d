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
    **{16: (2, 7), 18: (0.5, 7), 19: (2, 5)},
}
"""Column and row of each lesson's box."""
FAMILIES = {
    "beginning and end": ((0, 15), style.FAINT),
    "one machine": ((1, 2, 3), style.COLOURS["forward"]),
    "messages": ((4, 5), style.COLOURS["communication"]),
    "data parallelism": ((6, 7, 8), style.COLOURS["step"]),
    "model and pipeline parallelism": ((9, 10, 17, 19), style.COLOURS["backward"]),
    "mixtures": ((11, 12, 16), "#8F6BB8"),
    "at work": ((13, 14, 18), style.STUCK),
}
"""Lessons of a kind, and their colour."""
ALL_OF_IT = LESSONS[15]
"""The lesson in which all of it comes together, whose box is wide."""
EITHER_WAY = ((16, ALL_OF_IT.number), (17, ALL_OF_IT.number), (18, ALL_OF_IT.number), (19, ALL_OF_IT.number))
"""Lessons that may be read before or after that lesson: their arrows are dashed."""
AFTER_ALL = "Your own training runs"
"""What the course leads to: the words in the last box."""
BOX, ROOM = (150, 62), (166, 88)  # pixels: of a box, and from one to the next
MARGIN, SIZE = 5, (824, 840)
ASIDE = 40  # pixels from a box's middle, where arrows from two lessons come in
WIDE = SIZE[0] - 2 * MARGIN  # pixels: the box of the lesson with all of it
TINT = 0.13  # how strongly a box is filled with its colour
LOW = 34  # pixels: the height of the last box
Point = tuple[float, float]
Box = tuple[float, float, float, float]


def box_of(lesson: Lesson) -> Box:
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


def last_box() -> Box:
    """Return the box below the last lesson, in pixels."""
    left, _, right, bottom = box_of(ALL_OF_IT)
    top = bottom + ROOM[1] - BOX[1]
    return (left + right) / 2 - BOX[0], top, (left + right) / 2 + BOX[0], top + LOW


def path_beside(before: Lesson, after: Lesson) -> list[Point]:
    """Return the corners of an arrow that leaves a box on its right and goes down between two columns."""
    _, top, right, bottom = box_of(before)
    between = right + (ROOM[0] - BOX[0]) / 2
    return [(right, (top + bottom) / 2), (between, (top + bottom) / 2), (between, box_of(after)[1])]


def path_round(before: Lesson, after: Lesson) -> list[Point]:
    """Return the corners of an arrow that goes down on the left of the box above its end, and then into its end."""
    left, _, right, bottom = box_of(before)
    into = box_of(after)
    x, between, gap = (left + right) / 2, into[0] - (ROOM[0] - BOX[0]) * 0.3, ROOM[1] - BOX[1]
    first, second, to = bottom + gap * 0.45, into[1] - gap * 0.55, (into[0] + into[2]) / 2 - ASIDE
    return [(x, bottom), (x, first), (between, first), (between, second), (to, second), (to, into[1])]


def path_from_the_left(before: Lesson, after: Lesson) -> list[Point]:
    """Return the corners of an arrow that goes down between two columns and enters a box on its left side."""
    left, _, right, bottom = box_of(before)
    into = box_of(after)
    x, between, middle = (left + right) / 2, into[0] - (ROOM[0] - BOX[0]) * 0.7, (into[1] + into[3]) / 2
    across = bottom + (ROOM[1] - BOX[1]) * 0.75
    return [(x, bottom), (x, across), (between, across), (between, middle), (into[0], middle)]


def arrows() -> dict[tuple[int, int], list[Point]]:
    """Every arrow's corners, by the numbers of its two lessons."""
    pairs = [(before, lesson.number) for lesson in LESSONS for before in lesson.builds_on] + [*EITHER_WAY]
    paths = {(before, after): path_of(LESSONS[before], LESSONS[after]) for before, after in pairs}
    for pair in (EITHER_WAY[1], EITHER_WAY[3]):  # a lesson is below these boxes
        paths[pair] = path_beside(*(LESSONS[number] for number in pair))
    paths[7, 11], paths[3, 19] = path_round(LESSONS[7], LESSONS[11]), path_from_the_left(LESSONS[3], LESSONS[19])
    return paths


def effort(lesson: Lesson) -> str:
    """A lesson's minutes and exercises, in words."""
    last = ", with both capstones" if lesson is ALL_OF_IT else ""
    return f"{lesson.minutes_of_pages} min · {count(len(names_of(lesson)), 'exercise')}{last}"


def colour_of(lesson: Lesson) -> str:
    """The colour of a lesson's family."""
    return next(colour for numbers, colour in FAMILIES.values() if lesson.number in numbers)


def alt_text() -> str:
    """The map in words: by families, what each lesson builds on."""
    families = {name: numbers for name, (numbers, _) in FAMILIES.items() if ALL_OF_IT.number not in numbers}
    families["all of it"] = (ALL_OF_IT.number,)
    texts = [
        f"{name.capitalize()}: {', '.join(f'{number} on {listed(LESSONS[number].builds_on)}' for number in numbers)}"
        for name, numbers in families.items()
    ]
    either_way = listed(tuple(before for before, _ in EITHER_WAY))
    return (
        f"Map of the course, which lesson builds on which. {'. '.join(texts)}. Lessons {either_way} may be read before "
        f"or after {ALL_OF_IT.number}, whose exercises end with two capstones."
    )


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
    for pair, corners in arrows().items():
        draw_arrow(ax, corners, dashed=pair in EITHER_WAY)
    left, top, right, _ = last_box()
    middle = (left + right) / 2
    draw_arrow(ax, [(middle, box_of(ALL_OF_IT)[3]), (middle, top)])
    draw_rectangle(ax, last_box(), style.FAINT, "white")
    ax.text(
        middle, top + LOW / 2, AFTER_ALL, size=style.SMALL, weight="bold", color=style.INK, ha="center", va="center"
    )
    for lesson in LESSONS:
        draw_box(ax, lesson)
    draw_legend(ax)
    picture.alt_text = alt_text()
    return picture


def draw_arrow(ax, corners: list[Point], dashed: bool = False) -> None:
    """An arrow along its corners."""
    (from_x, from_y), (x, y) = corners[-2:]
    away = math.dist((from_x, from_y), (x, y))
    near = (x - 3 * (x - from_x) / away, y - 3 * (y - from_y) / away)  # under the tip, which begins here
    xs, ys = zip(*corners[:-1], near, strict=True)
    ax.plot(xs, ys, color=style.FAINT, linewidth=1.2, linestyle=(0, (3, 2)) if dashed else "-", zorder=1)
    ax.annotate("", (x, y), near, arrowprops={"arrowstyle": "-|>", "color": style.FAINT, "shrinkA": 0, "shrinkB": 0})


def draw_rectangle(ax, box: Box, colour: str, *faces: str) -> None:
    """A box with round corners: its edge in a colour, filled with one face over another."""
    left, top, right, bottom = box
    form = {"boxstyle": "round,pad=0,rounding_size=5", "linewidth": 1.4, "edgecolor": colour, "zorder": 2}
    for face in faces:
        alpha = 1.0 if face == "white" else TINT
        ax.add_patch(FancyBboxPatch((left, top), right - left, bottom - top, facecolor=face, alpha=alpha, **form))


def draw_box(ax, lesson: Lesson) -> None:
    """One lesson: its number and question, minutes and exercises."""
    left, top, right, bottom = box_of(lesson)
    colour, middle = colour_of(lesson), (left + right) / 2
    draw_rectangle(ax, box_of(lesson), colour, "white", colour)
    lines = style.wrap(f"{lesson.number} · {lesson.title}", style.SMALL, True, right - left - 8)
    lines_high = 13 * len(lines) + 12
    y = (top + bottom) / 2 - lines_high / 2 + 6
    for line in lines:
        ax.text(middle, y, line, size=style.SMALL, weight="bold", color=style.INK, ha="center", va="center", zorder=3)
        y += 13
    ax.text(middle, y, effort(lesson), size=style.SMALL, color="#444444", ha="center", va="center", zorder=3)


def draw_legend(ax) -> None:
    """The families and their colours, and the two kinds of arrows, in the corner without boxes."""
    x, y = MARGIN + 2 * ROOM[0] + 90, MARGIN + 8
    ax.text(x, y, "What builds on what", size=style.TITLE, weight="bold", color=style.INK, va="center")
    for name, (_, colour) in FAMILIES.items():
        y += 22
        draw_rectangle(ax, (x, y - 7, x + 24, y + 7), colour, "white", colour)
        ax.text(x + 34, y, name, size=style.TEXT, color=style.INK, va="center")
    for words, dashed in (("the second builds on the first", False), ("in either order", True)):
        y += 22
        draw_arrow(ax, [(x, y), (x + 24, y)], dashed)
        ax.text(x + 34, y, words, size=style.TEXT, color=style.INK, va="center")


def main() -> None:
    """Draw the map and write it."""
    picture = draw()
    described = {"Software": None, "Description": description()}
    picture.savefig(Path(__file__).with_suffix(".png"), dpi=2 * style.DOTS, metadata=described)
    print(picture.alt_text)


if __name__ == "__main__":
    main()
