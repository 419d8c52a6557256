"""Files that come with the package.

- demo_val.npz, demo_test.npz: predictions of a small network trained too long on 3,000 Fashion-MNIST images, 4,000 rows
  to calibrate on and 4,000 others to measure on (made by tools/make_demo_predictions.py; logits and labels only).
- clamp_run: a narrow ResNet-8 trained too long on fashion_mini, recipe and weights (tools/make_clamp_network.py).
- fashion_mini.npz: 10,000 images of Fashion-MNIST, by Zalando SE, under the MIT licence (fashion_mini.LICENSE).
- llm_stated.csv: 2,000 of the 12,032 answers of GPT-4.1 to the questions of MMLU-Pro, drawn at random by a fixed seed:
  the category and number of the question, whether the extracted answer is right (no answer counts as wrong), and the
  confidence that the model stated, from 0 to 1 (empty where none was found). From the result files of the repository
  Linwei94/LLM-Calibration-Study on GitHub (MIT licence); columns chosen and named here.
- nas.parquet: networks of both NATS-Bench spaces, small, trained and measured (docs/nas.md).
"""

from pathlib import Path

FOLDER = Path(__file__).parent
DEMO_VAL, DEMO_TEST = FOLDER / "demo_val.npz", FOLDER / "demo_test.npz"
CLAMP_RUN = FOLDER / "clamp_run"
FASHION_MINI = FOLDER / "fashion_mini.npz"
LLM_STATED = FOLDER / "llm_stated.csv"
NAS = FOLDER / "nas.parquet"
