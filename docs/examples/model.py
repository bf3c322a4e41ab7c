import numpy as np


def loss(x, b):
    y = x + b
    return np.sum(np.max(y, axis=1))
