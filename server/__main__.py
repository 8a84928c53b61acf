"""The command ``thalweg``, and ``python -m server``: an interrupt is told in a line, also while modules are imported."""

import sys

INTERRUPTED = 130   # as the shell has it of SIGINT


def main() -> int:
    """Do what the command line says; the exit status."""
    try:
        from server import cli
        return cli.main()
    except KeyboardInterrupt:   # of `serve` it is told otherwise, once it runs
        print("thalweg: interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
