"""What is found in traces of others: which collectives belong together, clocks, the slowest rank, a reason."""

import random

import pytest

import course_utils as course
from course_utils.lessons.profiling import pictures, sentences
from course_utils.lessons.profiling.chrome_trace import Trace, read_trace
from course_utils.lessons.profiling.clock_bounds import clock_bounds
from course_utils.lessons.profiling.critical_path import OWN, TRANSFER, share_of_ranks
from course_utils.lessons.profiling.gpu_steps import RECORDED
from course_utils.lessons.profiling.lanes import Lanes, lanes_of
from course_utils.lessons.profiling.matched_collectives import MatchedCollective, collectives_of
from course_utils.lessons.profiling.merged_trace import merge
from course_utils.lessons.profiling.message_kernels import carries_messages, operation_of
from course_utils.lessons.profiling.one_clock import ClockState, on_one_clock
from course_utils.lessons.profiling.profile_findings import (
    HostWork,
    NoPath,
    SlowReason,
    findings,
    reason_of,
    shares_of,
)
from course_utils.lessons.profiling.profile_report import hardware_text
from course_utils.lessons.profiling.profiled_hardware import GpuMaker, ProfiledHardware
from course_utils.lessons.profiling.profiled_ranks import Profile
from course_utils.lessons.profiling.shown_ranks import MOST_SHOWN, shown_of
from course_utils.lessons.profiling.slow_programs import profile_program
from course_utils.lessons.profiling.trace_difference import seconds_by_name

NO_GPU = HostWork()
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def event(
    name: str, cat: str, begin: float, end: float, pid: int | str = 9, tid: int | str = 9, **args: object
) -> dict:
    """A complete event, in microseconds."""
    return {"ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": begin, "dur": end - begin} | {
        "args": args
    }


class RankWriter:
    """Writes a rank's trace as torch.profiler does on a GPU, on a clock that may be wrong by some microseconds."""

    def __init__(self, rank: int, world: int = 2, ahead: float = 0.0, error: float | None = None) -> None:
        self.rank, self.ahead, self.number = rank, ahead, 0
        info = {"rank": rank, "world_size": world, "backend": "nccl"}
        clock = {"rank": rank, "shift": 0.0, "error": error, "machine": "node"}
        self.trace: Trace = {"schemaVersion": 1, "distributedInfo": info, "traceEvents": [], "course": clock}
        self.add(event("PyTorch Profiler (0)", "Trace", 0, 9000, pid="Spans", tid="PyTorch Profiler"))

    def add(self, new: dict) -> None:
        """An event, on this rank's clock."""
        self.trace["traceEvents"].append(new | {"ts": new["ts"] + self.ahead})

    def step(self, number: int, begin: float, end: float) -> None:
        """The program's own time for a step."""
        self.add(event(f"ProfilerStep#{number}", "user_annotation", begin, end))

    def kernel(self, name: str, begin: float, end: float, asked: float, stream: int = 7, **args: object) -> None:
        """A kernel, and the call that asked for it."""
        self.number += 1
        same = {"correlation": self.number}
        self.add(event("cudaLaunchKernel", "cuda_runtime", asked, asked + 1, **same))
        self.add(event(name, "kernel", begin, end, pid=0, tid=stream, **same, stream=stream, device=0, **args))

    def reduce(
        self, begin: float, end: float, asked: float, group: str = "0", elements: int = 10**6, **args: object
    ) -> None:
        """An all-reduce with what NCCL knows of it."""
        known = {"Collective name": "allreduce", "Process Group Name": group, "In msg nelems": elements} | args
        self.kernel(ALL_REDUCE, begin, end, asked, stream=20, **known)


