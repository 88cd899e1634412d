"""Refused with: Two messages at once: does their time count twice?"""


def overlap_share(computing, communication):
    def merged(intervals):
        found = []
        for begin, end in sorted(intervals):
            if found and begin <= found[-1][1]:
                found[-1][1] = max(found[-1][1], end)
            else:
                found.append([begin, end])
        return found

    busy, sent = merged(computing), merged(communication)
    whole = sum(end - begin for begin, end in communication)
    hidden = sum(max(0, min(b, d) - max(a, c)) for a, b in busy for c, d in sent)
    return hidden / whole if whole else 0.0
