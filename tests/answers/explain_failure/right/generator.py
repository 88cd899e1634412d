"""A generator of all fitting pairs, of which the first is taken."""

import re

from course_utils.lessons.gpu_nodes.failures.explain import CONSEQUENCE, ERROR, RULES, UNKNOWN, Cause, beside, in_time


def fitting(lines, log):
    for rule in RULES:
        pattern = re.compile(rule.shows)
        for line in lines:
            match = pattern.search(line)
            if match and (rule.beside == "" or beside(rule, match, log)):
                yield Cause(rule.cause, (line,))


def explain_failure(log):
    lines = in_time(log.split("\n"))
    unknown = [one for one in lines if ERROR.search(one) and not CONSEQUENCE.search(one)]
    if not unknown:
        unknown = [one for one in lines if ERROR.search(one)] or lines[-1:]
    return next(fitting(lines, log), Cause(UNKNOWN, tuple(unknown[:3])))
