"""Networks of torchvision, timm and transformers, with which the export and the serving of modules are tested."""
