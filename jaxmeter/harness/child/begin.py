"""How the process of a server begins: it ends with its parent from here on, before it imports jax for some seconds.

python jaxmeter/harness/child/begin.py PATHS PARENT MODULE ARGUMENTS...

It is run by its path, and imports from PATHS; where these are empty, from the interpreter's own and, last, from the
working folder. With `python -m`, folders of the working folder would take the place of libraries.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Import a server and have it serve."""
    paths, parent, name, *arguments = sys.argv[1:]
    sys.path[:] = (
        paths.split(os.pathsep) if paths else [*sys.path[1:], str(Path.cwd())]
    )  # the first is this file's folder
    from jaxmeter.harness.child.family import die_with_parent

    die_with_parent(int(parent))
    import_module(name).serve(*arguments)


if __name__ == "__main__":
    main()
