"""Small networks, untrained, for tests of exported layers and their names."""

import torch
import torch.nn.functional as F
from torch import nn


class Shared(nn.Module):
    """A network with layers that are difficult to name.

    Two modules are called twice, and one of them (twin, conv3) has two names. Other ReLUs are functions,
    the dropout returns its input (in evaluation mode), and one module is not called.
    """

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.stage = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Dropout(0.5))
        self.twin = self.conv3 = nn.Conv2d(4, 4, 3, padding=1)
        self.unused = nn.Conv2d(4, 4, 1)
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.stage(x)) + x
        x = self.relu(self.conv3(x))
        x = F.relu(self.conv3(x))
        return self.fc(x.mean((2, 3)))


def small_vit():
    from torchvision.models.vision_transformer import VisionTransformer

    return VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=5)


def small_swin():
    from torchvision.models.swin_transformer import SwinTransformer

    return SwinTransformer(patch_size=[2, 2], embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=[4, 4], num_classes=5)


def small_convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)], num_classes=5)


def small_resnet():
    from torchvision.models.resnet import BasicBlock, ResNet

    return ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5)


def trained(module):
    """Set the statistics and parameters of batch normalisation to random values, since training changes them."""
    torch.manual_seed(1)
    for m in module.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_()
            m.running_var.uniform_(0.5, 2)
            nn.init.normal_(m.weight, 1, 0.2)
            nn.init.normal_(m.bias)
    return module
