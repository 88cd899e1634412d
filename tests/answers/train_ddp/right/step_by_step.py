"""One loop over all steps; epoch and batch follow from their number. Every rank reads for itself."""

from dataclasses import asdict

import torch.distributed as dist

from course_utils.lessons.gpu_nodes.checkpoint import (
    Place,
    gather_random_states,
    load_checkpoint,
    save_checkpoint,
    set_random_states,
)
from course_utils.lessons.gpu_nodes.resumable_training import training_of
from course_utils.lessons.gpu_nodes.stop_signals import Interrupted


def write(training, place):
    random = gather_random_states()
    if training.rank == 0:
        parts = {name: getattr(training, name).state_dict() for name in ("model", "optimizer")}
        save_checkpoint(training.file, parts | {"random": random, "place": asdict(place)})
    dist.barrier()


def train_ddp(settings):
    with training_of(settings) as training:
        place = Place()
        dist.barrier()
        if content := load_checkpoint(training.file):
            training.model.load_state_dict(content["model"])
            training.optimizer.load_state_dict(content["optimizer"])
            set_random_states(content["random"])
            place = Place(**content["place"])
        dist.barrier()
        resumed_at = place.steps
        in_epoch = len(training.batches())
        for step in range(resumed_at, settings.epochs * in_epoch):
            epoch, batch = divmod(step, in_epoch)
            training.sampler.set_epoch(epoch)
            training.step(training.batches()[batch], place)
            stopped = training.stop.agreed()
            if batch == in_epoch - 1:
                place.losses.append(training.loss())
                place.epoch, place.batch = epoch + 1, 0
            if stopped or place.steps % settings.save_every == 0:
                write(training, place)
            if stopped:
                raise Interrupted(training.stop.heard, place.steps, training.file)
        write(training, place)
        return training.trained(place, resumed_at)
