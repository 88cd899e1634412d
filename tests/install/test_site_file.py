"""The settings of a site under Open OnDemand: what is accepted, what is a mistake, and what the portal then shows."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import yaml

from course_utils.syllabus import ROOT
from tests.install.test_ondemand import APP, ask_portal, needs

NEEDED = {
    "cluster": "cluster: my_cluster",
    "portal": "portal: https://portal.example",
    "release": "release: /sw/course/current",
    "partitions": "partitions: {compute: 0, gpu: 4}",
}
FORM = {"course_cores": "4", "course_hours": "1", "course_gpus": "0", "course_account": "group-1"}

# Lines of site.yml, which take the place of those above, and values that are read from them.
ACCEPTED = {
    "the settings that have to be there": ("", {"ports": [20000, 29999], "account": "optional", "without": ["src"]}),
    "YAML's words for false": ("account: no", {"account": "no"}),
    "off": ("account: Off", {"account": "no"}),
    "false": ("account: false", {"account": "no"}),
    "true": ("account: yes", {"account": "needed"}),
    "the portal's own accounts": ("account: auto", {"account": "auto"}),
    "two clusters": ("cluster: [north, south]", {"cluster": ["north", "south"]}),
    "an empty list of modules": ("modules:\nwithout:", {"modules": [], "without": []}),
    "a module with a blank behind it": ('modules: ["mpich/4.2 "]', {"modules": ["mpich/4.2"]}),
    "modules as on a command line": ("modules: gcc/12 openmpi/4.1", {"modules": ["gcc/12", "openmpi/4.1"]}),
    "one folder": ("without: src", {"without": ["src"]}),
    "ports as a span": ("ports: 20000-29999", {"ports": [20000, 29999]}),
    "a list of partitions": ("partitions: [compute, gpu]", {"partitions": ["compute", "gpu"]}),
    "partitions with names": ("partitions: [{name: gpu, gpus: 4}, {cpu: 0}]", {"partitions": ["gpu", "cpu"]}),
    "one partition": ("partitions: compute", {"partitions": ["compute"]}),
    "a partition called on": ("partitions: {on: 0}", {"partitions": ["on"]}),
    "a partition called by a number": ("partitions: {1: 0, 2: 4}", {"partitions": ["1", "2"]}),
    "a home of many names": ("copy: ~/course\nshared: $HOME/ranks\ndata: ${HOME}/data", {"copy": "~/course"}),
    "a Python of the learner's": ("python: $HOME/venv/bin/python", {"python": "$HOME/venv/bin/python"}),
    "a Python of a module": ("python: python3", {"python": "python3"}),
    "the release's Python": ("release: /sw/c", {"python": "/sw/c/.venv/bin/python"}),
    "parentheses and blanks": ("release: /sw/the course (new)", {"release": "/sw/the course (new)"}),
    "a repository": ("release: https://git.example/course.git\nbranch: 2026.10\npython: /p", {"branch": "2026.10"}),
    "digits that stay": (
        "conda_environment: 3.10\nenvironment: conda\nconda: /c",
        {"conda_environment": "3.10"},
    ),
    "conda": ("environment: conda\nconda: $HOME/mini (forge)", {"conda": "$HOME/mini (forge)"}),
    "a container": ("environment: container\ncontainer: ~/course.sif", {"container_python": "python"}),
    "a container alone": ("environment: apptainer\ncontainer: /c.sif\nrelease:", {"release": "/opt/course"}),
    "an image from a registry": ("environment: container\ncontainer: docker://r/c:1", {"container": "docker://r/c:1"}),
    "a command in one line": ("container_command: apptainer exec", {"container_command": ["apptainer", "exec"]}),
    "the most alone": ("cores: 8\nhours: '2'", {"cores": {"least": 2, "most": 8, "first": 4}}),
    "the least and the most": ("cores: 1-64", {"cores": {"least": 1, "most": 64, "first": 4}}),
    "a first choice": ("cores: {first: 8}", {"cores": {"least": 2, "most": 16, "first": 8}}),
    "small machines": ("cores: {most: 1}", {"cores": {"least": 1, "most": 1, "first": 1}}),
    "memory in megabytes": ("memory_per_core: 2048", {"memory_per_core": "2048"}),
    "memory in words": ("memory_per_core: 2 GB", {"memory_per_core": "2G"}),
    "no memory": ('memory_per_core: ""', {"memory_per_core": ""}),
    "a portal without https": ("portal: Portal.Example:443/pun/sys", {"portal": "https://portal.example"}),
    "nothing behind a colon": ("host:\nlisten: ~\ncopy: null", {"host": "hostname", "copy": "$HOME/course"}),
    "signs in front": ("\ufeffaccount: no\r", {"account": "no"}),
    "a partition with all of its own": (
        "partitions: {gpu: {gpus: 4, gpu_type: a100, qos: 1, options: --exclusive -x n1, memory_per_core: 8G}}",
        {"partitions": ["gpu"]},
    ),
}

# Lines of site.yml, and the mistakes in them.
REJECTED = {
    "cluster:": [("missing", "cluster")],
    "release: ''": [("missing", "release")],
    "partitions: {}": [("missing", "partitions")],
    "environment: conda": [("missing", "conda")],
    "environment: container": [("missing", "container")],
    "release: /r\nbranch: main": [("missing", "python")],
    "acount: needed": [("unknown", "acount")],
    "cores: {leest: 2}": [("unknown", "cores: leest")],
    "partitions: {gpu: {gpu: 4}}": [("unknown", "partitions: gpu: gpu")],
    "account: maybe": [("wrong", "account")],
    "account: [no]": [("wrong", "account")],
    "environment: pyhton": [("wrong", "environment")],
    "ports: [20000]": [("wrong", "ports")],
    "ports: 29999-20000": [("wrong", "ports")],
    "ports: all": [("wrong", "ports")],
    "cores: four": [("wrong", "cores")],
    "cores: {most: four, first: x}": [("wrong", "cores: most"), ("wrong", "cores: first")],
    "cores: {least: 4, most: 2}": [("wrong", "cores")],
    "hours: {first: 9}": [("wrong", "hours")],
    "partitions: {gpu: {gpus: many}}": [("wrong", "partitions: gpu: gpus")],
    "partitions: {gpu: some}": [("wrong", "partitions: gpu")],
    "partitions: {--uid=0: 1}": [("wrong", "partitions")],
    "partitions: {gpu: {options: exclusive}}": [("wrong", "partitions: gpu: options")],
    "partitions: {gpu: {constraint: [a, b]}}": [("wrong", "partitions: gpu: constraint")],
    "memory_per_core: 2.5G": [("wrong", "memory_per_core")],
    "copy: course": [("wrong", "copy")],
    "copy: ~teacher/course": [("wrong", "copy")],
    "shared: $(reboot)": [("wrong", "shared")],
    "shared: /a`reboot`": [("wrong", "shared")],
    'data: "/a\\nreboot"': [("wrong", "data")],
    "python: $HOME/$(reboot)": [("wrong", "python")],
    "portal: two words": [("wrong", "portal")],
    "portal: ftp://portal.example": [("wrong", "portal")],
    "modules: {a: b}": [("wrong", "modules")],
    "container_command: apptainer 'exec": [("wrong", "container_command")],
    "host: [a, b]": [("wrong", "host")],
    "shared: *home": [("wrong", "shared")],
    "account: no\naccount: needed": [("twice", "account")],
    "acount: no\nports: 1\ncopy: x": [("unknown", "acount"), ("wrong", "copy"), ("wrong", "ports")],
}


def site_file(lines: str) -> str:
    """A site.yml: some lines, and of those that have to be there the others."""
    keys = re.findall(r"^\W*(\w+):", lines, re.M)
    return lines + "\n" + "\n".join(line for key, line in NEEDED.items() if key not in keys) + "\n"


def apps(folder: Path, files: list[str | bytes]) -> list[Path]:
    """The app, once for each site.yml."""
    needs(shutil.which("ruby"), "no Ruby: install it (Debian: apt install ruby)")
    found = []
    for number, text in enumerate(files):
        app = shutil.copytree(APP, folder / f"app{number}")
        (app / "site.yml").write_bytes(text if isinstance(text, bytes) else text.encode())
        found.append(app)
    return found


def read(found: list[Path]) -> list[dict]:
    """What each app reads from its site.yml: values and mistakes."""
    command = ["ruby", str(ROOT / "tests" / "install" / "portal_here.rb"), "--site"]
    given = json.dumps([{"app": str(app)} for app in found])
    return json.loads(subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True).stdout)


def portal_shows(found: list[Path], partitions: list[str]) -> list[str | None]:
    """What the portal shows where the form of each app would be, or at its start; None where the job is handed in."""
    given = []
    for app, partition in zip(found, partitions, strict=True):
        (app / "staged").mkdir()
        form = FORM | {"course_partition": partition}
        given.append({"app": str(app), "staged": str(app / "staged"), "form": form})
    return ask_portal(found[0], given)


def test_what_is_plainly_meant_is_accepted(tmp_path) -> None:
    found = apps(tmp_path, [site_file(lines) for lines, _ in ACCEPTED.values()])
    sites = read(found)
    for (case, (_, expected)), got in zip(ACCEPTED.items(), sites, strict=True):
        values = {key: got["values"][key] for key in expected}
        if "partitions" in values:
            values["partitions"] = list(values["partitions"])
        assert (values, got["mistakes"]) == (expected, []), case
    shown = portal_shows(found, [next(iter(got["values"]["partitions"])) for got in sites])
    for case, app, got, message in zip(ACCEPTED, found, sites, shown, strict=True):
        cores, account = got["values"]["cores"], got["values"]["account"]
        rejected = cores["most"] < 4
        assert (message == f'cores: a whole number from 1 to {cores["most"]}, not "4".') == rejected, (case, message)
        if not rejected:
            assert message is None, (case, message)
            form, job = (json.loads((app / "staged" / f"{name}.json").read_text()) for name in ("form", "submit"))
            assert form["attributes"]["course_cores"]["max"] == cores["most"], case
            assert ("course_account" in form["form"]) == (account in ("optional", "needed")), case
            assert job["script"].get("accounting_id") == (None if account in ("no", "auto") else "group-1"), case
            subprocess.run(["bash", "-n", app / "staged" / "script.sh"], check=True)


def test_each_mistake_is_found_by_its_key(tmp_path) -> None:
    found = apps(tmp_path, [site_file(lines) for lines in REJECTED])
    for (lines, expected), got in zip(REJECTED.items(), read(found), strict=True):
        assert [tuple(mistake) for mistake in got["mistakes"]] == expected, lines
    shown = portal_shows(found, ["compute"] * len(found))
    for lines, message, staged in zip(REJECTED, shown, (app / "staged" for app in found), strict=True):
        keys = [key for _, key in REJECTED[lines]]
        assert message and message.count("In site.yml, ") == len(keys), lines
        assert all(f"`{key}`" in message for key in keys) and "\n" not in message and not list(staged.iterdir())


def test_the_file_that_comes_with_the_app_says_what_is_so_without_it(tmp_path) -> None:
    every, bare = read(apps(tmp_path, [(APP / "site.yml").read_text(), site_file("")]))
    own = {"portal", "partitions", "conda", "container"}
    assert {key for key, value in every["values"].items() if bare["values"][key] != value} == own
    assert every["mistakes"] == [] and yaml.safe_load((APP / "site.yml").read_text()).keys() == every["values"].keys()


SHOWN = {
    "acount: needed": "In site.yml, `acount` is not a setting. Did you mean `account`?",
    "zebra: 1": "In site.yml, `zebra` is not a setting of this app.",
    "partitions: {gpu: {gpus: many}}": (
        "In site.yml, `partitions: gpu: gpus` is `many`. It should be a whole number, such as `4`."
    ),
    "account: maybe": "In site.yml, `account` is `maybe`. It should be no, optional, needed or auto.",
    "account: no\naccount: auto": "In site.yml, `account` is written twice.",
    "release:\nports: [1, 2, 3]": (
        "In site.yml, `release` is missing. It should be a folder or, with a `branch`, a git repository, such as "
        "`/sw/course/current`. In site.yml, `ports` is `[1, 2, 3]`. It should be the first and the last port, from 1 "
        "to 65535, such as `[20000, 29999]`."
    ),
}


def test_the_portal_shows_a_sentence_with_the_key_and_what_would_be_right(tmp_path) -> None:
    found = apps(tmp_path, [site_file(lines) for lines in SHOWN])
    assert portal_shows(found, ["compute"] * len(found)) == list(SHOWN.values())


BROKEN = {
    "host: h\nports: [1, 2\n": " is not YAML from line 2 on: did not find expected ',' or ']' while parsing a flow",
    "account: no\n\tports: 1\n": " is not YAML from line 1 on: found a tab character that violates indentation",
    "host: h\n\nlisten: a: b\n": " is not YAML from line 3 on: mapping values are not allowed in this context.",
    "- cluster\n": " should hold settings, one a line, such as `cluster: my_cluster`.",
    "account = no\n": " should hold settings, one a line, such as `cluster: my_cluster`.",
    b"host: h\ncopy: /caf\xe9\n": ", line 2, has letters that are not UTF-8.",
}


def test_a_file_that_is_no_yaml_is_named_with_the_line(tmp_path) -> None:
    found = apps(tmp_path, list(BROKEN))
    for text, app, message in zip(BROKEN, found, portal_shows(found, ["compute"] * len(found)), strict=True):
        assert message is not None and message.startswith(f"{app}/site.yml{BROKEN[text]}"), (text, message)


def test_a_file_that_is_not_there_is_named(tmp_path) -> None:
    (app,) = apps(tmp_path, [""])
    (app / "site.yml").unlink()
    (message,) = portal_shows([app], ["compute"])
    assert message is not None and message.startswith("The settings of the course's app cannot be read: ")
    assert message.endswith(f"{app}/site.yml.")


def test_two_versions_of_the_app_in_one_portal_do_not_mix(tmp_path) -> None:
    old, new = apps(tmp_path, [site_file(""), site_file("colour: blue")])
    newer = (
        (new / "site_file.rb")
        .read_text()
        .replace("  SETTINGS = {\n", "  SETTINGS = {\n    'colour' => optional(:word, ''),\n")
    )
    (new / "site_file.rb").write_text(newer)
    (old / "site.yml").write_text(site_file("colour: blue"))
    shown = [got["mistakes"] for got in read([new, old, new])]
    assert shown == [[], [["unknown", "colour"]], []]
