"""Writes golden.json: the statistics of measure/prediction by PyTorch and scipy, straight from their definitions."""
import json
import numpy as np, torch, torch.nn.functional as F
from scipy.spatial.distance import jensenshannon

N, K = 61, 5
BLOCK = min(32, max(2, N // 20))
GROUPS = min(20, -(-N // BLOCK))
torch.manual_seed(0)
label = torch.randint(0, K, (N,))
a = torch.randn(N, K) * 2 + 2 * F.one_hot(label, K)
b = a + torch.randn(N, K) * 1.5
lp, lq = F.log_softmax(a, 1), F.log_softmax(b, 1)
lp, lq = lp.float(), lq.float()


def terms(lp, lq, label):
    p, q = lp.double().exp(), lq.double().exp()
    (pc, c), (pm, m) = p.max(1), q.max(1)
    return {
        "clean": (c == label).double(), "moved": (m == label).double(),
        "drop": (c == label).double() - (m == label).double(),
        "ei": torch.where(c == m, (pc * pm).sqrt(), torch.zeros_like(pc)),
        "js": torch.tensor([jensenshannon(x / x.sum(), y / y.sum()) ** 2 for x, y in zip(p.numpy(), q.numpy())]),
        "kl": F.kl_div(lq.double(), lp.double(), log_target=True, reduction="none").sum(1),
        "l2": (p - q).norm(dim=1), "agreement": (c == m).double(),
        "predicted-clean": c.double(), "predicted-moved": m.double(), "confidence-clean": pc, "confidence-moved": pm,
    }


def mean(t):
    return {k: v.mean().item() for k, v in t.items()}


t = terms(lp, lq, label)
group = np.arange(N) // BLOCK % GROUPS
# The partner of a sample is the next of its block, of the last the first.
partner = [i + 1 if i // BLOCK == (i + 1) // BLOCK and i + 1 < N else i // BLOCK * BLOCK for i in range(N)]
pairs = [i for i in range(N) if partner[i] != i]
null = mean(terms(lp[pairs], lq[[partner[i] for i in pairs]], label[pairs]))
samples = dict(t)
samples["correct-clean"], samples["correct-moved"] = t["clean"], t["moved"]
json.dump({
    "N": N, "K": K, "Clean": lp.flatten().tolist(), "Moved": lq.flatten().tolist(), "Label": label.tolist(),
    "Scores": mean(t), "Null": {k: null[k] for k in ("ei", "js", "kl", "l2", "agreement")},
    "Class": {f"class=c{c}": {k: v[label == c].mean().item() for k, v in t.items()} for c in range(K)},
    "Replicates": {k: [v[group != g].mean().item() for g in range(GROUPS)] for k, v in t.items()},
    "Samples": {k: v.tolist() for k, v in samples.items()},
}, open("golden.json", "w"))
