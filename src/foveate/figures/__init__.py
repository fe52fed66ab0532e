"""Numbers in, Axes out: every figure that foveate draws."""
