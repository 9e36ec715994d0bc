"""Instances with a published optimum, asked as placement requests; see docs/benchmarks/known-optima.md."""
