"""What the checks of lesson 15 share."""

LESSON = "15_read_the_manual"
