"""NATS-Bench: its spaces, files and tables, the benchmark study's questions, searches."""
