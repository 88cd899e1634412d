"""The exercises of lesson 11, a module each."""