def two_ranks(
    ahead: float = 0.0, error: float | None = None, steps: int = 3, ranks: "range | list[int]" = range(2)
) -> list[Trace]:
    """Steps of 100 µs: the first rank computes for 20, the last for 70, then an all-reduce of 10; 20 of other work."""
    traces = []
    for rank in ranks:
        late = rank == list(ranks)[-1]
        writer = RankWriter(rank, 2, ahead if late else 0.0, error)
        for number in range(steps):
            begin = 1000 + 100 * number
            writer.step(number, begin - 50, begin + 40)
            work = 70 if late else 20
            writer.kernel("gemm", begin, begin + work, begin - 40)
            writer.reduce(begin + work, begin + 80, begin - 30)
            writer.kernel("adam", begin + 80, begin + 100 - 20 * (number < steps - 1), begin - 20)
        traces.append(writer.trace)
    return traces


def found_in(traces: list[Trace]):
    """What is found in traces of several ranks."""
    return Profile(traces).findings


def test_collectives_are_followed_to_the_rank_that_is_waited_for() -> None:
    found = found_in(two_ranks())
    assert len(found.matching.collectives) == 3 and found.path_problem is None
    assert [(piece.rank, piece.kind) for piece in found.path[:2]] == [(1, OWN), (1, TRANSFER)]
    assert share_of_ranks(found.path, [0, 1])[1] > 0.7
    assert found.slowest.rank == 1 and found.slowest.is_clear
    assert (found.slowest.last_to, found.slowest.collectives, found.slowest.slow_in, found.slowest.steps) == (
        3,
        3,
        3,
        3,
    )
    assert found.shares[0].waiting == pytest.approx(150 / 300) and found.shares[1].waiting == 0
    assert found.reason is SlowReason.UNBALANCED


def test_shares_add_up() -> None:
    for own in found_in(two_ranks()).shares:
        assert own.computing + own.copying + own.exposed + own.idle == pytest.approx(1)


@pytest.mark.parametrize("ahead", [-400.0, 35.0, 30_000.0])
def test_clocks_that_contradict_the_collectives_are_corrected(ahead) -> None:
    profile = Profile(two_ranks(ahead))
    assert profile.clocks.state is ClockState.CORRECTED
    assert profile.clocks.apart <= 1e-6 * abs(ahead), "at least so much is never more than it is"
    assert profile.clocks.error <= 35.001e-6, "half of the shortest time from one rank's begin to the other's end"
    right, mended = (Profile(two_ranks(wrong)).lanes for wrong in (0.0, ahead))
    apart = right[1].begin - right[0].begin
    assert mended[1].begin - mended[0].begin == pytest.approx(apart, abs=profile.clocks.error + 1e-9)
    slowest, known = profile.findings.slowest, found_in(two_ranks()).slowest
    assert (slowest.rank, slowest.slow_in) == (known.rank, known.slow_in), "durations need no clock"
    assert slowest.waited == pytest.approx(known.waited)


def test_clocks_that_contradict_nothing_are_left_alone() -> None:
    profile = Profile(two_ranks(5.0))
    assert profile.clocks.state is ClockState.POSSIBLE
    assert profile.clocks.error == pytest.approx(65e-6)
    assert profile.findings.path_problem is None


def test_clocks_that_were_compared_are_believed() -> None:
    assert Profile(two_ranks(400.0, error=2.0)).clocks.state is ClockState.COMPARED


def test_bounds_of_clocks_hold_whatever_the_clocks_are(seed) -> None:
    """Real moments are made by chance, then every rank's clock is set wrong: the truth must lie between the bounds."""
    chance = random.Random(seed)
    for _ in range(50):
        wrong = {rank: chance.uniform(-5, 5) for rank in range(4)}
        collectives = []
        for number in range(6):
            ranks = sorted(chance.sample(range(4), chance.randint(2, 4)))
            begins = {rank: number + chance.random() for rank in ranks}
            last = max(begins.values())
            times = {rank: (begins[rank] + wrong[rank], last + chance.random() + wrong[rank]) for rank in ranks}
            collectives.append(MatchedCollective("allreduce", times))
        found = clock_bounds(collectives, range(4))
        assert found.agree
        for rank in range(4):
            least, most = found.bounds[rank]
            assert least - 1e-9 <= wrong[0] - wrong[rank] <= most + 1e-9
        spread = max(wrong.values()) - min(wrong.values())
        assert found.apart <= spread + 1e-9
        if found.corrections is not None:
            moved = {rank: seconds + found.corrections[rank] for rank, seconds in wrong.items()}
            assert all(
                each.times[a][1] + moved[a] - wrong[a] >= each.times[b][0] + moved[b] - wrong[b] - 1e-9
                for each in collectives
                for a in each.times
                for b in each.times
            ), "the middles agree with every collective"


