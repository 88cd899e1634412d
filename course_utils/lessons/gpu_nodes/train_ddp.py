"""The training program: handwritten digits on any number of processes, with any launcher.

    torchrun --nproc-per-node=2 course_utils/lessons/gpu_nodes/train_ddp.py --folder runs/a
    srun --ntasks=2 python course_utils/lessons/gpu_nodes/train_ddp.py --folder runs/a  (in a batch script)
    ranks.run(train_ddp, Settings("runs/a"), backend="gloo")                            (ranks of `course.start`;
                                                                                        "nccl" with a GPU for each)

Started again with the same folder, it resumes from its last checkpoint.
"""

import json
import os
import sys
import traceback
from dataclasses import asdict

import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.checkpoint import (
    Place,
    gather_random_states,
    read_checkpoint,
    save_checkpoint,
    set_random_states,
)
from course_utils.lessons.gpu_nodes.launch import find_launch
from course_utils.lessons.gpu_nodes.resumable_training import Trained, training_of
from course_utils.lessons.gpu_nodes.stop_signals import TRY_AGAIN, Interrupted
from course_utils.lessons.gpu_nodes.training_settings import Settings, settings_from


def train_ddp(settings: Settings) -> Trained:
    """Train on all processes that the launcher started, and resume from the last checkpoint in
    `settings.folder` if there is one.

    A checkpoint contains the weights, the optimizer, the progress, and the random state of each
    rank. Rank 0 alone writes it, after every `settings.save_every` steps, when the run is stopped,
    and at its end. A run that was interrupted and started again ends with the same losses as one
    that was not.

    After each step the ranks agree whether to stop, so that all of them stop after the same step.

    Raises:
        Interrupted: a rank was asked to stop. The checkpoint is complete by then, and no rank
            leaves before.
        CourseError: the checkpoint cannot be read, or see `training_of`.

    Source: docs.pytorch.org, "DistributedDataParallel" and "torch.utils.data.distributed".
    """
    with training_of(settings) as training:
        progress, found = Place(), read_checkpoint(training.file)
        # Everything that the next step depends on comes from the checkpoint,
        # otherwise the losses would differ.
        if found is not None:
            training.model.load_state_dict(found["model"])
            training.optimizer.load_state_dict(found["optimizer"])
            set_random_states(found["random"])
            progress = Place(**found["place"])
            training.say(f"resumes after step {progress.steps}, from {training.file}")
        resumed_at = progress.steps

        def save() -> None:
            content = {"place": asdict(progress), "random": gather_random_states()}
            if training.rank == 0:
                content |= {"model": training.model.state_dict(), "optimizer": training.optimizer.state_dict()}
                save_checkpoint(training.file, content)
            dist.barrier()  # a rank that left now could make the launcher end rank 0 while it writes

        while progress.epoch < settings.epochs:
            # The order depends on the seed and the epoch only,
            # so the batches that are done already are the first ones.
            training.sampler.set_epoch(progress.epoch)
            for batch in training.batches()[progress.batch :]:
                training.step(batch, progress)
                # Slurm's signal may reach one rank before the others.
                # They agree, so all of them save and leave after the same step.
                asked = training.stop.agreed()
                if asked or progress.steps % settings.save_every == 0:
                    save()
                if asked:
                    raise Interrupted(training.stop.heard, progress.steps, training.file)
            progress.losses.append(training.loss())
            progress.epoch, progress.batch = progress.epoch + 1, 0
        save()
        return training.trained(progress, resumed_at)


def main() -> int:
    """Train as the command line says; returns the exit code: 0, 75 where it was stopped and can go on, 1 otherwise."""
    try:
        trained = train_ddp(settings_from(sys.argv[1:]))
    except Interrupted as stopped:
        if is_first():
            print(stopped, flush=True)
        return TRY_AGAIN
    except CourseError as error:
        print(f"rank {os.environ.get('RANK') or os.environ.get('SLURM_PROCID', 0)}: {error}", file=sys.stderr)
        return 1
    if is_first():
        print(f"done: {json.dumps(asdict(trained))}", flush=True)
    return 0


def is_first() -> bool:
    """Whether this process prints for all."""
    return find_launch().rank == 0


if __name__ == "__main__":
    code = 1
    try:
        code = main()
    except SystemExit as ended:  # --help, or a switch that there is not
        code = ended.code
    except Exception:
        traceback.print_exc()
    finally:  # at once, whatever the group's threads still wait for: so that the launcher sees it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
