"""pullback: a compiler for gradients of NumPy code."""
