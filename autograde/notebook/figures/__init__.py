"""Pictures of real numbers, drawn when they are shown."""
