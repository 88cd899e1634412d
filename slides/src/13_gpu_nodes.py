"""Deck 13 takes all its pictures from its page, with torch.compile switched on."""

PAGE = {"patient": True}  # torch.compile too: its kernels take half a minute
DRAFT = {"PAGE": {}}
