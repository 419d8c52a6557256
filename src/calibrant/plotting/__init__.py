"""Figures drawn into files and pages."""
