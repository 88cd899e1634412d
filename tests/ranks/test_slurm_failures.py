"""What Slurm may say against a job, by commands that say it: the cause is a value, and gets its line."""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

import course_utils as course
from course_utils import settings
from course_utils.errors import CourseError
from course_utils.progress_bar import ProgressBar
from course_utils.ranks.launch_sites import SlurmNodes
from course_utils.ranks.processes.ranks_folder import RanksFolder, shared_root, unwritable_text
from course_utils.ranks.slurm import job_startup, node_trial, remote_ranks, slurm_commands
from course_utils.ranks.slurm.batch_job import Job, submit
from course_utils.ranks.slurm.cluster_state import ClusterHealth, cluster_state
from course_utils.ranks.slurm.job_names import lesson_number, name_options
from course_utils.ranks.slurm.job_sentences import cluster_text, end_text, findings_text, waiting_text
from course_utils.ranks.slurm.job_status import EndCause, JobStatus, end_of, status_of
from course_utils.ranks.slurm.node_agent import NodeReport
from course_utils.ranks.slurm.node_trial import FOUND, NodeFinding, NodeTrouble, findings_of, trial_lines
from course_utils.ranks.slurm.remote_ranks import RemoteRanks
from course_utils.ranks.slurm.slurm_commands import Silence, ask_slurm


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """`commands(sbatch="echo 12")` puts commands of Slurm's on the PATH, where there are no others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "sed", "tr", "tail", "sleep", "hostname", "mv"):
        (folder / tool).symlink_to(Path("/usr/bin", tool).resolve() if tool != "sh" else "/bin/sh")
    monkeypatch.setenv("PATH", str(folder))

    def add(**scripts: str) -> None:
        for name, script in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o700)

    return add


@pytest.fixture
def folder(tmp_path, monkeypatch) -> RanksFolder:
    """The folder of ranks of a job, below $COURSE_SHARED."""
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv("COURSE_SHARED", str(tmp_path / "shared"))
    return RanksFolder.new(shared_root())


MUNGE = 'Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file (Did you start munged?)'


@pytest.mark.parametrize(
    ("script", "silence"),
    [
        (
            "echo 'slurm_load_partitions: Unable to contact slurm controller (connect failure)' >&2; exit 1",
            "controller",
        ),
        ("echo 'slurm_load_partitions: Socket timed out on send/recv operation' >&2; exit 1", "controller"),
        (f"echo 'sinfo: error: {MUNGE}' >&2; echo 'Protocol authentication error' >&2; exit 1", "credentials"),
        ("echo 'sinfo: fatal: Could not establish a configuration source' >&2; exit 1", "configuration"),
        ("echo 'get_addr_info: getaddrinfo() failed: Name or service not known' >&2; exit 1", "configuration"),
        ("exec sleep 60", "controller"),
    ],
)
def test_a_slurm_that_does_not_answer_is_told_before_anything_is_started(
    commands, monkeypatch, script, silence
) -> None:
    monkeypatch.setattr(slurm_commands, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(ask_slurm, "__kwdefaults__", {"seconds": 0.5, "environment": None})
    commands(sinfo=script)
    answer = ask_slurm("sinfo")
    assert answer.silence == Silence(silence) and not answer.accepted
    with pytest.raises(CourseError, match=r"Slurm.*(controller|clocks|configuration)"):
        course.start(2, where="slurm")


def test_a_munge_that_hangs_is_told_from_a_controller_that_does(commands, monkeypatch) -> None:
    commands(sinfo="exec sleep 60", munge="exec sleep 60")
    monkeypatch.setattr(slurm_commands, "_MUNGE_SECONDS", 0.2)
    assert ask_slurm("sinfo", seconds=0.2).silence is Silence.CREDENTIALS
    commands(munge="echo MUNGE:abc:")
    assert ask_slurm("sinfo", seconds=0.2).silence is Silence.CONTROLLER


def test_without_slurm_a_line_says_so(commands) -> None:
    with pytest.raises(CourseError, match=r"There is no Slurm here \(no sinfo\).*`course.start\(4\)`"):
        course.start(2, where="slurm")


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("Invalid account or account/partition combination specified", "SBATCH_ACCOUNT"),
        ("Invalid qos specification", "SBATCH_QOS"),
        ("Required partition not available (inactive or drain)", "SBATCH_PARTITION"),
        ("User's group not permitted to use this partition", "SBATCH_PARTITION"),
        ("Requested reservation is invalid", "SBATCH_RESERVATION"),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", "show qos"),
        ("Requested time limit is invalid (missing or exceeds some limit)", "minutes="),
        ("Requested node configuration is not available", "sinfo --Node"),
        ("Name your project: see https://centre.example/jobs", ""),
    ],
)
def test_what_sbatch_rejects_is_shown_with_what_to_do(commands, folder, words, remedy) -> None:
    commands(sbatch=f'echo "sbatch: error: Batch job submission failed: {words}" >&2; exit 1')
    with pytest.raises(CourseError) as told:
        submit(folder, Job(2), "")
    assert str(told.value).startswith(f"Slurm rejected the job: {words}.") and remedy in str(told.value)
    assert "sbatch: error" not in str(told.value)


def test_a_job_that_was_taken_while_sbatch_lost_its_answer_is_not_lost(commands, folder) -> None:
    late = "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1"
    commands(sbatch=late, squeue=f"echo '7 /elsewhere/job.sh'; echo '8 {folder.path}/job.sh'")
    assert submit(folder, Job(2), "") == "8" and folder.facts()["end_with"] == ["scancel", "--quiet", "8"]
    commands(squeue="exit 1")
    with pytest.raises(CourseError, match=r"controller \(slurmctld\) does not answer"):
        submit(folder, Job(2), "")


def job_is(commands, state: str, reason: str = "None", exit_code: str = "0:0", nodes: str = "c[1-2]") -> None:
    """Let `scontrol show job` say this."""
    lines = [f"JobState={state} Reason={reason} Dependency=(null)", f"Requeue=0 ExitCode={exit_code}"]
    lines += [f"Partition=course AllocNode:Sid=login:1\\n ReqNodeList=(null)\\n NodeList={nodes}"]
    commands(scontrol=f"printf '{' '.join(lines)}'")


@pytest.mark.parametrize(
    ("state", "reason", "cause", "words"),
    [
        ("TIMEOUT", "TimeLimit", EndCause.TIME_LIMIT, "its time was up"),
        ("COMPLETING", "TimeLimit", EndCause.TIME_LIMIT, "its time was up"),
        ("CANCELLED", "None", EndCause.CANCELLED, "cancelled with scancel"),
        ("OUT_OF_MEMORY", "OutOfMemory", EndCause.OUT_OF_MEMORY, "more memory than it may use"),
        ("PREEMPTED", "None", EndCause.PREEMPTED, "higher priority"),
        ("DEADLINE", "DeadLine", EndCause.DEADLINE, "deadline"),
        ("SUSPENDED", "None", EndCause.SUSPENDED, "scontrol resume 12"),
        ("FAILED", "JobLaunchFailure", EndCause.LAUNCH_FAILED, "could not start it on c[1-2] (JobLaunchFailure)"),
        ("FAILED", "BadConstraints", EndCause.TOO_MUCH, "(BadConstraints)"),
        ("FAILED", "NonZeroExitCode", EndCause.SCRIPT_ENDED, "FAILED, NonZeroExitCode, exit code 0"),
        ("PENDING", "PartitionTimeLimit", EndCause.TOO_LONG, "minutes="),
        ("PENDING", "QOSMaxWallDurationPerJobLimit", EndCause.TOO_LONG, "minutes="),
        ("PENDING", "InvalidAccount", EndCause.ACCOUNT, "SBATCH_ACCOUNT"),
        ("PENDING", "InvalidQOS", EndCause.QOS, "SBATCH_QOS"),
        ("PENDING", "ReservationDeleted", EndCause.RESERVATION, "its reservation has ended"),
        ("PENDING", "DependencyNeverSatisfied", EndCause.DEPENDENCY, "depends on"),
        ("PENDING", "PartitionDown", EndCause.PARTITION_CLOSED, "partition course starts no jobs now"),
        ("PENDING", "launch_failed_requeued_held", EndCause.HELD_AFTER_FAILURES, "prolog"),
    ],
)
def test_why_a_job_is_over_or_will_never_begin(commands, state, reason, cause, words) -> None:
    job_is(commands, state, reason)
    end = end_of("12")
    assert end is not None and end.cause is cause and words in end_text(end)
    assert end_text(end).startswith("Slurm's job 12 ") and end_text(end).endswith(".")


@pytest.mark.parametrize(
    "state", ["PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "RESIZING", "SIGNALING", "NEW_ONE"]
)
def test_a_job_that_may_go_on_is_not_given_up(commands, state) -> None:
    job_is(commands, state, "Priority")
    assert end_of("12") is None


def test_a_job_is_only_forgotten_if_slurm_says_so(commands) -> None:
    for words in ("Protocol authentication error", "Unable to contact slurm controller (connect failure)"):
        commands(scontrol=f"echo 'slurm_load_jobs error: {words}' >&2; exit 1")
        assert end_of("12") is None
    commands(scontrol="echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert end_of("12").cause is EndCause.FORGOTTEN
    commands(sacct="echo 'NODE_FAIL|NodeDown|c[1-2]|course|0:0'", sinfo="echo 'c2|down|broken fan'")
    assert end_text(end_of("12")) == "Slurm's job 12 is over: node c2 went down: broken fan (NODE_FAIL)."


def test_a_job_for_which_no_node_is_up_is_given_up_and_one_with_a_node_waits(commands) -> None:
    job_is(commands, "PENDING", "ReqNodeNotAvail,_UnavailableNodes:c[1-2]")
    commands(sinfo="echo 'c1|drained|new kernel'; echo 'c2|down*|Not responding'")
    end = end_of("12")
    assert end.cause is EndCause.NO_NODE_UP
    assert "no node of the partition course is up (c1: new kernel; c2: Not responding)" in end_text(end)
    commands(sinfo="echo 'c1|drained|new kernel'; echo 'c2|allocated|none'")
    assert end_of("12") is None
    assert "its nodes are down or reserved" in waiting_text("12", status_of("12"))


def test_a_job_that_slurm_cancels_for_a_prologs_failure_is_told_so(commands) -> None:
    job_is(commands, "CANCELLED", nodes="c1")
    commands(sinfo="echo 'c1|drained|Prolog error'")
    assert "could not start it on c1 (Prolog error). A prolog" in end_text(end_of("12"))
    assert end_of("12", has_begun=True).cause is EndCause.CANCELLED
    commands(sinfo="echo 'c1|idle|none'")
    assert end_of("12").cause is EndCause.CANCELLED


def test_what_a_job_waits_for_is_told(commands) -> None:
    for reason, meant in {
        "JobHeldAdmin": "held by the centre's staff",
        "Licenses": "the licences",
        "Reservation": "its reservation has not begun",
        "AssocGrpCPUMinutesLimit": "your group's jobs",
    }.items():
        assert meant in waiting_text("12", JobStatus("PENDING", reason))


# --- ranks that are lost ---------------------------------------------------------------------------------------------


class NoHub:
    """A connection with a hub that has nothing to say."""

    def ask(self, message: dict) -> None:
        """Nothing."""


@pytest.fixture
def ranks(folder, monkeypatch) -> RemoteRanks:
    """Two ranks on two nodes, whose node agents' last reports the tests make up."""
    monkeypatch.setattr(remote_ranks, "HubConnection", lambda folder, asks: NoHub())
    monkeypatch.setattr(remote_ranks, "_SECONDS_FOR_THE_LOG", 0.0)
    return RemoteRanks(folder, ["c1", "c2"], "12")


