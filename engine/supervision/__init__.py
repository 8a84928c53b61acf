"""Threads that are looked after, and patience with what fails: used by the engine and the server alike."""
