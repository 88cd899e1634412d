"""Refused with: Which of the lines was written first: in the file, or in time?"""

import re

from course_utils.lessons.gpu_nodes.failures.explain import CONSEQUENCE, ERROR, RULES, UNKNOWN, Cause, beside


def explain_failure(log):
    lines = [line for line in log.splitlines() if line.strip()]
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
    return Cause(UNKNOWN, tuple((first or errors or lines[-1:])[:3]))
