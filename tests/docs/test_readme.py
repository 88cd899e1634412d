"""What README and docs say is so: the table, the links, the commands."""

import datetime
import re
import shlex
import subprocess
import tomllib

import pytest
import yaml

from course_utils.checks import registry
from course_utils.checks.registry import names_of
from course_utils.syllabus import LESSONS, ROOT
from workshop.publish import readme as table_of_lessons
from workshop.publish.sources import pages

DOCUMENTS = [
    "README.md",
    "AGENTS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/clusters.md",
    "docs/glossary.md",
    "docs/grading.md",
    "docs/install.md",
    "docs/leaderboard.md",
    "docs/programme.md",
    "docs/teachers.md",
    "docs/sources.md",
    "docs/house.md",
    "docs/settings.md",
    "ondemand/README.md",
    "tests/README.md",
]
WRITTEN = [lesson for lesson in LESSONS if lesson.written]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def targets() -> set[str]:
    """The names that make knows."""
    lines = re.findall(r"^([a-z][a-z -]*):(?!=)", text_of("Makefile"), flags=re.MULTILINE)
    return {name for line in lines for name in line.split()}


def test_the_table_of_lessons_is_that_of_the_syllabus() -> None:
    readme = text_of("README.md")
    assert table_of_lessons.with_table(readme) == readme, "run: make notebooks"


def test_the_table_replaces_what_stood_there() -> None:
    old = f"before\n{table_of_lessons.BEGINS}\nold\n{table_of_lessons.ENDS}\nafter\n"
    new = table_of_lessons.with_table(old)
    assert new == table_of_lessons.with_table(new)
    assert new.startswith("before\n") and new.endswith("\nafter\n") and "old" not in new


def test_lessons_are_numbered_without_gaps_and_exercises_have_names_of_their_own() -> None:
    assert [lesson.number for lesson in LESSONS] == list(range(len(LESSONS)))
    names = [name for lesson in LESSONS for name in names_of(lesson)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("lesson", WRITTEN, ids=lambda lesson: lesson.stem)
def test_a_page_begins_with_what_the_table_says(lesson) -> None:
    page = (ROOT / "notebooks" / "src" / f"{lesson.stem}.py").read_text(encoding="utf-8")
    assert f"# # {lesson.title}\n" in page
    line = next(line for line in page.splitlines() if re.match(r"# \*\d", line))
    assert re.match(rf"# \*{lesson.minutes} minutes\b", line)
    assert re.search(rf"· {lesson.ranks or 'no'} (ranks|processes)", line)  # lesson 0 has yet to say what a rank is


@pytest.mark.parametrize("lesson", [lesson for lesson in WRITTEN if lesson.part_2], ids=lambda lesson: lesson.stem)
def test_a_second_page_begins_with_what_the_syllabus_says(lesson) -> None:
    page = (ROOT / "notebooks" / "src" / f"{lesson.second_notebook.stem}.py").read_text(encoding="utf-8")
    assert f"# # {lesson.part_2.title}\n" in page
    first = f"[lesson {lesson.number}, part 1]({lesson.stem}.ipynb)"
    assert f"# *{lesson.part_2.minutes} minutes · builds on {first} · {lesson.ranks or 'no'} ranks*\n" in page


@pytest.mark.parametrize(
    "page", [page for page in pages() if page.kind in ("lesson", "part 2")], ids=lambda page: page.stem
)
def test_a_page_ends_with_what_to_read(page) -> None:
    page = (ROOT / page.source).read_text(encoding="utf-8")
    _, _, titles = page.rpartition("\n# **To read**\n#\n")
    assert 2 <= len(re.findall(r"^# - ", titles, re.MULTILINE)) == titles.count("](http") <= 4


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.further], ids=lambda lesson: lesson.stem)
def test_a_further_notebook_begins_with_what_the_syllabus_says(lesson) -> None:
    page = (ROOT / "notebooks" / "src" / f"{lesson.further.stem}.py").read_text(encoding="utf-8")
    assert f"# # {lesson.further_title}\n" in page
    line = f"# *{lesson.further_minutes} minutes · optional, after [lesson {lesson.number}]({lesson.stem}.ipynb) · "
    assert line in page


def test_every_notebook_is_that_of_a_lesson_with_minutes() -> None:
    there = [page.target for page in pages() if page.teaches]
    assert there == [notebook.relative_to(ROOT) for lesson in LESSONS for notebook in lesson.notebooks]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_files_named_exist(document) -> None:
    folder = (ROOT / document).parent
    for link in re.findall(r"\]\(([^)#]+)\)", text_of(document)):
        assert link.startswith("https://") or (folder / link).exists(), link


def test_the_pictures_have_text_alternatives() -> None:
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", text_of("README.md"))
    assert [picture for _, picture in pictures] == ["docs/screenshot.png", "docs/map.png"]
    for words, picture in pictures:
        assert len(words) > 60 and 10_000 < (ROOT / picture).stat().st_size < 300_000


def test_the_first_screen_says_what_one_will_be_able_to_do_and_how_to_start() -> None:
    first, _, rest = text_of("README.md").partition("\n## The lessons\n")
    assert re.findall(r"^    make (\w+)$", first, flags=re.MULTILINE) == ["lab"]
    assert re.findall(r"^    make (\w+)$", rest, flags=re.MULTILINE) == ["test"]
    assert "you can" in first and len(first.splitlines()) < 40


