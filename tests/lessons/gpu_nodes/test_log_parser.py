"""The lines of a log: their numbers, and the rank, the node and the time of each."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.lessons.gpu_nodes.failures.reading.identities import Owner
from course_utils.lessons.gpu_nodes.failures.reading.log_files import _text_of
from course_utils.lessons.gpu_nodes.failures.reading.log_parser import lines_of
from course_utils.lessons.gpu_nodes.failures.reading.logged_launches import launches_of


def numbered(text: str) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in lines_of(text)]


def ranks_of(text: str, owner: Owner | None = None) -> list[int | None]:
    return [line.rank for line in lines_of(text, owner=owner or Owner())]


def test_numbers_are_those_of_an_editor() -> None:
    text = "a\r\n\nbar  10%|#   | 1/10\rbar  20%|##  | 2/10\rbar  30%|### | 3/10\n\x0cpage\x0bb\u2028c\nd"
    assert numbered(text) == [(1, "a"), (3, "bar  30%|### | 3/10"), (4, "\x0cpage\x0bb\u2028c"), (5, "d")]


def test_what_is_written_behind_a_progress_bar_is_a_piece_of_its_own() -> None:
    assert numbered("10%|#  | 1/10 [00:01<00:09, 1.2s/it][rank1]: Traceback (most recent call last):") == [
        (1, "10%|#  | 1/10 [00:01<00:09, 1.2s/it]"),
        (1, "[rank1]: Traceback (most recent call last):"),
    ]
    assert [text for _, text in numbered("10%|#  | 1/10\rSaved.\r20%|## | 2/10slurmstepd: error: *** JOB 1 ON n1")] == [
        "Saved.",
        "20%|## | 2/10",
        "slurmstepd: error: *** JOB 1 ON n1",
    ]


def test_two_ranks_on_a_line_are_told_apart() -> None:
    assert ranks_of("step 3[rank1]: KeyError: 'a'[rank0]: KeyError: 'a'\n") == [None, 1, 0]
    assert numbered("loss 0.4Traceback (most recent call last):")[1] == (1, "Traceback (most recent call last):")


def test_colours_and_zeros_are_left_out() -> None:
    assert numbered("\x1b[1;31mError\x1b[0m: \x1b]8;;http://a\x07x\x1b]8;;\x07\n\0\0\0next\0") == [
        (1, "Error: x"),
        (2, "next"),
    ]


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[rank3]: KeyError: 'a'", 3),
        ("[rank3]:[E1120 10:10:02.000001400 ProcessGroupNCCL.cpp:629] [PG ID 2 PG GUID 5 Rank 0] Watchdog", 3),
        ("[E ProcessGroupNCCL.cpp:475] [Rank 3] Watchdog caught collective operation timeout", 3),
        ("[E1120 10:10:02.000001 44 x.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 3] Process group", 3),
        ("[default3]:[rank11]: ValueError: x", 11),
        ("[default3]:ValueError: x", 3),
        ("[1,3]<stderr>:KeyError: 'a'", 3),
        ("[prterun-n1-77@1,3]<stdout>: hello", 3),
        ("2026-11-05 10:30:11,818 [INFO][rank=3] Initialized (rank=3, world_size=4)", 3),
        ("[2026-11-05 22:07:59,532][train][rank3][pid:18][INFO] go", 3),
        ("[Rank 3/8] step 7", 3),
        ("Rank 3: loss 0.4", 3),
        ("[INFO] Rank 3 has 12 batches", None),
        ("rank 3 wrote /mnt/checkpoint.pt", 3),
        ("rank 3 did not answer", None),
        ("RuntimeError: rank 3 lost its connection", None),
        ("Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8", 3),
        ("LOCAL_RANK: 3 - CUDA_VISIBLE_DEVICES: [0,1,2,3]", 3),
        ("(RayTrainWorker pid=14, ip=10.0.0.2) [rank3]: ValueError: x", 3),
        ("srun: error: n1: task 3: Exited with exit code 1", None),
        ("E1128 10:11:12.131415 4242 api.py:869] failed (exitcode: -9) local_rank: 1 (pid: 4250)", None),
        ("mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 11", None),
        ("Frank 3 and the [ranks]", None),
    ],
)  # fmt: skip
def test_who_wrote_a_line(line: str, rank: int | None) -> None:
    assert ranks_of(line) == [rank]


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("srun: error: n1: task 0: Exited with exit code 1", "n1"),
        ("slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-22T01:22:39 ***", "n1"),
        ("slurmstepd: error: *** JOB 91 ON n15 CANCELLED AT 2026-11-13T04:10:12 DUE TO NODE FAILURE ***", "n15"),
        ("n2:29850:29871 [0] misc/socket.cc:50 NCCL WARN Connection closed", "n2"),
        ("[2026-11-26 19:38:19] node01:1568:1568 [0] bootstrap.cc:114 NCCL WARN x", "node01"),
        ("[n12:31337] Local abort before MPI_INIT", "n12"),
        ("[1579244743.400000] [gpu07:4711:0]   debug.c:77 UCX  ERROR x", "gpu07"),
        ("(RayTrainWorker pid=14, ip=10.0.0.2) ValueError: x", "10.0.0.2"),
        ("Nov 22 01:12:31 n1 kernel: NVRM: Xid (PCI:0000:07:00): 79", "n1"),
        ("[12:31] lunch", ""),
        ("http://n1:8080/path", ""),
    ],
)
def test_on_which_node(line: str, node: str) -> None:
    assert [line.node for line in lines_of(line)] == [node]


def test_srun_label_is_a_rank_where_each_task_is_one() -> None:
    log = " 0: step 1\n 1: step 1\n10: Traceback (most recent call last):\n 1: ValueError: x\nmodule list"
    assert ranks_of(log) == [0, 1, 10, 1, None]


def test_srun_label_is_no_rank_where_each_task_is_a_launcher() -> None:
    log = "0: [rank0]: ValueError: a\n1: [rank2]: ValueError: b\n1: starting\n0: E1122 01:26:08.930000 8 api.py:1] x"
    assert ranks_of(log) == [0, 2, None, None]
    banner = "W1122 01:29:52.596000 13469 torch/distributed/run.py:874] Setting OMP_NUM_THREADS environment variable"
    assert ranks_of(f"0: {banner}\n1: {banner}\n0: hello\n1: hello") == [None] * 4


def test_numbers_before_lines_are_no_tasks_if_they_count_lines() -> None:
    assert ranks_of("\n".join(f"{number}: Traceback (most recent call last):" for number in range(1, 9))) == [None] * 8
    assert ranks_of("12: of twelve\nstep\nstep\nstep") == [None] * 4


def test_numbers_in_brackets_are_tasks_if_most_lines_have_them() -> None:
    assert ranks_of("[0] hello\n[1] hello\n[1] KeyError: 'a'") == [0, 1, 1]
    assert ranks_of("[1] 4711\nhello\nhello") == [None] * 3


def test_a_summary_of_torchrun_tells_which_rank_a_process_is() -> None:
    log = """
