"""Benchmarks of a running server, over HTTP: ``python -m tests.bench`` (``make bench``)."""
