"""As text, which the library reads."""

from course_utils.lessons.pipeline.actions import parse_schedule


def gpipe_schedule(ranks, micro_batches):
    lines = []
    for rank in range(ranks):
        lines.append(
            " ".join([f"{rank}F{k}" for k in range(micro_batches)] + [f"{rank}B{k}" for k in range(micro_batches)])
        )
    return parse_schedule(lines)
