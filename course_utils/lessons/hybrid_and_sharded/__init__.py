"""Lesson 11, Which mixture? Read `device_mesh` first, then `zero1`.

Data, tensor and pipeline parallelism in one training (`mesh_training`), or two of them in one network (`hybrid_step`).
`gradient_clipping` takes the norm of a gradient that no rank has whole. `utilization` counts what a training costs.
ZeRO: `zero_formulas` count on paper, `zero1` and `zero2` are by hand, `fsdp` is stage 3 through torch, `zero_stages`
trains with each. `mesh_checkpoints` writes with some ranks and reads with others. `planner` works on paper alone.
"""
