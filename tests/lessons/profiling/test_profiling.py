"""Profiles: intervals counted by hand, clocks, merged Chrome traces, and five slow programs with their faster ones."""

import functools
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from matplotlib.backends.backend_agg import FigureCanvasAgg

from course_utils.data import digits
from course_utils.errors import CourseError
from course_utils.lessons.overlap.buckets import overlapped
from course_utils.lessons.profiling import sentences, slow_programs
from course_utils.lessons.profiling.chrome_trace import problems, read_trace, write_trace
from course_utils.lessons.profiling.gpu_steps import RECORDED
from course_utils.lessons.profiling.intervals import difference, intersection, length, union
from course_utils.lessons.profiling.lanes import Lanes, lanes_of
from course_utils.lessons.profiling.merged_trace import merge
from course_utils.lessons.profiling.pictures import profile
from course_utils.lessons.profiling.rank_clocks import offset_of, offset_to_rank_0
from course_utils.lessons.profiling.record_profiles import Profile, profile_ranks, training_step
from course_utils.lessons.profiling.slow import host_waits, input_pipeline, no_overlap, small_kernels, unbalanced
from course_utils.lessons.profiling.slow_programs import CHOICES, PROGRAMS, letter_of, profile_program, race
from course_utils.lessons.profiling.time_shares import exposed_communication, idle_share, overlap_share
from course_utils.measuring import BUSY, Compared
from workshop.bench import profiling


def test_intervals_are_sets_of_times() -> None:
    assert union([(3, 4), (0, 1), (1, 2), (0.5, 1.5), (7, 7)]) == [(0, 2), (3, 4)]
    assert intersection([(0, 4), (5, 9)], [(3, 6), (8, 20)]) == [(3, 4), (5, 6), (8, 9)]
    assert difference([(0, 10)], [(2, 3), (8, 12), (-1, 1)]) == [(1, 2), (3, 8)]
    assert length([(0, 2), (1, 3)]) == 3
    assert union([]) == intersection([], [(0, 1)]) == difference([], [(0, 1)]) == []


def test_intervals_agree_with_counting_every_moment(seed) -> None:
    random = torch.Generator().manual_seed(seed)
    for _ in range(100):
        sets = []
        for _ in range(2):
            begins = torch.randint(30, (int(torch.randint(8, (), generator=random)),), generator=random)
            lengths = torch.randint(7, begins.shape, generator=random)
            sets.append([(b, b + n) for b, n in zip(begins.tolist(), lengths.tolist(), strict=True)])
        first, second = ({t for begin, end in one for t in range(begin, end)} for one in sets)
        assert length(sets[0]) == len(first)
        assert length(intersection(*sets)) == len(first & second)
        assert length(difference(*sets)) == len(first - second)
        assert overlap_share(*sets) == (len(first & second) / len(second) if second else 0)
        assert math.isclose(idle_share(*sets, 5, 25), len(set(range(5, 25)) - first - second) / 20, abs_tol=1e-12)


def test_shares_of_a_step_counted_by_hand() -> None:
    computing, communication = [(0, 6), (10, 11)], [(4, 8), (7, 9)]
    assert overlap_share(computing, communication) == 2 / 5
    assert exposed_communication(computing, communication) == [(6, 9)]
    assert idle_share(computing, communication, 0, 12) == pytest.approx(2 / 12)
    assert idle_share(iter(computing), iter(communication), 0, 12) == pytest.approx(2 / 12)
    assert overlap_share(computing, []) == 0 and idle_share([], [], 3, 3) == 0 and idle_share([], [], 0, 1) == 1


def complete(name: str, begin: float, end: float, tid: int = 1, cat: str = "cpu_op", pid: int = 77) -> dict:
    """A complete event, in microseconds."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": begin, "dur": end - begin}


def rank_trace(rank: int, shift: float, *events: dict) -> dict:
    """What `profile_steps` gives: one step from 100 to 200 µs of the rank's own clock, and these events."""
    thread = {"ph": "M", "name": "thread_name", "pid": 77, "tid": 1, "ts": 0, "args": {"name": "main"}}
    step = complete("ProfilerStep#0", 100, 200, cat="user_annotation")
    clock = {"rank": rank, "shift": shift, "error": 0.0, "machine": "here"}
    return {"traceEvents": [thread, step, *events], "course": clock}


