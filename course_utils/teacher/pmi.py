"""What mpiexec does for processes that join MPI: a board for their addresses, and a barrier.

Each rank has a socket to it, and asks in lines: "cmd=put kvsname=… key=… value=…". Only the beginning of MPICH and its
relatives needs it; when all ranks have joined it is closed, and carries nothing more.

Source: PMI-1 of MPICH, as its `src/pmi/` speaks it; Balaji et al. 2010, "PMI: A Scalable Parallel Process-Management
Interface for Extreme-Scale Systems".
"""

import socket

LONGEST_LINE = 1 << 16
"""Bytes."""
_VALUE, _KEY, _NAME = 1024, 64, 256  # the lengths that MPICH's own mpiexec allows
_BOARD = "course"


class JobBoard:
    """Serves the ranks of one job while they join.

    Attributes:
        sockets: this side's, in rank order; whoever waits for one to be readable calls `serve`.
    """

    def __init__(self, ranks: int) -> None:
        pairs = [socket.socketpair() for _ in range(ranks)]
        self.sockets = [own for own, _ in pairs]
        self._theirs = [other for _, other in pairs]
        self._came = [b""] * ranks
        self._board: dict[str, str] = {}
        self._at_the_barrier: set[int] = set()

    def environment(self, rank: int) -> tuple[dict[str, str], int]:
        """What a rank must have in its environment, and the descriptor that it must inherit."""
        descriptor = self._theirs[rank].fileno()
        told = {"PMI_FD": str(descriptor), "PMI_RANK": str(rank), "PMI_SIZE": str(len(self.sockets))}
        return told, descriptor

    def started(self) -> None:
        """All ranks have inherited their ends."""
        for one in self._theirs:
            one.close()

    def serve(self, rank: int) -> None:
        """Read what a rank asks, and answer; who asks nonsense is not served again."""
        try:
            piece = self.sockets[rank].recv(1 << 16)
            *lines, self._came[rank] = (self._came[rank] + piece).split(b"\n")
            if not piece or len(self._came[rank]) > LONGEST_LINE:
                raise ValueError
            for line in lines:
                self._answer(rank, dict(word.partition("=")[::2] for word in line.decode().split(" ")))
        except (OSError, ValueError, KeyError):
            self.sockets[rank].close()

    def close(self) -> None:
        """Carry nothing more."""
        for one in (*self.sockets, *self._theirs):
            one.close()

    def _answer(self, rank: int, asked: dict[str, str]) -> None:
        command, ranks = asked.get("cmd"), len(self.sockets)
        if command == "barrier_in":
            self._at_the_barrier.add(rank)
            if len(self._at_the_barrier) == ranks:
                self._at_the_barrier.clear()
                for everyone in range(ranks):
                    self._tell(everyone, "barrier_out")
        elif command == "put":
            self._board[asked["key"]] = asked["value"]
            self._tell(rank, "put_result rc=0 msg=success")
        elif command == "get" and asked.get("key") in self._board:
            self._tell(rank, f"get_result rc=0 msg=success value={self._board[asked['key']]}")
        elif command == "get":
            self._tell(rank, "get_result rc=-1 msg=key_not_found value=unknown")
        else:
            answers = {
                "init": "response_to_init pmi_version=1 pmi_subversion=1 rc=0",
                "get_maxes": f"maxes kvsname_max={_NAME} keylen_max={_KEY} vallen_max={_VALUE}",
                "get_my_kvsname": f"my_kvsname kvsname={_BOARD}",
                "get_appnum": "appnum appnum=0",
                "get_universe_size": f"universe_size size={ranks}",
                "finalize": "finalize_ack",
            }
            self._tell(rank, answers.get(command or "", "unknown rc=-1"))

    def _tell(self, rank: int, answer: str) -> None:
        self.sockets[rank].sendall(f"cmd={answer}\n".encode())
