"""Why launches fail: recorded and made-up logs, the same with other names and in other orders, and the command."""

import importlib
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from lessons.gpu_nodes.log_cases import CASES, HEALTHY, WATCHDOG, WORDS, LogCase

from course_utils.cli import app
from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.advice import ADVICE, PageSection, advice_for
from course_utils.lessons.gpu_nodes.failures.enqueued_work import Behind, behind_of
from course_utils.lessons.gpu_nodes.failures.exit_codes import EXIT_CODE, INSIDE_MPI, SIGNALS, failure_of_code, tasks_of
from course_utils.lessons.gpu_nodes.failures.line_reports import CPP_EXCEPTION, reports_of
from course_utils.lessons.gpu_nodes.failures.log_report import LogReport, log_report, log_report_text, ranks_text
from course_utils.lessons.gpu_nodes.failures.reading.log_parser import lines_of
from course_utils.lessons.gpu_nodes.failures.recorded_logs import LOGS, RECORDED, recording
from course_utils.lessons.gpu_nodes.failures.rules import MEANINGS, Meaning, may_mean, meaning_of
from course_utils.lessons.gpu_nodes.failures.story import ReportKind, Story, explain_failure
from course_utils.lessons.gpu_nodes.failures.tracebacks import CodePosition, tracebacks_of

ROOT = Path(__file__).parents[3]
NOISE = (
    "/home/ada/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:61: FutureWarning: pynvml is deprecated.",
    "W1122 00:59:00.100000 77 torch/distributed/run.py:874] master_addr is only used for static rdzv_backend",
    "epoch 3 loss 0.241 accuracy 0.93",
    "node01:77:91 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
    "Set PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation when you run out of memory often.",
    "wrote /scratch/ada/metrics.csv",
    "[rank0]:[W1122 00:59:00.082308235 ProcessGroupNCCL.cpp:1575] Warning: destroy_process_group() was not called",
)
"""Lines that a launch prints whether it fails or not."""


def story_of(log: str, world_size: int = 0) -> Story:
    story = explain_failure(reports_of(lines_of(log), world_size), world_size)
    assert story is not None
    return story


def varied(log: str) -> str:
    """Another port, process, node, user, version and day; the same failure."""
    for pattern, new in (
        (r"\bnode0(\d)", r"gpu1\1"),
        (r"/home/ada\b", "/projects/p77/grace"),
        (r"/mnt/runs\b", "/scratch/x9"),
        (r"2\.13\.0\+cpu", "2.9.1+cu128"),
        (r"Python 3\.11\.\d+", "Python 3.13.1"),
        (r"\b29500\b", "41234"),
        (r"port: \d+", "port: 1234"),
        (r"\[rank1\]", "[rank13]"),
        (r"1/2 clients", "5/8 clients"),
        (r"\b1122 ", "0304 "),
        (r"2026-11-22", "2027-03-04"),
        (r"pid: \d+", "pid: 99"),
        (r"\bc1\b", "gpu12"),
    ):
        log = re.sub(pattern, new, log)
    return log


def interleaved(log: str, rng: random.Random) -> str:
    """The lines of two nodes, or of two ranks, mixed otherwise; each writer's stay in their order."""
    owner = [(re.match(r"(?:(\d): |\[(rank\d+)\])", line) or [""])[0] for line in log.splitlines()]
    positions = owner[:]
    rng.shuffle(positions)
    queues = {name: [line for writer, line in zip(owner, log.splitlines()) if writer == name] for name in set(owner)}
    return "\n".join(queues[name].pop(0) for name in positions)


@pytest.mark.parametrize("failure", RECORDED)
def test_each_recording_is_explained_by_its_cause(failure: str) -> None:
    report = log_report(lines_of(recording(failure).log))
    assert report.story is not None and report.story.cause.failure == failure and report.launches == 1


