"""What runs inside a rank: the engine, what a notebook asks of it, and what it replies."""
