"""Measurements of speed and of selections; each module is a command (see README.md)."""