TOLD_TO_END = NodeReport(0, 0, "", ended=143, asked_to_end=True)


def test_a_node_that_went_down_is_named_in_the_call_that_meets_it_and_in_the_next(commands, ranks) -> None:
    ranks._reports[0] = TOLD_TO_END
    job_is(commands, "NODE_FAIL", "NodeDown", nodes="c1")
    (ranks.folder.path / "ranks.log").write_text("srun: error: Node failure on c2\n")
    commands(sinfo="case $* in *=c2*) echo 'c2|down|broken fan';; esac")
    text = "Slurm's job 12 is over: node c2 went down: broken fan (NODE_FAIL)."
    assert ranks.how_it_ended() == text
    commands(scontrol="exit 1", sinfo="echo 'c2|idle|none'")
    assert ranks.how_it_ended() == text, "what is over stays so, whatever Slurm says later"


def test_a_job_in_the_queue_again_is_told(commands, ranks) -> None:
    ranks._reports[1] = TOLD_TO_END
    job_is(commands, "PENDING", "BeginTime")
    assert "was put back into the queue" in ranks.how_it_ended()


def test_slurm_that_does_not_say_why_is_waited_for_and_named(commands, ranks, monkeypatch) -> None:
    monkeypatch.setattr(remote_ranks, "_SECONDS_FOR_SLURM", 0.5)
    ranks._reports[1] = TOLD_TO_END
    job_is(commands, "RUNNING")
    text = ranks.how_it_ended()
    assert text.startswith("rank 1 was ended by signal 15, SIGTERM. Slurm has told it to end, but not said why")


