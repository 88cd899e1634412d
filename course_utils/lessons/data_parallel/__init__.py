"""Lesson 6, Can P workers train as one? Read `gradients` first, then `training`.

`shards` deals the images out, `batch_norm` shares statistics, `differentiable` has the message that a backward pass
can go through; `replicas` has several ways to keep replicas equal.

The CS744 report (VGG-11 on 4 nodes) redone from one's own runs: `train_way` makes a run of `timed_steps` and keeps it,
`report_figures` draws any runs beside `published_numbers`, and `report` puts what is kept on the report's page.
"""
