"""Lesson 0, What do I have here? The first functions that run on every rank are in `rank_and_size`."""
