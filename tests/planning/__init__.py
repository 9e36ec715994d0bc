"""Plans over time."""
