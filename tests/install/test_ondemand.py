"""The app for Open OnDemand: its form, its job under a real Slurm, its JupyterLab in Chromium, and the learner's copy.

The portal is played by portal_here.rb (Ruby's ERB) and the batch script below. Without Ruby, Slurm or Chromium the
tests that need them are skipped; under CI=true they must run.
"""

import contextlib
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import yaml
from markdown_it import MarkdownIt
from slurm_here import SlurmHere, obstacle, slurm_here, wait_until

from course_utils import learners_copy, settings
from course_utils.syllabus import ROOT
from tests.pages.test_browser import CHROMIUM, WAIT, Notebook

APP = ROOT / "ondemand"
PORTAL = "http://portal.example"
PLAIN = {"course_cores": "2", "course_hours": "1", "course_gpus": "0", "course_partition": "course"}
BWRAP = shutil.which("bwrap")
LESSON, EXERCISES = "notebooks/00_first_steps.ipynb", "exercises/00_first_steps.ipynb"
HOSTILE = ["2 3", '2"', "2'", "2;reboot", "2\n--uid=0", "$(reboot)", "`reboot`", "-1", "0x2", "٢", "", "1000000", "2.5"]
BATCH = """#!/bin/bash
# In the words of the portal's template "basic": helpers, before.sh, script.sh beside it, after.sh, connection.yml.
cd {staged}
export host port
find_port () {{
    {python} -c 'import socket; one = socket.socket(); one.bind(("127.0.0.1", 0)); print(one.getsockname()[1])'
}}
create_passwd () {{ tr -cd 'a-zA-Z0-9' < /dev/urandom | head -c "$1"; }}
clean_up () {{
    [[ $SCRIPT_PID ]] && pkill -P "$SCRIPT_PID"
    exit "${{1:-0}}"
}}
{set_host}
source before.sh
./script.sh &
SCRIPT_PID=$!
source after.sh
(
    umask 077
    echo -e "course_news: $course_news\\nhost: $host\\nport: $port\\npassword: $password" > connection.new
    mv connection.new connection.yml
)
wait "$SCRIPT_PID" || clean_up 1
clean_up
"""


LOGIN = """#!/bin/bash
# The portal hands nothing of its own environment on: this is what a login on the node would set, with a function that
# is not exported.
export HOME={home} PATH={path} SLURM_CONF={slurm}
module () {{ [[ $1 == load ]] && export COURSE_MODULE=$2 PYTHONPATH=/sw/packages/of/a/different/python; }}
"""
MODULE = "mpich/4.2"


def needs(there: object, why: str) -> None:
    """Skip without it; fail under CI=true."""
    if not there:
        assert os.environ.get("CI") != "true", f"under CI=true it must be there: {why}"
        pytest.skip(why)


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    """A release of the course, small, with a file that learners do not get."""
    folder = tmp_path_factory.mktemp("release")
    for path in (LESSON, "notebooks/src/00_first_steps.py", EXERCISES):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    return folder


@pytest.fixture(scope="module")
def app(tmp_path_factory, release) -> Path:
    """The app with the settings of a site: this machine."""
    needs(shutil.which("ruby"), "no Ruby: install it (Debian: apt install ruby)")
    folder = tmp_path_factory.mktemp("site") / "app"
    shutil.copytree(APP, folder)
    home = folder.parent / "home of a learner"
    home.mkdir()
    site = yaml.safe_load((APP / "site.yml").read_text()) | {
        "portal": PORTAL,
        "release": str(shutil.copytree(release, folder.parent / "release")),
        "copy": "$HOME/course",
        "shared": "$HOME/shared",
        "python": sys.executable,
        "cores": {"least": 1, "most": 4, "first": 2},
        "partitions": {
            "course": {"gpus": 0},
            "gpu": {"gpus": 2},
            "class": {
                "gpus": 4,
                "gpu_type": "a100",
                "memory_per_core": "8G",
                "reservation": "course-friday",
                "qos": "teaching",
                "constraint": "nvlink&ib",
                "options": ["--exclusive"],
            },
        },
        "memory_per_core": "",
        "listen": "echo 127.0.0.1",
        "address": "echo 127.0.0.1",
    }
    (folder / "site.yml").write_text(yaml.safe_dump(site, sort_keys=False))
    return folder


