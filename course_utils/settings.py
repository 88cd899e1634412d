"""The settings of the course: every variable COURSE_… of the environment, with its type and its default.

A value is read when it is asked for, so a variable that a cell sets counts from then on. A variable that is set to ""
counts as not set. docs/settings.md is written from this module, and `course doctor` lists what is set. (The package
`pydantic-settings` would check values as well, but its import takes longer than that of the whole course.)
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from course_utils.errors import CourseError

PREFIX = "COURSE_"
Value = TypeVar("Value")


@dataclass(frozen=True)
class Format(Generic[Value]):
    """What values a setting may have.

    Attributes:
        make: returns the value of a text; raises ValueError or RuntimeError where that is not allowed.
        allowed: in words, such as "0 or 1".
        pattern: that the text must match as a whole.
    """

    make: Callable[[str], Value]
    allowed: str
    pattern: str = ".*"


@dataclass(frozen=True)
class Setting(Generic[Value]):
    """One variable of the environment.

    Attributes:
        name: of the variable.
        format: what values it may have.
        set_by: who sets it; one of the constants below.
        meaning: what it does.
        default: the text that counts where the variable is not set.
        otherwise: what happens where it is not set, in words, where that is more than the default.
    """

    name: str
    format: Format[Value]
    set_by: str
    meaning: str
    default: str = ""
    otherwise: str = ""

    def value(self, environment: Mapping[str, str] | None = None) -> Value:
        """Return the value, or the default where the variable is not set.

        Args:
            environment: where to look; without it, the environment of this process.

        Raises:
            CourseError: the variable has a text that is not allowed.
            RuntimeError: it is not set, its default is in the home directory, and this user has none.
        """
        own = (os.environ if environment is None else environment).get(self.name)
        text = own or self.default
        try:
            if re.fullmatch(self.format.pattern, text, re.DOTALL):
                return self.format.make(text)
        except ValueError:
            pass
        except RuntimeError:  # `~somebody`, a user who does not exist; or `~`, and this user has no home
            if not own:
                raise
        raise CourseError(f"{self.name}={text} is not {self.format.allowed}. docs/settings.md explains this variable.")

    @contextlib.contextmanager
    def temporarily(self, text: str) -> Iterator[None]:
        """Set the variable in the environment of this process, and put back afterwards what was there."""
        before = os.environ.get(self.name)
        os.environ[self.name] = text
        try:
            yield
        finally:
            os.environ.pop(self.name, None)
            if before is not None:
                os.environ[self.name] = before


# --- formats ----------------------------------------------------------------------------------------------------------


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _range(text: str) -> range:
    first, last = map(int, text.split("-"))
    if not 0 < first <= last < 1 << 16:
        raise ValueError
    return range(first, last + 1)


def or_none(given: Format[Value]) -> Format[Value | None]:
    """Return the same format for a variable without a default: its value is None where it is not set."""
    return Format(lambda text: given.make(text) if text else None, given.allowed, f"({given.pattern})?")


FOLDER = Format(_path, "a folder")
FILE = Format(_path, "a file")
PROGRAM = Format(str, "the path of a program")
YES_OR_NO = Format(lambda text: text == "1", "0 or 1", "[01]")
WHOLE_NUMBER = Format(int, "a whole number of at least 0", "[0-9]+")
WORD = Format(str, "a word without spaces", r"\S*")
PORT_RANGE = Format(_range, "a range of ports, such as 50000-50099", "[0-9]+-[0-9]+")
SECRET = Format(str, "a password")

# --- who sets them ---------------------------------------------------------------------------------------------------

LEARNER = "a learner"
CLUSTER = "a computing centre, or a learner there"
TEACHER = "a teacher"
DEVELOPER = "a developer of the course"
COURSE = "the course, for its own processes"
OPEN_ONDEMAND = "the app of Open OnDemand, for its session"

# --- the settings ----------------------------------------------------------------------------------------------------

HOME = Setting(
    "COURSE_HOME",
    FOLDER,
    LEARNER,
    "Where the course keeps what a learner has done, and the costs that it has measured on this machine.",
    default="~/.local/share/course",
)
DATA = Setting(
    "COURSE_DATA",
    FOLDER,
    LEARNER,
    "Where CIFAR-10 and MNIST lie, and where they are put when they are fetched. Lessons need neither.",
    default=str(Path(__file__).resolve().parent.parent / "data"),
    otherwise="the folder `data` of the course or of your copy",
)
COPY = Setting(
    "COURSE_COPY",
    or_none(FOLDER),
    LEARNER,
    "Your own copy of the notebooks, which `make lab` and Open OnDemand's app open and bring up to date.",
    otherwise="`~/course` if you may not write to the course's folder; otherwise `make lab` opens that folder itself",
)
OFFLINE = Setting(
    "COURSE_OFFLINE",
    YES_OR_NO,
    LEARNER,
    "With 1, the course does not try to fetch data over the network.",
    default="0",
)
RUNTIME = Setting(
    "COURSE_RUNTIME",
    or_none(FOLDER),
    LEARNER,
    "Where the ranks of this machine keep their files and sockets. It must be on a disk that can lock files, and it "
    "must belong to you.",
    otherwise="`$XDG_RUNTIME_DIR/course`, or a private folder among the temporary files",
)
FORK = Setting(
    "COURSE_FORK",
    YES_OR_NO,
    LEARNER,
    "With 0, every rank starts as a fresh process. With 1, ranks on Linux are forked from a process that has imported "
    "MPI and torch already, so they start at once.",
    default="1",
)
MPIEXEC = Setting(
    "COURSE_MPIEXEC",
    PROGRAM,
    LEARNER,
    "The program that starts the ranks of this machine.",
    otherwise="`mpiexec` beside the Python of the ranks, or else the first one on the `PATH`",
)
LEADERBOARD = Setting(
    "COURSE_LEADERBOARD",
    or_none(FILE),
    TEACHER,
    "The file in which a class keeps its best schedules for the puzzle of lesson 10. The whole class must be able to "
    "write to it.",
    otherwise="`leaderboard.csv` in `COURSE_HOME`",
)
SHARED = Setting(
    "COURSE_SHARED",
    FOLDER,
    CLUSTER,
    "Where ranks on several nodes keep their files. All nodes must see this folder.",
    default="~/.local/share/course/ranks",
)
ADDRESS = Setting(
    "COURSE_ADDRESS",
    WORD,
    CLUSTER,
    "The address at which the nodes reach the machine of the notebook.",
    otherwise="the address that the name of this machine has",
)
PORTS = Setting(
    "COURSE_PORTS",
    or_none(PORT_RANGE),
    CLUSTER,
    "On which ports the nodes reach the machine of the notebook, where a firewall lets only some through. Ten of them "
    "must be free.",
    otherwise="ports that the system chooses",
)
INTERFACE = Setting(
    "COURSE_INTERFACE",
    WORD,
    CLUSTER,
    "The network interface that gloo, MPICH and NCCL use on the nodes, such as `ib0`.",
    otherwise="the one that leads to the machine of the notebook",
)
SRUN_MPI = Setting(
    "COURSE_SRUN_MPI",
    WORD,
    CLUSTER,
    "How srun tells the ranks of a job about each other: one of the words that `srun --mpi=list` prints.",
    otherwise="the first of `pmi2`, `cray_shasta` and `pmix` that this Slurm has",
)
SEED = Setting(
    "COURSE_SEED",
    or_none(WHOLE_NUMBER),
    DEVELOPER,
    "The seed from which checks and tests draw their numbers, to repeat a run that has printed its seed.",
    otherwise="a new seed for each check",
)
SCREENSHOTS = Setting(
    "COURSE_SCREENSHOTS",
    or_none(FOLDER),
    DEVELOPER,
    "Where the tests put what they have seen in a browser.",
    otherwise="a temporary folder",
)
SITE = Setting(
    "COURSE_SITE",
    or_none(FOLDER),
    DEVELOPER,
    "A website that is built already, such as `site/build`; the tests look at it with axe-core, page by page.",
    otherwise="the tests build a small website of their own",
)
PYTHON = Setting(
    "COURSE_PYTHON",
    PROGRAM,
    COURSE,
    "The Python that ranks run under in a hosted notebook, such as on Colab; `tools/hosted.py` sets it.",
    otherwise="the Python of the notebook",
)
RANK = Setting(
    "COURSE_RANK",
    or_none(WHOLE_NUMBER),
    COURSE,
    "The number of this rank. A process without it is no rank.",
)
RANKS = Setting(
    "COURSE_RANKS",
    or_none(FOLDER),
    COURSE,
    "The folder of the set of ranks that a process belongs to. By this mark all its processes are found and ended.",
)
SHELL = Setting(
    "COURSE_SHELL",
    or_none(WHOLE_NUMBER),
    COURSE,
    "The process id of the shell that waits for this rank and writes down how it ended.",
    otherwise="the parent process",
)
ACTIVITY = Setting(
    "COURSE_ACTIVITY",
    or_none(WHOLE_NUMBER),
    COURSE,
    "The descriptor of the memory in which a rank of a Slurm job writes what it is doing.",
    otherwise="a file in the folder of the ranks",
)
NODES = Setting(
    "COURSE_NODES",
    YES_OR_NO,
    COURSE,
    "With 1, this rank has an emulated node, and a link, of its own.",
    default="0",
)
ROOM = Setting(
    "COURSE_ROOM",
    WORD,
    COURSE,
    "As many dashes as a forked rank needs bytes to show its own environment in the process list.",
)
PORTAL = Setting(
    "COURSE_PORTAL",
    WORD,
    OPEN_ONDEMAND,
    "The address of the portal, whose pages may talk to JupyterLab.",
)
PASSWORD = Setting(
    "COURSE_PASSWORD",
    SECRET,
    OPEN_ONDEMAND,
    "The password of the session, on its way from one script to the next, which removes it before JupyterLab starts.",
)

SETTINGS: tuple[Setting, ...] = tuple(found for found in globals().values() if isinstance(found, Setting))
"""All of them, in the order above."""
