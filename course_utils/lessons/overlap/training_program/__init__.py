"""A whole training program, for torchrun and without the course: what readers take home."""
