"""How the process of a server begins: it ends with its parent from here on, before it imports jax for some seconds.

python -m harness.child.begin PARENT MODULE ARGUMENTS...
"""

from __future__ import annotations

import sys
from importlib import import_module

from harness.child.family import die_with_parent


def main() -> None:
    """Imports a server and has it serve."""
    _, parent, name, *arguments = sys.argv
    die_with_parent(int(parent))
    import_module(name).serve(*arguments)


if __name__ == "__main__":
    main()
