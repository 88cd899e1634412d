"""tools/set-up on machines that are not this one: other Pythons, a Mac, musl, GPUs, uv, no network, a full disk.

The machine is made of small programs that stand before the real ones on the PATH. Nothing is installed: `pip` and `uv`
write down what they are asked for. Not a real Mac, and no real GPU.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from course_utils.syllabus import ROOT

RANGE = re.fullmatch(
    r">=3\.(\d+),<3\.(\d+)", tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
)
OLDEST, BEYOND = map(int, RANGE.groups())
NEWEST = BEYOND - 1
PIP = r"""#!/bin/sh
# The Python of .venv: does nothing but write down what is asked of it.
case "$*" in
-c*"version('torch')"*) echo "$TORCH_HERE"; exit 0 ;;
-c*"version('torchvision')"*) echo "$VISION_HERE"; exit 0 ;;
-c* | *compileall*) exit 0 ;;
*"pip config list") echo "$OF_PIP"; exit 0 ;;
*index*versions*--index-url*) echo "$INDEX"; exit 0 ;;
*index*versions*) echo "$SITE_INDEX"; exit 0 ;;
*install*) if [ -n "$SAYS" ]; then echo "$SAYS" >&2; exit 1; fi
    if [ -n "$SHOWS" ]; then echo "$SHOWS"; fi
    if [ -p "$WAITS" ]; then cat "$WAITS"; fi ;;
esac
env | grep -E '^(PIP|UV|PYTHON)[A-Z_]*=' | sort >"$ASKED.environment"
file=.venv/requirements.txt
case "$*" in *"-r $file"*) named=" ($(grep -c hash= $file): $(grep -o '^[a-z0-9]*' $file | paste -sd ' ' -))" ;; esac
echo "${0##*/} $*$named" >>"$ASKED"
"""
PYTHON = r"""#!/bin/sh
# A Python of another version or machine: it believes what stands here.
believes="import sys, platform
sys.version_info, sys.version = ({version}, 0, 'final', 0), '{version}'
platform.python_version, platform.machine = lambda: '{version}.0'.replace(', ', '.'), lambda: '{machine}'
sys.platform = '{system}'
"
case "$1 $2" in
-c*)
    case "$2" in
    *ensurepip*) exit {without_venv} ;;
    *realpath*) echo "${{PYTHON_IS_AT:-/usr/bin/env}}" && exit ;;
    esac
    exec "$REAL_PYTHON" -c "$believes$2" ;;
*.py*) exec "$REAL_PYTHON" "$@" ;;
"-m pip") exit 1 ;;
"-m venv")
    mkdir -p "$3/bin"
    cp "$FAKES/pip-of-venv" "$3/bin/python"
    echo "#!$PWD/$3/bin/python" >"$3/bin/pip" ;;
esac
if [ "$1" = --version ]; then echo "Python {version}" | tr -d ' ' | tr ',' '.'; fi
"""
LOCK = """# [pip]
pip==26.3 \\
    --hash=sha256:00
# [course]
numpy==2.4.6 ; sys_platform == 'linux' \\
    --hash=sha256:11 \\
    --hash=sha256:22
six==1.17.0 \\
    --hash=sha256:33
# [torch]
torch==2.13.0 \\
    --hash=sha256:44
torchvision==0.28.0 \\
    --hash=sha256:55
# [mpi4py]
mpi4py==4.1.2 \\
    --hash=sha256:66
# [mpich]
mpich==5.0.2 \\
    --hash=sha256:77