E1122 01:29:58.348000 13519 api.py:1002] failed (exitcode: 1) local_rank: 0 (pid: 99) of binary: python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-22_01:29:58
  host      : n2
  rank      : 5 (local_rank: 1)
  exitcode  : -15 (pid: 98)  (SIGTERM)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_01:29:58
  host      : n2
  rank      : 4 (local_rank: 0)
  exitcode  : 1 (pid: 99)
  traceback : Traceback (most recent call last):
    KeyError: 'zebra'
============================================================
"""
    lines = lines_of(log)
    ranks = {line.text.strip(): (line.rank, line.node) for line in lines}
    assert lines[0].rank == 4 and lines[0].node == "n2"
    assert ranks["exitcode  : -15 (pid: 98)  (SIGTERM)"] == (5, "n2")
    assert ranks["KeyError: 'zebra'"] == (4, "n2")
    assert ranks["train.py FAILED"] == (None, "")


def test_the_largest_group_of_nccl_tells_which_rank_a_process_is() -> None:
    log = """
n1:10:11 [0] NCCL INFO comm 0x55 rank 0 nranks 2 cudaDev 0 busId 7000
n1:10:11 [0] NCCL INFO comm 0x66 rank 5 nranks 8 cudaDev 0 busId 7000
n1:10:12 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer
n1:77:78 [0] NCCL WARN who is this
[rank5]: ValueError: x
"""
    assert [(line.rank, line.node) for line in lines_of(log)] == [
        (5, "n1"), (5, "n1"), (5, "n1"), (None, "n1"), (5, "n1"),
    ]  # fmt: skip


def test_local_ranks_on_several_nodes_are_ranks_if_other_marks_tell() -> None:
    log = "0: [default0]:a\n0: [default1]:[rank1]: b\n1: [default0]:[rank2]: c\n1: [default1]:d\n2: [default1]:e"
    assert ranks_of(log) == [0, 1, 2, 3, None]


def test_a_message_of_several_lines_belongs_to_its_first() -> None:
    log = """
