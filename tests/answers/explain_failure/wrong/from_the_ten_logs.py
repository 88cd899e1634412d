"""Refused with: What in that line belongs to the failure, and what to the machine it happened on?"""

import re

from course_utils.lessons.gpu_nodes.failures.explain import CONSEQUENCE, ERROR, RULES, UNKNOWN, Cause, beside, in_time

SIGNS = {
    "address in use": "port: 40925",
    "different software": "numpy 1.25.2",
    "no shared files": "/mnt/runs/checkpoint.pt'",
    "NCCL interface": "set by environment to ib9",
}


def explain_failure(log):
    lines = in_time(log.splitlines())
    for cause, sign in SIGNS.items():
        if sign in log:
            shown = [rule.shows for rule in RULES if rule.cause == cause]
            return Cause(cause, tuple(line for line in lines if any(re.search(one, line) for one in shown))[:1])
    for rule in RULES:
        for line in lines:
            found = re.search(rule.shows, line)
            if found and rule.cause not in SIGNS and not rule.beside:
                return Cause(rule.cause, (line,))
    errors = [line for line in lines if ERROR.search(line)]
    first = [line for line in errors if not CONSEQUENCE.search(line)]
    return Cause(UNKNOWN, tuple((first or errors or lines[-1:])[:3]))