@pytest.mark.parametrize("failure", RECORDED)
@pytest.mark.parametrize("seed", range(5))
def test_a_changed_recording_has_the_same_cause(failure: str, seed: int) -> None:
    rng = random.Random(seed)
    log = interleaved(varied(recording(failure).log), rng)
    before, after = (rng.choices(NOISE, k=rng.randrange(2000)) for _ in range(2))
    assert story_of("\n".join([*before, log, *after])).cause.failure == failure


@pytest.mark.parametrize(
    ("file", "failure", "text"),
    [
        ("out_of_memory_allocator", "out of memory", "DefaultCPUAllocator"),
        ("out_of_memory_gpu", "out of GPU memory", "CUDA out of memory"),
        ("wrong_gpu_binding_ordinal", "wrong GPU binding", "invalid device ordinal"),
    ],
)
def test_a_second_recording_of_the_same_cause_is_known(file: str, failure: str, text: str) -> None:
    cause = story_of((Path(__file__).parent / "failures" / f"{file}.log").read_text()).cause
    assert cause.failure == failure and text in cause.line.text


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_log_that_is_re_made_is_explained_right(case: LogCase) -> None:
    story = log_report(lines_of(case.log)).story
    assert story is not None
    assert (story.cause.failure, story.cause.line.number, story.ranks) == (case.failure, case.line, case.ranks)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_colours_and_windows_line_ends_change_nothing(case: LogCase) -> None:
    log = re.sub(r"(?m)^(.*\S)", "\x1b[31m\\1\x1b[0m", case.log).replace("\n", "\r\n")
    story = log_report(lines_of(log)).story
    assert story is not None
    assert (story.cause.failure, story.cause.line.number, story.ranks) == (case.failure, case.line, case.ranks)


