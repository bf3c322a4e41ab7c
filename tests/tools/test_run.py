import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).resolve().parents[2] / "tools" / "run.py"


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_run", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("PULLBACK_VENV", str(tmp_path / "venv"))
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]")
    return module


@pytest.fixture
def calls(runner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    made: list[list[str]] = []

    def call(command: list[str], **_: object) -> int:
        made.append(command[1:])
        return 0

    def create(folder: str, **_: object) -> None:
        (Path(folder) / "bin").mkdir(parents=True)
        (Path(folder) / "bin" / "python").touch()

    monkeypatch.setattr(runner.subprocess, "call", call)
    monkeypatch.setattr(runner.venv, "create", create)
    return made


def test_no_command_and_an_unknown_one_list_the_commands() -> None:
    for arguments in ([], ["dance"]):
        done = subprocess.run([sys.executable, str(FILE), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "tools/run.py demo" in done.stderr
        assert "tools/run.py test" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in environment has POSIX's layout")
def test_the_environment_is_made_once_and_filled_again_only_when_the_project_file_changes(
    runner: ModuleType, calls: list[list[str]], tmp_path: Path
) -> None:
    install = ["-m", "pip", "install", "-q", "-e", "."]
    demo = ["-m", "pullback", "demo", "--quick"]
    assert runner.main(["demo", "--quick"]) == 0
    assert calls == [install, demo]
    assert runner.main(["demo", "--quick"]) == 0
    assert calls == [install, demo, demo]
    (tmp_path / "pyproject.toml").write_text("[project] # changed")
    assert runner.main(["demo", "--quick"]) == 0
    assert calls == [install, demo, demo, install, demo]


def test_an_old_python_is_told_what_is_needed(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "OLDEST", (99, 0))
    assert runner.main(["demo"]) == 2
    assert "needs Python" in capsys.readouterr().err
