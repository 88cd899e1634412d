"""Writes the tables of settings.md from `course_utils/settings.py`. Run it from the repository's folder:

    .venv/bin/python -m docs.settings

It writes what stands between the two marks.
"""

from itertools import groupby
from pathlib import Path

from course_utils.settings import SETTINGS, Setting

PAGE = Path(__file__).with_suffix(".md")
MARKS = "<!-- settings: written by docs/settings.py -->\n", "<!-- end of settings -->\n"


def tables() -> str:
    """A table for all that one sort of people sets, in the order of the module."""
    lines: list[str] = []
    for set_by, group in groupby(SETTINGS, key=lambda setting: setting.set_by):
        lines += [f"## Set by {set_by}", "", "| Variable | Value | Without it | What it does |", "|---|---|---|---|"]
        lines += [row(setting) for setting in group]
        lines.append("")
    return "\n".join(lines)


def row(setting: Setting) -> str:
    """A setting's line."""
    without = setting.otherwise or (f"`{setting.default}`" if setting.default else "")
    return f"| `{setting.name}` | {setting.format.allowed} | {without} | {setting.meaning} |"


def with_tables(text: str) -> str:
    """The page, with the tables as they must be."""
    before, rest = text.split(MARKS[0])
    return f"{before}{MARKS[0]}\n{tables()}{MARKS[1]}{rest.split(MARKS[1])[1]}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