@pytest.mark.parametrize(
    ("failure", "line"), [(failure, line) for failure, lines in WORDS.items() for line in lines], ids=str
)
def test_other_words_for_the_same_failures(failure: str, line: str) -> None:
    log = "\n".join([*NOISE, line, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", *NOISE])
    cause = story_of(log).cause
    assert cause.failure == failure and cause.line.text == line and may_mean(line)


@pytest.mark.parametrize("log", HEALTHY.values(), ids=HEALTHY)
def test_where_nothing_failed_the_report_does_not_invent_it(log: str) -> None:
    report = log_report(lines_of(log))
    assert not report.failed and report.is_known


def test_every_rule_is_used_by_a_log() -> None:
    lines = [line for lines in WORDS.values() for line in lines]
    logs = [case.log for case in CASES.values()] + [recording(failure).log for failure in RECORDED]
    lines += [line for log in logs for line in log.splitlines()]
    assert [meaning.shows for meaning in MEANINGS if not any(meaning.pattern.search(line) for line in lines)] == []


def lines_that_fit(tree: Iterable[tuple[object, Any]]) -> list[str]:
    """A line for each of the alternatives of a regular expression."""
    lines = [""]
    for operation, argument in tree:
        match str(operation):
            case "LITERAL":
                parts = [chr(argument)]
            case "BRANCH":
                parts = [part for branch in argument[1] for part in lines_that_fit(branch)]
            case "SUBPATTERN":
                parts = lines_that_fit(argument[3])
            case "MAX_REPEAT":
                parts = [part * argument[0] for part in lines_that_fit(argument[2])] if argument[0] else [""]
            case "IN":
                letters = [chr(value) for kind, value in argument if str(kind) == "LITERAL"]
                is_other = any(str(kind) in ("NEGATE", "CATEGORY", "RANGE") for kind, _ in argument)
                parts = ["0"] if is_other else letters
            case "ANY" | "NOT_LITERAL":
                parts = ["~"]
            case _:
                parts = [""]
        lines = [line + part for line in lines for part in parts]
    return lines


@pytest.mark.parametrize("meaning", MEANINGS, ids=lambda meaning: meaning.shows[:40])
def test_no_rule_waits_for_lines_that_are_never_shown_to_it(meaning: Meaning) -> None:
    tree = importlib.import_module("re._parser").parse(meaning.shows)
    fitting = [line for line in lines_that_fit(tree) if meaning.pattern.search(line)]
    assert fitting and [line for line in fitting if not may_mean(line)] == []


def test_of_rules_that_a_line_fits_the_first_counts() -> None:
    meaning = meaning_of(["RuntimeError: NCCL error: unhandled cuda error: Cuda failure 2 'out of memory'"])
    assert meaning is not None and meaning.failure == "out of GPU memory"
    assert meaning_of(["epoch 3 loss 0.241"]) is None


def test_every_failure_has_an_advice_and_a_log() -> None:
    known = {meaning.failure for meaning in MEANINGS} | set(SIGNALS.values()) | {EXIT_CODE}
    assert known <= set(ADVICE)
    assert set(ADVICE) - known == {"two torchruns", "permission denied", CPP_EXCEPTION, INSIDE_MPI}
    assert {file.stem for file in LOGS.glob("*.log")} == {failure.lower().replace(" ", "_") for failure in RECORDED}
    shown = set(WORDS) | set(RECORDED) | {case.failure for case in CASES.values()}
    assert known <= shown


@pytest.mark.parametrize("failure", ADVICE)
def test_each_advice_leads_to_a_page_that_exists(failure: str) -> None:
    advice = ADVICE[failure]
    assert advice.why.endswith(".") and advice.next.endswith(".")
    if isinstance(advice.page, PageSection):
        source = ROOT / advice.page.file.replace("notebooks/", "notebooks/src/").replace(".ipynb", ".py")
        assert f"# ## {advice.page.heading}" in source.read_text().splitlines()
    else:
        assert re.match(r"https://[\w.-]+/", advice.page)


def test_an_exception_that_no_rule_knows_has_its_own_name_and_position() -> None:
    log = CASES["one rank raises, the others wait in vain"].log
    report = log_report(lines_of(log))
    assert report.raised is not None
    assert (report.raised.type, report.raised.position) == (
        "KeyError",
        CodePosition("/home/ada/ddp/train.py", 77, "<module>"),
    )
    assert "in the program: /home/ada/ddp/train.py, line 77" in log_report_text(report)
    assert advice_for("KeyError").why


def test_the_position_is_the_last_one_outside_of_packages() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/home/ada/a.py", line 3, in main\n    f()\n'
        '  File "/home/ada/env/lib/python3.12/site-packages/b/c.py", line 9, in f\n    g()\nb.Wrong: no\n'
    )
    ((raised,),) = tracebacks_of(lines_of(log)).chains
    assert (raised.type, raised.position) == ("Wrong", CodePosition("/home/ada/a.py", 3, "main"))


def test_a_compiled_part_of_a_package_is_not_the_program() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/home/ada/a.py", line 3, in save\n    f()\n'
        '  File "/env/lib/python3.12/site-packages/netgrid/store.py", line 40, in open\n    Dataset()\n'
        '  File "src/netgrid/_netgrid.pyx", line 2158, in netgrid._netgrid.check\n'
        "PermissionError: [Errno 13] Permission denied: 'run7.nc'\n"
    )
    assert "in the program: /home/ada/a.py, line 3, in save" in text_of(log)
    text = text_of(log.replace("/home/ada", "/env/lib/python3.12/site-packages/b"))
    assert "in the program:" not in text and "in a package: src/netgrid/_netgrid.pyx" in text


