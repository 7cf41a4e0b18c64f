package infer

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// InputLike declares an input with the type and shape of the tensor v of the graph, as far as they
// are known.
func InputLike(b *onnx.Builder, name string, v onnx.Value) onnx.Value {
	like, ok := b.Find(v)
	if !ok {
		b.Fail("input %q: tensor %q, whose shape it takes, does not exist", name, v)
		return ""
	}
	return b.InputInfo(infoLike(b, name, like))
}

// OutputLike declares v an output of the given name, as Builder.Output does (it renames v or copies
// it), with the type and shape of the tensor like.
func OutputLike(b *onnx.Builder, name string, v, like onnx.Value) {
	like, ok := b.Find(like)
	if !ok {
		b.Fail("output %q: tensor %q, whose shape it takes, does not exist", name, like)
		return
	}
	b.OutputInfo(infoLike(b, name, like), v)
}

// infoLike describes a tensor of the type and shape of v. Free dimensions keep the names that the
// graph declares, if v is its input or output.
func infoLike(b *onnx.Builder, name string, v onnx.Value) onnx.ValueInfo {
	for _, p := range slices.Concat(b.Inputs(), b.Snapshot().Outputs()) {
		if p.Name == string(v) && p.Shape != nil {
			p.Name = name
			return p
		}
	}
	s := Analyze(b.Snapshot())
	p := onnx.ValueInfo{Name: name, Type: s.Type(string(v))}
	if shape := s.Shape(string(v)); shape != nil {
		p.Shape = make([]onnx.Dim, len(shape))
		for i, d := range shape {
			p.Shape[i].Size = max(d, -1)
		}
	}
	return p
}
