"""From a model to scan paths: cells drawn from policies, whole data sets, and what a prior predicts."""
