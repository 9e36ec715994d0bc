"""What users of the peers ran into, as small inputs with right answers."""