def two_ranks() -> list[dict]:
    """Rank 0 computes 100–150 and 170–180, and communicates 140–170; rank 1, 10 µs later, the same on another clock."""
    both = []
    for rank, shift, late in ((0, 0.0, 0), (1, -990.0, 1000)):
        events = [
            complete("aten::mm", 100 + late, 150 + late),
            complete("aten::add", 170 + late, 180 + late),
            complete("c10d::allreduce_", 150 + late, 152 + late),
            complete("gloo:all_reduce", 140 + late, 170 + late, tid=2, cat="user_annotation"),
            complete("forward", 100 + late, 150 + late, tid="phases", cat="phases", pid="course"),
            complete("aten::mm", 10 + late, 20 + late),  # before the step
        ]
        trace = rank_trace(rank, shift, *events)
        trace["traceEvents"][1]["ts"] += late
        both.append(trace)
    return both


def test_lanes_of_a_merged_trace_are_those_counted_by_hand() -> None:
    trace = merge(two_ranks()[::-1])
    assert problems(trace) == []
    first, second = lanes_of(trace)
    for lanes, late in ((first, 0.0), (second, 10e-6)):
        assert (lanes.begin, lanes.end) == pytest.approx((late, late + 100e-6))
        assert lanes.exposed_seconds == pytest.approx(20e-6)
        assert lanes.overlap_share == pytest.approx(1 / 3)
        assert lanes.idle_share == pytest.approx(0.2)
        assert length(lanes.idle) == pytest.approx(20e-6)
        assert lanes.phases["forward"] == [pytest.approx((late, late + 50e-6))]
    assert trace["course"]["begin"] == 100.0


def test_rows_of_all_ranks_have_numbers_of_their_own() -> None:
    rows = [(one["pid"], one["tid"]) for one in merge(two_ranks())["traceEvents"] if one["ph"] == "X"]
    assert len({tid for _, tid in rows}) == len(set(rows)) == 6


def test_clocks_that_are_wrong_move_the_lanes() -> None:
    found = Profile(two_ranks(), [[], []])
    right, wrong = found.lanes, found.lanes_by_clocks([0, 3])
    assert wrong[0].begin == right[0].begin and wrong[1].begin == pytest.approx(right[1].begin + 3)
    assert found.lanes_by_clocks([0, 0])[1].computing == right[1].computing


def test_what_the_last_rank_has_exposed_is_the_transfer() -> None:
    steps = [(0, 10), (10, 20)]
    early = Lanes(0, 0, 20, [(0, 2), (10, 18)], [(2, 9), (18, 20)], {}, steps)
    late = Lanes(1, 0, 20, [(0, 6), (10, 13)], [(6, 9), (13, 20)], {}, steps)
    assert profiling.transfer_seconds([early, late]) == [3, 2]
    alone = [Lanes(rank, 0, 12, [(0, 12)], [], {}, [(0, 5), (5, 11 + rank)]) for rank in (0, 1)]
    assert profiling.transfer_seconds(alone) == [0, 0]


def test_operators_are_listed_by_their_own_time() -> None:
    rows = [("aten::add", 3, 10.0, 10.0), ("aten::conv2d", 1, 5.0, 900.0), ("aten::mm", 2, 70.0, 71.0)]
    lines = sentences.operators_table(rows, most=2).splitlines()
    assert [line.split()[0] for line in lines] == ["operator", "aten::mm", "aten::add"]


def test_convolutions_backward_are_held_beside_those_forward() -> None:
    forward = (sentences.FORWARD_CONVOLUTION, 8, 100.0, 100.0)
    longer, shorter = ((sentences.BACKWARD_CONVOLUTION, 8, own, own) for own in (150.0, 80.0))
    assert sentences.convolutions_text([forward, longer]).endswith("1.5 times as long as in the forward pass")
    assert "times as long" in sentences.convolutions_text([forward, shorter])
    assert sentences.convolutions_text([longer]) == ""


