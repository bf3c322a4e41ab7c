"""The options and the parser of the PULLBACK variable."""

from dataclasses import fields

import pytest

from pullback.config import Options, help_text
from pullback.errors import OptionError


def test_the_empty_text_gives_the_defaults() -> None:
    assert Options.parse("") == Options() == Options.from_env({})


def test_keys_are_read_in_any_order_with_spaces_and_flags_without_a_value() -> None:
    options = Options.parse(" dump = cse+dce , verify=each,time, threads=2,limit=0,patch=off ,")
    assert options == Options(verify="each", dump=("cse", "dce"), time=True, threads=2, limit=0, patch=False)


def test_the_variable_is_read_from_the_environment() -> None:
    assert Options.from_env({"PULLBACK": "html=a=b.html"}).html == "a=b.html"


def test_an_unknown_key_lists_the_keys() -> None:
    with pytest.raises(OptionError, match=r"unknown key 'verfy'.*verify, check, dump"):
        Options.parse("verfy=each")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("verify=always", "off, ends, each"),
        ("check=types", "numbers"),
        ("time=maybe", "on or off"),
        ("limit=-1", "a whole number, at least 0"),
        ("paths=0", "a whole number, at least 1"),
        ("threads=two", "a whole number"),
        ("ties=half", "equal, all, first"),
        ("limit=", "a whole number"),
    ],
)
def test_a_bad_value_says_what_was_expected(text: str, expected: str) -> None:
    with pytest.raises(OptionError, match=expected):
        Options.parse(text)


def test_the_text_of_options_is_read_back() -> None:
    options = Options(verify="ends", dump=("cse",), skip=("licm", "add-negated"), limit=3, time=True, patch=False)
    assert Options.parse(str(options)) == options
    assert str(Options()) == ""


def test_override_takes_values_and_texts_and_refuses_unknown_names() -> None:
    changed = Options().override(verify="each", limit=4, dump="cse+dce")
    assert changed == Options(verify="each", limit=4, dump=("cse", "dce"))
    assert Options(dump=("cse",)).override(dump="") == Options()
    with pytest.raises(OptionError, match="unknown option 'verfy'"):
        Options().override(verfy="each")
    with pytest.raises(OptionError, match="one of off, ends, each"):
        Options().override(verify="always")


def test_the_help_has_a_line_for_each_key() -> None:
    lines = help_text().splitlines()
    for option in fields(Options):
        assert any(line.strip().startswith(f"{option.name}=") for line in lines)


def test_options_are_frozen_and_hashable() -> None:
    assert hash(Options(time=True)) == hash(Options.parse("time"))
    with pytest.raises(AttributeError):
        Options().time = True  # type: ignore[misc]
