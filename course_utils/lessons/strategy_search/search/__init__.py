"""The search for a good strategy: one Metropolis walk, many of them, and every strategy there is."""
