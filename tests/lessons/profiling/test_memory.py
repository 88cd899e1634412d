"""The memory of a step, read in a trace: made here on the processor, written by hand, and recorded on an H100."""

import gzip
import json
import statistics
import weakref

import pytest
import torch

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.replicas import unsynchronised
from course_utils.lessons.gpu_nodes.ladder import IMAGES, Climb
from course_utils.lessons.gpu_nodes.ladder import RECORDED as LADDER_RECORDED
from course_utils.lessons.overlap.step_times import small_vgg
from course_utils.lessons.profiling import sentences
from course_utils.lessons.profiling.chrome_trace import problems, read_trace
from course_utils.lessons.profiling.gpu_steps import RECORDED
from course_utils.lessons.profiling.intervals import length
from course_utils.lessons.profiling.lanes import lanes_of
from course_utils.lessons.profiling.pictures import memory
from course_utils.lessons.profiling.record_profiles import profile_memory, training_step
from course_utils.lessons.profiling.step_memory import MEMORY, StepMemory, memory_of_step, read_memory
from course_utils.syllabus import ROOT
from course_utils.trace.recorder import phase

H100 = json.loads(gzip.decompress((ROOT / "tests/gpu/results/2026-11-27-h100-memory.json.gz").read_bytes()))


def note(at: float, total: int, taken: int, device: tuple[int, int] = (0, -1), tid: int = 1) -> dict:
    """Bytes that were allocated, or freed, as torch.profiler writes it."""
    kind, number = device
    args = {"Total Allocated": total, "Bytes": taken, "Device Type": kind, "Device Id": number}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": tid, "ts": at} | {
        "args": args
    }


def event(name: str, begin: float, end: float, cat: str = "cpu_op", tid: int = 1) -> dict:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": begin, "dur": end - begin}


STEP = event("ProfilerStep#0", 1000, 2000, "user_annotation")
PHASES = [event("forward", 1000, 1400, "phases"), event("backward", 1400, 1800, "phases")]
PHASES += [event("communication", 1800, 1900, "phases"), event("step", 1900, 2000, "phases")]


def on_processor(*at: float) -> StepMemory:
    """Of 700 bytes that an earlier profile has left and 100 of weights, with 100 more at each of these moments."""
    notes = [note(10, 800, 100), *(note(moment, 900 + 100 * number, 100) for number, moment in enumerate(at))]
    return read_memory({"traceEvents": [*notes[::-1], STEP, *PHASES]})


def test_bytes_of_earlier_profiles_do_not_count_on_a_processor() -> None:
    held = on_processor(1100, 1500)
    assert held.device == "the processor" and held.seconds == pytest.approx(1e-3)
    assert held.allocated == [100, 200, 300] and held.times == pytest.approx([0, 100e-6, 500e-6])
    assert held.before == 700 and held.peak == 300 and held.last_taken == 100
    assert held.peak_time == pytest.approx(500e-6)
    assert [held.at(moment) for moment in (0, 99e-6, 101e-6, 1e-3)] == [100, 100, 200, 300]
    assert held.phases["backward"] == [pytest.approx((400e-6, 800e-6))]


@pytest.mark.parametrize(
    ("moment", "letter", "place", "words"),
    [
        (1100, "a", ("forward", "early"), "early in the forward pass"),
        (1300, "b", ("forward", "late"), "late in the forward pass"),
        (1450, "b", ("backward", "early"), "early in the backward pass"),
        (1700, "c", ("backward", "late"), "late in the backward pass"),
        (1850, "c", ("communication", "late"), "late in communication"),
        (1910, "d", ("step", "early"), "early in the optimizer's step"),
    ],
)
def test_the_title_says_in_which_phase_most_is_allocated(moment, letter, place, words) -> None:
    held = on_processor(moment)
    assert (sentences.peak_letter(held), sentences.peak_place(held)) == (letter, place)
    assert sentences.memory_text(held).startswith(f"The most memory is needed {words}: 200 B")