def test_tracebacks_of_two_ranks_are_told_apart() -> None:
    def lines(rank: int, name: str) -> list[str]:
        mark = f"[rank{rank}]: "
        return [
            f"{mark}Traceback (most recent call last):",
            f'{mark}  File "{name}.py", line {rank + 1}, in {name}',
            f"{mark}    {name}()",
            f"{mark}{name.title()}Error: {name}",
        ]

    mixed = [line for pair in zip(lines(0, "zero"), lines(1, "one")) for line in pair]
    chains = tracebacks_of(lines_of("\n".join(mixed))).chains
    assert [(raised.type, raised.rank, raised.position.number) for (raised,) in chains] == [
        ("ZeroError", 0, 1),
        ("OneError", 1, 2),
    ]


def test_code_that_a_traceback_shows_reports_nothing() -> None:
    log = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in main\n'
        '    raise ValueError("CUDA out of memory")\nValueError: no\n'
    )
    assert story_of(log).cause.failure == "ValueError"


def test_what_a_launcher_says_of_a_process_is_a_sign() -> None:
    story = story_of("step 1\nsrun: error: n1: tasks 1,3-4: Exited with exit code 2")
    assert (story.cause.failure, story.cause.kind, story.ranks) == (EXIT_CODE, ReportKind.SIGN, (1, 3, 4))


def test_tasks_of_srun_are_no_ranks_if_each_is_a_torchrun() -> None:
    log = "W1122 01:29:52.596000 13 torch/distributed/run.py:874] x\nsrun: error: n1: task 1: Exited with exit code 2"
    assert story_of(log).ranks == ()


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (1, EXIT_CODE),
        (-9, "killed"),
        (137, "killed"),
        (139, "segmentation fault"),
        (-15, "terminated"),
        (127, "command not found"),
        (-6, "aborted"),
    ],
)
def test_exit_codes_stand_for_failures(code: int, failure: str) -> None:
    assert failure_of_code(code) == failure


def test_the_numbers_of_tasks() -> None:
    assert tasks_of("0-2,5") == [0, 1, 2, 5] and tasks_of("7") == [7] and tasks_of("") == []


def test_the_first_error_by_time_counts_not_the_first_in_the_file() -> None:
    rank0 = "[rank0]:[E1122 01:00:09.000000 7 train.cpp:1] step failed\n[rank0]: RuntimeError: rank 1 sent nothing"
    rank1 = "[rank1]:[E1122 01:00:04.100000000 train.cpp:1] step failed\n[rank1]: KeyError: 'weights'"
    for log in (f"{rank0}\n{rank1}", f"{rank1}\n{rank0}"):
        assert story_of(log).cause.failure == "KeyError"


def test_a_line_that_says_why_processors_compute_is_no_failure() -> None:
    line = (
        "2 ranks on 1 node (n1), started by srun: gloo, because n1 has 1 GPU for 2 ranks, and NCCL wants one for each"
    )
    assert story_of(f"{line}\nValueError: bad shape").cause.failure == "ValueError"


@pytest.mark.parametrize("failure", RECORDED)
def test_a_recording_says_where_it_comes_from_and_nothing_of_the_machine(failure: str) -> None:
    recorded = recording(failure)
    assert recorded.commands and recorded.origin.startswith("Recorded on 2")
    assert not re.search(r"/(work|tmp|root)/", recorded.log + " ".join(recorded.commands))


def test_there_is_no_other_recording() -> None:
    with pytest.raises(CourseError, match="There is no recording of 'rain'"):
        recording("rain")
    with pytest.raises(CourseError, match="There is no recording of 0"):
        recording(0)


def test_recordings_to_predict_have_a_number() -> None:
    assert [recording(number).failure for number in (1, 2)] == ["out of memory", "no shared files"]


def text_of(log: str) -> str:
    return log_report_text(log_report(lines_of(log, "train.out")))


def test_the_report_says_who_waited_and_who_is_silent() -> None:
    log = "[rank3]: step 1\n" + "\n".join(f"[rank{rank}]:{WATCHDOG.format(rank)}" for rank in (0, 1, 3))
    text = text_of(log)
    assert text.startswith("collective timeout on ranks 0, 1 and 3: ")
    assert "Rank 2 reports nothing: look at its output and node first." in text


