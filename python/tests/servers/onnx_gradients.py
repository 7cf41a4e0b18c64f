"""Gradients of a network as the model NAME.vjp of a server: an ONNX file that noether grad wrote, for each output in turn."""

import numpy
import onnxruntime

GRADIENT = "gradient input"


class Gradients:
    """Outputs of a network, and the gradient of their products with cotangents of a request.

    The inputs of the file are those of the network and cotangents. As many of its outputs, the
    last ones, are the gradients for these cotangents.
    """

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path)
        self.inputs = [i.name for i in self.session.get_inputs()]
        shapes = {o.name: o.shape[1:] for o in self.session.get_outputs()}
        cotangents = [name for name in self.inputs if name.startswith("cotangent ")]
        self.cotangents = {k: shapes[k.removeprefix("cotangent ")] for k in cotangents}
        self.gradients = dict(zip(cotangents, list(shapes)[-len(cotangents):]))

    def run(self, given, wanted):
        n = len(given["input"])
        zeros = {k: numpy.zeros((n, *s), numpy.float32) for k, s in self.cotangents.items()}
        layers = [name for name in wanted if name != GRADIENT]
        parts = [self.gradients[name] for name in given if name in self.gradients]
        found = self.session.run([*layers, *parts], {**zeros, **given})
        out = dict(zip(layers, found))
        if GRADIENT in wanted:
            out[GRADIENT] = sum(found[len(layers):])
        return out
