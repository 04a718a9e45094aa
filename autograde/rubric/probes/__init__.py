"""The probes of a rubric: one call is one line, one sentence of the contract."""