def test_a_gpu_counts_where_the_step_uses_it() -> None:
    notes = [note(1100 + moment, 9000, 5000) for moment in range(5)]
    notes += [note(1200, 800, 400, (1, 0)), note(1300, 500, -300, (1, 0))]
    notes += [note(900, 70, 70, (1, 1)), note(1250, 90, 20, (1, 1))]
    operators = [event("aten::mm", 1150, 1350), event("aten::empty", 1199, 1201), event("aten::add", 1190, 1210, tid=2)]
    held = read_memory({"traceEvents": [*notes, STEP, *operators]})
    assert held.device == "GPU 0" and held.allocated == [400, 800, 500], "all that its allocator has given out"
    assert held.operator == "aten::mm" and held.phases == {}
    text = sentences.memory_text(held)
    assert text == "The most memory is needed after 20% of the step: 800 B, of which aten::mm has just taken 400 B"
    assert sentences.kept_text(held) == "Memory of GPU 0" and sentences.peak_letter(held) == "a"


def test_bytes_that_were_held_before_the_profile_do_not_count_on_a_gpu() -> None:
    """An earlier cell has left 1,000 bytes; the step's network takes 100, and the step 30 more."""
    gpu = (1, 0)
    notes = [note(10, 1100, 100, gpu), note(1100, 1130, 30, gpu), note(1500, 1100, -30, gpu)]
    held = read_memory({"traceEvents": [*notes, STEP, *PHASES]})
    assert (held.device, held.before, held.allocated) == ("GPU 0", 1000, [100, 130, 100])


def test_what_earlier_calls_have_left_is_given_back_first(monkeypatch) -> None:
    cleared: list[bool] = []

    class Kept:
        """Refers to itself, so only the collector frees it."""

        def __init__(self) -> None:
            self.own, self.numbers = self, torch.ones(1000)

    leftover = weakref.ref(Kept().numbers)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", lambda name: None)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: None)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: cleared.append(True), raising=False)
    profile_memory(lambda: lambda: torch.ones(1))
    assert leftover() is None and cleared == [True]


@pytest.mark.parametrize(("taken", "is_seen"), [(500, True), (100_000, False)])
def test_the_sentence_on_zero_grad_says_whether_the_picture_shows_it(taken, is_seen) -> None:
    """300 bytes of gradients go in two pieces, then the backward pass takes memory."""
    notes = [note(1100, taken, taken), note(1401, taken - 100, -100), note(1402, taken - 300, -200)]
    held = read_memory({"traceEvents": [*notes, note(1500, taken, 300), note(1600, taken - 400, -400), STEP, *PHASES]})
    assert held.released_from(400e-6) == 300 and held.released_from(500e-6) == 400 and held.released_from(0) == 0
    text = sentences.zero_grad_text(held)
    assert "300 B" in text and ("The drop between" in text) == is_seen and ("too little" in text) != is_seen


def test_without_phases_nothing_is_said_of_zero_grad() -> None:
    assert sentences.zero_grad_text(StepMemory("the processor", 1.0, [0.0], [10], {}, "")) == ""


def test_the_last_of_several_steps_is_read_and_a_gpu_that_it_does_not_use_is_not() -> None:
    later = event("ProfilerStep#1", 3000, 3500, "user_annotation")
    held = read_memory({"traceEvents": [note(1200, 500, 500, (1, 0)), note(3100, 70, 70), STEP, later]})
    assert held.device == "the processor" and held.allocated == [0, 70] and held.seconds == pytest.approx(500e-6)


def test_little_more_than_at_the_beginning_is_called_so() -> None:
    held = StepMemory("the processor", 1.0, [0.0, 0.5], [1000, 1010], {}, "")
    assert sentences.memory_text(held).endswith("of the step: 1 KB, little more than when the step begins")
    nothing_new = StepMemory("the processor", 1.0, [0.0, 0.5], [1000, 900], {}, "aten::add")
    assert nothing_new.last_taken == 0 and "after 0" in sentences.memory_text(nothing_new)


@pytest.mark.parametrize(
    "events", [[STEP], [note(1100, 1, 1)], [STEP, note(900, 1, 1)]], ids=["no memory", "no step", "none in the step"]
)
def test_a_trace_without_a_steps_memory_is_rejected(events) -> None:
    with pytest.raises(CourseError, match="read_memory"):
        read_memory({"traceEvents": events})


