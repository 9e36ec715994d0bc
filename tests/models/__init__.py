"""The MiniZinc twins against the engine."""
