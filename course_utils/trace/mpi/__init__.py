"""Calls of MPI, recorded and waited for so that each wait can be seen and left. Read `traced_communicators` first."""
