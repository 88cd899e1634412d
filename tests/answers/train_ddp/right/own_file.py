"""Writes beside and renames with os.replace; keeps the steps done and the losses, and computes the place from them."""

import os

import torch
import torch.distributed as dist

from course_utils.lessons.gpu_nodes.checkpoint import Place
from course_utils.lessons.gpu_nodes.resumable_training import training_of
from course_utils.lessons.gpu_nodes.stop_signals import Interrupted


def train_ddp(settings):
    with training_of(settings) as training:
        model, optimizer, rank = training.model, training.optimizer, dist.get_rank()
        place = Place()
        if training.file.exists():
            saved = torch.load(training.file)
            model.load_state_dict(saved["weights"])
            optimizer.load_state_dict(saved["momentum"])
            torch.set_rng_state(saved["generators"][rank])
            place.epoch, place.batch, place.steps, place.losses = saved["where"]
        dist.barrier()
        before = place.steps

        def checkpoint():
            generators = [None] * dist.get_world_size()
            dist.all_gather_object(generators, torch.get_rng_state())
            if rank == 0:
                beside = str(training.file) + ".part"
                where = place.epoch, place.batch, place.steps, place.losses
                content = {"weights": model.state_dict(), "momentum": optimizer.state_dict(), "where": where}
                torch.save(content | {"generators": generators}, beside)
                os.replace(beside, training.file)
            dist.barrier()

        while place.epoch < settings.epochs:
            training.sampler.set_epoch(place.epoch)
            todo = training.batches()[place.batch :]
            for batch in todo:
                training.step(batch, place)
                must_stop = training.stop.agreed()
                if must_stop:
                    checkpoint()
                    raise Interrupted(training.stop.heard, place.steps, training.file)
                if place.steps % settings.save_every == 0:
                    checkpoint()
            place.losses.append(training.loss())
            place.epoch += 1
            place.batch = 0
        checkpoint()
        return training.trained(place, before)
