"""Loop rolling: the turns of a Python loop, which a trace holds one after the other, become a loop again.

`rows` makes writes to one row one, `track` lines up the ops, `runs` finds what repeats, `match` tells loops among that,
`body` and `rewrite` build them, `why` notes what was not rolled.
"""

from collections.abc import Sequence

import numpy as np

from pullback.config import Options
from pullback.ir.graph import Function, Region
from pullback.ir.types import I64
from pullback.passes.base import Rebuild, map_regions, with_body
from pullback.passes.roll.advice import advise
from pullback.passes.roll.loop import Match
from pullback.passes.roll.match import TURNS, Integers, Matcher
from pullback.passes.roll.rewrite import Rewrite
from pullback.passes.roll.rows import with_whole_rows, without_overwritten
from pullback.passes.roll.runs import Run, runs
from pullback.passes.roll.track import LOOK_BACK, Signatures, Track
from pullback.passes.roll.why import with_notes

MANY = 300
"""Ops below which a region is left as it is: it compiles quickly, and straight code runs fastest."""
FEW = 4
"""How many times fewer ops there must be for the loops to have been found."""
ROUNDS = 12
"""Loops around loops, and loops over what other loops gave, are found one after the other."""


def roll(function: Function, options: Options) -> Function:
    """Roll the Python loops of a traced function, before it is differentiated.

    Segments that repeat, up to where they read and write and up to constants, become a `scan`; turns that do not need
    one another become one batch. Each element is computed by the same ops in the same order as before. Near-linear.

    Returns
    -------
    A function of the same parameters and results. Scans say in their source line how many turns were rolled, and the
    first op of a loop that was not says why.
    """
    if not options.roll:
        return function
    rolled = with_body(function, _rolled(function.body))
    advise(rolled)
    return rolled


def _rolled(region: Region) -> Region:
    region = _rolled_inside(region)
    if len(region.ops) < MANY:
        return region
    rolled = _in_rounds(without_overwritten(with_whole_rows(without_overwritten(region), TURNS)), LOOK_BACK)
    if FEW * len(rolled.ops) > len(region.ops):
        # Where turns write to places out of order, some read what was just written: read of the array, they are alike.
        plain = _in_rounds(region, 0)
        rolled = plain if len(plain.ops) < len(rolled.ops) else rolled
    return with_notes(rolled) if len(rolled.ops) >= MANY else rolled


def _in_rounds(region: Region, look_back: int) -> Region:
    for _ in range(ROUNDS):
        track = Track(region, look_back)
        matches = _matches(track)
        if not matches:
            break
        region = Rewrite(track, matches).region()
    return region


def _rolled_inside(region: Region) -> Region:
    if not any(op.regions for op in region.ops):
        return region
    new = Rebuild()
    for op in region.ops:
        new.keep(op, new.current(op, map_regions(op, _rolled)))
    return new.region(region)


def _matches(track: Track) -> list[Match]:
    """Loops that do not overlap: inner ones before those around them."""
    signatures = Signatures()
    row: Integers = np.fromiter([signatures.op(op, k) for k, op in enumerate(track.ops)], I64, len(track.ops))
    matcher = Matcher(track, signatures)
    repetitions = [run for run in runs(row, TURNS, matcher.finer(row)) if matcher.is_worth(run)]
    # A body that moves evenly needs no table of places, so a longer one that does is better than a short one.
    return _chosen(matcher, repetitions, even=True) or _chosen(matcher, repetitions, even=False)


def _chosen(matcher: Matcher, repetitions: Sequence[Run], even: bool) -> list[Match]:
    taken = np.zeros(len(matcher.track.ops), np.bool_)
    found: list[Match] = []
    for run in repetitions:
        if not taken[run.start : run.stop].any():
            for match in matcher.matches(run, even):
                taken[match.start : match.stop] = True
                found.append(match)
    return found
