"""What lesson 13 shows: variables of launchers, commands from a notebook, tries in a log, sentences, pictures."""

import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes import ladder, launch_commands, measured_training, sentences, transformer_step
from course_utils.lessons.gpu_nodes.failures.line_reports import reports_of
from course_utils.lessons.gpu_nodes.failures.readable_log import readable
from course_utils.lessons.gpu_nodes.failures.reading.log_parser import lines_of
from course_utils.lessons.gpu_nodes.failures.recorded_logs import RECORDED, recording
from course_utils.lessons.gpu_nodes.launch import find_launch
from course_utils.lessons.gpu_nodes.launcher_variables import example_environment, variables_read
from course_utils.lessons.gpu_nodes.pictures import launchers, seats, story, tries
from course_utils.lessons.gpu_nodes.recorded_jobs import recorded_output
from course_utils.lessons.gpu_nodes.stop_signals import StopSignals, send_sigterm
from course_utils.lessons.gpu_nodes.training_settings import Settings
from course_utils.lessons.gpu_nodes.tries import Try, repeated_steps, tries_of, tries_text
from course_utils.measuring import BUSY
from course_utils.ranks.slurm.job_environment import environment_for_new_job
from course_utils.ranks.slurm.job_sentences import end_text, waiting_text
from course_utils.ranks.slurm.job_status import FORGOTTEN, EndCause, end_of, status_of

ROOT = Path(__file__).parents[3]
LOG = """2 ranks on 1 node (n1), started by torchrun: gloo, because there is no GPU
epoch 1 of 4: loss 2.2
epoch 2 of 4: loss 1.7
epoch 3 of 4: loss 1.1
rank 1 kills itself after step 17, as --die-at says
RuntimeError: Connection closed by peer
2 ranks on 1 node (n1), started by torchrun: gloo, because there is no GPU
resumes after step 10, from runs/checkpoint.pt
epoch 3 of 4: loss 1.1
epoch 4 of 4: loss 0.6
done: {"losses": [2.2, 1.7, 1.1, 0.6], "steps": 20}
"""


def test_an_example_is_found_again() -> None:
    for launcher in ("torchrun", "srun"):
        found = find_launch(example_environment(launcher, node=7, local_rank=2, nodes=10, gpus=4))
        assert (found.by, found.rank, found.world_size, found.local_rank) == (launcher, 30, 40, 2)
        assert found.master.startswith("gpu01:")


def test_the_variables_that_are_read() -> None:
    read = variables_read({**example_environment("srun", 1, 0, 2, 4), "HOME": "/root"})
    assert read["rank"] == ["SLURM_PROCID"] and read["local_rank"] == ["SLURM_LOCALID"]
    assert read["master"] == ["SLURM_STEP_NODELIST", "SLURM_JOB_ID"]
    assert variables_read(example_environment("torchrun", 1, 0, 2, 4))["master"] == ["MASTER_ADDR", "MASTER_PORT"]


def test_the_lines_that_people_read_leave_out_results_and_remarks() -> None:
    log = [
        "epoch 1 of 2: loss 2.2\n",
        "\n",
        'done: {"losses": [1.5]}\n',
        "W1129 torch/distributed/run.py:851] threads\n",
    ]
    assert list(launch_commands.progress_lines(log)) == ["epoch 1 of 2: loss 2.2"]
    assert launch_commands.losses_of("".join(log)) == [1.5]


def test_the_losses_that_the_program_of_lesson_7_prints() -> None:
    epochs = ["epoch 1: loss 1.900, accuracy 80.8%", "epoch 2: loss 0.430, accuracy 90.6%"]
    log = "\n".join(["1437 images, processes: 2, device: cpu", *epochs, ""])
    assert launch_commands.printed_losses(log) == [1.9, 0.43]
    with pytest.raises(CourseError, match=r"printed no loss\. What it said:\nno such file"):
        launch_commands.printed_losses("no such file\n")


def test_recordings_of_jobs_say_where_they_come_from() -> None:
    for name, first in (("batch_job", "1437 images, processes: 2"), ("ranks_in_a_job", "4 ranks on 2 nodes (c1, c2)")):
        recorded = recorded_output(name)
        assert recorded.output.startswith(first)
        assert str(recorded).startswith(f"RECORDED on {recorded.date} with Slurm {recorded.versions['Slurm']}")
        assert "emulated nodes" in str(recorded)
    assert len(launch_commands.printed_losses(recorded_output("batch_job").output)) == 3
    with pytest.raises(CourseError, match="no recording of 'nothing'"):
        recorded_output("nothing")


