"""Algorithm 1 of the paper, and what widens it."""
