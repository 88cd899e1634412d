"""Launches that fail: recorded logs to read, and the rules that tell their causes apart."""
