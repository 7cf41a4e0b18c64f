#!/usr/bin/python3
"""Makes the graphs of this folder with the onnx package, and golden.json with what numpy says they compute."""
import json, os
import numpy as np, onnx
from onnx import TensorProto as T, helper as h, numpy_helper

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(1)


def save(name, nodes, inputs, outputs, weights=(), **kw):
    g = h.make_graph(nodes, name, inputs, outputs, weights)
    m = h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m)
    onnx.save(m, os.path.join(here, name + ".onnx"), **kw)


io = h.make_tensor_value_info

types = dict(float=T.FLOAT, double=T.DOUBLE, int8=T.INT8, int16=T.INT16, int32=T.INT32, int64=T.INT64, uint8=T.UINT8,
             uint16=T.UINT16, uint32=T.UINT32, uint64=T.UINT64, bool=T.BOOL, float16=T.FLOAT16, bfloat16=T.BFLOAT16)
save("types", [h.make_node("Identity", [k], [k + "_out"]) for k in types],
     [io(k, t, ["n"]) for k, t in types.items()], [io(k + "_out", t, ["n"]) for k, t in types.items()])

w, b = rng.standard_normal((4, 3)).astype(np.float32), rng.standard_normal(3).astype(np.float32)
affine = [h.make_node("MatMul", ["x", "w"], ["xw"]), h.make_node("Add", ["xw", "b"], ["z"]), h.make_node("Relu", ["z"], ["y"])]
ports = [io("x", T.FLOAT, ["batch", 4])], [io("z", T.FLOAT, ["batch", 3]), io("y", T.FLOAT, ["batch", 3])]
weights = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")]
save("affine", affine, *ports, weights)
save("external", affine, *ports, [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")],
     save_as_external_data=True, location="external.bin", size_threshold=0)
x = rng.standard_normal((5, 4)).astype(np.float32)
z = x @ w + b

save("scalar", [h.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), h.make_node("Mul", ["sum", "s"], ["y"])],
     [io("x", T.FLOAT, ["n"]), io("s", T.FLOAT, [])], [io("y", T.FLOAT, [])])
save("nonzero", [h.make_node("NonZero", ["x"], ["y"])], [io("x", T.FLOAT, ["n"])], [io("y", T.INT64, [1, "k"])])

# Some seconds of work in small steps, to be cancelled.
save("slow", [h.make_node("MatMul", ["x" if i == 0 else f"x{i}", "x"], [f"x{i + 1}"]) for i in range(3000)],
     [io("x", T.FLOAT, [512, 512])], [io("x3000", T.FLOAT, [512, 512])])

json.dump({"x": x.ravel().tolist(), "z": z.ravel().tolist(), "y": np.maximum(z, 0).ravel().tolist()},
          open(os.path.join(here, "golden.json"), "w"))
