"""Refused with: Two things at once: does their time count twice?"""


def idle_share(computing, communication, begin, end):
    def merged(intervals):
        found = []
        for a, b in sorted(intervals):
            if found and a <= found[-1][1]:
                found[-1][1] = max(found[-1][1], b)
            else:
                found.append([a, b])
        return found

    if end <= begin:
        return 0.0
    busy = sum(b - a for a, b in merged(computing)) + sum(b - a for a, b in merged(communication))
    return 1 - busy / (end - begin)