"""
OUTER = ("SITE_MPI", "TORCH", "PYTHON", "HASHES", "WHEELS", "SSL_CERT_FILE", "ALL_PROXY", "LMOD_CMD", "MODULESHOME")


@dataclass
class Machine:
    """A machine in a folder, with a copy of the course's set-up in another."""

    course: Path
    programs: Path

    def program(self, name: str, text: str) -> None:
        """Put a program on the PATH."""
        file = self.programs / name
        file.write_text(text)
        file.chmod(0o755)

    def python(
        self, name: str, version: str, machine: str = "x86_64", system: str = "linux", venv: bool = True
    ) -> None:
        """Put a Python on the PATH."""
        version = version.replace(".", ", ")
        self.program(name, PYTHON.format(version=version, machine=machine, system=system, without_venv=int(not venv)))

    def system(self, name: str, machine: str) -> None:
        """Say which system this is."""
        self.program("uname", f'#!/bin/sh\ncase "$1" in -m) echo {machine} ;; *) echo {name} ;; esac\n')

    @property
    def command(self) -> Path:
        return self.course / "tools" / "set-up"

    @property
    def environment(self) -> dict[str, str]:
        """The PATH with this machine's programs first, and nothing of the outer course's choices."""
        outer = (*OUTER, "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE")
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in outer and not name.startswith(("PIP_", "UV_"))
        }
        own = {"FAKES": str(self.programs), "ASKED": str(self.course / "asked"), "REAL_PYTHON": sys.executable}
        return {**kept, "PATH": f"{self.programs}:/usr/bin:/bin", **own}

    def set_up(self, **choices: str) -> subprocess.CompletedProcess:
        """Run it, as a user would."""
        (self.course / "asked").unlink(missing_ok=True)
        environment = {**self.environment, **choices}
        return subprocess.run([self.command], capture_output=True, text=True, timeout=60, env=environment)

    @property
    def asked(self) -> list[str]:
        """What pip and uv were asked for in the last set-up."""
        file = self.course / "asked"
        return file.read_text().splitlines() if file.exists() else []

    def rejects(self, **choices: str) -> str:
        """The lines with which it stops, with nothing asked for and no environment made."""
        done = self.set_up(**choices)
        assert done.returncode == 1 and not self.asked and not (self.course / ".venv").exists(), done.stderr
        assert done.stdout == "" and len(done.stderr.splitlines()) <= 3
        return done.stderr

    def installs(self, **choices: str) -> str:
        """What it says while it sets up; with other pins than the last time, so it has something to do."""
        with (self.course / "constraints.txt").open("a") as file:
            file.write("# renewed\n")
        done = self.set_up(**choices)
        assert done.returncode == 0, done.stderr
        assert done.stderr.endswith("Ready. Next: make lab\n")
        return done.stderr


