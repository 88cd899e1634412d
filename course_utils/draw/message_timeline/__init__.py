"""Timelines of messages: who sent what to whom and when, and who waited. `timelines` draws them."""
