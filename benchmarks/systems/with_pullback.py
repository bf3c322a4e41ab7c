"""pullback: the plain NumPy function, differentiated and compiled."""

from typing import Any

import pullback as pb

from ..workload import Prepared, Workload, gradients_alone, value_and_gradients
from .with_numpy import NUMPY

PULLBACK = NUMPY._replace(scan=pb.scan)


def prepare(workload: Workload, arguments: tuple[Any, ...]) -> Prepared:
    function = workload.bind(PULLBACK)
    if workload.with_value:
        return Prepared(pb.value_and_grad(function, argnums=workload.differentiated), arguments, value_and_gradients)
    return Prepared(pb.grad(function, argnums=workload.differentiated), arguments, gradients_alone)
