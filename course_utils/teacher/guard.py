"""The guard inside a rank: refuses what no answer needs, and remembers it, so that the verdict can say why.

It is an audit hook of Python, which cannot be removed again. It explains; what it overlooks (code that is not
Python's) is held by the namespaces and limits of `containment.py`. One hole in sight: Python does not tell the hook
of `os.open`'s `dir_fd`, so a file opened relative to another folder is looked for in the current one. Nor are a
folder or a file that is named by a descriptor alone looked at again (`os.listdir(3)`): what opened them was.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

from course_utils.syllabus import ROOT
from course_utils.trace.recorder import recorder

_PROCESSES = ("os.fork", "os.forkpty", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen")
_NETWORK = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
_CHANGES = {  # event → where each path stands among its arguments, and that path's `dir_fd` (None: it has none)
    "os.chmod": ((0, 2),),
    "os.link": ((0, 2), (1, 3)),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),  # of `os.replace` as well
    "os.rmdir": ((0, 1),),
    "os.symlink": ((0, None), (1, 2)),
    "os.truncate": ((0, None),),
}
_READS = ("os.listdir", "os.scandir")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Guard:
    """What a submission may touch; `offences` are what it tried beyond, in words.

    Attributes:
        offences: why the answer scores zero; empty for an honest one.
    """

    def __init__(self, own: Path, hidden: list[str]) -> None:
        """`own` is the folder it may write to, `hidden` what it may not read."""
        self.offences: list[str] = []
        self._own = os.path.realpath(own) + os.sep
        self._hidden = tuple(os.path.realpath(path) for path in hidden)
        self._armed = False
        self._before: dict = {}

    def arm(self) -> None:
        """From now on, and for good: nothing of the submission has run yet."""
        if not self._armed:
            self._before = _fingerprint()
            self._armed = True
            sys.addaudithook(self._look)

    def look_back(self) -> None:
        """After a call: has anything of the course's machinery been exchanged?"""
        if self._armed:
            for name, value in _fingerprint().items():
                if name in self._before and self._before[name] is not value:
                    self._note(f"patched {name}")
                    return

    def _note(self, what: str) -> None:
        if len(self.offences) < 10 and what not in self.offences:
            self.offences.append(what)

    def _refuse(self, what: str) -> None:
        self._note(what)
        raise PermissionError(f"graded mode: an answer that {what} is refused")

    def _look(self, event: str, arguments: tuple) -> None:
        if event == "open" or event in _READS:
            path = arguments[0] if arguments else None
            if isinstance(path, (str, bytes, os.PathLike)):
                flags = arguments[2] if event == "open" and isinstance(arguments[2], int) else 0
                self._path(os.path.realpath(os.fsdecode(path)), bool(flags & _WRITING))
        elif event in _CHANGES:
            for place, folder in _CHANGES[event]:
                if isinstance(path := arguments[place], (str, bytes, os.PathLike)):
                    inside = _folder(None if folder is None else arguments[folder])
                    self._path(os.path.realpath(os.path.join(inside, os.fsdecode(path))), True)
        elif event in _PROCESSES:
            self._refuse(f"starts other processes ({event})")
        elif event in _NETWORK:
            self._refuse(f"reaches for the network ({event})")
        elif event in ("os.kill", "os.killpg"):
            self._refuse("sends signals to processes")

    def _path(self, path: str, writes: bool) -> None:
        hidden = next((one for one in self._hidden if path == one or path.startswith(one + os.sep)), None)
        if hidden or path.endswith(".ipynb"):
            self._refuse(f"{'writes' if writes else 'reads'} {_short(path)}")
        if writes and not path.startswith((self._own, "/dev/", "/proc/self/")):
            self._refuse(f"writes {os.path.basename(path)}, outside its own folder")


def _folder(descriptor: int | None) -> str:
    """The folder that a `dir_fd` stands for; "" without one (`shutil.rmtree` has one, and so temporary folders)."""
    return "" if descriptor in (None, -1) else os.readlink(f"/proc/self/fd/{descriptor}")


def _short(path: str) -> str:
    """The path from the course's folder on, or its last two parts."""
    inside = path.removeprefix(str(ROOT) + os.sep)
    return inside if inside != path else os.sep.join(path.split(os.sep)[-2:])


def _fingerprint() -> dict[str, object]:
    """Every function and class of the course's machinery that is loaded, and every method of those classes."""
    found: dict[str, object] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("course_utils") and module is not None:
            for key, value in list(vars(module).items()):
                if isinstance(value, (FunctionType, type)):
                    found[f"{name}.{key}"] = value
                if isinstance(value, type) and value.__module__.startswith("course_utils"):
                    found |= {f"{name}.{key}.{k}": v for k, v in list(vars(value).items()) if not k.startswith("__")}
    methods: list[tuple[str, Callable]] = [(k, v) for k, v in vars(recorder).items() if callable(v)]
    return found | {"the recorder": None if not methods else methods[0][0]}
