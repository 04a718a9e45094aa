"""Pictures of real numbers, drawn when they are shown; the same picture is drawn once."""