def test_kernels_count_where_there_is_a_gpu() -> None:
    kernels = [
        complete("aten::mm", 100, 199),
        complete("gemm", 110, 150, tid=7, cat="kernel", pid=0),
        complete("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 140, 220, tid=8, cat="kernel", pid=0),
    ]
    (lanes,) = lanes_of(merge([rank_trace(0, 0.0, *kernels)]))
    assert lanes.computing == [pytest.approx((10e-6, 50e-6))]
    assert lanes.overlap_share == pytest.approx(10 / 60)
    assert lanes.end == pytest.approx(100e-6), "a kernel that runs on behind the step is cut there"


def two_steps_on_a_gpu() -> dict:
    """The program is through both steps (100–200, 200–210 µs) while the GPU is at the first one (150–300, 320–400).

    Each step: a copy of 20 µs, a kernel, and an all-reduce in another stream of which 10 µs lie behind the kernel. A
    thread of its own asks for the latter two, as a backward pass does, and the profiler's mark does not know of them.
    """
    trace = rank_trace(0, 0.0, complete("ProfilerStep#1", 200, 210, cat="user_annotation"))
    for step in trace["traceEvents"]:
        if step["name"].startswith("ProfilerStep"):
            step["cat"] = "user_annotation"
    names = "Memcpy HtoD (Pageable -> Device)", "gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    for number, (begin, end) in enumerate([(150, 300), (320, 400)]):
        times = (begin, begin + 20, 7), (begin + 20, end - 10, 7), (end - 40, end, 8)
        mark = complete(f"ProfilerStep#{number}", begin, begin + 20, tid=7, cat="gpu_user_annotation", pid=0)
        trace["traceEvents"].append(mark)
        for place, (name, (since, until, stream)) in enumerate(zip(names, times, strict=True)):
            at, by = {"args": {"correlation": 10 * number + place}}, 1 if place == 0 else 2
            asked = 110 + 95 * number + place  # within the program's step
            call = complete("cudaLaunchKernel", asked, asked + 0.5, tid=by, cat="cuda_runtime")
            kind = "gpu_memcpy" if place == 0 else "kernel"
            trace["traceEvents"] += [call | at, complete(name, since, until, tid=stream, cat=kind, pid=0) | at]
    return trace


def test_a_step_on_a_gpu_is_when_the_gpu_was_at_it() -> None:
    trace = merge([two_steps_on_a_gpu()])
    assert problems(trace) == []
    (lanes,) = lanes_of(trace)
    assert [pytest.approx(step) for step in lanes.each_step] == [(50e-6, 200e-6), (220e-6, 300e-6)]
    assert profiling.transfer_seconds([lanes]) == pytest.approx([10e-6, 10e-6])


def test_copies_are_no_idle_time() -> None:
    (lanes,) = lanes_of(merge([two_steps_on_a_gpu()]))
    assert length(lanes.copies) == pytest.approx(40e-6)
    assert lanes.idle == [pytest.approx((200e-6, 220e-6))], "between the steps the GPU waits for the program"
    assert lanes.idle_share == pytest.approx(20 / 250)
    assert "Rank 0, 0 to 250 µs: computes" in profile([lanes], "One rank").alt_text
    assert "copies 16%" in profile([lanes], "One rank").alt_text
    waits = Lanes(0, 0, 10, [(0, 4)], [], {}, copies=[(3, 9)])
    assert sentences.profile_text([waits]).endswith("% it waits for copies")


@pytest.mark.parametrize(
    ("file", "share", "seconds"), [("channels-last", 0.748, 0.0153), ("CUDA-graph", 0.055, 0.0041)]
)
def test_profiles_of_a_real_gpu_are_read_as_they_were_recorded(file, share, seconds) -> None:
    """Three steps of VGG-11, 512 images each, kernel by kernel and as a graph."""
    trace = read_trace(RECORDED / f"{file}.json.gz")
    assert problems(trace) == []
    (lanes,) = lanes_of(trace)
    assert lanes.idle_share == pytest.approx(share, abs=0.01)
    assert lanes.seconds / lanes.steps == pytest.approx(seconds, rel=0.02)
    assert [begin for begin, _ in lanes.each_step] == sorted(begin for begin, _ in lanes.each_step)
    inside = sum(length(intersection(lanes.computing, [step])) for step in lanes.each_step)
    assert inside == pytest.approx(length(lanes.computing), rel=0.01), (
        "every kernel belongs to the step that asked for it"
    )


def test_gloos_messages_count_beside_kernels() -> None:
    events = [
        complete("gemm", 110, 150, tid=7, cat="kernel", pid=0),
        complete("gloo:all_reduce", 140, 170, tid=2, cat="user_annotation"),
    ]
    (lanes,) = lanes_of(merge([rank_trace(0, 0.0, *events)]))
    assert length(lanes.communication) == pytest.approx(30e-6)


def test_a_stream_may_begin_a_kernel_before_the_end_of_the_last() -> None:
    kernels = [complete(name, at, at + 10, tid=7, cat="kernel", pid=0) for name, at in (("gemm", 110), ("relu", 118))]
    assert problems(merge([rank_trace(0, 0.0, *kernels)])) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda traces: traces[:0], "every rank"),
        (lambda traces: [traces[0], traces[0]], "every rank"),
        (lambda traces: [{"traceEvents": []}], "what its clock is"),
        (lambda traces: [traces[0] | {"traceEvents": []}], "no event with a duration"),
    ],
)
def test_traces_that_do_not_belong_together_are_rejected(change, said) -> None:
    with pytest.raises(CourseError, match=said):
        merge(change(two_ranks()))


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"ph": "X", "name": "a", "pid": 0, "tid": 0, "ts": 0}, "lacks 'dur'"),
        (complete("a", 5, 3), "less than nothing"),
        (complete("a", float("nan"), 1), "not a number"),
        (complete("a", 0, 1) | {"ts": "1"}, "not a number"),
        ({"ph": "?", "name": "a"}, "unknown kind"),
        ([], "not an object"),
        ({"ph": "M", "name": "process_name", "pid": 0, "args": {}}, r"lacks args\['name'\]"),
        (complete("child", 40, 300), "ends after it"),
        ({"ph": "s", "name": "a", "cat": "c", "id": 1, "pid": 0, "tid": 0, "ts": 1}, "one end only"),
        (complete("a", 0, 1, pid=5), "Process 5 has no process_name"),
        (complete("a", 0, 1, tid=9, pid=0), "Row 9 of 0 has no thread_name"),
    ],
)
def test_a_broken_trace_is_described(event, said) -> None:
    trace = merge(two_ranks())
    if isinstance(event, dict) and event.get("pid") == 77:
        event = event | {"pid": 0, "tid": 0}
    trace["traceEvents"].append(event)
    found = problems(trace)
    assert any(re.search(said, one) for one in found), found