def test_a_silent_node_is_believed_lost_at_once_only_if_slurm_says_so(commands, ranks, monkeypatch) -> None:
    monkeypatch.setattr(remote_ranks, "_ASK_SECONDS", 0.0)
    ranks._reported_at[1] -= 20.0
    job_is(commands, "RUNNING")
    assert ranks.dead() == []
    job_is(commands, "SUSPENDED")
    assert ranks.dead() == [1] and "is suspended" in ranks.how_it_ended()
    job_is(commands, "RUNNING")
    assert ranks.dead() == [], "it was resumed"
    ranks._reported_at[1] -= 60.0
    commands(sinfo="exit 1")
    assert ranks.dead() == [1] and "Slurm has not noticed yet" in ranks.how_it_ended()


# --- the trial of the nodes ------------------------------------------------------------------------------------------


def run_trial(lines: list[str], **environment: str) -> int:
    """The exit status of a job's script with these lines, where `srun` runs its command once for each of two nodes."""
    script = "\n".join([*lines, "exit 0"])
    own = {**os.environ, "SLURM_JOB_NUM_NODES": "2", **environment}
    return subprocess.run(["/bin/sh", "-c", script], env=own, timeout=60, check=False).returncode


SRUN = """
while [ "$1" != /bin/sh ]; do shift; done
for node in c1 c2; do SLURMD_NODENAME=$node "$@"; done
"""
PYTHON = f'#!/bin/sh\nexec {os.path.realpath(os.sys.executable)} "$@"\n'


