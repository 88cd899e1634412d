import numpy as np


def simulate(tasks):
    begins = np.zeros(len(tasks), dtype=np.int64)
    ends = np.zeros(len(tasks), dtype=np.int64)
    devices = np.array([task.device for task in tasks])
    for place, task in enumerate(tasks):
        same = ends[:place][devices[:place] == task.device]
        begins[place] = max([0, *same, *ends[list(task.after)]])
        ends[place] = begins[place] + task.nanoseconds
    return list(zip(begins, ends))
