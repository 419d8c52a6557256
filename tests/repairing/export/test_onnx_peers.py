"""Maps behind the ONNX files that scikit-learn, LightGBM and XGBoost users have, written by their own converters."""

import importlib.util

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError

pytestmark = pytest.mark.slow
CONVERTERS = ("skl2onnx", "onnxmltools", "lightgbm", "xgboost")
FEATURES = 8


@pytest.fixture(scope="module", autouse=True)
def converters():
    absent = [name for name in CONVERTERS if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"NOT INSTALLED: {', '.join(absent)} (pip install {' '.join(absent)})")


def rows(k):
    from sklearn.datasets import make_classification

    x, y = make_classification(2000, FEATURES, n_informative=5, n_classes=k, random_state=0)
    return x.astype(np.float32), y


def classifier(name):
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=20, verbose=-1)
    if name == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=20)
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    return {
        "logistic": LogisticRegression(max_iter=500),
        "forest": RandomForestClassifier(20, max_depth=6, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=10, random_state=0),
    }[name]


def converted(model, name, zipmap):
    if name in ("lightgbm", "xgboost"):
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType

        kinds = {"initial_types": [("x", FloatTensorType([None, FEATURES]))], "target_opset": 15}
        if name == "xgboost":
            return onnxmltools.convert_xgboost(model, **kinds)
        return onnxmltools.convert_lightgbm(model, zipmap=zipmap, **kinds)
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    kinds = [("x", FloatTensorType([None, FEATURES]))]
    return to_onnx(model, initial_types=kinds, options={id(model): {"zipmap": zipmap}}, target_opset=15)


@pytest.mark.filterwarnings("ignore")  # of the converters
@pytest.mark.parametrize("zipmap", [False, True])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", ["logistic", "forest", "boosting", "lightgbm", "xgboost"])
def test_one_file_of_classifier_and_map(name, k, zipmap, tmp_path):
    import onnx
    import onnxruntime as runtime

    if name == "xgboost" and zipmap:
        pytest.skip("its converter writes no ZipMap")
    x, y = rows(k)
    model = classifier(name).fit(x[:1000], y[:1000])
    onnx.save(converted(model, name, zipmap), tmp_path / "net.onnx")
    probs = model.predict_proba(x[1000:])
    p = cal.Predictions.binary(probs[:, 1], y[1000:]) if k == 2 else cal.Predictions.from_probs(probs, y[1000:])
    m = cal.fit(p, "beta" if k == 2 else "dirichlet")
    with pytest.raises(InputError, match="sum to one, as probabilities are"):
        cal.export(m, "onnx", tmp_path / "both.onnx", append_to=tmp_path / "net.onnx")
    assert not (tmp_path / "both.onnx").exists()
    done = cal.export(m, "onnx", tmp_path / "both.onnx", append_to=tmp_path / "net.onnx", scores="probs")
    session = runtime.InferenceSession(done.path, providers=["CPUExecutionProvider"])
    (output,) = session.run(["calibrated_probs"], {"x": x[1000:]})
    expected = np.stack([1 - m(p).score, m(p).score], axis=1) if k == 2 else m(p).probs
    np.testing.assert_allclose(output, expected, atol=2e-5)
    assert session.run(None, {"x": x[1000:1003]})[0].shape == (3,)  # the classes are still there
