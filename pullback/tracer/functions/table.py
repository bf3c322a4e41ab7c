"""The one table: NumPy function -> how it is traced; and what is replaced in NumPy while a trace runs."""

from typing import Any

import numpy as np

from pullback.tracer.dispatch import Dispatch, Entry, Refused, Tables
from pullback.tracer.functions import (
    applying,
    classes,
    clones,
    comparison,
    creation,
    differences,
    eigen,
    einsum,
    elementwise,
    extrema,
    facts,
    fourier,
    histograms,
    indexing,
    joining,
    linalg,
    lists,
    norms,
    objects,
    padding,
    pointwise,
    polynomial,
    products,
    quantiles,
    randomness,
    ranges,
    reductions,
    shapes,
    sorting,
    special,
    statistics,
    ufunc_methods,
    views,
)
from pullback.tracer.patching import Patcher, wrappers

MODULES = (
    applying,
    comparison,
    creation,
    differences,
    eigen,
    einsum,
    extrema,
    facts,
    fourier,
    histograms,
    indexing,
    joining,
    linalg,
    norms,
    padding,
    pointwise,
    polynomial,
    products,
    quantiles,
    ranges,
    reductions,
    shapes,
    sorting,
    statistics,
    views,
)


def merged() -> dict[Any, Entry | Refused]:
    """All modules' tables in one; a function that stands in two is a mistake."""
    table: dict[Any, Entry | Refused] = {}
    for module in MODULES:
        for function, entry in module.FUNCTIONS.items():
            assert function not in table, f"{function} is in two tables"
            table[function] = entry
    for name, reason in classes.REFUSED.items():
        function = lookup(name)
        if function is not None:
            table[function] = Refused(reason)
    return table


def lookup(name: str) -> Any:
    """The object that `np.linalg.eig` names, or None where this NumPy has none."""
    found: Any = np
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def is_known(name: str) -> bool:
    """Whether the tracer has something to say about the NumPy object of this name."""
    found = lookup(name)
    if (np, name.split(".")[-1]) in {
        (owner, attribute) for owner, attribute, _ in REPLACEMENTS if name.count(".") == 1
    }:
        return True
    tables = DISPATCH.tables
    if found is np.vectorize or name == "np.row_stack":  # an old name that calls np.vstack
        return True
    return any(found in t for t in (tables.functions, tables.ufuncs, tables.gufuncs))


def _with_wrappers(table: dict[Any, Entry | Refused]) -> dict[Any, Entry | Refused]:
    """While a trace runs `np.copy` is a wrapper, and it is the wrapper that is looked up."""
    found = dict(table)
    for owner, name, new in REPLACEMENTS:
        original = getattr(owner, name)
        if callable(original) and original in table:
            found[new] = table[original]
    return found


class Namespace:
    """NumPy's names, with the creation functions of the tracer even where numpy itself is left alone.

    NumPy's main namespace is that of the Python array API standard, 2024.12, and so is this one.
    """

    def __getattr__(self, name: str) -> Any:
        return PATCHER.replacement(getattr(np, name))

    def __dir__(self) -> list[str]:
        return dir(np)


REPLACEMENTS = [*wrappers(np, creation.CREATORS), *objects.REPLACEMENTS]
PATCHER = Patcher(REPLACEMENTS, (*randomness.FINDERS, *special.FINDERS, *clones.FINDERS))
DISPATCH = Dispatch(
    Tables(
        functions=_with_wrappers(merged()),
        ufuncs={**elementwise.RULES, **special.RULES},
        gufuncs=products.GUFUNCS,
        ufunc_methods=ufunc_methods.METHODS,
    ),
    Namespace(),
)
SEARCHING = Patcher(lists.rows(DISPATCH, REPLACEMENTS), elsewhere=lists.tracer_rows())
