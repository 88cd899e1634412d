"""How deck 19 is drafted: all its pictures are the page's."""

DRAFT = {"PAGE": {"counts": [1, 16], "used": [0.4, 0.5, 0.6], "arriving": 500, "repeats": 50}}
