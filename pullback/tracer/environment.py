"""What a function can see outside itself, and whether that is still what it was when the function was traced.

Numbers, lists, attributes and functions from outside are constants of the traced program, so a compiled function is
only right while they stay the same. Arrays are read anew at each call (as extra parameters) unless a number was taken
out of one; then their contents must stay the same too.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import CellType
from typing import Any

import numpy as np

from pullback.errors import PullbackError, UnsupportedError
from pullback.record import record
from pullback.tracer.location import describe
from pullback.tracer.outside import (
    MISSING,
    Attributes,
    Container,
    Content,
    Definition,
    Fact,
    Name,
    Referent,
    Variable,
    fingerprint,
)
from pullback.tracer.reach import Reach
from pullback.tracer.trace import Trace


@record(frozen=True)
class Environment:
    """What a function can see.

    namespaces : global namespaces of the function and of the functions it calls
    names, definitions, attributes, containers : outside names and what they hold, to be compared before a compiled
        program is used
    references : context variables and weak references, which are compared too
    arrays : the arrays among them, by label
    contents : arrays whose elements must be the same too
    generators : random generators among them
    """

    namespaces: tuple[dict[str, Any], ...] = ()
    names: tuple[Name, ...] = ()
    definitions: tuple[Definition, ...] = ()
    attributes: tuple[Attributes, ...] = ()
    containers: tuple[Container, ...] = ()
    references: tuple[Variable | Referent, ...] = ()
    arrays: tuple[tuple[str, np.ndarray[Any, Any]], ...] = ()
    contents: tuple[Content, ...] = ()
    generators: tuple[Any, ...] = ()

    @property
    def cells(self) -> list[CellType]:
        """The variables of closures that are read."""
        return [n.holder for n in self.names if isinstance(n.holder, CellType) and n.current() is not MISSING]

    @property
    def is_empty(self) -> bool:
        """Whether the program rests on nothing outside."""
        return not any(self._groups())

    def changed(self) -> str | None:
        """The first thing that is not as it was when the function was traced, or None: then the program is right."""
        return next((fact.label for group in self._groups() for fact in group if not fact.is_same()), None)

    def undo(self) -> None:
        """Put back what a trace has changed that did not come to an end: names, attributes, lists, dicts and sets."""
        for group in (self.names, self.attributes, self.containers):
            for fact in group:
                if not fact.is_same():
                    fact.undo()

    def _groups(self) -> tuple[Sequence[Fact], ...]:
        return self.names, self.definitions, self.attributes, self.containers, self.references, self.contents

    def after_trace(self, whole: set[int], fixed: set[int], watch: bool) -> "Environment":
        """What a finished trace rests on.

        whole : identities of the arrays that became parameters, so that changes of theirs are seen anyway; the others
            were looked at in ways that leave no mark, and must keep their elements
        fixed : identities of the arrays whose elements shaped the program; with `watch`, every array

        What the function itself changed is left out: a side effect happens when it is traced, not at each call.
        """
        kept = [(label, a) for label, a in self.arrays if watch or id(a) in fixed or id(a) not in whole]
        contents = [Content(label, a, a.copy()) for label, a in kept]
        return replace(
            self,
            names=tuple([n for n in self.names if n.is_same()]),
            definitions=tuple([d for d in self.definitions if d.is_same()]),
            attributes=tuple([a.settled() for a in self.attributes]),
            containers=tuple([c for c in self.containers if c.is_same()]),
            references=tuple([r for r in self.references if r.is_same()]),
            contents=tuple(contents),
        )

    @contextmanager
    def no_randomness(self, state: Trace) -> Iterator[None]:
        """A random draw while tracing would be the same number in every call: refuse it afterwards."""
        before = self._random_states()
        yield
        after = dict(self._random_states())
        for name, old in before:
            if not _same_state(old, after[name]):
                raise UnsupportedError(
                    f"{state.name!r} draws random numbers from {name} while it is traced; they would be the same in "
                    "every call. Draw outside and pass the numbers as an argument, or make a generator with a fixed "
                    "seed inside"
                )

    @contextmanager
    def no_writes(self, state: Trace) -> Iterator[None]:
        """A write to an array from outside would happen while tracing and in no call: refuse it afterwards.

        Traced values cannot be written there at all; this is about plain numbers, as in a workspace that is cleared.
        """
        before = [(label, array, fingerprint(array)) for label, array in self.arrays]
        try:
            yield
        except PullbackError:
            _refuse_writes(state, before)  # it may be traced once more, and would find them done
            raise
        _refuse_writes(state, before)

    def _random_states(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        if "random" in sys.modules:
            found.append(("Python's random module", sys.modules["random"].getstate()))
        if "numpy.random" in sys.modules:
            found.append(("np.random", np.random.mtrand._rand._bit_generator.state))
        for number, generator in enumerate(self.generators):
            label = f"a {type(generator).__name__} from outside" + " (another)" * number
            found.append((label, _state_of(generator)))
        return found


def _refuse_writes(state: Trace, before: Sequence[tuple[str, np.ndarray[Any, Any], int]]) -> None:
    for label, array, old in before:
        if fingerprint(array) != old:
            raise UnsupportedError(
                f"{state.name!r} writes to {label} while it is traced; a compiled function would not "
                "write to it in each call. Make the array inside the function (np.zeros, np.copy), or return the "
                f"new numbers and write them outside{describe(state.place)}"
            )


def _state_of(generator: Any) -> Any:
    """Of a generator of NumPy or of Python."""
    if hasattr(generator, "getstate"):
        return generator.getstate()
    bits = getattr(generator, "bit_generator", None) or generator._bit_generator
    return bits.state


def _same_state(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_same_state(v, y[k]) for k, v in x.items())
    if isinstance(x, np.ndarray):
        return bool(np.array_equal(x, y))
    return bool(x == y)


def environment_of(fn: Any, others: Iterable[Any] = ()) -> Environment:
    """Everything `fn` can reach by name, without running it.

    others : arguments that are handed on as they are, such as `self`
    """
    reach = Reach()
    reach.visit("the function", fn)
    for other in others:
        reach.visit("an argument", other)
    reach.run()
    return Environment(
        namespaces=tuple(reach.namespaces.values()),
        names=tuple(reach.names.values()),
        definitions=tuple(reach.definitions),
        attributes=tuple(reach.attributes()),
        containers=tuple(reach.containers),
        references=tuple(reach.references),
        arrays=tuple(reach.arrays),
        generators=tuple(reach.generators),
    )
