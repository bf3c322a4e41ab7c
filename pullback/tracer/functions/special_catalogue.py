"""The classification of scipy.special's ufuncs as text, for the documentation."""

from pullback.tracer.functions import special, special_classes
from pullback.tracer.functions.catalogue import sections
from pullback.tracer.functions.classes import Class

OTHER_NAMES = {"jn": "jv"}  # of ufuncs that carry another name themselves


def classes() -> dict[str, Class]:
    """The class of every ufunc that the tables know, by its public name."""
    names = {*special.RULES, *OTHER_NAMES}
    found = {}
    for name in sorted(n for n in names if not n.startswith("_")):
        known = special_classes.classify(name, True)
        assert known is not None
        found[name] = known
    return found


def page() -> str:
    """All tables, in Markdown."""
    return "\n".join(sections("Ufuncs", classes()))
