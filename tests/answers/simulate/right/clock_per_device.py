from collections import defaultdict


def simulate(tasks):
    clock = defaultdict(int)
    spans = []
    for task in tasks:
        begin = clock[task.device]
        for other in task.after:
            if spans[other][1] > begin:
                begin = spans[other][1]
        clock[task.device] = begin + task.nanoseconds
        spans.append((begin, clock[task.device]))
    return spans