def test_broadcasts_do_not_bound_clocks() -> None:
    times = {0: (0.0, 1.0), 1: (5.0, 6.0)}  # rank 0 sends, and is through long before rank 1 begins
    assert clock_bounds([MatchedCollective("broadcast", times)], [0, 1]).apart == 0
    assert clock_bounds([MatchedCollective("allreduce", times)], [0, 1]).apart == pytest.approx(4)


def test_clocks_with_which_no_correction_agrees_are_called_so() -> None:
    collectives = [MatchedCollective("allreduce", {0: (0.0, 1.0), 1: (5.0, 6.0)})]
    collectives += [MatchedCollective("allreduce", {0: (15.0, 16.0), 1: (10.0, 11.0)})]
    found = clock_bounds(collectives, [0, 1])
    assert not found.agree and found.corrections is None and found.apart == pytest.approx(4)


def test_groups_are_told_apart_by_their_names() -> None:
    """Four ranks in pairs: the first collective of a pair has nothing to do with that of the other pair."""
    traces = []
    for rank in range(4):
        writer = RankWriter(rank, 4, error=0.0)
        writer.step(0, 0, 1000)
        pair, begin = rank // 2, 100 + 300 * (rank // 2)
        writer.kernel("gemm", 50, begin, 10)
        ranks = f"[{2 * pair}, {2 * pair + 1}]"
        writer.reduce(begin, begin + 50, 20, group=str(pair + 1), **{"Process Group Ranks": ranks})
        traces.append(writer.trace)
    found = found_in(traces)
    assert [sorted(each.times) for each in found.matching.collectives] == [[0, 1], [2, 3]]
    assert found.matching.unmatched == 0 and found.path_problem is None


def test_numbers_of_collectives_match_traces_that_were_cut_differently() -> None:
    traces = []
    for rank, numbers in ((0, [7, 8, 9]), (1, [8, 9, 10])):
        writer = RankWriter(rank, error=0.0)
        for number in numbers:
            writer.reduce(100 * number, 100 * number + 10 + rank, 100 * number - 5, Seq=number)
        traces.append(writer.trace)
    found = collectives_of(merge(traces))
    assert len(found.collectives) == 2 and found.unmatched == 2


def test_collectives_that_not_every_rank_has_are_left_out_and_counted() -> None:
    traces = two_ranks()
    lost = next(each for each in traces[1]["traceEvents"] if each["name"] == ALL_REDUCE)
    traces[1]["traceEvents"].remove(lost)
    found = found_in(traces)
    assert len(found.matching.collectives) == 2 and found.matching.unmatched == 1
    report = " ".join(sentences.profile_report(Profile(traces)).split())
    assert "1 message couldn't be matched; waiting for these counts as own work." in report


def test_messages_between_two_ranks_are_no_collectives() -> None:
    traces = []
    for rank in (0, 1):
        writer = RankWriter(rank)
        for number in range(3):
            writer.kernel(
                "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 100 * number, 100 * number + 50, 1
            )
        traces.append(writer.trace)
    found = found_in(traces)
    assert found.matching.between_two == 6 and found.path_problem is NoPath.MANY_UNMATCHED and found.path == []
    assert found.clocks.state is ClockState.UNKNOWN and found.slowest is None


