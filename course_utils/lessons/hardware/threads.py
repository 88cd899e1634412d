"""How the time depends on the number of threads (figure 2 of the CS744 report).

Its text: "performance improvements of additional threads tapers off at 5 threads", on 5 cores.
"""

from collections.abc import Callable, Mapping, Sequence

from course_utils.lessons.hardware.machine_rates import using_threads
from course_utils.machine import allowed_cores
from course_utils.measuring import Compared, Measured, repeat
from course_utils.progress_bar import ProgressBar


def thread_counts(cores: int | None = None) -> list[int]:
    """Return the numbers of threads worth trying: all up to twice the cores, or powers of two if there are many."""
    cores = cores or allowed_cores()
    if cores <= 4:
        return list(range(1, 2 * cores + 1))
    doubling = [2**power for power in range((2 * cores).bit_length()) if 2**power < 2 * cores]
    return sorted({*doubling, cores, cores + 1, 2 * cores})


def time_threads(work: Callable[[], object], counts: Sequence[int] | None = None, rounds: int = 5) -> dict:
    """Measure the seconds of `work` with each number of threads by turns, so that disturbances affect all alike.

    Returns:
        number of threads → `Measured`, of `rounds` values.
    """
    counts = list(counts or thread_counts())
    seconds: dict[int, list[float]] = {threads: [] for threads in counts}
    with ProgressBar("timing different numbers of threads") as bar:
        for _ in range(rounds):
            for threads in counts:
                bar.refresh()
                with using_threads(threads):
                    seconds[threads] += repeat(work, repeats=1, warm_ups=1).values
    return {count: Measured(tuple(values)) for count, values in seconds.items()}


def plateau(times: Mapping[int, Measured]) -> int:
    """Return the smallest number of threads that no other number beats."""
    best = min(times.values(), key=lambda measured: measured.median)
    return min(count for count, own in times.items() if not Compared(best.values, own.values).first_is_faster)
