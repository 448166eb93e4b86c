"""Function -> Function: `cleanup`, and on it `stabilise` <- `reverse` <- `forward`; `batch` by
itself.
"""
