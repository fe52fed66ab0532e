"""Fit, simulate and judge generative models of scan paths: where a person looks next in a picture."""
