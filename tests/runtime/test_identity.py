"""The processor and the packages are told apart without loading LLVM."""

import subprocess
import sys
from pathlib import Path

import llvmlite
import pytest

from pullback.runtime import identity


def test_the_processor_has_a_stable_name_on_linux() -> None:
    if sys.platform == "linux":
        assert identity.processor_identity()
    assert identity.processor_identity() == identity.processor_identity()


def test_without_a_list_of_features_it_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "cpuinfo"
    names = []
    for flags in ("flags : fpu avx", "flags : fpu avx avx2", "bogomips : 5"):
        fake.write_text(f"processor : 0\nmodel : 1\n{flags}\n\nprocessor : 1\n{flags}\n")
        monkeypatch.setattr("builtins.open", lambda *_, **__: fake.open(encoding="ascii"))
        names.append(identity.processor_identity.__wrapped__())
        monkeypatch.undo()
    assert names[0] != names[1]
    assert names[2] == ""


def test_packages_are_identified_by_their_version() -> None:
    assert identity.package_identity("llvmlite")
    assert identity.package_identity("no_such_package_at_all") == ""
    assert identity.package_identity("json") != ""
    assert Path(llvmlite.__file__).exists()


def test_neither_identity_nor_linking_loads_llvm() -> None:
    code = """
import sys, types
package = types.ModuleType("pullback")  # without what the package itself imports
package.__path__ = ["pullback"]
sys.modules["pullback"] = package
from pullback.runtime import cache, encode, identity, runtime
identity.processor_identity()
identity.package_identity("llvmlite")
print("llvmlite" in sys.modules)
"""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "False\n", done.stderr
