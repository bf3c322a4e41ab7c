"""`pullback demo`: train, check, time, report."""

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

import pullback as pb
from pullback.demo.digits import Digits, load_digits
from pullback.demo.measure import Ops, Times, alternate, disagreement, ops_before_after
from pullback.demo.models import MODELS, Model
from pullback.demo.screen import Watched, duration, table
from pullback.demo.training import BATCH, Trained, accuracy, train
from pullback.record import record

GOAL = 0.97
AGREES = 1e-6


@record(frozen=True)
class Outcome:
    """All that the demo found out about one model."""

    model: Model
    trained: Trained
    accuracy: float
    disagreement: float
    times: Times
    ops: Ops


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return 0, or 1 if a gradient or the network's accuracy is not what it should be."""
    options = _parser().parse_args(argv)
    digits = load_digits(np.random.default_rng(options.seed))
    print(
        f"{len(digits.images) + len(digits.held_out_images):,} handwritten digits, "
        f"{len(digits.held_out_images)} held out; batches of {BATCH}, float64.\n"
        "Gradients: pullback.value_and_grad of the NumPy functions in pullback/demo/models.py\n"
    )
    outcomes = [_run(model, digits, options) for model in MODELS]
    Console().print(_report(outcomes))
    faults = _faults(outcomes, options.quick)
    for fault in faults:
        print(f"\nnot as it should be: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pullback demo", description="Train a network and a logistic regression on handwritten digits."
    )
    parser.add_argument("--quick", action="store_true", help="few epochs and few timings, a second in all")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the weights and the batches (default 0)")
    return parser


def _run(model: Model, digits: Digits, options: argparse.Namespace) -> Outcome:
    rng = np.random.default_rng(options.seed + 1)
    gradient = pb.value_and_grad(model.loss)
    epochs = 4 if options.quick else model.epochs
    with Watched(model.name) as watched:
        trained = train(model, gradient, digits, epochs, rng, watched.show)
    parameters, batch = trained.parameters, (digits.images[:BATCH], digits.targets[:BATCH])
    slope = gradient(parameters, *batch)[1]
    times = alternate(
        lambda: gradient(parameters, *batch),
        lambda: model.by_hand(parameters, *batch),
        rounds=20 if options.quick else 400,
    )
    off = disagreement(model, slope, parameters, batch, rng)
    steps = ops_before_after(gradient, parameters, *batch)
    return Outcome(model, trained, accuracy(model, parameters, digits), off, times, steps)


def _report(outcomes: Sequence[Outcome]) -> Table:
    columns = [_column(outcome) for outcome in outcomes]
    rows = [(label, *(column[label] for column in columns)) for label in columns[0]]
    return table(("", *(outcome.model.name for outcome in outcomes)), rows)


def _column(outcome: Outcome) -> dict[str, str]:
    trained, times = outcome.trained, outcome.times
    return {
        "parameters": f"{sum(value.size for value in trained.parameters.values()):,}",
        "accuracy on held-out digits": f"{outcome.accuracy:.2%}",
        "steps": f"{trained.steps:,}",
        "all steps": duration(trained.seconds),
        "first call, compilation included": duration(trained.first_call),
        "operations, as differentiated": f"{outcome.ops.differentiated}",
        "after the passes": f"{outcome.ops.optimised}",
        "fused: kernels, matrix products": f"{outcome.ops.kernels}, {outcome.ops.others}",
        "gradient against finite differences": f"{outcome.disagreement:.1e}",
        "loss and gradient, compiled": duration(times.compiled),
        "the same by hand in NumPy": duration(times.by_hand),
        "by hand / compiled": f"{times.by_hand / times.compiled:.2f}",
    }


def _faults(outcomes: Sequence[Outcome], quick: bool) -> list[str]:
    faults = [
        f"the gradient of the {outcome.model.name} is {outcome.disagreement:.1e} from finite differences"
        for outcome in outcomes
        if not outcome.disagreement <= AGREES
    ]
    if not quick and not outcomes[0].accuracy > GOAL:
        faults.append(f"the network reads {outcomes[0].accuracy:.2%} of the held-out digits, not over {GOAL:.0%}")
    return faults
