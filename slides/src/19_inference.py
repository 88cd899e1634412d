"""How deck 19 is drafted: all its pictures are the page's."""

DRAFT = {"PAGE": {"used": [0.4, 0.5, 0.6, 0.8]}}
