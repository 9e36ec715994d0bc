"""Requests as integer programs."""
