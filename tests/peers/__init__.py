"""Other schedulers beside ours on the same gangs."""
