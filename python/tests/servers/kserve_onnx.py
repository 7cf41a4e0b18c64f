"""KServe's server of an ONNX file: kserve_onnx.py FILE --http_port=PORT."""

import sys

import onnxruntime
from kserve import InferOutput, InferResponse, Model, ModelServer


class Onnx(Model):
    def __init__(self, path):
        super().__init__("net")
        self.session = onnxruntime.InferenceSession(path)
        self.ready = True

    def get_input_types(self):
        return [{"name": i.name, "datatype": "FP32", "shape": [-1, *i.shape[1:]]} for i in self.session.get_inputs()]

    def get_output_types(self):
        return [{"name": o.name, "datatype": "FP32", "shape": [-1]} for o in self.session.get_outputs()]

    def predict(self, payload, headers=None):
        names = [o.name for o in self.session.get_outputs()]
        outputs = []
        for name, x in zip(names, self.session.run(names, {i.name: i.as_numpy() for i in payload.inputs})):
            out = InferOutput(name=name, shape=list(x.shape), datatype="FP32")
            out.set_data_from_numpy(x, binary_data=True)
            outputs.append(out)
        return InferResponse(response_id=payload.id or "0", model_name=self.name, infer_outputs=outputs)


path = sys.argv.pop(1)
ModelServer(enable_grpc=False).start([Onnx(path)])
