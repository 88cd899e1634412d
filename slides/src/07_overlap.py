"""How deck 7 runs its page: with more rounds than the page measures."""

PAGE = {"rounds": 5}
DRAFT = {"PAGE": {"batch": 4, "rounds": 1}}
