"""Draws the plan of the house from its imports, and writes the table of its rooms. Run it from the repository's folder:

    .venv/bin/python -m docs.house

It writes house.png beside itself, and in house.md the picture's text and what stands between the two marks. Floors and
their order come from pyproject.toml, where import-linter reads them too; rooms and imports from the code; what a room
is for from its docstring.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from course_utils.draw import style
from course_utils.syllabus import LESSONS
from course_utils.words import join
from workshop.house import first_line, floor_of, floors, imports, lesson_of, modules

HERE = Path(__file__).parent
MARKS = "<!-- rooms: written by docs/house.py -->\n", "<!-- end of rooms -->\n"
FLOORS = (
    *("the ground", "the trace", "pictures", "processes", "checks", "the report", "lessons", "teachers' tools"),
    *("the doors", "the workshop"),
)
"""What the floors are called, from the ground up."""
assert len(FLOORS) == len(floors())
WIDE = 970  # pixels
LEFT, RIGHT, TOP = 150, 645, 62  # pixels: where the rooms begin and end, and the highest floor
CELL = 30  # pixels: a column of the table on the right
BOX = 17  # pixels: the height of a room's box


def rooms_on(floor: int) -> list[str]:
    """The rooms of a floor: those that the plan names, the rooms inside them, and of the lessons each."""
    named = floors()[floor]
    inside = [name for name, file in modules().items() if file.name == "__init__.py" and floor_of(name) == floor]
    if "course_utils.lessons" in named:
        return [lesson.package for lesson in LESSONS]
    below = [name for name in inside if name not in named and name != "workshop"]
    return sorted([*named, *below], key=lambda name: (named.index(top_of(name, named)), name))


def top_of(room: str, named: Sequence[str]) -> str:
    """The room of the plan that a room lies in."""
    return next(name for name in named if room == name or (room.startswith(f"{name}.") and name != "course_utils"))


def label(room: str) -> str:
    """What stands in a room's box: a lesson's number and name; of a room inside another, its own name."""
    number = lesson_of(room)
    name = room.rpartition(".")[2]
    return f"{number} {name}" if number is not None else "course_utils as course" if room == "course_utils" else name


@cache
def uses() -> set[tuple[int, int]]:
    """(floor, floor that it imports from)."""
    return {(floor_of(start), floor_of(end)) for start, end in imports()}


def rows_of(floor: int) -> list[list[str]]:
    """A floor's rooms in lines that fit the picture."""
    rows: list[list[str]] = [[]]
    width = 0.0
    for room in rooms_on(floor):
        wide = style.text_width(label(room), style.SMALL) + 16
        if rows[-1] and width + wide > RIGHT - LEFT:
            rows.append([])
            width = 0.0
        rows[-1].append(room)
        width += wide
    return rows


def title() -> str:
    """The finding."""
    up = [FLOORS[start] for start, end in sorted(uses()) if end > start]
    return f"Imports go up from {join(up)}" if up else "Imports go down, from every floor to floors below it"


def alt_text() -> str:
    """The picture in words, floor by floor from the ground up."""
    texts = []
    for floor, name in enumerate(FLOORS):
        below = [FLOORS[end] for end in range(len(FLOORS)) if end != floor and (floor, end) in uses()]
        rooms = rooms_on(floor)
        with_lessons = lesson_of(rooms[0]) is not None
        texts.append(f"{name}: {'a room for each' if with_lessons else ', '.join(map(label, rooms))}")
        texts[-1] += f"; uses {', '.join(below)}" if below else ""
    return f"The floors of the house from the ground up. {title()}. {'. '.join(texts)}."


