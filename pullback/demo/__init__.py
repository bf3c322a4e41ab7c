"""`pullback demo`: two models trained on handwritten digits, with gradients compiled from plain NumPy.

It is also the longest example: `models.py` holds the losses as a user writes them, `training.py` the loop around
`value_and_grad`, `measure.py` what is said about the gradient (is it right, how fast, what did the passes do).
"""

from pullback.demo.command import main

__all__ = ["main"]
