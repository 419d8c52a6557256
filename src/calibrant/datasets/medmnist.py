"""MedMNIST: small medical images."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from calibrant.datasets._base import Dataset, Part
from calibrant.datasets._medmnist import check_size, read_medmnist

ORGANS = (
    *("bladder", "femur-left", "femur-right", "heart", "kidney-left", "kidney-right"),
    *("liver", "lung-left", "lung-right", "pancreas", "spleen"),
)
CLASSES = {
    "bloodmnist": (
        *("basophil", "eosinophil", "erythroblast", "immature granulocytes"),
        *("lymphocyte", "monocyte", "neutrophil", "platelet"),
    ),
    "breastmnist": ("malignant", "normal or benign"),
    "dermamnist": (
        *("actinic keratoses", "basal cell carcinoma", "benign keratosis-like lesions", "dermatofibroma"),
        *("melanoma", "melanocytic nevi", "vascular lesions"),
    ),
    "octmnist": ("choroidal neovascularization", "diabetic macular edema", "drusen", "normal"),
    "organamnist": ORGANS,
    "organcmnist": ORGANS,
    "organsmnist": ORGANS,
    "pathmnist": (
        *("adipose", "background", "debris", "lymphocytes", "mucus", "smooth muscle"),
        *("normal colon mucosa", "cancer-associated stroma", "colorectal adenocarcinoma epithelium"),
    ),
    "pneumoniamnist": ("normal", "pneumonia"),
    "retinamnist": ("0", "1", "2", "3", "4"),
    "tissuemnist": (
        *("collecting duct, connecting tubule", "distal convoluted tubule", "glomerular endothelial cells"),
        *("interstitial endothelial cells", "leukocytes", "podocytes", "proximal tubule segments"),
        "thick ascending limb",
    ),
}
Name = Literal[
    "bloodmnist", "breastmnist", "dermamnist", "octmnist", "organamnist", "organcmnist", "organsmnist", "pathmnist",
    "pneumoniamnist", "retinamnist", "tissuemnist",
]  # fmt: skip


@dataclass(frozen=True)
class MedMNIST(Dataset):
    """One of the 2-D sets of MedMNIST, grey or RGB, with its official train, val and test: the file <name>.npz.

    Not chestmnist, where an image has several labels. Sizes are not checked: they differ between releases.
    """

    name: Name = "pathmnist"
    size: int = 28  # or 64, 128, 224: the file <name>_<size>.npz

    title: ClassVar[str] = "MedMNIST"
    reference: ClassVar[str] = "Yang, Shi, Wei, Liu, Zhao, Ke, Pfister, Ni, Scientific Data 10, 2023"
    source: ClassVar[str] = "https://medmnist.com"
    licence: ClassVar[str] = "CC BY 4.0 (dermamnist: CC BY-NC 4.0)"
    parts: ClassVar[tuple[str, ...]] = ("train", "val", "test")
    mean: ClassVar[tuple[float, ...]] = (0.5,)  # for every channel, grey or RGB
    std: ClassVar[tuple[float, ...]] = (0.5,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.size)

    def read(self, part: str) -> Part:
        return read_medmnist(self, self.name, self.size, part, CLASSES[self.name])
