"""Deck 12: its page draws all its pictures."""

DRAFT = {"PAGE": {"batch": 8, "pixels": 64, "rounds": 2}}
