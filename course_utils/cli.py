"""The command `course`: examine this machine, check and grade notebooks, plan and measure training."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from course_utils.diagnosis import examine, print_findings
from course_utils.errors import CourseError
from course_utils.lab import main as open_lab
from course_utils.lessons.gpu_nodes.failures.log_report import log_report, log_report_text
from course_utils.lessons.gpu_nodes.failures.reading.log_files import read_logs
from course_utils.lessons.profiling.dumps.recorder_comparison import compare_dumps
from course_utils.lessons.profiling.dumps.recorder_dumps import read_dumps
from course_utils.lessons.profiling.dumps.recorder_sentences import dumps_text
from course_utils.lessons.profiling.dumps.recorder_waits import first_ranks
from course_utils.probes import report_of
from course_utils.ranks.processes.ranks_folder import sweep as end_what_is_left
from course_utils.shadowed_packages import VARIABLE, shadowed_packages
from course_utils.syllabus import ROOT
from course_utils.teacher.handed_in.portal_names import Portal

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, help=__doc__
)


def main() -> None:
    """Run the command line. A mistake of the user gives one line and no traceback."""
    try:
        app()
    except CourseError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


@app.command("class")
def class_page(
    files: Annotated[
        list[Path],
        typer.Argument(help="what learners wrote by course.progress('progress.json'): files, folders, a portal's zip"),
    ],
    out: Annotated[Path, typer.Option(help="the page")] = Path("class.html"),
) -> None:
    """Sum up the progress of a class on a page: who is where, which exercise is hard, which prediction surprises."""
    from course_utils.teacher.class_progress import write_class_page

    write_class_page(files, out)


@app.command()
def doctor(
    log: Annotated[
        list[Path] | None,
        typer.Option(
            help="the log of a failed launch, a file or a folder, and what torch's Flight Recorder has written: "
            "say why it failed, and what to do"
        ),
    ] = None,
    more: Annotated[list[Path] | None, typer.Argument(help="with --log: more files of the same launch")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="start no ranks, and do not ask torch for GPUs")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print one object of JSON instead, with values and no sentences")
    ] = False,
) -> None:
    """Try out what this machine can run, and say what is missing. Exit status 0 if the course can run.

    With --log, say why a launch failed. Exit status 0 if the cause is known, if it is known at which ranks to look, or
    if nothing failed.

    With --json, print one object and nothing else. It has the number of its schema (1), whether the course can run
    (can_run), the versions of course, python, torch, mpi4py and mpi, and checks: for each its name, its health (ok,
    warning, failed or not tried), what was found as values, the names of what is missing (with the version that is
    needed, as in torch>=2.13, if a different one is installed), and the command that mends it, or null. Names may be
    added to a schema, and none is removed.
    """
    if more and not log:
        raise CourseError(f"What should be done with {more[0]}? To explain the log of a launch, write --log before it.")
    if log and as_json:
        raise CourseError("--json reports on this machine, and not on a log: leave out --log or --json.")
    if log:
        raise typer.Exit(0 if explain_launch([*log, *(more or ())]) else 1)
    if as_json:
        report = report_of(examine(quick))
        print(json.dumps(report, indent=2, ensure_ascii=False))
        raise typer.Exit(0 if report["can_run"] else 1)
    raise typer.Exit(0 if print_findings(examine(quick)) else 1)


def explain_launch(paths: Sequence[Path]) -> bool:
    """Print what logs tell, and then what dumps of torch's Flight Recorder show that are among these files.

    Returns:
        Whether that is enough to know the cause or at which ranks to look, or that nothing failed.
    """
    dumps = read_dumps([path for path in paths if os.path.isfile(path) or os.path.isdir(path)])
    logs = read_logs(paths, but=dumps.files)
    report = log_report(logs.lines, logs.empty) if logs.files else None
    if report:
        print(log_report_text(report))
    if not dumps.files:
        return report is not None and report.is_known
    compared = compare_dumps(dumps)
    print("\n" * bool(report) + dumps_text(dumps, compared))
    if first_ranks(compared).shows_where:
        return True
    if report and report.failed:
        return report.is_known
    return bool(dumps.ranks) and compared.has_ended_well


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def bench(context: typer.Context) -> None:
    """Measure the course itself: `course bench --help`."""
    if not (ROOT / "workshop" / "bench").is_dir():
        raise CourseError("`course bench` needs a checkout of the course, in whose folder `workshop` the benches are.")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", "workshop.bench", *context.args]
    raise typer.Exit(subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def lab(context: typer.Context) -> None:
    """Open JupyterLab on the course, or on your own copy of one that is installed for all: `course lab --help`."""
    if shadowed_packages():
        print(f"{VARIABLE} is set aside, because it brings other packages.", file=sys.stderr)
        environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
        os.execve(sys.executable, [sys.executable, "-m", "course_utils.lab", *context.args], environment)
    raise typer.Exit(open_lab(context.args))


@app.command()
def check(
    notebook: Annotated[Path, typer.Argument(help="an exercise notebook")],
    ranks: Annotated[int, typer.Option(min=1, help="the number of ranks to run it on")] = 4,
) -> None:
    """Check every exercise of a notebook.

    Prints a line for each exercise. Exit status 1 if one is wrong (✗).
    """
    from course_utils.checks.judge_submission import check_notebook
    from course_utils.checks.verdict import Result

    results = []
    for judged in check_notebook(notebook, ranks):
        print(judged.line, flush=True)
        results.append(judged.result)
    raise typer.Exit(1 if Result.WRONG in results else 0)


@app.command()
def exercises(
    lesson: Annotated[int | None, typer.Argument(help="the number of a lesson; without it, all lessons")] = None,
) -> None:
    """List the exercises: lesson, difficulty, minutes."""
    from course_utils.checks.registry import declared

    chosen = [exercise for exercise in declared() if lesson in (None, int(exercise.lesson[:2]))]
    if not chosen:
        raise CourseError(f"Lesson {lesson} has no exercises yet. `course exercises` lists them all.")
    width = max(len(exercise.name) for exercise in chosen)
    for exercise in chosen:
        print(f"{exercise.lesson[:2]}  {exercise.name:<{width}}  {exercise.effort:<34}  {exercise.title}")


@app.command()
def grade(
    submissions: Annotated[
        list[Path],
        typer.Argument(help="what was handed in: the zip of Moodle, Canvas or ILIAS, folders, notebooks"),
    ],
    out: Annotated[Path | None, typer.Option(help="the table of marks; without it, a new file marks.csv")] = None,
    add: Annotated[
        Path | None, typer.Option(help="a table of marks to go on with: only what is new or changed is run")
    ] = None,
    feedback: Annotated[Path | None, typer.Option(help="a folder for each learner's feedback")] = None,
    class_list: Annotated[
        Path | None,
        typer.Option(
            "--class", help="the class as a CSV table of names, ids, e-mail addresses, or the export of a portal"
        ),
    ] = None,
    due: Annotated[str | None, typer.Option(help="what came later is marked as late: 2026-11-03T23:59")] = None,
    portal: Annotated[
        Portal | None,
        typer.Option("--for", help="whose import to write a table for; without it, the one that named the files"),
    ] = None,
    ranks: Annotated[int, typer.Option(min=2, help="the number of ranks that each notebook is run on")] = 4,
    trusted: Annotated[bool, typer.Option("--trusted", help="run them as yourself, without a sandbox")] = False,
) -> None:
    """Grade notebooks of strangers, each in a sandbox.

    `course grade class.zip` runs all that is in it. It writes a table of marks, one with a row for each learner, and
    one that the learning platform imports.
    """
    from course_utils.teacher.grade_class import ClassOptions, grade_class, seconds_of

    options = ClassOptions(class_list, add, seconds_of(due) if due else None, portal)
    grade_class(submissions, out, feedback, ranks, trusted, options)


@app.command()
def nbgrader(
    folder: Annotated[Path, typer.Argument(help="the folder of nbgrader's course; it is made if it does not exist")],
    lessons: Annotated[list[str] | None, typer.Argument(help="such as 00 04; without it, all lessons")] = None,
) -> None:
    """Write the exercises as nbgrader assignments."""
    from course_utils.teacher.nbgrader_course import write_course

    for file in write_course(folder, lessons or ()):
        print(file)
    print(f"Next, in {folder}: nbgrader generate_assignment NAME_OF_A_LESSON")


@app.command()
def plan(
    model: Annotated[str, typer.Argument(help="a published model, such as 'Llama 3 70B'")],
    gpus: Annotated[int, typer.Option(help="the number of GPUs")] = 64,
    of: Annotated[str, typer.Option(help="the kind of GPU: a100, h100, h100-500w or h200")] = "h100",
    batch: Annotated[int | None, typer.Option(help="texts in a step; without it, about four million tokens")] = None,
    length: Annotated[int | None, typer.Option(help="tokens of a text; without it, the model's context length")] = None,
    tested_only: Annotated[
        bool, typer.Option("--tested-only", help="only kinds of layout that were tested against published runs")
    ] = False,
) -> None:
    """Plan how to spread a model over GPUs.

    Prints the ten fastest layouts, and why the others lose. All of it is calculated; nothing is run.
    """
    from course_utils.lessons.hybrid_and_sharded.planner.plan_report import report

    print(report(model, gpus, of, batch, length, tested_only))


@app.command()
def profile(
    files: Annotated[list[Path], typer.Argument(help="files that torch.profiler wrote, or folders of them")],
    out: Annotated[
        Path | None,
        typer.Option(help="write the timeline of all ranks here, such as merged.json.gz, for ui.perfetto.dev"),
    ] = None,
) -> None:
    """Say where the time went in a program that torch.profiler has profiled.

    Give the files of all ranks of one run, as `export_chrome_trace` or `tensorboard_trace_handler` wrote them, packed
    or not. Prints how long each rank computes, waits for messages and is idle, which rank the others wait for, and
    what to know about the files. Exit status 2 if none of them can be read.
    """
    from course_utils.lessons.profiling.read_profile import read_profile

    found = read_profile(files)
    print(found)
    if out is not None:
        try:
            written = found.write(out)
        except OSError as error:
            raise CourseError(f"The timeline could not be written to {out}: {error.strerror}.") from None
        print(f"\nThe timeline of all ranks is in {written}. Open it at https://ui.perfetto.dev.")


@app.command()
def sweep() -> None:
    """End ranks whose notebook no longer exists."""
    print("\n".join(end_what_is_left()) or "Nothing was left behind.")


if __name__ == "__main__":
    main()
