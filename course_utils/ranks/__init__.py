"""Owns every process: starts ranks, runs functions on them, reports what went wrong, and leaves none behind."""
