"""How many random examples a test tries that takes long over each."""

import os

from hypothesis import settings


def examples(short: int, long: int) -> settings:
    """So many in `make test` and in `make test-long`."""
    return settings(max_examples=long if os.environ.get("THALWEG_HYPOTHESIS") == "long" else short)