def test_ranks_may_be_missing() -> None:
    profile = Profile(two_ranks(ranks=[3, 5]))
    assert [own.rank for own in profile.lanes] == [3, 5]
    assert profile.findings.slowest.rank == 5 and {piece.rank for piece in profile.findings.path} <= {3, 5}
    picture = pictures.critical(profile.lanes, profile.findings.path, "A title")
    assert "Rank 5" in picture.alt_text and "own work of rank 5" in picture.alt_text


def amd_rank(rank: int) -> Trace:
    """As ROCm writes it: RCCL's kernels have no name of a collective, the operator that asked for them has it."""
    writer = RankWriter(rank, error=0.0)
    writer.step(0, 0, 400)
    known = {"Collective name": "allreduce", "Process Group Name": "0", "In msg nelems": 4096}
    for number in range(2):
        begin = 100 + 100 * number
        writer.add(event("record_param_comms", "cpu_op", begin - 5, begin + 5, **known))
        name = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
        writer.kernel(name, begin + 20 * rank, begin + 50, begin, stream=4, kind="Dispatch Kernel")
        writer.kernel("Cijk_Alik_Bljk_SB", begin + 50, begin + 90, begin + 1)
    for each in writer.trace["traceEvents"]:
        each["name"] = each["name"].replace("cudaLaunchKernel", "hipLaunchKernel")
    return writer.trace


def test_amds_collectives_are_known_by_the_operator_that_asked_for_them() -> None:
    found = found_in([amd_rank(0), amd_rank(1)])
    assert [each.operation for each in found.matching.collectives] == ["allreduce", "allreduce"]
    assert found.slowest.rank == 1 and found.shares[0].exposed > found.shares[1].exposed


def test_kernels_asked_for_before_the_first_step_do_not_count() -> None:
    writer = RankWriter(0)
    writer.step(0, 0, 100)
    writer.add(event(ALL_REDUCE, "kernel", 1, 100, pid=0, tid=20, correlation=77, stream=20))
    writer.kernel("gemm", 100, 150, 10)
    (lanes,) = lanes_of(merge([writer.trace]))
    assert lanes.seconds == pytest.approx(50e-6) and lanes.exposed_seconds == 0
    assert seconds_by_name(merge([writer.trace])) == {"gemm": pytest.approx(50e-6)}
    assert found_in([writer.trace]).shares[0].computing == pytest.approx(1)


def test_work_that_was_under_way_when_the_first_step_began_is_cut_there() -> None:
    writer = RankWriter(0)
    writer.add(event("gloo:all_reduce", "user_annotation", 0, 160))
    writer.step(0, 100, 200)
    writer.add(event("aten::mm", "cpu_op", 150, 200))
    (lanes,) = lanes_of(merge([writer.trace]))
    assert lanes.communication == [pytest.approx((0, 60e-6))] and lanes.exposed_seconds == pytest.approx(50e-6)


def test_a_trace_without_steps_counts_as_a_whole() -> None:
    writer = RankWriter(0)
    writer.kernel("gemm", 100, 150, 10)
    writer.kernel("triton_poi_fused_add_0", 250, 300, 20)
    (lanes,) = lanes_of(writer.trace)
    assert lanes.seconds == pytest.approx(200e-6) and lanes.idle_share == pytest.approx(0.5)
    assert lanes.each_step == []
    report = sentences.profile_report(Profile([writer.trace]))
    assert report.startswith("1 rank; the whole trace, 200 µs")


def test_a_trace_as_torch_writes_it_is_read_as_it_is() -> None:
    """A process that is called "Spans", and a step on a processor."""
    events = [
        event("ProfilerStep#2", "user_annotation", 10, 60, pid=42),
        event("aten::addmm", "cpu_op", 12, 32, pid=42),
    ]
    events += [event("PyTorch Profiler (0)", "Trace", 9, 69, pid="Spans", tid="PyTorch Profiler")]
    (lanes,) = lanes_of({"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": events})
    assert lanes.rank == 3 and lanes.seconds == pytest.approx(50e-6) and lanes.idle_share == pytest.approx(0.6)