def test_a_trace_survives_its_file(tmp_path) -> None:
    trace = merge(two_ranks())
    for name in ("trace.json", "trace.json.gz"):
        assert read_trace(write_trace(trace, tmp_path / name)) == trace
    assert json.loads((tmp_path / "trace.json").read_text()) == trace
    assert problems({"events": []}) == ["traceEvents is missing, or no list."]


def test_an_offset_is_wrong_by_half_the_shortest_round_trip_at_most(seed) -> None:
    random = torch.Generator().manual_seed(seed)
    for _ in range(50):
        true = 1e3 * float(torch.randn((), generator=random, dtype=torch.float64))
        pings, now = [], 0.0
        for _ in range(10):
            there, back = torch.rand(2, generator=random, dtype=torch.float64).tolist()
            pings.append((now, now + there - true, now + there + back))
            now += 3
        found = offset_of(pings)
        assert abs(found.seconds - true) <= found.error + 1e-9
        assert found.error == pytest.approx(min(back - sent for sent, _, back in pings) / 2)


def both_offsets() -> tuple:
    """This rank's offset as it is found, and as ping-pong measures it."""
    return offset_to_rank_0(), offset_to_rank_0(always_measure=True)


def test_ping_pong_finds_that_ranks_of_one_machine_share_a_clock(four_ranks) -> None:
    for rank, (known, measured) in enumerate(four_ranks.run(both_offsets, backend="gloo", ranks=3).results):
        assert (known.seconds, known.error) == (0, 0)
        assert abs(measured.seconds) <= measured.error
        assert (measured.error > 0) == (rank > 0)


def test_a_profile_of_real_ranks_is_one_sound_trace(four_ranks, tmp_path) -> None:
    way = functools.partial(overlapped, bucket_bytes=1 << 19)
    found = profile_ranks(four_ranks, training_step, way, batch=4, steps=2, world_size=2)
    assert problems(found.trace) == []
    assert problems(read_trace(found.write(tmp_path / "all.json.gz"))) == []
    assert [len(results) for results in found.results] == [2, 2]
    for lanes in found.lanes:
        assert lanes.steps == 2 and len(lanes.phases["forward"]) == 2
        assert lanes.computing and lanes.communication
        assert lanes.exposed_seconds <= length(lanes.communication) <= lanes.seconds
        busy = length([*lanes.computing, *lanes.communication])
        assert 1 - lanes.idle_share == pytest.approx(busy / lanes.seconds, abs=0.01)
    assert min(one.begin for one in found.lanes) == 0
    begin, end = max(one.begin for one in found.lanes), min(one.end for one in found.lanes)
    assert begin < end, "all ranks begin together"
    files = found.write_for_tensorboard(tmp_path / "runs")
    assert [file.name.split(".")[0] for file in files] == ["rank0", "rank1"]
    assert read_trace(files[1])["distributedInfo"]["rank"] == 1
    assert profile(found.lanes, sentences.profile_text(found.lanes)).alt_text


