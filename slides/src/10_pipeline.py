"""Deck 10: its page draws all its pictures."""

PAGE = {"t": 0.04}  # twice the page's times: messages, and other work on the machine, count for less
DRAFT = {"PAGE": {"t": 0.002, "ms": [1, 4], "steps": 2, "stream": 30}}
