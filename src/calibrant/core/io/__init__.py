"""Load and save predictions: npz, Parquet, CSV, JSONL, data frames, samples of lm-evaluation-harness."""
