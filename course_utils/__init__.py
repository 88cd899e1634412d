"""The face of the course: `import course_utils as course`.

Everything is imported when it is first used, so that the import itself takes a few milliseconds.
"""

import contextlib
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from course_utils.lazy import attach
from course_utils.settings import RANK

if TYPE_CHECKING:
    from course_utils import data as data
    from course_utils import draw as draw
    from course_utils.checks.course_check import check as check
    from course_utils.checks.hints import hint as hint
    from course_utils.checks.overview import progress as progress
    from course_utils.checks.predictions import answer as answer
    from course_utils.checks.predictions import measured as measured
    from course_utils.checks.predictions import predict as predict
    from course_utils.diagnosis import doctor as doctor
    from course_utils.errors import CourseError as CourseError
    from course_utils.errors import RankError as RankError
    from course_utils.lessons.profiling.read_profile import read_profile as read_profile
    from course_utils.ranks.ranks import Ranks as Ranks
    from course_utils.ranks.run import Run as Run
    from course_utils.ranks.run import per_rank as per_rank
    from course_utils.ranks.start import start as start
    from course_utils.reporting.page import report as report

__getattr__, __dir__, __all__ = attach(__name__, __file__)


def _keep_mpi_out_of_kernels() -> None:
    """Let `from mpi4py import MPI` be harmless in a notebook: the kernel is not a rank and must not start MPI."""
    if "ipykernel" in sys.modules and RANK.value() is None:
        import mpi4py

        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False


def _bring_up_the_fork_server() -> None:
    """In a notebook, begin to import now what its ranks will need: they start at once when it is there.

    Torch too, which takes a while, where somebody sits before the notebook: Jupyter's server names its session.
    """
    if "ipykernel" in sys.modules and RANK.value() is None:
        from course_utils.ranks.processes.forking import fork_server

        with contextlib.suppress(Exception):  # `start` will say what is wrong, where it is needed
            fork_server(torch="JPY_SESSION_NAME" in os.environ)


def _shell() -> Any:
    """The IPython that runs this code; None where there is none."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _explain_px() -> None:
    """Let a `%%px` before `course.start` say what is missing, where IPython would say that there is no such magic."""
    shell = _shell()
    if shell is None or RANK.value() is not None or "px" in shell.magics_manager.magics["cell"]:
        return

    def px(line: str, cell: str | None = None) -> None:
        from course_utils.errors import CourseError

        raise CourseError("No ranks are running yet. `ranks = course.start(4)` starts four. Then run this cell again.")

    shell.register_magic_function(px, "line_cell", "px")


def _let_a_kernel_end_quietly() -> None:
    """In a notebook, keep a restart while a cell runs from filling the terminal with a traceback.

    The kernel closes its sockets, and the cell that it interrupts still wants to answer. That is all the lines say.
    """
    zmq, kernel = sys.modules.get("zmq"), getattr(_shell(), "kernel", None)
    if zmq is None or kernel is None:
        return

    def is_worth_saying(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not (isinstance(error, zmq.ZMQError) and error.errno == zmq.ENOTSOCK)

    kernel.log.addFilter(is_worth_saying)


def _watch_cells() -> None:
    """In a notebook, note how each cell ends: a check must not judge what a cell that failed has left from before."""
    shell = _shell()
    if shell is not None and RANK.value() is None:
        from course_utils.checks.executed_cells import watch

        watch(shell)


_keep_mpi_out_of_kernels()
_explain_px()
_let_a_kernel_end_quietly()
_watch_cells()
_bring_up_the_fork_server()