@pytest.fixture
def machine(tmp_path) -> Machine:
    """A Linux with the oldest Python that fits, and neither a GPU nor uv."""
    made = Machine(tmp_path / "course", tmp_path / "programs")
    (made.course / "tools").mkdir(parents=True)
    made.programs.mkdir()
    for name in ("set-up", "packages.sh", "pip_settings.py", "installer_progress.py"):
        shutil.copy(ROOT / "tools" / name, made.course / "tools")
    shutil.copy(ROOT / "pyproject.toml", made.course)
    (made.course / "constraints.txt").write_text("torch==2.13.0\ntorchvision==0.28.0\n")
    (made.course / "requirements.lock").write_text(LOCK)
    made.program("pip-of-venv", PIP)
    for minor in range(OLDEST, BEYOND):
        made.program(f"python3.{minor}", "#!/bin/sh\nexit 127\n")
    made.program("python", "#!/bin/sh\nexit 127\n")
    made.python("python3", f"3.{OLDEST}")
    made.program("nvidia-smi", "#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    made.program("getconf", "#!/bin/sh\necho glibc 2.36\n")
    made.program("ldd", "#!/bin/sh\necho 'ldd (GNU libc) 2.36'\n")
    made.system("Linux", "x86_64")
    return made


def test_the_newest_python_that_fits_is_taken(machine) -> None:
    machine.python("python3", f"3.{BEYOND}")
    machine.python(f"python3.{NEWEST - 1}", f"3.{NEWEST - 1}")
    machine.python(f"python3.{OLDEST}", f"3.{OLDEST}")
    assert f"Setting up .venv with Python3.{NEWEST - 1}." in machine.installs()


@pytest.mark.parametrize("version", ["3.9", f"3.{OLDEST - 1}", f"3.{BEYOND}"])
def test_another_python_is_rejected_before_anything_is_fetched(machine, version) -> None:
    machine.python("python3", version)
    said = machine.rejects()
    needed = f"The course needs Python 3.{OLDEST} to 3.{NEWEST}"
    assert said.startswith(f"{needed}, and none was found (python3 is {version}.0 x86_64).")
    assert "make setup PYTHON=/path/to/" in said


def test_a_python_that_is_not_there_is_named(machine) -> None:
    assert machine.rejects(PYTHON="/no where/python3").startswith(
        f"The course needs Python 3.{OLDEST} to 3.{NEWEST}, and none was found at /no where/python3."
    )


def test_a_python_that_makes_no_environments_is_passed_over(machine) -> None:
    machine.python("python3", f"3.{OLDEST}", venv=False)
    assert machine.rejects().endswith("On Debian and Ubuntu: apt install python3-venv\n")
    machine.python("python", f"3.{NEWEST}")
    assert f"Setting up .venv with Python3.{NEWEST}." in machine.installs()


def test_a_python_that_is_named_replaces_the_one_of_the_environment(machine) -> None:
    machine.installs()
    machine.python("other", f"3.{NEWEST}")
    done = machine.set_up(PYTHON="other")
    assert "The present .venv has a different Python, so it is made again." in done.stderr and done.returncode == 0


def test_a_mac_with_an_intel_processor_hears_that_there_is_no_torch(machine) -> None:
    machine.system("Darwin", "x86_64")
    machine.program("sysctl", "#!/bin/sh\nexit 1\n")
    machine.python("python3", f"3.{OLDEST}", system="darwin")
    assert machine.rejects().startswith(
        "torch 2.13.0 has no wheel for Macs with an Intel processor. The course's container"
    )


def test_a_mac_that_is_too_old_hears_what_it_needs(machine) -> None:
    machine.system("Darwin", "arm64")
    machine.program("sw_vers", "#!/bin/sh\necho 13.7.8\n")
    assert machine.rejects().startswith("torch 2.13.0 has no wheel for macOS 13.7.8. It needs 14 or newer. ")


def test_a_mac_needs_a_python_for_its_own_processor(machine) -> None:
    machine.system("Darwin", "arm64")
    machine.program("sw_vers", "#!/bin/sh\necho 15.1\n")
    machine.python("python3", f"3.{OLDEST}", system="darwin", machine="x86_64")
    assert f"(python3 is 3.{OLDEST}.0 x86_64)" in machine.rejects()
    machine.python("python", f"3.{OLDEST}", system="darwin", machine="arm64")
    assert "torch: " not in machine.installs()
    assert build_of(machine) == "pypi", "the only one for Macs"


def test_a_linux_with_musl_hears_that_there_are_no_wheels(machine) -> None:
    machine.program("ldd", "#!/bin/sh\necho 'musl libc (x86_64)' >&2\nexit 1\n")
    assert machine.rejects().startswith("torch 2.13.0 and MPICH have no wheels for a Linux with musl, such as Alpine.")


def test_a_linux_with_an_old_library_hears_what_it_needs(machine) -> None:
    machine.program("getconf", "#!/bin/sh\necho glibc 2.17\n")
    assert machine.rejects().startswith(
        "torch 2.13.0 and MPICH have no wheels for glibc 2.17, which must be 2.28 or newer. "
    )


def index_has(build: str) -> dict[str, str]:
    """What PyTorch's index of a build answers."""
    return {
        "INDEX": f"torchvision (0.29.1+{build})\nAvailable versions: 0.29.1+{build}, 0.28.0+{build}, 0.27.0+{build}"
    }


def build_of(machine: Machine) -> str:
    """The build of torch that was asked for, with its torchvision from the same place."""
    for line in machine.asked:
        if line.endswith(("(2: torch torchvision)", "-c constraints.txt torch torchvision")):
            return "pypi"
        if found := re.search(r"--index-url https://download\.pytorch\.org/whl/(\w+) ", line):
            assert line.endswith(f" torch==2.13.0+{found[1]} torchvision==0.28.0+{found[1]}")
            return found[1]
    raise AssertionError(f"no torch was asked for: {machine.asked}")


@pytest.mark.parametrize(
    ("shown", "build"),
    [
        ("", "cpu"),
        ("470.256.02, 8.0", "cpu"),
        ("525.60.13, 8.0", "cu126"),
        ("575.57.08, 9.0", "cu126"),
        ("580.65.06, 7.0", "cu126"),
        ("580.65.06, 7.5", "pypi"),
        ("590.10, 9.0\n590.10, 6.1", "cu126"),
    ],
)
def test_torch_fits_the_gpu_and_its_driver(machine, shown, build) -> None:
    if shown:
        machine.program("nvidia-smi", f"#!/bin/sh\necho '{shown}'\n")
    machine.installs(**index_has(build))
    assert build_of(machine) == build


def test_the_build_of_torch_is_remembered_until_another_is_named(machine) -> None:
    machine.installs(TORCH="cu130", **index_has("cu130"))
    machine.program("nvidia-smi", "#!/bin/sh\necho '590.10, 9.0'\n")
    machine.installs(**index_has("cu130"))
    assert build_of(machine) == "cu130"
    done = machine.set_up(TORCH="cu130")
    assert (done.stderr, machine.asked) == ("", []), "what it is already"
    assert machine.set_up(TORCH="auto", TORCH_HERE="2.13.0+cu130", VISION_HERE="0.28.0+cu130").returncode == 0
    assert any("uninstall" in line and line.endswith("torch torchvision") for line in machine.asked), "both or none"
    assert build_of(machine) == "pypi"
    machine.program("nvidia-smi", "#!/bin/sh\nexit 1\n")
    machine.installs(**index_has("cpu"))
    assert build_of(machine) == "pypi", "a login node without a GPU changes nothing"


def test_where_the_index_of_builds_does_not_answer_pypi_is_taken_unless_one_was_named(machine) -> None:
    said = machine.installs(INDEX="")
    assert "does not answer, so torch comes from PyPI." in said and build_of(machine) == "pypi"
    done = machine.set_up(TORCH="cu126", INDEX="")
    assert done.returncode == 1 and not any("torch" in line for line in machine.asked)
    assert done.stderr.splitlines()[-1].startswith("PyTorch's index has no torch 2.13.0 for cu126, or does not answer.")


@pytest.mark.parametrize("choice", [{"TORCH": "gpu"}, {"SITE_MPI": "yes"}])
def test_a_choice_that_is_none_is_named(machine, choice) -> None:
    (name, value), *_ = choice.items()
    assert machine.rejects(**choice).startswith(f"{name}={value} is n")


def test_uv_does_the_installing_where_it_is_there(machine) -> None:
    machine.installs()
    by_pip = [line.partition(" off ")[2] for line in machine.asked]
    machine.program("uv", (machine.programs / "pip-of-venv").read_text())
    machine.installs()
    assert all(line.startswith("uv pip install --python .venv/bin/python ") for line in machine.asked)
    assert [line.split(maxsplit=5)[5] for line in machine.asked] == by_pip


UV_WITHOUT_PIP = r"""#!/bin/sh
# uv: its environments have no pip until that is installed.
echo "uv $*" >>"$ASKED"
if [ "$1" = venv ]; then
    "$FAKES/python3" -m venv .venv
    rm .venv/bin/pip
else
    echo "#!$PWD/.venv/bin/python" >.venv/bin/pip
fi
"""


def test_uv_makes_environments_with_a_python_that_cannot(machine) -> None:
    machine.python("python3", f"3.{OLDEST}", venv=False)
    machine.program("uv", UV_WITHOUT_PIP)
    machine.installs(INDEX="")
    assert machine.asked[0] == f"uv venv --quiet --python {machine.programs}/python3 .venv"
    assert machine.asked[1].endswith("--no-deps --require-hashes -r .venv/requirements.txt"), "pip, which uv leaves out"


def test_the_choice_of_mpi_is_remembered_until_another_is_made(machine) -> None:
    machine.installs(SITE_MPI="1")
    assert any("--no-binary mpi4py" in line for line in machine.asked)
    machine.installs()
    assert any("--no-binary mpi4py" in line for line in machine.asked)
    assert not any("mpich" in line for line in machine.asked)
    assert "has a different MPI, so it is made again" in machine.set_up(SITE_MPI="0").stderr
    assert machine.asked[0].endswith("(5: numpy six mpi4py mpich)") and machine.asked[-1].endswith(" -e .")


def environment_of(machine: Machine) -> str:
    """The variables of pip, uv and Python that the last installer saw."""
    return (machine.course / "asked.environment").read_text()


def test_what_would_send_packages_elsewhere_is_set_aside_and_named(machine, tmp_path) -> None:
    (tmp_path / "modules" / "torch").mkdir(parents=True)
    variables = {"PIP_USER": "1", "PIP_TARGET": "/x", "UV_CONSTRAINT": "/y", "PYTHONUSERBASE": "/z", "PIP_CERT": "/c"}
    of_pip = "global.user='true'\ninstall.prefix='/p'\nglobal.pre='no'\nglobal.timeout='60'\n:env:.cert='/c'"
    said = machine.installs(**variables, PYTHONPATH=f"/none:{tmp_path}/modules", OF_PIP=of_pip)
    [line] = [line for line in said.splitlines() if line.startswith("Set aside")]
    assert line.endswith(", and pip.conf's prefix, user.")
    named = line.partition(": ")[2].partition(", and ")[0].split(", ")
    assert sorted(named) == [
        "PIP_TARGET",
        "PIP_USER",
        "PYTHONPATH (with a torch in it)",
        "PYTHONUSERBASE",
        "UV_CONSTRAINT",
    ]
    seen = environment_of(machine)
    assert {"PIP_CERT=/c", "PIP_CONFIG_FILE=/dev/null", "PIP_TIMEOUT=60"} <= set(seen.splitlines())
    assert not any(name in seen for name in ("USER", "TARGET", "CONSTRAINT", "PYTHONPATH", "PREFIX"))


MIRROR = "global.index-url='https://me:secret@mirror.site/simple'"
SITE_INDEX = "torch (2.14.0)\nAvailable versions: 2.14.0, 2.13.0+cpu, 2.13.0"


def test_a_site_with_an_index_of_its_own_is_not_led_past_it(machine) -> None:
    said = machine.installs(OF_PIP=MIRROR, **index_has("cpu"))
    assert build_of(machine) == "pypi" and "https://mirror.site/simple" in said and "secret" not in said
    assert "does not answer" not in said and "If it is a copy of PyPI's" in said
    assert machine.asked[0].endswith("-c constraints.txt -r .venv/requirements.txt (0: numpy six mpi4py mpich)")
    assert "UV_DEFAULT_INDEX=https://me:secret@mirror.site/simple" in environment_of(machine)
    machine.set_up(OF_PIP=MIRROR, TORCH="cu126", **index_has("cu126"))
    assert build_of(machine) == "cu126", "this was named"


def test_where_a_site_has_the_build_it_is_taken_from_there(machine) -> None:
    said = machine.installs(PIP_FIND_LINKS="/wheels", SITE_INDEX=SITE_INDEX, **index_has("cpu"))
    assert "torch 2.13.0+cpu is where this site's packages come from (/wheels)." in said and "gigabytes" not in said
    assert machine.asked[1].endswith("-c constraints.txt torch==2.13.0+cpu torchvision")
    assert (machine.course / ".venv" / "made-for").read_text().split()[-2] == "auto:cpu"


def test_a_torch_that_is_there_is_not_fetched_again(machine) -> None:
    machine.installs(**index_has("cpu"))
    said = machine.installs(TORCH_HERE="2.13.0+cpu", VISION_HERE="0.28.0+cpu")
    assert "torch" not in said and not any("torch" in line for line in machine.asked)
    machine.installs(TORCH_HERE="2.12.0+cpu", VISION_HERE="0.28.0+cpu", **index_has("cpu"))
    assert build_of(machine) == "cpu"


def test_files_are_checked_against_the_lock_file_unless_a_site_has_its_own(machine) -> None:
    machine.installs(TORCH="pypi")
    with_hashes = "--no-deps --require-hashes -r .venv/requirements.txt"
    assert machine.asked[0].endswith(f"{with_hashes} (5: numpy six mpi4py mpich)")
    assert machine.asked[1].endswith(f"{with_hashes} (2: torch torchvision)")
    machine.installs(HASHES="0")
    assert not any("hashes" in line for line in machine.asked)
    said = machine.installs(HASHES="1", PIP_FIND_LINKS="/wheels", SITE_INDEX=SITE_INDEX, TORCH="cpu")
    assert machine.asked[0].endswith("(5: numpy six mpi4py mpich)")
    assert "requirements.lock has no hashes for torch's build cpu. Only its version is checked." in said


def folder_of_wheels(on: Machine, /, **changes: str) -> Path:
    """A folder as tools/fetch-wheels leaves it."""
    pins = (on.course / "constraints.txt").read_bytes()
    pins = subprocess.run(["cksum"], input=pins, capture_output=True, check=True).stdout.decode().strip()
    heading = {"constraints": pins, "machine": "Linux x86_64", "python": str(OLDEST), "torch": "cpu"}
    lines = [f"# {name}: {value}\n" for name, value in {**heading, **changes}.items()]
    folder = on.course.with_name("the wheels")
    folder.mkdir(exist_ok=True)
    (folder / "requirements.lock").write_text("".join(lines) + LOCK.replace("2.13.0", "2.13.0+cpu"))
    return folder


def test_a_folder_of_wheels_replaces_the_network(machine) -> None:
    machine.python(f"python3.{NEWEST}", f"3.{NEWEST}")
    done = machine.set_up(WHEELS=str(folder_of_wheels(machine)))
    assert done.returncode == 0 and f"Setting up .venv with Python3.{OLDEST}." in done.stderr, "the wheels' Python"
    wheels = f"--no-index --find-links {machine.course.with_name('the wheels')}"
    assert [line.partition(" off ")[2] for line in machine.asked] == [
        f"{wheels} --no-deps --require-hashes -r .venv/requirements.txt (5: numpy six mpi4py mpich)",
        f"{wheels} --no-deps --require-hashes -r .venv/requirements.txt (2: torch torchvision)",
        f"{wheels} --no-deps --no-build-isolation -e .",
    ]
    assert (machine.set_up().stderr, machine.asked) == ("", []), "they are not needed any more"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"constraints": "1 2"}, "was fetched for a different version of the course."),
        ({"machine": "Darwin arm64"}, "was fetched for Darwin arm64, and this is Linux x86_64."),
        ({"python": str(NEWEST)}, f"The course needs Python 3.{NEWEST}, and none was found"),
    ],
)
def test_a_folder_of_wheels_for_something_else_is_rejected(machine, changes, line) -> None:
    assert line in machine.rejects(WHEELS=str(folder_of_wheels(machine, **changes)))


