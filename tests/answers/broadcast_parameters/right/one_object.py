"""The whole state dict as one object; slower, for it is pickled, and right."""

import torch.distributed as dist


def broadcast_parameters(model):
    box = [{name: value.clone() for name, value in model.state_dict().items()} if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    model.load_state_dict(box[0])
