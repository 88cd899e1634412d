"""The exercises of lesson 8: workers that wait for a server, for nobody, or now and then for each other."""
