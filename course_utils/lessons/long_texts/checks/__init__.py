"""The exercises of lesson 17: attention in pieces, on one rank and on several; whose tokens are which, and how many."""
