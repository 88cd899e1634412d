"""Rounds with processors enough, on a copy that gets smaller; it prints them."""


def brent_bounds(needs, processors):
    waiting = {task: set(others) for task, others in needs.items()}
    rounds = 0
    while waiting:
        ready = {task for task, others in waiting.items() if not others}
        print("round", rounds, "runs", len(ready))
        waiting = {task: others - ready for task, others in waiting.items() if task not in ready}
        rounds += 1
    share = len(needs) / processors
    return (share if share > rounds else rounds), share + rounds
