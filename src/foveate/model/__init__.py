"""The model: policies, a choice rule and priors, composed into one conditional density over the cells of a grid."""
