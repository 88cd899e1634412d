"""Refused with: What is to be said where no rule fits?"""

import re

from course_utils.lessons.gpu_nodes.failures.explain import CONSEQUENCE, ERROR, RULES, UNKNOWN, Cause, beside, in_time


def explain_failure(log):
    lines = in_time(log.splitlines())
    for rule in RULES:
        for line in lines:
            found = re.search(rule.shows, line)
            if found is None:
                continue
            if rule.beside and not beside(rule, found, log):
                continue
            return Cause(rule.cause, (line,))
    errors = [line for line in lines if ERROR.search(line)]
    first = [line for line in errors if not CONSEQUENCE.search(line)]
    return Cause("time limit", tuple((first or errors or lines[-1:])[:3]))
