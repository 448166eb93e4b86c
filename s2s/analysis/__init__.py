"""Questions about IR that change nothing: activity, dependence, aliases, ranges, linearity,
divergence.
"""
