"""The exercises of lesson 13, a module each."""

LESSON = "13_gpu_nodes"
