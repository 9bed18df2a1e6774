"""``python -m logscope``."""

from logscope.cli import run

if __name__ == "__main__":
    run()
