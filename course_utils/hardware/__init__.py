"""What limits one machine: how fast it computes, how fast it moves bytes, how many hands it has, how it reads files.

Import this package before torch: then torch's threads sleep while they wait for each other. By default they spin, which
saves microseconds on a quiet machine, and on a busy one makes two threads slower than one.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read by the OpenMP library when torch loads it
