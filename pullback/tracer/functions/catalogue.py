"""The classification of NumPy's names as text, for the documentation."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from pullback.tracer.functions.classes import METHODS, UFUNC_METHODS, Class, classify
from pullback.tracer.functions.table import is_known

NAMESPACES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}

KINDS: Mapping[str, str] = {
    "differentiable": "Differentiable",
    "value only": "Value only: no gradient passes, and none is missed",
    "refused": "Refused: an error that names the function, the line and this reason",
    "neutral": "Without traced numbers: types, settings, files, text",
}


def public_names() -> list[str]:
    """Callables of numpy, numpy.linalg and numpy.fft that are no scalar types, errors or warnings."""
    return [name for prefix in NAMESPACES for name in _names(prefix)]


def _names(prefix: str) -> Iterator[str]:
    module = NAMESPACES[prefix]
    for name in sorted(dir(module)):
        found = None if name.startswith("_") else getattr(module, name)
        is_type = isinstance(found, type) and issubclass(found, np.generic | Exception | Warning)
        if callable(found) and not is_type:
            yield f"{prefix}.{name}"


def classes() -> dict[str, Class]:
    """The class of each public name.

    Raises
    ------
    KeyError : a name that nobody has thought about.
    """
    found = {}
    for name in public_names():
        known = classify(name, is_known(name))
        if known is None:
            raise KeyError(f"{name} is not classified: give it a rule, or a place in functions/classes.py")
        found[name] = known
    return found


def page() -> str:
    """All tables, in Markdown."""
    parts = [f"Made from the classification in the source, for NumPy {numpy_version()}.\n"]
    parts += sections("Functions", classes())
    parts += sections("Methods and attributes of `ndarray`", METHODS)
    parts += sections("Methods of ufuncs", UFUNC_METHODS)
    return "\n".join(parts)


def numpy_version() -> str:
    """The release of NumPy, such as 2.4: patches bring no names."""
    return ".".join(np.__version__.split(".")[:2])


def sections(title: str, rows: Mapping[str, Class]) -> Iterator[str]:
    yield f"### {title}\n"
    for kind, heading in KINDS.items():
        chosen = {name: c.note for name, c in rows.items() if c.kind == kind}
        if chosen:
            yield f"**{heading}**\n"
            yield from _by_note(chosen)


def _by_note(notes: Mapping[str, str]) -> Iterator[str]:
    """Names without a note in one paragraph, then one row for each note."""
    plain = [name for name, note in notes.items() if not note]
    if plain:
        yield _listed(plain) + "\n"
    grouped: dict[str, list[str]] = {}
    for name, note in notes.items():
        if note:
            grouped.setdefault(note, []).append(name)
    if grouped:
        yield "| | |\n|---|---|"
        yield "\n".join(f"| {_listed(names)} | {note} |" for note, names in grouped.items()) + "\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