def test_the_watchdogs_tell_who_stayed_behind() -> None:
    log = "\n".join(
        f"[rank{rank}]:[E1218 20:27:21.48 ProcessGroupNCCL.cpp:2168] [PG ID {group} PG GUID {group} Rank {rank}] "
        " failure detected by watchdog at work sequence id: 1 PG status: "
        f"last enqueued work: {work}, last completed work: 7\n"
        f"[rank{rank}]:{WATCHDOG.format(rank)}"
        for group, works in enumerate([(3, 3, 3), (547, 547, 546)])
        for rank, work in enumerate(works)
    )
    assert log_report(lines_of(log)).behind == Behind((2,), 546, 547)
    assert "Rank 2 stayed behind: the last collective asked for there is number 546" in text_of(log)
    assert behind_of(lines_of(log.replace("546", "547"))) is None


def test_the_report_says_what_followed_and_how_much_later() -> None:
    text = text_of(CASES["one rank raises, the others wait in vain"].log)
    assert text.startswith("KeyError on rank 2: ")
    assert "    train.out, line 5 (rank 2): [rank2]: KeyError: 'zebra'" in text
    assert "What only followed: collective timeout (ranks 0 and 1, 10 minutes later)." in text


def test_the_report_says_which_launch_it_explains() -> None:
    text = text_of(CASES["a mistake in the program, in the last of two launches"].log)
    assert text.startswith("This log has 2 launches. Here is the last (lines 4 to 9 of train.out).\nSyntaxError: ")
    assert "train.py, line 232" in text


PLAIN_ERROR = 'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\nKeyError: 1\n'


@pytest.mark.parametrize(
    ("files", "is_known"),
    [
        ({"a/train.out": PLAIN_ERROR, "b/train.out": PLAIN_ERROR}, False),
        ({"a/train.out": PLAIN_ERROR, "b/train.out": f"2027-03-04 10:00:00 step 1\n{PLAIN_ERROR}"}, False),
        ({f"{name}/train.out": f"2027-03-0{day} 10:00:00 step 1\n{PLAIN_ERROR}" for name, day in ("a3", "b2")}, True),
        ({"train-4711.out": PLAIN_ERROR, "train-4712.out": PLAIN_ERROR}, True),
        ({"train.out": f"Loaded module: cuda\n{PLAIN_ERROR}" * 2}, True),
    ],
    ids=["no clocks", "one has a clock", "clocks", "the numbers of jobs", "the same file"],
)
def test_the_report_says_the_last_only_if_the_log_shows_which_it_is(files: dict[str, str], is_known: bool) -> None:
    report = log_report([line for file, log in files.items() for line in lines_of(log, file)])
    assert (report.launches, report.has_known_order) == (2, is_known)
    assert ("does not show which of them was the last" in log_report_text(report)) is not is_known
    assert ("Here is the last (" in log_report_text(report)) is is_known


def test_the_report_speaks_of_other_ranks_only_if_there_are_any() -> None:
    assert text_of(PLAIN_ERROR).count("other ranks") == 0
    assert text_of(f"rank 0 of 2 on n1\n{PLAIN_ERROR}").count("Later reports from other ranks are consequences") == 1


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_report_is_short(case: LogCase) -> None:
    assert len(text_of(case.log).splitlines()) <= 10


def test_the_position_of_what_is_caught_in_a_package_is_the_readers_own_line() -> None:
    text = text_of(CASES["an exception that is the direct cause of another one"].log)
    assert "in the program: /home/ada/train.py, line 12" in text


