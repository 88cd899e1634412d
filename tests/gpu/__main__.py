"""`python -m gpu`: run the checks, each in a process of its own, and print a table and a verdict."""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu.running import Answer


def main() -> int:
    """0 where nothing failed, also where there is no GPU; 1 otherwise; 2 for a wrong argument."""
    options = parsed()
    try:
        import torch
    except ImportError as error:
        print(f"These checks need torch: {error}. Say PYTHON=/path/to/python tests/gpu/run.sh for one that has it.")
        return 1
    from gpu import all_checks, running
    from gpu.registry import CHECKS, PARTS, Missing, Where

    all_checks.load()
    if options.list:
        for one in CHECKS.values():
            print(f"{one.name}: {one.shows} (lesson {', '.join(map(str, one.lessons))})")
        return 0
    if unknown := [name for name in options.only if name not in CHECKS]:
        print(f"There is no check {unknown[0]!r}. They are {', '.join(CHECKS)}.")
        return 2
    gpus = running.gpus_here()
    if options.device == "cuda" and not gpus:
        why = running.own_seat().trouble or f"torch {torch.__version__} finds no GPU here"
        print(f"{why}: nothing was checked. --device cpu tries the code.")
        return int(options.require_gpu)
    os.environ["TQDM_DISABLE"] = "1"  # in a log bars are nothing but noise, and each leaves a semaphore behind
    on_gpu = options.device == "cuda"
    if options.ranks and on_gpu and options.ranks > gpus and not options.share_gpu:
        print(f"{options.ranks} ranks want as many GPUs, and there are {gpus}; --share-gpu lets them share.")
        return 2
    where = Where(
        options.device,
        gpus if on_gpu else 0,
        options.start or start_of(options.device),
        ranks=options.ranks,
        shared=on_gpu and options.ranks > gpus,
        out=options.out or "",
    )
    print(running.machine(where), flush=True)
    home = Home(options.out, options.json, running.facts(where))
    chosen = [CHECKS[name] for name in options.only or PARTS.get(options.part) or CHECKS]
    running.load_once(where, len(chosen))
    began, answers = time.monotonic(), []
    for one in chosen:
        left = options.budget - (time.monotonic() - began)
        if left > 0:
            answer = running.in_a_process(one, where, min(options.timeout or one.seconds, left))
        else:
            answer = running.Answer(one, missing=[Missing("", "more time: the budget is spent")])
        answers.append(answer)
        print(running.as_table([answer]), flush=True)
        home.take(answer)
    print(running.verdict(answers, where))
    return int(any(answer.failed for answer in answers))


class Home:
    """Where what was measured goes at once, so that a run that is cut off brings home what it had.

    Args:
        out: a folder for the machine's facts, the rows, and each check's whole log; none without.
        file: for the rows alone.
    """

    def __init__(self, out: str | None, file: str | None, facts: dict[str, str]) -> None:
        self.folder = Path(out) if out else None
        self.files = [Path(file)] if file else []
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "machine.json").write_text(json.dumps(facts, indent=1))
            self.files.append(self.folder / "rows.jsonl")
        for one in self.files:
            one.write_text("")

    def take(self, answer: "Answer") -> None:
        """Keep what a check said."""
        for file in self.files:
            with file.open("a") as rows:
                rows.writelines(f"{line}\n" for line in answer.as_json())
        if self.folder:
            (self.folder / f"{answer.check.name}.log").write_text(answer.log)


def start_of(device: str) -> str:
    """Processors: fork, which imports torch once. GPUs: spawn, because no process may inherit one in use."""
    return "spawn" if device == "cuda" else "fork"


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests/gpu/run.sh", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", nargs="+", default=[], metavar="CHECK", help="these checks; --list names all")
    parser.add_argument("--list", action="store_true", help="name the checks")
    parser.add_argument("--part", type=int, choices=(1, 2, 3, 4, 5), help="some of the checks, the best first")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="for each, not its own limit (90 or more)")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS", help="for all; none")
    parser.add_argument(
        "--ranks", type=int, default=0, metavar="N", help="this many ranks, not 1, 2, 4, 8 up to all GPUs"
    )
    parser.add_argument("--share-gpu", action="store_true", help="more ranks than GPUs: right numbers, no times")
    parser.add_argument("--require-gpu", action="store_true", help="1 where there is no GPU, for jobs")
    parser.add_argument("--out", metavar="FOLDER", help="machine, rows and logs there, each as soon as it is known")
    parser.add_argument("--json", metavar="FILE", help="also write the rows there, one on each line")
    parser.add_argument("--start", choices=("spawn", "fork"), help="how processes are started")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
