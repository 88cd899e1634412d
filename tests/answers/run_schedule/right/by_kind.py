"""A function for each kind of action."""

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
    last = max(rank_of)
    came, made, back, sent, losses = {}, {}, {}, [], []

    def receive(action, peer, tag):
        return torch.from_numpy(comm.recv(source=peer, tag=tag).copy())

    def receive_activation(stage, index, *where):
        came[stage, index] = receive(*where).requires_grad_(True)

    def receive_gradient(stage, index, *where):
        back[stage, index] = receive(*where)

    def send_activation(stage, index, action, peer, tag):
        sent.append(comm.isend(made[stage, index].detach().numpy(), dest=peer, tag=tag))

    def send_gradient(stage, index, action, peer, tag):
        sent.append(comm.isend(back.pop((stage - 1, index)).numpy(), dest=peer, tag=tag))

    def forward(stage, index, *_):
        x = came.setdefault((stage, index), micro_batches[index])
        y = stages[stage](x)
        if stage == last:
            y = loss(y, index)
            losses.append(y.item())
        if stage < last and rank_of[stage + 1] == comm.rank:
            came[stage + 1, index] = y.detach().clone().requires_grad_(True)
        made[stage, index] = y

    def backward(stage, index, *_):
        torch.autograd.backward(made.pop((stage, index)), back.pop((stage, index), None))
        back[stage - 1, index] = came.pop((stage, index)).grad

    do = {RECV_F: receive_activation, RECV_B: receive_gradient, SEND_F: send_activation, SEND_B: send_gradient}
    do |= {FORWARD: forward, BACKWARD: backward, INPUT: backward}
    for action in with_messages(schedule)[comm.rank]:
        with work.on(action):
            if action.kind in do:
                do[action.kind](action.stage, action.micro_batch, action, *address(action, rank_of))
    for request in sent:
        request.wait()
    return sum(losses)