@pytest.fixture
def on_nodes(commands, folder, tmp_path):
    """`on_nodes(python, folder)` is what the notebook reads of a trial with this Python, of this folder."""
    commands(srun=SRUN)

    def trial(python: str, path: Path | None = None, **environment: str) -> list[NodeFinding]:
        status = run_trial(trial_lines(path or folder.path, python), **environment)
        return findings_of(folder, status)

    return trial


def test_nodes_that_do_not_see_the_folder(on_nodes, folder, tmp_path) -> None:
    found = on_nodes("/bin/sh", tmp_path / "elsewhere" / "ranks-1")
    assert [finding.trouble for finding in found] == [NodeTrouble.FOLDER_UNSEEN]
    text = findings_text(found, "COURSE_SHARED=/scratch/me", "")
    assert text.startswith("The nodes do not see COURSE_SHARED=/scratch/me, where ranks keep their files. `export")


def test_nodes_without_this_python_or_on_which_it_does_not_run(on_nodes, tmp_path) -> None:
    [first, second] = on_nodes("/nowhere/python")
    assert (first.node, first.trouble, second.node) == ("c1", NodeTrouble.PYTHON_MISSING, "c2")
    assert findings_text([first, second], "", "").startswith(
        "c1 and c2 do not have the Python of this notebook, /nowhere"
    )
    broken = tmp_path / "python"
    broken.write_text(
        "#!/bin/sh\n[ $SLURMD_NODENAME = c1 ] || { echo \"libc.so.6: version 'GLIBC_2.99' not found\"; exit 1; }"
    )
    broken.chmod(0o700)
    [only] = on_nodes(str(broken))
    assert only == NodeFinding("c2", NodeTrouble.PYTHON_FAILS, "libc.so.6: version 'GLIBC_2.99' not found", 1)
    assert findings_text([only], "", "") == (
        "The Python of this notebook does not run on c2: libc.so.6: version 'GLIBC_2.99' not found."
    )
    broken.write_text("#!/bin/sh\nkill -ILL $$\n")
    assert "This processor lacks instructions" in findings_text(on_nodes(str(broken)), "", "")


