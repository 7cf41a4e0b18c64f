"""Time ONNX Runtime alone, on two threads: python bare.py MODEL SIZE BATCH all|relu.

all reads every tensor that a node of the model computes, relu those of its ReLUs. Print a JSON
object with the median of the seconds and the images per second.
"""

import json
import resource
import statistics
import sys
import time

import numpy as np
import onnx
import onnxruntime


def main(path, size, batch, which):
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    known = {o.name for o in model.graph.output}
    floats = {v.name for v in model.graph.value_info if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
    for node in model.graph.node:
        if which == "all" or node.op_type == "Relu":
            model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in node.output if n in floats - known)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = {session.get_inputs()[0].name: np.random.default_rng(0).random((batch, 3, size, size), dtype=np.float32)}
    times = []
    for i in range(9):
        start = time.perf_counter()
        session.run(None, x)
        if i >= 2:
            times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": round(seconds, 5), "per_second": round(batch / seconds, 2), "peak_mib": peak, "outputs": len(session.get_outputs())}))


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
