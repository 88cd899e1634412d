"""The command line of the benches: `course bench`, or `python -m workshop.bench` in a checkout."""

import contextlib
import importlib
import inspect
import sys
from pathlib import Path
from typing import Annotated

import typer

from course_utils.errors import CourseError, nearest
from workshop.bench import BENCHES
from workshop.bench.rows import table


def bench(
    name: Annotated[str | None, typer.Argument(help="which one; without it, they are listed")] = None,
    only: Annotated[
        list[str] | None,
        typer.Argument(help="a part of it: exercises, lessons or rows, such as tree_broadcast, 06 or honesty"),
    ] = None,
    *,
    runs: Annotated[int, typer.Option(min=1, help="how many rounds")] = 5,
    json: Annotated[bool, typer.Option("--json", help="one JSON object per line")] = False,
    figures: Annotated[Path | None, typer.Option(help="vgg: a folder to draw its figures into")] = None,
    busy: Annotated[int, typer.Option(min=0, help="grader: verdicts alone and beside so many busy processes")] = 0,
) -> None:
    """Measure something and print a row for each quantity. A missed target does not change the exit status."""
    if name is None:
        print("\n".join(f"{name:<12} {subject}" for name, subject in BENCHES.items()))
        return
    if name not in BENCHES:
        raise CourseError(f"There is no bench {name!r}.{nearest(name, list(BENCHES))} `course bench` lists them.")
    measure = importlib.import_module(f"workshop.bench.{name}").run
    takes = inspect.signature(measure).parameters
    if only and "only" not in takes:
        raise CourseError(f"The bench {name} has no parts to choose from: `course bench {name}`.")
    if figures and "figures" not in takes:
        raise CourseError(f"The bench {name} draws no figures: `course bench {name}`.")
    if busy and "busy" not in takes:
        raise CourseError(f"The bench {name} has no comparison with a busy machine: `course bench {name}`.")
    options = {"only": only, "figures": figures, "busy": busy}
    with contextlib.redirect_stdout(sys.stderr):  # what is measured may print: only rows are the bench's output
        rows = measure(runs, **{option: value for option, value in options.items() if value})
    print("\n".join(row.as_json() for row in rows) if json else table(rows))


def main() -> None:
    """Run the command line; what the course has to say about a mistake is one line, not a traceback."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(bench)
    try:
        app(prog_name="course bench")
    except CourseError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