def test_a_folder_without_a_list_is_no_folder_of_wheels(machine, tmp_path) -> None:
    assert "has no requirements.lock. `tools/fetch-wheels FOLDER`" in machine.rejects(WHEELS=str(tmp_path))
    assert machine.rejects(WHEELS=str(tmp_path / "none")) == "WHEELS names no folder that can be entered.\n"


def test_a_folder_of_wheels_with_another_build_of_torch_is_named(machine) -> None:
    done = machine.set_up(WHEELS=str(folder_of_wheels(machine)), TORCH="cu126")
    assert done.returncode == 1
    assert done.stderr.endswith("has torch's build cpu, and TORCH=cu126 asks for a different one.\n")


def test_who_finds_no_python_hears_of_uv_and_of_the_modules(machine) -> None:
    machine.python("python3", "3.9")
    assert f"`uv python install 3.{NEWEST}`, then `make setup PYTHON=" in machine.rejects()
    assert "`module avail python` lists those of this machine" in machine.rejects(LMOD_CMD="/lmod/libexec/lmod")


def test_a_python_that_others_cannot_reach_is_named_before_anything_is_fetched(machine) -> None:
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)
        machine.course.rename(there / "course")
        machine.course = there / "course"
        (there / "closed").mkdir(mode=0o700)
        python = there / "closed" / "python3"
        python.touch(0o755)
        there.chmod(0o755)
        assert "Other users" not in machine.installs()
        shutil.rmtree(machine.course / ".venv")
        first = machine.installs(PYTHON_IS_AT=str(python)).splitlines()[0]
        assert f"{python}, because they cannot enter {there}/closed. " in first and "make setup PYTHON=" in first
        shutil.rmtree(machine.course / ".venv")
        machine.course.chmod(0o700)
        assert "Other users" not in machine.installs(PYTHON_IS_AT=str(python)), "nobody else can read the folder"


