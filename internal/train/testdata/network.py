#!/usr/bin/env python3
"""Golden values of training a whole network: what PyTorch makes, in float64 and ten steps of SGD with momentum and decay, of a
small residual network with BatchNormalization in training mode, and what the network then computes in evaluation mode.

Writes network.json, of 4 and 6 channels, and wide.json, of 16, beside this file. Debian: python3-torch.
"""
import json, pathlib
import torch, torch.nn as nn, torch.nn.functional as F

torch.set_default_dtype(torch.float64)


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.norm2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.shortcut = None
        if stride > 1 or cin != cout:
            self.shortcut = nn.ModuleDict({"conv": nn.Conv2d(cin, cout, 1, stride, bias=False), "norm": nn.BatchNorm2d(cout)})

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        if self.shortcut is not None:
            x = self.shortcut["norm"](self.shortcut["conv"](x))
        return F.relu(x + y)


class Net(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0])
        self.stages = [f"stage{i + 1}" for i in range(len(widths))]
        for i, name in enumerate(self.stages):
            block = Block(widths[max(i - 1, 0)], widths[i], 2 if i else 1)
            self.add_module(name, nn.ModuleDict({"block1": block}))
        self.linear = nn.Linear(widths[-1], 3)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        for name in self.stages:
            x = getattr(self, name)["block1"](x)
        return self.linear(x.mean((2, 3)))


def weights(net):
    """By the names that the Go builders give."""
    out = {}
    for name, v in net.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        norm = "norm" in name.split(".")[-2]
        name = name.replace("running_mean", "mean").replace("running_var", "variance")
        if norm:
            name = name.replace("weight", "scale")
        if name == "linear.weight":
            v = v.T
        out[name] = v.flatten().tolist()
    return out


def golden(widths):
    torch.manual_seed(3)
    net = Net(widths).train()
    with torch.no_grad():
        for m in net.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.weight.uniform_(0.5, 1.5)
                m.bias.uniform_(-0.5, 0.5)
    start = weights(net)
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=5e-3)
    batches, losses = [], []
    for _ in range(10):
        x, t = (torch.rand(5, 2, 6, 6) * 1000).round() / 1000, torch.randint(0, 3, (5,))
        opt.zero_grad()
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        opt.step()
        batches.append({"x": x.flatten().tolist(), "t": t.tolist()})
        losses.append(float(loss))
    end = weights(net)
    net.eval()
    x, t = torch.tensor(batches[0]["x"]).reshape(5, 2, 6, 6), torch.tensor(batches[0]["t"])
    evaluated = F.cross_entropy(net(x), t, reduction="none").tolist()
    return {"start": start, "end": end, "batches": batches, "losses": losses, "evaluated": evaluated}


short = lambda v: float(f"{v:.9g}") if isinstance(v, float) else [short(u) for u in v] if isinstance(v, list) else {k: short(u) for k, u in v.items()} if isinstance(v, dict) else v
if __name__ == "__main__":
    for name, widths in {"network": [4, 6], "wide": [16]}.items():
        pathlib.Path(__file__).with_name(name + ".json").write_text(json.dumps(short(golden(widths))) + "\n")
