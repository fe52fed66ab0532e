"""Evaluation: how well models predict fixations that they were not fitted to."""