def change_site(app: Path, folder: Path, **changes) -> Path:
    """The app with other settings."""
    other = shutil.copytree(app, folder / "app")
    site = yaml.safe_load((app / "site.yml").read_text()) | changes
    (other / "site.yml").write_text(yaml.safe_dump(site, sort_keys=False))
    return other


def render(app: Path, staged: Path, form: dict, connection: dict | None = None) -> str | None:
    """What the portal writes into the folder of a session; returns what it shows where the app rejects the form."""
    return render_all(app, [(staged, form, connection)])[0]


def render_all(app: Path, sessions: list[tuple[Path, dict, dict | None]]) -> list[str | None]:
    """The same for several sessions at once."""
    for staged, _, _ in sessions:
        staged.mkdir(exist_ok=True)
    return ask_portal(
        app, [{"staged": str(staged), "form": form, "connection": known} for staged, form, known in sessions]
    )


def ask_portal(app: Path, given: list[dict]) -> list[str | None]:
    command = ["ruby", str(ROOT / "tests" / "install" / "portal_here.rb"), str(app)]
    done = subprocess.run(command, input=json.dumps(given), stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def scripts(staged: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in staged.glob("*.sh")}


def test_the_form_has_the_sites_limits_and_asks_for_what_the_job_needs(app, tmp_path) -> None:
    assert render(app, tmp_path, PLAIN) is None
    form = json.loads((tmp_path / "form.json").read_text())
    cores = form["attributes"]["course_cores"]
    assert (cores["widget"], cores["min"], cores["max"], cores["value"]) == ("number_field", 1, 4, 2)
    assert form["attributes"]["course_gpus"]["max"] == 4
    assert form["attributes"]["course_partition"]["options"] == [
        ["course", "course", {"data-max-course-gpus": 0}],
        ["gpu (up to 2 GPUs)", "gpu", {"data-max-course-gpus": 2}],
        ["class (up to 4 GPUs)", "class", {"data-max-course-gpus": 4}],
    ]
    assert set(form["form"]) == {*PLAIN, "course_account"}
    manifest = yaml.safe_load((APP / "manifest.yml").read_text())
    assert manifest["role"] == "batch_connect" and manifest["name"]


def test_the_job_asks_slurm_for_what_the_form_says(app, tmp_path) -> None:
    asked = PLAIN | {"course_gpus": "2", "course_partition": "gpu", "course_account": "group-1"}
    assert render(app, tmp_path, asked) is None
    submit = json.loads((tmp_path / "submit.json").read_text())
    assert submit["script"] == {
        "job_name": "course-session",
        "wall_time": 3600,
        "queue_name": "gpu",
        "accounting_id": "group-1",
        "native": ["--nodes=1", "--ntasks=1", "--cpus-per-task=2", "--gpus-per-node=2"],
    }
    assert submit["batch_connect"]["template"] == "basic"
    assert "export SBATCH_ACCOUNT=group-1\n" in scripts(tmp_path)["script.sh"]


def test_a_partition_has_options_of_its_own_and_hands_them_on(app, tmp_path) -> None:
    asked = PLAIN | {"course_gpus": "1", "course_partition": "class"}
    assert render(app, tmp_path, asked) is None
    assert json.loads((tmp_path / "submit.json").read_text())["script"]["native"] == [
        "--nodes=1",
        "--ntasks=1",
        "--cpus-per-task=2",
        "--gpus-per-node=a100:1",
        "--mem-per-cpu=8G",
        "--reservation=course-friday",
        "--qos=teaching",
        "--constraint=nvlink&ib",
        "--exclusive",
    ]
    told = [line for line in scripts(tmp_path)["script.sh"].splitlines() if line.startswith("export SBATCH_")]
    assert told == [
        "export SBATCH_PARTITION=class",
        "export SBATCH_RESERVATION=course-friday",
        "export SBATCH_QOS=teaching",
        r"export SBATCH_CONSTRAINT=nvlink\&ib",
    ]


def test_the_portal_may_offer_the_learners_own_accounts(app, tmp_path) -> None:
    other = change_site(app, tmp_path, account="auto")
    assert render(other, tmp_path / "one", PLAIN | {"auto_accounts": "group-1"}) is None
    form = json.loads((tmp_path / "one" / "form.json").read_text())
    assert set(form["form"]) == {*PLAIN, "auto_accounts"}
    assert json.loads((tmp_path / "one" / "submit.json").read_text())["script"]["accounting_id"] == "group-1"
    assert "export SBATCH_ACCOUNT=group-1\n" in scripts(tmp_path / "one")["script.sh"]
    said = render(other, tmp_path / "two", PLAIN | {"auto_accounts": "$(reboot)"})
    assert said is not None and said.startswith("account: ")


def test_a_site_may_say_only_how_many_gpus_a_partition_has(app, tmp_path) -> None:
    other = change_site(app, tmp_path, partitions={"course": 0, "gpu": 4})
    assert render(other, tmp_path / "one", PLAIN | {"course_gpus": "4", "course_partition": "gpu"}) is None


def test_the_sessions_page_passes_the_portals_markdown_unchanged(app, tmp_path) -> None:
    """The portal renders it as Markdown, for which a block of HTML ends at an empty line."""
    markdown = MarkdownIt("commonmark").render
    assert render(app, tmp_path, PLAIN, {"host": "n1", "port": 2, "password": "p", "course_news": "1 new file"}) is None
    page = (tmp_path / "view.html").read_text()
    assert markdown(page).strip() == page.strip()
    broken = page.replace("    fetch(", "\n    fetch(")
    assert markdown(broken).strip() != broken.strip(), "this renderer would not notice"


def test_a_module_that_does_not_load_ends_the_session_with_a_line(app, tmp_path) -> None:
    other = change_site(app, tmp_path, modules=["mpich/4.2"])
    assert render(other, tmp_path / "staged", PLAIN) is None
    before, script = (scripts(tmp_path / "staged")[name] for name in ("before.sh", "script.sh"))
    (line,) = (line for line in script.splitlines() if line.startswith("module load"))
    (hand_down,) = (line for line in before.splitlines() if "export -f module" in line)

    def loaded(module: str) -> subprocess.CompletedProcess:
        told = f"module () {{ {module}; }}\n{hand_down}\nexec bash -c {shlex.quote(line + '; echo on')}"
        return subprocess.run(["bash", "-c", told], capture_output=True, text=True, check=False, timeout=30)

    assert loaded("echo $*").stdout == "load mpich/4.2\non\n", "the script is a bash of its own"
    rejected = loaded("return 1")
    assert rejected.returncode == 1 and rejected.stdout.startswith("The course: module mpich/4.2 did not load.")


HOSTILE_ACCOUNTS = ["a b", "a;reboot", "a\nb", "$(reboot)", '"', "-a", "a" * 65]


def test_hostile_forms_are_rejected_with_a_line_and_leave_no_script(app, tmp_path) -> None:
    tried = [(name, text) for name in PLAIN for text in HOSTILE]
    tried += [("course_account", text) for text in HOSTILE_ACCOUNTS]
    sessions = [(tmp_path / str(number), PLAIN | {name: text}, None) for number, (name, text) in enumerate(tried)]
    for (name, text), (staged, _, _), said in zip(tried, sessions, render_all(app, sessions), strict=True):
        assert said is not None, f"{name}={text!r} was accepted"
        assert said.startswith(name.removeprefix("course_") + ": ") and "\n" not in said
        assert not list(staged.iterdir())


def test_two_copies_of_the_app_in_one_portal_have_settings_of_their_own(app, tmp_path) -> None:
    other = change_site(app, tmp_path, cores={"least": 1, "most": 2, "first": 1})
    given = []
    for number, copy in enumerate((app, other, app)):
        staged = tmp_path / str(number)
        staged.mkdir()
        given.append({"app": str(copy), "staged": str(staged), "form": PLAIN | {"course_cores": "4"}})
    assert ask_portal(app, given) == [None, 'cores: a whole number from 1 to 2, not "4".', None]


def test_the_scripts_check_the_form_again(app, tmp_path) -> None:
    other = shutil.copytree(app, tmp_path / "app")
    (other / "submit.yml.erb").write_text("--- {}\n")  # a site's own, that checks nothing
    said = render(other, tmp_path / "staged", PLAIN | {"course_hours": "1000000"})
    assert said == 'hours: a whole number from 1 to 8, not "1000000".'
    assert not list((tmp_path / "staged").glob("*.json"))


def test_gpus_are_asked_for_where_there_are_some(app, tmp_path) -> None:
    said = render(app, tmp_path / "staged", PLAIN | {"course_gpus": "1"})
    assert said == "gpus: a node of partition course has 0; 1 were asked for."


@pytest.mark.parametrize("kind", ["python", "conda", "container"])
def test_the_scripts_are_bash_and_quote_what_they_expand(app, tmp_path, kind) -> None:
    strange = {"environment": kind, "modules": ["mpich/4.2", "a name; reboot"], "python": "/a b/(it's)/python"}
    other = change_site(app, tmp_path, **strange, conda="/opt/it's", conda_environment="a b", container="/a b.sif")
    assert render(other, tmp_path / "staged", PLAIN) is None
    for name, text in scripts(tmp_path / "staged").items():
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        assert unquoted(text) == [], name
    assert r"module load a\ name\;\ reboot" in scripts(tmp_path / "staged")["script.sh"]
    assert (tmp_path / "staged" / "script.sh").stat().st_mode & stat.S_IXUSR


def unquoted(script: str) -> list[str]:
    """Lines that expand a variable where bash splits it into words: not in quotes, [[ ]], (( )) or an assignment."""
    found = []
    for line in script.splitlines():
        bare = re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\[\[.*?\]\]|\(\(.*?\)\)|(^|\s)#.*$|\\.", "", line)
        if re.search(r"(?<![=\w])\$[\w{]", bare) and not re.match(r"\s*(?:export )?\w+=\S*$", bare):
            found.append(line)
    return found


def test_the_check_for_quotes_finds_what_is_not_quoted() -> None:
    assert unquoted('rm -rf $scratch\nrm "$a"\nb=$a\n[[ $a ]] && c') == ["rm -rf $scratch"]


PATHS = {
    "~/course": "/home/of a learner/course",
    "~": "/home/of a learner",
    "$HOME/a (b); reboot": "/home/of a learner/a (b); reboot",
    "/data/${USER}/*": "/data/ada/*",
    '/$PROJECT/it\'s "here"': '/p1/it\'s "here"',
    "/a/~/&$USER": "/a/~/&ada",
}


def test_a_path_of_the_site_has_its_variables_filled_in_and_nothing_else(app, tmp_path) -> None:
    sites = [change_site(app, tmp_path / str(n), shared=path, data=path, copy=path) for n, path in enumerate(PATHS)]
    given = []
    for site in sites:
        (site / "staged").mkdir()
        given.append({"app": str(site), "staged": str(site / "staged"), "form": PLAIN})
    assert ask_portal(app, given) == [None] * len(PATHS)
    known = {"HOME": "/home/of a learner", "USER": "ada", "PROJECT": "p1"}
    for site, expected in zip(sites, PATHS.values(), strict=True):
        lines = [line for line in scripts(site / "staged")["script.sh"].splitlines() if "export COURSE_SHARED=" in line]
        told = subprocess.run(["bash", "-c", f"{lines[0]}\nenv"], env=known, capture_output=True, text=True, check=True)
        assert f"COURSE_SHARED={expected}\n" in told.stdout
    unset = subprocess.run(["bash", "-c", lines[0]], env={}, capture_output=True, text=True, check=False)
    assert unset.returncode and "USER: is not set on this node" in unset.stderr


def test_the_page_of_a_session_quotes_all_it_shows(app, tmp_path) -> None:
    connection = {"host": 'a"><script>', "port": 1, "password": '"&<', "course_news": "<script>"}
    assert render(app, tmp_path, PLAIN, connection) is None
    page = (tmp_path / "view.html").read_text()
    assert "<script>" not in page and 'value="&quot;&amp;&lt;"' in page


# The job


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"listen": "true"}, "to listen on, or no password. The site's settings: listen, in site.yml."),
        ({"python": "/nowhere/python"}, "JupyterLab did not start. The lines above say why."),
        ({"copy": "/proc/course"}, "JupyterLab did not start. The lines above say why."),
    ],
)
def test_a_job_that_cannot_start_ends_with_a_line_and_no_connection(app, tmp_path, changes, said) -> None:
    staged = tmp_path / "staged"
    assert render(change_site(app, tmp_path, **changes), staged, PLAIN) is None
    done = run_here(staged, tmp_path)
    assert done.returncode == 1 and said in done.stdout
    assert not (staged / "connection.yml").exists()