def test_the_programs_own_words_are_shown() -> None:
    text = text_of(CASES["C++ says what, and mpiexec names one process"].log)
    assert "I cannot understand line: CORALS" in text and "2 processes say so" in text
    frame = "terminate called after throwing an instance of 'Reef::Error'\n  what():\n" + "+++ REEF +++\n" * 4
    assert "Maybe a typo?" in text_of(f"{frame}I cannot read CORALS\nMaybe a typo?\n[n5:47005] Signal: Aborted (6)")
    text = text_of("grid2, line 1699\nsrun: error: n1: task 1: Exited with exit code 1\n")
    assert "The program's last words before that:\n    train.out, line 1: grid2, line 1699" in text


def test_long_lines_are_shown_in_part() -> None:
    lines = text_of("RuntimeError: " + "x" * 9999).splitlines()
    assert "RuntimeError: xxx" in lines[1] and len(lines[1]) < 300


def test_ranks_in_words() -> None:
    assert [ranks_text(ranks) for ranks in ([2], [0, 3], range(8), [0, 2, 4, 6, 8, 10, 12])] == [
        "rank 2",
        "ranks 0 and 3",
        "ranks 0 to 7",
        "ranks 0, 2, 4 and 4 more",
    ]


def doctor(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Exit status and output of `course doctor --log …`."""
    with pytest.raises(SystemExit) as end:
        app(["doctor", "--log", *map(str, arguments)])
    return int(end.value.code or 0), capsys.readouterr().out


def test_doctor_says_cause_line_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    status, printed = doctor(capsys, LOGS / "address_in_use.log")
    cause, line, then, page = printed.splitlines()
    assert status == 0 and cause.startswith("address in use: ") and then.startswith("Next: ")
    assert page.startswith("Read more: https://")
    number = int(re.search(r"line (\d+): torch.*EADDRINUSE", line)[1])
    assert "EADDRINUSE" in (LOGS / "address_in_use.log").read_text().splitlines()[number - 1]


def test_doctor_reads_a_folder_and_several_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "0.out").write_text(f"[rank0]:{WATCHDOG.format(0)}\n")
    (tmp_path / "1.out").write_text("step 1\nTraceback (most recent call last):\nKeyError: 'x'\n")
    for arguments in ([tmp_path], sorted(tmp_path.iterdir())):
        status, printed = doctor(capsys, *arguments)
        assert status == 0 and printed.startswith("KeyError") and "1.out, line 3" in printed


def test_doctor_does_not_guess(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "train.out").write_bytes(b"\xff step 1\ntrain.sh: error: no idea what happened\nUserWarning: old\n")
    status, printed = doctor(capsys, tmp_path / "train.out")
    assert status == 1 and printed.startswith("unknown: ") and "line 2: train.sh: error" in printed
    assert "UserWarning" not in printed


def test_doctor_says_that_nothing_failed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "train.out").write_text(HEALTHY["a run that ended"])
    status, printed = doctor(capsys, tmp_path / "train.out")
    assert status == 0 and re.match("No(thing failed| failure shows)", printed)


def test_a_log_without_text_is_said_in_a_line(tmp_path: Path) -> None:
    for number, content in enumerate([b"", b" \n\r\n", b"\x1b[0m\x1b[1m\n", b"\x00\x00\x00"]):
        (tmp_path / f"{number}.out").write_bytes(content)
        with pytest.raises(CourseError):
            app(["doctor", "--log", str(tmp_path / f"{number}.out")])


def test_files_need_the_option(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="write --log before it"):
        app(["doctor", str(tmp_path)])


@pytest.mark.parametrize("seed", range(30))
def test_no_input_gives_a_traceback(seed: int) -> None:
    rng = random.Random(seed)
    lines = [line for case in CASES.values() for line in case.log.splitlines()]
    lines += [line for lines in WORDS.values() for line in lines] + ["", "\t", "\x00", "[rank", '  File "', "é" * 300]
    chosen = [line[: rng.randrange(1, 200)] if rng.random() < 0.3 else line for line in rng.choices(lines, k=400)]
    report = log_report(lines_of("\n".join(chosen)))
    assert isinstance(report, LogReport) and len(log_report_text(report).splitlines()) <= 15
