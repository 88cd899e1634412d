"""Deck 16 takes all its pictures from its page and from Further; the tests draw them after a few steps."""

DRAFT = {"PAGE": {"steps": 20}}
