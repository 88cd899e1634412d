"""What stands in for ranks where none run: a process beside the notebook calls functions, alone or on virtual ranks."""

from collections.abc import Callable, Sequence

from course_utils.ranks.engine.reply import Reply
from course_utils.ranks.interface import LIMIT, PATIENCE
from course_utils.ranks.offline.worker_client import WorkerTask, shared_worker
from course_utils.ranks.run import Attempt, pack_or_explain
from course_utils.ranks.virtual.virtual_mpi import reject_backend


class WorkerCalls:
    """Stands in for ranks where functions need no communicator: each call is made in the process, for itself."""

    def __init__(self, world_size: int = 4) -> None:
        """`world_size`: for how many ranks functions may be called, one after the other."""
        self.world_size = world_size

    def attempt(
        self,
        function: Callable,
        arguments: Sequence[tuple],
        *,
        with_comm: bool = False,
        backend: str | None = None,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> Attempt:
        """Call a function that may be wrong, once for each tuple of arguments; as `Ranks.attempt`."""
        given = pack_or_explain(function, function)
        calls = [(rank, given, pack_or_explain(function, own)) for rank, own in enumerate(arguments)]
        answer = shared_worker().answer(WorkerTask(calls), limit)
        left = [Reply(rank, "interrupted") for rank in range(len(answer.replies), len(arguments))]
        return Attempt.of([*answer.replies, *left], answer.cause)

    def attempt_each(
        self,
        tasks: Sequence[tuple[Callable, tuple]],
        *,
        seconds: float = 1.0,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> list[Attempt]:
        """Call functions one after the other; as `Ranks.attempt_each`."""
        functions = {id(function): pack_or_explain(function, function) for function, _ in tasks}
        calls = [(0, functions[id(function)], pack_or_explain(function, own)) for function, own in tasks]
        answer = shared_worker().answer(WorkerTask(calls, seconds=seconds), limit)
        if any(reply.kind == "lost" for reply in answer.replies):
            return []
        return Attempt.of_each(answer.replies, answer.cause)


class WorkerVirtualRanks:
    """Virtual ranks in the process, for a function that may be wrong."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size

    def attempt(
        self,
        function: Callable,
        arguments: Sequence[tuple],
        *,
        with_comm: bool = True,
        backend: str | None = None,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> Attempt:
        """Call the function on as many virtual ranks as there are tuples of arguments; as `Ranks.attempt`.

        Raises:
            CourseError: it asks for a group of torch.distributed.
        """
        reject_backend(backend)
        if not with_comm:
            return WorkerCalls(self.world_size).attempt(function, arguments, limit=limit)
        given = pack_or_explain(function, function)
        calls = [(rank, given, pack_or_explain(function, own)) for rank, own in enumerate(arguments)]
        answer = shared_worker().answer(WorkerTask(calls, together=True), limit)
        return Attempt.of(answer.replies, answer.cause)

    def attempt_each(
        self,
        tasks: Sequence[tuple[Callable, tuple]],
        *,
        seconds: float = 1.0,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> list[Attempt]:
        """Call functions that need no other rank, one after the other."""
        return WorkerCalls(self.world_size).attempt_each(tasks, seconds=seconds, limit=limit)
