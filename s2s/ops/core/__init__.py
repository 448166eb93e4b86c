"""Records and the mechanisms that define ops: rules, shapes, elementwise arithmetic, control flow.
"""
