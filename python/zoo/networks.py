"""The networks of the zoo: functions that make them with random weights, and the shape of one sample."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple


class Network(NamedTuple):
    make: Callable[[], Any]
    shape: tuple[int, ...]  # of one sample
    processor: Callable[[], Any] | None = None  # of transformers, for a model of spectrograms or waveforms


def networks() -> dict[str, Network]:
    """Return the networks by names such as torchvision/resnet18."""
    found = {f"torchvision/{name}": _torchvision(name, keys) for name, keys in TORCHVISION.items()}
    found |= {f"timm/{name}": _timm(name, side, of_size) for table, of_size in ((TIMM, False), (TIMM_OF_SIZE, True)) for side, names in table.items() for name in names.split()}
    found |= {f"transformers/{name}": _transformers(name, *entry) for name, entry in TRANSFORMERS.items()}
    return found


def ordered() -> list[str]:
    """Return the names of the networks: those that differ most first, of each family the first."""
    seen: dict[str, int] = {}
    at: dict[str, int] = {}
    key: dict[str, tuple[int, float]] = {}
    names = list(networks())
    for name in names:
        library, _, own = name.partition("/")
        family = re.split(r"[\d_]|For[A-Z]|Model|Vision", own)[0].lower()
        rank, index = seen.get(family, 0), at.get(library, 0)
        seen[family], at[library] = rank + 1, index + 1
        key[name] = (rank, index / sum(other.startswith(library) for other in names))
    return sorted(names, key=lambda name: key[name])


# Of torchvision: keywords of the network, and "shape" if it is not 3 x 64 x 64.
VIDEO = {"shape": (3, 4, 48, 48)}
TORCHVISION: dict[str, dict[str, Any]] = {
    **{name: {} for name in [
        "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small",
        "mobilenet_v3_large", "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_1",
        "swin_t", "swin_v2_t", "wide_resnet50_2", "fcn_resnet50", "deeplabv3_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large",
        "vgg11_bn", "vgg16", "vit_b_16", "vit_b_32", "maxvit_t",
    ]},
    "alexnet": {"shape": (3, 96, 96)}, "inception_v3": {"shape": (3, 128, 128)},
    "r3d_18": VIDEO, "mc3_18": VIDEO, "r2plus1d_18": VIDEO, "s3d": {"shape": (3, 8, 64, 64)}, "mvit_v2_s": VIDEO, "swin3d_t": VIDEO,
    "fasterrcnn_mobilenet_v3_large_320_fpn": {"min_size": 64, "max_size": 64}, "ssdlite320_mobilenet_v3_large": {},
    "retinanet_resnet50_fpn": {"min_size": 64, "max_size": 64},
}

# Of timm, by the side of images.
TIMM = {
    64: "resnet18 resnet26d resnetv2_50 seresnet50 ecaresnet26t resnest14d res2net50_26w_4s skresnet18 dpn48b dla34 densenet121 vovnet39a "
        "hrnet_w18_small ese_vovnet19b_dw regnety_002 regnetx_002 efficientnet_lite0 tf_efficientnetv2_b0 mixnet_s mnasnet_small mobilenetv2_050 "
        "mobilenetv3_small_050 mobilenetv4_conv_small fbnetc_100 hardcorenas_a lcnet_050 tinynet_e ghostnet_100 ghostnetv2_100 spnasnet_100 repvgg_a0 "
        "mobileone_s0 repghostnet_050 fastvit_t8 nfnet_f0 darknet53 cspresnet50 cspdarknet53 xception41 convnext_atto convnextv2_atto convmixer_768_32 "
        "inception_next_atto starnet_s1 rdnet_tiny selecsls42b tresnet_m poolformer_s12 edgenext_xx_small pvt_v2_b0 efficientvit_b0 repvit_m0_9 "
        "davit_tiny focalnet_tiny_srf caformer_s18 nextvit_small mambaout_femto",
    128: "inception_v4 mobilevit_xxs mobilevitv2_050",
    224: "efficientformer_l1 tiny_vit_5m_224",
}
# Those that are made for a size of images.
TIMM_OF_SIZE = {
    56: "eva02_tiny_patch14_224 swin_tiny_patch4_window7_224 vit_small_patch14_dinov2",
    64: "vit_tiny_patch16_224 deit_tiny_distilled_patch16_224 beit_base_patch16_224 xcit_nano_12_p16_224 mixer_s32_224 gmlp_ti16_224 resmlp_12_224 "
        "cait_xxs24_224 coat_tiny coatnet_nano_rw_224 maxvit_rmlp_pico_rw_256 volo_d1_224 nest_tiny visformer_tiny convit_tiny pit_ti_224 "
        "tnt_s_patch16_224 hiera_tiny_224 vit_small_patch16_dinov3 twins_svt_small sequencer2d_s",
    128: "levit_128s efficientvit_m0 efficientformerv2_s0",
    224: "naflexvit_base_patch16_gap",
    240: "crossvit_tiny_240",
}
# Fewer blocks and channels than the named variants have.
SHALLOW: dict[str, dict[str, Any]] = {
    **{name: {"layers": (1, 1, 1, 1)} for name in ["resnet26d", "resnetv2_50", "seresnet50", "ecaresnet26t", "res2net50_26w_4s", "skresnet18"]},
    "dpn48b": {"k_sec": (1, 1, 2, 1)}, "densenet121": {"block_config": (2, 2, 3, 2)}, "nfnet_f0": {"depths": (1, 1, 1, 1), "channels": (256, 256, 256, 256)},
    "convnext_atto": {"depths": (1, 1, 2, 1)}, "convnextv2_atto": {"depths": (1, 1, 2, 1)}, "inception_next_atto": {"depths": (1, 1, 2, 1)},
    "tresnet_m": {"layers": [1, 1, 2, 1]}, "fastvit_t8": {"layers": (1, 1, 2, 1)}, "edgenext_xx_small": {"depths": (2, 2, 2, 2)}, "starnet_s1": {"depths": [1, 1, 2, 1]},
    "pvt_v2_b0": {"depths": (1, 1, 1, 1)}, "twins_svt_small": {"depths": [1, 1, 2, 1]}, "sequencer2d_s": {"layers": [1, 1, 2, 1]},
    "coat_tiny": {"serial_depths": [1, 1, 1, 1], "parallel_depth": 1}, "crossvit_tiny_240": {"depth": [[1, 1, 0]] * 3},
    "efficientformer_l1": {"depths": (1, 1, 1, 2)}, "tiny_vit_5m_224": {"depths": [1, 1, 2, 1]}, "repvit_m0_9": {"depth": (1, 1, 2, 1)},
    "visformer_tiny": {"depth": (1, 1, 1)}, "convit_tiny": {"depth": 3, "local_up_to_layer": 2}, "pit_ti_224": {"depth": [1, 1, 1]},
    "hiera_tiny_224": {"stages": (1, 1, 1, 1)}, "nextvit_small": {"depths": (1, 2, 5, 2)}, "mambaout_femto": {"depths": (1, 1, 2, 1)},
    "beit_base_patch16_224": {"depth": 2, "embed_dim": 96, "num_heads": 3}, "naflexvit_base_patch16_gap": {"depth": 2, "embed_dim": 96, "num_heads": 3},
    "swin_tiny_patch4_window7_224": {"depths": (2, 1, 1, 1)}, "cait_xxs24_224": {"depth": 3},
    **{name: {"depth": 2} for name in ["vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "eva02_tiny_patch14_224", "xcit_nano_12_p16_224",
                                       "tnt_s_patch16_224", "vit_small_patch14_dinov2", "vit_small_patch16_dinov3"]},
}


def _torchvision(name: str, keys: dict[str, Any]) -> Network:
    keys = dict(keys)
    shape = keys.pop("shape", (3, 64, 64))

    def make() -> Any:
        import torchvision

        if name in _OF_PARTS:
            return _OF_PARTS[name]()
        extra = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
        backbone = {"weights_backbone": None} if any(part in name for part in ("fcn", "deeplab", "lraspp", "rcnn", "ssd", "retina")) else {}
        return torchvision.models.get_model(name, weights=None, **extra, **backbone, **keys)

    return Network(make, shape)


def _vgg(name: str) -> Any:
    import torchvision
    from torch import nn

    module = torchvision.models.get_model(name, weights=None)
    module.avgpool = nn.AdaptiveAvgPool2d(2)
    channels = 256 if name == "alexnet" else 512
    module.classifier = nn.Sequential(nn.Linear(4 * channels, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10))
    return module


def _vit(patch: int) -> Any:
    from torchvision.models.vision_transformer import VisionTransformer

    return VisionTransformer(image_size=64, patch_size=patch, num_layers=3, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10)


def _maxvit() -> Any:
    from torchvision.models.maxvit import MaxVit

    return MaxVit(input_size=(64, 64), stem_channels=16, partition_size=4, block_channels=[16, 32], block_layers=[1, 2], head_dim=8, stochastic_depth_prob=0.0, num_classes=10)


def _s3d() -> Any:
    import torchvision
    from torch import nn

    module = torchvision.models.get_model("s3d", weights=None)
    module.avgpool = nn.AvgPool3d((1, 2, 2))
    return module


def _mvit() -> Any:
    from torchvision.models.video.mvit import MSBlockConfig, MViT

    def block(channels: int, out: int, stride: int) -> Any:
        return MSBlockConfig(2, channels, out, [3, 3, 3], [3, 3, 3], [1, stride, stride], [1, 2, 2])

    return MViT(spatial_size=(48, 48), temporal_size=4, block_setting=[block(16, 16, 1), block(16, 32, 2), block(32, 32, 1)], residual_pool=True,
                residual_with_cls_embed=False, rel_pos_embed=True, proj_after_attn=True, num_classes=10)


# Networks of torchvision that are too large as they are named, made from their parts.
_OF_PARTS: dict[str, Callable[[], Any]] = {
    "alexnet": lambda: _vgg("alexnet"), "vgg11_bn": lambda: _vgg("vgg11_bn"), "vgg16": lambda: _vgg("vgg16"),
    "vit_b_16": lambda: _vit(16), "vit_b_32": lambda: _vit(32), "maxvit_t": _maxvit, "s3d": _s3d, "mvit_v2_s": _mvit,
}


def _timm(name: str, side: int, of_size: bool) -> Network:
    def make() -> Any:
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, **({"img_size": side} if of_size else {}), **SHALLOW.get(name, {}))

    return Network(make, (3, side, side))


IMAGE = (3, 64, 64)
SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "image_size": 64, "patch_size": 16}
SPEECH: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "conv_dim": (16, 16, 16), "conv_kernel": (10, 3, 3),
                          "conv_stride": (5, 4, 2), "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "vocab_size": 20}
STAGES: dict[str, Any] = {"hidden_sizes": [16, 32], "depths": [1, 2], "embedding_size": 16}
RESNET: dict[str, Any] = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
DETR: dict[str, Any] = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32,
                        "decoder_ffn_dim": 32, "num_queries": 10}

WAVEFORM: tuple[str, dict[str, Any]] = ("Wav2Vec2FeatureExtractor", {})

# Of transformers: keys of the configuration, the shape of one sample, and class and keys of the processor.
TRANSFORMERS: dict[str, tuple[Any, ...]] = {
    "ViTForImageClassification": (SMALL, IMAGE), "ViTModel": (SMALL, IMAGE), "DeiTForImageClassification": (SMALL, IMAGE), "BeitForImageClassification": (SMALL, IMAGE),
    "Dinov2ForImageClassification": (SMALL, IMAGE), "Dinov2WithRegistersModel": (SMALL, IMAGE), "DINOv3ViTModel": (SMALL, IMAGE), "IJepaForImageClassification": (SMALL, IMAGE),
    "ViTMSNForImageClassification": (SMALL, IMAGE), "ViTMAEModel": ({**SMALL, "mask_ratio": 0.0}, IMAGE), "YolosForObjectDetection": ({**SMALL, "image_size": [64, 64]}, IMAGE),
    "CLIPVisionModel": (SMALL, IMAGE), "CLIPVisionModelWithProjection": (SMALL, IMAGE), "SiglipVisionModel": (SMALL, IMAGE),
    "ChineseCLIPVisionModel": (SMALL, IMAGE), "Data2VecVisionForImageClassification": (SMALL, IMAGE), "GLPNForDepthEstimation": (
        {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2], "decoder_hidden_size": 16}, IMAGE),
    "ResNetForImageClassification": ({**STAGES, "layer_type": "basic"}, IMAGE), "RegNetForImageClassification": ({**STAGES, "groups_width": 8}, IMAGE),
    "ConvNextForImageClassification": ({"hidden_sizes": [16, 32], "depths": [1, 2], "num_stages": 2}, IMAGE), "ConvNextV2ForImageClassification": (
        {"hidden_sizes": [16, 32], "depths": [1, 2], "num_stages": 2}, IMAGE),
    "SwinForImageClassification": ({"image_size": 64, "embed_dim": 16, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4}, IMAGE),
    "Swinv2ForImageClassification": ({"image_size": 64, "embed_dim": 16, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4}, IMAGE),
    "Swin2SRForImageSuperResolution": ({"image_size": 32, "embed_dim": 16, "depths": [1], "num_heads": [2], "window_size": 4}, (3, 32, 32)),
    "SegformerForSemanticSegmentation": ({"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2], "decoder_hidden_size": 16}, IMAGE),
    "PvtForImageClassification": ({"image_size": 64, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]}, IMAGE),
    "PvtV2ForImageClassification": ({"image_size": 64, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2]}, IMAGE),
    "PoolFormerForImageClassification": ({"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}, IMAGE),
    "MobileNetV1ForImageClassification": ({"depth_multiplier": 0.25}, IMAGE), "MobileNetV2ForImageClassification": ({"depth_multiplier": 0.35}, IMAGE),
    "MobileViTForImageClassification": ({"image_size": 64}, IMAGE), "MobileViTV2ForImageClassification": ({"image_size": 64, "width_multiplier": 0.5}, IMAGE),
    "EfficientNetForImageClassification": ({"width_coefficient": 0.25, "depth_coefficient": 0.5, "hidden_dim": 320}, IMAGE),
    "BitForImageClassification": ({"hidden_sizes": [32, 64], "depths": [1, 1], "embedding_size": 16, "num_groups": 8}, IMAGE),
    "LevitForImageClassification": ({"image_size": 64, "hidden_sizes": [16, 32, 48], "depths": [1, 1, 1], "num_attention_heads": [2, 2, 2], "key_dim": [8, 8, 8],
                                     "down_ops": [["Subsample", 8, 2, 4, 2, 2], ["Subsample", 8, 4, 4, 2, 2]]}, IMAGE),
    "CvtForImageClassification": ({"depth": [1, 2, 3], "embed_dim": [16, 32, 64], "num_heads": [1, 2, 4]}, IMAGE), "FocalNetForImageClassification": (
        {"image_size": 64, "embed_dim": 16, "depths": [1, 1], "focal_levels": [2, 2], "focal_windows": [3, 3]}, IMAGE),
    "HieraForImageClassification": ({"image_size": [64, 64], "embed_dim": 16, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2]}, IMAGE),
    "TimesformerForVideoClassification": ({**SMALL, "num_frames": 4}, (4, 3, 64, 64)), "VideoMAEForVideoClassification": ({**SMALL, "num_frames": 4}, (4, 3, 64, 64)),
    "VivitForVideoClassification": ({**SMALL, "num_frames": 4, "tubelet_size": [2, 16, 16]}, (4, 3, 64, 64)),
    "VJEPA2ForVideoClassification": ({"crop_size": 64, "frames_per_clip": 4, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "pred_hidden_size": 24,
                                      "pred_num_hidden_layers": 2, "pred_num_attention_heads": 2, "num_pooler_layers": 1}, (4, 3, 64, 64)),
    "DetrForObjectDetection": ({**DETR, "use_timm_backbone": False, "backbone": None, "backbone_config": {"model_type": "resnet", **STAGES, "out_features": ["stage2"]}}, IMAGE),
    "ConditionalDetrForObjectDetection": ({**DETR, "use_timm_backbone": False, "backbone": None, "backbone_config": {"model_type": "resnet", **STAGES, "out_features": ["stage2"]}}, IMAGE),
    "Wav2Vec2ForSequenceClassification": (SPEECH, (4000,), WAVEFORM), "Wav2Vec2ForCTC": (SPEECH, (4000,), WAVEFORM), "HubertForSequenceClassification": (SPEECH, (4000,), WAVEFORM), "WavLMModel": (SPEECH, (4000,), WAVEFORM),
    "SEWForSequenceClassification": ({**SPEECH, "squeeze_factor": 2}, (4000,), WAVEFORM), "UniSpeechSatModel": (SPEECH, (4000,), WAVEFORM), "Data2VecAudioModel": (SPEECH, (4000,), WAVEFORM),
    "ASTForAudioClassification": ({**SMALL, "max_length": 64, "num_mel_bins": 32}, (64, 32), ("ASTFeatureExtractor", {"num_mel_bins": 32, "max_length": 64})), "WhisperForAudioClassification": (
        {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 64, "num_mel_bins": 16, "max_source_positions": 50, "decoder_layers": 1,
         "decoder_attention_heads": 2, "decoder_ffn_dim": 32}, (16, 100), ("WhisperFeatureExtractor", {"feature_size": 16, "chunk_length": 1})),
    "Wav2Vec2ConformerModel": ({**SPEECH, "position_embeddings_type": "relative"}, (4000,), WAVEFORM),
    "EncodecModel": ({}, (1, 6400)),
}


def _transformers(name: str, keys: dict[str, Any], shape: tuple[int, ...], processor: tuple[str, dict[str, Any]] | None = None) -> Network:
    def make() -> Any:
        import transformers

        return (found := getattr(transformers, name))(found.config_class(**keys))

    def extractor() -> Any:
        import transformers

        assert processor is not None
        return getattr(transformers, processor[0])(**processor[1])

    return Network(make, shape, extractor if processor else None)
