"""How often random tests of their own making are repeated; those of Hypothesis have profiles (conftest.py)."""

from __future__ import annotations

import os

LONG = os.environ.get("THALWEG_HYPOTHESIS") == "long"
"""Whether minutes may be taken, as `make test-long` does."""