def test_a_training_without_result_is_told() -> None:
    with pytest.raises(CourseError, match=r"did not come to its end\. What it said:\nepoch 1"):
        launch_commands.losses_of("epoch 1 of 4: loss 2.2\n")


@pytest.fixture
def slurm_commands(tmp_path, monkeypatch):
    """A folder of commands that stand for Slurm's; `write(name, body)` makes one."""

    def write(name: str, body: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o700)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    write("sinfo", "exit 0")
    write("scancel", f"echo $@ > {tmp_path}/cancelled")
    return write


def test_without_slurm_the_script_is_only_read(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launch_commands.hand_in("#!/bin/sh\n", tmp_path / "job") == ""
    assert "No Slurm here" in capsys.readouterr().out
    assert not (tmp_path / "job").exists()


def test_a_script_is_handed_in_and_its_log_read(tmp_path, slurm_commands, monkeypatch, capsys) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "3")
    slurm_commands("sbatch", '[ -z "$SLURM_JOB_ID" ] && sh job.sh > job.log && echo "12;cluster"')
    slurm_commands("scontrol", "echo JobState=COMPLETED Reason=None")
    assert launch_commands.hand_in("echo epoch 1", tmp_path / "job") == "epoch 1\n"
    assert capsys.readouterr().out == "epoch 1\n"


def test_a_job_that_waits_too_long_is_cancelled(tmp_path, slurm_commands, capsys) -> None:
    slurm_commands("sbatch", "echo 12")
    slurm_commands("scontrol", "echo JobState=PENDING Reason=Resources")
    assert launch_commands.hand_in("true", tmp_path / "job", seconds=0.1) == ""
    said = capsys.readouterr().out
    assert (
        f"{waiting_text('12', status_of('12'))}, after 0 s. " in said and "(Resources)" in said and "cancelled" in said
    )
    assert (tmp_path / "cancelled").read_text() == "12\n"


def test_a_job_that_wrote_nothing(tmp_path, slurm_commands, capsys) -> None:
    slurm_commands("sbatch", "echo 12")
    slurm_commands("scontrol", "echo JobState=NODE_FAIL Reason=None")
    assert launch_commands.hand_in("true", tmp_path / "job") == ""
    assert f"{end_text(end_of('12'))} It wrote nothing" in capsys.readouterr().out


