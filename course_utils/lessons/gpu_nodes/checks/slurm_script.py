"""The check of `slurm_script`: what sbatch reads in it, what its tasks are told, and when it is queued again."""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, how_it_ended, rejected
from course_utils.checks.compare import difference
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.promised_errors import Raises
from course_utils.lessons.gpu_nodes.checks.batch import (
    ADDRESS,
    ASKED,
    CODE,
    CORES,
    EXPORT,
    FIRST,
    FURTHER_RUN,
    GPUS,
    HEARD_BY,
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
    REASON,
    REQUEUE,
    SCRIPT,
    SECONDS,
    SIGNAL,
    SRUN_CORES,
    STARTED,
    TAKEN,
    TASKS,
    TEXT,
    THE_TASKS,
    THREADS,
    TOLD,
    WAIT,
    options_of,
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
    found |= {SIGNAL: "SIGTERM", HEARD_BY: THE_TASKS, SECONDS: warning, REQUEUE: "yes", OPEN_MODE: "append"}
    found |= {PARTITION: options.get("partition", "not said"), NAME: name, OUTPUT: f"{name}-%j.out"}
    for number, (status, job, environment) in enumerate(runs):
        words = [word.replace("$SLURM_JOB_ID", str(job)) for word in shlex.split(command)]
        seen = {TOLD: words, ADDRESS: environment.get(ADDRESS, FIRST), PORT: environment.get(PORT, ...)}
        seen |= {THREADS: str(cores), SRUN_CORES: cores, OTHERS: ..., WAIT: ..., EXPORT: ...}
        seen |= {STARTED: found[NODES] * found[TASKS]}
        seen |= {CODE: status, ASKED: [f"requeue {job}"] if status == 75 else []}
        found |= {FURTHER_RUN.format(number): seen} if number else seen
    return found


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(options: Options, *runs: tuple, command: str = COMMAND) -> Case:
        given = [(status, job, environment) for status, job, environment in runs or ((0, JOB, {}),)]
        words = ", ".join([repr(command), *(f"{name}={value!r}" for name, value in options.items())])
        more = {"with_comm": False, "harness": tried, "judge": _judge, "key": "script"}
        return Case(f"slurm_script({words})", [(command, options, given)], **more)

    yield case({"nodes": 2})
    large = {"nodes": 2, "gpus_per_node": 4, "cores_per_task": 8, "minutes": 1439, "warn_seconds": 120}
    yield case(large | {"partition": "gpu", "name": "vgg-11", "memory": "320G"})
    yield case({"memory": "40G", "minutes": 1559, "nodes": 3, "warn_seconds": 1}, (75, JOB, {}))
    yield case({}, *((1, job, {}) for job in (JOB, 45_999, 7, 10_089)))
    short = {"minutes": 2, "warn_seconds": 119}
    known = [{ADDRESS: "ib7", PORT: "4711"}, {ADDRESS: "ib7", THREADS: "99"}, {PORT: "4711"}]
    own_runs = ((0, JOB, known[0]), (76, JOB + 1, known[1]), (137, JOB + 2, known[2]))
    yield case({"nodes": 2, "tasks_per_node": 3} | short, *own_runs)
    odd = "python 'my training.py' --note \"it's  job $SLURM_JOB_ID\" --rate=0.1"
    a_day = {"cores_per_task": 2, "minutes": 1440}
    yield case(a_day, (0, 104_242, {}), (75, 104_243, {}), (0, 104_242, {}), command=odd)
    nodes, gpus, minutes = (int(number) for number in rng.integers((2, 2, 61), (40, 9, 3000)))
    drawn = {"nodes": nodes, "gpus_per_node": gpus, "minutes": minutes, "warn_seconds": int(rng.integers(61, 3000))}
    drawn |= {"tasks_per_node": 1, "name": f"run.{nodes}", "memory": f"{64 * gpus}G"}
    yield case(drawn, (int(rng.integers(2, 70)), JOB, {}))
    before = {"nodes": 5, "gpus_per_node": 2, "memory": "9G", "partition": "old", "name": "old"}
    again = case({"nodes": 5})
    given = [(*arguments, before) for arguments in again.arguments]
    label = f"{again.label}, after another call"
    yield replace(again, label=label, arguments=given, harness=tried_again, key=AFTER_ANOTHER_CALL)
    no_sense = [{"nodes": 0}, {"gpus_per_node": -1, "tasks_per_node": 1}, {"minutes": 1, "warn_seconds": 60}]
    no_sense += [{"warn_seconds": 0}, {"cores_per_task": 0}]
    no_sense += [{"tasks_per_node": 0}, {"name": "my job"}, {"partition": "gpu\n#SBATCH --uid=0"}, {"minutes": 0}]
    no_sense += [{"memory": "40 G"}]
    for options in no_sense:
        yield rejected(f"slurm_script(…, **{options})", (options,), harness=rejection)
    small = {"minutes": 5, "warn_seconds": 30}
    yield Case("sbatch --test-only", [("true", small)], None, with_comm=False, harness=taken_by_slurm, judge=_by_slurm)


def rejection(function: Callable, options: Options) -> Raises:
    """Which error the learner's function raises."""
    return how_it_ended(lambda: function(COMMAND, **options))


def tried_again(function: Callable, command: str, options: Options, runs: list[tuple], before: Options) -> dict:
    """The same, after a call with other options."""
    function(command, **before)  # the same command, so that nothing may be remembered by it
    return tried(function, command, options, runs)


def _judge(outcome: Outcome) -> Finding | None:
    result, (command, options, runs, *_) = outcome.results[0], outcome.case.arguments[0]
    if key := result.get(REASON):
        words = "{got}" if key in ("stops-reading", "nodes-open") else "sbatch doesn't take the script and says: {got}"
        return own(key, words, where=(READ,), got=result[READ])
    first = result[TEXT].partition("\n")[0] if result.get(TEXT) else "#!/bin/bash"
    if re.match(r"#!/bin/bash(\s|$)", first) is None:
        return own(
            "another-shell",
            "the first line of the script is {got!r}, and {expected!r} is expected",
            got=first,
            expected="#!/bin/bash",
        )
    found = difference(0, result, due(command, options, runs))
    return _in_the_script(found, result) if found else _in_the_runs(result, runs)


def _in_the_script(found: Finding, result: dict[str, Any]) -> Finding:
    """The difference, or what explains it."""
    if found.where == (TASKS,):
        asked = options_of(result[TEXT])
        if "ntasks" in asked and "ntasks-per-node" in asked:
            words = (
                "the script has --ntasks={total} besides --ntasks-per-node. Then Slurm starts {total} in all, and the "
                "second number is only the most for a node; {expected} on each of {nodes} nodes are wanted"
            )
            values = {"total": asked["ntasks"], "nodes": result[NODES], "expected": found.expected}
            return own("two-numbers-of-tasks", words, where=found.where, got=found.got, **values)
    if found.where == (MEMORY,) and "mem-per-cpu" in (asked := options_of(result[TEXT])):
        words = (
            "the script asks for {asked} for each core, which makes {got} on a node, and {expected} for a whole node "
            "is wanted"
        )
        values = {"asked": asked["mem-per-cpu"], "got": found.got, "expected": found.expected}
        return own("memory-of-each-core", words, where=found.where, **values)
    if TOLD in found.where and isinstance(told := _of_the_run(found, result)[TOLD], str):
        return own("no-srun", "{told}", where=found.where, told=told)
    if TOLD in found.where and (starter := _starter(result)):
        words = "srun starts a task for each GPU, and each of them starts `{starter}`, which would start them all again"
        return own("starts-twice", words, where=found.where, starter=starter)
    return found


def _of_the_run(found: Finding, result: dict[str, Any]) -> dict[str, Any]:
    """What was seen of the run that a finding is about."""
    return result[found.where[0]] if len(found.where) > 1 else result


def _starter(result: dict[str, Any]) -> str:
    """A program among the words that srun was told that starts processes itself; "" if there is none."""
    told = [str(word) for seen in _runs(result) for word in seen.get(TOLD, ()) if not isinstance(seen.get(TOLD), str)]
    starters = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "mpirun", "mpiexec", "srun")
    return next((word for word in told if word.rpartition("/")[2] in starters), "")


