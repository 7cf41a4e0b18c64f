"""Runtimes of MLServer for ONNX files, and for their gradients."""

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse, MetadataTensor
from onnx_gradients import GRADIENT, Gradients


def answer(name, outputs):
    return InferenceResponse(model_name=name, outputs=[NumpyCodec.encode_output(k, x) for k, x in outputs.items()])


class Onnx(MLModel):
    async def load(self):
        self.session = onnxruntime.InferenceSession(self.settings.parameters.uri)
        return True

    async def predict(self, payload):
        names = [o.name for o in self.session.get_outputs()]
        given = {i.name: NumpyCodec.decode_input(i) for i in payload.inputs}
        return answer(self.name, dict(zip(names, self.session.run(names, given))))


class Vjp(MLModel):
    def tensor(self, name):
        return MetadataTensor(name=name, datatype="FP32", shape=[-1])

    async def load(self):
        self.network = Gradients(self.settings.parameters.uri)
        self.inputs = [self.tensor(name) for name in self.network.inputs]
        self.outputs = [self.tensor(GRADIENT)]
        return True

    async def predict(self, payload):
        given = {i.name: NumpyCodec.decode_input(i) for i in payload.inputs}
        return answer(self.name, self.network.run(given, [o.name for o in payload.outputs]))
