"""Runs a check in a process of its own, under a time limit: what crashes or hangs is a row and not the end."""

import contextlib
import json
import multiprocessing
import os
import pickle
import platform
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
import torch.distributed as dist

from course_utils.gpu_seats import own_seat
from course_utils.words import count
from gpu.registry import CHECKS, Check, Missing, Needs, Where
from workshop.bench.rows import Row, table

OWN = ("course_utils", "gpu")
TOOLS = {
    "nvidia-smi": ["nvidia-smi"],
    "nvidia-smi -q": ["nvidia-smi", "-q", "-d", "CLOCK,POWER,ECC,COMPUTE"],
    "nvidia-smi topo -m": ["nvidia-smi", "topo", "-m"],
}
OLDER_NAMES = {"reduce_scatter_single": "reduce_scatter_tensor", "all_gather_single": "all_gather_into_tensor"}
"""Before torch 2.13, which the course has; a machine with a GPU may have another."""


@dataclass
class Answer:
    """What a check said.

    Attributes:
        rows: measured.
        missing: not measured, and why.
        error: what went wrong, in a line; "" where nothing did.
        log: what it wrote.
    """

    check: Check
    rows: list[Row] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    error: str = ""
    log: str = ""

    @property
    def failed(self) -> bool:
        """Did something go wrong, or was a target missed?"""
        return bool(self.error) or not all(row.ok for row in self.rows)

    def as_json(self) -> list[str]:
        """A line for each row, and for each thing that was not measured."""
        about = {"check": self.check.name, "lessons": self.check.lessons}
        lines = [json.dumps(about | json.loads(row.as_json())) for row in self.rows]
        lines += [json.dumps(about | {"metric": one.metric, "needs": one.needs}) for one in self.missing]
        return lines + ([json.dumps(about | {"error": self.error, "ok": False})] if self.error else [])


def gpus_here() -> int:
    """How many GPUs torch can use."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def machine(where: Where) -> str:
    """What the figures were measured on, in a line: a figure without it says nothing."""
    if not where.cuda:
        return f"no GPU asked for: small sizes on {platform.machine()}, torch {torch.__version__}, gloo"
    names = {torch.cuda.get_device_properties(gpu).name for gpu in range(where.gpus)}
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    versions = f"torch {torch.__version__}, CUDA {torch.version.cuda}, NCCL {nccl}"
    shared = f", shared by {where.ranks} ranks: right numbers count, times do not" if where.shared else ""
    return f"measured on {count(where.gpus, 'GPU')} ({', '.join(sorted(names))}){shared}: {versions}"


def facts(where: Where) -> dict[str, str]:
    """What a figure is worth nothing without: machine, versions, and what the driver's own tools say of them."""
    found = {"measured": machine(where), "date": time.strftime("%Y-%m-%d %H:%M"), "python": platform.python_version()}
    found |= {"torch": torch.__version__, "cuda": str(torch.version.cuda), "why no GPU": own_seat().trouble}
    for name, command in TOOLS.items():
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            found[name] = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout
    return found


def in_a_process(one: Check, where: Where, seconds: float) -> Answer:
    """Run a check; kill it and all that it started when the time is over."""
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        process = multiprocessing.get_context(where.start).Process(target=_work, args=(one.name, where, folder))
        process.start()
        process.join(seconds)
        late = process.is_alive()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # also its ranks, where it died and left some
        process.join()
        answer = _read(one, where, Path(folder))
    if late:
        answer.error = f"not finished after {seconds:g} s, and killed"
    elif process.exitcode:
        answer.error = answer.error or f"died: {_cause(process.exitcode)}"
    return answer


def _cause(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def _work(name: str, where: Where, folder: str) -> None:
    """In the new process: leads a process group, writes its output to a file, and each row as soon as it has it."""
    os.setpgrp()
    with open(Path(folder, "log"), "wb", buffering=0) as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    from gpu import all_checks

    all_checks.load()
    with open(Path(folder, "said"), "wb") as said:

        def say(what: object) -> None:
            pickle.dump(what, said)
            said.flush()

        try:
            prepare(where)
            for row in CHECKS[name].run(where):
                say(row)
        except Needs as missing:
            say(Missing("", str(missing)))
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] in OWN:
                raise
            say(Missing("", str(error.name)))
        except Exception as error:
            traceback.print_exc()
            say(f"{type(error).__name__}: {last_line(error)}")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # at a normal end, libraries of GPUs take part, and have been seen to hang


def last_line(error: Exception) -> str:
    """Of an error that came from a rank the last line says most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def prepare(where: Where) -> None:
    """Full precision, as equality is judged; who wants less says so. On processors one thread, as others share them."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    if not where.cuda:
        torch.set_num_threads(1)
    for name, older in OLDER_NAMES.items():
        if not hasattr(dist, name):
            setattr(dist, name, getattr(dist, older))


def load_once(where: Where, checks: int) -> None:
    """Import what several checks use and takes a second, where many processes are forked from this one."""
    if where.start == "fork" and checks > 5:
        import torch._dynamo
        import torch.distributed.fsdp
        import torch.distributed.tensor.parallel  # noqa: F401


def without_meaning(row: Row) -> Row:
    """A time or a rate of ranks that take turns on one GPU: shown, and never judged."""
    return replace(row, metric=f"{row.metric} (ranks share a GPU: says nothing)", target=None)


def _read(one: Check, where: Where, folder: Path) -> Answer:
    answer = Answer(one)
    with contextlib.suppress(EOFError, FileNotFoundError, pickle.UnpicklingError), open(folder / "said", "rb") as said:
        while True:
            what = pickle.load(said)
            if isinstance(what, Row):
                answer.rows.append(without_meaning(what) if where.shared and what.unit else what)
            elif isinstance(what, Missing):
                answer.missing.append(what)
            else:
                answer.error = what
    with contextlib.suppress(FileNotFoundError):
        answer.log = (folder / "log").read_text(errors="replace")
    return answer


def as_table(answers: Sequence[Answer]) -> str:
    """All rows, then what was not measured, then what went wrong."""
    rows = [
        Row(row.bench, f"{answer.check.name}: {row.metric}", *_rest(row)) for answer in answers for row in answer.rows
    ]
    lines = [table(rows)] if rows else []
    for answer in answers:
        for one in answer.missing:
            lines.append(f"○ {answer.check.name}{': ' + one.metric if one.metric else ''} needs {one.needs}")
        if answer.error:
            lines += [
                f"✗ {answer.check.name}: {answer.error}",
                *(f"    {line}" for line in answer.log.splitlines()[-12:]),
            ]
    return "\n".join(lines)


def _rest(row: Row) -> tuple:
    return row.value, row.unit, row.better, row.target, row.spread, row.runs


def verdict(answers: Sequence[Answer], where: Where) -> str:
    """How many checks passed, which failed, and how many could not run here."""
    failed = [answer.check.name for answer in answers if answer.failed]
    idle = [answer for answer in answers if not answer.failed and not answer.rows]
    passed = len(answers) - len(failed) - len(idle)
    on = count(where.gpus, "GPU") if where.cuda else "no GPU, code only"
    text = f"{'✗' if failed else '✓'} {passed} of {count(len(answers), 'check')} passed on {on}"
    text += f"; {len(idle)} could not run here" if idle else ""
    return text + (f"; failed: {', '.join(failed)}" if failed else "")
