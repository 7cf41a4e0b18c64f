"""KServe's server of an ONNX file, and of its gradients: kserve_onnx.py FILE [GRADIENTS] --http_port=PORT."""

import sys

import onnxruntime
from kserve import InferOutput, InferResponse, Model, ModelServer
from onnx_gradients import GRADIENT, Gradients


def answer(model, payload, found):
    outputs = []
    for name, x in found.items():
        out = InferOutput(name=name, shape=list(x.shape), datatype="FP32")
        out.set_data_from_numpy(x, binary_data=True)
        outputs.append(out)
    return InferResponse(response_id=payload.id or "0", model_name=model.name, infer_outputs=outputs)


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
        return answer(self, payload, dict(zip(names, self.session.run(names, {i.name: i.as_numpy() for i in payload.inputs}))))


class Vjp(Model):
    def __init__(self, path):
        super().__init__("net.vjp")
        self.network = Gradients(path)
        self.ready = True

    def get_input_types(self):
        return [{"name": name, "datatype": "FP32", "shape": [-1]} for name in self.network.inputs]

    def get_output_types(self):
        return [{"name": GRADIENT, "datatype": "FP32", "shape": [-1]}]

    def predict(self, payload, headers=None):
        return answer(self, payload, self.network.run({i.name: i.as_numpy() for i in payload.inputs}, [o.name for o in payload.request_outputs]))


models = [Onnx(sys.argv.pop(1))]
if not sys.argv[1].startswith("--"):
    models.append(Vjp(sys.argv.pop(1)))
ModelServer(enable_grpc=False).start(models)
