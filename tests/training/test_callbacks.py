"""Callbacks in the real trainers: Lightning and Hugging Face."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from calibrant import Predictions, fit, load_map, measures
from calibrant.core.errors import InputError
from calibrant.training.callbacks import CHECKPOINT_MAP, Collector, HuggingFaceMetrics, lightning_callback

RATES = (2.0, 0.0, -1.0)  # of three epochs: it learns, stays, and unlearns, so that the last epoch is not the best


def toy(n=60):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=generator)
    return x, (x[:, 0] + torch.randn(n, generator=generator) > 0).long()  # noisy, so that there is a best temperature


def test_the_collector_measures_all_batches():
    x, y = toy()
    z = torch.stack([x[:, 1], 3 * x[:, 0]], dim=1)
    collector = Collector(("ece", "nll"), "temperature")
    for rows in torch.arange(60).chunk(4):
        collector.add(z[rows], y[rows])
    p = Predictions.from_logits(z.numpy(), y.numpy())
    assert collector.measure() == {"ece": measures.make("ece")(p), "nll": measures.make("nll")(p)}
    collector.clear()
    with pytest.raises(InputError, match="validation batches"):
        collector.predictions()


def predictions(layer):
    x, y = toy()
    return Predictions.from_logits(layer(x).detach().numpy(), y.numpy())


# -- Lightning -----------------------------------------------------------------------------------------


@pytest.fixture
def lightning():
    return pytest.importorskip("pytorch_lightning")


def run_lightning(pl, callbacks, folder, *, checkpoints=False):
    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(4, 2)

        def training_step(self, batch, _):
            return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1]) * RATES[self.current_epoch]

        def validation_step(self, batch, _):
            return {"logits": self.layer(batch[0]), "labels": batch[1]}

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1.0)

    module, loader = Module(), DataLoader(TensorDataset(*toy()), batch_size=16)
    trainer = pl.Trainer(
        max_epochs=3,
        callbacks=callbacks,
        logger=False,
        default_root_dir=folder,
        enable_checkpointing=checkpoints,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
    )
    trainer.fit(module, loader, loader)
    return trainer, module


@pytest.mark.filterwarnings("ignore")
def test_lightning(tmp_path, lightning):
    callback = lightning_callback(out=tmp_path / "map.json")
    trainer, module = run_lightning(lightning, [callback], tmp_path)
    p = predictions(module.layer)
    for name in ("ece", "accuracy"):
        assert float(trainer.callback_metrics[f"val_{name}"]) == pytest.approx(measures.make(name)(p), rel=1e-5)
    assert load_map(tmp_path / "map.json").parameters == callback.map.parameters == fit(p, "temperature").parameters
    assert callback.best_map is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["{epoch}", "same"])
def test_lightning_with_the_weights_of_the_best_epoch(tmp_path, lightning, name):
    from pytorch_lightning.callbacks import ModelCheckpoint

    best = ModelCheckpoint(tmp_path, filename=name, monitor="val_nll", save_last=True)
    callback = lightning_callback(out=tmp_path / "map.json")
    _, module = run_lightning(lightning, [best, callback], tmp_path, checkpoints=True)
    kept = torch.load(best.best_model_path, weights_only=True)
    assert kept["epoch"] < 2
    last = predictions(module.layer)
    module.load_state_dict(kept["state_dict"])
    p = predictions(module.layer)
    beside = load_map(Path(best.best_model_path).with_suffix(".map.json"))
    assert beside.parameters == callback.best_map.parameters == fit(p, "temperature").parameters
    assert callback.best_measured["nll"] == pytest.approx(measures.make("nll")(p), rel=1e-5)
    assert callback.map.parameters == fit(last, "temperature").parameters != beside.parameters


# -- Hugging Face --------------------------------------------------------------------------------------


@pytest.fixture
def transformers(monkeypatch):
    """`tests/datasets` would pass for Hugging Face's package of that name, so `tests` is left out of the path."""
    tests = Path(__file__).parents[1]
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if Path(entry) != tests])
    pytest.importorskip("accelerate")
    return pytest.importorskip("transformers")


