"""How deck 18 is drafted: all its pictures are the page's."""
