"""No code reads a sentence of the course back: what decides is a value, and words are made at the edge.

The walk goes through every syntax tree and looks for text that is tested (`startswith`, `in`, a regular expression, …)
for words that some sentence of the course has in it.
"""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TESTS_OF_TEXT = {
    "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit", "find",
    "replace",
}  # fmt: skip
PATTERNS = {"compile", "match", "search", "fullmatch", "sub", "split", "findall", "finditer"}
WORDS = 3
"""A literal of at least so many words, or a piece of an f-string with two, is taken for a piece of a sentence."""
NAMES_OF_SENTENCES = {
    "alt_text", "cause", "finding", "label", "line", "reason", "report", "said", "sentence", "text", "title", "trouble",
    "verdict", "why", "words", "wrong",
}  # fmt: skip
"""What holds a sentence, by its name: there, a single word counts as well."""
THE_FILES = "the form of the files of what people write, which teachers edit"
A_LOG = "the log of a job, which is all that is left of it; recorded ones are read as well"
PYTHON = "code, and not a sentence"
EXCEPTIONS = {
    "course_utils/checks/recognition.py: on rank": THE_FILES,
    "course_utils/checks/sample_answers.py: Recognised": THE_FILES,
    "course_utils/draw/wait_arrows.py: line": "breaks a line of a picture; decides nothing",
    "course_utils/lessons/gpu_nodes/checks/batch.py: SBATCH": "sbatch's own syntax",
    "course_utils/lessons/gpu_nodes/checks/batch.py: Zero Bytes": "sbatch's words",
    "course_utils/lessons/gpu_nodes/checks/batch.py: configuration source": "sbatch's words",
    "course_utils/lessons/gpu_nodes/checks/batch.py: timed out": "sbatch's words",
    "course_utils/lessons/gpu_nodes/checks/batch.py: login": "an option of the shell",
    "course_utils/lessons/gpu_nodes/nccl_says.py: comm": "NCCL's words",
    "course_utils/lessons/gpu_nodes/nccl_says.py: via P": "NCCL's words",
    "course_utils/lessons/gpu_nodes/tries.py: resumes after step": A_LOG,
    "course_utils/lessons/gpu_nodes/tries.py: kills itself after step": A_LOG,
    "course_utils/lessons/strategy_search/pictures.py: norm backward": "names of tasks, which the exercise prescribes",
    "course_utils/lessons/strategy_search/program/run_program.py: nproc-per-node": "torchrun's option",
    "course_utils/ranks/links/network.py: mount": "unshare's words",
    "course_utils/ranks/links/network.py: unshare": "unshare's words",
    "course_utils/ranks/processes/failed_start.py: OPAL ERROR: Unreachable in file": "Open MPI's words",
    "course_utils/ranks/processes/failed_start.py: OPAL ERROR: Unreachable in file ext": "Open MPI's words",
    "course_utils/ranks/processes/launch_ranks.py: Address already in use": "the system's words",
    "course_utils/ranks/processes/launch_ranks.py: IPController": "ipyparallel's words",
    "course_utils/ranks/processes/launch_ranks.py: Open MPI": "what MPI libraries call themselves",
    "course_utils/ranks/slurm/slurm_commands.py: Batch job submission failed:": "sbatch's words",
    "course_utils/ranks/slurm/slurm_commands.py: Zero Bytes": "Slurm's words",
    "course_utils/ranks/slurm/slurm_commands.py: authentication error": "munge's words",
    "course_utils/ranks/slurm/slurm_commands.py: configuration source": "sinfo's words",
    "course_utils/ranks/slurm/slurm_commands.py: timed out": "sinfo's words",
    "course_utils/ranks/slurm/batch_job.py: Open MPI": "what MPI libraries call themselves",
    "course_utils/ranks/slurm/remote_ranks.py: Out Of Memory": "Slurm's words",
    "course_utils/system.py: kill": "a counter of the kernel",
    "course_utils/system.py: oom": "a counter of the kernel",
    "course_utils/trace/mpi/call_errors.py: message:": "mpi4py's words",
    "course_utils/trace/mpi/call_errors.py: value given was": "MPICH's words",
    "course_utils/trace/torch/torch_distributed.py: Connection closed by peer": "gloo's words",
    "course_utils/trace/torch/torch_distributed.py: Connection reset by peer": "gloo's words",
    "workshop/bench/cluster.py: number": "the line by which the bench's own program answers it",
    "workshop/bench/hangs.py: Warning": "the bench asks what a learner is shown, warnings apart",
    "workshop/bench/hangs.py: and": "the bench asks whether a learner is shown the line",
    "workshop/bench/hangs.py: here": "a comment that marks the line, in the programs that hang",
    "workshop/bench/hangs.py: rank": "the bench asks what a learner is shown, a rank's own prints apart",
    "workshop/bench/lab.py: JupyterLab is at": "the bench waits for what a person would wait for",
    "workshop/publish/figures.py: The machine was busy with other work, so this comparison means nothing here": (
        "a figure's title is all that the page has made of a busy machine; both take the same constant"
    ),
    "workshop/publish/slides.py: data-noescape class": "reveal.js's attributes",
    "workshop/publish/slides.py: figure": "Sphinx's directives",
    "workshop/publish/slides.py: figures": "Sphinx's directives",
    "workshop/publish/slides.py: name": "Sphinx's directives",
    "workshop/publish/slides.py: png": "Sphinx's directives",
}
"""Where something has to read text that is not ours to make a value of, or decides nothing: "module: words" → why."""
READERS_OF_LOGS = {
    f"course_utils/lessons/gpu_nodes/failures/{name}.py"
    for name in (
        "enqueued_work", "exit_codes", "line_reports", "own_words", "readable_log", "rules", "tracebacks",
        "reading/clocks", "reading/identities", "reading/launch_size", "reading/log_files", "reading/log_parser",
        "reading/logged_bars", "reading/logged_launches", "reading/piled_tracebacks", "reading/writers",
    )
}  # fmt: skip
"""Modules that know the words of launchers, PyTorch, MPI and Slurm: their patterns are for logs of other programs."""


