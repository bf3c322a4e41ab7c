"""Random programs of views and writes, as text: each statement is one that NumPy accepts where it stands.

`random_program(seed)` is a list of statements over `a` of shape (4, 3), `b` of shape (6,), `c` of shape (3, 4) and
whatever they name themselves. `snapshots` runs it, by NumPy or in a trace, and gives every live array after each one.
"""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Names = dict[str, Any]

PRELUDE = """
def scale_rows(m, by):
    for row in m:
        row *= by

def shifted(m, out):
    out[...] = m * 0.5
    return out

def halves(m):
    yield m[: len(m) // 2]
    yield m[len(m) // 2 :]
"""

LIMIT = 40  # elements of an array


def starting_arrays() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(8)
    a, b, c = (rng.normal(size=shape) for shape in ((4, 3), (6,), (3, 4)))
    return a, b, c


def run(statements: list[str], arguments: tuple[Any, ...]) -> Iterator[Names]:
    """The names after each statement."""
    names: Names = {"np": np}
    exec(PRELUDE, names)
    names.update(zip("abc", arguments, strict=True))
    for statement in statements:
        exec(statement, names)
        yield names


def live(names: Names) -> list[Any]:
    """Arrays and numbers that a program has made, in order of their names."""
    return [names[n] for n in sorted(names) if re.fullmatch(r"[abcv]\d*", n)]


def snapshots(statements: list[str], arguments: tuple[Any, ...]) -> list[Any]:
    """Copies of all live arrays after each statement."""
    return [x.copy() for names in run(statements, arguments) for x in live(names)]


def random_program(seed: int, length: int) -> list[str]:
    """Statements, each tried on NumPy; one that NumPy refuses is replaced by another."""
    maker = Maker(random.Random(seed))
    statements: list[str] = []
    while len(statements) < length:
        *_, maker.names = run([*statements, "pass"], starting_arrays())
        try:
            statement = maker.statement(len(statements))
        except (IndexError, ValueError, TypeError):  # a subscript that does not fit
            continue
        if is_accepted([*statements, statement]):
            statements.append(statement)
    return statements


def is_accepted(statements: list[str]) -> bool:
    """Whether NumPy runs them, to moderate numbers in arrays of moderate size."""
    try:
        with np.errstate(all="ignore"):
            *_, names = run(statements, starting_arrays())
    except (ValueError, IndexError, TypeError, AttributeError, NameError, RuntimeError):
        return False
    found = live(names)
    return len(found) <= 8 and all(
        isinstance(x, np.ndarray | np.number) and x.size <= LIMIT and bool(np.all(np.abs(x) < 50)) for x in found
    )


def shows_an_element_twice(x: Array) -> bool:
    """Whether elements of `x` share memory."""
    places = np.zeros(x.shape, int)
    for axis, (n, step) in enumerate(zip(x.shape, x.strides, strict=True)):
        places = places + (np.arange(n) * step).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    return len(np.unique(places)) < x.size


