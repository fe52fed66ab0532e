"""A folder of results as one HTML file that needs nothing else: numbers, figures, and a viewer of scan paths."""
