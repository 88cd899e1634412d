"""With the course's own functions for intervals."""

from course_utils.lessons.profiling.intervals import difference, length


def idle_share(computing, communication, begin, end):
    if end <= begin:
        return 0.0
    return length(difference([(begin, end)], [*computing, *communication])) / (end - begin)
