"""The course's checks on GPUs, started by `run.sh`. They need this repository and torch, no more."""
