"""The exercises of lesson 13, a module each."""
