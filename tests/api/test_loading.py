"""What is loaded when: little by the import, and no compiler in a process that finds its code on disk."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
import numpy as np
import pullback as pb
early = [name for name in ("llvmlite", "networkx", "rich", "scipy", "pullback.codegen.lower") if name in sys.modules]
data = np.arange(3.0)
def f(p, x):
    return np.sum(np.tanh(p["w"] * x) * data) if p["w"] > 0 else np.sum(x)
value, gradient = pb.value_and_grad(f)({"w": 0.5}, x=np.ones(3))
print(early, "llvmlite" in sys.modules, value, gradient["w"])
"""


def run(folder: Path) -> str:
    env = {**os.environ, "PULLBACK_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    env.pop("PULLBACK", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_process_finds_its_code_and_loads_no_compiler(tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert first.startswith("[] True ")
    assert second == first.replace("True", "False")
