package onnx

import (
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// Layers returns the float32 tensors that depend on an input's values, in the order of computation,
// outside subgraphs. Shape and Axes are not set: a runtime and package infer return them.
func (m *Model) Layers() []tensor.Layer {
	types := m.ElementTypes()
	depth := m.depths()
	var layers []tensor.Layer
	for _, n := range m.proto.Graph.Node {
		for _, out := range n.Output {
			d, ok := depth[out]
			if !ok || types[out] != Float {
				continue
			}
			layers = append(layers, tensor.Layer{Name: out, Op: n.GetOpType(), Node: n.GetName(), Depth: d})
		}
	}
	return layers
}

// depths returns the number of nodes on the longest path from an input to each tensor that depends
// on one's values.
func (m *Model) depths() map[string]int {
	depth := map[string]int{}
	for _, in := range m.proto.Graph.Input {
		depth[in.GetName()] = 0
	}
	for _, n := range m.proto.Graph.Node {
		d := -1
		if !ReadsShapeOnly(n) {
			for _, name := range Reads(n) {
				if at, ok := depth[name]; ok {
					d = max(d, at)
				}
			}
		}
		if d < 0 {
			continue
		}
		for _, out := range n.Output {
			if out != "" {
				depth[out] = d + 1
			}
		}
	}
	return depth
}

// ReadsShapeOnly reports whether a node reads only the shape of its input and not the values.
func ReadsShapeOnly(n *pb.NodeProto) bool {
	switch n.GetOpType() {
	case "Shape", "Size", "EyeLike", "RandomNormalLike", "RandomUniformLike":
		return true
	}
	return false
}

// Names returns the names of layers, in order.
func Names(layers []tensor.Layer) []string {
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = l.Name
	}
	return names
}
