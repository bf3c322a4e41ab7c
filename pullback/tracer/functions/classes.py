"""Every public name of numpy, numpy.linalg and numpy.fft, every method of ndarray and ufunc: what a trace does with it.

A function is differentiable when it stands in the tables of this package and not below. A test walks NumPy's
namespaces, so that a new NumPy cannot bring a name that nobody has thought about.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pullback.tracer.convert import REFUSED_ATTRIBUTES

STEP = "piecewise constant: its derivative is zero wherever it exists"
TRUTH = "its result is a truth value"
INTEGER = "its result is an integer"
INTEGERS_ONLY = "it takes integers or booleans, which carry no gradient"
GUARDED = "what it finds decides shapes or Python values, so it is guarded: other data are traced anew"
SHAPE = "it looks at types and shapes alone"
INDEX_SET = "it makes constant indices"

VALUE_ONLY: Mapping[str, str] = {
    **dict.fromkeys(
        ("np.floor", "np.ceil", "np.trunc", "np.fix", "np.rint", "np.round", "np.around", "np.sign", "np.floor_divide"),
        STEP,
    ),
    **dict.fromkeys(("np.heaviside", "np.spacing", "np.frexp[1]"), STEP),
    **dict.fromkeys(
        (
            "np.equal",
            "np.not_equal",
            "np.less",
            "np.less_equal",
            "np.greater",
            "np.greater_equal",
            "np.logical_and",
            "np.logical_or",
            "np.logical_xor",
            "np.logical_not",
            "np.isnan",
            "np.isinf",
            "np.isfinite",
            "np.isposinf",
            "np.isneginf",
            "np.signbit",
            "np.isclose",
            "np.iscomplex",
            "np.isreal",
            "np.isin",
            "np.any",
            "np.all",
        ),
        TRUTH,
    ),
    **dict.fromkeys(
        (
            "np.argmax",
            "np.argmin",
            "np.nanargmax",
            "np.nanargmin",
            "np.argsort",
            "np.argpartition",
            "np.lexsort",
            "np.searchsorted",
            "np.digitize",
            "np.count_nonzero",
            "np.linalg.matrix_rank",
        ),
        INTEGER,
    ),
    **dict.fromkeys(
        (
            "np.bitwise_and",
            "np.bitwise_or",
            "np.bitwise_xor",
            "np.bitwise_count",
            "np.invert",
            "np.bitwise_not",
            "np.bitwise_invert",
            "np.left_shift",
            "np.bitwise_left_shift",
            "np.right_shift",
            "np.bitwise_right_shift",
            "np.unravel_index",
            "np.ravel_multi_index",
        ),
        INTEGERS_ONLY,
    ),
    **dict.fromkeys(
        (
            "np.gcd",
            "np.lcm",
            "np.nonzero",
            "np.flatnonzero",
            "np.argwhere",
            "np.allclose",
            "np.array_equal",
            "np.array_equiv",
            "np.union1d",
            "np.intersect1d",
            "np.setdiff1d",
            "np.setxor1d",
            "np.unique_values",
            "np.unique_counts",
            "np.unique_inverse",
            "np.unique_all",
        ),
        GUARDED,
    ),
    **dict.fromkeys(
        (
            "np.shape",
            "np.ndim",
            "np.size",
            "np.isrealobj",
            "np.iscomplexobj",
            "np.result_type",
            "np.can_cast",
            "np.common_type",
            "np.min_scalar_type",
            "np.shares_memory",
            "np.may_share_memory",
            "np.einsum_path",
            "np.broadcast",
        ),
        SHAPE,
    ),
    **dict.fromkeys(
        (
            "np.diag_indices",
            "np.diag_indices_from",
            "np.tril_indices",
            "np.tril_indices_from",
            "np.triu_indices",
            "np.triu_indices_from",
            "np.mask_indices",
            "np.indices",
        ),
        INDEX_SET,
    ),
}

BITS = "it rearranges bits, which no op does; use arithmetic on integers"
BUSINESS = "dates are not followed; work them out before the call, and pass numbers"
TEXT = "the text of a traced value is not its numbers; print the result of the compiled function"
FILES = "a traced value has no numbers to write; save the result of the compiled function"
MATRIX = "np.matrix is not followed; use arrays and the @ operator"
ITERATOR = "it walks over memory, which a traced array has not; use loops, np.ndindex or np.ndenumerate"

REFUSED: Mapping[str, str] = {
    "np.packbits": BITS,
    "np.unpackbits": BITS,
    "np.isnat": BUSINESS,
    "np.busday_count": BUSINESS,
    "np.busday_offset": BUSINESS,
    "np.is_busday": BUSINESS,
    "np.datetime_as_string": BUSINESS,
    "np.array2string": TEXT,
    "np.array_repr": TEXT,
    "np.array_str": TEXT,
    "np.save": FILES,
    "np.savez": FILES,
    "np.savez_compressed": FILES,
    "np.savetxt": FILES,
    "np.asmatrix": MATRIX,
    "np.bmat": MATRIX,
    "np.nditer": ITERATOR,
    "np.nested_iters": ITERATOR,
    "np.frompyfunc": "a ufunc of a Python function hides it; use np.vectorize, or call the function on arrays",
    "np.from_dlpack": "a traced array has no memory to share; hand the result of the compiled function on",
}

# Names that do not take arrays of numbers: types, errors, settings, files, documentation.
NEUTRAL: frozenset[str] = frozenset(
    {
        "np.base_repr",
        "np.binary_repr",
        "np.broadcast_shapes",
        "np.busdaycalendar",
        "np.datetime_data",
        "np.dtype",
        "np.errstate",
        "np.finfo",
        "np.flatiter",
        "np.format_float_positional",
        "np.format_float_scientific",
        "np.frombuffer",
        "np.fromfile",
        "np.fromregex",
        "np.fromstring",
        "np.genfromtxt",
        "np.get_include",
        "np.get_printoptions",
        "np.getbufsize",
        "np.geterr",
        "np.geterrcall",
        "np.iinfo",
        "np.info",
        "np.isdtype",
        "np.isfortran",
        "np.isscalar",
        "np.issubdtype",
        "np.iterable",
        "np.load",
        "np.loadtxt",
        "np.matrix",
        "np.memmap",
        "np.mintypecode",
        "np.ndarray",
        "np.ndindex",
        "np.poly1d",
        "np.printoptions",
        "np.promote_types",
        "np.recarray",
        "np.record",
        "np.set_printoptions",
        "np.setbufsize",
        "np.seterr",
        "np.seterrcall",
        "np.show_config",
        "np.show_runtime",
        "np.test",
        "np.typename",
        "np.ufunc",
        "np.linalg.LinAlgError",
        "np.linalg.test",
        "np.fft.test",
        "np.fft.fftfreq",
        "np.fft.rfftfreq",
    }
)

# What a differentiable function does not do, or does differently.
NOTES: Mapping[str, str] = {
    "np.partition": "a full sort, one of the orders it may return",
    "np.unique": "the values are followed, their order is guarded; no return_* and axis= for traced numbers",
    "np.extract": "which elements there are is guarded where the result is not reduced",
    "np.compress": "which elements there are is guarded",
    "np.trim_zeros": "how many are trimmed is guarded",
    "np.histogram": "in the weights; the counts are steps",
    "np.histogram2d": "in the weights; the counts are steps",
    "np.histogramdd": "in the weights; the counts are steps",
    "np.bincount": "in the weights",
    "np.frexp": "in the mantissa; the exponent is a step",
    "np.nextafter": "with the derivative of its first operand",
    "np.empty": "zeros, so that results do not depend on chance",
    "np.empty_like": "zeros, so that results do not depend on chance",
    "np.polyfit": "for one degree, without full= and cov=",
    "np.polydiv": "how long the remainder is, is guarded",
    "np.repeat": "the counts decide shapes, so they are constant or guarded",
    "np.average": "weights that sum to 0 give NaN or infinity, where NumPy raises ZeroDivisionError",
    "np.linalg.lstsq": "the rank is guarded; under vmap write np.linalg.pinv(a) @ b",
    "np.linalg.eig": "whether the eigenvalues of a real matrix are real is guarded; under vmap write a.astype(complex)",
    "np.linalg.eigvals": "whether the eigenvalues of a real matrix are real is guarded; under vmap write "
    "a.astype(complex)",
    "np.roots": "how many coefficients are 0, and whether the roots are real, is guarded",
    "np.poly": "whether complex roots come in pairs is guarded",
    "np.linalg.svd": "full_matrices=True: an error where the result depends on which basis completes U or Vh",
    "np.linalg.qr": "mode='complete': an error where the result depends on which basis completes Q; no mode='raw'",
    "np.linalg.pinv": "smooth where the rank is full",
    "np.linalg.cholesky": "one triangle is read; the other has gradient 0",
    "np.linalg.eigh": "one triangle is read; the other has gradient 0",
    "np.linalg.eigvalsh": "one triangle is read; the other has gradient 0",
}


class Class(NamedTuple):
    """kind: `differentiable`, `value only`, `refused` or `neutral`; and why."""

    kind: str
    note: str = ""


DIFFERENTIABLE = Class("differentiable")
IS_NEUTRAL = Class("neutral", "it says what the array is, or how it may be used")

_FOLLOWED = (
    "T", "mT", "astype", "choose", "clip", "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal",
    "dot", "fill", "flat", "flatten", "imag", "item", "max", "mean", "min", "prod", "put", "ravel", "real",
    "repeat", "reshape", "resize", "sort", "squeeze", "std", "sum", "swapaxes", "take", "to_device", "tolist",
    "trace", "transpose", "var", "view",
)  # fmt: skip

# Every public method and attribute of ndarray.
METHODS: Mapping[str, Class] = {
    **dict.fromkeys(_FOLLOWED, DIFFERENTIABLE),
    "partition": Class("differentiable", NOTES["np.partition"]),
    **dict.fromkeys(("all", "any"), Class("value only", TRUTH)),
    **dict.fromkeys(("argmax", "argmin", "argpartition", "argsort", "searchsorted"), Class("value only", INTEGER)),
    "nonzero": Class("value only", GUARDED),
    "round": Class("value only", STEP),
    **dict.fromkeys(
        ["base", "device", "dtype", "flags", "itemsize", "nbytes", "ndim", "setflags", "shape", "size", "strides"],
        IS_NEUTRAL,
    ),
    **{name: Class("refused", reason) for name, reason in REFUSED_ATTRIBUTES.items()},
}

# Every public method of ufunc; its attributes (`nin`, `types`, ...) are NumPy's own.
UFUNC_METHODS: Mapping[str, Class] = {
    "reduce": Class("differentiable", "as the function itself is"),
    "accumulate": Class("differentiable", "as the function itself is"),
    "reduceat": Class("differentiable", "as the function itself is; the indices are constant or guarded"),
    "outer": Class("differentiable", "as the function itself is"),
    "at": Class("differentiable", "as the function itself is; the indices are guarded, but for add and subtract"),
    "resolve_dtypes": Class("neutral", "it takes dtypes"),
}


def classify(name: str, known: bool) -> Class | None:
    """The class of a public name (`np.linalg.eig`); `known` says whether it stands in the tracer's tables."""
    if name in REFUSED:
        return Class("refused", REFUSED[name])
    if name in VALUE_ONLY:
        return Class("value only", VALUE_ONLY[name])
    if name in NEUTRAL:
        return Class("neutral")
    return Class("differentiable", NOTES.get(name, "")) if known else None
