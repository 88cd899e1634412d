"""The exercises of lesson 10: schedules that keep all stages busy, and a puzzle in which to beat them."""
