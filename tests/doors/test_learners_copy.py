"""The learner's own copy of a release: what arrives, what is new, and that nothing of the learner's is lost."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from course_utils import learners_copy
from course_utils.errors import CourseError
from course_utils.syllabus import ROOT

LESSON, EXERCISES = "notebooks/00_first_steps.ipynb", "exercises/00_first_steps.ipynb"


@pytest.fixture
def two(tmp_path) -> tuple[Path, Path]:
    """A small release, with a file that learners do not get, and the path of a copy that isn't there yet."""
    release = tmp_path / "release"
    for path in (LESSON, "notebooks/src/00_first_steps.py", EXERCISES):
        (release / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, release / path)
    return release, tmp_path / "copy"


def test_a_first_copy_has_the_notebooks_and_none_of_their_sources(two) -> None:
    site, copy = two
    news = learners_copy.update(site, copy)
    assert news.arrived == [LESSON, EXERCISES]
    assert (copy / LESSON).read_bytes() == (site / LESSON).read_bytes()
    assert not (copy / "notebooks" / "src").exists()
    assert learners_copy.update(site, copy).line() == "nothing new"


def test_the_list_of_lessons_to_which_notebooks_link_comes_along(two) -> None:
    site, copy = two
    (site / "README.md").write_text("all lessons")
    (site / "LICENSE").write_text("not for learners")
    assert learners_copy.update(site, copy).arrived == [LESSON, EXERCISES, "README.md"]
    assert (copy / "README.md").read_text() == "all lessons" and not (copy / "LICENSE").exists()


def test_an_edited_notebook_survives_and_the_new_one_lies_beside_it(two) -> None:
    site, copy = two
    learners_copy.update(site, copy)
    (copy / LESSON).write_text("mine")
    (site / LESSON).write_text("theirs")
    (site / EXERCISES).write_text("a new version")
    (site / "notebooks" / "16_new.ipynb").write_text("new")
    news = learners_copy.update(site, copy)
    assert (copy / LESSON).read_text() == "mine"
    assert (copy / "new_versions" / LESSON).read_text() == "theirs"
    assert (copy / EXERCISES).read_text() == "a new version"
    assert (copy / "notebooks" / "16_new.ipynb").read_text() == "new"
    assert (news.kept, news.renewed, news.arrived) == (
        [LESSON],
        [EXERCISES],
        ["notebooks/16_new.ipynb"],
    )
    assert news.line() == (
        "1 new file, 1 file in a new version, 1 file edited by you and left alone, new versions in new_versions. "
        "See UPDATES.md"
    )
    told = (copy / "UPDATES.md").read_text()
    assert "Edited by you" in told and f"- {LESSON}" in told
    assert learners_copy.update(site, copy).line() == "nothing new", "told once"
    (copy / LESSON).unlink()
    assert learners_copy.update(site, copy).arrived == [LESSON], "who deletes a file gets a fresh one"
    assert (copy / LESSON).read_text() == "theirs"


def test_a_file_of_the_learners_in_the_way_is_renamed(two) -> None:
    site, copy = two
    learners_copy.update(site, copy)
    (copy / "notebooks" / "mine.ipynb").write_text("mine")
    (site / "notebooks" / "mine.ipynb").write_text("theirs")
    news = learners_copy.update(site, copy)
    (aside,) = copy.glob("notebooks/mine_*.ipynb")
    assert aside.read_text() == "mine" and (copy / "notebooks" / "mine.ipynb").read_text() == "theirs"
    assert news.renamed == [f"notebooks/mine.ipynb → {aside.name}"]


def test_what_the_site_takes_away_stays_and_an_empty_release_is_rejected(two, capsys) -> None:
    site, copy = two
    learners_copy.update(site, copy)
    (site / LESSON).unlink()
    assert learners_copy.update(site, copy).gone == [LESSON] and (copy / LESSON).exists()
    shutil.rmtree(site)
    assert learners_copy.main([str(site), str(copy)]) == 0, "JupyterLab starts on the copy as it is"
    said = capsys.readouterr()
    assert said.out.startswith("not brought up to date") and "has no notebooks" in said.err