def test_a_good_node_finds_nothing_and_a_prologs_prints_do_not_disturb(on_nodes, tmp_path) -> None:
    good = tmp_path / "python"
    good.write_text("#!/bin/sh\necho welcome to this node\n")
    good.chmod(0o700)
    assert on_nodes(str(good)) == []


def test_what_a_node_finds_when_python_runs_there(folder, monkeypatch) -> None:
    monkeypatch.setattr(node_trial, "LATE_SECONDS", 0)
    assert node_trial.finding_here(folder)[0] is NodeTrouble.HUB_FILE_MISSING
    with socket.create_server(("127.0.0.1", 0)) as hub:
        port = hub.getsockname()[1]
        (folder.path / "hub.json").write_text(json.dumps({"at": f"tcp://127.0.0.1:{port}", "key": "k"}))
        assert node_trial.finding_here(folder) is None
        monkeypatch.setenv("COURSE_INTERFACE", "ib9")
        trouble, detail = node_trial.finding_here(folder)
        assert trouble is NodeTrouble.NO_SUCH_INTERFACE and "lo" in detail.split(", ")
    monkeypatch.delenv("COURSE_INTERFACE")
    assert node_trial.finding_here(folder) == (NodeTrouble.UNREACHABLE, f"127.0.0.1:{port} (Connection refused)")


@pytest.fixture
def no_hub(monkeypatch) -> None:
    monkeypatch.setattr(job_startup, "HubConnection", lambda folder, asks: NoHub())


def check_start(folder: RanksFolder) -> None:
    with ProgressBar("starting") as bar:
        job_startup.startup_check(folder, bar)()


def test_a_start_that_fails_on_the_nodes_says_what_they_found(commands, folder, no_hub) -> None:
    job_is(commands, "FAILED", "NonZeroExitCode", f"{FOUND}:0")
    finding = {"node": "c2", "trouble": "unreachable", "detail": "10.0.0.1:40000 (No route to host)", "status": 0}
    (folder.path / "trial").write_text(f"{json.dumps(finding)}\nnot one of ours\n")
    folder.write_facts(job="12")
    with pytest.raises(
        CourseError, match=r"did not start\. c2 does not reach the notebook's machine at 10\.0\.0\.1:40000"
    ):
        check_start(folder)


