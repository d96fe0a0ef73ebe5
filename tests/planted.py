"""A run as somebody else could send it: every value that could run code or install something names planted code."""

import json
import pickle
import stat
from pathlib import Path
from typing import Any

MARKED = "planted code has run"

SETUP = """
import pathlib
pathlib.Path({marker!r}).write_text({words!r})
from setuptools import setup
setup(name="jax", version="0.10.1")
"""
PROGRAM = """#!/bin/sh
echo '{words}' > '{marker}'
"""


class _Written:
    """Unpickled, it writes a marker."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.path, MARKED)


def plant(run: Path, markers: Path, *, environment: bool = True) -> None:
    """Changes a run in place: each planted file writes a marker of its own into the folder `markers`.

    Args:
      environment: Whether the environment that the run recorded is another too; without, it can be resumed here.
    """
    markers.mkdir(exist_ok=True)
    _plant_files(run, markers)
    for name in ("manifest.json", "run.json"):
        if (run / name).exists():
            record = json.loads((run / name).read_text())
            manifest = record if name == "manifest.json" else record["manifest"]
            manifest["settings"] |= {"suites": [str(run / "small.py")], "data": str(run)}
            if environment:
                _plant_environment(manifest["environments"]["cpu"], run)
            (run / name).write_text(json.dumps(record))


def _plant_files(run: Path, markers: Path) -> None:
    own_suite = (run.parent.parent / "small.py").read_text()
    planted = f"import pathlib\npathlib.Path({str(markers / 'suite')!r}).write_text({MARKED!r})\n"
    (run / "small.py").write_text(own_suite.replace('"""Small."""\n', f'"""Small."""\n{planted}'))
    package = run / "package"
    package.mkdir()
    (package / "setup.py").write_text(SETUP.format(marker=str(markers / "setup"), words=MARKED))
    for name in ("python", "bin/ptxas", "bin/nvlink"):
        path = run / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROGRAM.format(marker=markers / path.name, words=MARKED))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    for case in (run / "cases").iterdir():
        for scratch in ("scratch", ".scratch"):
            path = run / scratch / "inputs" / case.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pickle.dumps(_Written(markers / f"inputs of {scratch}")))


def _plant_environment(here: dict[str, Any], run: Path) -> None:
    here["packages"] |= {
        "jax": f"0/../{run}/package",
        "jaxlib": f"0 @ file://{run}/package",
        "numpy": f"0 --no-index --find-links={run}",
        "scipy": "0; touch planted",
        f"--requirement={run}/requirements.txt": "0",
    }
    here["image"] = "jaxmeter --privileged"
    here["variables"] |= {
        "XLA_FLAGS": f"--xla_gpu_cuda_data_dir={run} --xla_dump_to={run}/dump",
        "JAX_COMPILATION_CACHE_DIR": f"{run}/scratch/cache",
        "JAX_DUMP_IR_TO": f"{run}/dump",
        "LD_PRELOAD": f"{run}/library.so",
        "PYTHONPATH": str(run),
        "PYTHONSTARTUP": f"{run}/small.py",
    }


def plant_lock_step(run: Path) -> None:
    """Changes a run in place: it names a program of its own as the python of an earlier run's environment."""
    manifest = json.loads((run / "manifest.json").read_text())
    here = manifest["environments"]["cpu"]
    other = {"python": str(run / "python"), "version": here["python"], "packages": {}, "variables": here["variables"]}
    manifest["settings"] |= {"lock_step": other}
    (run / "manifest.json").write_text(json.dumps(manifest))
