"""Steps that were profiled on several ranks, whether the course profiled them or torch.profiler's files were read.

Each rank's trace is a Chrome trace as torch.profiler writes it, with one thing more: "course", with the rank, its
machine, the microseconds to add to its times to have all ranks on one clock, and by how many that may be wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from course_utils.lessons.profiling.chrome_trace import Trace, write_trace
from course_utils.lessons.profiling.foreign.profile_notes import Note, NoteKind
from course_utils.lessons.profiling.lanes import Lanes, lanes_of
from course_utils.lessons.profiling.merged_trace import merge
from course_utils.lessons.profiling.one_clock import ClockCheck, ClockState, on_one_clock
from course_utils.lessons.profiling.profile_findings import Findings, findings
from course_utils.lessons.profiling.profiled_hardware import ProfiledHardware, hardware_of


@dataclass(frozen=True)
class Profile:
    """Steps that were profiled on several ranks.

    Attributes:
        rank_traces: what torch.profiler wrote on each rank, in their order.
        results: for each rank what its steps returned; empty for traces that were read from files.
        notes: what a reader of the numbers has to know about where they are from.
    """

    rank_traces: list[Trace]
    results: list[list[Any]] = field(default_factory=list)
    notes: tuple[Note, ...] = ()

    @property
    def ranks(self) -> list[int]:
        """The ranks' numbers; of traces that were read from files, some may be missing."""
        return [trace["course"]["rank"] for trace in self.rank_traces]

    @property
    def is_one_run(self) -> bool:
        """Whether nothing contradicts that the ranks are of one run, so that they can be compared."""
        return all(note.kind not in (NoteKind.SEVERAL_RUNS, NoteKind.HOURS_APART) for note in self.notes)

    @cached_property
    def _on_one_clock(self) -> tuple[list[Trace], ClockCheck]:
        if not self.is_one_run:
            return list(self.rank_traces), ClockCheck(ClockState.UNKNOWN)
        return on_one_clock(self.rank_traces)

    @property
    def clocks(self) -> ClockCheck:
        """What is known of the ranks' clocks, and how far off they may be."""
        return self._on_one_clock[1]

    @cached_property
    def trace(self) -> Trace:
        """All ranks on one clock, which is as right as it can be made: one Chrome trace."""
        return merge(self._on_one_clock[0])

    @cached_property
    def lanes(self) -> list[Lanes]:
        """When each rank computed and communicated."""
        return lanes_of(self.trace)

    @cached_property
    def hardware(self) -> ProfiledHardware:
        """The machines and GPUs that it was recorded on, as far as the files tell."""
        return hardware_of(self.rank_traces)

    @cached_property
    def findings(self) -> Findings:
        """Where the time went, who is waited for, and what the profile looks like."""
        return findings(self.trace, self.lanes, self.clocks, self.is_one_run)

    def lanes_by_clocks(self, ahead: Sequence[float]) -> list[Lanes]:
        """The lanes as they would look if each rank's clock were this many seconds ahead, and nobody knew."""
        wrong = [
            trace | {"course": trace["course"] | {"shift": trace["course"]["shift"] + 1e6 * seconds}}
            for trace, seconds in zip(self.rank_traces, ahead, strict=True)
        ]
        return lanes_of(merge(wrong))

    def write(self, path: str | Path) -> Path:
        """Write the merged trace, for Perfetto or chrome://tracing; `.gz` at the end of the name packs it."""
        return write_trace(self.trace, path)

    def write_for_tensorboard(self, folder: str | Path) -> list[Path]:
        """Write a file for each rank, named as TensorBoard looks for it; it merges them itself.

        Those of an earlier profile in the same folder are replaced.
        """
        names = [f"rank{rank}.pt.trace.json" for rank in self.ranks]
        return [write_trace(trace, Path(folder) / name) for name, trace in zip(names, self.rank_traces, strict=True)]