def test_a_link_to_the_folder_is_the_same_folder(machine) -> None:
    link = machine.course.with_name("current")
    link.symlink_to(machine.course.name)
    real, machine.course = machine.course, link
    machine.installs()
    assert f" {real} " in (real / ".venv" / "made-for").read_text()
    machine.course = real
    assert (machine.set_up().stderr, machine.asked) == ("", [])
    (real / ".venv" / "bin" / "pip").write_text(f"#!{link}/.venv/bin/python\n")  # as an older set-up left it
    assert "made again" not in machine.installs()


def test_an_environment_that_is_in_use_is_never_removed(machine) -> None:
    machine.installs()
    program = machine.course / ".venv" / "bin" / "program"
    shutil.copy(shutil.which("sleep"), program)
    user = subprocess.Popen([program, "100"])
    try:
        machine.python("other", f"3.{NEWEST}")
        done = machine.set_up(PYTHON="other")
        assert done.returncode == 1 and not machine.asked and program.exists()
        why = "has a different Python, so it would have to be made again, but it is in use: process"
        assert f"{why} {user.pid} (program, of " in done.stderr
        assert "set the course up in a new folder next to" in done.stderr
    finally:
        user.kill()
        user.wait()
    assert machine.set_up(PYTHON="other").returncode == 0 and not program.exists()


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ("", "is not set up yet. Ask them to run `make setup` there."),
        ("by other files", "was set up for other versions of its files, or not to the end. Ask them"),
        ("with a Python", "was set up with a Python that you cannot run (/root/python)."),
        ("for SITE_MPI=0", "was set up with other choices of PYTHON, TORCH or SITE_MPI."),
    ],
)
def test_a_release_of_somebody_else_is_left_alone(machine, made, line) -> None:
    if os.geteuid():
        pytest.skip("only root can be a different user for a moment")
    folder = Path(tempfile.mkdtemp())
    try:
        machine.course.rename(folder / "course")
        machine.programs.rename(folder / "programs")
        machine.course, machine.programs = folder / "course", folder / "programs"
        if made:
            machine.installs()
            (machine.course / ".venv" / "pyvenv.cfg").write_text("home = /root/python\n")
        if made == "by other files":
            (machine.course / "constraints.txt").write_text("torch==2.14.0\n")
        if made == "with a Python":
            (machine.course / ".venv" / "bin" / "python").write_text("#!/bin/sh\nexit 126\n")
        folder.chmod(0o755)
        choice = {"SITE_MPI": "1"} if made == "for SITE_MPI=0" else {}
        other = {"capture_output": True, "text": True, "timeout": 60, "user": 4711, "group": 4711}
        done = subprocess.run([machine.command], env={**machine.environment, **choice}, **other)
        assert done.returncode == 1 and done.stderr.startswith(f"The course in {machine.course}, which belongs to root")
        assert line in done.stderr and len(done.stderr.splitlines()) == 1
        if made == "for SITE_MPI=0":
            done = subprocess.run([machine.command], env=machine.environment, **other)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), "it is set up, and that is all"
    finally:
        shutil.rmtree(folder)


