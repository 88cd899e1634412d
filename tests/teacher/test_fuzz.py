"""Replies, files and notebooks at random: whatever comes, the grader reads it or says that it cannot, and goes on.

Each test goes on for `COURSE_FUZZ_SECONDS`, from a new seed each time, which a failure names.
"""

import copy
import json
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from course_utils.checks.submission import Submission, read
from course_utils.errors import CourseError
from course_utils.syllabus import ROOT
from course_utils.teacher.wire import pack, unpack_reply
from tests.teacher.submissions import NAMES, RIGHT, marks_of, needs_a_box, notebook
from tests.teacher.test_hostile import a_reply

SECONDS = float(os.environ.get("COURSE_FUZZ_SECONDS", 3))
SLOW = 5.0
"""Seconds within which a reply or a file is read, or rejected."""
ODD = (
    None,
    True,
    -1,
    0,
    1 << 62,
    -(1 << 70),
    1e308,
    "",
    "x" * 5000,
    "\0",
    "\ud800",
    "foreign",
    [],
    {},
    [[]],
    {"": None},
)
KINDS = ("float", "int", "complex", "bytes", "slice", "range", "list", "set", "dict", "array", "scalar", "objects")
KINDS += ("tensor", "same", "dtype", "device", "Size", "module", "course", "foreign", "nothing of all this")
pytestmark = pytest.mark.timeout(4 * SECONDS + 200)


def seeds() -> Iterator[random.Random]:
    """Sources of chance, until the time is over."""
    seed, until = random.SystemRandom().randrange(1 << 40), time.monotonic() + SECONDS
    while time.monotonic() < until:
        seed += 1
        chance = random.Random(seed)
        chance.name = f"seed {seed}"
        yield chance


def altered(tree: Any, chance: random.Random) -> Any:
    """A copy of something out of JSON in which a few places hold something else."""
    tree = copy.deepcopy(tree)
    for _ in range(chance.randrange(1, 5)):
        inside = [tree]
        while isinstance(inside[-1], (list, dict)) and inside[-1] and chance.random() < 0.9:
            keys = list(inside[-1]) if isinstance(inside[-1], dict) else range(len(inside[-1]))
            key = chance.choice(keys)
            inside += [key, inside[-1][key]]
        if len(inside) > 1:
            _, key = inside.pop(), inside.pop()
            inside[-1][key] = odd(chance)
    return tree


def odd(chance: random.Random) -> Any:
    """A value, or what `wire` would take for the beginning of one."""
    if chance.random() < 0.5:
        return copy.deepcopy(chance.choice(ODD))
    return [
        chance.choice(KINDS),
        *(copy.deepcopy(chance.choice((*ODD, 3, "float64", "<f8", "|O", [2, 3]))) for _ in range(4)),
    ]


def bytes_altered(data: bytes, chance: random.Random) -> bytes:
    """Some bytes exchanged, and sometimes the end cut off."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 12)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed[: chance.randrange(len(changed) + 1)] if chance.random() < 0.3 else changed)


def test_replies_at_random_are_read_or_rejected() -> None:
    whole = pack(a_reply())
    size = int.from_bytes(whole[:8], "little")
    told = json.loads(whole[8 : 8 + size])
    for chance in seeds():
        if chance.random() < 0.5:
            data = bytes_altered(whole, chance)
        else:
            text = json.dumps(altered(told, chance)).encode()
            data = len(text).to_bytes(8, "little") + text + whole[8 + size :]
        begin = time.monotonic()
        reply = unpack_reply(0, data)
        repr(reply)
        assert reply.kind in ("returned", "raised", "interrupted", "unusable"), chance.name
        assert time.monotonic() - begin < SLOW, chance.name


def test_files_at_random_are_read_or_rejected(tmp_path) -> None:
    whole = (ROOT / "exercises" / "solutions" / "04_messages.ipynb").read_bytes()
    told, file = json.loads(whole), tmp_path / "ada.ipynb"
    for chance in seeds():
        if chance.random() < 0.5:
            file.write_bytes(bytes_altered(whole, chance))
        else:
            file.write_text(json.dumps(altered(told, chance)))
        begin = time.monotonic()
        try:
            found = read(file)
        except CourseError as error:
            assert str(error), chance.name
        else:
            assert isinstance(found, Submission) and found.expected, chance.name
        assert time.monotonic() - begin < SLOW, chance.name


PIECES = """
import os, sys, signal, threading, gc, ctypes, builtins, json, time
from mpi4py import MPI
x = [x for x in gc.get_objects() if type(x).__name__ == "{word}"]
[setattr(module, "{word}", None) for module in list(sys.modules.values()) if hasattr(module, "{word}")]
builtins.{builtin} = lambda *a, **k: {number}
sys.modules["{module}"] = None
del sys.modules["{module}"]
os.environ.clear()
os.close({number})
os.dup2(1, {number})
signal.signal({number}, signal.SIG_IGN)
signal.alarm(1)
threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
sys.setrecursionlimit({number} + 50)
sys.stdout = sys.stderr = None
sys.settrace(lambda *a: 1 / 0)
gc.disable(); gc.set_threshold(1)
ctypes.memset({number}, 0, 1)
json.dumps = json.loads = print
time.sleep = lambda s: None
time.perf_counter = lambda: {number}
MPI.COMM_WORLD.{call}()
open("/tmp/{word}", "w").write("x" * {number}000)
class A(dict, metaclass=type("M", (type,), dict(__instancecheck__=lambda *a: True))): pass
exec("def " + "{word}" + "(): return " + "(" * {number} + ")" * {number})
os.kill(os.getpid(), {number})
os.fork()
raise {error}
yield 1
%%{word}
!{word}
""".strip().splitlines()
WORDS = {
    "word": ("recorder", "Reply", "call", "pack", "line", "send", "world", "engine", "rank_squared"),
    "builtin": ("len", "isinstance", "type", "print", "open", "__import__", "getattr", "sorted"),
    "module": ("numpy", "json", "course_utils.trace.recorder", "course_utils.teacher.wire", "mpi4py.MPI", "socket"),
    "number": (0, 1, 2, 3, 5, 9, 15, 60),
    "call": ("Barrier", "Abort", "Free", "Dup", "Disconnect"),
    "error": ("SystemExit", "KeyboardInterrupt", "MemoryError", "RecursionError(1)", "StopIteration", "BaseException"),
}


def piece(chance: random.Random) -> str:
    """A cell that no sane notebook has."""
    text = "\n".join(chance.sample(PIECES, chance.randrange(1, 4)))
    for name, choices in WORDS.items():
        text = text.replace(f"{{{name}}}", str(chance.choice(choices)))
    return text


@needs_a_box
def test_notebooks_at_random_cost_their_own_marks_alone(tmp_path) -> None:
    tried = 0
    for chance in seeds():
        cells = [[piece(chance) for _ in range(chance.randrange(1, 4))] for _ in range(3)]
        files = [notebook(tmp_path, *odd_cells, RIGHT, NAMES, name=f"{n}.ipynb") for n, odd_cells in enumerate(cells)]
        files += [notebook(tmp_path, RIGHT, NAMES, name="honest.ipynb")]
        marks = marks_of(files, ranks=2)
        told = {f"{n}": odd_cells for n, odd_cells in enumerate(cells)}
        assert [(one.exercise, one.mark) for one in marks[-2:]] == [("rank_squared", 1), ("who_is_there", 1)], (
            chance.name,
            told,
        )
        assert len(marks) == 8 and all(one.verdict.isprintable() for one in marks), (chance.name, told)
        tried += 3
    assert tried
