"""Placement cases and timed clusters recorded from Kueue's Topology Aware Scheduling, run on kant_opt."""
