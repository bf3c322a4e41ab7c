"""Random draws inside a trace would be drawn once and be the same in every call: each is refused where it stands.

Generators with a fixed seed give the same numbers each time anyway, and are left alone. What a generator without a seed
begins with comes from the system: that is refused too, unless a library draws it for its own ends.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from pullback.errors import UnsupportedError
from pullback.ir.graph import Location
from pullback.tracer import patching
from pullback.tracer.location import INSTALLED, STANDARD, describe, is_library_file
from pullback.tracer.patching import Finder, Row
from pullback.tracer.trace import active

MESSAGE = (
    "{name} inside a traced function would be drawn once and be the same in every call; draw outside and pass the "
    "numbers as an argument, or use a generator made inside with a fixed seed (np.random.default_rng(0))"
)
_WRAPPERS = (__file__, patching.__file__)


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise active().error(UnsupportedError, MESSAGE.format(name=name))

    return refuse


def _seeded(original: Any, name: str, position: int = 0) -> Callable[..., Any]:
    """Refused without a seed."""

    def make(*args: Any, **kwargs: Any) -> Any:
        seed = args[position] if len(args) > position else next(iter(kwargs.values()), None)
        return original(*args, **kwargs) if seed is not None else _unless_for_a_library(original, name)(*args, **kwargs)

    return make


def _unless_for_a_library(original: Any, name: str) -> Callable[..., Any]:
    """Refused where the user's code, perhaps through the standard library, asks for it."""

    def draw(*args: Any, **kwargs: Any) -> Any:
        frame = _asking(sys._getframe(1))
        if frame is None or is_library_file(frame.f_code.co_filename):
            return original(*args, **kwargs)
        place = Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        raise UnsupportedError(MESSAGE.format(name=name) + describe(place))

    return draw


def _asking(frame: FrameType | None) -> FrameType | None:
    """The nearest caller outside the standard library and the wrappers of this module."""
    while frame is not None:
        file = frame.f_code.co_filename
        is_standard = file.startswith(("<frozen", STANDARD)) and not any(part in file for part in INSTALLED)
        if not is_standard and file not in _WRAPPERS:
            return frame
        frame = frame.f_back
    return None


def _legacy_bits(mersenne: Any) -> Callable[[], Any]:
    """What `RandomState` makes its numbers with: it is made first, from the system's numbers, and seeded then."""

    class Bits(mersenne):  # type: ignore[misc]  # a class that is not there until numpy.random is
        def __init__(self) -> None:
            super().__init__(0)
            self.is_seeded = False

        def _legacy_seeding(self, seed: Any) -> None:
            super()._legacy_seeding(seed)
            self.is_seeded = True

        @property
        def capsule(self) -> Any:
            if not self.is_seeded:
                raise active().error(UnsupportedError, MESSAGE.format(name="np.random.RandomState() without a seed"))
            return super().capsule

    return Bits


def _of_numpy(module: Any) -> list[Row]:
    """Every function of `numpy.random` that draws from the global state, and the makers of generators."""
    state = module.mtrand._rand
    rows: list[Row] = []
    for name in sorted(vars(module)):
        original = getattr(module, name)
        if getattr(original, "__self__", None) is state and name not in ("get_state", "set_state", "seed"):
            rows.append((module, name, _refused(f"np.random.{name}")))
    rows.append((module, "default_rng", _seeded(module.default_rng, "np.random.default_rng() without a seed")))
    rows.append((module.mtrand, "_MT19937", _legacy_bits(module.mtrand._MT19937)))
    bits = sys.modules["numpy.random.bit_generator"]
    rows.append((bits, "randbits", _unless_for_a_library(bits.randbits, "a generator without a seed")))
    return rows


def _of_python(module: Any) -> list[Row]:
    """Functions of Python's `random` module, its generators without a seed, and what the system gives."""
    state = module._inst
    rows: list[Row] = []
    for name in sorted(vars(module)):
        if getattr(getattr(module, name), "__self__", None) is state and name not in ("getstate", "setstate", "seed"):
            rows.append((module, name, _unless_for_a_library(getattr(module, name), f"random.{name}")))
    rows.append((module.Random, "seed", _seeded(module.Random.seed, "a generator without a seed", 1)))
    rows.append((module, "_urandom", _unless_for_a_library(module._urandom, "a generator of the system")))
    return rows


def _of_system(module: Any) -> list[Row]:
    return [(module, "urandom", _unless_for_a_library(module.urandom, "os.urandom"))]


# NumPy loads its random module only when it is asked for; so do we
FINDERS: tuple[Finder, ...] = (("numpy.random", _of_numpy), ("random", _of_python), ("os", _of_system))
