#!/usr/bin/python3
"""Writes shapes.json.gz: the shape of every tensor of the test networks that onnx's own shape inference can tell.

usage: NOETHER_TESTDATA=DIR shapes.py        (needs the Python package onnx; written with 1.12)
The batch is 997. For each network, a map from tensor to shape.
"""
import glob, gzip, json, os

import onnx, onnx.shape_inference

here = os.path.dirname(os.path.abspath(__file__))
shapes = {}
for path in sorted(glob.glob(os.path.join(os.environ["NOETHER_TESTDATA"], "nets", "*", "model.onnx"))):
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 997
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    known = {}
    for v in list(inferred.graph.value_info) + list(inferred.graph.output):
        t = v.type.tensor_type
        if t.HasField("shape") and all(d.HasField("dim_value") for d in t.shape.dim):
            known[v.name] = [d.dim_value for d in t.shape.dim]
    shapes[os.path.basename(os.path.dirname(path))] = known
    print(path, len(known), "of", sum(len(n.output) for n in model.graph.node))
with open(os.path.join(here, "shapes.json.gz"), "wb") as raw:
    with gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as f:
        f.write(json.dumps(shapes, sort_keys=True).encode())
