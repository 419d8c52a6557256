"""scikit-learn: a binary classifier in a Pipeline, calibrated, with its measures before and after."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal

X, y = make_classification(4000, 20, n_informative=6, n_redundant=10, weights=[0.9], random_state=0)  # 10 % positive
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

plain = make_pipeline(StandardScaler(), GaussianNB()).fit(X_train, y_train)
calibrated = make_pipeline(StandardScaler(), cal.CalibratedClassifier(GaussianNB(), method="auto")).fit(
    X_train, y_train
)

for name, model in {"naive Bayes": plain, "calibrated": calibrated}.items():
    p = cal.Predictions.binary(model.predict_proba(X_test)[:, 1], y_test)
    print(name)
    for what in ("ece", "nll", "gap"):
        print("  ", cal.measure(p, what))
print("share of positives:", np.mean(y_test))
