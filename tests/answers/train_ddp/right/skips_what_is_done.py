"""Runs through all batches of an epoch and leaves out those that are done."""

from dataclasses import asdict
from itertools import islice

import torch.distributed as dist

from course_utils.lessons.gpu_nodes.checkpoint import (
    Place,
    gather_random_states,
    read_checkpoint,
    save_checkpoint,
    set_random_states,
)
from course_utils.lessons.gpu_nodes.resumable_training import training_of
from course_utils.lessons.gpu_nodes.stop_signals import Interrupted


def train_ddp(settings):
    with training_of(settings) as t:
        saved = read_checkpoint(t.file) or {}
        place = Place(**saved.get("place", {}))
        for name in saved.keys() & {"model", "optimizer"}:
            getattr(t, name).load_state_dict(saved[name])
        if "random" in saved:
            set_random_states(saved["random"])
        start = place.steps
        while place.epoch < settings.epochs:
            t.sampler.set_epoch(place.epoch)
            for batch in islice(t.batches(), place.batch, None):
                t.step(batch, place)
                asked = t.stop.agreed()
                if asked or not place.steps % settings.save_every:
                    save(t, place)
                if asked:
                    raise Interrupted(t.stop.heard, place.steps, t.file)
            place = Place(place.epoch + 1, 0, place.steps, [*place.losses, t.loss()])
        save(t, place)
        return t.trained(place, start)


def save(t, place):
    random = gather_random_states()
    if random is not None:
        model, optimizer = t.model.state_dict(), t.optimizer.state_dict()
        save_checkpoint(t.file, {"model": model, "optimizer": optimizer, "random": random, "place": asdict(place)})
    dist.barrier()
