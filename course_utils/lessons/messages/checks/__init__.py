"""The exercises of lesson 4: messages between ranks, and what one costs."""
