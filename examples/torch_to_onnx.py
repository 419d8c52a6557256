"""PyTorch to ONNX: train a small network, fit a temperature on held-out rows, ship both as one ONNX file."""

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from sklearn.datasets import load_digits

import calibrant as cal

out = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
torch.manual_seed(0)
X, y = (torch.as_tensor(array) for array in load_digits(return_X_y=True))
X, y = X.float() / 16, y.long()
train, val, test = torch.randperm(len(X), generator=torch.Generator().manual_seed(0)).split([300, 700, 797])

network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(150):  # far too long for 300 images: it becomes too sure
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(network(X[train]), y[train]).backward()
    optimizer.step()

with torch.no_grad():
    held_out = cal.Predictions.from_logits(network(X[val]), y[val])
    judged = cal.Predictions.from_logits(network(X[test]), y[test])
temperature = cal.fit(held_out, "temperature")
print("before:", cal.measure(judged, "ece"))
print("after: ", cal.measure(temperature(judged), "ece"))

both = torch.nn.Sequential(network, temperature.to_torch(), torch.nn.Softmax(dim=1)).eval()
torch.onnx.export(
    both, (X[:2],), out / "digits.onnx", input_names=["images"], dynamo=False, dynamic_axes={"images": {0: "n"}}
)
session = onnxruntime.InferenceSession(out / "digits.onnx")
(probs,) = session.run(None, {"images": X[test].numpy()})
print("ONNX gives the same probabilities:", bool(np.allclose(probs, temperature(judged).probs, atol=1e-5)))