NO_NETWORK = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError': /simple/torch/
ERROR: Could not find a version that satisfies the requirement torch (from versions: none)"""
BROKEN_OFF = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n Expected sha256 afed"
UV_ALONE = "error: Request failed after 3 retries\n  cause: Failed to fetch: https://pypi.org/simple/torch/"
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (NO_NETWORK, "The network is down, or the connection broke. Run `make setup` again"),
        (BROKEN_OFF, f"{BROKEN_OFF}\nA file is not the one that requirements.lock names. "),
        (UV_ALONE, "The network is down, or the connection broke. "),
        (FULL, "The disk is full. .venv needs 2 GB, and "),
        ("error: something else", "error: something else\nThe installation failed. The lines above say where."),
    ],
)
def test_an_installation_that_breaks_off_says_why_and_goes_on_with_what_was_chosen(machine, said, line) -> None:
    choices = {"SITE_MPI": "1", "TORCH": "cu126", **index_has("cu126")}
    done = machine.set_up(SAYS=said, **choices)
    assert done.returncode == 1 and done.stderr.partition("are named.\n")[2].startswith(line)
    machine.installs(**index_has("cu126"))
    assert "--no-binary mpi4py" in machine.asked[-1] and build_of(machine) == "cu126"


OF_PIP = """Collecting torch==2.13.0
  Downloading https://download.pytorch.org/whl/cpu/torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl (184.5 MB)
