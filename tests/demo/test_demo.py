import io

import numpy as np
import pytest

from pullback.demo import main
from pullback.demo.digits import load_digits
from pullback.demo.measure import disagreement
from pullback.demo.models import MODELS, Model
from pullback.demo.screen import Progress, duration, table
from pullback.demo.training import accuracy, train

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)


def test_the_data_are_the_1797_digits_and_the_parts_do_not_overlap() -> None:
    digits = load_digits(np.random.default_rng(0))
    assert digits.images.shape == (1437, 64)
    assert digits.held_out_images.shape == (360, 64)
    images = np.concatenate([digits.images, digits.held_out_images])
    assert images.min() == -0.3
    assert images.max() == 0.7
    assert len(np.unique(images, axis=0)) == 1797
    labels = np.concatenate([digits.targets.argmax(axis=1), digits.held_out_labels])
    np.testing.assert_array_equal(np.bincount(labels), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])


@every_model
def test_the_gradient_derived_by_hand_agrees_with_differences(model: Model) -> None:
    rng = np.random.default_rng(0)
    digits, parameters = load_digits(rng), model.new_parameters(rng)
    batch = (digits.images[:32], digits.targets[:32])
    gradient = model.gradient_by_hand(parameters, *batch)
    assert disagreement(model, gradient, parameters, batch, rng) < 1e-8


@every_model
def test_a_wrong_gradient_is_noticed(model: Model) -> None:
    rng = np.random.default_rng(0)
    digits, parameters = load_digits(rng), model.new_parameters(rng)
    batch = (digits.images[:32], digits.targets[:32])
    gradient = {name: 1.001 * value for name, value in model.gradient_by_hand(parameters, *batch).items()}
    assert disagreement(model, gradient, parameters, batch, rng) > 1e-4


def test_the_recipe_trains_the_network_to_over_97_percent_whatever_the_gradient_comes_from() -> None:
    rng = np.random.default_rng(3)
    digits, model = load_digits(rng), MODELS[0]
    losses = []
    trained = train(
        model,
        lambda parameters, *batch: (model.loss(parameters, *batch), model.gradient_by_hand(parameters, *batch)),
        digits,
        model.epochs,
        rng,
        lambda done, steps, loss: losses.append(loss),
    )
    assert trained.steps == len(losses) == 880
    assert accuracy(model, trained.parameters, digits) > 0.97


def test_the_demo_runs_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick"]) == 0
    output = capsys.readouterr()
    assert "accuracy on held-out digits" in output.out
    assert "network: step 44 of 88" in output.err


def test_progress_is_plain_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = Progress("net", stream)
    for done in range(1, 9):
        progress.show(done, 8, 0.5)
    assert stream.getvalue().splitlines() == [f"net: step {done} of 8, loss 0.5000" for done in (2, 4, 6, 8)]


def test_progress_is_one_line_redrawn_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    progress = Progress("net", stream)
    for done in range(1, 9):
        progress.show(done, 8, 0.5)
    assert stream.getvalue().count("\n") == 1
    assert "█" * 32 in stream.getvalue()


def test_tables_align_and_durations_have_units() -> None:
    assert table(("", "one"), [("row", "1"), ("longer row", "22")]) == (
        "             one\n----------------\nrow            1\nlonger row    22"
    )
    assert [duration(seconds) for seconds in (2.5, 0.0123, 4.56e-5, 7e-8)] == ["2.5 s", "12.3 ms", "45.6 us", "70 ns"]