def _in_the_runs(result: dict[str, Any], runs: list[tuple]) -> Finding | None:
    ports: dict[int, str] = {}
    for seen, (_, job, environment) in zip(_runs(result), runs, strict=True):
        port, others, wait, export = (seen[key] for key in (PORT, OTHERS, WAIT, EXPORT))
        if "ALL" not in export.split(","):
            words = "srun is told --export={export}, so the tasks get no other variable, not even PATH"
            no_words = "srun isn't told --export, so at some sites the tasks get no variables"
            return own("export", no_words if export == "not said" else words, export=export)
        if others != "0":
            words = "srun is told --kill-on-bad-exit={value}, so it kills all tasks when one ends with code 75"
            no_words = (
                "srun isn't told --kill-on-bad-exit, so at some sites it kills all tasks when one ends with code 75"
            )
            return own("kill-on-bad-exit", no_words if others == "not said" else words, value=others)
        if wait != "30":
            words = "srun's --wait is {got}, but the other tasks are to have 30 seconds after the first one has ended"
            return own("wait", words, got=wait)
        if PORT not in environment and not (port.isdecimal() and 20_000 <= int(port) < 65_536):
            words = "the MASTER_PORT of job {job} is {got!r}, and it has to be a number from 20000 to 65535"
            return own("port-outside" if port else "no-port", words, job=job, got=port)
        if ports.setdefault(job, port) != port:
            words = "the MASTER_PORT of job {job} is {first}, but {then} when the same job runs again"
            return own("port-changes", words, job=job, first=ports[job], then=port)
    if len(ports) > 1 and len(set(ports.values())) == 1:
        return own("one-port", "the two jobs {jobs} have the same MASTER_PORT", jobs=" and ".join(map(str, ports)))
    return None


