"""The line from a notebook to its ranks: a client of ipyparallel, whose engines they are."""

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ipyparallel as ipp

from course_utils.errors import RanksGone
from course_utils.ranks.connection import POLL_SECONDS, CallProgress, Connection
from course_utils.ranks.deferred_interrupts import deferred_interrupts
from course_utils.ranks.direct_requests import DirectRequest
from course_utils.ranks.ending import STOPPED_BY_USER, BrokenOff, Ending
from course_utils.ranks.engine.reply import OWN_REQUEST, Raised, Reply, from_bytes
from course_utils.ranks.processes.process_control import ProcessControl
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.trace.activity import IDLE, TESTING, WAITING

_LOOK_SECONDS = 0.2
"""Between two looks at tasks that the controller deals out."""
_STOP_SECONDS = 10.0
"""For so long tasks that were begun are interrupted, one after the other."""


def _call_on_rank(function: str, *arguments: Any) -> Any:
    """Runs in the rank, where alone the functions of `calls` can be imported: they need MPI."""
    from course_utils.ranks.engine import calls

    return getattr(calls, function)(*arguments)


def request_introductions(client: ipp.Client, path: list[str]) -> dict[int, ipp.AsyncResult]:
    """Ask who stands behind each engine id, and put `path` on the ranks' import path."""
    return {engine: _own_view(client, engine).apply_async(_call_on_rank, "introduce", path) for engine in client.ids}


def _own_view(client: ipp.Client, engine: int) -> ipp.DirectView:
    """What the course's own requests go through."""
    return client.direct_view(engine, label=OWN_REQUEST)


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
        self._own_views = [_own_view(client, engine) for engine in self.engines]

    def close(self) -> None:
        """Let go of the ranks without ending them."""
        with contextlib.suppress(Exception):
            self.client.close()

    @property
    def address(self) -> str:
        """Host and port at which the controller hands out tasks."""
        settings = json.loads(self.folder.connection_file.read_text())
        return f"{settings['interface'].rpartition('/')[2]}:{settings['mux']}"

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
                pending[rank] = self._own_views[rank].apply_async(_call_on_rank, function, *own)
            return pending
        except (IndexError, ipp.error.NoEnginesRegistered) as error:
            raise RanksGone("The controller has lost a rank. `ranks.restart()` brings new ones.") from error

    def wait_for_tasks(self, result: ipp.AsyncResult) -> CallProgress:
        """Wait for tasks of which nobody knows which rank gets the next; the stop button takes back those not begun."""
        call = CallProgress({})
        try:
            while not result.wait(_LOOK_SECONDS) and not (dead := self.control.dead()):
                pass
            if not result.ready():
                call.cause, call.lost = BrokenOff(Ending.RANK_ENDED, self.control.how_it_ended()), dead
        except BaseException as error:
            call.cause = STOPPED_BY_USER
            with deferred_interrupts():
                self._stop_tasks(call, result)
            if not isinstance(error, KeyboardInterrupt):  # see `wait_for`
                raise
        return call

    def _stop_tasks(self, call: CallProgress, result: ipp.AsyncResult) -> None:
        with contextlib.suppress(Exception):
            self.client.abort(result.msg_ids, block=False)
        deadline = time.monotonic() + _STOP_SECONDS
        while not result.wait(_LOOK_SECONDS) and time.monotonic() < deadline:
            for rank in range(self.world_size):
                activity = self.control.activity(rank)
                if activity.state != IDLE:
                    text = activity.text if activity.state in (WAITING, TESTING) else None
                    call.replies.setdefault(rank, Reply(rank, "interrupted", waiting=text))
                    self.control.interrupt(rank)

    def collect(self, call: CallProgress) -> bool:
        """As every connection's."""
        for rank, result in list(call.pending.items()):
            if result.ready():
                call.replies[rank] = _reply_of(rank, result)
                del call.pending[rank]
        if call.pending:
            next(iter(call.pending.values())).wait(POLL_SECONDS)
        return bool(call.pending)


def _reply_of(rank: int, result: ipp.AsyncResult | DirectRequest) -> Reply:
    """What came back from a rank; an error of the transport is told as if the rank had raised it."""
    if isinstance(result, DirectRequest):
        return result.reply(rank)
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
