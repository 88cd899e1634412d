"""The check of `slurm_script`: what sbatch reads in it, what its tasks are told, and when it is queued again."""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import error_of
from course_utils.lessons.gpu_nodes.checks.batch import (
    ADDRESS,
    ASKED,
    CODE,
    CORES,
    EXPORT,
    FIRST,
    GPUS,
    JOB,
    MEMORY,
    MINUTES,
    NAME,
    NODES,
    ONE_TEXT,
    OPEN_MODE,
    OTHERS,
    OUTPUT,
    PARTITION,
    PORT,
    READ,
    REQUEUE,
    SCRIPT,
    SIGNAL,
    SRUN_CORES,
    STARTED,
    TAKEN,
    TASKS,
    TEXT,
    THREADS,
    TO_THE_TASKS,
    TOLD,
    WAIT,
    taken_by_slurm,
    tried,
)

COMMAND = "python train.py --epochs 20"
Options = dict[str, Any]


def due(command: str, options: Options, runs: list[tuple]) -> dict[str, Any]:
    """What must be seen of a right script."""
    gpus, cores = options.get("gpus_per_node", 0), options.get("cores_per_task", 1)
    warning, name = options.get("warn_seconds", 60), options.get("name", "train")
    found = {SCRIPT: ONE_TEXT, TEXT: ..., READ: TAKEN, NODES: options.get("nodes", 1)}
    found |= {TASKS: options.get("tasks_per_node", gpus or 1), GPUS: gpus, CORES: cores}
    found |= {MEMORY: options.get("memory", "not said"), MINUTES: float(options.get("minutes", 60))}
    found |= {SIGNAL: TO_THE_TASKS.format(signal="SIGTERM", seconds=warning), REQUEUE: "yes", OPEN_MODE: "append"}
    found |= {PARTITION: options.get("partition", "not said"), NAME: name, OUTPUT: f"{name}-%j.out"}
    for number, (status, job, environment) in enumerate(runs):
        words = [word.replace("$SLURM_JOB_ID", str(job)) for word in shlex.split(command)]
        seen = {TOLD: words, ADDRESS: environment.get(ADDRESS, FIRST), PORT: environment.get(PORT, ...)}
        seen |= {THREADS: str(cores), SRUN_CORES: cores, OTHERS: ..., WAIT: ..., EXPORT: ...}
        seen |= {STARTED: found[NODES] * found[TASKS]}
        seen |= {CODE: status, ASKED: [f"requeue {job}"] if status == 75 else []}
        found |= {f"{key}, run {number}" if number else key: value for key, value in seen.items()}
    return found


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(options: Options, *runs: tuple, command: str = COMMAND) -> Case:
        given = [(status, job, environment) for status, job, environment in runs or ((0, JOB, {}),)]
        words = ", ".join([repr(command), *(f"{name}={value!r}" for name, value in options.items())])
        more = {"with_comm": False, "harness": tried, "judge": _in_the_run}
        wanted = due(command, options, given)
        return Case(f"slurm_script({words})", [(command, options, given)], [wanted], **more)

    yield case({"nodes": 2})
    large = {"nodes": 2, "gpus_per_node": 4, "cores_per_task": 8, "minutes": 1439, "warn_seconds": 120}
    yield case(large | {"partition": "gpu", "name": "vgg-11"})
    yield case({"memory": "40G", "minutes": 1559, "nodes": 3, "warn_seconds": 1}, (75, JOB, {}))
    yield case({}, *((1, job, {}) for job in (JOB, 45_999, 7, 10_089)))
    short = {"minutes": 2, "warn_seconds": 119}
    yield case({"nodes": 2, "tasks_per_node": 3} | short, (0, JOB, {ADDRESS: "ib7", PORT: "4711"}))
    odd = "python 'my training.py' --note \"it's job $SLURM_JOB_ID\" --rate=0.1"
    a_day = {"cores_per_task": 2, "minutes": 1440}
    yield case(a_day, (0, 104_242, {}), (75, 104_243, {}), (0, 104_242, {}), command=odd)
    nodes, gpus, minutes = (int(number) for number in rng.integers((2, 2, 61), (40, 9, 3000)))
    drawn = {"nodes": nodes, "gpus_per_node": gpus, "minutes": minutes, "warn_seconds": int(rng.integers(61, 3000))}
    drawn |= {"tasks_per_node": 1, "name": f"run.{nodes}", "memory": f"{64 * gpus}G"}
    yield case(drawn, (int(rng.integers(2, 70)), JOB, {}))
    no_sense = [{"nodes": 0}, {"gpus_per_node": -1, "tasks_per_node": 1}, {"minutes": 1, "warn_seconds": 60}]
    no_sense += [{"warn_seconds": 0}, {"cores_per_task": 0}]
    no_sense += [{"tasks_per_node": 0}, {"name": "my job"}, {"partition": "gpu\n#SBATCH --uid=0"}, {"minutes": 0}]
    no_sense += [{"memory": "40 G"}]
    for options in no_sense:
        yield Case(f"slurm_script(…, **{options})", [(options,)], ["CourseError"], with_comm=False, harness=rejected)
    small = {"minutes": 5, "warn_seconds": 30}
    yield Case("sbatch --test-only", [("true", small)], None, with_comm=False, harness=taken_by_slurm, judge=_by_slurm)


