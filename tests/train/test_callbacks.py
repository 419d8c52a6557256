"""Callbacks in the real trainers: Lightning and Hugging Face."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from calibrant import Predictions, measures
from calibrant.core.errors import InputError
from calibrant.train.callbacks import Collector, lightning_callback


def toy(n=60):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=generator)
    return x, (x[:, 0] > 0).long()


def test_the_collector_measures_all_batches():
    x, y = toy()
    z = torch.stack([x[:, 1], 3 * x[:, 0]], dim=1)
    collector = Collector(("ece", "nll"), "temperature", None)
    for rows in torch.arange(60).chunk(4):
        collector.add(z[rows], y[rows])
    p = Predictions.from_logits(z.numpy(), y.numpy())
    assert collector.measured() == {"ece": measures.make("ece")(p), "nll": measures.make("nll")(p)}
    collector.clear()
    with pytest.raises(InputError, match="validation batches"):
        collector.predictions()


@pytest.mark.filterwarnings("ignore")
def test_lightning(tmp_path):
    pl = pytest.importorskip("pytorch_lightning")

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def training_step(self, batch, _):
            return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

        def validation_step(self, batch, _):
            return {"logits": self.layer(batch[0]), "labels": batch[1]}

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module, callback = Module(), lightning_callback(out=tmp_path / "map.json")
    loader = DataLoader(TensorDataset(*toy()), batch_size=16)
    trainer = pl.Trainer(
        max_epochs=2,
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
    )
    trainer.fit(module, loader, loader)
    x, y = toy()
    p = Predictions.from_logits(module.layer(x).detach().numpy(), y.numpy())
    assert float(trainer.callback_metrics["val_ece"]) == pytest.approx(measures.make("ece")(p), rel=1e-5)
    assert callback.map.parameters["T"] > 0
    assert (tmp_path / "map.json").exists()


def test_hugging_face(tmp_path):
    """In a process of its own: here `tests/datasets` would pass for Hugging Face's package of that name."""
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    script = Path(__file__).with_name("hugging_face_run.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert np.isfinite(found["eval_ece"])
    assert found["T"] > 0
    assert (tmp_path / "map.json").exists()
