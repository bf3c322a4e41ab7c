"""Math functions as internal functions of a module, inlined where that pays."""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping, Sequence

from pullback.codegen.llvm import FunctionBuilder, Module, V
from pullback.codegen.math.kit import name_of
from pullback.codegen.math.table import MATH
from pullback.lazy import LazyModule

trig = LazyModule("pullback.codegen.math.trig")

INLINE_UP_TO = 3  # a call costs 5 %, each further inlined copy one to three milliseconds of compiling

Shared = MutableMapping[tuple[str, str], V]


class MathCalls:
    """Places math functions into the functions of one module.

    Each function and vector type is written once, as an internal function, and called where it is used. `finish`
    decides what becomes of the calls: with few of them LLVM inlines all, with many none, so that code does not grow
    with the number of uses.

    Parameters
    ----------
    inline_up_to : inline functions called at most so often
    """

    def __init__(self, module: Module, inline_up_to: int = INLINE_UP_TO) -> None:
        self._module = module
        self._inline_up_to = inline_up_to
        self._uses: Counter[str] = Counter()

    def emit(self, b: FunctionBuilder, name: str, args: Sequence[V], shared: Shared | None = None, **static: int) -> V:
        """The function's value at `args`; see `table.emit`.

        Parameters
        ----------
        shared : what one straight piece of code (a loop body) has computed: give the same dictionary, empty at first,
            for all functions in it, and the sine and the cosine of one value are computed together
        """
        if shared is not None and name in ("sin", "cos"):
            return self._sin_or_cos(b, name, args[0], shared)
        label = "_".join([name, *map(str, static.values())])
        function = name_of(label, args[0].type)
        if function not in self._module.functions:
            inner = self._begin(function, args[0].type, args)
            inner.ret(MATH[name].emit(inner, *inner.params, **static))
        self._uses[function] += 1
        return b.call(args[0].type, function, args)

    def _sin_or_cos(self, b: FunctionBuilder, name: str, x: V, shared: Shared) -> V:
        if (name, x.name) not in shared:
            function, pair = name_of("sin_cos", x.type), f"{{ {x.type}, {x.type} }}"
            if function not in self._module.functions:
                inner = self._begin(function, pair, [x])
                inner.ret_struct(*trig.sin_cos(inner, *inner.params))
            self._uses[function] += 1
            both = b.call(pair, function, [x])
            for index, which in enumerate(("sin", "cos")):
                shared[which, x.name] = b.extract_value(both, index, x.type)
        return shared[name, x.name]

    def _begin(self, function: str, result: str, args: Sequence[V]) -> FunctionBuilder:
        params = [(arg.type, f"x{i}") for i, arg in enumerate(args)]
        return self._module.function(function, result, params, "internal", "memory(none)")

    def finish(self) -> None:
        """Say which functions are to be inlined; call it once, before the module is printed."""
        for function, uses in self._uses.items():
            self._module.functions[function].attributes += (
                " alwaysinline" if uses <= self._inline_up_to else " noinline"
            )
