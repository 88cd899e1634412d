"""Requests that reach the ranks through ipyparallel itself, from a learner's view or client: told as calls are.

On a rank they are recorded (`engine.calls.RecordedRequest`). Here `AsyncResult.wait` and `get`, on which all that
blocks in ipyparallel comes down, see them through: a deadlock and the stop button break them off, and an error names
rank and line. That holds for every client of this process whose engines the ranks are.
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import ipyparallel as ipp

from course_utils.errors import RankError
from course_utils.ranks.ending import BrokenOff, ending_of
from course_utils.ranks.engine.reply import Raised, Reply
from course_utils.ranks.failure_report import describe

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

_AT_ONCE = 0.05
"""Seconds within which most requests are done, and need not be watched."""
ABOUT_THE_RANK = "course"
"""Under this name an error says what the rank did, beside what ipyparallel says of the engine."""


class RequestFailed(RankError, ipp.error.CompositeError):
    """A request of ipyparallel's own did not come to a good end; `except ipp.error.CompositeError` catches it, too."""

    def __init__(self, text: str, ending: str, remote: BaseException | None) -> None:
        Exception.__init__(self, text)
        self.ending, self.msg = ending, text
        own = [getattr(remote, name, None) for name in ("ename", "evalue", "traceback", "engine_info")]
        self.ename, self.evalue, self.traceback, self.engine_info = own
        self.elist = getattr(remote, "elist", None) or [tuple(own)]

    def __str__(self) -> str:
        return str(self.msg)

    def _render_traceback_(self) -> list[str]:
        return RankError(str(self))._render_traceback_()


class DirectRequest:
    """One message to one engine, as `Connection.wait_for` wants what it waits for."""

    def __init__(self, result: ipp.AsyncResult) -> None:
        self._result = result

    def ready(self) -> bool:
        """Whether its reply is here."""
        return self._result.ready()

    def wait(self, seconds: float) -> None:
        """Wait for so long, or until its reply is here."""
        self._result.wait(seconds)

    def reply(self, rank: int) -> Reply:
        """What the rank did."""
        error = self._result.exception()
        return Reply(rank, "returned") if error is None else (reply_in(rank, error) or Reply(rank, "lost"))


def reply_in(rank: int, error: BaseException) -> Reply | None:
    """What an error of ipyparallel's says that a rank did; None where it says nothing."""
    about = _engine_info(error).get(ABOUT_THE_RANK)
    if not about:
        return None
    raised = Raised(about["type"], about["message"], about["line"]) if about["type"] else None
    return Reply(rank, about["kind"], error=raised, waiting=about["waiting"])


def _engine_info(error: BaseException | None) -> dict:
    """What an error says of its engine; of several errors, the first."""
    several = getattr(error, "elist", None)
    return (several[0][3] if several else getattr(error, "engine_info", None)) or {}


def requests_of(result: ipp.AsyncResult, engines: Sequence[int]) -> dict[int, DirectRequest] | None:
    """For each rank its message; None where a rank may get several, or nobody knows yet which rank gets which."""
    targets, parts = result._targets, result.split()
    if not isinstance(targets, list) or len(targets) != len(parts) or len(set(targets)) != len(targets):
        return None
    if not set(targets) <= set(engines):
        return None
    return {engines.index(engine): DirectRequest(part) for engine, part in zip(targets, parts, strict=True)}


def _replies(result: ipp.AsyncResult, engines: Sequence[int]) -> list[Reply]:
    """What the ranks of a result did, one reply each: of several the first that went wrong."""
    replies: dict[int, Reply] = {}
    for part, engine in zip(result.split(), result._targets or [None] * len(result.msg_ids), strict=False):
        error = part.exception() if part.ready() else None
        engine = _engine_info(error).get("engine_id", engine)
        if engine not in engines:
            continue
        rank = engines.index(engine)
        if error is None:
            replies.setdefault(rank, Reply(rank, "returned"))
        elif (reply := reply_in(rank, error)) and replies.get(rank, reply).kind == "returned":
            replies[rank] = reply
        elif reply:
            replies.setdefault(rank, reply)
    return [replies[rank] for rank in sorted(replies)]


_ranks: "list[Ranks]" = []
"""The ranks of this process whose requests are seen through, the latest last."""


def see_through(ranks: "Ranks") -> None:
    """See all requests through that clients of this process send these ranks."""
    if not _ranks:
        _wrap_results()
    _ranks[:] = [*(other for other in _ranks if other is not ranks and other.connection), ranks]


def _ranks_behind(client: Any) -> "Ranks | None":
    key = getattr(getattr(client, "session", None), "key", None)
    return next((ranks for ranks in reversed(_ranks) if key and ranks.session_key == key), None)


def _wrap_results() -> None:
    plain_wait, plain_get = ipp.AsyncResult.wait, ipp.AsyncResult.get

    @functools.wraps(plain_wait)
    def wait(self: ipp.AsyncResult, timeout: float | None = -1, return_when: Any = None) -> Any:
        forever = timeout is None or timeout < 0
        ranks = _ranks_behind(self._client) if forever and return_when is None and not self._ready else None
        if ranks is not None and not plain_wait(self, _AT_ONCE):
            ranks.see_through(self)
        ready = plain_wait(self, timeout, return_when)
        if self._ready:
            _forget_broadcast(self)
        return ready

    @functools.wraps(plain_get)
    def get(self: ipp.AsyncResult, *args: Any, **kwargs: Any) -> Any:
        try:
            return plain_get(self, *args, **kwargs)
        except ipp.error.RemoteError as error:
            failed = _explained(self, error)
            if failed is None:
                raise
        raise failed

    ipp.AsyncResult.wait, ipp.AsyncResult.get = wait, get


def _forget_broadcast(result: ipp.AsyncResult) -> None:
    """Take a broadcast that is done from the client's outstanding messages, where ipyparallel leaves it for ever.

    Its parts, one for each engine, have its name and that of the engine behind it.
    """
    names = {name.rpartition("_")[0] for name in result.msg_ids}
    result._client.outstanding.difference_update(names)


def _explained(result: ipp.AsyncResult, error: BaseException) -> RequestFailed | None:
    """An error as the course tells it; None where it knows nothing of it."""
    ranks = None if isinstance(error, RankError) else _ranks_behind(result._client)
    if ranks is None:
        return None
    replies = _replies(result, ranks.engines)
    cause: BrokenOff | None = getattr(result, "broken_off", None)
    if not (text := describe(replies, cause)):
        return None
    return RequestFailed(text, ending_of((reply.kind for reply in replies), cause), error)
