"""Training through a server, and without waiting for each other (lesson 8)."""
