"""Refused with: Which batches of this epoch are done already?"""

from dataclasses import asdict

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
    with training_of(settings) as training:
        place = Place()
        found = read_checkpoint(training.file)
        if False:
            place = Place(**found["place"])
            training.model.load_state_dict(found["model"])
            training.optimizer.load_state_dict(found["optimizer"])
            set_random_states(found["random"])
        began = place.steps

        def save():
            states = gather_random_states()
            if dist.get_rank() == 0:
                save_checkpoint(
                    training.file,
                    {
                        "place": asdict(place),
                        "model": training.model.state_dict(),
                        "optimizer": training.optimizer.state_dict(),
                        "random": states,
                    },
                )
            dist.barrier()

        for epoch in range(place.epoch, settings.epochs):
            training.sampler.set_epoch(epoch)
            for batch in training.batches()[place.batch :]:
                training.step(batch, place)
                stop = training.stop.agreed()
                if stop or place.steps % settings.save_every == 0:
                    save()
                if stop:
                    raise Interrupted(training.stop.heard, place.steps, training.file)
            place.losses.append(training.loss())
            place.epoch, place.batch = epoch + 1, 0
        save()
        return training.trained(place, began)
