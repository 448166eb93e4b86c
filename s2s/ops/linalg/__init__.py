"""Linear systems, decompositions and functions of matrices."""
