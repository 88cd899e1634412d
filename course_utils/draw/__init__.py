"""Pictures of runs. Every function takes data (events, lists, numbers) and returns a Figure with an `alt_text`.

Nothing here knows where the ranks run. matplotlib is imported with the first picture, not with the package.
"""

import importlib

_HOME = {
    "timeline": "messages",
    "timelines": "messages",
    "loss_curves": "curves",
    "alpha_beta": "curves",
    "stacked_bars": "bars",
    "cores": "machine",
    "traffic": "links",
    "times_by_size": "sizes",
    "trajectories": "descent",
    "noise_line": "descent",
    "distances": "descent",
    "two_classes": "points",
    "layer_roofline": "roofs",
    "layer_times": "roofs",
    "time_by_threads": "threads",
    "between_bounds": "threads",
    "measured_bars": "measured",
    "crossings": "comparisons",
    "over_ranks": "comparisons",
    "right_and_wrong": "comparisons",
    "races": "waiting",
    "staleness": "waiting",
    "who_has_what": "waiting",
    "over_numbers": "series",
    "matrix_cuts": "cuts",
    "Cut": "cuts",
    "pipelines": "pipeline",
    "plan_and_run": "pipeline",
    "mesh": "meshes",
    "shares": "share_bars",
    "SharesPanel": "share_bars",
    "memory": "memory_bars",
    "plans": "plan_table",
    "profile": "profiles",
    "seats": "seating",
    "launchers": "launcher_table",
    "dealt": "dealing",
    "tries": "breaks",
    "starts": "restarting",
    "log_map": "logs",
    "reading": "quotations",
    "operator_cuts": "operator_boxes",
    "changed_steps": "program_strip",
    "strategies": "strategy",
    "cost_over_iterations": "strategy",
    "task_timelines": "tasks",
    "predicted_measured": "tasks",
    "Picture": "style",
}

__all__ = [*_HOME]


def __getattr__(name: str):
    if name in _HOME:
        return getattr(importlib.import_module(f"course_utils.draw.{_HOME[name]}"), name)
    raise AttributeError(f"course_utils.draw has no {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
