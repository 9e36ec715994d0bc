"""Benchmarks: allocation on the openb trace, and times."""
