"""The exercises of lesson 0: two small functions, to see what a check does."""