def test_a_controller_that_does_not_answer_ends_no_job(slurm_commands) -> None:
    slurm_commands("scontrol", "echo 'slurm_load_jobs error: Socket timed out on send/recv operation' >&2; exit 1")
    assert end_of("12") is None and waiting_text("12", status_of("12")) == "Slurm's job 12 is not heard of now"
    slurm_commands("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    slurm_commands("sacct", "exit 1")
    assert status_of("12").state == FORGOTTEN and end_of("12").cause is EndCause.FORGOTTEN
    slurm_commands("sacct", "echo 'CANCELLED by 1000|None|c[1-2]|course|0:15'")
    assert end_of("12").cause is EndCause.CANCELLED and status_of("12").nodes == "c[1-2]"


@pytest.mark.parametrize(
    "reason",
    [
        "PartitionTimeLimit",
        "QOSMaxGRESPerJob",
        "QOSMaxGRESPerNode",
        "AssocMaxWallDurationPerJobLimit",
        "InvalidAccount",
    ],
)
def test_a_job_that_no_other_jobs_end_would_let_in_is_given_up(slurm_commands, reason: str) -> None:
    slurm_commands("scontrol", f"echo JobState=PENDING Reason={reason}")
    end = end_of("12")
    assert end is not None and end_text(end).count(f" ({reason})") == 1


@pytest.mark.parametrize(
    ("reason", "meant"),
    [
        ("Priority", "waits in the queue (Priority)"),
        ("ReqNodeNotAvail, Reserved for maintenance", "(ReqNodeNotAvail: its nodes are down or reserved; `sinfo -R`"),
        ("QOSMaxGRESPerUser", "(QOSMaxGRESPerUser: your other jobs use all that you may have at a time"),
        ("AssocGrpGRES", "(AssocGrpGRES: your group's jobs use all that it may have"),
        ("JobHeldUser", "(JobHeldUser: it is held; `scontrol release 12`"),
    ],
)
def test_a_job_that_waits_says_for_what(slurm_commands, reason: str, meant: str) -> None:
    slurm_commands("scontrol", f"echo JobState=PENDING Reason={reason}")
    assert end_of("12") is None
    assert meant in waiting_text("12", status_of("12"))


def test_a_script_that_slurm_rejects(tmp_path, slurm_commands, capsys) -> None:
    slurm_commands("sbatch", "echo no such partition >&2; exit 1")
    assert launch_commands.hand_in("true", tmp_path / "job") == ""
    said = capsys.readouterr().out
    assert "Slurm rejected the script: no such partition" in said and "SBATCH_ACCOUNT" in said


def test_a_new_job_hears_nothing_of_the_one_around_it() -> None:
    around = {"SLURM_MEM_PER_CPU": "2048", "SRUN_CPUS_PER_TASK": "4", "SBATCH_CPU_BIND": "quiet"}
    meant = {"SLURM_CONF": "/etc/slurm.conf", "SBATCH_ACCOUNT": "physics", "PATH": "/bin"}
    assert environment_for_new_job(around | meant) == meant


def test_a_signal_waits_until_it_is_heard() -> None:
    send_sigterm(after=0.0)
    with StopSignals() as stop:
        deadline = time.monotonic() + 30
        while not stop.heard and time.monotonic() < deadline:
            time.sleep(0.01)
    assert stop.heard == "SIGTERM"


def test_the_tries_of_a_log() -> None:
    first, second = tries_of(LOG, steps_per_epoch=5)
    assert (first.began, first.steps, first.died, first.rank, first.ended) == (0, [5, 10, 15], 17, 1, 17)
    assert (second.began, second.steps, second.losses, second.ended) == (10, [15, 20], [1.1, 0.6], 20)
    assert repeated_steps([first, second]) == 7
    assert tries_text([first, second], 0.6) == "7 steps were done twice, and the loss at the end is the same, 0.6000"
    assert (
        tries_text([second], 0.5)
        == "No process was killed, and the loss at the end is different: 0.6000 instead of 0.5000"
    )
    assert tries_of("nothing began\n", 5) == []


@pytest.mark.parametrize(
    ("algorithm", "bus", "said"),
    [
        ([[25e6], [16e6]], [[25e6], [24e6]], "falls by 36%, but the bus bandwidth stays near 24 MB/s"),
        ([[12.2e6], [7.6e6]], [[12.2e6], [11.4e6]], "falls by 38%, but the bus bandwidth stays near 11 MB/s"),
        ([[25e6], [8e6]], [[25e6], [12e6]], "the bus bandwidth falls too, by 52%"),
        ([[25e6], [30e6]], [[25e6], [45e6]], "the bus bandwidth rises from 25 MB/s to 45 MB/s"),
        (
            [[8e6, 9.7e6, 10e6, 12e6], [8.1e6] * 4],
            [[8e6, 9.7e6, 10e6, 12e6], [11.8e6] * 4],
            "From 2 to 4 ranks the bus bandwidth changes by less than its runs scatter",
        ),
    ],
)
def test_bandwidths_in_words(algorithm, bus, said) -> None:
    assert said in sentences.bandwidth_text([2, 4], algorithm, bus)


def test_gains_in_words() -> None:
    taken = {"float32": [4.0, 4.2], "bfloat16": [2.0, 2.1], "compiled": [4.0, 4.0], "other": [8.2, 8.2]}
    assert sentences.gain(taken, "float32", "bfloat16") == 2
    said = sentences.widths_text({64: taken, 128: taken}, "float32")
    told = "bfloat16 is 2 times as fast as float32 with 64 hidden units and 2 times as fast with 128"
    told += "; compiled is about as fast as float32 with 64 hidden units and about as fast with 128"
    slower = "other is slower than float32 at both widths: 0.50 times as fast with 64 and 0.50 times as fast with 128"
    assert said == f"{told}; {slower} hidden units"
    mixed = {64: taken, 128: {"float32": [4.0, 4.2], "other": [2.0, 2.1]}}
    mixed[64] = {name: mixed[64][name] for name in ("float32", "other")}
    said = sentences.widths_text(mixed, "float32")
    assert said == "other is slower than float32 with 64 hidden units and 2 times as fast with 128"
    scattered = {"float32": [4.0, 9.0, 2.0, 3.0], "bfloat16": [1.0, 1.0, 1.0, 1.0]}
    assert sentences.widths_text({64: scattered}, "float32") == "bfloat16 is faster than float32 with 64 hidden units"
    steps = {"float32": [0.005, 0.006, 0.004], "compiled": [0.003]}
    assert "won back after 5,000 steps" in sentences.compiling_text(10.0, steps, "float32", "compiled")
    assert "never won back" in sentences.compiling_text(10.0, steps, "compiled", "compiled")
    assert sentences.by_width({64: steps})["64 hidden units"]["compiled, 64"].median == 0.003


def test_rungs_in_words() -> None:
    seconds = {"float32": [8.0, 8.1], "+ TF32": [2.0, 2.1], "+ bfloat16": [2.5, 2.6], "+ CUDA graph": [1.0, 1.0]}
    climbed = ladder.Climb("GPU", "today", dict.fromkeys(seconds, 1), 1.0, [1.0], seconds, {})
    said = sentences.gains_text(climbed)
    assert said.startswith(
        "On the GPU (today), the two largest gains were TF32 (3.9 times as fast as the rung before) and CUDA graph (2.5"
    )
    assert "Slower than the rung before: bfloat16 (in 2 of 2 rounds)." in said and "No clear gain" not in said


def test_the_sentences_about_a_climb_are_those_of_its_own_measurements() -> None:
    recorded = ladder.recorded_climb()
    said = sentences.gains_text(recorded)
    assert said.startswith("On the NVIDIA H100 80GB HBM3 (2026-11-27), the two largest gains were TF32 (3.1 times")
    assert "No clear gain: data on the GPU. Slower than the rung before: torch.compile (in 9 of 9 rounds)." in said
    assert "From TF32, which is near PyTorch's default, to CUDA graph: 3.1 times." in said
    assert "about 62% of the time. This is probably why bfloat16 gained so little (1.06 times as fast)." in said

    def measured(**seconds: float) -> str:
        taken = {**recorded.seconds, **{f"+ {name.replace('_', ' ')}": [each] * 9 for name, each in seconds.items()}}
        return sentences.gains_text(replace(recorded, machine="NVIDIA L4, torch", date="now", seconds=taken))

    steady = {"bfloat16": 0.004, "channels_last": 0.003}
    busy_gpu = measured(**steady, **{"torch.compile": 0.0025, "CUDA_graph": 0.002})
    assert busy_gpu.startswith("On the NVIDIA L4 (now)") and "Slower" not in busy_gpu
    assert "about 20% of the time. For the rest of the time it was computing" in busy_gpu
    no_gain = measured(**steady, **{"torch.compile": 0.0025, "CUDA_graph": 0.0025})
    assert "The CUDA graph isn't faster than the rung before" in no_gain and "No clear gain" in no_gain
    waiting = measured(**steady, **{"torch.compile": 0.0025, "CUDA_graph": 0.001})
    assert waiting.endswith("during about 60% of the time."), "bfloat16 gained much here, so nothing explains it away"


def test_the_share_of_the_peak_is_that_of_the_data_sheet() -> None:
    recorded = ladder.recorded_climb()
    top = list(recorded.seconds)[-1]
    assert recorded.mfu()[top].median == pytest.approx(0.4675 / 989 / 0.00256, rel=0.01)
    assert "989 TFLOP/s on the data sheet" in sentences.peak_text(recorded)
    one = "float32 without TF32"
    unknown = ladder.Climb("a GPU", "today", {one: 1}, 1e12, [2e12, 4e12], {one: [1.0, 1.0]}, {})
    assert unknown.mfu()[one].values == (0.5, 0.25), "each round beside the product of the same round"
    assert "reached in a product" in sentences.peak_text(unknown)
    assert set(sentences.CHANGES) == set(ladder.LADDER)
    assert set(recorded.seconds) == set(ladder.ONE_BATCH)
    assert sentences.ladder_text(recorded).startswith(
        "From float32 without TF32 to CUDA graph: 10.1 times as many images"
    )


def test_rungs_with_different_batches_are_compared_by_images() -> None:
    found = ladder.recorded_batches()
    assert sentences.larger_batch_text(found).endswith(
        "A step with 4,096 images trains 1.34 times as many images per second as 512, and its MFU is 27%."
    )
    shares = found.product_shares()["+ larger batch"]
    assert (round(shares.low, 3), round(shares.median, 3), round(shares.high, 3)) == (0.344, 0.356, 0.361)
    bars = sentences.ladder_bars(ladder.recorded_climb(), found)
    assert list(bars["NVIDIA H200"]) == ["+ CUDA graph, 512 images (20%)", "+ larger batch, 4,096 images (27%)"]
    table = sentences.ladder_table(found).splitlines()
    assert table[-1].split() == ["+", "larger", "batch", "292,000", "27%", "34", "to", "36%"]
    wild = replace(found, seconds={"+ CUDA graph": [1.0, 2.0, 9.0], "+ larger batch": [9.0, 70.0, 8.0]})
    assert BUSY in sentences.larger_batch_text(wild)


def test_the_page_names_the_recorded_figures_of_both_gpus() -> None:
    page = " ".join((ROOT / "notebooks/src/13_gpu_nodes_part_2.py").read_text().replace("\n# ", " ").split())
    climbed, batches, networks = (
        ladder.recorded_climb(),
        ladder.recorded_batches(),
        transformer_step.recorded_networks(),
    )
    rates = {name: median(taken) for name, taken in climbed.rates().items()}
    first, last = (sentences.rate_text(rates[name]) for name in ("float32 without TF32", "+ CUDA graph"))
    assert f"the GPU trained on {first} images per second" in page and f"processed {last} of these images" in page
    assert f"{climbed.peaks[0] / 1e12:.0f} TFLOP/s" in page and f"{climbed.flops / 1e9:.3f} billion" in page
    assert f"only {100 * batches.mfu()['+ larger batch'].median:.0f}% of its peak" in page
    assert networks.peaks == batches.peaks and "between 738 and 775 TFLOP/s" in page
    assert (min(networks.peaks), max(networks.peaks)) == (738e12, 775e12)
    vgg, _, llama = (share.median for share in networks.product_shares().values())
    work = transformer_step.SLICE
    per_second = work.flops / networks.seconds["4 layers of Llama 3 8B, 4 × 4,096 tokens"][0]
    assert f"reached {100 * llama:.0f}% of this rate, which is an MFU of {per_second / 989e10:.0f}%" in page
    assert f"and VGG-11 reached {100 * vgg:.0f}%" in page
    half = 100 * llama * work.causal_flops / work.flops
    assert f"{100 * llama:.0f}% becomes {half:.0f}%" in page


def test_the_title_of_a_sweep_names_its_ends() -> None:
    rates = {"all_reduce": [[1.0], [4.0], [11.0]], "all_gather": [[1.0], [5.0], [9.0]]}
    title, below = sentences.sweep_text([1000, 64_000, 512_000], rates, "gloo", 4)
    said = "All-reduce and all-gather reach a bus bandwidth of 1 B/s with vectors of 1 KB"
    assert title == f"{said} and 10 B/s with vectors of 512 KB" and "450" not in below
    assert "450" in sentences.sweep_text([1000, 2000], {"broadcast": [[8.0], [9.0]]}, "nccl", 4)[1]


@pytest.mark.parametrize(
    ("bare", "ends", "below"),
    [
        (
            [1.0, 0.04, 0.9],
            "stays that low only for sizes from 1 to 1",
            "Without a scale, E4M3 loses all numbers of size 0.01",
        ),
        ([0.5, 0.5, 0.5], "at every size", ""),
    ],
)
def test_scales_in_words(bare, ends, below) -> None:
    title, finding = sentences.scales_text([0.01, 1, 100], {"E4M3": bare, "E4M3 with a scale": [0.04] * 3})
    assert title.startswith("With a scale, the error of E4M3 is at most 4%")
    assert title.endswith(ends) and finding.startswith(below)


def test_losses_in_words() -> None:
    same = {"ranks": [2.0, 0.116], "torchrun": [2.0, 0.116000001]}
    assert sentences.same_loss(same)
    assert sentences.ways_text(same) == "2 runs, one curve: the loss ends at 0.116 each time"
    assert not sentences.same_loss({**same, "srun": [2.0, 0.12]})
    assert "end with losses between 0.116 and 0.120" in sentences.ways_text({**same, "srun": [2.0, 0.12]})


def test_the_use_of_a_link_in_words() -> None:
    said = sentences.link_text("gloo", 1_000_000, 4, [23e6, 24e6, 20e6], 25e6)
    assert said == "1 MB over gloo; with 4 ranks the bus bandwidth is 92% of the link's rate"
    assert "isn't known" in sentences.link_text("nccl", 1_000_000, 4, [23e6], None)


def test_measured_on_one_process() -> None:
    operations = ["all_reduce", "all_gather", "reduce_scatter"]
    backend, taken = measured_training.collective_seconds([400, 4000], operations, runs=3, calls=2)
    assert backend == "gloo" and list(taken) == operations
    for short, long in taken.values():
        assert len(short) == len(long) == 3 and min(short + long) > 0
    ways = {"float32": Settings("", batch_size=8), "bfloat16": Settings("", batch_size=8, bf16=True)}
    first, taken = measured_training.step_seconds(ways, runs=2)
    assert list(first) == list(taken) == list(ways) and all(len(seconds) == 2 for seconds in taken.values())


@pytest.mark.parametrize("name", RECORDED)
def test_every_log_can_be_read_and_drawn(name) -> None:
    log = recording(name).log
    shown = readable(log, width=90).splitlines()
    assert shown and max(map(len, shown)) <= 90
    assert not any("OMP_NUM_THREADS" in line for line in shown)
    picture = story(reports_of(lines_of(log)), 2)
    assert name.lower() in picture.alt_text.lower() and picture._repr_png_().startswith(b"\x89PNG")


def test_calls_inside_packages_are_left_out() -> None:
    stack = (
        '  File "/venv/lib/python3.11/site-packages/torch/_tensor.py", line 2, in backward\n    torch.run()\n    ^^^\n'
    )
    built = "RuntimeError: [/__w/pytorch/gloo/transport/tcp/pair.cc:553] Connection closed by peer"
    assert readable(built) == "RuntimeError: [pair.cc:553] Connection closed by peer"
    own = '  File "/home/ada/train.py", line 1, in <module>\n    loss.backward()\n'
    assert readable(f"Traceback\n{own}{stack}ValueError: no") == f"Traceback\n{own}ValueError: no"


def test_pictures_say_what_they_show() -> None:
    first, second = tries_of(LOG, steps_per_epoch=5)
    environments = {name: example_environment(name, 1, 0, 2, 4) for name in ("torchrun", "srun")}
    pictures = {
        "8 ranks on 2 nodes: rank = node × 4 + local rank": seats(["a"] * 4 + ["b"] * 4),
        "Twice. 2 ranks on 1 node. a: ranks 0, 1. Marked: rank 1.": seats(["a"] * 2, "Twice", marked=[1]),
        "3 ranks on 2 nodes. a: ranks 0, 2; b: ranks 1": seats(["a", "b", "a"]),
        "rank 4 from SLURM_PROCID": launchers(environments),
        "try 1 from step 0 to 17, killed; try 2": tries([first, second], [2.2, 1.7, 1.1, 0.6]),
        "No process was killed": tries([Try(0, [5, 10], [2.0, 1.0])], [2.0, 1.0]),
    }
    for said, picture in pictures.items():
        assert said in picture.alt_text
        assert picture._repr_png_().startswith(b"\x89PNG")
    assert "and srun gives no master" in launchers(environments).alt_text
    assert "RESTART_COUNT" not in launchers(environments).alt_text
    with pytest.raises(CourseError, match="between 1 and 128 ranks"):
        seats([])


def test_how_much_faster_forty_gpus_are_is_in_the_title():
    title, finding = sentences.virtual_nodes_text([4, 8, 40], {"slow": [3.7, 1.4, 4.2], "fast": [3.7, 6.9, 33]})
    assert title == "On virtual clocks, 40 GPUs train 4.2 times the images of one GPU with slow, and 33 times with fast"
    assert finding == "With slow between nodes, 8 GPUs are slower than 4 on one node"
    _, finding = sentences.virtual_nodes_text([4, 8], {"slow": [3, 4], "fast": [3, 6]})
    assert finding == "With all these networks, 8 GPUs are at least as fast as 4 on one node"
