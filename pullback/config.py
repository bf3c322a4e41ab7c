"""Options, and the one parser of the ``PULLBACK`` variable.

``PULLBACK=verify=each,dump=cse,html=out.html`` sets options of one process; `Options` carries them, frozen, from the
front end down to whoever asks. Each option is one field below: its reader, its default and its line of help.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields, replace
from typing import Any, Self

from pullback.errors import OptionError
from pullback.record import record

VARIABLE = "PULLBACK"

_TRUE = frozenset({"", "1", "on", "yes", "true"})
_FALSE = frozenset({"0", "off", "no", "false"})


# ------------------------------------------------------------------ readers: text of one value -> value


class _ExpectedError(Exception):
    """What a reader expected; `Options.parse` adds the key and the text."""


def _flag(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise _ExpectedError("on or off")


def _count(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise _ExpectedError(f"a whole number, at least {least}")
        return int(text)

    return read


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise _ExpectedError(f"one of {', '.join(words)}")
        return text

    return read


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split("+") if name.strip())
    if not names:
        raise _ExpectedError("names joined by +")
    return names


def _path(text: str) -> str:
    if not text:
        raise _ExpectedError("a path")
    return text


def _option(default: Any, form: str, read: Callable[[str], Any], help: str) -> Any:
    return field(default=default, metadata={"form": form, "read": read, "help": help})


# ------------------------------------------------------------------ the options


@record(frozen=True)
class Options:
    """All options, with their defaults. Hashable, so that a cache may use it as a part of its key."""

    verify: str = _option(
        "off", "off|ends|each", _one_of("off", "ends", "each"),
        "check the invariants of the IR: never, before and after all passes, or after each pass",
    )
    check: str = _option(
        "", "numbers", _one_of("numbers"),
        "run the interpreter on sample data before and after each pass and compare the results",
    )
    dump: tuple[str, ...] = _option((), "PASS+...", _names, "print the IR after these passes; `all` for every pass")
    dump_dir: str = _option("", "DIR", _path, "write dumps and reproducer files to this folder, not to the terminal")
    html: str = _option("", "FILE", _path, "write one page with the IR after each pass, side by side")
    skip: tuple[str, ...] = _option((), "NAME+...", _names, "leave out these passes or rewrite rules")
    limit: int | None = _option(
        None, "N", _count(0),
        "make the first N rewrites only; halving N finds the rewrite that breaks a result",
    )
    time: bool = _option(False, "on|off", _flag, "print the time of each stage and pass")
    rules: bool = _option(False, "on|off", _flag, "print how often each rewrite rule was used")
    threads: int = _option(0, "N", _count(0), "threads of large kernels; 0 means one for each core")
    cache: str = _option(
        "disk", "disk|memory|off", _one_of("disk", "memory", "off"),
        "keep compiled code on disk and in memory, in memory only, or compile every time",
    )
    cache_dir: str = _option("", "DIR", _path, "folder of the disk cache")
    nan: bool = _option(False, "on|off", _flag, "stop at the first NaN and name the line that made it")
    fast: bool = _option(
        False, "on|off", _flag,
        "allow rewrites that change roundings, NaN or the sign of zero, and a product and sum to be rounded once",
    )
    patch: bool = _option(
        True, "on|off", _flag,
        "while tracing, let np.zeros and its kin make traceable arrays; off: use pullback.numpy",
    )
    roll: bool = _option(True, "on|off", _flag, "make loops of the turns that long Python loops leave in a trace")
    paths: int = _option(64, "N", _count(1), "Python paths through one function that are compiled for each signature")
    ties: str = _option(
        "equal", "equal|all|first", _one_of("equal", "all", "first"),
        "gradient of max and min where several elements are the largest",
    )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``key=value,key=value``; a bare key switches a flag on.

        Raises
        ------
        OptionError : an unknown key (the message lists the keys) or a bad value (the message has what was expected).
        """
        known = {f.name: f for f in fields(cls)}
        values: dict[str, Any] = {}
        for item in filter(None, (part.strip() for part in text.split(","))):
            key, _, value = (part.strip() for part in item.partition("="))
            if key not in known:
                raise OptionError(f"{VARIABLE}: unknown key {key!r}; the keys are {', '.join(known)}")
            values[key] = _read(known[key], value)
        return cls(**values)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """The options of the ``PULLBACK`` variable, or the defaults without it."""
        return cls.parse((os.environ if environ is None else environ).get(VARIABLE, ""))

    def override(self, **changes: Any) -> Self:
        """A copy with other values. Text is read as in the variable; anything else is taken as it is.

        Raises
        ------
        OptionError : an unknown key or a bad value.
        """
        known = {f.name: f for f in fields(self)}
        for key in changes.keys() - known.keys():
            raise OptionError(f"unknown option {key!r}; the options are {', '.join(known)}")
        read = {key: _read(known[key], value) if isinstance(value, str) else value for key, value in changes.items()}
        return replace(self, **read)

    def __str__(self) -> str:
        """The text that `parse` reads back: only what differs from the defaults."""
        changed = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        return ",".join(f"{name}={_show(value)}" for name, value in changed)


def _read(option: "Field[Any]", text: str) -> Any:
    # An empty text is the default where there is one such ("no dumps", "no page"), so that an option can be taken back.
    if text == "" and option.default in ("", ()):
        return option.default
    try:
        return option.metadata["read"](text)
    except _ExpectedError as error:
        raise OptionError(f"{VARIABLE}: {option.name}={text} is not understood; {option.name} needs {error}") from None


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "+".join(value) if isinstance(value, tuple) else str(value)


def help_text() -> str:
    """One line for each key: form, meaning, default."""
    rows = [(f"{f.name}={f.metadata['form']}", f.metadata["help"], f.default) for f in fields(Options)]
    width = max(len(form) for form, _, _ in rows)
    lines = [f"  {form:<{width}}  {help}{_default(default)}" for form, help, default in rows]
    return "\n".join([f"{VARIABLE}=key=value,key=value sets options for one process. The keys:", "", *lines])


def _default(value: Any) -> str:
    return "" if value in ((), "", None) else f" (default {_show(value)})"
