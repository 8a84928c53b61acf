"""Logical plan -> SQL text for the two executors."""
