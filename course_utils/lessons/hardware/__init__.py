"""Lesson 3, What limits one machine? Read `roofline` first.

How fast it computes and moves bytes (`machine_rates`, `layer_costs`), how many hands it has (`threads`,
`work_and_depth`), how it reads files (`packed_samples`, `photos`, `reading_speed`), where a step's time goes
(`step_shares`).

Import this package before torch: then torch's threads sleep while they wait for each other. By default they spin, which
saves microseconds on a quiet machine, and on a busy one makes two threads slower than one.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read by the OpenMP library when torch loads it
