"""What a GPU waits for within a training step: profiled here where there is one, otherwise as it was recorded."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.gpu_seats import own_seat
from course_utils.lessons.gpu_nodes.ladder import QUICK, Climb, Trainer
from course_utils.lessons.gpu_nodes.ladder import RECORDED as LADDER_RECORDED
from course_utils.lessons.gpu_nodes.product_rate import machine_text
from course_utils.lessons.profiling.chrome_trace import read_trace
from course_utils.lessons.profiling.intervals import Interval
from course_utils.lessons.profiling.lanes import Lanes, lanes_of
from course_utils.lessons.profiling.record_profiles import Step, profile_ranks

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

RUNGS = dict(zip(("one launch for each kernel", "one launch: a CUDA graph"), list(QUICK)[-2:], strict=True))
"""How kernels are launched → the rung of lesson 13's ladder that launches them so."""
RECORDED = Path(__file__).parent / "recorded"


def rung_step(rung: str) -> Step:
    """For `profile_ranks`: the step of a rung of `QUICK`, on this rank's GPU."""
    return Trainer(QUICK[rung]).step


def profile_launches(ranks: "Ranks") -> tuple[dict[str, Lanes], str]:
    """Profile a step of each of `RUNGS` on rank 0's GPU; where there is none, read what was recorded.

    Returns:
        how kernels are launched → the GPU's lanes, from 0 on; and where they were recorded.
    """
    if own_seat().gpus:
        found = {
            rung_name: profile_ranks(ranks, rung_step, rung, warm_up=4, world_size=1)
            for rung_name, rung in RUNGS.items()
        }
        return {rung_name: from_zero(profile.lanes[0]) for rung_name, profile in found.items()}, machine_text()
    traces = {rung_name: read_trace(RECORDED / f"{_file_of(rung)}.json.gz") for rung_name, rung in RUNGS.items()}
    climbed = Climb.read(LADDER_RECORDED)
    lanes = {rung_name: from_zero(lanes_of(trace)[0]) for rung_name, trace in traces.items()}
    return lanes, f"recorded on {climbed.date}: {climbed.machine}"


def from_zero(lanes: Lanes) -> Lanes:
    """Move a rank's lanes so that its steps begin at 0: a GPU comes to them at a time that means nothing."""

    def moved(times: Sequence[Interval]) -> list[Interval]:
        return [(begin - lanes.begin, end - lanes.begin) for begin, end in times]

    lists = {name: moved(getattr(lanes, name)) for name in ("computing", "communication", "each_step", "copies")}
    phases = {name: moved(times) for name, times in lanes.phases.items()}
    return replace(lanes, begin=0.0, end=lanes.seconds, phases=phases, **lists)


def _file_of(rung: str) -> str:
    return rung.strip("+ ").replace(" ", "-")
