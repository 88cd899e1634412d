"""Replies, files and notebooks at random: whatever comes, the grader reads it or says that it cannot, and goes on."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_utils.checks.submission import Submission, read
from course_utils.errors import CourseError
from course_utils.syllabus import ROOT
from course_utils.teacher.wire import pack, unpack_reply
from tests.teacher.submissions import NAMES, RIGHT, marks_of, needs_a_box, notebook
from tests.teacher.test_hostile import a_reply

AT_RANDOM = settings(
    max_examples=100,
    deadline=None,
    derandomize=False,  # new ones each time, on the build service too
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
WIRE = ("float", "int", "complex", "bytes", "slice", "range", "list", "set", "dict", "array", "scalar", "objects")
WIRE += ("tensor", "same", "dtype", "device", "Size", "module", "course", "foreign", "float64", "<f8", "|O", "\ud800")
"""What `wire` may take for the beginning of a value, or for a part of it."""
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from((*WIRE, "x" * 5000)),
    lambda inside: st.lists(inside, max_size=5) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=10,
)
pytestmark = pytest.mark.timeout(900)


@st.composite
def altered(draw: st.DrawFn, tree: Any) -> bytes:
    """Something out of JSON in which a few values are odd, as JSON."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, 4))):
        inside = tree
        while True:
            key = draw(st.sampled_from(list(inside) if isinstance(inside, dict) else range(len(inside))))
            if not (isinstance(inside[key], (list, dict)) and inside[key] and draw(st.booleans())):
                break
            inside = inside[key]
        inside[key] = draw(ODD)
    return json.dumps(tree).encode()


@st.composite
def with_bytes_exchanged(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes exchanged, and sometimes the end cut off."""
    changed = bytearray(data)
    for place, byte in draw(st.dictionaries(st.integers(0, len(data) - 1), st.integers(0, 255), max_size=12)).items():
        changed[place] = byte
    return bytes(changed[: draw(st.just(len(data)) | st.integers(0, len(data)))])


REPLY = pack(a_reply())
END_OF_TEXT = 8 + int.from_bytes(REPLY[:8], "little")
REPLIES = altered(json.loads(REPLY[8:END_OF_TEXT])).map(
    lambda text: len(text).to_bytes(8, "little") + text + REPLY[END_OF_TEXT:]
)
NOTEBOOK = (ROOT / "exercises" / "solutions" / "04_messages.ipynb").read_bytes()


@AT_RANDOM
@given(REPLIES | with_bytes_exchanged(REPLY))
def test_replies_at_random_are_read_or_rejected(data) -> None:
    reply = unpack_reply(0, data)
    assert repr(reply) and reply.kind in ("returned", "raised", "interrupted", "unusable")


@AT_RANDOM
@given(content=altered(json.loads(NOTEBOOK)) | with_bytes_exchanged(NOTEBOOK))
def test_files_at_random_are_read_or_rejected(content, tmp_path) -> None:
    file = tmp_path / "ada.ipynb"
    file.write_bytes(content)
    try:
        found = read(file)
    except CourseError as error:
        assert str(error)
    else:
        assert isinstance(found, Submission) and found.expected


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


def filled(pieces: list[str], words: dict[str, Any]) -> str:
    """A cell that no sane notebook has."""
    text = "\n".join(pieces)
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", str(word))
    return text


CELLS = st.builds(
    filled,
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3, unique=True),
    st.fixed_dictionaries({name: st.sampled_from(choices) for name, choices in WORDS.items()}),
)


@needs_a_box
@settings(AT_RANDOM, max_examples=1)
@given(odd=st.lists(st.lists(CELLS, min_size=1, max_size=3), min_size=3, max_size=3))
def test_notebooks_at_random_cost_their_own_marks_alone(tmp_path, odd) -> None:
    files = [notebook(tmp_path, *cells, RIGHT, NAMES, name=f"{number}.ipynb") for number, cells in enumerate(odd)]
    marks = marks_of([*files, notebook(tmp_path, RIGHT, NAMES, name="honest.ipynb")], ranks=2)
    assert [(one.exercise, one.mark) for one in marks[-2:]] == [("rank_squared", 1), ("who_is_there", 1)]
    assert len(marks) == 8 and all(one.verdict.isprintable() for one in marks)