def lanes_with(computing, communication, rank: int = 0) -> Lanes:
    """Ten seconds of a rank."""
    return Lanes(rank, 0.0, 10.0, computing, communication, {})


@pytest.mark.parametrize(
    ("lanes", "said"),
    [
        (lanes_with([(0, 9.9)], [(1, 5)]), "little is lost"),
        (lanes_with([(0, 5)], [(4, 9)]), "communication is exposed"),
        (lanes_with([(0, 5)], [(4, 6)]), "is idle"),
    ],
)
def test_sentences_are_chosen_from_the_numbers(lanes, said) -> None:
    assert said in sentences.profile_text([lanes])


def test_what_was_gained_is_said() -> None:
    poor, good = [lanes_with([(0, 5)], [(5, 9)])], [lanes_with([(0, 5)], [(2, 6)], rank=1)]
    assert "nothing is gained" not in sentences.overlap_text(poor, good, "buckets")
    assert "nothing is gained" in sentences.overlap_text(good, poor, "buckets")


def test_a_clock_is_ahead_or_behind_in_milliseconds() -> None:
    said = "rank 2's clock: 70.33 ms behind, give or take 0.16 ms (simulated: 70.28 ms behind)"
    assert sentences.clock_text(2, -0.07033, 0.000157, -0.07028) == said
    assert sentences.clock_text(1, 0.1, 0.001, 0.1).count("100.00 ms ahead") == 2


@pytest.mark.parametrize(
    ("better", "title"),
    [
        ([1.0, 1.0, 1.0], "Program 4: better is 2.0 times as fast as slow"),
        ([2.0, 2.0, 2.0], "Program 4: better and slow: no clear difference (0.90 to 1.05 times as fast, in 3 rounds)"),
        ([4.0, 4.0, 4.0], "Program 4: slow is 2 times as fast as better (1.90 to 2.2 in 3 rounds)"),
        ([0.1, 9.0, 1.0], f"Program 4: {BUSY}"),
    ],
)
def test_a_cured_program_has_the_ratio_of_the_race_and_of_what_is_drawn(better, title) -> None:
    below = "Rank 0, one more run of each; here the slow one takes 2.4 times as long"
    drawn = [Lanes(0, 0.0, 2.4, [], [], {}), Lanes(0, 0.0, 1.0, [], [], {})]
    taken = Compared(better, [1.8, 2.0, 2.1], ("better", "slow"))
    if taken.first_is_faster and not taken.is_busy:
        below = f"1.8 to 2.1 times in 3 rounds. {below}"
    assert sentences.cured_texts(4, taken, drawn) == (title, below)


def same(slow: list[float], fast: list[float]) -> bool:
    """Have both trained alike, and has the loss changed?"""
    return slow == pytest.approx(fast, rel=1e-4) and abs(slow[0] - slow[-1]) > 0.01 * slow[0]


@pytest.fixture
def one_thread():
    """As on a rank; for many small operations more threads are slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_better_input_pipeline_trains_alike(tmp_path, one_thread) -> None:
    paths = input_pipeline.write_photos(tmp_path, 20)
    labels = digits().train_y[:20]
    assert same(input_pipeline.slow_1(paths, labels, 2), input_pipeline.speed_up_1(paths, labels, 2))


def test_fewer_kernels_train_alike(one_thread) -> None:
    x, y = digits().train_x[:64], digits().train_y[:64]
    assert same(small_kernels.slow_3(x, y), small_kernels.speed_up_3(x, y))


def losses_of(function, *arguments) -> list[float]:
    """Of one program, on this rank."""
    return function(*arguments)


def own_batch(function, steps: int) -> list[float]:
    """The program on inputs of this rank's own."""
    random = torch.Generator().manual_seed(dist.get_rank())
    x, y = torch.randn(2, 4, no_overlap.WIDTH, generator=random)
    return function(x, y, steps)


