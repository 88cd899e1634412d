"""Records what happens on each rank: messages, collectives and phases."""

from course_utils.trace.events import Event, bytes_sent, count_rounds, pair_messages, phase_seconds

__all__ = ["Event", "bytes_sent", "count_rounds", "pair_messages", "phase", "phase_seconds"]


def __getattr__(name: str):
    if name == "phase":
        from course_utils.trace.recorder import phase

        return phase
    raise AttributeError(name)