def rejected(function: Callable, options: Options) -> str:
    """The name of the error that the learner's function raises, or "no error"."""
    return error_of(lambda: function(COMMAND, **options))


def _in_the_run(outcome: Outcome) -> str | None:
    result, ports = outcome.results[0], {}
    for number, (_, job, environment) in enumerate(outcome.case.arguments[0][2]):
        port, others, wait, export = (
            result[f"{key}, run {number}" if number else key] for key in (PORT, OTHERS, WAIT, EXPORT)
        )
        if export != "not said" and "ALL" not in export.split(","):
            return f"srun is told --export={export}: the tasks get no other variable, PATH among them"
        if others != "0" and others != "not said":
            return f"srun is told --kill-on-bad-exit={others}: it kills all tasks when one ends with code 75"
        if not (wait.isdecimal() and 0 < int(wait) <= 60):
            return f"srun's --wait is {wait}, expected 30: the others' seconds after the first task has ended"
        if PORT not in environment and not (port.isdecimal() and 20_000 <= int(port) < 65_536):
            return f"MASTER_PORT of job {job} is {port!r}, expected a number from 20000 to 65535"
        if ports.setdefault(job, port) != port:
            return f"MASTER_PORT of job {job} is {ports[job]}, and {port} when the same job runs again"
    if len(ports) > 1 and len(set(ports.values())) == 1:
        return f"two jobs, {' and '.join(map(str, ports))}, have one MASTER_PORT"
    return None


def _by_slurm(outcome: Outcome) -> str | None:
    here, words = outcome.results[0]
    return f"Slurm does not take the script: {words}" if here and words != TAKEN else None


def _stops_at_errors(case: Case, outcome: Outcome) -> bool:
    told = ASKED in outcome.wrong or CODE in outcome.wrong
    return told and bool(re.search(r"^(#!.*|\s*set) -\w*e|set -o errexit", outcome.results[0][TEXT], re.MULTILINE))


def _no_port_for_some(case: Case, outcome: Outcome) -> bool:
    ports = [value for key, value in outcome.results[0].items() if key.startswith(PORT)]
    return any(ports) and not all(ports)


EXERCISE = Exercise(
    library="slurm_script",
    place=2,
    minutes=20,
    difficulty=2,
    turn="what is asked of Slurm, where rank 0 waits, srun, and what follows from its exit code",
    title="the batch script of a job that queues itself again",
    cases=_cases,
    hints=(
        "What does sbatch have to know before the job begins, and what can only the job itself find out, when it runs? "
        "And what does the script still do when srun is over?",
        "`#!/bin/bash`, then `#SBATCH --nodes=2` and so on, a line for each option. Below `export MASTER_ADDR=${…:-…}` "
        'with the first line of `scontrol show hostnames "$SLURM_JOB_NODELIST"`, and a port such as '
        "`$((20000 + SLURM_JOB_ID % 10000))`; `srun --cpus-per-task=… command`, `status=$?`, and where that is 75 "
        "`scontrol requeue`.",
    ),
    symptoms={"some jobs have no port": _no_port_for_some, "the shell stops at the first error": _stops_at_errors},
    praise=lambda outcome: (
        "seven scripts read and run, where srun and scontrol only note what they are told; "
        + ("this Slurm takes it, too" if outcome.results[0][0] else "no Slurm answers here, so none was asked")
    ),
)
