"""From a request to a verified outcome."""

from kant_opt.engine.place import place

__all__ = ["place"]
