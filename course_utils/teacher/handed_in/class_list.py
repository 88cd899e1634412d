"""A class list, as a teacher writes it or a learning platform exports it, and who in it has handed something in.

The columns are found by their names, in English or German, so that Moodle's grading worksheet, Canvas's gradebook and
the status file of ILIAS can be given as they are.
"""

import csv
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.teacher.handed_in.hand_ins import Learner

_NAMES = {
    "id": ("id", "identifier", "user id", "usr_id", "id number", "id-nummer", "student id", "matrikelnummer"),
    "other_id": ("sis user id", "student number", "id number", "id-nummer", "matrikelnummer"),
    "email": ("email", "e-mail", "e mail", "mail", "email address", "e-mail-adresse", "e-mail address"),
    "login": ("login", "username", "user name", "sis login id", "benutzername", "anmeldename"),
    "name": ("name", "full name", "fullname", "student", "vollständiger name", "learner"),
    "first": ("first name", "firstname", "given name", "vorname"),
    "last": ("last name", "lastname", "surname", "family name", "nachname"),
}
"""What a column may be called, in lower case; if several fit, the first in the table counts."""
_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_NOT_PEOPLE = ("points possible", "student, test", "test student")
"""Rows of Canvas's gradebook that are nobody."""


@dataclass(frozen=True)
class Person:
    """Somebody in the class list.

    Attributes:
        name: first names before the last name.
        ids: every id and login that the list holds.
        email: "" if there is none.
        row: the list's own row, by column.
    """

    name: str
    ids: tuple[str, ...] = ()
    email: str = ""
    row: dict[str, str] = field(default_factory=dict, compare=False, hash=False)


@dataclass(frozen=True)
class ClassList:
    """A class list.

    Attributes:
        columns: as the file has them.
        people: in the order of the file.
        rows: all rows, also those that are nobody.
    """

    columns: tuple[str, ...]
    people: tuple[Person, ...]
    rows: tuple[dict[str, str], ...]

    def column(self, names: Sequence[str]) -> str | None:
        """The first column that is called by one of these names, in lower case; None without one."""
        return _column(self.columns, names)


@dataclass(frozen=True)
class ClassMatch:
    """Which learner is which person.

    Attributes:
        people: learner's key → person.
        unknown: learners who match no one in the list.
        unclear: learners who match several people, with these.
        absent: people of whom nothing was handed in.
    """

    people: dict[tuple[str, str], Person]
    unknown: tuple[Learner, ...]
    unclear: tuple[tuple[Learner, tuple[Person, ...]], ...]
    absent: tuple[Person, ...]


def read_class_list(file: Path) -> ClassList:
    """Read a class list: a table in CSV, with commas, semicolons or tabs.

    Raises:
        CourseError: it cannot be read, or no column of it names people.
    """
    try:
        text = _decoded(file.read_bytes())
    except OSError as error:
        raise CourseError(f"{file} cannot be read ({error.strerror}).") from None
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    table = [row for row in csv.reader(text.splitlines(keepends=True), delimiter=delimiter) if any(row)]
    columns = [column.strip() for column in table[0]] if table else []
    kinds = {kind: _column(columns, names) for kind, names in _NAMES.items()}
    if all(kinds[kind] is None for kind in ("id", "email", "login", "name", "last")):
        raise CourseError(
            f"{file} has no column for names, e-mail addresses or ids. Its first line has to name the columns, "
            "for example `id,email,name`."
        )
    rows = [dict(zip(columns, [*row, *[""] * len(columns)], strict=False)) for row in table[1:]]
    people = [person for row in rows if (person := _person(row, kinds))]
    return ClassList(tuple(columns), tuple(people), tuple(rows))


