"""The line from a notebook to its ranks: a client of ipyparallel, whose engines they are."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import ipyparallel as ipp

from course_utils.errors import RanksGone
from course_utils.ranks.connection import POLL_SECONDS, CallProgress, Connection
from course_utils.ranks.deferred_interrupts import deferred_interrupts
from course_utils.ranks.engine.reply import Raised, Reply, from_bytes
from course_utils.ranks.processes.process_control import ProcessControl
from course_utils.ranks.processes.ranks_folder import RanksFolder


def _call_on_rank(function: str, *arguments: Any) -> Any:
    """Runs in the rank, where alone the functions of `calls` can be imported: they need MPI."""
    from course_utils.ranks.engine import calls

    return getattr(calls, function)(*arguments)


def request_introductions(client: ipp.Client, path: list[str]) -> dict[int, ipp.AsyncResult]:
    """Ask who stands behind each engine id, and put `path` on the ranks' import path."""
    return {engine: client[engine].apply_async(_call_on_rank, "introduce", path) for engine in client.ids}


class EngineConnection(Connection):
    """A client of ipyparallel that speaks of ranks, never of engine ids.

    Attributes:
        client: ipyparallel's own, which a learner may use as well.
        engines: the engine id of each rank, which is the rank's own number unless the controller has given it away.
        view: of all ranks in their order; its methods wait until they are done.
    """

    def __init__(
        self, folder: RanksFolder, client: ipp.Client, engines: Sequence[int], control: ProcessControl
    ) -> None:
        """`engines`: the engine id of each rank."""
        super().__init__(folder, control, len(engines))
        self.client, self.engines = client, list(engines)
        self.view: ipp.DirectView = client[self.engines]
        self.view.block = True
        self._messages = len(client.history)

    def close(self) -> None:
        """Let go of the ranks without ending them."""
        with contextlib.suppress(Exception):
            self.client.close()

    @property
    def address(self) -> str:
        """Host and port at which the controller hands out tasks."""
        settings = json.loads(self.folder.connection_file.read_text())
        return f"{settings['interface'].rpartition('/')[2]}:{settings['mux']}"

    def used_directly(self) -> bool:
        """Whether somebody has sent the ranks anything through the client since this was last asked."""
        messages, self._messages = self._messages, len(self.client.history)
        return messages != self._messages

    def submit(self, function: str, arguments: Mapping[int, tuple]) -> dict[int, Any]:
        """As every connection's."""
        if self.control.dead():
            raise RanksGone(
                f"{self.control.how_it_ended()} "
                "`ranks.restart()` starts new ranks, without the variables of the old ones."
            )
        try:
            pending = {}
            for rank, own in arguments.items():
                pending[rank] = self.client[self.engines[rank]].apply_async(_call_on_rank, function, *own)
                self._messages += 1
            return pending
        except (IndexError, ipp.error.NoEnginesRegistered) as error:
            raise RanksGone("The controller has lost a rank. `ranks.restart()` brings new ones.") from error

    def collect(self, call: CallProgress) -> bool:
        """As every connection's."""
        for rank, result in list(call.pending.items()):
            if result.ready():
                call.replies[rank] = _reply_of(rank, result)
                del call.pending[rank]
        if call.pending:
            next(iter(call.pending.values())).wait(POLL_SECONDS)
        return bool(call.pending)


def _reply_of(rank: int, result: ipp.AsyncResult) -> Reply:
    """What came back from a rank; an error of the transport is told as if the rank had raised it."""
    try:
        with deferred_interrupts() as pressed:  # to unpack it may import torch
            reply = from_bytes(result.get())
        if pressed:
            raise KeyboardInterrupt
        return reply
    except ipp.error.EngineError:
        return Reply(rank, "lost")
    except Exception as error:
        return Reply(rank, "raised", error=Raised(type(error).__name__, str(error)))
