"""Which parts of which saved pieces make up a new piece: a checkpoint of some ranks, loaded by more or fewer."""

from collections.abc import Sequence

from course_utils.errors import CourseError


def reshard(saved: Sequence[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int, int]]:
    """Return what to read from which file, so that all of it together is numbers `begin` to `end`.

    A vector has been saved in pieces. File f holds its numbers from `saved[f][0]` up to, but not
    including, `saved[f][1]`. Together the files hold each number of the vector once. A file may
    hold none, and the files need not be in the order of the vector.

    Args:
        saved: the (begin, end) of each file.
        begin, end: the numbers wanted, from `begin` up to, but not including, `end`.

    Returns:
        The reads, in the order of the vector, as (file, first, last). Such a read takes the
        numbers `first` up to, but not including, `last` of this file, counted from the start of
        the file. No read is empty.

    Raises:
        CourseError: some of the numbers wanted are in no file.
    """
    reads = []
    for file, (first, last) in sorted(enumerate(saved), key=lambda item: item[1]):
        # What a file and the new piece have in common begins at the later begin and ends at the earlier end.
        common = max(first, begin), min(last, end)
        if common[0] < common[1]:
            reads.append((file, common[0] - first, common[1] - first))
    if sum(last - first for _, first, last in reads) < end - begin:
        raise CourseError(f"The files do not hold all numbers from {begin} to {end}.")
    return reads
