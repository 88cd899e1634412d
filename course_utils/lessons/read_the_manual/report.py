"""Lesson 15's part of `course.report()`: the capstone, budget beside use."""

from course_utils.lessons.read_the_manual.capstone.kept_results import kept
from course_utils.reporting.page import ReportPart, Section
from course_utils.words import count


def part(latest: bool) -> ReportPart:
    """Return the latest capstone within all budgets, or else the latest; `latest` changes nothing."""
    results = kept()
    if not results:
        return ReportPart()
    from course_utils.lessons.read_the_manual.capstone.pictures import budget_bars  # brings matplotlib

    within = [result for result in results if not result.misses()]
    text = f"{count(len(results), 'training run')} judged, {len(within)} within all budgets."
    return ReportPart(sections=(Section("Capstone. Budget and use", budget_bars((within or results)[-1]), text),))
