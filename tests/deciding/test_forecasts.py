"""Decisions on real forecasts: the table of docs/decide.md is what the tool writes."""

import importlib.util

import pytest
from real_data import FOLDER, ROOT, needs_real_data


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("forecast_decisions", ROOT / "tools" / "forecast_decisions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_real_data("forecasts")
def test_the_page_has_the_numbers_of_the_tool(tool):
    assert tool.table(FOLDER / "forecasts") in tool.PAGE.read_text()