def run_here(staged: Path, home: Path, **variables: str) -> subprocess.CompletedProcess:
    """Run a session's job that ends by itself, without Slurm."""
    return subprocess.run(
        ["bash"],
        input=batch_script(staged),
        env=os.environ | {"HOME": str(home)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )


NO_COURSE = """#!/bin/sh
echo "$0 $*" | head -n 1 >> "$PYTHONS"
"""


def test_a_session_keeps_its_version_when_the_site_moves_the_link(app, tmp_path) -> None:
    """Each version has a Python that only notes how it was called, and moves the link when it is called first."""
    for version in ("2026-11", "2026-12"):
        python = tmp_path / "sw" / version / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(NO_COURSE + f"ln -sfn 2026-12 {shlex.quote(str(tmp_path / 'sw' / 'current'))}\n")
        python.chmod(0o755)
    (tmp_path / "sw" / "current").symlink_to("2026-11")
    other = change_site(app, tmp_path, release=str(tmp_path / "sw" / "current"), python="")
    assert render(other, tmp_path / "staged", PLAIN) is None
    run_here(tmp_path / "staged", tmp_path, PYTHONS=str(tmp_path / "calls"))
    calls = (tmp_path / "calls").read_text().splitlines()
    assert (tmp_path / "sw" / "current").readlink() == Path("2026-12")
    assert len(calls) == 4 and all(call.startswith(f"{tmp_path}/sw/2026-11/.venv/bin/python ") for call in calls)
    assert f"learners_copy {tmp_path}/sw/2026-11 {tmp_path}/course " in calls[1]


STUBBORN = """#!/bin/sh
[ "$2" = jupyterlab ] || exit 0
trap "" TERM
echo $$ > "$HOME/pid"
exec sleep 60
"""


def test_a_jupyterlab_that_does_not_end_when_it_is_told_to_is_ended(app, tmp_path) -> None:
    python, staged = tmp_path / "python", tmp_path / "staged"
    python.write_text(STUBBORN)
    python.chmod(0o755)
    assert render(change_site(app, tmp_path, python=str(python)), staged, PLAIN) is None
    patient = (staged / "script.sh").read_text()
    assert "{1..100}" in patient
    (staged / "script.sh").write_text(patient.replace("{1..100}", "{1..3}"))
    environment = os.environ | {
        "HOME": str(tmp_path),
        "COURSE_PASSWORD": "p",
        "course_news_file": str(tmp_path / "news"),
    }
    with subprocess.Popen(["./script.sh"], cwd=staged, env=environment) as script:
        assert wait_until((tmp_path / "pid").exists, 20)
        script.terminate()
        script.wait(20)
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_python_without_the_course_is_named(app, tmp_path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S "$@"\n')
    python.chmod(0o755)
    assert render(change_site(app, tmp_path, python=str(python)), tmp_path / "staged", PLAIN) is None
    done = run_here(tmp_path / "staged", tmp_path)
    assert "This Python has no course_utils and no jupyterlab.\n" in done.stdout
    assert f"The course: this Python does not start, or lacks what it needs: {python}\n" in done.stdout


def test_a_folder_of_the_node_does_not_hide_the_course_of_the_image(app, tmp_path) -> None:
    given = {"environment": "container", "container": "/sw/course.sif"}
    for release, bound in (("", False), ("/sw/course/current", True)):
        other = change_site(app, tmp_path / release.replace("/", "_"), **given, release=release)
        assert render(other, other / "staged", PLAIN) is None
        (line,) = (
            line for line in scripts(other / "staged")["script.sh"].splitlines() if line.startswith("for folder")
        )
        assert ("$course_release" in line) == bound and "$COURSE_SHARED" in line


APPTAINER = """#!/bin/bash
# `apptainer exec [OPTIONS] IMAGE COMMAND`, by bubblewrap. This machine is the image, read-only, and has nothing of the
# test's folder; of the node a process sees its home, its working folder and what is bound.
shift
while [[ $1 == -* ]]; do shift; done
options=(--ro-bind / / --dev-bind /dev /dev --tmpfs "$HIDDEN")
IFS=, read -ra binds <<< "$HOME,$PWD,$APPTAINER_BIND"
for folder in "${binds[@]}"; do options+=(--bind "$folder" "$folder"); done
exec bwrap "${options[@]}" --chdir "$PWD" "${@:2}"
"""


@pytest.mark.long
@pytest.mark.timeout(120)
def test_jupyterlab_starts_in_a_container_that_sees_what_it_needs_of_the_node(app, tmp_path, monkeypatch) -> None:
    boxed = subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], check=False).returncode == 0 if BWRAP else False
    needs(boxed, "bubblewrap makes no boxes here")
    apptainer, staged, home = tmp_path / "apptainer", tmp_path / "staged", tmp_path / "home of a learner"
    apptainer.write_text(APPTAINER)
    apptainer.chmod(0o755)
    home.mkdir()
    of_a_container = {
        "environment": "container",
        "container_command": f"{apptainer} exec --nv",
        "container": "/sw/course (new).sif",
        "container_python": sys.executable,
        "shared": str(tmp_path / "shared"),
        "data": "",
    }
    assert render(change_site(app, tmp_path / "site", **of_a_container), staged, PLAIN) is None
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HIDDEN", str(tmp_path.parent))
    with subprocess.Popen(
        ["bash"], stdin=subprocess.PIPE, stdout=(tmp_path / "log").open("w"), stderr=subprocess.STDOUT, text=True
    ) as job:
        job.stdin.write(batch_script(staged))
        job.stdin.close()
        try:
            assert wait_until(lambda: (staged / "connection.yml").exists() or job.poll() is not None, 90)
            log = (tmp_path / "log").read_text()
            assert (staged / "connection.yml").exists(), log
            session = Session(staged, "", home / "course", yaml.safe_load((staged / "connection.yml").read_text()))
            assert json.loads(session.answer("/api").text)["version"]
            assert (session.copy / LESSON).exists() and session.connection["course_news"].startswith("2 new files")
        finally:
            for child in psutil.Process(job.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.terminate()
    assert wait_until(lambda: not processes_of(session), 30)


def batch_script(staged: Path) -> str:
    """The job's script, as the portal hands it in."""
    submit = json.loads((staged / "submit.json").read_text())
    return BATCH.format(staged=staged, python=sys.executable, set_host=submit["batch_connect"]["set_host"])


@dataclass(frozen=True)
class Session:
    """A running session: its folder, its job, the learner's copy, and what the portal knows of it."""

    staged: Path
    job: str
    copy: Path
    connection: dict

    @property
    def base(self) -> str:
        return f"/node/{self.connection['host']}/{self.connection['port']}"

    def answer(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> "Answer":
        """What JupyterLab answers to a request as the proxy forwards it."""
        client = http.client.HTTPConnection("127.0.0.1", self.connection["port"], timeout=30)
        client.request(
            method, self.base + path, body=body, headers={key.replace("_", "-"): headers[key] for key in headers}
        )
        answer = client.getresponse()
        text = "" if answer.status == 101 else answer.read().decode()
        cookies = [value.partition(";")[0] for key, value in answer.getheaders() if key == "Set-Cookie"]
        client.close()
        return Answer(answer.status, text, cookies)


@dataclass(frozen=True)
class Answer:
    """Of a server: its status, its text, and the cookies that it sets."""

    status: int
    text: str
    cookies: list[str]


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmHere]:
    why = obstacle()
    needs(not why, why)
    with slurm_here() as running:
        yield running


@pytest.fixture(scope="module")
def session(app, slurm, tmp_path_factory) -> Iterator[Session]:
    """JupyterLab in a job, on a copy in which the learner had edited a notebook that the site has changed since."""
    staged, home = tmp_path_factory.mktemp("session"), app.parent / "home of a learner"
    site = app.parent / "release"
    learners_copy.update(site, home / "course")
    (home / "course" / EXERCISES).write_text("mine")
    (site / EXERCISES).write_text("theirs")
    shutil.copy(site / LESSON, site / "notebooks" / "16_new.ipynb")
    with_module = change_site(app, tmp_path_factory.mktemp("modules"), modules=[MODULE])
    assert render(with_module, staged, PLAIN) is None
    submit = json.loads((staged / "submit.json").read_text())
    asked = [f"--time={submit['script']['wall_time'] // 60}", f"--partition={submit['script']['queue_name']}"]
    own = {"home": str(home), "path": slurm.environment["PATH"], "slurm": slurm.environment["SLURM_CONF"]}
    login = LOGIN.format(**{name: shlex.quote(value) for name, value in own.items()})
    options = ["--parsable", f"--chdir={staged}", f"--output={staged}/output.log", "--export=NONE"]
    job = subprocess.run(
        ["sbatch", *options, *asked, *submit["script"]["native"]],
        env=slurm.environment,
        input=login + batch_script(staged),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    try:
        up = wait_until((staged / "connection.yml").exists, 150)
        log = (staged / "output.log").read_text() if (staged / "output.log").exists() else "no log"
        assert up, f"the job did not come up\n{log}\n{slurm.call('scontrol', 'show', 'job', job)}"
        connection = yaml.safe_load((staged / "connection.yml").read_text())
        yield Session(staged, job, home / "course", connection)
    finally:
        slurm.call("scancel", job)


@pytest.mark.timeout(240)
def test_the_job_tells_the_portal_where_it_is_and_keeps_its_secrets(session) -> None:
    assert set(session.connection) == {"course_news", "host", "port", "password"}
    assert session.connection["course_news"] == (
        "1 new file, 1 file edited by you and left alone, new versions in new_versions. See UPDATES.md"
    )
    assert (session.copy / EXERCISES).read_text() == "mine"
    assert (session.copy / "new_versions" / EXERCISES).read_text() == "theirs"
    assert re.fullmatch(r"[A-Za-z0-9]{32}", session.connection["password"])
    for folder in (session.staged, session.copy):
        for file in [*folder.rglob("*.json"), *folder.rglob("connection.yml"), *folder.rglob("*.ipynb")]:
            if file.name not in ("form.json", "submit.json"):  # written by the test
                assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file
    assert session.connection["password"] not in (session.staged / "output.log").read_text()


def test_a_module_that_the_site_names_is_loaded_before_jupyterlab_starts(session) -> None:
    servers = {
        one.pid for one in psutil.net_connections("tcp") if one.laddr and one.laddr.port == session.connection["port"]
    }
    environments = [psutil.Process(pid).environ() for pid in servers if pid]
    assert {environment.get("COURSE_MODULE") for environment in environments} == {MODULE}
    assert not any("PYTHONPATH" in environment for environment in environments)


def test_jupyterlab_listens_on_one_address_and_keeps_a_modern_hash(session) -> None:
    assert listening(session.connection["port"]) == ["127.0.0.1"]
    settings = json.loads(settings_of(session))
    assert settings["KernelManager"]["transport"] == "ipc", "kernels open no port"
    assert settings["PasswordIdentityProvider"]["hashed_password"].startswith("argon2:$argon2id$")
    assert session.connection["password"] not in json.dumps(settings)


def test_who_has_no_password_or_comes_from_another_page_gets_nothing(session) -> None:
    password = f"password={session.connection['password']}"
    assert session.answer("/api/contents").status == 403
    page = session.answer("/login")
    word = re.search(r'name="_xsrf" value="([^"]+)"', page.text)[1]
    form = {"Content_Type": "application/x-www-form-urlencoded", "Cookie": "; ".join(page.cookies)}
    assert session.answer("/login", "POST", password, **form).status == 403, "a forged login"
    assert session.answer("/login", "POST", f"password=wrong&_xsrf={word}", **form).status == 401
    logged_in = session.answer("/login", "POST", f"{password}&_xsrf={word}", **form)
    assert logged_in.status == 302
    own = {"Cookie": "; ".join([*page.cookies, *logged_in.cookies])}
    assert session.answer("/api/contents", **own).status == 200
    assert session.answer("/api/terminals", "POST", **own).status == 403, "a forged request"
    made = session.answer("/api/terminals", "POST", X_XSRFToken=word, **own)
    assert made.status == 200
    talk = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13", "Sec_WebSocket_Key": "eA=="}
    socket = f"/terminals/websocket/{json.loads(made.text)['name']}"
    assert session.answer(socket, Origin=PORTAL, **talk, **own).status == 101
    assert session.answer(socket, Origin="http://evil.example", **talk, **own).status == 403
    assert session.answer("/api/contents", Origin="http://evil.example", **own).status == 404


def listening(port: int) -> list[str]:
    """The addresses on which somebody listens at a port."""
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            address, _, number = local.partition(":")
            if state == "0A" and int(number, 16) == port:
                found.append(".".join(str(byte) for byte in reversed(bytes.fromhex(address))))
    return found


def settings_of(session: Session) -> str:
    """The settings file of the running server: in the folder of its session on the node."""
    for pid in processes_of(session):
        command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        for argument in command:
            if argument.startswith("--config="):
                file = Path(argument.removeprefix("--config="))
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
                assert stat.S_IMODE(file.parents[1].stat().st_mode) == 0o700
                return file.read_text()
    raise AssertionError("no JupyterLab runs")


def processes_of(session: Session) -> list[int]:
    """All that the session has started: they name the learner's copy in their environment."""
    mark, found = f"COURSE_COPY={session.copy}\0".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


SPOKEN = """import os
import course_utils as course
four = course.start(4)
print([four.run(lambda comm: comm.allreduce(1)).results, sorted(n for n in os.environ if n.startswith("SLURM_"))])
four.stop()
nodes = course.start(4, where="slurm", nodes=2)
print(nodes.run(lambda comm: comm.allreduce(1)).results, sorted({one["node"] for one in nodes.facts["ranks"]}))
print("password" in str(os.environ).lower())"""


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.timeout(420)
def test_from_the_portals_page_to_ranks_on_both_nodes_in_the_browser(session, app, slurm, tmp_path) -> None:
    needs(CHROMIUM, "no Chromium: install it (Debian: apt install chromium)")
    from playwright.sync_api import sync_playwright

    assert render(app, tmp_path / "page", PLAIN, session.connection) is None
    page_of_portal = (tmp_path / "page" / "view.html").read_text()
    here = f"http://127.0.0.1:{session.connection['port']}"
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options, timeout=WAIT)
        try:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            context.set_default_timeout(WAIT)
            portal = context.new_page()
            portal.route(f"{here}/portal", lambda route: route.fulfill(body=page_of_portal, content_type="text/html"))
            portal.goto(f"{here}/portal")
            shots = settings.SCREENSHOTS.value() or tmp_path
            portal.screenshot(path=str(shots / "ondemand_portal.png"))
            with context.expect_page() as opened:
                portal.get_by_role("button", name="Open the course in JupyterLab").click()
            tab = opened.value
            tab.wait_for_url(re.compile(r"/lab/tree/notebooks/00_first_steps"), wait_until="domcontentloaded")
            notebook = Notebook(tab, f"{here}{session.base}/lab/tree/{{}}", LESSON)
            first = next(i for i, cell in enumerate(notebook.sources) if "course.start(" in cell)
            said = notebook.run(first, SPOKEN, 240_000)  # Slurm looks at its queue when it has time
            notebook.shot(first, shots / "ondemand_jupyterlab.png")
            assert "[[4, 4, 4, 4], ['SLURM_CONF']]" in said
            assert "[4, 4, 4, 4] ['c1', 'c2']" in said
            assert said.rstrip().endswith("False"), "the password is in the kernel's environment"
            assert not tab.get_by_text("Jupyter news").is_visible()
            with context.expect_page() as opened:  # who is logged in already is not asked again
                portal.get_by_role("button", name="Open the course in JupyterLab").click()
            opened.value.wait_for_url(re.compile(r"/lab/tree/notebooks/00_first_steps"), wait_until="domcontentloaded")
        finally:
            browser.close()
            for pid in processes_of(session):  # who tries again gets a kernel that does not still run the cell above
                with contextlib.suppress(OSError):
                    if "ipykernel" in Path(f"/proc/{pid}/cmdline").read_text():
                        os.kill(pid, signal.SIGKILL)


@pytest.mark.timeout(300)
def test_a_cancelled_session_leaves_no_process(session, slurm) -> None:
    scratch = Path(next(one for one in environment_of(processes_of(session)[0]) if one[0] == "TMPDIR")[1]).parent
    slurm.call("scancel", session.job)
    assert wait_until(lambda: not processes_of(session), 120)
    assert wait_until(lambda: not scratch.exists(), 60), f"{scratch} is still there"
    assert wait_until(lambda: not slurm.call("squeue", "--noheader"), 60), "a job that a lesson had started goes on"


def environment_of(pid: int) -> list[list[str]]:
    return [one.split("=", 1) for one in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in one]