class Rows(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        x, y = toy()
        return {"x": x[i], "labels": y[i]}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x, labels=None):
        logits = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def trainer_of(transformers, folder, metrics, **options):
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: RATES[min(step // 4, 2)])
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        num_train_epochs=3,
        per_device_train_batch_size=16,
        eval_strategy="epoch",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **options,
    )
    return transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=Rows(),
        eval_dataset=Rows(),
        compute_metrics=metrics,
        callbacks=[metrics.callback()],
        optimizers=(optimizer, rates),
    )


BEST = {"save_strategy": "epoch", "load_best_model_at_end": True, "metric_for_best_model": "nll",
        "greater_is_better": False}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_hugging_face(tmp_path, transformers):
    metrics = HuggingFaceMetrics(out=tmp_path / "map.json")
    trainer = trainer_of(transformers, tmp_path, metrics, save_strategy="no")
    trainer.train()
    p = predictions(trainer.model.layer)
    assert load_map(tmp_path / "map.json").parameters == metrics.map.parameters == fit(p, "temperature").parameters
    assert metrics.step == trainer.state.global_step == 12
    assert metrics.measured["accuracy"] == pytest.approx(measures.make("accuracy")(p))
    assert set(metrics.measured) == {"accuracy", "ece", "nll", "brier", "auroc_correct"}


@pytest.mark.filterwarnings("ignore")
def test_hugging_face_keeps_the_map_of_the_weights_it_loads(tmp_path, transformers):
    metrics = HuggingFaceMetrics(out=tmp_path / "map.json")
    trainer = trainer_of(transformers, tmp_path, metrics, **BEST)
    trainer.train()
    p = predictions(trainer.model.layer)
    assert metrics.step == trainer.state.best_global_step < trainer.state.global_step
    assert load_map(tmp_path / "map.json").parameters == metrics.map.parameters == fit(p, "temperature").parameters
    assert metrics.measured["nll"] == pytest.approx(measures.make("nll")(p))
    kept = [load_map(file).parameters for file in (tmp_path / "out").glob(f"checkpoint-*/{CHECKPOINT_MAP}")]
    assert len(kept) == 3
    assert kept.count(metrics.map.parameters) < 3

    # Resumed in another process: the best weights were evaluated in the first one.
    again = HuggingFaceMetrics()
    last = max((tmp_path / "out").glob("checkpoint-*"), key=lambda f: int(f.name.partition("-")[2]))
    trainer_of(transformers, tmp_path, again, **BEST).train(resume_from_checkpoint=str(last))
    assert (again.step, again.measured) == (metrics.step, metrics.measured)
    assert again.map.parameters == metrics.map.parameters

    for file in (tmp_path / "out").glob(f"checkpoint-*/{CHECKPOINT_MAP}"):
        file.unlink()
    without = HuggingFaceMetrics(out=tmp_path / "none.json")
    with pytest.warns(UserWarning, match=r"has the best weights and no calibration_map\.json"):
        trainer_of(transformers, tmp_path, without, **BEST).train(resume_from_checkpoint=str(last))
    assert without.map is None
    assert not (tmp_path / "none.json").exists()


class Halves(Rows):
    """Half of the rows, as an evaluation set of its own."""

    def __init__(self, first):
        self.first = first

    def __len__(self):
        return 30

    def __getitem__(self, i):
        return super().__getitem__(i + self.first)


def half_of(layer, first):
    x, y = toy()
    rows = slice(first, first + 30)
    return Predictions.from_logits(layer(x[rows]).detach().numpy(), y[rows].numpy())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("options", "fit_on"),
    [(BEST | {"metric_for_best_model": "eval_val_nll"}, None), ({"save_strategy": "no"}, "val")],
)
def test_hugging_face_fits_on_the_set_that_selects_the_weights(tmp_path, transformers, options, fit_on):
    metrics = HuggingFaceMetrics(fit_on=fit_on)
    trainer = trainer_of(transformers, tmp_path, metrics, **options)
    trainer.eval_dataset = {"val": Halves(0), "test": Halves(30)}
    trainer.train()
    p = half_of(trainer.model.layer, 0)
    assert metrics.map.parameters == fit(p, "temperature").parameters
    assert metrics.measured["nll"] == pytest.approx(measures.make("nll")(p))


