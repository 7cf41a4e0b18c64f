"""Time an engine alone, on two threads: python bare.py MODEL SIZE BATCH output|all|relu [openvino].

The engine is ONNX Runtime, or OpenVINO in float32. output reads the model's outputs, all every
tensor that a node of the model computes, relu those of its ReLUs. Print a JSON object with the
median of the seconds and the images per second.
"""

import json
import resource
import statistics
import sys
import time

import numpy as np
import onnx


def with_outputs(path, which):
    """Return a model of which the wanted tensors are outputs."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    known = {o.name for o in model.graph.output}
    floats = {v.name for v in model.graph.value_info if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
    for node in model.graph.node:
        if which == "all" or which == "relu" and node.op_type == "Relu":
            model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in node.output if n in floats - known)
    return model


def onnxruntime_run(model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {session.get_inputs()[0].name: x})


def openvino_run(model):
    import io

    import openvino

    for o in model.graph.output:  # OpenVINO needs their types
        o.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    settings = {"INFERENCE_NUM_THREADS": 2, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(io.BytesIO(model.SerializeToString())), "CPU", settings)
    request = compiled.create_infer_request()
    return lambda x: list(request.infer([x]).values())


def main(path, size, batch, which, engine="onnxruntime"):
    model = with_outputs(path, which)
    run = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}[engine](model)
    x = np.random.default_rng(0).random((batch, 3, size, size), dtype=np.float32)
    times = []
    for i in range(9):
        start = time.perf_counter()
        outputs = run(x)
        if i >= 2:
            times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": round(seconds, 5), "per_second": round(batch / seconds, 2), "peak_mib": peak, "outputs": len(outputs)}))


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
