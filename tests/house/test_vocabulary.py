"""docs/vocabulary.md: about forty words of the machinery, each defined once, in a module that exists and uses it."""

import re

from course_utils.syllabus import ROOT

TABLE = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([^|`]+)` \|$", TABLE, re.MULTILINE)


def module_of(path: str):
    """The file that a path of the table names: below `course_utils`, or the workshop's."""
    return ROOT / path if path.startswith("workshop/") else ROOT / "course_utils" / path


def test_each_term_is_defined_once() -> None:
    terms = [term for term, *_ in ROWS]
    assert 35 <= len(terms) == len(set(terms)) <= 55
    assert all(len(meaning) <= 130 for _, meaning, _ in ROWS)


def test_each_term_is_used_where_the_table_says() -> None:
    for term, _, path in ROWS:
        file = module_of(path)
        assert file.exists(), path
        files = sorted(file.rglob("*.py")) if file.is_dir() else [file]
        text = " ".join(f"{each.stem} {each.read_text(encoding='utf-8')}" for each in files).lower()
        words = re.sub(r"[-_\s]+", " ", text)
        key = term.lower().replace("-", " ")
        assert key in words or key.replace(" ", "") in words, f"{term} does not occur in {path}"