@pytest.mark.filterwarnings("ignore")
def test_hugging_face_asks_which_of_two_sets_to_fit_on(tmp_path, transformers):
    trainer = trainer_of(transformers, tmp_path, HuggingFaceMetrics(), save_strategy="no")
    trainer.eval_dataset = {"val": Halves(0), "test": Halves(30)}
    with pytest.raises(InputError, match=r"got 'val' and 'test', and nothing that says which.*fit_on=NAME"):
        trainer.train()


def test_hugging_face_names_a_misspelt_set_before_the_end(tmp_path, transformers, recwarn):
    """A warning at the second evaluation: at the end hours of training may have passed."""
    trainer = trainer_of(transformers, tmp_path, HuggingFaceMetrics(fit_on="vall"), save_strategy="no")
    trainer.eval_dataset = {"val": Halves(0), "test": Halves(30)}
    with pytest.raises(InputError, match=r"evaluation of the set 'vall', got 'val' and 'test'.*check fit_on"):
        trainer.train()
    warned = [str(w.message) for w in recwarn if "no map can be fitted so far" in str(w.message)]
    assert "of the set 'vall', got 'val' and 'test'" in warned[0]


class Evaluated:
    """What a Trainer hands to compute_metrics."""

    def __init__(self, logits, labels):
        self.predictions, self.label_ids = logits, labels


def test_a_forgotten_callback_is_named_once(recwarn):
    metrics = HuggingFaceMetrics(measures=("nll",))
    with pytest.warns(UserWarning, match=r"no map will be fitted: .*callbacks=\[metrics.callback\(\)\]"):
        metrics(Evaluated(3 * torch.eye(2).numpy(), [0, 1]))
    metrics(Evaluated(3 * torch.eye(2).numpy(), [0, 1]))
    HuggingFaceMetrics(measures=("nll",), fit_with=None)(Evaluated(3 * torch.eye(2).numpy(), [0, 1]))
    assert not recwarn.list


def test_tokens_are_rows_with_their_text_as_cluster():
    collector = Collector(("accuracy",), None)
    logits = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [9.0, 9.0]], [[0.0, 3.0], [9.0, 9.0], [9.0, 9.0]]])
    collector.add(logits, torch.tensor([[0, 0, -100], [1, -100, -100]]))
    p = collector.predictions()
    assert p.logits.tolist() == [[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]
    assert p.clusters.tolist() == [0, 0, 1]
    assert collector.measure() == {"accuracy": pytest.approx(2 / 3)}


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_one_logit_is_a_binary_prediction(shape):
    collector = Collector(("brier",), "temperature")
    collector.add(torch.tensor([2.0, -1.0, 1.0, -2.0]).reshape(shape), torch.tensor([1.0, 1.0, 0.0, 0.0]))
    assert collector.predictions().task == "binary"
    assert collector.fit_map().task == "binary"


@pytest.mark.filterwarnings("ignore")
def test_a_folded_map_survives_save_pretrained(tmp_path, transformers):
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=20, num_labels=3, **size)
    network = transformers.BertForSequenceClassification(config).eval()
    words = torch.randint(0, 20, (40, 5), generator=torch.Generator().manual_seed(0))
    z = 5 * network(words).logits.detach()
    network.classifier.weight.data *= 5
    network.classifier.bias.data *= 5
    p = Predictions.from_logits(z.numpy(), torch.arange(40).numpy() % 3)
    calibrated = fit(p, "vector")
    calibrated.to_torch().fold_into(network.classifier)
    network.save_pretrained(tmp_path)
    again = transformers.BertForSequenceClassification.from_pretrained(tmp_path).eval()
    assert again(words).logits.detach().numpy() == pytest.approx(calibrated.apply(p).logits, abs=1e-4)
