"""What a file may make the program run: names of catalogues; other code by permission, which a change withdraws."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from calibrant.core.config import code_trust
from calibrant.core.config.code_trust import allow_code
from calibrant.core.errors import InputError


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("os:system?command=touch x", "import os and call system?command=touch x"),
        ("os:system?command=touch x*resnet", "import os and call system?command=touch x*resnet"),
        ("torchvision.models:resnet18", "import torchvision.models and call resnet18"),
        ("pkg:Class.make?a=1&b=2", "import pkg and call Class.make?a=1&b=2"),
        ("hf:google/vit?revision=x", "get the network google/vit from the Hugging Face hub or a folder"),
        ("hf:a=b", "get the network a=b from the Hugging Face hub or a folder"),
        ("./evil.py", "run the Python file ./evil.py"),
        ("/tmp/a b/evil.py:width=8", "run the Python file /tmp/a b/evil.py"),
        ("EVIL.PY", "run the Python file EVIL.PY"),
        ("resnet:depth=18\n", ""),
        ("resnet:depth=18", ""),
        ("nats_topology:cell=|nor_conv_3x3~0|+|nor_conv_3x3~0|skip_connect~1|+|none~0|none~1|none~2|", ""),
        ("resnet", ""),
        ("os", ""),
        ("pyramid.pyx", ""),
    ],
)
def test_what_a_network_would_run(spec, says):
    assert code_trust.would_run(spec, model=True) == says


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("ce + 0.5*./evil.py", "run the Python file ./evil.py"),
        ("mixup:base=./evil.py", "run the Python file ./evil.py"),
        ("a.py + 2*b.py:x=1", "run the Python file a.py and b.py"),
        ("hf:root=owner/name", ""),
        ("cifar10.1", ""),
        ("focal:gamma=3 + 0.5*mdca", ""),
        ("os:system", ""),  # catalogues make no calls
    ],
)
def test_what_other_entries_would_run(spec, says):
    assert code_trust.would_run(spec) == says


def test_a_refusal_says_what_would_have_run_and_how_to_allow_it():
    with pytest.raises(InputError) as error:
        code_trust.check("shared/run.json", {"a": 1}, {"model": "os:system?command=rm\x1b[2J", "loss": "x.py"})
    message = str(error.value)
    for part in ("shared/run.json: model", "'os:system?command=rm\\x1b[2J'", "import os and call system?command=rm"):
        assert part in message
    assert "run the Python file x.py" in message
    assert "--allow-code (in Python: with cal.allow_code())" in message
    assert message.isprintable()


def test_code_that_several_entries_run_is_named_once():
    with pytest.raises(InputError, match=r"which would run the Python file a\.py\. "):
        code_trust.check("plan.toml", {}, {"first.model": "a.py:net", "second.model": "a.py:net"})


def test_permission_is_for_this_content_and_this_code(tmp_path):
    (tmp_path / "mine.py").write_text("1")
    specs = {"data.name": "./mine.py:size=3"}
    content = {"data": {"name": "./mine.py:size=3"}, "n": 1}
    with allow_code():
        code_trust.check("r.toml", content, specs)
    code_trust.check("r.toml", content, specs)
    with pytest.raises(InputError, match="allow-code"):
        code_trust.check("r.toml", content | {"n": 2}, specs)
    (tmp_path / "mine.py").write_text("2")
    with pytest.raises(InputError, match="allow-code"):
        code_trust.check("r.toml", content, specs)
    (tmp_path / "mine.py").write_text("1")
    code_trust.check("r.toml", content, specs)
    [note] = [json.loads(file.read_text()) for file in code_trust.folder().iterdir()]
    assert note == {"file": str(tmp_path / "r.toml"), "would": ["run the Python file ./mine.py"]}


def test_names_need_no_permission_and_leave_no_record():
    with allow_code():
        code_trust.check("r.toml", {}, {"model": "resnet", "loss": "ce"})
    code_trust.check("r.toml", {}, {"model": "resnet", "loss": "ce"})
    assert not code_trust.folder().exists()


def test_many_at_the_same_time():
    specs = {"model": "mine:net"}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: code_trust.remember("r", {"i": i % 25}, specs), range(200)))
    assert len(list(code_trust.folder().iterdir())) == 25
    for i in range(25):
        code_trust.check("r", {"i": i}, specs)


def test_killed_while_it_is_written_nothing_is_allowed(monkeypatch):
    def die(*_):
        raise KeyboardInterrupt

    real = os.replace
    monkeypatch.setattr(os, "replace", die)
    with pytest.raises(KeyboardInterrupt), allow_code():
        code_trust.check("r", {}, {"model": "mine:net"})
    monkeypatch.setattr(os, "replace", real)
    with pytest.raises(InputError):
        code_trust.check("r", {}, {"model": "mine:net"})
    with allow_code():
        code_trust.check("r", {}, {"model": "mine:net"})
    code_trust.check("r", {}, {"model": "mine:net"})


def test_a_refusal_in_another_folder_says_where_to_run_it(tmp_path, monkeypatch):
    """The permission belongs to the file, which is not here: allowing it would not help."""
    (tmp_path / "mine.py").write_text("")
    monkeypatch.chdir(tmp_path)
    code_trust.remember("run.json", {}, {"model": "./mine.py"})
    code_trust.check("run.json", {}, {"model": "./mine.py"})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"run the command in the folder that has ./mine.py, which is not .*elsewhere"):
        code_trust.check("run.json", {}, {"model": "./mine.py"})
