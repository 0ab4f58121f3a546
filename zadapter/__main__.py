"""``python -m zadapter``: the command line."""

from zadapter.cli.app import app

if __name__ == "__main__":
    app(prog_name="zadapter")
