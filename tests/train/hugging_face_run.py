"""A tiny training by Hugging Face's Trainer with our metrics; prints what it logged. Run as a script."""

import json
import sys
from pathlib import Path

import torch
from torch.utils.data import Dataset

from calibrant.train.callbacks import HuggingFaceMetrics

X = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))


class Rows(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        return {"x": X[i], "labels": (X[i, 0] > 0).long()}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x, labels=None):
        logits = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def main(folder):
    import transformers

    metrics = HuggingFaceMetrics(out=folder / "map.json")
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        num_train_epochs=1,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model=Model(),
        args=arguments,
        train_dataset=Rows(),
        eval_dataset=Rows(),
        compute_metrics=metrics,
        callbacks=[metrics.callback()],
    )
    trainer.train()
    logged = next(row for row in trainer.state.log_history if "eval_ece" in row)
    print(json.dumps({"eval_ece": logged["eval_ece"], "T": metrics.map.parameters["T"]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
