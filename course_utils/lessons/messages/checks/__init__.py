"""The exercises of lesson 4: messages between ranks, and what one costs."""

LESSON = "04_messages"
