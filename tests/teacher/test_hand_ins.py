"""What platforms, learners and their systems hand over: whose it is, what is run, and what is said of the rest."""

import io
import os
import stat
import time
import zipfile
from pathlib import Path

import pytest

from course_utils.errors import CourseError
from course_utils.teacher.handed_in import file_tree
from course_utils.teacher.handed_in.file_tree import Rejection
from course_utils.teacher.handed_in.hand_in_sentences import rejection_text
from course_utils.teacher.handed_in.hand_ins import HandIns, find_hand_ins
from course_utils.teacher.handed_in.portal_names import Portal, portal_name

EMPTY = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


def packed(*names: str, content: bytes = EMPTY) -> bytes:
    """A zip with files of these names; a folder where a name ends with a slash."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name in names:
            archive.writestr(name, b"" if name.endswith("/") else content)
    return memory.getvalue()


@pytest.fixture
def hand_ins_of(tmp_path):
    """Find what is in a zip of this content, or in a folder with these files."""

    def find(content: bytes | dict[str, bytes], name: str = "class") -> HandIns:
        (tmp_path / "scratch").mkdir(exist_ok=True)
        if isinstance(content, bytes):
            path = tmp_path / f"{name}.zip"
            path.write_bytes(content)
        else:
            path = tmp_path / name
            for file, data in content.items():
                target = path / file
                target.parent.mkdir(parents=True, exist_ok=True)
                if file.endswith("/"):
                    target.mkdir()
                else:
                    target.write_bytes(data)
        return find_hand_ins([path], tmp_path / "scratch")

    return find


def names(found: HandIns) -> list[tuple[str, str]]:
    return [(file.learner.name, file.own_name) for file in found.submissions]


PORTALS = {
    "moodle with folders": "Ada Lovelace_1234567_assignsubmission_file/04_messages.ipynb",
    "moodle before 4": "Ada Lovelace_1234567_assignsubmission_file_/04_messages.ipynb",
    "moodle without folders": "Ada Lovelace_1234567_assignsubmission_file_04_messages.ipynb",
    "canvas": "lovelaceada_12345_678910_04_messages.ipynb",
    "canvas, late": "lovelaceada_LATE_12345_678910_04_messages-1.ipynb",
    "ilias": "Messages/Abgaben/Lovelace_Ada_ada.l_4711/04_messages.ipynb",
    "ilias, late": "Lovelace_Ada_ada.l_4711/Late Submission - 04_messages.ipynb",
    "ilias, with a time": "Abgaben/Lovelace_Ada_ada.l_4711/20261103101112_04_messages.ipynb",
}


@pytest.mark.parametrize("kind", PORTALS)
def test_a_platforms_zip_says_whose_each_file_is(kind, hand_ins_of) -> None:
    found = hand_ins_of(packed(PORTALS[kind]))
    (file,) = found.submissions
    portal = Portal(kind.split(" ")[0].rstrip(","))
    assert found.portal == file.learner.portal == portal and file.own_name == "04_messages.ipynb"
    assert file.learner.name == ("lovelaceada" if portal is Portal.CANVAS else "Ada Lovelace")
    assert file.learner.id == {Portal.MOODLE: "1234567", Portal.CANVAS: "12345", Portal.ILIAS: "4711"}[portal]
    assert file.late == {"canvas": False, "canvas, late": True, "ilias, late": True}.get(kind)
    expected = time.mktime((2026, 11, 3, 10, 11, 12, 0, 0, -1)) if "time" in kind else None
    assert file.handed_in == expected


def test_hidden_names_and_names_that_no_platform_gives() -> None:
    assert portal_name(("Participant_77_assignsubmission_file", "a.ipynb"), False).name == "Participant 77"
    late = portal_name(("LATE_anon_Ab12C_678_04_messages.ipynb",), False)
    assert (late.name, late.id, late.late, late.file) == ("anon Ab12C", "Ab12C", True, "04_messages.ipynb")
    for name in ("04_messages.ipynb", "ada_04_messages.ipynb", "ada_2_04_messages.ipynb", "team_a_7"):
        assert portal_name((name, "x.ipynb"), False) is None


FOLDERS = [
    ({"ada/04_messages.ipynb": EMPTY}, "ada", "ada/04_messages.ipynb"),
    ({"class/ada/04_messages.ipynb": EMPTY, "class/bob/04_messages.ipynb": EMPTY}, "ada", "ada/04_messages.ipynb"),
    ({"ada/exercises/04_messages.ipynb": EMPTY}, "ada", "ada/exercises/04_messages.ipynb"),
    ({"submitted/ada/04_messages/04_messages.ipynb": EMPTY}, "ada", "submitted/ada/04_messages/04_messages.ipynb"),
    ({"04_messages_ada.ipynb": EMPTY}, "ada", "04_messages_ada.ipynb"),
    ({"ada.ipynb": EMPTY}, "ada", "ada.ipynb"),
    ({"04_messages.ipynb": EMPTY}, "week7", "week7/04_messages.ipynb"),
    ({"ada.zip": packed("exercises/04_messages.ipynb")}, "ada", "ada.zip/exercises/04_messages.ipynb"),
    ({"04_MESSAGES.IPYNB": EMPTY}, "week7", "week7/04_MESSAGES.IPYNB"),
    ({"ada/04_messages.ipynb.txt": EMPTY}, "ada", "ada/04_messages.ipynb.txt"),
]


@pytest.mark.parametrize(("files", "learner", "name"), FOLDERS)
def test_a_learner_is_called_as_the_folder_or_the_file(files, learner, name, hand_ins_of) -> None:
    first = hand_ins_of(files, "week7").submissions[0]
    assert (first.learner.name, first.name) == (learner, name)


def test_a_notebook_is_called_the_same_alone_and_in_a_class(tmp_path, hand_ins_of) -> None:
    hand_ins_of({"ada/04_messages.ipynb": EMPTY, "bob/04_messages.ipynb": EMPTY}, "handed_in")
    for path in ("handed_in", "handed_in/ada", "handed_in/ada/04_messages.ipynb"):
        found = find_hand_ins([tmp_path / path], tmp_path / "scratch").submissions[0]
        assert (found.name, found.learner.name) == ("ada/04_messages.ipynb", "ada")


def test_names_in_any_encoding_are_read(hand_ins_of) -> None:
    plain = packed("Müller Jörg_12_assignsubmission_file/04.ipynb")
    assert hand_ins_of(plain).submissions[0].learner.name == "Müller Jörg"
    for encoding in ("cp437", "utf-8"):  # neither says which it is
        data = packed("M#ller J#rg_12_assignsubmission_file/04.ipynb")
        u, o = "ü".encode(encoding), "ö".encode(encoding)
        if encoding == "utf-8":
            data = packed("M##ller J##rg_12_assignsubmission_file/04.ipynb").replace(b"##ller", u + b"ller")
            data = data.replace(b"J##rg", b"J" + o + b"rg")
        else:
            data = data.replace(b"M#ller", b"M" + u + b"ller").replace(b"J#rg", b"J" + o + b"rg")
        assert hand_ins_of(data).submissions[0].learner.name == "Müller Jörg", encoding


def test_what_systems_leave_behind_is_counted_and_nobody_is_missing(hand_ins_of) -> None:
    files = ("ada/04.ipynb", "__MACOSX/ada/._04.ipynb", "ada/.ipynb_checkpoints/04-checkpoint.ipynb", "bob/Thumbs.db")
    found = hand_ins_of(packed(*files, "eve/", "ada/.DS_Store", "dan/work/.ipynb_checkpoints/x.ipynb"))
    assert names(found) == [("ada", "04.ipynb")] and found.ignored == 5
    rejected = {file.learner.name: file.rejection for file in found.rejected}
    assert rejected == dict.fromkeys(("bob", "eve", "dan"), Rejection.EMPTY_FOLDER)


@pytest.mark.parametrize("kind", ["html", "py", "pdf", "docx"])
def test_what_is_no_notebook_gets_a_line_that_says_what_to_ask_for(kind, hand_ins_of) -> None:
    found = hand_ins_of({f"ada/04_messages.{kind}": b"x", "bob/04_messages.ipynb": EMPTY})
    (file,) = found.rejected
    assert rejection_text(file, file.learner.name) == (
        f"ada handed in 04_messages.{kind}, which is not a notebook. What is needed is 04_messages.ipynb."
    )


def test_other_files_of_a_learner_with_a_notebook_are_only_named(hand_ins_of) -> None:
    found = hand_ins_of({"ada/04_messages.html": b"x", "ada/04_messages.ipynb": EMPTY})
    assert not found.rejected and [file.name for file in found.passed_over] == ["ada/04_messages.html"]


@pytest.mark.parametrize("name", ["../../evil.ipynb", "/etc/evil.ipynb", "a\\..\\..\\evil.ipynb", "C:\\evil.ipynb"])
def test_a_path_that_leads_out_is_rejected_with_a_line(name, hand_ins_of, tmp_path) -> None:
    found = hand_ins_of(packed(name, "ada/04.ipynb"))
    assert [file.rejection for file in (*found.rejected, *found.passed_over)] == [Rejection.OUTSIDE]
    assert names(found) == [("ada", "04.ipynb")] and not list(tmp_path.rglob("evil*"))


def test_links_bombs_damage_and_passwords_are_rejected_each_with_its_reason(hand_ins_of, monkeypatch) -> None:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        link = zipfile.ZipInfo("link/04.ipynb")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("bomb/04.ipynb", b"0" * 5_000_000)
        archive.writestr("torn/mine.zip", b"PK\x03\x04 and no more")
        archive.writestr("deep/1.zip", packed("2.zip", content=packed("3.zip", content=packed("4.ipynb"))))
        archive.writestr("good/04.ipynb", EMPTY)
    monkeypatch.setattr(file_tree, "LARGEST_FILE", 1_000_000)
    found = hand_ins_of(memory.getvalue())
    reasons = {file.learner.name: file.rejection for file in found.rejected}
    assert reasons == {
        "link": Rejection.LINK,
        "bomb": Rejection.TOO_LARGE,
        "torn": Rejection.BROKEN_ZIP,
        "deep": Rejection.TOO_DEEP,
    }
    assert names(found) == [("good", "04.ipynb")]


def test_what_is_unpacked_is_bounded_in_all(hand_ins_of, monkeypatch) -> None:
    monkeypatch.setattr(file_tree, "MOST_BYTES", 250)
    found = hand_ins_of(packed(*(f"{name}/04.ipynb" for name in "abcdef"), content=b"0" * 100))
    assert len(found.submissions) == 2 and [file.rejection for file in found.rejected] == [Rejection.TOO_LARGE] * 4


def test_a_password_is_told(hand_ins_of) -> None:
    data = bytearray(packed("ada/04.ipynb"))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1  # the flag alone: zipfile asks for a password before it reads
    found = hand_ins_of(bytes(data))
    assert [file.rejection for file in found.rejected] == [Rejection.ENCRYPTED]


def test_the_newest_of_a_learner_counts_and_the_older_is_told(hand_ins_of) -> None:
    found = hand_ins_of(packed("ada_1_100_04_messages.ipynb", "ada_1_200_04_messages-1.ipynb", "bob_2_150_x.ipynb"))
    assert [file.name for file in found.submissions] == ["ada_1_200_04_messages-1.ipynb", "bob_2_150_x.ipynb"]
    [(older, newer)] = found.replaced
    assert (older.name, newer.name) == ("ada_1_100_04_messages.ipynb", "ada_1_200_04_messages-1.ipynb")


def test_of_files_in_a_folder_the_date_decides(hand_ins_of, tmp_path) -> None:
    hand_ins_of({"ada/04_messages.ipynb": EMPTY, "ada/04_messages (1).ipynb": EMPTY})
    os.utime(tmp_path / "class/ada/04_messages (1).ipynb", (1e9, 1e9))
    found = find_hand_ins([tmp_path / "class"], tmp_path / "scratch")
    assert [file.name for file in found.submissions] == ["ada/04_messages.ipynb"]


def test_pages_and_solutions_of_the_course_are_not_a_learners(hand_ins_of) -> None:
    course = ("notebooks/04_messages.ipynb", "exercises/04_messages.ipynb", "exercises/solutions/04_messages.ipynb")
    found = hand_ins_of({"ada.zip": packed(*(f"course/{name}" for name in course))})
    assert [file.name for file in found.submissions] == ["ada.zip/course/exercises/04_messages.ipynb"]


def test_nothing_to_grade_is_said(tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CourseError, match="There is not a notebook in the folder"):
        find_hand_ins([tmp_path / "empty"], tmp_path)
    with pytest.raises(CourseError, match="there is no such file"):
        find_hand_ins([Path("nobody.ipynb")], tmp_path)
