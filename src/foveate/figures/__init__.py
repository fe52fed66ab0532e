"""Figures: numbers in, Axes out. Nothing here computes, opens a window or changes Matplotlib's settings."""
