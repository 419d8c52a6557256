"""What every entry of a catalogue says about itself: one sentence, one caution, one example that is run."""

import inspect


def check_docstring(entry, *, example=True):
    summary, caution, *rest = inspect.cleandoc(entry.__dict__["__doc__"]).split("\n\n", 2)
    assert summary.endswith((".", ").")), summary
    assert caution.endswith("."), caution
    assert not caution.startswith(">>>"), caution
    assert not example or rest[0].startswith(">>>"), rest
    assert inspect.getmodule(entry).__doc__
