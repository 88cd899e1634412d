"""`python -m gpu`: run the checks, each in a process of its own, and print a table and a verdict."""

import argparse
import sys
from pathlib import Path


def main() -> int:
    """0 where nothing failed, also where there is no GPU; 1 otherwise; 2 for a wrong argument."""
    options = parsed()
    try:
        import torch
    except ImportError as error:
        print(f"These checks need torch: {error}. Say PYTHON=/path/to/python tests/gpu/run.sh for one that has it.")
        return 1
    from gpu import all_checks, running
    from gpu.registry import CHECKS, Where

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
        print(f"torch {torch.__version__} finds no GPU here: nothing was checked. --device cpu tries the code.")
        return 0
    where = Where(options.device, gpus if options.device == "cuda" else 0, options.start or start_of(options.device))
    print(running.machine(where), flush=True)
    chosen = [CHECKS[name] for name in options.only or CHECKS]
    running.load_once(where, len(chosen))
    answers = [running.in_a_process(one, where, options.timeout) for one in chosen]
    print(running.as_table(answers))
    print(running.verdict(answers, where))
    if options.json:
        Path(options.json).write_text("".join(f"{line}\n" for answer in answers for line in answer.as_json()))
    return int(any(answer.failed for answer in answers))


def start_of(device: str) -> str:
    """Processors: fork, which imports torch once. GPUs: spawn, because no process may inherit one in use."""
    return "spawn" if device == "cuda" else "fork"


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests/gpu/run.sh", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", nargs="+", default=[], metavar="CHECK", help="these checks; --list names all")
    parser.add_argument("--list", action="store_true", help="name the checks")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="for one check (300)")
    parser.add_argument("--json", metavar="FILE", help="also write the rows there, one on each line")
    parser.add_argument("--start", choices=("spawn", "fork"), help="how processes are started")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