def test_a_graph_launch_is_one_call_for_many_kernels() -> None:
    writer = RankWriter(0)
    writer.step(0, 0, 100)
    writer.add(event("cudaGraphLaunch", "cuda_runtime", 10, 20, correlation=500))
    for number in range(4):
        writer.add(event("gemm", "kernel", 50 + 40 * number, 70 + 40 * number, pid=0, tid=7, correlation=500))
    (lanes,) = lanes_of(writer.trace)
    assert (lanes.begin, lanes.end) == pytest.approx((50e-6, 190e-6)) and lanes.idle_share == pytest.approx(60 / 140)


@pytest.mark.parametrize("begin", [0.0, 1e9])
def test_reasons_are_given_only_if_the_numbers_are_clear(begin) -> None:
    def one(computing, messages) -> Lanes:
        return Lanes(0, begin, begin + 1, computing, messages, {})

    def moved(times):
        return [(begin + a, begin + b) for a, b in times]

    def reason(lanes: Lanes, program: HostWork = NO_GPU) -> SlowReason | None:
        return reason_of([shares_of(lanes, None)], [lanes], None, None, program)

    assert reason(one(moved([(0, 0.95)]), [])) is None, "little is lost"
    assert reason(one(moved([(0, 0.3), (0.7, 1)]), [])) is SlowReason.INPUT
    short = [(k / 10000, (k + 0.4) / 10000) for k in range(10000)]
    assert reason(one(moved(short), [])) is SlowReason.SMALL_OPERATIONS
    alone = one(moved([(0, 0.5)]), moved([(0.5, 1)]))
    assert reason(alone) is None, "one rank can't tell waiting from transfer"
    idle = one(moved([(0, 0.3), (0.7, 1)]), [])
    assert reason(idle, HostWork(True, 0.9, 0.1, "cudaLaunchKernel")) is SlowReason.SMALL_OPERATIONS
    assert reason(idle, HostWork(True, 0.9, 0.8, "cudaFree")) is SlowReason.CALLS
    assert reason(idle, HostWork(True, 0.1, 0.0, "")) is SlowReason.INPUT
    assert reason(idle, HostWork(True, 0.5, 0.0, "")) is None


def test_ranks_that_begin_together_wait_for_the_transfer() -> None:
    traces = []
    for rank in (0, 1):
        writer = RankWriter(rank, error=0.0)
        writer.step(0, 0, 250)
        writer.kernel("gemm", 100, 200, 10)
        writer.reduce(200, 300, 20)
        traces.append(writer.trace)
    assert found_in(traces).reason is SlowReason.NO_OVERLAP
    for trace in traces:
        for each in trace["traceEvents"]:
            each["args"] |= {"In msg nelems": 1} if each["name"] == ALL_REDUCE else {}
    assert found_in(traces).reason is SlowReason.WAITS_FOR_NUMBERS


def test_a_program_whose_gpu_was_not_recorded_is_told_so() -> None:
    writer = RankWriter(0)
    writer.add(event("aten::mm", "cpu_op", 100, 200))
    writer.add(event("nccl:all_reduce", "user_annotation", 200, 210))
    profile = Profile([writer.trace])
    assert profile.findings.record.unseen == (0,) and profile.findings.reason is None
    report = sentences.profile_report(profile)
    assert "ProfilerActivity.CUDA" in report and "lesson 14" not in report
    writer.kernel("gemm", 300, 320, 290)
    assert Profile([writer.trace]).findings.record.unseen == ()


