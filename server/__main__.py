"""The command ``thalweg``, and ``python -m server``: an interrupt is told in a line, also while modules are imported."""

import sys

INTERRUPTED = 130   # the shell's status of a process that SIGINT ended


def main() -> int:
    """Do what the command line says; the exit status."""
    try:
        from server import cli
        return cli.main()
    except KeyboardInterrupt:   # `serve` handles its own once it runs
        print("thalweg: interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
