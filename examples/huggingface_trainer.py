"""Hugging Face Trainer: calibration in the log of every evaluation, and a map for the weights that are kept.

The network is tiny and made from its configuration, so nothing is downloaded; with yours the last part is the same.
"""

import sys
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from calibrant import HuggingFaceMetrics

out = Path(sys.argv[1] if len(sys.argv) > 1 else "trainer")


class Sentences(Dataset):
    """Does a word of the first half of the vocabulary stand in front? One label in five is wrong."""

    def __init__(self, n: int, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.words = torch.randint(0, 40, (n, 6), generator=draw)
        flipped = torch.rand(n, generator=draw) < 0.2
        self.labels = ((self.words[:, 0] < 20) ^ flipped).long()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.words[i], "labels": self.labels[i]}


torch.manual_seed(0)
shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
network = BertForSequenceClassification(BertConfig(vocab_size=40, num_labels=2, max_position_embeddings=8, **shape))

metrics = HuggingFaceMetrics(fit_with="temperature", out=out / "map.json")
trainer = Trainer(
    model=network,
    args=TrainingArguments(
        output_dir=str(out),
        num_train_epochs=2,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=5e-3,
        eval_strategy="epoch",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    ),
    train_dataset=Sentences(320, seed=1),
    eval_dataset=Sentences(200, seed=2),
    compute_metrics=metrics,
    callbacks=[metrics.callback()],
)
trainer.train()
print({name: round(value, 4) for name, value in metrics.measured.items()})
print(metrics.map)
