"""To and from a learning management system: its downloads in, its grade files out."""
