"""Threads that are looked after, and waits before what failed is begun again: used by the engine and the server alike."""