def test_a_start_that_fails_without_a_word_does_not_promise_any(commands, folder, no_hub) -> None:
    job_is(commands, "CANCELLED")
    folder.write_facts(job="12")
    with pytest.raises(CourseError) as told:
        check_start(folder)
    assert str(told.value) == "The ranks did not start. Slurm's job 12 is over: it was cancelled with scancel."
    (folder.path / "ranks.log").write_text("slurmstepd: error: oh\n")
    with pytest.raises(CourseError, match="What they wrote:\nslurmstepd: error: oh"):
        check_start(folder)


# --- the quota, the names, the doctor --------------------------------------------------------------------------------


def test_a_full_disk_names_the_variable_that_chose_it(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("COURSE_SHARED", "/scratch/me")
    assert "COURSE_SHARED=/scratch/me (Disk quota exceeded)" in unwritable_text(shared_root(), "Disk quota exceeded")
    assert "set COURSE_RUNTIME elsewhere" in unwritable_text(Path("/run/user/7/course"), "No space left on device")
    monkeypatch.delenv("COURSE_SHARED")
    text = unwritable_text(shared_root(), "Disk quota exceeded")
    assert "in your home directory" in text and "COURSE_RUNTIME" not in text
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_SHARED", str(tmp_path / "file" / "below"))
    with pytest.raises(CourseError, match=r"COURSE_SHARED=.*file/below \(Not a directory\)"):
        SlurmNodes(Job(2)).folder()


def test_a_jobs_name_tells_the_lesson() -> None:
    assert lesson_number("/home/me/course/notebooks/13_gpu_nodes_further.ipynb") == 13
    assert lesson_number("exercises/05_allreduce.ipynb") == 5
    assert lesson_number("my/13_ideas.ipynb") is None and lesson_number("") is None
    assert name_options({"JPY_SESSION_NAME": "notebooks/00_first_steps.ipynb"}) == [
        "--job-name=course-00",
        "--comment=course-00",
    ]
    assert name_options({"SBATCH_JOB_NAME": "mine"}) == ["--comment=course"]
    assert name_options({"SBATCH_COMMENT": "project 7"}) == ["--job-name=course"]


IDLE_CLUSTER = {
    "sbatch": 'case $1 in --version) echo slurm-wlm 22.05.8;; *) echo "sbatch: Job 1 to start at …" >&2;; esac',
    "sinfo": "case $* in *--Node*) echo 'c1|idle|none'; echo 'c2|down*|fan';; *) echo 'gpu|up'; echo 'old|down';; esac",
}
REJECTION = "allocation failure: Invalid account or account/partition combination specified"


@pytest.mark.parametrize(
    ("scripts", "health", "words"),
    [
        ({}, "takes jobs", "22.05.8 takes jobs, 1 of 2 nodes up, in gpu"),
        ({"sinfo": "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1"}, "silent", "slurmctld"),
        ({"sinfo": f"echo '{MUNGE}' >&2; exit 1"}, "silent", "munge does not work"),
        ({"sinfo": "echo 'gpu|down'; echo 'cpu|drain'"}, "no partition", "gpu is down, cpu is drain"),
        (
            {"sinfo": "case $* in *--Node*) echo 'c1|drained|new kernel';; *) echo 'gpu|up';; esac"},
            "no node",
            "new kernel",
        ),
        (
            {"sbatch": f"case $1 in --version) echo slurm 24.05;; *) echo '{REJECTION}' >&2; exit 1;; esac"},
            "rejects",
            "24.05 rejects every job: Invalid account or account/partition combination specified",
        ),
    ],
)
def test_the_doctor_asks_slurm_what_would_become_of_a_job(commands, scripts, health, words) -> None:
    commands(**{**IDLE_CLUSTER, **scripts})
    state = cluster_state(5.0)
    assert state.health == ClusterHealth(health)
    assert words in cluster_text(state)[0]
    if state.health is ClusterHealth.REJECTS:
        assert "SBATCH_ACCOUNT" in cluster_text(state)[1]


def test_settings_name_the_folder_that_nodes_must_see() -> None:
    assert settings.SHARED.name in findings_text([NodeFinding("", NodeTrouble.FOLDER_UNSEEN)], "~/x", "")
