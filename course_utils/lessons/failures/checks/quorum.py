"""The check of `quorum`: who is alive by the newest report, who is behind, and who heals whom."""

from collections.abc import Iterator, Sequence

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.lessons.failures.quorum import StepReport
from course_utils.words import count

PARTS = ("the list of members", "the dict of who is healed from whom")


def by_hand(
    reports: Sequence[StepReport], now: float, timeout: float, min_replicas: int
) -> tuple[list[int], dict[int, int]]:
    """Replica by replica, with the newest report of each."""
    members, steps = [], {}
    for replica in sorted({report.replica for report in reports}):
        *_, last = sorted((report.at, report.step) for report in reports if report.replica == replica)
        if last[0] >= now - timeout:
            members.append(replica)
            steps[replica] = last[1]
    if len(members) < min_replicas:
        return [], {}
    peers = [replica for replica in members if steps[replica] == max(steps.values())]
    behind = [replica for replica in members if replica not in peers]
    return members, dict(zip(behind, peers * len(behind), strict=False))


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        label: str,
        entries: Sequence[tuple[int, int, float]],
        min_replicas: int = 1,
        now: float = 100.0,
        timeout: float = 5.0,
        key: str = "",
    ) -> Case:
        reports = [StepReport(*entry) for entry in entries]
        given = (reports, now, timeout, min_replicas)
        return Case(label, [given], [by_hand(*given)], with_comm=False, key=key, parts=PARTS)

    def drawn(replicas: int, behind: int = 0) -> Case:
        numbers = rng.permutation(np.arange(0, 5 * replicas))[:replicas]
        entries = [
            (int(number), 40 - int(rng.integers(1, 9)) * (index < behind), 100 - int(rng.integers(0, 41)) / 4)
            for index, number in enumerate(numbers)
        ]
        label = f"{count(replicas, 'report')}, {behind} of them with fewer steps"
        return case(label, [entries[index] for index in rng.permutation(replicas)])

    yield case("3 replicas that are all alive", [(0, 8, 99.0), (1, 8, 98.5), (2, 8, 99.5)])
    yield case("1 of 3 replicas is silent", [(0, 8, 99.0), (1, 8, 90.0), (2, 8, 99.5)], key="silent")
    yield case("1 of 3 replicas has fewer steps", [(0, 8, 99.0), (1, 8, 98.5), (2, 3, 99.5)], key="newcomers")
    yield case("replica 0 has fewer steps", [(0, 2, 99.0), (1, 8, 98.5), (2, 8, 99.5)], key="newcomers")
    many = [(0, 8, 99.0), (1, 3, 98.0), (2, 8, 99.0), (3, 0, 97.0), (4, 0, 99.0)]
    yield case("3 newcomers and 2 peers", many, key="newcomers")
    yield case("in no order", [many[index] for index in (3, 1, 4, 0, 2)], key="no-order")
    yield case("the silent replica has the most steps", [(0, 9, 80.0), (1, 8, 99.0), (2, 7, 99.0)], key="silent")
    yield case("a report that is as old as allowed", [(0, 8, 95.0), (1, 8, 94.75), (2, 8, 100.0)], key="timeout")
    again = [(0, 8, 99.0), (1, 9, 97.0), (1, 0, 98.0), (2, 8, 99.0)]
    yield case("a replica was started again", again, key="several-reports")
    yield case("several reports, the newest first", again[::-1], key="several-reports")
    yield case("an old report and a new one", [(1, 7, 90.0), (0, 8, 96.0), (1, 8, 98.0)], key="several-reports")
    yield case("too few are alive", [(0, 8, 99.0), (1, 8, 90.0), (2, 8, 90.0)], 2, key="too-few")
    yield case("just enough are alive", [(0, 8, 99.0), (1, 8, 90.0), (2, 7, 98.0)], 2, key="too-few")
    yield case("several reports, but too few replicas", [(0, 8, 99.0), (0, 9, 99.5)], 2, key="too-few")
    yield case("no report", [], key="too-few")
    yield case("all are silent", [(0, 8, 9.0), (1, 8, 9.0)], key="too-few")
    yield case("all are at step 0", [(0, 0, 99.0), (1, 0, 98.5), (4, 0, 99.5)])
    for behind in (0, 1, 3, 5):
        yield drawn(8, behind)
    yield in_a_row(case("3 replicas", many[:3]), case("2 replicas", many[3:]))
    yield from rejections("quorum", [([], 100.0, 5.0, 0), ([StepReport(0, 8, 99.0)], 100.0, 5.0, -1)])
    yield drawn(12, 4)


EXERCISE = Exercise(
    library="quorum",
    number=1,
    minutes=15,
    difficulty=2,
    turn="who is alive, who is behind, and who heals whom?",
    title="who takes part in the next step",
    cases=_cases,
    hints=(
        "A replica may have sent several reports. Which one describes it now, and where do you keep one report for "
        "each replica?",
        "Go through the reports in the order of `at`, and store each in a dict under its replica, so that the newest "
        "is left. Drop those with now - at > timeout. The largest step in it is that of the peers. Newcomer i gets "
        "peer i % (number of peers).",
    ),
    praise=lambda outcome: "silent replicas, newcomers, replicas that were started again, and too few of them",
)
