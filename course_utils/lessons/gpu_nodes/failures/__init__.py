"""Launches that fail: ten logs to read, and the rules that tell their causes apart."""
