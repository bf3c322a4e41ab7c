import io

import numpy as np
import pytest
from rich.console import Console

from pullback.demo import main
from pullback.demo.digits import load_digits
from pullback.demo.measure import disagreement
from pullback.demo.models import MODELS, Model
from pullback.demo.screen import Watched, duration, table
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
    loss, gradient = model.by_hand(parameters, *batch)
    np.testing.assert_allclose(loss, model.loss(parameters, *batch), rtol=1e-13)
    assert disagreement(model, gradient, parameters, batch, rng) < 1e-8


@every_model
def test_a_wrong_gradient_is_noticed(model: Model) -> None:
    rng = np.random.default_rng(0)
    digits, parameters = load_digits(rng), model.new_parameters(rng)
    batch = (digits.images[:32], digits.targets[:32])
    gradient = {name: 1.001 * value for name, value in model.by_hand(parameters, *batch)[1].items()}
    assert disagreement(model, gradient, parameters, batch, rng) > 1e-4


def test_the_recipe_trains_the_network_to_over_97_percent_whatever_the_gradient_comes_from() -> None:
    rng = np.random.default_rng(3)
    digits, model = load_digits(rng), MODELS[0]
    losses = []
    trained = train(
        model,
        model.by_hand,
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


def _shown(console: Console) -> None:
    with Watched("net", console) as watched:
        for done in range(1, 9):
            watched.show(done, 8, 0.5)


def test_progress_is_plain_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    _shown(Console(file=stream))
    assert stream.getvalue().splitlines() == [f"net: step {done} of 8, loss 0.5000" for done in (2, 4, 6, 8)]


def test_progress_is_a_bar_on_a_terminal() -> None:
    stream = io.StringIO()
    _shown(Console(file=stream, force_terminal=True, width=100))
    assert "━" in stream.getvalue()
    assert "8/8" in stream.getvalue()


def test_tables_keep_all_cells_and_durations_have_units() -> None:
    console = Console(file=io.StringIO(), width=60)
    with console.capture() as captured:
        console.print(table(("", "one"), [("row", "1"), ("longer row", "22")]))
    assert all(cell in captured.get() for cell in ("one", "row", "longer row", "22"))
    assert [duration(seconds) for seconds in (2.5, 0.0123, 4.56e-5, 7e-8)] == ["2.5 s", "12.3 ms", "45.6 us", "70 ns"]
