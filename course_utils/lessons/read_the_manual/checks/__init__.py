"""The exercises of lesson 15: the words of other frameworks, and the capstone."""
