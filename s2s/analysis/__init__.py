"""Analyses of the IR: activity, dependence, aliasing, index ranges, linearity, divergence."""
