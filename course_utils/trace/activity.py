"""What a rank is doing right now, in a small file that both the rank and the notebook have mapped.

The rank writes, the notebook reads, and neither waits for the other: a rank that hangs can be looked at without asking
it. In the other direction one byte asks a waiting rank to give up.
"""

import mmap
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from course_utils import system

IDLE, RUNNING, WAITING, TESTING = range(4)
"""TESTING: it computes, and asks again and again whether something has come that has not."""
IMPORTS = "an import, which must come to its end"
"""What a rank is in that has been interrupted in an import."""
CLEANUP = "what is left to do after the interrupt"
"""What a rank is in that has left the learner's code: the workers of a DataLoader, say, are waited for."""

_HEADER = struct.Struct("<QQdHI")  # version, progress, since, length of the text, length of the snapshot
_STATE = _HEADER.size
_STOP, _BEGUN = _STATE + 1, _STATE + 2
_TEXT = _BEGUN + 1
_SNAPSHOT_START = 1024
_SIZE = 1 << 16
_STANDING = struct.Struct("<QH")  # how often it was written, length
_STANDING_START = _SIZE - 1024


@dataclass(frozen=True, slots=True)
class Activity:
    """What a rank does at one moment: its state, its operation, and since when (seconds of `time.perf_counter`).

    The text of an idle rank is the number of bytes in its last reply. `snapshot` is that of its `ledger`, empty where
    it has written none. `begun`: the learner's function runs; before, the rank unpacks its task, finishes imports and
    meets the others.
    """

    state: int
    progress: int
    since: float
    text: str
    snapshot: bytes = b""
    begun: bool = False


def reply_size(activity: Activity) -> int:
    """The bytes of the reply that a rank has made, and that may be under way; 0 while it is at work."""
    return int(activity.text) if activity.state == IDLE and activity.text.isdecimal() else 0


def shared_memory() -> int:
    """Memory as large as an activity's, without a name, whose size nobody can change; gives its descriptor."""
    return system.sealed_memory("course", _SIZE)


class ActivityFile:
    """The mapped file of one rank. One process writes the state; any may read it or ask for a stop.

    Attributes:
        progress: how often this process has written.
    """

    def __init__(self, path_or_descriptor: Path | int) -> None:
        """`path_or_descriptor`: a file, made where there is none; or the descriptor of memory from `shared_memory`."""
        if isinstance(path_or_descriptor, int):
            self._map = mmap.mmap(path_or_descriptor, _SIZE)
        else:
            if not path_or_descriptor.exists():
                path_or_descriptor.touch(mode=0o600)
                path_or_descriptor.write_bytes(bytes(_SIZE))
            with path_or_descriptor.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), _SIZE)
        self._version, self.progress = _HEADER.unpack_from(self._map)[:2]
        self._lock = threading.Lock()

    def write(self, state: int, text: str = "", snapshot: bytes = b"", *, after: int | None = None) -> int | None:
        """Say what the rank does from now on; every call counts as progress, whose number is given back.

        `after`: only if nothing has been said since the progress of this number, else None is given back.
        """
        with self._lock:
            if after not in (None, self.progress):
                return None
            self._version += 1  # odd: being written
            self.progress += 1
            encoded = text.encode()[: _SNAPSHOT_START - _TEXT]
            snapshot = snapshot if len(snapshot) <= _STANDING_START - _SNAPSHOT_START else b""
            struct.pack_into("<Q", self._map, 0, self._version)
            self._map[_TEXT : _TEXT + len(encoded)] = encoded
            self._map[_SNAPSHOT_START : _SNAPSHOT_START + len(snapshot)] = snapshot
            self._map[_STATE] = state
            self._version += 1
            now = time.perf_counter()
            _HEADER.pack_into(self._map, 0, self._version, self.progress, now, len(encoded), len(snapshot))
            return self.progress

    def read(self) -> Activity:
        """The latest complete state."""
        for _ in range(100):
            version, progress, since, length, size = _HEADER.unpack_from(self._map)
            state, text = self._map[_STATE], bytes(self._map[_TEXT : _TEXT + length])
            snapshot = bytes(self._map[_SNAPSHOT_START : _SNAPSHOT_START + size])
            if version % 2 == 0 and struct.unpack_from("<Q", self._map)[0] == version:
                break
        return Activity(state, progress, since, text.decode(errors="replace"), snapshot, self.begun)

    def write_standing(self, data: bytes) -> None:
        """Answer the question where the rank's code stands."""
        count, _ = _STANDING.unpack_from(self._map, _STANDING_START)
        data = data[: _SIZE - _STANDING_START - _STANDING.size]
        begin = _STANDING_START + _STANDING.size
        self._map[begin : begin + len(data)] = data
        _STANDING.pack_into(self._map, _STANDING_START, count + 1, len(data))

    def read_standing(self) -> tuple[int, bytes]:
        """The number of the latest answer, and the answer."""
        count, length = _STANDING.unpack_from(self._map, _STANDING_START)
        begin = _STANDING_START + _STANDING.size
        return count, bytes(self._map[begin : begin + length])

    @property
    def begun(self) -> bool:
        """Whether the learner's function runs."""
        return bool(self._map[_BEGUN])

    @begun.setter
    def begun(self, begun: bool) -> None:
        self._map[_BEGUN] = begun

    def ask_to_stop(self, stop: bool = True) -> None:
        """Ask the rank to leave what it waits for, or take the request back."""
        self._map[_STOP] = stop

    @property
    def asked_to_stop(self) -> bool:
        return bool(self._map[_STOP])
