"""MPI, gloo and the course's ring on the same vectors: all give the sum, and a first is named where rounds agree."""

import course_utils as course
from course_utils.lessons.data_parallel.backends import backend_seconds
from course_utils.lessons.data_parallel.sentences import fastest_text


def test_three_programs_add_the_same_vectors(four_ranks: course.Ranks) -> None:
    sizes = [4, 1_004, 40_000]  # shorter than the number of ranks; a length that does not divide
    results = four_ranks.run(backend_seconds, sizes, runs=2, backend="gloo").results
    assert all(result == results[0] for result in results)  # the last rank's end, on all
    assert list(results[0]) == ["MPI", "gloo", "our ring"]
    assert all(len(runs) == 2 and min(runs) > 0 for by_size in results[0].values() for runs in by_size)


def test_a_first_is_named_only_where_it_is_faster_than_all_others() -> None:
    seconds = {"MPI": [[1.0] * 5, [2.0] * 5], "gloo": [[3.0] * 5, [1.0] * 5], "ring": [[2.0] * 5, [1.01] * 5]}
    told = "1 KB: MPI is the fastest; 1 MB: no clear difference between gloo and ring"
    assert fastest_text([1_000, 1_000_000], seconds) == told
