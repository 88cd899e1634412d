"""Refused with: Who fetches the gradients of weights that a stage puts aside?"""

import torch

from course_utils.lessons.pipeline.actions import (
    BACKWARD,
    FORWARD,
    INPUT,
    RECV_B,
    RECV_F,
    SEND_B,
    SEND_F,
    rank_of_stages,
)
from course_utils.lessons.pipeline.send_and_receive import address, with_messages
from course_utils.lessons.pipeline.stage_work import Work


def run_schedule(comm, schedule, stages, micro_batches, loss, pace=None):
    rank_of, work = rank_of_stages(schedule), Work(stages, pace)
    inputs, outputs, gradients, requests, total = {}, {}, {}, [], 0.0
    for action in with_messages(schedule)[comm.rank]:
        stage, index = action.stage, action.micro_batch
        peer, tag = address(action, rank_of)
        if action.kind != "W":
            if action.kind == RECV_F:
                inputs[stage, index] = torch.tensor(comm.recv(source=peer, tag=tag)).requires_grad_()
            elif action.kind == RECV_B:
                gradients[stage, index] = torch.tensor(comm.recv(source=peer, tag=tag))
            elif action.kind == SEND_F:
                y = outputs[stage, index].detach().numpy()
                requests.append(comm.isend(y, dest=peer, tag=tag))
            elif action.kind == SEND_B:
                gradient = inputs[stage, index].grad.numpy()
                requests.append(comm.isend(gradient, dest=peer, tag=tag))
            elif action.kind == FORWARD:
                if stage == 0:
                    inputs[stage, index] = micro_batches[index]
                y = stages[stage](inputs[stage, index])
                if stage == max(rank_of):
                    y = loss(y, index)
                    total += y.item()
                elif stage + 1 in stages:
                    inputs[stage + 1, index] = y.detach().requires_grad_()
                outputs[stage, index] = y
            elif action.kind in (BACKWARD, INPUT):
                if stage + 1 in stages:
                    gradients[stage, index] = inputs[stage + 1, index].grad
                outputs[stage, index].backward(gradients.get((stage, index)))
    for request in requests:
        request.wait()
    return total
