"""Peers and tags of its own; tensors travel as they are."""

import torch

from course_utils.lessons.pipeline.actions import rank_of_stages
from course_utils.lessons.pipeline.send_and_receive import other_end, with_messages
from course_utils.lessons.pipeline.stage_work import Work


def run_schedule(comm, schedule, stages, micro_batches, loss, pace=None):
    rank_of = rank_of_stages(schedule)
    work = Work(stages, pace)
    xs, ys, gs, pending = {(0, k): x for k, x in enumerate(micro_batches)}, {}, {}, []
    total = 0.0
    for action in with_messages(schedule)[comm.rank]:
        here = action.stage, action.micro_batch
        if "_" in action.kind:
            end = other_end(action)
            peer = rank_of[end.stage]
            tag = action.micro_batch * 100 + min(action.stage, end.stage) + 50 * action.kind.endswith("F")
        match action.kind:
            case "RECV_F":
                xs[here] = comm.recv(source=peer, tag=tag).requires_grad_()
            case "RECV_B":
                gs[here] = comm.recv(source=peer, tag=tag)
            case "SEND_F":
                pending += [comm.isend(ys[here].detach(), dest=peer, tag=tag)]
            case "SEND_B":
                pending += [comm.isend(xs[here].grad, dest=peer, tag=tag)]
            case _:
                with work.on(action):
                    if action.kind == "F":
                        y = stages[action.stage](xs[here])
                        if action.stage == max(rank_of):
                            y = loss(y, action.micro_batch)
                            total += float(y)
                        ys[here] = y
                        after = action.stage + 1, action.micro_batch
                        if rank_of.get(action.stage + 1) == comm.rank:
                            xs[after] = y.detach().requires_grad_()
                    elif action.kind in "BI":
                        local = xs.get((action.stage + 1, action.micro_batch))
                        ys[here].backward(gs.get(here) if local is None else local.grad)
    for request in pending:
        request.wait()
    return total
