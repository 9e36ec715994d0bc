"""Settings of Hypothesis for properties that ask solvers or draw whole requests."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings


def calm(examples: int) -> settings:
    """Return settings that repeat themselves, without deadline, for so many examples."""
    return settings(
        deadline=None,
        derandomize=True,
        max_examples=examples,
        phases=[phase for phase in Phase if phase is not Phase.explain],  # tracing costs more than the test
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
