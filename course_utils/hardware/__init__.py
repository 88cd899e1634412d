"""What limits one machine: how fast it computes, how fast it moves bytes, how many hands it has, how it reads files."""
