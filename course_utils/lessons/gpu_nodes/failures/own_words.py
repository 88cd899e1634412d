"""What a program wrote about its own end: many in C, C++ and Fortran print an error in their own words, and stop."""

import re
from collections.abc import Container, Iterator, Sequence
from itertools import islice, takewhile

from course_utils.lessons.gpu_nodes.failures.exit_codes import EXIT_CODE
from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.tracebacks import unmarked

OWN_ERROR = "error of the program"
"""The failure of a program that found an error, printed it, and stopped."""
ENDS_ITSELF = {EXIT_CODE, "aborted", "MPI's own error"}
"""Signs that a program stopped itself."""
PROGRESS = re.compile(r"\b(?:step|epoch|iter\w*|loss|batch)\b[ :=\[]*\d|\bit/s\b|s/it\b|\d%\|", re.IGNORECASE)
"""What a program prints that goes on as it should."""
_NEAR = 12
"""So many of a program's last lines may tell why it stopped."""
_OF_A_LAUNCHER = re.compile(
    r"^\s*(?:srun|slurmstepd\S*|mpirun|mpiexec\S*|prterun|torchrun|\++ \S+|bash|sh)\b"
    r"|^\s*[-=*#%~_+ ]{5,}\s*$|^\[[\w.-]+:\d+(?::\d+)*\] |^\[?[WEIF]\d{3,4} |torch[./]distributed|ChildFailedError"
    r"|MPI_A(?:bort|BORT)|\bAbort\(-?\d+\)|core dumped|errorcode|Open MPI kills|exactly when|[Pp]rimary job"
    r"|user-direction|^\s*(?:Process name|Exit code|exitcode|EXIT CODE|rank|host|time|error_file|traceback) *:"
    r"|job to be (?:terminated|aborted)|BAD TERMINATION|^=\s|^Failures:|^Root Cause|^\s*<NO_OTHER|^\[\d+\]:$| FAILED$"
    r"|^#\d+ |Backtrace for this error|Program received signal|^\s*(?:Aborted|Killed|Terminated)\b|returned non-zero"
    r"|return code = |terminate called|libc\+\+abi|^\s*what\(\):|^\s*frame #\d+: |^Exception raised from |c10::"
    r"|^\w+\(\d+\)\.*: |^aborting job:|error stack:"
    r"|ProcessGroup\w+\.cpp|DistBackendError|\bNCCL (?:INFO|WARN)\b|^nccl\w+Error: |^Last error:"
)
"""What launchers, the system and the libraries between the ranks write."""
_ERROR = re.compile(
    r"(?<!no )(?<!without )\berror\b(?!\s*(?:[=:<>]|is|of|norm)*\s*[-+\d.])"
    r"|\bfatal\b|\bpanic\b|\babort(?:ed|ing)?\b|!!!",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(
    r"warning|\bignored\b|wandb|Lmod|\b(?:mean|max\w*|relative|estimated|rms|absolute|test|train\w*) \w* ?error"
    r"|\berrors?: *0|\bINFO\b|\bDEBUG\b|^\W*$|cannot be preloaded|cpuinfo|forrtl: error|\bW0000\b|\bE0000\b",
    re.IGNORECASE,
)


def _upwards(lines: Sequence[Line], sign: Line, passed: Container[int]) -> Iterator[Line]:
    """Yield the program's lines above a sign, the last one first, back to where it still made progress."""
    end = next((index for index, line in enumerate(lines) if line is sign), 0)
    for index in range(end - 1, -1, -1):
        line = lines[index]
        if line.file != sign.file or (sign.rank is not None and line.rank not in (None, sign.rank)):
            continue
        if PROGRESS.search(line.text):
            return
        if index not in passed and line.text.strip() and not _OF_A_LAUNCHER.search(unmarked(line.text)):
            yield line


def own_error(lines: Sequence[Line], sign: Line, passed: Container[int] = ()) -> Line | None:
    """The first of a program's last lines that speaks of an error.

    Args:
        lines: of a launch.
        sign: the line that shows that the program stopped itself.
        passed: the indices of lines that are parts of exceptions.
    """
    last = list(islice(_upwards(lines, sign, passed), _NEAR))
    errors = [line for line in last if _ERROR.search(line.text) and not _NO_ERROR.search(line.text)]
    return errors[-1] if errors else None


def last_words(lines: Sequence[Line], sign: Line, most: int) -> list[Line]:
    """A program's last lines above a sign that it stopped, in their order."""
    return list(islice(_upwards(lines, sign, ()), most))[::-1]


def words_after(lines: Sequence[Line], error: Line, most: int) -> list[Line]:
    """What a program wrote after the line with the error."""
    begin = next((index for index, line in enumerate(lines) if line is error), len(lines))
    of_program = takewhile(
        lambda line: line.file == error.file and not _OF_A_LAUNCHER.search(unmarked(line.text)), lines[begin + 1 :]
    )
    return list(islice(of_program, most))
