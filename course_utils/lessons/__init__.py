"""The lessons: a room for each, named after its page, with all that only this lesson needs.

In each, the modules of the taught library, which are the answer key and never print, draw or judge; `sentences`, what
is said of a run; `pictures`, drawings that only this lesson needs; and `checks`, a module for each exercise. A lesson
may use what lessons with lower numbers teach. Its `__init__` lists what pages import from it: the lesson's face.
"""
