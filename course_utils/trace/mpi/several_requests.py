"""What requests of real and of virtual ranks share: MPI's calls on several at once.

What was given back once counts as inactive, as MPI.REQUEST_NULL does.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

UNDEFINED = -32766
"""As MPICH has it."""


class SeveralRequests:
    """Class methods of a class of requests, which have `inactive`, and `value` where they receive an object."""

    # --- what real and virtual requests differ in; places are those in the list ------------------------------------

    @classmethod
    def active_positions(cls, requests: Sequence[Any]) -> list[int]:
        """The places of those that are neither null nor given back."""
        raise NotImplementedError

    @classmethod
    def test_positions(cls, call: str, requests: Sequence[Any], all_of_them: bool) -> list[int] | None:
        """Look once: the places of the active ones that are done; None where not all, or not any, of them are."""
        raise NotImplementedError

    @classmethod
    def wait_for_all(cls, requests: Sequence[Any], statuses: list | None = None) -> None:
        """Return when all are done and given back."""
        raise NotImplementedError

    @classmethod
    def wait_for_some(cls, call: str, requests: Sequence[Any]) -> list[int]:
        """Return when any of the active ones are done, with their places; at once where none is active."""
        raise NotImplementedError

    @classmethod
    def take_back(cls, request: Any, status: Any = None) -> None:
        """Give back a request that is done."""
        raise NotImplementedError

    # --- what they share --------------------------------------------------------------------------------------------

    @classmethod
    def _take_back_all(cls, requests: Sequence[Any], positions: list[int], statuses: list | None = None) -> list[int]:
        for position, status in with_statuses(positions, statuses):
            cls.take_back(requests[position], status)
        return positions

    @classmethod
    def _take_back_first(cls, requests: Sequence[Any], ready: list[int], status: Any) -> int:
        return (cls._take_back_all(requests, ready[:1], [status]) or [UNDEFINED])[0]

    @classmethod
    def Waitall(cls, requests, statuses=None):
        cls.wait_for_all(requests, statuses)
        return True

    @classmethod
    def waitall(cls, requests, statuses=None):
        cls.wait_for_all(requests, statuses)
        return [_object_of(request) for request in requests]

    @classmethod
    def Testall(cls, requests, statuses=None):
        ready = cls.test_positions("Testall", requests, True)
        cls._take_back_all(requests, ready or [], statuses)
        return ready is not None

    @classmethod
    def testall(cls, requests, statuses=None):
        done = cls.Testall(requests, statuses)
        return done, [_object_of(request) for request in requests] if done else None

    @classmethod
    def Waitany(cls, requests, status=None):
        return cls._take_back_first(requests, cls.wait_for_some("Waitany", requests), status)

    @classmethod
    def waitany(cls, requests, status=None):
        position = cls.Waitany(requests, status)
        return position, _object_of(requests[position]) if position >= 0 else None

    @classmethod
    def Testany(cls, requests, status=None):
        ready = cls.test_positions("Testany", requests, False)
        return cls._take_back_first(requests, ready or [], status), ready is not None

    @classmethod
    def testany(cls, requests, status=None):
        position, done = cls.Testany(requests, status)
        return position, done, _object_of(requests[position]) if position >= 0 else None

    @classmethod
    def Waitsome(cls, requests, statuses=None):
        return cls._take_back_all(requests, cls.wait_for_some("Waitsome", requests), statuses) or None

    @classmethod
    def waitsome(cls, requests, statuses=None):
        return _with_objects(requests, cls.Waitsome(requests, statuses))

    @classmethod
    def Testsome(cls, requests, statuses=None):
        if not cls.active_positions(requests):
            return None
        return cls._take_back_all(requests, cls.test_positions("Testsome", requests, False) or [], statuses)

    @classmethod
    def testsome(cls, requests, statuses=None):
        return _with_objects(requests, cls.Testsome(requests, statuses))


def with_statuses(requests: Sequence[Any], statuses: list | None) -> Iterator[tuple[Any, Any]]:
    """Each with the status that the learner gave for it; None where there are too few."""
    return itertools.zip_longest(requests, (statuses or [])[: len(requests)])


def _object_of(request: Any) -> Any:
    """What a receive of an object has received; None for other requests."""
    return getattr(request, "value", None)


def _with_objects(requests: Sequence[Any], positions: list[int] | None) -> tuple[list[int] | None, list | None]:
    return positions, None if positions is None else [_object_of(requests[position]) for position in positions]
