"""The probes of a rubric: each call adds a line that checks one sentence of the contract."""