def _runs(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What was seen of each run."""
    return [result, *(seen for seen in result.values() if isinstance(seen, dict))]


def _by_slurm(outcome: Outcome) -> Finding | None:
    here, answer = outcome.results[0]
    words = "the Slurm of this machine doesn't take the script and says: {answer}"
    return own("slurm-rejects", words, answer=answer) if here and answer != TAKEN else None


def _stops_at_errors(case: Case, outcome: Outcome) -> bool:
    about_the_end = {ASKED, CODE} & {*outcome.finding.where}
    stops = re.search(r"^(#!.*|\s*set) -\w*e|set -o errexit", outcome.results[0][TEXT], re.MULTILINE)
    return bool(about_the_end and stops)


def _no_port_for_some(case: Case, outcome: Outcome) -> bool:
    ports = [seen[PORT] for seen in _runs(outcome.results[0])]
    return any(ports) and not all(ports)


EXERCISE = Exercise(
    library="slurm_script",
    number=2,
    minutes=20,
    difficulty=2,
    turn="options for Slurm, the address of rank 0, srun, and what its exit code means",
    title="the batch script of a job that queues itself again",
    cases=_cases,
    hints=(
        "What must sbatch know before the job begins, and what can the job find out only when it runs? "
        "And what is left for the script to do after srun has ended?",
        "After `#!/bin/bash` write a line like `#SBATCH --nodes=2` for each option. Then `export MASTER_ADDR=${…:-…}` "
        'with the first line of `scontrol show hostnames "$SLURM_JOB_NODELIST"`, and a port such as '
        "`$((20000 + SLURM_JOB_ID % 10000))`. Then `srun --cpus-per-task=… command`, and `status=$?`. If that is 75, "
        "call `scontrol requeue`, and end with `exit`.",
    ),
    symptoms={"some jobs have no port": _no_port_for_some, "the shell stops at the first error": _stops_at_errors},
    praise=lambda outcome: (
        "eight scripts were read and run, with an srun and a scontrol that only note their arguments; "
        + ("the Slurm here accepts it, too" if outcome.results[0][0] else "there is no Slurm here that could be asked")
    ),
)
