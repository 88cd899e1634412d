"""How deck 17 is drafted: all its pictures are the page's."""

DRAFT = {"PAGE": {"lengths": [128, 256, 512]}}