def test_the_report_is_short_and_complete() -> None:
    report = sentences.profile_report(Profile(two_ranks(400.0)))
    heading, hardware, _, header, first, second, _, *rest = report.splitlines()
    assert hardware == "Machine: node. A GPU of NVIDIA, whose model the file doesn't tell."
    assert heading == "2 ranks; 3 steps in 300 µs"
    assert header.split()[:2] == ["rank", "computing"] and first.split()[0] == "0" and second.split()[0] == "1"
    text = " ".join(rest)
    assert "Rank 1 is the slowest, and the other rank waited for it 50% of the time." in text
    assert "They have been corrected by the collectives" in text and "reason d of lesson 14" in text
    assert max(map(len, report.splitlines())) <= 92


def test_many_ranks_have_a_short_table() -> None:
    profile = Profile(two_ranks(ranks=range(40), error=0.0))
    report = sentences.profile_report(profile)
    assert "24 ranks are not shown." in report and report.count("%  ") > 16


def test_a_picture_of_many_ranks_has_some_of_them() -> None:
    profile = Profile(two_ranks(ranks=range(40)))
    drawn = pictures.profile(profile.lanes, "Title", "What was run")
    assert "16 of 40 ranks" in drawn.alt_text and drawn.get_size_inches()[1] < 15
    path = pictures.critical(profile.lanes, profile.findings.path, "Title")
    assert "The critical path: own work of rank 39" in path.alt_text


@pytest.mark.parametrize("number", [1, 16, 17, 200])
def test_of_many_ranks_both_ends_and_the_median_are_shown(number) -> None:
    shown = shown_of(list(range(number)), float)
    assert len(shown) == min(number, MOST_SHOWN) and shown == sorted(set(shown))
    assert {0, number // 2, number - 1} <= set(shown)


CARRY = {
    ALL_REDUCE: "allreduce",
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)": "allreduce",
    "ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclWorkElem)": "reducescatter",
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)": "generic",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "sendrecv",
    "mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)": "sum",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)": "allreduce",
    "void c10d::symmetric_memory::(anonymous namespace)::two_shot_all_reduce_kernel<float>(float*)": "allreduce",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)": "allreduce",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<8>(float*)": "allreduce",
    "void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half>>(__half*)": "allreduce",
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 2>(float*)": "allreduce",
    "void deep_ep::internode_ll::dispatch<true, 3, 7168>(void*)": "dispatch",
    "void deep_ep::intranode::combine<__nv_bfloat16>(void*)": "combine",
    "void tensorrt_llm::kernels::moeA2ADispatchKernel<8>(int*)": "dispatch",
    "EpDispatchIntraNodeKernel_bf16": "dispatch",
    "hcom_allReduce__428_0_1": "allreduce",
}
COMPUTE = [
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(float*)",
    "void at::native::vectorized_gather_kernel<16, long>(char*)",
    "triton_poi_fused_all_reduce_0",  # torch.compile has named it after the operator before it
    "triton_red_fused_add_all_gather_into_tensor_2",
    "gemm_all_reduce_kernel",  # multiplies matrices meanwhile
    "void deep_ep::layout::get_dispatch_layout<8>(int*)",
    "void flash_fwd_mla_combine_kernel<float>(float*)",
    "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16>(int*)",
    "",
]


@pytest.mark.parametrize("name", CARRY, ids=range(len(CARRY)))
def test_kernels_that_carry_messages_are_known_by_their_names(name) -> None:
    assert carries_messages(name) and operation_of(name) == CARRY[name]


@pytest.mark.parametrize("name", COMPUTE, ids=range(len(COMPUTE)))
def test_other_kernels_compute(name) -> None:
    assert not carries_messages(name)


@pytest.mark.parametrize(
    ("world", "texts"), [(1, []), (2, ["No message between ranks was found, though there were 2 ranks."])]
)
def test_several_ranks_without_a_message_are_told_so(world, texts) -> None:
    traces = []
    for rank in range(world):
        writer = RankWriter(rank, world, error=0.0)
        writer.step(0, 0, 100)
        writer.kernel("gemm", 10, 90, 5)
        traces.append(writer.trace)
    report = " ".join(sentences.profile_report(Profile(traces)).split())
    assert "exposed" not in report and all(text in report for text in texts)
    assert ("No message" in report) == bool(texts)


