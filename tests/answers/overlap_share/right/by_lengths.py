"""What both cover is what each covers, less what they cover together."""


def overlap_share(computing, communication):
    def merged(intervals):
        found = []
        for begin, end in sorted(intervals):
            if found and begin <= found[-1][1]:
                found[-1][1] = max(found[-1][1], end)
            else:
                found.append([begin, end])
        return found

    def length(intervals):
        return sum(end - begin for begin, end in merged(intervals))

    computing, communication = list(computing), list(communication)
    both = length(computing) + length(communication) - length(computing + communication)
    return both / length(communication) if length(communication) else 0.0
