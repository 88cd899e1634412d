"""Refused with: An event begins and ends within another one: when does the longer one end?"""


def overlap_share(computing, communication):
    def union(events):
        joined = []
        for begin, end in sorted(events):
            if joined and begin <= joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((begin, end))
        return joined

    busy, sent = union(computing), union(communication)
    total = sum(end - begin for begin, end in sent)
    if total == 0:
        return 0.0
    return sum(max(0, min(b, d) - max(a, c)) for a, b in sent for c, d in busy) / total
