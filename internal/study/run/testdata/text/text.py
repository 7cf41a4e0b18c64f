#!/usr/bin/python3
"""Writes a text encoder, token ids and golden values of its layers and scores, by PyTorch and numpy.

    encoder.onnx   PyTorch's TransformerEncoder (2 layers, 16 dimensions) with random weights. Inputs: input_ids and attention_mask, both
                   int64 [batch, tokens]. Outputs: hidden [batch, tokens, 16], pooled [batch, 16] (the mean of the tokens of a text) and
                   logits [batch, 3].
    clean.npz      ids and masks of 30 texts of 12 tokens at most, and labels
    moved.npz      the same texts, in each of which one word is replaced
    golden.json    values of the encoder by PyTorch, and scores by numpy
"""
import json
import sys

import numpy as np
import torch

N, LENGTH, WORDS, WIDTH, HEADS = 30, 12, 40, 16, 2
torch.manual_seed(1)
rng = np.random.default_rng(2)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Parameter(torch.randn(LENGTH, WIDTH) / 4)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 32, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classify = torch.nn.Linear(WIDTH, 3)

    def forward(self, input_ids, attention_mask):
        z = self.words(input_ids) + self.places[: input_ids.shape[1]]
        z = self.encoder(z, src_key_padding_mask=attention_mask == 0)
        mask = attention_mask.to(z.dtype).unsqueeze(2)
        pooled = (z * mask).sum(1) / mask.sum(1)
        return z, pooled, self.classify(pooled)


net = Encoder()
for p in net.parameters():
    if p.dim() > 1:
        torch.nn.init.normal_(p, std=0.3)
for layer in net.encoder.layers:
    layer.dropout = layer.dropout1 = layer.dropout2 = torch.nn.Identity()
net.train()  # the fused layers of evaluation cannot be exported

lengths = rng.integers(4, LENGTH + 1, N)
mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.int64)
ids = rng.integers(1, WORDS, (N, LENGTH)) * mask
moved = ids.copy()
for i, n in enumerate(lengths):
    at = rng.integers(n)
    moved[i, at] = 1 + (moved[i, at] + rng.integers(WORDS - 2)) % (WORDS - 1)

names = ["input_ids", "attention_mask"]
outputs = ["hidden", "pooled", "logits"]
torch.onnx.export(net, (torch.tensor(ids[:2]), torch.tensor(mask[:2])), "encoder.onnx", input_names=names, output_names=outputs, opset_version=14,
                  dynamic_axes={**{n: {0: "batch", 1: "tokens"} for n in names}, **{n: {0: "batch"} for n in outputs}},
                  training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)

net.double()
with torch.no_grad():
    run = lambda x: [y.numpy() for y in net(torch.tensor(x), torch.tensor(mask))]
    (hidden, pooled, logits), (hidden2, pooled2, logits2) = run(ids), run(moved)

labels = logits.argmax(1)
labels[::5] = (labels[::5] + 1) % 3
np.savez("clean.npz", input_ids=ids, attention_mask=mask, labels=labels)
np.savez("moved.npz", input_ids=moved, attention_mask=mask)


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def cosine_distance(a, b):
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    return 1 - float(np.mean((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)))



def mean_reciprocal_rank(z, q):
    z, q = z / np.linalg.norm(z, axis=1, keepdims=True), q / np.linalg.norm(q, axis=1, keepdims=True)
    s = q @ z.T
    return float(np.mean(1 / (1 + (s > np.diag(s)[:, None]).sum(1))))


p, q = softmax(logits), softmax(logits2)
same = p.argmax(1) == q.argmax(1)
golden = {
    "hidden": hidden[:3].tolist(), "pooled": pooled.tolist(), "logits": logits.tolist(), "moved-logits": logits2.tolist(),
    "scores": {
        "distance pooled cosine": cosine_distance(pooled, pooled2),
        "distance hidden cosine": cosine_distance(hidden, hidden2),
        "accuracy clean": float(np.mean(p.argmax(1) == labels)),
        "accuracy moved": float(np.mean(q.argmax(1) == labels)),
        "effective-invariance ei": float(np.mean(np.where(same, np.sqrt(p.max(1) * q.max(1)), 0))),
        "retrieval pooled mean-reciprocal-rank": mean_reciprocal_rank(pooled, pooled2),
    },
}
with open("golden.json", "w") as f:
    json.dump(golden, f)
    f.write("\n")
