"""The exercises of lesson 8: workers that wait for a server, not at all, or only now and then for each other."""
