"""Reading textual IR: the exact inverse of `ir.text`, and errors that name the line."""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from pullback.errors import ParseError, PullbackError
from pullback.ir.builder import Builder
from pullback.ir.graph import Attrs, Function, Literal, Location, Module, Region, Value
from pullback.ir.index import Affine, Bound
from pullback.ir.kernel import STORE_KINDS, Load, Store
from pullback.ir.opdef import OpDef
from pullback.ir.ops import OPS
from pullback.ir.types import DTYPES_BY_NAME, TensorType, parse_type

_TOKEN = re.compile(
    r"""(?P<space>[ \t\n]+)
      | (?P<comment>//[^\n]*)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<type>(?:bool|[iufc]\d+)\[[\d,\s]*\])
      | (?P<value>%\w+)
      | (?P<func>@[\w.$<>-]+)
      | (?P<number>-?(?:inf|nan)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<arrow>->)
      | (?P<le><=)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<punct>[-+*@(){}\[\],:=<])""",
    re.VERBOSE,
)
_LOCATION = re.compile(r"(?:(?P<note>[^:]*?), )?(?P<file>.+):(?P<line>\d+)(?: (?P<function>.+))?$")
_HEADER = re.compile(r"//\s*stage:\s*(?P<stage>\w+)(?:\s+from:\s*(?P<source>.+))?$")

Token = tuple[str, str, int]  # kind, text, position


def parse_function(text: str) -> Function:
    """The one function in `text`."""
    functions = list(parse_module(text))
    if len(functions) != 1:
        raise ParseError(f"expected one function, found {len(functions)}")
    return functions[0]


def parse_module(text: str) -> Module:
    parser = _Parser(text)
    functions: dict[str, Function] = {}
    while not parser.at_end():
        function = parser.function()
        functions[function.name] = function
    return Module(functions)


