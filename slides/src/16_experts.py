"""Deck 16 takes all its pictures from its page; the tests draw them after a few steps."""

DRAFT = {"PAGE": {"steps": 4}}
