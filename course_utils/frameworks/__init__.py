"""Lesson 15: one training step in other frameworks, and the words of their manuals."""