def parse_location(text: str) -> Location | None:
    match = _LOCATION.match(text.strip())
    if match is None:
        return None
    return Location(match["file"], int(match["line"]), match["function"] or "", match["note"] or "")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.comments: dict[int, str] = {}  # number of the token a comment follows -> its text
        self.header: dict[int, str] = {}
        self._tokenise()
        self.at = 0

    def _tokenise(self) -> None:
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                self.fail(f"cannot read {self.text[position : position + 20]!r}", position)
            kind = match.lastgroup or ""
            if kind == "comment":
                self._comment(match[0], position)
            elif kind != "space":
                self.tokens.append((kind, match[0], position))
            position = match.end()
        self.tokens.append(("end", "", len(self.text)))

    def _comment(self, text: str, position: int) -> None:
        """Keep a comment that stands behind a token on its line, and the header; others are for the reader alone."""
        before = self.tokens[-1] if self.tokens else None
        if before is None or "\n" not in self.text[before[2] : position]:
            self.comments[len(self.tokens) - 1] = text
        if _HEADER.match(text):
            self.header[len(self.tokens)] = text

    # -------------------------------------------------------------- tokens

    def fail(self, what: str, position: int | None = None) -> NoReturn:
        if position is None:
            position = self.tokens[self.at][2]
        number = self.text.count("\n", 0, position) + 1
        line = self.text.splitlines()[number - 1] if self.text.strip() else ""
        raise ParseError(f"line {number}: {what}\n  {line.strip()}")

    def at_end(self) -> bool:
        return self.tokens[self.at][0] == "end"

    def peek(self, text: str) -> bool:
        return self.tokens[self.at][1] == text

    def accept(self, text: str) -> bool:
        if self.peek(text) and self.tokens[self.at][0] != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.tokens[self.at][1]!r}")

    def take(self, kind: str, what: str) -> str:
        found, text, _ = self.tokens[self.at]
        if found != kind:
            self.fail(f"expected {what}, found {text!r}")
        self.at += 1
        return text

    # -------------------------------------------------------------- structure

    def function(self) -> Function:
        stage, source = "traced", None
        header = _HEADER.match(self.header.get(self.at, "").strip())
        if header:
            stage, source = header["stage"], parse_location(header["source"] or "")
        self.expect("func")
        name = self.take("func", "a function name such as @f")[1:]
        env: dict[str, Value] = {}
        builder = Builder()
        self.params(builder, env)
        self.expect("->")
        declared = self.type_list()
        self.expect("{")
        results = self.block(builder, env, "return")
        if tuple(r.type for r in results) != declared:
            self.fail(
                f"@{name} returns {', '.join(str(r.type) for r in results)}, declared {', '.join(map(str, declared))}"
            )
        return builder.function(name, results, stage, source)

    def params(self, builder: Builder, env: dict[str, Value]) -> None:
        self.expect("(")
        while not self.accept(")"):
            name = self.take("value", "a parameter such as %x")
            self.expect(":")
            env[name] = builder.param(self.type(), "" if re.fullmatch(rf"%a{len(builder.params)}", name) else name[1:])
            if not self.peek(")"):
                self.expect(",")

    def type(self) -> TensorType:
        return parse_type(self.take("type", "a type such as f64[3]"))

    def type_list(self) -> tuple[TensorType, ...]:
        self.expect("(")
        types = []
        while not self.accept(")"):
            types.append(self.type())
            if not self.peek(")"):
                self.expect(",")
        return tuple(types)

    def block(self, builder: Builder, env: dict[str, Value], last_word: str) -> list[Value]:
        while not self.accept(last_word):
            self.op(builder, env)
        results = self.values(env)
        self.expect("}")
        return results

    def values(self, env: Mapping[str, Value]) -> list[Value]:
        found = []
        while self.tokens[self.at][0] == "value":
            name = self.tokens[self.at][1]
            if name not in env:
                self.fail(f"{name} is not defined here")
            found.append(env[name])
            self.at += 1
            if not self.accept(","):
                break
        return found

    def op(self, builder: Builder, env: dict[str, Value]) -> None:
        names = []
        while self.tokens[self.at][0] == "value":
            names.append(self.take("value", "a result"))
            if not self.accept(","):
                self.expect("=")
        start = self.at
        name = self.take("word", "an op")
        record = OPS.get(name)
        if record is None:
            self.at = start
            self.fail(f"no op is named {name!r}")
        operands = self.values(env)
        raw = self.attrs(record)
        types = self.result_types(len(names))
        loc = parse_location(self.comments.get(self.at - 1, "").lstrip("/"))
        regions: tuple[Region, ...] = ()
        if self.accept("["):
            loc = parse_location(self.comments.get(self.at - 1, "").lstrip("/"))
            regions = self.regions(record)
        attrs = self.resolve(record, raw, types)
        try:
            op = builder.add(record, operands, attrs, regions, loc)
        except PullbackError as error:
            self.at = start
            self.fail(str(error))
        if tuple(r.type for r in op.results) != types:
            self.at = start
            self.fail(
                f"{name} gives {', '.join(str(r.type) for r in op.results)}, the text says {', '.join(map(str, types))}"
            )
        env.update(zip(names, op.results, strict=True))

    def result_types(self, count: int) -> tuple[TensorType, ...]:
        if not count:
            return ()
        self.expect(":")
        return self.type_list() if self.peek("(") else (self.type(),)

    def regions(self, record: OpDef) -> tuple[Region, ...]:
        found = []
        for name in record.regions:
            self.expect(name)
            builder, env = Builder(), dict[str, Value]()
            self.params(builder, env)
            self.expect("{")
            found.append(builder.region(self.block(builder, env, "yield")))
        self.expect("]")
        return tuple(found)

    # -------------------------------------------------------------- attributes

    def attrs(self, record: OpDef) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if record.attrs and self.accept("{"):
            while not self.accept("}"):
                key = self.take("word", "an attribute")
                if key not in record.attrs:
                    self.fail(f"{record.name} has no attribute {key!r}; it has {', '.join(record.attrs)}")
                self.expect("=")
                found[key] = self.literal() if record.attrs[key] == "literal" else self.attr()
                if not self.peek("}"):
                    self.expect(",")
        missing = set(record.attrs) - set(found)
        if missing:
            self.fail(f"{record.name} needs the attributes {', '.join(sorted(missing))}")
        return found

    def resolve(self, record: OpDef, raw: dict[str, Any], types: tuple[TensorType, ...]) -> Attrs:
        """Literals get dtype and shape from the op's result type."""
        for key, kind in record.attrs.items():
            if kind == "literal":
                raw[key] = self.array(raw[key], types[0])
        return Attrs(raw)

    def array(self, raw: Any, type: TensorType) -> Literal:
        try:
            if isinstance(raw, bytes):
                return Literal(np.frombuffer(raw, type.dtype).reshape(type.shape))
            array = np.array(raw).reshape(type.shape)
            return Literal(array.astype(type.dtype))
        except (ValueError, OverflowError) as error:
            self.fail(f"the constant does not fit {type}: {error}")

    def literal(self) -> Any:
        if self.accept("hex"):
            return bytes.fromhex(self.take("string", "hexadecimal digits")[1:-1])
        if self.accept("["):
            items = []
            while not self.accept("]"):
                items.append(self.literal())
                if not self.peek("]"):
                    self.expect(",")
            return items
        if self.accept("("):
            real = self.number()
            self.expect(",")
            imag = self.number()
            self.expect(")")
            return complex(float(real), float(imag))
        return self.number()

    def number(self) -> bool | int | float:
        if self.accept("true"):
            return True
        if self.accept("false"):
            return False
        text = self.take("number", "a number")
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)

    def attr(self) -> Any:
        kind, text, _ = self.tokens[self.at]
        if kind == "string":
            self.at += 1
            return text[1:-1].replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
        if kind == "type":
            return self.type()
        if kind == "word" and text in DTYPES_BY_NAME:
            self.at += 1
            return DTYPES_BY_NAME[text]
        if self.accept("["):
            items = []
            while not self.accept("]"):
                items.append(self.attr())
                if not self.peek("]"):
                    self.expect(",")
            return tuple(items)
        if self.accept("("):
            return self.parenthesised()
        return self.number()

    def parenthesised(self) -> Load | Store | Bound:
        """`(%0 @ i0+1 if 0<=i0<3)`, `(sum f64[] @ 0)` or `(0<=i0<3)`."""
        kind, text, _ = self.tokens[self.at]
        if kind == "value":
            operand = int(self.take("value", "an operand number")[1:])
            self.expect("@")
            at, bounds = self.affine(), []
            if self.accept("if"):
                bounds.append(self.bound())
                while self.accept(","):
                    bounds.append(self.bound())
            found: Load | Store | Bound = Load(operand, at, tuple(bounds))
        elif text in STORE_KINDS:
            self.at += 1
            type = self.type()
            self.expect("@")
            found = Store(text, type, self.affine())
        else:
            found = self.bound()
        self.expect(")")
        return found

    def bound(self) -> Bound:
        low = int(self.take("number", "a lower bound"))
        self.expect("<=")
        index = self.affine()
        self.expect("<")
        return Bound(index, low, int(self.take("number", "an upper bound")))

    def affine(self) -> Affine:
        """`2*i0-i1+3`."""
        total, sign = Affine(), 1
        while True:
            sign = -1 if self.accept("-") else 1 if self.accept("+") else sign
            kind, text, _ = self.tokens[self.at]
            self.at += 1
            if kind == "number":
                number = sign * int(text)
                if self.accept("*"):
                    axis = int(self.take("word", "a loop axis such as i0")[1:])
                    total = total.plus(Affine(0, ((axis, number),)))
                else:
                    total = total.shift(number)
            elif kind == "word" and re.fullmatch(r"i\d+", text):
                total = total.plus(Affine(0, ((int(text[1:]), sign),)))
            else:
                self.at -= 1
                self.fail(f"expected an index expression, found {text!r}")
            sign = 1
            following = self.tokens[self.at]
            if following[1] not in ("+", "-") and not (following[0] == "number" and following[1].startswith("-")):
                return total
