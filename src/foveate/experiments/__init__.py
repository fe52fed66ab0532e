"""Experiments: the paper's own, done again."""
