"""A network on one machine: every rank a node behind a link of its own, and what passed each link."""
