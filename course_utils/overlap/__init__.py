"""Communication behind the backward pass: buckets, compression, and what they bring (lesson 7)."""
