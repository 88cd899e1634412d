"""What the checks of lesson 9 share."""

LESSON = "09_model_parallel"
