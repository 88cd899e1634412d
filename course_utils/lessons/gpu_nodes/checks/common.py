"""What the checks of lesson 13 share."""

LESSON = "13_gpu_nodes"