def test_a_step_on_this_processor(four_ranks) -> None:
    """What is kept is known: weights, gradients, images. Activations grow with the batch, and all are freed.

    What `zero_grad` releases is known as well: a number for each weight.
    """
    small, large = (
        four_ranks.run(memory_of_step, training_step, unsynchronised, batch, backend="gloo", ranks=1).results[0]
        for batch in (16, 64)
    )
    weights = sum(4 * parameter.numel() for parameter in small_vgg(0).parameters())
    for held, batch in ((small, 16), (large, 64)):
        known = 2 * weights + batch * 3 * 32 * 32 * 4
        assert held.device == "the processor" and known < held.allocated[0] < 1.05 * known
        assert held.allocated[-1] == held.allocated[0], "a step leaves nothing behind"
        assert held.times == sorted(held.times) and held.times[-1] <= held.seconds
        ends = [moment for name in ("forward", "backward", "step") for moment in held.phases[name][0]]
        assert ends == sorted(ends) and ends[-1] <= held.seconds
        assert held.operator.startswith("aten::")
        assert held.released_from(held.phases["backward"][0][0]) == weights
    kept = [held.at(held.phases["forward"][0][1]) - held.allocated[0] for held in (small, large)]
    assert kept[1] / kept[0] == pytest.approx(4, rel=0.1)
    assert large.peak > large.allocated[0] + 0.9 * kept[1]


def test_the_peak_of_an_h100s_trace_is_what_its_allocator_counted() -> None:
    held = read_memory(H100)
    assert held.device == "GPU 0" and held.peak == H100["max_memory_allocated"]
    assert sentences.peak_letter(held) == "c" and held.operator == "aten::convolution_backward"


def test_further_says_what_the_h100_showed() -> None:
    held = read_memory(H100)
    page = " ".join((ROOT / "notebooks/src/14_profiling_further.py").read_text().replace("\n# ", " ").split())
    assert f"a needle of {held.last_taken / 1e6:.0f} MB made the peak of {held.peak / 1e6:.0f} MB" in page
    (lanes,) = lanes_of(read_trace(RECORDED / "CUDA-graph.json.gz"))
    ladder = Climb.read(LADDER_RECORDED)
    busy = length(lanes.computing) / lanes.seconds
    reached = ladder.flops * IMAGES * lanes.steps / lanes.seconds / ladder.peak_on_paper
    ran = f"ran kernels {100 * busy:.0f}% of the time and copied for 1%"
    assert f"{ran}, and it reached {100 * reached:.0f}% of the peak on its data sheet" in page
    one_by_one = lanes_of(read_trace(RECORDED / "channels-last.json.gz"))[0]
    assert f"the GPU was idle for {100 * one_by_one.idle_share:.0f}% of the three steps" in page
    unprofiled = 1e3 * statistics.median(ladder.seconds["+ channels last"])
    assert f"a step took {unprofiled:.1f} ms on that GPU" in page


def test_the_picture_names_phases_and_peak() -> None:
    held = read_memory(H100)
    picture = memory(held, sentences.memory_text(held), sentences.kept_text(held))
    (ax,) = picture.axes
    assert [text.get_text() for text in ax.texts] == ["243 MB"]
    assert "76 MB when the step begins, 179 MB at the end of forward" in picture.alt_text
    assert "76 MB at the end of optimizer" in picture.alt_text
    assert max(ax.lines[0].get_ydata()) == held.peak and ax.get_ylim()[0] == 0


def test_a_phase_too_short_to_be_seen_is_not_in_the_legend() -> None:
    held = StepMemory("the processor", 1.0, [0.0, 0.5], [10, 20], {"forward": [(0, 0.9)], "step": [(0.9, 0.9001)]}, "")
    assert "end of forward" in memory(held, "").alt_text and "optimizer" not in memory(held, "").alt_text


def test_a_step_of_two_allocations_is_read_to_the_byte_and_is_an_nvtx_range(monkeypatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", told.append)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: told.append("/"))
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None, raising=False)

    def make_step():
        def step() -> None:
            with phase("forward"):
                torch.ones(1000).sum()

        return step

    trace = profile_memory(make_step)
    assert told == ["forward", "/", "ProfilerStep#0", "forward", "/", "/"]
    assert problems(trace | {"traceEvents": [one for one in trace["traceEvents"] if one["name"] == MEMORY]}) == []
    held = read_memory(trace)
    assert held.allocated == [0, 4000, 4004, 4, 0], "a thousand numbers, their sum, and both freed"
    assert held.last_taken == 4 and held.operator == "aten::sum"
