"""Refused with: Which words of the log do your rules overlook?"""

from course_utils.lessons.gpu_nodes.failures.explain import CONSEQUENCE, ERROR, UNKNOWN, Cause, in_time

WORDS = {
    "No module named 'numpy._": "different software",
    "[Errno 2] No such file": "no shared files",
    "out of memory: Killed": "out of memory",
    "Duplicate GPU": "wrong GPU binding",
    "no socket interface": "NCCL interface",
    "mismatch between": "mismatched collectives",
    "EADDRINUSE": "address in use",
    "No route to host": "unreachable node",
    "clients joined": "wrong rank count",
    "TIME LIMIT": "time limit",
}


def explain_failure(log):
    lines = in_time(log.splitlines())
    for word, cause in WORDS.items():
        for line in lines:
            if word.lower() in line.lower() and (cause != "no shared files" or "checkpoint.pt" in log):
                return Cause(cause, (line,))
    errors = [line for line in lines if ERROR.search(line)]
    first = [line for line in errors if not CONSEQUENCE.search(line)]
    return Cause(UNKNOWN, tuple((first or errors or lines[-1:])[:3]))