class Maker:
    """Writes statements that fit the arrays there are."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names: Names = {}

    # ------------------------------------------------------------------ choices

    def pick(self, *items: str) -> str:
        return self.chance.choice(items)

    def whole(self, low: int, high: int) -> int:
        return self.chance.randint(low, max(low, high))

    def name(self, fits: Callable[[Any], bool] = lambda x: True) -> str:
        """An array that fits, later ones more often."""
        found = [n for n in self.names if re.fullmatch(r"[abcv]\d*", n) and isinstance(self.names[n], np.ndarray)]
        found = [n for n in found if fits(self.names[n])] or ["a"]
        return max(self.chance.choice(found), self.chance.choice(found))

    def writable(self) -> str:
        """An array that may be written to. A view that shows an element twice may not, in a trace."""
        return self.name(lambda x: bool(x.flags.writeable) and not shows_an_element_twice(x))

    def shape(self, text: str) -> tuple[int, ...]:
        value = eval(text, dict(self.names))
        return np.shape(value)

    # ------------------------------------------------------------------ subscripts

    def slice(self, n: int) -> str:
        bounds = [self.pick("", "", str(self.whole(-n - 1, n + 1))) for _ in range(2)]
        return ":".join([*bounds, self.pick("", "", "1", "2", "-1", "-2")])

    def integers(self, n: int) -> str:
        """A list of indices, repeated ones among them."""
        return repr([self.whole(-n, n - 1) for _ in range(self.whole(1, 3))])

    def basic(self, shape: tuple[int, ...]) -> str:
        items = [self.pick(self.slice(n), self.slice(n), str(self.whole(-n, n - 1))) if n else ":" for n in shape]
        items = items[: self.whole(0, len(items))]
        items.insert(self.whole(0, len(items)), self.pick("None", "...", ":0:-1", "..."))
        return ", ".join(items[: self.whole(1, len(items))])

    def advanced(self, text: str) -> str:
        shape = self.shape(text)
        if not shape or 0 in shape:
            return "..."
        kinds = [self.integers(n) if self.chance.random() < 0.5 else self.slice(n) for n in shape]
        mask = repr([bool(self.whole(0, 1)) for _ in range(shape[0])])
        return self.pick(
            self.integers(shape[0]),
            ", ".join(kinds),
            "None, " + ", ".join(kinds),
            f"np.array({[[self.whole(0, shape[0] - 1)] for _ in range(2)]})",
            f"np.array({mask})",
            f"{mask}, ..., {self.slice(shape[-1])}" if len(shape) > 1 else mask,
            f"np.ix_({', '.join(self.integers(n) for n in shape)})",
            f"{text} > 0",
            f"({text} > 0.2) & ({text} < 1)",
            f"({text} > 0).any(axis=-1)" if len(shape) > 1 else f"{text} < 0",
            f"np.argsort({text}, axis=0, kind='stable').reshape(-1)[:1]",
            f"np.nonzero({text} > 0)",
        )

    def key(self, text: str) -> str:
        return self.basic(self.shape(text)) if self.chance.random() < 0.6 else self.advanced(text)

    # ------------------------------------------------------------------ values

    def operand(self, shape: tuple[int, ...]) -> str:
        """Something that broadcasts to `shape`, often an overlapping part of an array that is being written."""
        fitting = [n for n in self.names if re.fullmatch(r"[abcv]\d*", n) and _fits(np.shape(self.names[n]), shape)]
        choices = ["2.0", "0.5", "b[1]", "a[0, 0]", "np.float64(1.5)"]
        choices += fitting * 3 + [f"{n}[::-1]" for n in fitting if np.ndim(self.names[n])]
        choices += [f"{n}[..., :{shape[-1]}]" for n in self.names if shape and _covers(self.names[n], shape, n)]
        if shape:
            choices += [f"b[:{shape[-1]}]", f"np.linspace(0.1, 1, {shape[-1]})", f"np.full({shape}, b[0])"]
        return self.chance.choice(choices)

    def expression(self, shape: tuple[int, ...]) -> str:
        x, y = self.operand(shape), self.operand(shape)
        if len(shape) == 1:  # NumPy copies overlapping lines of different steps in the order of memory
            return self.pick(f"({x}) * 1.0", f"np.sin({x})", f"{x} * {y}", f"{x} - 0.3")
        return self.pick(x, x, f"np.sin({x})", f"{x} * {y}", f"{x} + 0.3", f"np.where({x} > {y}, {x}, 0.5)", f"-{x}")

    # ------------------------------------------------------------------ statements

    def statement(self, number: int) -> str:
        kinds = (self.view, self.view, self.write, self.write, self.augmented, self.into, self.function, self.control)
        return self.chance.choice(kinds)(number)

    def view(self, number: int) -> str:
        v = self.name()
        shape = self.shape(v)
        axes = list(range(len(shape)))
        self.chance.shuffle(axes)
        n = self.whole(0, max(len(shape) - 1, 0))
        return f"v{number} = " + self.pick(
            f"{v}[{self.basic(shape)}]",
            f"{v}[{self.basic(shape)}]",
            f"{v}[{self.basic(shape)}][{self.slice(3)}]",
            f"{v}[{self.advanced(v)}]",
            f"{v}.T",
            f"{v}.transpose({axes})",
            f"{v}.swapaxes(0, -1)",
            f"np.moveaxis({v}, {n}, 0)",
            f"{v}.reshape(-1)",
            f"{v}.reshape({self.factors(shape)})",
            f"{v}.reshape({self.factors(shape)}, order='{self.pick('C', 'F', 'A')}')",
            f"{v}.ravel({self.pick('', chr(39) + 'F' + chr(39), chr(39) + 'K' + chr(39))})",
            f"np.ravel({v}.T)",
            f"np.squeeze({v})",
            f"np.expand_dims({v}, {n})",
            f"np.flip({v}, {n})",
            f"np.rot90(np.atleast_2d({v}))",
            f"np.diagonal(np.atleast_2d({v}))",
            f"np.lib.stride_tricks.sliding_window_view({v}, 2, axis=-1)",
            f"np.lib.stride_tricks.as_strided({v}, {v}.shape[:1], {v}.strides[:1])",
            f"np.array_split({v}, 2, axis={n})[{self.whole(0, 1)}]",
            f"np.asarray({v})",
            f"np.ascontiguousarray({v})",
            f"np.asfortranarray({v})",
            f"np.array({v}, copy=None)",
            f"np.array({v}, order='{self.pick('C', 'F', 'K')}')",
            f"np.require({v}, requirements=['C'])",
            f"np.broadcast_to({v}, (2, *{v}.shape))",
            f"np.broadcast_arrays({v}, 1.0)[0]",
            f"np.atleast_2d({v})",
            f"np.atleast_3d({v})",
            f"{v}.real",
            f"{v}.view()",
            f"{v}.copy()",
            f"{v}.flatten('F')",
            f"{v}.astype(float, copy=False)",
            f"np.empty_like({v}); v{number}[...] = {self.expression(shape)}",
            f"np.zeros({shape}, order='F'); v{number}.T[...] = {v}.T",
            f"{v} * 2.0",
            f"np.unstack({v})[0]",
            f"list({v})[-1]",
            f"{v}.flat[{self.slice(4)}]",
            f"np.stack([{v}, {v}], axis={n})",
            f"np.full_like({v}, b[2])",
            f"np.nan_to_num({v})",
            f"np.triu(np.atleast_2d({v}))",
            f"next(iter({v}))",
            f"np.real({v} + 1j * {v})",
            f"np.rollaxis({v}, {n})",
        )

    def factors(self, shape: tuple[int, ...]) -> str:
        size = int(np.prod(shape))
        found = [(k, size // k) for k in range(1, size + 1) if size % k == 0] or [(0,)]
        return repr(self.chance.choice([*found, (-1, 1), (1, -1, 1), (2, -1)]))

    def write(self, number: int) -> str:
        v = self.writable()
        key = self.key(v)
        return f"{v}[{key}] = {self.expression(self.shape(f'{v}[{key}]'))}"

    def augmented(self, number: int) -> str:
        v = self.writable()
        sign = self.pick("+=", "-=", "*=", "/=", "+=", "%=")
        if self.chance.random() < 0.3:
            return f"{v} {sign} {self.expression(self.shape(v))}"
        key = self.key(v)
        value = self.expression(self.shape(f"{v}[{key}]"))
        return f"{v}[{key}] {sign} {value}" + (" + 3.0" if sign in ("/=", "%=") else "")

    def into(self, number: int) -> str:
        """A result written into an array that is there."""
        v = self.writable()
        shape = self.shape(v)
        x, y, n = self.operand(shape), self.operand(shape), self.whole(0, max(len(shape) - 1, 0))
        return self.pick(
            f"np.add({x}, {y}, out={v})",
            f"np.multiply({x}, {y}, {v})",
            f"np.multiply({x}, {y}, out={v}, where={v} > 0)",
            f"np.maximum({x}, {y}, out=({v},))",
            f"np.sin({v}, out={v}, where=np.abs({v}) < 1)",
            f"np.cumsum({v}, axis={n}, out={v})",
            f"{v}.cumsum(axis={n}, out={v})",
            f"np.sum(np.atleast_2d({v}), axis=0, out={v})",
            f"np.max([{v}, {v} * 2.0], axis=0, out={v})",
            f"np.add.reduce([{v}, {v}], axis=0, out={v})",
            f"np.multiply.accumulate({v}, axis={n}, out={v})",
            f"np.clip({v}, -0.5, 0.5, out={v})",
            f"{v}.clip(-0.4, None, out={v})",
            f"np.take({v}, [0, 0], axis={n}, out={v}[:2])",
            f"np.concatenate([{v}, {v}][:1], out={v})",
            f"np.stack([{v}], out={v}[None])",
            f"np.matmul(c, a, out={v})",
            f"np.dot({v}, 2.0, out={v})",
            f"np.einsum('ij,ij->ij', {v}, {v}, out={v})",
            f"np.mean([{v}, {v}[::-1]], axis=0, out={v})",
            f"np.outer({v}[:, 0], {v}[0], out={v})",
            f"np.negative({v}[::-1], out={v})",
            f"np.add({v}[1:], {v}[:-1], out={v}[1:])",
            f"np.where({v} > 0, {v}, 0.1, ).copy()",
            f"np.choose(({v} > 0).astype(int), [{v}, -{v}], out={v})",
            f"np.divmod({v}, 0.7, out=({v}, np.empty_like({v})))",
            f"np.compress([True], {v}, axis=0, out={v}[:1])",
            f"np.fft.fft({v}).real.copy()",
            f"np.nan_to_num({v}, copy=False)",
            f"np.round({v}, 1, out={v})",
        )

    def function(self, number: int) -> str:
        """A function or method that writes to its argument."""
        v = self.writable()
        shape, size = self.shape(v), max(int(np.prod(self.shape(v))), 1)
        n = self.whole(0, max(len(shape) - 1, 0))
        x = self.operand(shape)
        places = self.integers(size)
        rows, ufunc = self.integers(shape[0] if shape else 1), self.pick("add", "subtract", "multiply", "maximum")
        spread, mode = [self.whole(-2 * size, 2 * size) for _ in range(3)], self.pick("wrap", "clip")
        return self.pick(
            f"np.{ufunc}.at({v}, {rows}, 0.5)",
            f"np.add.at({v}, ({', '.join(f'[{self.whole(0, k - 1)}] * 2' for k in shape)},), {self.operand((1,))})",
            f"np.add.at({v}, np.s_[{self.basic(shape)}], {self.operand(())})",
            f"np.negative.at({v}, [0, 0])",
            f"np.copyto({v}, {x})",
            f"np.copyto({v}, {x}, where={v} > 0)",
            f"np.copyto({v}.T, {v}.copy().T)",
            f"np.put({v}, {places}, [1.0, b[1]])",
            f"np.put({v}, {spread}, b, mode='{mode}')",
            f"{v}.put({places}, {v})",
            f"np.place({v}, {v} > 0, [0.5, b[1], 0.25])",
            f"np.putmask({v}, {v} < 0, {x})",
            f"np.putmask({v}, {v} < 0, b)",
            f"{v}.fill(b[2])",
            f"{v}.fill(0.25)",
            f"{v}.sort(axis={n})",
            f"{v}.sort()",
            f"{v}[::-1].sort()",
            f"v{number} = {v}.copy(); v{number}.resize({self.pick('2', '3', '(2, 2)', '(5, 1)')}, refcheck=False)",
            f"np.put_along_axis({v}, np.argmax({v}, axis={n}, keepdims=True), 0.5, axis={n})",
            f"np.put_along_axis({v}, np.argsort({v}, axis={n}, kind='stable'), {x}, axis={n})",
            f"np.fill_diagonal({v}, {self.pick('0.5', 'b', 'b[0]')}, wrap={self.pick('True', 'False')})",
            f"{v}.flat[{self.slice(size)}] = {self.pick('b.copy()', '0.5', 'b[:2].copy()', v + '.copy()')}",
            f"{v}.flat[{places}] = {self.pick('b.copy()', '0.5')}",
            f"{v}.flat[{self.whole(0, size - 1)}] += b[0]",
            f"{v}.flat = {self.pick('b.copy()', '0.5', v + '.T.copy()')}",
            f"{v}.real[...] = {x}",
            f"{v}.real = {x}",
            f"{v}.T[...] = {v}",
            f"{v}.T[0] += {v}[:, 0]",
            f"{v}.reshape(-1)[{self.slice(size)}] *= 0.5",
            f"{v}.ravel()[0] = 0.75",
            f"np.ravel({v}, 'F')[0] = 0.75",
            f"{v}.shape = {self.factors(shape)}",
            f"{v}.partition({self.whole(0, 1)}, axis={n})" if shape and shape[-1:] <= (2,) else f"{v}.sort({n})",
            f"np.einsum('ii->i', {v})[...] = 0.1",
            f"np.lib.stride_tricks.sliding_window_view({v}, 1, axis=-1, writeable=True)[..., 0] = 0.3",
            f"np.asarray({v})[...] *= 0.5",
            f"np.asarray({v}, order='F')[...] *= 0.5",
            f"np.diag({v}.copy())",
        )

    def control(self, number: int) -> str:
        """Python around it: helpers, containers, loops, unpacking."""
        v, w = self.writable(), self.name()
        shape = self.shape(v)
        x = self.operand(shape)
        return self.pick(
            f"scale_rows({v}, 0.5)",
            f"scale_rows({v}[{self.basic(shape)}], b[0])",
            f"v{number} = shifted({w}, {v})",
            f"for part in halves({v}): part += 0.25",
            f"pair = [{v}, {w}]\npair[0][...] += {x}",
            f"table = {{'k': {v}}}\ntable['k'][0] = table['k'][-1] * 2",
            f"for k, row in enumerate({v}): row[...] = row * k",
            f"for p, q in zip({v}, {w}): p += q",
            f"first, *rest = {v}\nrest[0][...] = first",
            f"{v}[0], {v}[1] = {v}[1].copy(), {v}[0].copy()",
            f"{v}[0], {v}[1] = {v}[1], {v}[0]",
            f"{v}[[0, 1]] = {v}[[1, 0]]",
            f"{v}[1:] = {v}[:-1]",
            f"{v}[:-1] = {v}[1:]",
            f"{v}[1:] += {v}[:-1]",
            f"{v}[::-1] = {v}",
            f"{v}[...] = {v}[::-1]",
            f"alias = {v}; alias *= 0.5",
            f"alias = {v}; alias = alias + 1.0",
            f"for i in range({v}.shape[0] - 1): {v}[i + 1] = 0.5 * {v}[i] + {v}[i + 1]",
            f"i = 0\nwhile i < len({v}) and np.sum({v}[i]) < 1: {v}[i] += 0.5; i += 1",
            f"for index in np.ndindex({v}.shape): {v}[index] = {v}[index] * 0.9",
            f"for index, value in np.ndenumerate({v}): {v}[index] = value + 0.1",
            f"(lambda m: m.__setitem__(0, 0.25))({v})",
            f"[row.fill(0.5) for row in {v}[1:]]",
            f"{v} = {v}[...]; {v} += {x}",
            f"s = {v}[..., 0].sum(); s += 1; {v}[0] = s",
            f"{v}[0] = {v}[-1] = {self.operand(shape[1:])}",
            f"del {w}" if len(w) > 1 else "pass",
        )


def _fits(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(own, shape) == shape
    except ValueError:
        return False


def _covers(value: Any, shape: tuple[int, ...], name: str) -> bool:
    own = np.shape(value)
    return (
        bool(re.fullmatch(r"[abcv]\d*", name)) and len(own) > 0 and own[-1] >= shape[-1] and _fits(own[:-1], shape[:-1])
    )
