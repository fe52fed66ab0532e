"""Readers, one file per format: each gives scan paths in degrees inside the picture."""
