"""ZB-H1 where it fits, else halves in place; the messages written out."""

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action
from course_utils.lessons.pipeline.puzzle.puzzle import judge
from course_utils.lessons.pipeline.send_and_receive import with_messages
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule


def beat_1f1b(puzzle):
    candidates = [zb_h1_schedule(puzzle.ranks, puzzle.micro_batches)]
    schedule = []
    for rank in range(puzzle.ranks):
        kept, forward, actions = 0, 0, []
        for k in range(puzzle.micro_batches):
            while kept < min(puzzle.ranks - rank, puzzle.memory[rank]) and forward < puzzle.micro_batches:
                actions.append(Action(FORWARD, rank, forward))
                forward, kept = forward + 1, kept + 1
            actions += [Action(INPUT, rank, k), Action(WEIGHT, rank, k)]
            kept -= 1
        schedule.append(actions)
    candidates.append(schedule)
    return min((with_messages(one) for one in candidates), key=lambda one: judge(puzzle, one).seconds)
