"""A runtime of MLServer for ONNX files."""

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Onnx(MLModel):
    async def load(self):
        self.session = onnxruntime.InferenceSession(self.settings.parameters.uri)
        return True

    async def predict(self, payload):
        inputs = {i.name: NumpyCodec.decode_input(i) for i in payload.inputs}
        names = [o.name for o in self.session.get_outputs()]
        outputs = zip(names, self.session.run(names, inputs))
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output(name, x) for name, x in outputs])