def test_a_failed_write_leaves_whole_files(two, monkeypatch) -> None:
    site, copy = two
    learners_copy.update(site, copy)
    (site / LESSON).write_text("theirs")
    before = (copy / LESSON).read_bytes()

    def full(self, target) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(OSError, match="No space"):
            learners_copy.update(site, copy)
    assert (copy / LESSON).read_bytes() == before and not list(copy.rglob(".new-*"))
    assert learners_copy.update(site, copy).renewed == [LESSON]


def test_a_release_may_be_a_git_repository(two, capsys) -> None:
    site, copy = two
    who = ["-c", "user.name=site", "-c", "user.email=site@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "a release"]):
        subprocess.run(["git", "-C", str(site), *command], check=True, capture_output=True)
    if os.geteuid() == 0:  # the site's, not the learner's
        for path in [site, *site.rglob("*")]:
            os.chown(path, 4711, 4711)
    assert learners_copy.main([f"file://{site}", str(copy), "--branch", "main"]) == 0
    assert capsys.readouterr().out.startswith("2 new files. See UPDATES.md\n")
    assert (copy / LESSON).exists() and not list(copy.glob(".git"))
    assert learners_copy.main([f"file://{site}", str(copy), "--branch", "nowhere"]) == 0
    assert capsys.readouterr().out.startswith("not brought up to date")


def test_what_the_learner_wrote_into_a_new_version_is_kept_too(two) -> None:
    site, copy = two
    learners_copy.update(site, copy)
    (copy / LESSON).write_text("mine")
    (site / LESSON).write_text("second")
    learners_copy.update(site, copy)
    (copy / "new_versions" / LESSON).write_text("my notes")
    (site / LESSON).write_text("third")
    news = learners_copy.update(site, copy)
    assert (copy / LESSON).read_text() == "mine" and (copy / "new_versions" / LESSON).read_text() == "third"
    (aside,) = copy.glob("new_versions/notebooks/00_first_steps_*.ipynb")
    assert aside.read_text() == "my notes" and news.kept == [LESSON]
    assert news.renamed == [f"new_versions/{LESSON} → {aside.name}"]
    (site / LESSON).write_text("fourth")
    news = learners_copy.update(site, copy)
    assert not news.renamed and not news.gone and (copy / "new_versions" / LESSON).read_text() == "fourth"


@pytest.mark.parametrize("damaged", ["", "[]", '{"README.md": 1}', "{"])
def test_a_damaged_memory_loses_nothing(two, damaged) -> None:
    site, copy = two
    learners_copy.update(site, copy)
    (copy / LESSON).write_text("mine")
    (copy / ".course" / "delivered.json").write_text(damaged)
    news = learners_copy.update(site, copy)
    (aside,) = copy.glob("notebooks/00_first_steps_*.ipynb")
    assert aside.read_text() == "mine" and news.renamed == [f"{LESSON} → {aside.name}"]
    assert learners_copy.update(site, copy).line() == "nothing new"


def test_a_folder_that_can_be_no_copy_is_named(two, monkeypatch) -> None:
    site, copy = two
    copy.mkdir()
    monkeypatch.setenv("HOME", str(copy))
    with pytest.raises(CourseError, match="is your home directory"):
        learners_copy.update(site, copy)
    copy.rmdir()
    copy.symlink_to(site.parent / "purged")
    with pytest.raises(CourseError, match="is a link to .*purged, which isn't there"):
        learners_copy.update(site, copy)
    with pytest.raises(CourseError, match="is a relative path"):
        learners_copy.update(site, Path("course"))


def test_a_clone_of_the_course_is_no_copy(two) -> None:
    site, copy = two
    (copy / "course_utils").mkdir(parents=True)
    (copy / LESSON).parent.mkdir()
    (copy / LESSON).write_text("mine")
    with pytest.raises(CourseError, match="is a clone of the course"):
        learners_copy.update(site, copy)
    assert [path.name for path in copy.rglob("*.ipynb")] == ["00_first_steps.ipynb"]
