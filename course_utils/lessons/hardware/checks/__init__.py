"""The exercises of lesson 3: what limits one machine."""