Collecting six
  Downloading six-1.17.0-py2.py3-none-any.whl.metadata (1.7 kB)
Installing collected packages: six, torch
Successfully installed six-1.17.0 torch-2.13.0"""
OF_UV = """Resolved 3 packages in 305ms
Downloading torch (184.5MiB)
 Downloaded torch
Prepared 3 packages in 2.11s
 + torch==2.13.0"""


@pytest.mark.parametrize("shows", [OF_PIP, OF_UV], ids=["pip", "uv"])
def test_the_larger_downloads_are_named_with_their_sizes(machine, shows) -> None:
    said = machine.installs(SHOWS=shows)
    shown = [line.strip() for line in said.splitlines() if line.startswith("    ")]
    megabytes, count = (184, 2) if shows is OF_PIP else (193, 3)
    what = "torch 2.13.0+cpu, 184 MB, from download.pytorch.org" if shows is OF_PIP else "torch, 193 MB"
    assert shown[:2] == [what, f"{megabytes} MB downloaded. Unpacking {count} packages."]
    assert not any(word in said for word in ("six", "Successfully", "Resolved", "+ torch"))


def test_a_package_that_was_half_installed_comes_again(machine) -> None:
    machine.installs()
    packages = machine.course / ".venv" / "lib" / "python3.11" / "site-packages"
    for name, files in (("whole-1.dist-info", "whole.py,,\n"), ("empty-1.dist-info", ""), ("none-1.dist-info", None)):
        (packages / name).mkdir(parents=True)
        if files is not None:
            (packages / name / "RECORD").write_text(files)
    machine.installs()
    assert [folder.name for folder in packages.iterdir()] == ["whole-1.dist-info"]


def test_an_environment_that_was_moved_is_made_anew(machine) -> None:
    machine.installs()
    moved = machine.course.with_name("moved")
    machine.course.rename(moved)
    machine.course = moved
    done = machine.set_up()
    assert done.stderr.startswith(
        "The present .venv was made in a different folder, or was not finished, so it is made"
    )
    assert done.returncode == 0 and str(moved / ".venv") in (moved / ".venv" / "bin" / "pip").read_text()


def test_a_second_set_up_waits_for_the_first(machine, tmp_path) -> None:
    waits = tmp_path / "waits"
    os.mkfifo(waits)
    first = subprocess.Popen(
        [machine.command], env={**machine.environment, "WAITS": str(waits)}, stderr=subprocess.PIPE, text=True
    )
    with waits.open("w"):  # opens when the first has begun to install
        second = subprocess.Popen([machine.command], env=machine.environment, stderr=subprocess.PIPE, text=True)
        assert second.stderr.readline().startswith(f"A set-up is already running here (process {first.pid})")
    waits.unlink()
    assert first.communicate(timeout=60)[1].endswith("Ready. Next: make lab\n")
    assert second.communicate(timeout=60)[1] == "", "it has nothing to do"
    assert (first.returncode, second.returncode) == (0, 0)
    assert not (machine.course / ".set-up-runs").is_symlink()


def test_a_set_up_that_died_holds_up_nobody(machine) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    (machine.course / ".set-up-runs").symlink_to(str(ended.pid))
    machine.installs()


@pytest.mark.parametrize("shell", ["dash", "bash", "zsh", "busybox"])
def test_every_shell_reads_it(shell) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    command = [shutil.which(shell), *(["sh"] if shell == "busybox" else []), "-n", ROOT / "tools" / "set-up"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""