def draw() -> style.Picture:
    """The floors with their rooms, the ground at the bottom; on the right how often each uses those below."""
    high_of = [len(rows_of(floor)) * (BOX + 5) + 13 for floor in range(len(FLOORS))]
    size = (WIDE, TOP + sum(high_of) + 42)
    picture = style.Picture(figsize=(size[0] / style.DOTS, size[1] / style.DOTS), dpi=style.DOTS, facecolor="white")
    ax = picture.add_axes((0, 0, 1, 1), xlim=(0, size[0]), ylim=(size[1], 0))
    ax.axis("off")
    ax.text(12, 20, title(), size=style.TITLE, weight="bold", color=style.INK, va="center")
    says = "A dot: this floor (row) imports from that one (column). A ring: from itself."
    ax.text(12, 44, says, size=style.SMALL, color="#444444", va="center")
    y = float(TOP)
    for floor in reversed(range(len(FLOORS))):
        rows, high = rows_of(floor), high_of[floor]
        shade = "#F4F4F4" if floor % 2 else "white"
        ax.add_patch(Rectangle((6, y), WIDE - 12, high, facecolor=shade, edgecolor="#DDDDDD", linewidth=0.8))
        ax.text(14, y + high / 2, f"{floor} · {FLOORS[floor]}", size=style.TEXT, color=style.INK, va="center")
        for line, rooms in enumerate(rows):
            x = float(LEFT)
            for room in rooms:
                x = draw_room(ax, room, x, y + 9 + line * (BOX + 5))
        for end in range(len(FLOORS)):
            if (floor, end) in uses():
                paint = style.STUCK if end > floor else style.INK
                face = "white" if end == floor else paint
                box_style = {"facecolor": face, "edgecolor": paint, "linewidth": 1.2}
                ax.add_patch(Circle((RIGHT + 24 + end * CELL, y + high / 2), 4.5, **box_style))
        y += high
    for end in range(len(FLOORS)):
        ax.text(RIGHT + 24 + end * CELL, y + 12, str(end), size=style.TEXT, color=style.INK, ha="center", va="center")
    ax.text(RIGHT + 24 + 4.5 * CELL, y + 29, "floor", size=style.SMALL, color="#444444", ha="center", va="center")
    picture.alt_text = alt_text()
    return picture


def draw_room(ax, room: str, x: float, y: float) -> float:
    """A room's box; returns where the next may begin."""
    wide = style.text_width(label(room), style.SMALL) + 10
    inside = room.count(".") > 1 and lesson_of(room) is None
    edge = style.FAINT if inside else style.COLOURS["communication" if lesson_of(room) is not None else "forward"]
    box_style = {"boxstyle": "round,pad=0,rounding_size=3", "facecolor": "white", "edgecolor": edge, "linewidth": 1.1}
    ax.add_patch(FancyBboxPatch((x, y), wide, BOX, **box_style))
    ax.text(x + wide / 2, y + BOX / 2, label(room), size=style.SMALL, color=style.INK, ha="center", va="center")
    return x + wide + 6


def table() -> str:
    """The rooms, floor by floor from the ground up, each with the first line of its docstring."""
    lines = []
    for floor, name in enumerate(FLOORS):
        lines += [f"**{floor} · {name[:1].upper()}{name[1:]}**", ""]
        for room in rooms_on(floor):
            path = room.replace(".", "/") + ("/" if modules()[room].name == "__init__.py" else ".py")
            lines.append(f"- `{path}`: {first_line(room)}{lessons_used_by(room)}")
        lines.append("")
    return "\n".join(lines)


def lessons_used_by(room: str) -> str:
    """Which lessons' rooms a lesson's room imports from, in words; nothing for other rooms."""
    number = lesson_of(room)
    if number is None:
        return ""
    used = {lesson_of(end) for start, end in imports() if lesson_of(start) == number} - {number, None}
    return f" Uses {'lesson' if len(used) == 1 else 'lessons'} {join(list(map(str, sorted(used))))}." if used else ""


def with_table(text: str) -> str:
    """The page, with the picture's text and the table as they must be."""
    before, rest = text.split(MARKS[0])
    before = re.sub(r"!\[.*\]\(house\.png\)", lambda _: f"![{alt_text()}](house.png)", before)
    return f"{before}{MARKS[0]}\n{table()}{MARKS[1]}{rest.split(MARKS[1])[1]}"


def main() -> None:
    """Draw the plan, and write picture and table."""
    picture = draw()
    described = {"Software": None, "Description": picture.alt_text}
    picture.savefig(HERE / "house.png", dpi=2 * style.DOTS, metadata=described)
    page = HERE / "house.md"
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
    print(picture.alt_text)


if __name__ == "__main__":
    main()
