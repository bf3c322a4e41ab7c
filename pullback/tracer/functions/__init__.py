"""NumPy's functions in terms of ops, by theme. `table.py` is the one table of them all."""
