"""The table that native code goes by: it finds the branch for any decisions, in few attempts."""

import itertools
import struct
from collections.abc import Sequence

import numpy as np
import pytest

from pullback.codegen.object import Kind
from pullback.runtime.compiled import Compiled, Miss
from pullback.runtime.routes import ENTRY_WORDS, HEAD_WORDS, Branch, Family, route_table
from pullback.runtime.runtime import Runtime
from tests.runtime.kit import (
    array_arg,
    array_result,
    build,
    fallback,
    native_runtime,
    number_arg,
    number_result,
    signature_of,
)

Decisions = tuple[int, ...]


def branch(decisions: Decisions, entry: int) -> Branch:
    compiled = build(signature_of([array_arg()], array_result()))
    return Branch(Compiled(compiled.spec, compiled.loaded, compiled.objects, entry), decisions)


class Walker:
    """Reads a table as native code does."""

    def __init__(self, table: bytes) -> None:
        self.words = struct.unpack(f"={len(table) // 8}Q", table)

    def outcome(self, entry: int, decisions: Sequence[int], truth: Sequence[int]) -> int | None:
        """The guard that stops a branch of these decisions; None if none does."""
        return next((k for k, d in enumerate(decisions) if truth[k] != d), None)

    def find(self, branches: Sequence[Branch], truth: Sequence[int]) -> tuple[int | None, int]:
        number, depth, others, attempts = self.words[0], -1, 0, 0
        while True:
            attempts += 1
            row = self.words[HEAD_WORDS + ENTRY_WORDS * number :][:ENTRY_WORDS]
            guard = self.outcome(number, branches[number].decisions, truth)
            if guard is None:
                return number, attempts
            if guard >= row[3]:
                return None, attempts
            jump = self.words[row[2] + guard]
            others = jump >> 32 if guard > depth else others - 1 if guard == depth else 0
            if others == 0:
                return None, attempts
            number, depth = jump & 0xFFFFFFFF, guard


def test_each_path_of_a_full_tree_is_found_from_each_other_one() -> None:
    everything = list(itertools.product((0, 1, 7), repeat=3))
    branches = [branch(decisions, number + 1) for number, decisions in enumerate(everything)]
    family = Family("f", tuple(branches))
    for first in branches[::5]:
        walker = Walker(route_table([family], first.compiled))
        for number, truth in enumerate(everything):
            found, attempts = walker.find(branches, truth)
            assert found == number
            assert attempts <= 1 + 2 * 3


def test_loops_that_ran_for_different_numbers_of_turns_are_two_attempts_apart() -> None:
    branches = [branch((1,) * turns + (0,), turns + 1) for turns in range(40)]
    walker = Walker(route_table([Family("f", tuple(branches))], branches[-1].compiled))
    for turns in range(40):
        found, attempts = walker.find(branches, (1,) * turns + (0,) * 40)
        assert found == turns
        assert attempts <= 3
    assert walker.find(branches, (1,) * 60)[0] is None


def test_an_outcome_that_no_branch_has_ends_the_search() -> None:
    branches = [branch((value, 0), value + 1) for value in range(5)]
    walker = Walker(route_table([Family("f", tuple(branches))], branches[2].compiled))
    assert walker.find(branches, (9, 0)) == (None, 5)
    assert walker.find(branches, (3, 1))[0] is None


def guarded(bits: Sequence[int], runtime: Runtime) -> Compiled:
    """Guard k: bit k of the argument is `bits[k]`; the result is the number of the path."""
    number = sum(bit << k for k, bit in enumerate(bits))
    lines = ["define i64 @kernel(ptr %args, ptr %results, ptr %arena) {", "entry:", "  %from = load ptr, ptr %args"]
    lines += ["  %x = load i64, ptr %from", "  br label %guard0"]
    for k, bit in enumerate(bits):
        lines += [f"guard{k}:", f"  %shifted{k} = lshr i64 %x, {k}", f"  %bit{k} = and i64 %shifted{k}, 1"]
        lines += [f"  %as.traced{k} = icmp eq i64 %bit{k}, {bit}"]
        lines += [f"  br i1 %as.traced{k}, label %guard{k + 1}, label %miss{k}", f"miss{k}:", f"  ret i64 {k + 1}"]
    lines += [f"guard{len(bits)}:", "  %to = load ptr, ptr %results", f"  store i64 {number}, ptr %to"]
    lines += ["  ret i64 0", "}"]
    signature = signature_of([number_arg(Kind.INT, dtype="i8")], number_result(Kind.INT, dtype="i8"))
    return build(signature, "\n".join(lines), runtime)


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5, 6), (6, 0, 5, 1, 4, 2, 3)])
def test_native_calls_find_their_path_whatever_was_called_before(order: Sequence[int]) -> None:
    runtime = native_runtime()
    function = runtime.function(fallback)
    paths = [tuple(n >> k & 1 for k in range(3)) for n in range(7)]  # 7 is on no path
    branches = [Branch(guarded(bits, runtime), bits) for bits in paths]
    other = build(signature_of([array_arg((2,))], array_result((2,))))
    function.install(branches[0].compiled, "integers", branches)
    function.install(other)
    for first, second in itertools.permutations(order, 2):
        assert function(first) == first
        assert function(second) == second
        np.testing.assert_array_equal(function(np.ones(2)), np.ones(2))
    word, _, _, miss = function(7)
    assert word == "python"
    assert isinstance(miss, Miss)
    assert miss.status > 0
    assert function(2.5) == ("python", (2.5,), {}, None)