@pytest.mark.parametrize(
    ("devices", "call", "hardware"),
    [
        ([{"name": "NVIDIA B200"}, {"name": "NVIDIA B200"}], "cudaLaunchKernel", ("NVIDIA B200", GpuMaker.NVIDIA)),
        ([{"name": "AMD Instinct MI300X"}], "hipLaunchKernel", ("AMD Instinct MI300X", GpuMaker.AMD)),
        ([], "hipLaunchKernel", (None, GpuMaker.AMD)),
        ([{}, 7, {"name": 5}], "other", (None, GpuMaker.OTHER)),
        (None, "", (None, None)),
    ],
)
def test_what_a_profile_was_recorded_on(devices, call, hardware) -> None:
    writer = RankWriter(0, 1)
    writer.trace["deviceProperties"] = devices
    if call:
        writer.add(event(call, "cuda_runtime", 0, 1))
        writer.add(event("gemm", "kernel", 2, 9, pid=0))
    else:
        writer.add(event("aten::mm", "cpu_op", 2, 9))
    found = Profile([writer.trace]).hardware
    assert found == ProfiledHardware(("node",), tuple(filter(None, hardware[:1])), hardware[1])
    assert hardware_text(found).startswith("Machine: node.") and (hardware[0] or "") in hardware_text(found)


def test_many_machines_are_counted() -> None:
    assert hardware_text(ProfiledHardware(("a", "b"), ("NVIDIA B200",), GpuMaker.NVIDIA)) == (
        "Machines: a and b. GPU: NVIDIA B200."
    )
    assert hardware_text(ProfiledHardware(tuple("abcdefgh"))).startswith("Machines: 8. No work of a GPU")


def test_a_machine_without_a_name_has_no_label() -> None:
    traces = two_ranks(error=0.0)
    traces[1]["course"]["machine"] = ""
    labels = [each for each in merge(traces)["traceEvents"] if each["name"] == "process_labels"]
    assert [(each["pid"], each["args"]["labels"]) for each in labels] == [(0, "node")]


def test_a_recorded_gpu_is_limited_by_launches() -> None:
    trace = read_trace(RECORDED / "channels-last.json.gz")
    lanes = lanes_of(trace)
    clocks = on_one_clock([{"course": {"rank": 0, "error": 0.0}}])[1]
    assert findings(trace, lanes, clocks).program.drives_gpu


def plain_profile(folder: str) -> None:
    """On a rank: profile three steps as PyTorch's documentation does."""
    import torch
    import torch.distributed as dist
    from torch.profiler import profile, schedule, tensorboard_trace_handler

    vector = torch.ones(1000)
    write = tensorboard_trace_handler(folder, worker_name=f"rank{dist.get_rank()}")
    with profile(schedule=schedule(wait=0, warmup=1, active=3, repeat=1), on_trace_ready=write) as profiler:
        for _ in range(4):
            for _ in range(10 + 40 * dist.get_rank()):
                torch.mm(torch.ones(100, 100), torch.ones(100, 100))
            dist.all_reduce(vector)
            profiler.step()


def test_a_profile_of_plain_torch_is_read_and_followed(four_ranks, tmp_path) -> None:
    four_ranks.run(plain_profile, str(tmp_path), backend="gloo", ranks=2)
    profile = course.read_profile(tmp_path)
    assert [own.rank for own in profile.lanes] == [0, 1] and [own.steps for own in profile.lanes] == [3, 3]
    assert len(profile.findings.matching.collectives) == 3 and profile.findings.matching.unmatched == 0
    assert profile.findings.path_problem is None
    assert "steps in" in sentences.profile_report(profile)


def test_the_unbalanced_program_has_a_slowest_rank(four_ranks) -> None:
    found = profile_program(four_ranks, 4).findings
    assert found.slowest.rank == 3 and found.path_problem is None
