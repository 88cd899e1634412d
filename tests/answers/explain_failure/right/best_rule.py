"""Lines outside: each line's first rule; the smallest place of all wins."""

import re

from course_utils.lessons.gpu_nodes.failures.explain import CONSEQUENCE, ERROR, RULES, UNKNOWN, Cause, beside, in_time


def place_of(line, log):
    for place, rule in enumerate(RULES):
        match = re.search(rule.shows, line)
        if match and (not rule.beside or beside(rule, match, log)):
            return place
    return len(RULES)


def explain_failure(log):
    lines = in_time(log.splitlines())
    places = [place_of(line, log) for line in lines]
    best = min(places, default=len(RULES))
    if best < len(RULES):
        return Cause(RULES[best].cause, (lines[places.index(best)],))
    errors = list(filter(ERROR.search, lines))
    causes = [line for line in errors if CONSEQUENCE.search(line) is None]
    return Cause(UNKNOWN, tuple((causes if causes else errors if errors else lines[-1:])[:3]))
