"""Sorts by time itself, and looks for what is beside by itself."""

import re

from course_utils.lessons.gpu_nodes.failures.explain import CONSEQUENCE, ERROR, RULES, TIME, UNKNOWN, Cause


def when(log):
    time = ("", "", "")
    for line in log.splitlines():
        match = TIME.search(line)
        time = match.groups() if match else time
        if not line.isspace() and line:
            yield time, line


def explain_failure(log):
    lines = [line for _, line in sorted(when(log), key=lambda pair: pair[0])]
    for rule in RULES:
        for line in lines:
            if match := re.search(rule.shows, line):
                if rule.beside:
                    pattern = rule.beside.replace("{0}", re.escape(match.group(1)))
                    if not re.search(pattern, log):
                        continue
                return Cause(name=rule.cause, lines=(line,))
    found = [line for line in lines if ERROR.search(line) and not CONSEQUENCE.search(line)]
    found = found or [line for line in lines if ERROR.search(line)] or lines[-1:]
    return Cause(name=UNKNOWN, lines=tuple(found[:3]))