[rank1]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 1] Process group watchdog thread terminated with exception: NCCL error
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
Last error:
Exception raised from checkForNCCLErrors at ProcessGroupNCCL.cpp:1 (most recent call first):
frame #0: c10::Error::Error() + 0x57 (0x7f in libc10.so)
step 7
frame #1: of somebody else
"""
    assert ranks_of(log) == [1, 1, 1, 1, 1, None, None]


def test_a_traceback_that_was_logged_belongs_to_the_rank_that_logged_it() -> None:
    log = """
2026-11-05 10:30:11,818 [ERROR][rank=2] step failed
Traceback (most recent call last):
  File "train.py", line 3, in <module>
KeyError: 'a'
hello
2026-11-05 10:30:12,818 [INFO][rank=2] step
Traceback (most recent call last):
"""
    assert ranks_of(log) == [2, 2, 2, 2, None, 2, None]


def test_a_file_belongs_to_its_owner() -> None:
    log = "hello\n[rank1]: of a different one\nsrun: error: n1: task 0: Exited with exit code 1\nbye"
    assert ranks_of(log, Owner(7)) == [7, 1, None, 7]


def test_a_line_without_a_clock_has_the_time_of_its_writer() -> None:
    log = """
[rank1]: before any clock
2026-11-20 10:00:01 [rank1] a
2026-11-20 10:00:09 [rank0] b
[rank1]: Traceback (most recent call last):
[rank2]: ValueError: of a rank without a clock
hello
"""
    times = [line.time for line in lines_of(log)]
    assert times[0] is None and times[3] == times[1] and times[4] == times[5] == times[2] == times[1] + 8


def test_the_clock_of_a_rank_does_not_go_back() -> None:
    log = "2026-10-25 02:59:58 [rank0] a\n2026-10-25 02:00:05 [rank0] b\n2026-10-25 02:00:06 [rank1] c"
    first, second, third = (line.time for line in lines_of(log))
    assert first == second and third < first


def test_lines_without_a_rank_are_ordered_by_their_clocks() -> None:
    log = "E1122 01:00:09.000000 7 train.py:1] late\n[E1122 01:00:04.100000000 train.cpp:1]\nKeyError: 'weights'"
    late, early, error = (line.time for line in lines_of(log))
    assert early == error == late - 4.9


PARTS = [
    *("\n", "\r", "\r\n", "\0", "\x85", "é", "x", "rank      : 1 (local_rank: 0)", "=====", "exitcode  : 1 (pid: 7)"),
    *("\x1b[31m", "[rank1]: ", "[default0]:", "0: ", "[1,3]<stderr>:", "Traceback (most recent call last):", "[0]:"),
    *("  10%|#  | 1/10 [00:01<00:09]", "E1122 01:12:31.798 ", "2026-11-22 01:02:03 ", "0229 ", "n1:1:2 [0] NCCL "),
    *("W0000 00:00:1755715039.9 ", "99:99:99 ", "0000-00-00 00:00:00 ", "srun: error: ", f"[rank{'9' * 30}]: "),
]


@given(st.one_of(st.binary(), st.lists(st.sampled_from(PARTS)).map(lambda parts: "".join(parts).encode())))
def test_any_bytes_are_lines(content: bytes) -> None:
    """No bytes are an error, numbers are those of the file, and of what is not a progress bar nothing is lost."""
    lines = [_text_of(line) for line in content.split(b"\n")]
    found = lines_of("\n".join(lines), "train.out", near=1.8e9)
    assert [line for launch in launches_of(found) for line in launch.lines] == found
    assert [line.number for line in found] == sorted(line.number for line in found)
    for number, text in enumerate(lines, 1):
        pieces = "".join(line.text for line in found if line.number == number)
        if "%|" not in text and "\x1b" not in text:
            assert re.sub(r"[\s\0\x07\x08]", "", pieces) == re.sub(r"[\s\0\x07\x08]", "", text)
