"""`python -m reporting`: see `commands`."""

from .commands import app

if __name__ == "__main__":
    app(prog_name="python -m reporting")
