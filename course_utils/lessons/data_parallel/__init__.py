"""Lesson 6, Can P workers train as one? Read `gradients` first, then `training`.

`shards` deals the images out, `batch_norm` shares statistics, `differentiable` has the message that a backward pass
can go through; `replicas` has several ways to keep replicas equal. `vgg_report` redoes the CS744 report.
"""
