"""Each update makes everybody's weights one older; a fetch makes a worker's young again."""


def measure_staleness(log):
    ages, found = {}, []
    for what, worker in log:
        if what == "fetch":
            ages[worker] = 0
        else:
            found.append(ages[worker])
            for other in ages:
                ages[other] += 1
    return found
