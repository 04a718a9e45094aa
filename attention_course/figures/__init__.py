"""Pictures of attention: matrices as heatmaps, and what one query attends to."""
