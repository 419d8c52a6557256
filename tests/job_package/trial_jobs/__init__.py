"""Jobs for tests and benchmarks of the study engine, added by an entry point as those of any package."""