def test_learners_teachers_and_engineers_each_have_a_door() -> None:
    doors = re.findall(r"^- \*\*You .*?\]\((.*?)\)", text_of("README.md"), flags=re.MULTILINE | re.DOTALL)
    assert doors == ["docs/install.md", "docs/teachers.md", "docs/clusters.md"]


def test_the_readme_is_short() -> None:
    before, _, rest = text_of("README.md").partition(table_of_lessons.BEGINS)
    words = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", before + rest.partition(table_of_lessons.ENDS)[2]).split()
    assert len(words) <= 700


@pytest.mark.parametrize("document", DOCUMENTS)
def test_make_knows_every_target_that_is_named(document) -> None:
    named = set(re.findall(r"(?:`|^    )(?:\w+=\S+ )?make ([a-z-]+)", text_of(document), flags=re.MULTILINE))
    assert named <= targets()


def test_make_help_lists_every_target_on_one_screen() -> None:
    done = subprocess.run(
        ["make", "-C", ROOT, "--no-print-directory", "help"], capture_output=True, text=True, check=True
    )
    listed = set(re.findall(r"^make ([a-z-]+)", done.stdout, flags=re.MULTILINE))
    assert listed == targets() - {"help", "checks-and-tests"}
    assert len(done.stdout.splitlines()) <= 24
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_command_course_knows_what_is_named(document) -> None:
    from course_utils.cli import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert set(re.findall(r"`(?:\.venv/bin/)?course ([a-z]+)", text_of(document))) <= known


def test_the_plain_commands_name_modules_and_extras_that_exist() -> None:
    without_make = text_of("docs/install.md").partition("## Without make\n")[2]
    lines = re.findall(r"^ {6}(\S+ -m .*)$", without_make, flags=re.MULTILINE)
    commands = [shlex.split(line) for line in lines]
    modules = [command[command.index("-m") + 1] for command in commands]
    assert modules == ["venv", "pip", "course_utils.lab", "pip"]
    assert commands[1][-4:] == ["-c", "constraints.txt", "-e", ".[mpi,dev]"]
    index = commands[3][commands[3].index("--index-url") + 1]
    assert f"{index.removesuffix('cpu')}$build" in text_of("tools/packages.sh"), "where make takes its builds from"
    assert commands[3][-4:] == ["-c", "constraints.txt", "torch", "torchvision"]


def test_the_build_service_runs_what_the_readme_names() -> None:
    commands = [line.strip() for line in text_of(".ci/run").splitlines() if line.strip() and not line.startswith("#")]
    assert commands[-1] == "make test-all"
    assert [line for line in commands if "make" in line] == ["make test-all"]
    assert "make test-all" in text_of("README.md")
    assert subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=False).returncode == 0


def test_citation_changelog_and_package_name_one_version_and_its_licences() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    citation = yaml.safe_load(text_of("CITATION.cff"))
    newest = re.search(r"^## \[(.+)\] - (\S+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert (citation["version"], str(citation["date-released"])) == newest.groups()
    assert citation["version"] == project["version"]
    assert text_of("README.md").startswith(f"# {citation['title']}\n")
    code, text = citation["license"]
    assert code == project["license"] and text.replace("-", " ") in text_of("LICENSE-text")
    assert all((ROOT / file).exists() for file in project["license-files"])


def test_the_citation_is_in_the_citation_file_format() -> None:
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation), "required by the format, version 1.2.0"
    texts = {"abstract", "cff-version", "message", "title", "type", "version"}
    assert set(citation) <= texts | {"authors", "date-released", "keywords", "license"}
    assert all(isinstance(citation[key], str) for key in texts) and citation["cff-version"] == "1.2.0"
    assert citation["type"] in ("software", "dataset") and isinstance(citation["date-released"], datetime.date)
    assert citation["authors"] and all(set(one) == {"name"} and one["name"] for one in citation["authors"])
    assert len(set(citation["keywords"])) == len(citation["keywords"])


def test_the_tutor_knows_every_place_where_answers_stand() -> None:
    """As `course grade` does, but for what shows no answer; and the exercises' functions, which it names as such."""
    closed = re.search(r"- Closed to you(.*?)\n\n", text_of("AGENTS.md"), re.DOTALL)[1]
    folders = [folder for name in re.findall(r"`([\w/*]+)/`", closed) for folder in ROOT.glob(name)]
    assert folders and all(folder.is_dir() for folder in folders)
    holding = {ROOT / "exercises" / "solutions"} | {registry.folder_of(lesson) for lesson in LESSONS}
    assert all(any(place.is_relative_to(folder) for folder in folders) for place in holding)


def test_sections_that_are_named_exist() -> None:
    named = re.findall(r"\*([A-Z][^*]+)\* in\s+lesson (\d+)", text_of("AGENTS.md"))
    assert named
    for section, lesson in named:
        page = (ROOT / "notebooks" / "src" / f"{LESSONS[int(lesson)].stem}.py").read_text(encoding="utf-8")
        assert f"# ## {section}\n" in page, section
