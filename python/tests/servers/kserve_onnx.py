"""KServe's server of ONNX files: kserve_onnx.py NAME=FILE ... --http_port=PORT."""

import sys

import numpy
import onnxruntime
from kserve import InferOutput, InferResponse, Model, ModelServer


class Onnx(Model):
    def __init__(self, name, path):
        super().__init__(name)
        self.session = onnxruntime.InferenceSession(path)
        self.ready = True

    def get_input_types(self):
        return [{"name": i.name, "datatype": "FP32", "shape": [-1, *i.shape[1:]]} for i in self.session.get_inputs()]

    def get_output_types(self):
        return [{"name": o.name, "datatype": "FP32", "shape": [-1]} for o in self.session.get_outputs()]

    def predict(self, payload, headers=None):
        names = [o.name for o in self.session.get_outputs()]
        given = {i.name: i.as_numpy() for i in payload.inputs}
        n = len(next(iter(given.values())))
        for i in self.session.get_inputs():  # a cotangent that is not given is 0
            given.setdefault(i.name, numpy.zeros((n, *i.shape[1:]), numpy.float32))
        outputs = []
        for name, x in zip(names, self.session.run(names, given)):
            out = InferOutput(name=name, shape=list(x.shape), datatype="FP32")
            out.set_data_from_numpy(x, binary_data=True)
            outputs.append(out)
        return InferResponse(response_id=payload.id or "0", model_name=self.name, infer_outputs=outputs)


models = [a for a in sys.argv[1:] if not a.startswith("--")]
sys.argv = [a for a in sys.argv if a not in models]
ModelServer(enable_grpc=False).start([Onnx(*m.split("=", 1)) for m in models])
