"""The second capstone: plan the training of a large model, go on without a GPU, and find what slows the training down.

Nothing here runs on a GPU. `training_tasks` and `chosen_layout` are about the plan, `lost_gpu` is about the failure,
and `bottleneck` about the traces, which `made_lanes` makes up.
"""
