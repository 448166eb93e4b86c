"""Systems of equations, decompositions and functions of matrices."""
