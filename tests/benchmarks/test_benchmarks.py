import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

from benchmarks import compiling, kernels, main, worker
from benchmarks.agreement import Judge
from benchmarks.compiling import CHAINS, FIRST_CALLS
from benchmarks.machine import describe, in_words
from benchmarks.options import Options, parse
from benchmarks.plot import draw
from benchmarks.process import environment
from benchmarks.report import closing, duration, faults
from benchmarks.results import Entry, Result, as_json
from benchmarks.systems import SYSTEMS, System
from benchmarks.systems.with_numpy import NUMPY
from benchmarks.timing import Timing, alternate, summary
from benchmarks.workload import Prepared, Workload
from benchmarks.workloads import WORKLOADS

NAMES = [system.name for system in SYSTEMS]
SQUARES = Workload("squares", "calls", lambda library, x: library.np.sum(x * x), lambda rng: (rng.random(5),))
QUICK = sorted(name for name, workload in WORKLOADS.items() if workload.quick)


def _doubled(workload: Workload, arguments: tuple[Any, ...]) -> Prepared:
    return Prepared(lambda x: (np.sum(x * x), (2 * x,)), arguments, lambda result: (result[0], list(result[1])))


def _tripled(workload: Workload, arguments: tuple[Any, ...]) -> Prepared:
    return Prepared(lambda x: (np.sum(x * x), (3 * x,)), arguments, lambda result: (result[0], list(result[1])))


def _broken(workload: Workload, arguments: tuple[Any, ...]) -> Prepared:
    raise ValueError("no such thing")


def _system(name: str) -> System:
    return System(name, "", "", "")


def _results() -> list[Result]:
    entries = [Entry(name, timing=summary([value])) for name, value in (("pullback", 1e-6), ("jax", 4e-6))]
    return [Result("a<b", "calls", [*entries, Entry("numba", fault="no")])]


@pytest.mark.parametrize("name", QUICK)
def test_pullback_is_right_on_the_workload(name: str) -> None:
    workload, prepare = WORKLOADS[name], SYSTEMS[0].load()
    assert prepare is not None
    prepared = prepare(workload, workload.sample())
    assert prepared is not None
    judge = Judge(workload, workload.bind(NUMPY))
    assert judge.fault(*prepared.numbers(prepared.function(*prepared.arguments))) == ""


def test_a_wrong_gradient_and_a_wrong_value_are_not_timed() -> None:
    systems = [(_system("right"), _doubled), (_system("wrong"), _tripled), (_system("broken"), _broken)]
    result = kernels.run(SQUARES, systems, Options(seconds=0.01))
    right, wrong, broken = result.entries
    assert right.timing is not None
    assert not right.fault
    assert wrong.timing is None
    assert "differences give" in wrong.fault
    assert broken.fault == "ValueError: no such thing"
    assert "NumPy has" in Judge(SQUARES, SQUARES.bind(NUMPY)).fault(0.1, [])


def test_gradients_on_kinks_are_compared_with_one_another() -> None:
    workload = WORKLOADS["max-ties-1000x1000"]
    judge = Judge(workload, workload.bind(NUMPY))
    first = np.ones((1000, 1000))
    assert judge.fault(None, [first]) == ""
    assert "of its largest entry" in judge.fault(None, [2 * first])
    assert "shape" in judge.fault(None, [first[0]])


def test_the_mixture_of_the_file_has_its_known_sizes_and_a_finite_likelihood() -> None:
    workload = WORKLOADS["gmm-1000-d10-k10"]
    arguments = workload.sample()
    assert [np.shape(argument) for argument in arguments[:4]] == [(10,), (10, 10), (10, 55), (1000, 10)]
    assert np.isfinite(workload.bind(NUMPY)(*arguments))


def test_every_workload_has_its_own_name_and_first_calls_name_workloads() -> None:
    names = [*WORKLOADS, *(chain.name for chain in CHAINS)]
    assert len(names) == len(set(names))
    assert {workload for _, workload, _ in FIRST_CALLS} <= set(names)
    assert {system for _, _, systems in FIRST_CALLS for system in systems} <= set(NAMES)


def test_options_travel_as_text_and_select_by_part_pattern_and_group() -> None:
    options, listing = parse(["--only", "mlp-*,rows", "--quick", "--threads", "1"], NAMES)
    assert not listing
    assert Options.from_text(options.to_text()) == options
    assert options.wants("mlp-32x64", "learning")
    assert options.wants("softmax-1000x1000", "rows")
    assert not options.wants("chain-1e4", "elementwise")
    with pytest.raises(SystemExit):
        parse(["--systems", "abacus"], NAMES)


def test_the_listing_names_every_workload_and_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listing = capsys.readouterr().out
    assert all(name in listing for name in (*WORKLOADS, *NAMES))
    assert main(["--only", "nothing-like-it"]) == 2


def test_all_systems_are_told_the_same_number_of_threads() -> None:
    env = environment(3)
    assert {env["OPENBLAS_NUM_THREADS"], env["OMP_NUM_THREADS"], env["NPROC"], env["NUMBA_NUM_THREADS"]} == {"3"}
    assert env["PULLBACK"] == "threads=3,cache=memory"


def test_the_heading_says_when_figures_will_be_off() -> None:
    machine = {**describe(2), "load": 3.0, "openblas_coretype": "Haswell"}
    assert "load 3.0" in in_words(machine)
    assert "OPENBLAS_CORETYPE=Haswell" in in_words(machine)
    assert "load" not in in_words({**machine, "load": 0.1})


def test_times_are_medians_of_turns() -> None:
    timings = alternate({"one": _doubled(SQUARES, SQUARES.sample())}, 0.01)
    assert timings["one"].best <= timings["one"].low <= timings["one"].median <= timings["one"].high
    assert summary([2.0]) == Timing(2.0, 2.0, 2.0, 2.0, 1)
    assert duration(0.00123) == "1.23 ms"


def test_reports_hold_ratios_and_the_plot_is_well_formed() -> None:
    results = _results()
    entries = as_json(results, {})["results"][0]["entries"]
    assert [entry["times_pullback"] for entry in entries] == [1.0, 4.0, None]
    assert "jax            4.00 x  over 1 workloads" in closing(results)
    assert ElementTree.fromstring(draw(results)).tag.endswith("svg")
    assert faults([Result("w", "g", [Entry("pullback", fault="value 1")])]) == ["w: value 1"]


def test_a_run_writes_json_and_plot(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "measure", lambda options: iter(_results()))
    monkeypatch.setattr(compiling, "measure", lambda options: iter([]))
    options = Options(json=str(tmp_path / "out.json"), plot=str(tmp_path / "out.svg"))
    assert worker.run(options) == 0
    assert json.loads((tmp_path / "out.json").read_text())["results"][0]["workload"] == "a<b"
    assert (tmp_path / "out.svg").read_text().startswith("<svg")