def _decoded(data: bytes) -> str:
    """The text of a table that Excel may have written."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _column(columns: Sequence[str], names: Sequence[str]) -> str | None:
    return next((column for column in columns if column.casefold() in names), None)


def _person(row: dict[str, str], kinds: dict[str, str | None]) -> Person | None:
    """The person of a row, or None if it is nobody's."""

    def value(kind: str) -> str:
        column = kinds[kind]
        return row.get(column, "").strip() if column else ""

    name = f"{value('first')} {value('last')}".strip() or _first_names_first(value("name"))
    if value("name").casefold() in _NOT_PEOPLE or not (name or value("id") or value("email") or value("login")):
        return None
    ids = dict.fromkeys(filter(None, (_bare_id(value("id")), value("other_id"), value("login"))))
    return Person(name or value("login") or value("email") or value("id"), tuple(ids), value("email"), row)


def _first_names_first(name: str) -> str:
    """Ada Lovelace, for `Lovelace, Ada`, too."""
    last, comma, first = name.partition(",")
    return f"{first.strip()} {last.strip()}" if comma else name


def _bare_id(identifier: str) -> str:
    """The number in `Participant 1234567`, as Moodle's worksheet calls people in whatever language."""
    found = re.fullmatch(r"\D+ (\d+)", identifier)
    return found[1] if found else identifier


def match(learners: Iterable[Learner], people: Sequence[Person]) -> ClassMatch:
    """Find each learner in the list: by id, else by login or e-mail, else by the whole name, else by a part of it."""
    found: dict[tuple[str, str], Person] = {}
    unknown, unclear = [], []
    for learner in learners:
        fitting = next(filter(None, _fitting(learner, people)), [])
        if len(fitting) == 1:
            found[learner.key] = fitting[0]
        elif fitting:
            unclear.append((learner, tuple(fitting)))
        else:
            unknown.append(learner)
    here = {id(person) for person in found.values()}
    maybe = {id(person) for _, several in unclear for person in several}
    absent = tuple(person for person in people if id(person) not in here | maybe)
    return ClassMatch(found, tuple(unknown), tuple(unclear), absent)


def _fitting(learner: Learner, people: Sequence[Person]) -> Iterable[list[Person]]:
    """Those who fit, by one test after the other, from the surest to the weakest."""
    for known in (learner.id, learner.login):
        if known:
            yield [person for person in people if known.casefold() in map(str.casefold, person.ids)]
    called = learner.name.casefold()
    yield [person for person in people if called in map(str.casefold, person.ids)]
    yield [
        person for person in people if called in (person.email.casefold(), person.email.casefold().partition("@")[0])
    ]
    spellings = [_letters(part) for part in (learner.name, *learner.name.split("-")[1:])]  # a group's name and a hyphen
    for spelling in spellings:
        yield [person for person in people if spelling & _letters(person.name)]
    for spelling in spellings:
        yield [person for person in people if {"".join(words) for words in spelling} & _joined(person.name)]
    for spelling in spellings:
        yield [person for person in people if _is_part(spelling, _letters(person.name))]


def _letters(name: str) -> frozenset[tuple[str, ...]]:
    """The words of a name in alphabetical order, without accents, in both spellings of German umlauts."""
    spelled = {name.casefold(), name.casefold().translate(_GERMAN)}
    plain = {
        "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
        for text in spelled
    }
    return frozenset(tuple(sorted(re.findall(r"\w+", text.replace("_", " ")))) for text in plain)


def _joined(name: str) -> set[str]:
    """A name as Canvas writes it, the last name first and letters only, and as many people call their files."""
    words = name.split()
    joined = set()
    for first in range(len(words)):  # "von Neumann, John" and "Lovelace, Ada King" differ in where the last name begins
        spelled = " ".join(words[first:] + words[:first])
        for text in (spelled.casefold(), spelled.casefold().translate(_GERMAN)):
            plain = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))
            joined |= {re.sub(r"[\W_]", "", text), re.sub(r"[\W_]", "", plain)}
    return joined - {""}


def _is_part(spelling: frozenset[tuple[str, ...]], full: frozenset[tuple[str, ...]]) -> bool:
    """Whether all words of a name are words of the full one: ada, of Ada King Lovelace."""
    return any(words and set(words) <= set(all_words) for words in spelling for all_words in full)
