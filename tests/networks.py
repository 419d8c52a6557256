"""Made-up tables of networks: what questions and searches are asked of in tests and benchmarks."""

import numpy as np
import polars as pl

BINS = (5, 10, 15, 20, 25, 50, 100, 200, 500)
OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
ROBUST = ("pgd_1.0", "square_1.0", *(f"corrupt_{c}" for c in ("shot_noise", "frost", "glass_blur", "snow")))
OTHERS = ("KSCE", "KDECE", "MMCE", "NLL", "Brier")


def cell(index):
    ops = [OPERATIONS[index // 5**edge % 5] for edge in range(6)]
    return "|{}~0|+|{}~0|{}~1|+|{}~0|{}~1|{}~2|".format(*ops)


def widths(index):
    return ":".join(str(8 * (1 + index // 8**layer % 8)) for layer in range(5))


def networks(n=200, data=("cifar10", "cifar100"), space="topology", seed=0, noise=0.01):
    """A table with every column: the better the network, the lower its ECE; measures are ECE and a little noise."""
    rng = np.random.default_rng(seed)
    total = 15_625 if space == "topology" else 32_768
    index = np.sort(rng.permutation(total)[:n])
    frames = []
    for name in data:
        accuracy = rng.uniform(0.5, 0.95, n)
        ece = 0.25 - 0.2 * accuracy + rng.normal(0, noise, n)
        columns = {
            "space": [space] * n,
            "data": [name] * n,
            "arch": [(cell if space == "topology" else widths)(int(i)) for i in index],
            "index": index,
            "unique": index % 2 == 0 if space == "topology" else np.full(n, True),
            "constant": index < 50 if space == "topology" else np.full(n, False),
            "accuracy": accuracy,
        }
        for state, level in (("pre", ece), ("post", np.abs(rng.normal(0.02, 0.005, n)))):
            grown = 0.05 if state == "pre" else 0.8
            for family in ("ECE", "ECE_em", "cwCE", "cwCE_em", "MCE"):
                base = rng.uniform(0.01, 0.1, n) if family == "cwCE_em" else level
                for m in BINS:
                    columns[f"{state}_{family}_{m}"] = base * (1 + grown * np.log(m / 5)) + rng.normal(0, 1e-4, n)
            columns |= {f"{state}_{other}": level + rng.normal(0, 1e-3, n) for other in OTHERS}
        columns |= {"auc_cifar10c": rng.uniform(0.5, 1, n), "auc_svhn": rng.uniform(0.5, 1, n)}
        columns |= {name: ece + rng.normal(0, 0.01, n) for name in ROBUST}
        columns["hcs"] = 2 * accuracy * (1 - columns["pre_ECE_15"]) / (accuracy + 1 - columns["pre_ECE_15"])
        columns |= {"correct_confidence": rng.uniform(0.5, 1, n), "incorrect_confidence": rng.uniform(0.3, 0.9, n)}
        columns |= {"params": rng.integers(1000, 10**6, n), "flops": rng.uniform(1, 300, n)}
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames)
