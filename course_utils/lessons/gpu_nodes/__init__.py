"""Lesson 13, From four processes to forty GPUs? Read `train_ddp` first: the program that three launchers run unchanged.

`settings` is what it is told, `resumable_training` what it needs on every rank; `launch` finds out who started it and
who the others are, `checkpoint` keeps what it needs to go on, `stop_signals` hears that the time is up. `slurm_script`
writes the batch script, `save_interval` says how often to save. `failures` are launches that went wrong.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from course_utils.lessons.messages.played_computation import compute_for

    from . import pictures
    from .checkpoint import (
        Place,
        gather_random_states,
        load_checkpoint,
        read_checkpoint,
        save_checkpoint,
        set_random_states,
    )
    from .failures.line_reports import reports_of
    from .failures.log_report import log_report, log_report_text
    from .failures.readable_log import readable
    from .failures.reading.log_files import read_logs
    from .failures.reading.log_parser import lines_of
    from .failures.recorded_logs import recording
    from .failures.story import FailureReport, ReportKind, Story, explain_failure
    from .ladder import climb_here, recorded_batches, recorded_climb
    from .launch import find_launch, process_group
    from .launch_commands import hand_in, has_slurm, losses_of, printed_losses, progress_lines, training_folder
    from .launcher_variables import example_environment
    from .measured_training import collective_seconds
    from .nccl_says import lines_that_matter, nccl_start, ways
    from .rank_memory import TextModel, memory_by_way, recorded_memory
    from .recorded_jobs import recorded_output
    from .resumable_training import Trained, training_of
    from .save_interval import HOUR, best_interval, goodput, simulated_goodput
    from .sentences import (
        allowed_rates,
        bandwidth_text,
        by_width,
        compiling_text,
        gains_text,
        gpu_name,
        intervals_text,
        kept_shares,
        kept_text,
        ladder_bars,
        ladder_table,
        ladder_text,
        larger_batch_text,
        link_text,
        network_bars,
        networks_text,
        peak_text,
        rate_text,
        recorded_memory_text,
        same_loss,
        scales_text,
        sweep_text,
        virtual_nodes_text,
        ways_text,
        widths_text,
    )
    from .slurm_script import check_job, slurm_script
    from .stop_signals import TRY_AGAIN, Interrupted, send_sigterm
    from .torchrun_script import torchrun_script
    from .train_ddp import train_ddp
    from .training_settings import Settings
    from .transformer_step import network_rates_here, recorded_networks
    from .tries import repeated_steps, tries_of

__getattr__, __dir__, __all__ = attach(__name__, __file__)
