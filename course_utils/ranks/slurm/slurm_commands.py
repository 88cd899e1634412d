"""Slurm's commands, each asked with a limit of time: what it answers, or why there is no answer.

Slurm has a library for Python, PySlurm, but it must be built against the very version of a site's Slurm.
"""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

ANSWER_SECONDS = 25.0
"""How long a command may take. Where its controller is silent, it says so itself after up to 20 s; munge never does."""
_MUNGE_SECONDS = 5.0


class Silence(StrEnum):
    """Why a command of Slurm's has no answer."""

    MISSING = "missing"
    """There is no such program."""
    CONTROLLER = "controller"
    """slurmctld does not answer, or not in time."""
    CREDENTIALS = "credentials"
    """munge, by which Slurm knows who asks, is not running here, or the clocks of the two machines differ."""
    CONFIGURATION = "configuration"
    """The command finds no slurm.conf, or no address for the controller that it names."""


_WORDS = {
    Silence.CREDENTIALS: re.compile(
        r"[Mm]unge (en|de)code failed|authentication error|Invalid authentication|(Expired|Rewound|Replayed) credential"
    ),
    Silence.CONFIGURATION: re.compile(
        r"configuration source|cannot stat file|control machine address|getaddrinfo\(\) failed"
    ),
    Silence.CONTROLLER: re.compile(
        r"[Uu]nable to contact slurm controller|timed out|Connection refused|Zero Bytes|standby"
    ),
}
"""What commands write to standard error; the first that fits is the cause."""
_PREFIX = re.compile(r"^(\w+: )?((fatal|error): )?(Batch job submission failed: |allocation failure: )?")
_NOT_FOR_LEARNERS = re.compile(r"restart with --num-threads|has authentication error|attempt number|retrying in")


@dataclass(frozen=True)
class SlurmAnswer:
    """What a command of Slurm's has answered.

    Attributes:
        output: what it printed.
        words: what it wrote to standard error, without its own name.
        accepted: whether it ended with status 0.
        silence: why nobody has answered; None where somebody has.
    """

    output: str = ""
    words: str = ""
    accepted: bool = True
    silence: Silence | None = None


def ask_slurm(
    *command: str, seconds: float = ANSWER_SECONDS, environment: Mapping[str, str] | None = None
) -> SlurmAnswer:
    """Run one of Slurm's commands, for so many seconds at most.

    Args:
        environment: of the command; None for that of this process.
    """
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except OSError:
        return SlurmAnswer(accepted=False, silence=Silence.MISSING)
    except subprocess.TimeoutExpired as late:
        words = _plain(_text(late.stderr))
        silence = _silence_in(_text(late.stderr)) or (Silence.CREDENTIALS if _munge_fails() else Silence.CONTROLLER)
        return SlurmAnswer(_text(late.stdout), words, False, silence)
    words, accepted = _plain(_text(done.stderr)), done.returncode == 0
    return SlurmAnswer(_text(done.stdout), words, accepted, None if accepted else _silence_in(_text(done.stderr)))


def _munge_fails() -> bool:
    """Whether munge is here and does not answer: Slurm's commands then wait for it without a word."""
    try:
        done = subprocess.run(["munge", "-n"], capture_output=True, timeout=_MUNGE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return True
    except OSError:
        return False
    return done.returncode != 0


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


def _silence_in(words: str) -> Silence | None:
    return next((silence for silence, pattern in _WORDS.items() if pattern.search(words)), None)


def _plain(errors: str) -> str:
    """A command's lines without its name and the word `error`, each once, and without those for administrators."""
    lines = (_PREFIX.sub("", line).strip() for line in errors.splitlines() if not _NOT_FOR_LEARNERS.search(line))
    return "\n".join(dict.fromkeys(filter(None, lines)))
