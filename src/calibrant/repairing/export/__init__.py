"""A calibration map in the format it will run in: Python, ONNX, torch."""
