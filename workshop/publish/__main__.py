"""The command line of the build: `python -m workshop.publish build|check|slides|site|times [STEM …]`."""

import argparse
import sys
from pathlib import Path

from workshop.publish.sources import ROOT, AuthoringError, pages


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks; returns the exit status: 0 done, 1 something is wrong."""
    options = read_arguments(arguments)
    try:
        return TASKS[options.task](options)
    except AuthoringError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def read_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m workshop.publish", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (default: the one this file is in)")
    tasks = parser.add_subparsers(dest="task", required=True)
    text = "lessons, as 04_messages or 04; all where none is given"
    task = tasks.add_parser("build", help="build notebooks, exercises and solutions")
    task.add_argument("stems", nargs="*", metavar="STEM", help=text)
    task.add_argument("--run", action="store_true", help="run notebooks with checked outputs even if nothing changed")
    task = tasks.add_parser("check", help="compare the committed notebooks with what their sources give")
    task.add_argument("stems", nargs="*", metavar="STEM", help=text)
    task = tasks.add_parser("slides", help="build the decks and, with Chromium, PDFs of slides, notes, handouts")
    task.add_argument("stems", nargs="*", metavar="STEM", help=text)
    task.add_argument("--out", type=Path, default=None, help="where to (default: slides/build)")
    task.add_argument("--no-pdf", action="store_true", help="leave the PDFs out")
    task.add_argument("--draft", action="store_true", help="figures from fewer and smaller runs, as in the tests")
    task = tasks.add_parser("site", help="run the lessons and build the website from them")
    task.add_argument("stems", nargs="*", metavar="STEM", help=text)
    task.add_argument("--out", type=Path, default=None, help="where to (default: site/build)")
    task.add_argument("--no-run", action="store_true", help="take the lessons with their committed outputs only")
    task = tasks.add_parser("times", help="run the lessons' pages and print how long each takes")
    task.add_argument("stems", nargs="*", metavar="STEM", help=text)
    return parser.parse_args(arguments)


def build(options: argparse.Namespace) -> int:
    """Build the notebooks, telling of each as it is done; one that cannot be built does not keep others from it."""
    from workshop.publish.notebooks import build_page
    from workshop.publish.readme import write as write_table

    status = 0
    for page in pages(options.root, options.stems):
        try:
            print(f"{page.target}: {build_page(page, options.root, options.run)}", flush=True)
        except AuthoringError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            status = 1
    write_table(options.root)
    return status


def check(options: argparse.Namespace) -> int:
    """Compare the committed notebooks with their sources."""
    from workshop.publish.notebooks import check as find_wrong

    wrong = find_wrong(options.root, options.stems)
    print("\n".join(wrong) or f"{len(pages(options.root, options.stems))} notebooks are what their sources give")
    return 1 if wrong else 0


def slides(options: argparse.Namespace) -> int:
    """Build the decks."""
    from workshop.publish.slides import build_decks

    for line in build_decks(options.root, options.stems, out=options.out, pdf=not options.no_pdf, draft=options.draft):
        print(line, flush=True)
    return 0


def site(options: argparse.Namespace) -> int:
    """Build the website."""
    from workshop.publish.site import build_site

    for line in build_site(options.root, options.stems, out=options.out, only_run=[] if options.no_run else None):
        print(line, flush=True)
    return 0


def times(options: argparse.Namespace) -> int:
    """Run the lessons' pages and print how long each takes."""
    from tqdm import tqdm

    from workshop.publish.times import HEAD, line_of, sum_of, time_pages

    found = []
    print(HEAD, flush=True)
    for page in time_pages(options.root, options.stems):
        found.append(page)
        tqdm.write(line_of(page))
    print(sum_of(found))
    return 1 if any(page.problem for page in found) else 0


TASKS = {"build": build, "check": check, "slides": slides, "site": site, "times": times}


if __name__ == "__main__":
    sys.exit(main())
