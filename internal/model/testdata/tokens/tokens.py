#!/usr/bin/python3
"""Writes small vision transformers with random weights, built like the published ones: which tokens precede the patches, and the order of the axes.

    deit.onnx    Touvron et al. 2021: class and distillation token; the mean of two heads
    dinov2.onnx  Oquab et al. 2023 with the registers of Darcet et al. 2023: class token, positions, then four registers
    dinov3.onnx  class token and four registers before the patches; rotary positions of the patches alone
    clip.onnx    image tower of Radford et al. 2021: class token, tokens before the batch inside the blocks, projection of the class token

Images have 32 x 48 pixels and patches 8 x 8, a grid of 4 x 6.
"""
import onnx
import torch
import torch.nn as nn

H, W, PATCH, DIM, HEADS = 32, 48, 8, 8, 2
GRID = (H // PATCH, W // PATCH)
PATCHES = GRID[0] * GRID[1]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x, rotate=None):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        if rotate is not None:
            q, k = rotate(q), rotate(k)
        a = (q @ k.transpose(-2, -1) * (DIM // HEADS) ** -0.5).softmax(-1)
        return self.proj((a @ v).transpose(1, 2).reshape(b, n, DIM))


class Block(nn.Module):
    def __init__(self, scale=False):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(DIM), Attention(), nn.LayerNorm(DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))
        self.scale = nn.Parameter(0.5 * torch.ones(DIM)) if scale else 1.0

    def forward(self, x, rotate=None):
        x = x + self.scale * self.attn(self.norm1(x), rotate)
        return x + self.scale * self.mlp(self.norm2(x))


class Network(nn.Module):
    def __init__(self, prefix, positions, scale=False):
        super().__init__()
        self.patches = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.cls = nn.Parameter(torch.randn(1, 1, DIM))
        self.others = nn.Parameter(torch.randn(1, prefix - 1, DIM)) if prefix > 1 else None
        self.positions = nn.Parameter(torch.randn(1, positions, DIM)) if positions else None
        self.blocks = nn.ModuleList([Block(scale) for _ in range(2)])
        self.norm = nn.LayerNorm(DIM)

    def patch(self, x):
        return self.patches(x).flatten(2).transpose(1, 2)

    def expand(self, token, x):
        return token.expand(x.shape[0], -1, -1)


class DeiT(Network):
    def __init__(self):
        super().__init__(2, PATCHES + 2)
        self.head, self.head_dist = nn.Linear(DIM, 5), nn.Linear(DIM, 5)

    def forward(self, x):
        x = self.patch(x)
        x = torch.cat([self.expand(self.cls, x), self.expand(self.others, x), x], 1) + self.positions
        for b in self.blocks:
            x = b(x)
        x = self.norm(x)
        return (self.head(x[:, 0]) + self.head_dist(x[:, 1])) / 2


class DINOv2(Network):
    def __init__(self):
        super().__init__(5, PATCHES + 1, scale=True)

    def forward(self, x):
        x = self.patch(x)
        x = torch.cat([self.expand(self.cls, x), x], 1) + self.positions
        x = torch.cat([x[:, :1], self.expand(self.others, x), x[:, 1:]], 1)
        for b in self.blocks:
            x = b(x)
        x = self.norm(x)
        return x[:, 0], x[:, 5:]


class DINOv3(Network):
    def __init__(self):
        super().__init__(5, 0, scale=True)
        d = DIM // HEADS
        rows, columns = torch.meshgrid(torch.linspace(-1, 1, GRID[0]), torch.linspace(-1, 1, GRID[1]), indexing="ij")
        angles = torch.stack([rows, columns], -1).reshape(PATCHES, 2, 1) * 3.0 ** torch.arange(d // 4)
        angles = angles.flatten(1).tile(2)
        self.register_buffer("sin", angles.sin())
        self.register_buffer("cos", angles.cos())

    def rotate(self, q):
        prefix, p = q[:, :, :5], q[:, :, 5:]
        a, b = p.chunk(2, -1)
        return torch.cat([prefix, p * self.cos + torch.cat([-b, a], -1) * self.sin], 2)

    def forward(self, x):
        x = self.patch(x)
        x = torch.cat([self.expand(self.cls, x), self.expand(self.others, x), x], 1)
        for b in self.blocks:
            x = b(x, self.rotate)
        x = self.norm(x)
        return x[:, 0], x[:, 5:]


class CLIP(Network):
    def __init__(self):
        super().__init__(1, PATCHES + 1)
        self.pre, self.out = nn.LayerNorm(DIM), nn.Parameter(torch.randn(DIM, 8))
        self.attention = nn.ModuleList([nn.MultiheadAttention(DIM, HEADS) for _ in range(2)])

    def forward(self, x):
        x = self.patch(x)
        x = self.pre(torch.cat([self.expand(self.cls, x), x], 1) + self.positions)
        x = x.permute(1, 0, 2)  # tokens x batch x channels
        for b, attention in zip(self.blocks, self.attention):
            z = b.norm1(x)
            x = x + attention(z, z, z, need_weights=False)[0]
            z = b.mlp[0](b.norm2(x))
            x = x + b.mlp[2](z * torch.sigmoid(1.702 * z))
        x = x.permute(1, 0, 2)
        return self.norm(x[:, 0]) @ self.out


for name, net, outputs in [("deit", DeiT, ["logits"]), ("dinov2", DINOv2, ["class", "patches"]), ("dinov3", DINOv3, ["class", "patches"]), ("clip", CLIP, ["embedding"])]:
    torch.manual_seed(1)
    net = net().train()  # the fused attention of evaluation cannot be exported; there is no dropout
    torch.onnx.export(net, torch.randn(2, 3, H, W), name + ".onnx", input_names=["image"], output_names=outputs, opset_version=14,
                      dynamic_axes={n: {0: "batch"} for n in ["image", *outputs]}, training=torch.onnx.TrainingMode.PRESERVE)
    model = onnx.load(name + ".onnx")
    for node in model.graph.node:
        node.doc_string = ""
    onnx.save(model, name + ".onnx")