def test_the_faster_programs_of_several_ranks_train_alike(four_ranks) -> None:
    data, texts = digits(), unbalanced.sample_texts(16)
    pairs = [
        (host_waits.slow_2, host_waits.speed_up_2, losses_of, (data.train_x, data.train_y, 20)),
        (no_overlap.slow_5, no_overlap.speed_up_5, own_batch, (2,)),
        (unbalanced.slow_4, unbalanced.speed_up_4, losses_of, (texts * 2,)),
    ]
    for size in (1, 3):
        for slow, fast, how, arguments in pairs:
            slows, fasts = (
                four_ranks.run(how, one, *arguments, backend="gloo", ranks=size).results for one in (slow, fast)
            )
            assert all(same(a, b) for a, b in zip(slows, fasts, strict=True)), slow.__name__


def test_the_bench_judges_by_the_median_of_the_rounds() -> None:
    factor, seconds = profiling.factor_rows("one", Compared([2.0, 2.0, 2.0], [3.0, 8.0, 4.0]), target=1.5)
    assert (factor.value, factor.target, factor.ok, factor.better) == (2.0, 1.5, True, "higher")
    assert seconds.value == 4.0
    assert profiling.off([0.2, 0.4], 0.25, 1.0) == pytest.approx(0.05)


def test_every_cause_has_a_letter_that_does_not_tell_the_number() -> None:
    assert {CHOICES[letter_of(number)] for number in PROGRAMS} == set(CHOICES.values())
    assert "".join(letter_of(number) for number in PROGRAMS) != "".join(CHOICES)


@pytest.mark.parametrize("number", [1, 4])
def test_a_program_is_profiled_and_raced(four_ranks, number) -> None:
    size = {"one": 1, "all": 4}[PROGRAMS[number].ranks]
    found = profile_program(four_ranks, number, fast=True)
    assert len(found.lanes) == size and problems(found.trace) == []
    assert len(race(four_ranks, number, rounds=1).first) == 1


def test_a_picture_can_be_drawn_again_and_says_what_it_shows() -> None:
    lanes = [lanes_with([(0, 5)], [(4, 9)])]
    told = "0 to 10 s: computes 50%, waits for messages 40% and is idle 10% of the time; 20% of its communication"
    for names, name in ((), "Rank 0"), (["slow"], "Slow"):
        picture = profile(lanes, "A title", "below", names)
        assert f"A title. below. {name}, {told} is hidden." in picture.alt_text


@pytest.mark.parametrize(
    ("seconds", "drawn"),
    [
        ([(4.0, 2.0)], (4.0, 2.0)),
        ([(9.0, 2.0), (4.0, 2.2)], (4.0, 2.2)),
        ([(9.0, 1.0), (1.0, 2.0), (5.0, 2.0)], (5.0, 2.0)),
    ],
)
def test_the_profiles_drawn_are_as_far_apart_as_the_race_says(monkeypatch, seconds, drawn) -> None:
    spans = iter([span for pair in seconds for span in pair])

    def profiled(*_: object) -> SimpleNamespace:
        return SimpleNamespace(lanes=[SimpleNamespace(seconds=next(spans))])

    monkeypatch.setattr(slow_programs, "profile_program", profiled)
    taken = Compared([1.0, 1.0, 1.0], [1.8, 2.0, 2.1])
    pair = slow_programs.profile_like(None, 4, taken)
    assert tuple(lanes.seconds for lanes in pair) == drawn
    assert next(spans, None) is None, "as many profiles as it took"


@pytest.mark.parametrize("part", [0.05, 0.25, 0.95])
def test_a_picture_shows_as_much_computing_as_was_recorded(part) -> None:
    """Operators that are shorter than a pixel don't fill it, and the gaps between them don't vanish."""
    many = [(0.0013 * number, 0.0013 * (number + part)) for number in range(3846)]
    picture = profile([lanes_with([*many, (7, 8)], [])], "A title")
    (ax,) = picture.axes
    canvas = FigureCanvasAgg(picture)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., 0]
    (left, _), (right, bottom) = ax.transData.transform([(0, 0), (10, 0.1)])
    reds = pixels[len(pixels) - round(bottom), math.ceil(left) : math.floor(right)].astype(float)
    computing, idle = reds.min(), reds.max()
    assert ((idle - reds) / (idle - computing)).mean() == pytest.approx(0.5 * part + 0.1, abs=0.01)
