"""Geometry, scan paths and saliency maps: what was shown and where people looked."""