class Reading(NamedTuple):
    """A place where text is tested for words; `is_named`: through a constant, with which they may be made as well."""

    module: str
    line: int
    words: str
    is_named: bool


def trees() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("course_utils", "workshop"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield file.relative_to(ROOT).as_posix(), parsed(file)


@functools.cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> set[int]:
    """The nodes that are bare strings: of modules, classes, functions and constants."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_text(node.value)}


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def sentences(tree: ast.Module) -> Iterator[ast.Constant]:
    """Literals, and pieces of f-strings, that people read."""
    left_out = docstrings(tree)
    pieces = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if is_text(node) and id(node) not in left_out:
            words = re.findall(r"[A-Za-z]{2,}", node.value)
            if len(words) >= (2 if id(node) in pieces else WORDS):
                yield node


def constants_of(tree: ast.Module) -> dict[str, ast.expr]:
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def imported_constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Constants that a module takes from other modules of the course, by the name that they have in it."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("course_utils", "workshop")):
            file = ROOT.joinpath(*node.module.split(".")).with_suffix(".py")
            theirs = constants_of(parsed(file)) if file.is_file() else {}
            found |= {name.asname or name.name: theirs[name.name] for name in node.names if name.name in theirs}
    return found


def readings(module: str, tree: ast.Module) -> Iterator[tuple[Reading, ast.AST]]:
    """Every literal, or constant of the course, that a text is tested for: two words, or one where it is a sentence."""
    named = imported_constants(tree) | constants_of(tree)
    for node in ast.walk(tree):
        for tested, subject in looked_for(node):
            is_named = isinstance(tested, ast.Name) and tested.id in named
            tested = named[tested.id] if is_named else tested
            least = 1 if name_of(subject) in NAMES_OF_SENTENCES else 2
            for part in ast.walk(tested):
                if is_text(part):
                    for words in re.findall(r"[A-Za-z][A-Za-z ,';:-]+[A-Za-z:;]", part.value):
                        if len(words.split()) >= least:
                            yield Reading(module, node.lineno, words, is_named), part


def looked_for(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """What is looked for, and in what."""
    match node:
        case ast.Call(ast.Attribute(ast.Name("re"), name), [first, *more]) if name in PATTERNS:
            return [(first, more[-1] if more else first)]
        case ast.Call(ast.Attribute(subject, name), [first, *_]) if name in TESTS_OF_TEXT:
            return [(first, subject)]
        case ast.Compare(left, [ast.In() | ast.NotIn()], [subject]) if is_text(left) or isinstance(left, ast.Name):
            return [(left, subject)]
    return []


def name_of(node: ast.expr) -> str:
    """The last name of what is tested: `trouble` of `outcome.attempt.trouble`."""
    match node:
        case ast.Attribute(_, name) | ast.Name(name):
            return name
        case ast.Call(ast.Attribute(inner, _), _) | ast.Call(ast.Name() as inner, _):
            return name_of(inner)
    return ""


def found() -> list[str]:
    every = dict(trees())
    written = "\n".join(
        node.value for module, tree in every.items() if module not in READERS_OF_LOGS for node in sentences(tree)
    )
    result = []
    for module, tree in every.items():
        if module in READERS_OF_LOGS:
            continue
        for reading, node in readings(module, tree):
            own = 0 if reading.is_named else node.value.count(reading.words)
            if written.count(reading.words) > own and f"{module}: {reading.words}" not in EXCEPTIONS:
                result.append(f"{module}:{reading.line}: {reading.words!r}")
    return result


def test_no_code_reads_a_sentence_of_the_course_back() -> None:
    assert not (readings := found()), "\n".join(readings)


def test_the_walk_sees_what_it_looks_for() -> None:
    """Each way to read a sentence back, and none of the ways to look at something else."""
    reads = """
AGAIN = "not finished"
if text.startswith("deadlock: rank") or "the result is right" in text or AGAIN in text:
    text = text.removesuffix("then this cell")
re.search("no question was asked", text)
"""
    seen = [reading.words for reading, _ in readings("", ast.parse(reads))]
    assert sorted(seen) == sorted(
        ["deadlock: rank", "the result is right", "not finished", "then this cell", "no question was asked"]
    )
    assert not list(readings("", ast.parse("if name in known and key == 'value' and line.startswith('#'): pass")))
    assert [node.value for node in sentences(ast.parse("'''Of a module.'''\nsay(f'rank {r} took it', 'a-name')"))] == [
        " took it"
    ]


def test_every_exception_is_still_needed() -> None:
    present = {
        f"{reading.module}: {reading.words}" for module, tree in trees() for reading, _ in readings(module, tree)
    }
    assert set(EXCEPTIONS) <= present, set(EXCEPTIONS) - present
    assert {module for module, _ in trees()} >= READERS_OF_LOGS
