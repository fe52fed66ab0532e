"""From data to parameters."""
