"""The hub of a job's ranks: node agents report what their ranks do, and notebooks order what must be done to them.

It listens beside the notebook, in the process of the watch, and keeps each rank's last report for whoever asks. Every
connection is encrypted with CurveZMQ, and open only to who has read the hub's key in the ranks' folder (mode 0700). The
file system that all nodes share may answer late, and takes no part in it.
Started as `python -m course_utils.ranks.slurm.hub FOLDER ADDRESS [PORT …]`.
"""

import contextlib
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import zmq

from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.processes.watchdog import watch

BEAT_SECONDS = 2.0
"""Hub and node agents say something at least so often, so that silence means something."""
ANSWER_SECONDS = 1.0
"""How long a notebook waits for the hub, which has nothing to do but to answer."""
_LINGER = 2000  # ms that a process which ends may take for its last words


def hub_file(folder: RanksFolder) -> Path:
    """Where the hub says at which address it listens, and with which key."""
    return folder.path / "hub.json"


class Hub:
    """Listens on one address of this machine, and passes on.

    A message is one line of JSON: a node agent's {"rank": 3, "report": …}, a notebook's {"rank": 3, "order": "kill"} or
    {"reports": true}. Node agents receive orders and {"beat": true}; a notebook gets each rank's last
    report, with its age in seconds.
    """

    def __init__(self, folder: RanksFolder, address: str, ports: Sequence[int] = ()) -> None:
        """`ports`: of which it takes the first that is free; without, the system chooses one."""
        key, secret = zmq.curve_keypair()
        self._socket: Any = zmq.Context().socket(zmq.ROUTER)
        self._socket.curve_server, self._socket.curve_secretkey = True, secret
        port = self._listen(address, ports)
        self._agents: dict[int, list[bytes]] = {}
        self._reports: dict[int, tuple[float, dict]] = {}
        self._beat = 0.0
        write_whole(hub_file(folder), {"at": f"tcp://{address}:{port}", "key": key.decode()})

    def _listen(self, address: str, ports: Sequence[int]) -> int:
        for port in ports:
            with contextlib.suppress(zmq.ZMQError):
                self._socket.bind(f"tcp://{address}:{port}")
                return port
        return self._socket.bind_to_random_port(f"tcp://{address}")

    def serve(self) -> None:
        """For ever."""
        while True:
            self.step()

    def step(self) -> None:
        """Wait a little for a message and answer it; send a beat to all node agents when it is time."""
        if self._socket.poll(int(500 * BEAT_SECONDS)):
            *sender, text = self._socket.recv_multipart()
            self._take(sender, json.loads(text))
        if time.monotonic() - self._beat > BEAT_SECONDS:
            self._beat = time.monotonic()
            for agent in self._agents.values():
                self._send(agent, {"beat": True})

    def _take(self, sender: list[bytes], message: dict) -> None:
        if "report" in message:
            if message["rank"] not in self._agents:
                self._send(sender, {"beat": True})
            self._agents[message["rank"]] = sender
            self._reports[message["rank"]] = time.monotonic(), message["report"]
        elif "order" in message:
            if agent := self._agents.get(message["rank"]):
                self._send(agent, message)
            self._send(sender, {})
        else:
            now = time.monotonic()
            self._send(
                sender, {rank: (now - reported_at, report) for rank, (reported_at, report) in self._reports.items()}
            )

    def _send(self, receiver: list[bytes], message: Any) -> None:
        self._socket.send_multipart([*receiver, json.dumps(message).encode()])


class HubConnection:
    """A connection with the hub of a folder, of a node agent or of a notebook."""

    def __init__(self, folder: RanksFolder, *, asks: bool) -> None:
        """`asks`: a notebook's, which asks and is answered; a node agent sends reports and receives orders."""
        known = read_whole(hub_file(folder)) or {"at": "", "key": ""}
        self.address = known["at"]
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._socket = context.socket(zmq.REQ if asks else zmq.DEALER)
        self._socket.linger = 0 if asks else _LINGER
        self._lock = threading.Lock()
        if asks:  # a question without an answer is forgotten when the next one is asked
            self._socket.req_relaxed = self._socket.req_correlate = 1
            self._socket.rcvtimeo = int(1000 * ANSWER_SECONDS)
        own, secret = zmq.curve_keypair()
        self._socket.curve_publickey, self._socket.curve_secretkey = own, secret
        self._socket.curve_serverkey = known["key"].encode()
        self._socket.connect(self.address)

    def ask(self, message: dict) -> dict | None:
        """The hub's answer; None where it gives none in time."""
        with self._lock, contextlib.suppress(zmq.Again):
            self._socket.send_json(message)
            answer: Any = self._socket.recv_json()
            return answer
        return None

    def send(self, message: dict) -> None:
        """Send; where the hub does not listen, too much of it is thrown away."""
        with contextlib.suppress(zmq.Again):
            self._socket.send_multipart([b"", json.dumps(message).encode()], zmq.NOBLOCK)

    def received(self) -> Iterator[dict]:
        """Yield the messages that have come since the last call."""
        while self._socket.poll(0):
            yield json.loads(self._socket.recv_multipart()[-1])

    def close(self) -> None:
        """Hang up; a node agent's last report is still sent."""
        self._socket.close()


def write_whole(file: Path, content: object) -> None:
    """Write JSON so that a reader finds all of it or none."""
    scratch = file.with_suffix(".new")
    scratch.touch(mode=0o600)
    scratch.write_text(json.dumps(content))
    scratch.replace(file)


def read_whole(file: Path) -> dict | None:
    """What `write_whole` wrote; None before there is anything."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(file.read_text())
    return None


def main(path: str, address: str, *ports: str) -> None:
    """Serve while somebody owns the ranks of the folder; then end them, as the watch does."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    folder = RanksFolder(Path(path))
    hub = Hub(folder, address, [int(port) for port in ports])
    threading.Thread(target=hub.serve, daemon=True).start()  # the watch waits for the shared file system at times
    watch(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
