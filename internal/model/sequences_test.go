package model_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/onnx"
)

// TestValuesThatAreNoTensors opens graphs with sequences, optionals and maps, inside and among the
// outputs. They are no layers, the tensors around them are, and the scores of classes are found.
func TestValuesThatAreNoTensors(t *testing.T) {
	t.Parallel()
	split := func(b *onnx.Builder) onnx.Value {
		z := b.Mul(addInput(b), b.Scalar(2))
		return b.Op("SplitToSequence", onnx.Attrs{"axis": 1}, z, b.Int(1))
	}
	for name, c := range map[string]struct {
		make   func(b *onnx.Builder)
		layers []string // some that there are
		none   []string // some that there are not
		kind   string
		names  []string // of classes
	}{
		"a sequence inside": {make: func(b *onnx.Builder) {
			s := split(b)
			b.Output("s", s)
			b.Output("logits", b.Concat(1, b.Op("SequenceAt", nil, s, b.Int(2)), b.Op("SequenceAt", nil, s, b.Int(0))))
		}, layers: []string{"logits"}, none: []string{"s"}, kind: "logits"},
		"a sequence among the outputs": {make: func(b *onnx.Builder) {
			s := split(b)
			b.Output("s", s)
			b.Output("logits", b.Op("ConcatFromSequence", onnx.Attrs{"axis": 1}, s))
		}, layers: []string{"logits"}, none: []string{"s"}, kind: "logits"},
		"a sequence that is built": {make: func(b *onnx.Builder) {
			x := addInput(b)
			s := b.Op("SequenceInsert", nil, b.Op("SequenceEmpty", nil), x)
			b.Output("s", b.Op("SequenceErase", nil, b.Op("SequenceInsert", nil, s, b.Relu(x))))
			b.Output("n", b.Op("SequenceLength", nil, s))
			b.Output("logits", b.Op("SequenceAt", nil, b.Op("SequenceConstruct", nil, x, b.Mul(x, x)), b.Int(1)))
		}, layers: []string{"logits"}, none: []string{"s", "n"}, kind: "logits"},
		"an optional": {make: func(b *onnx.Builder) {
			o := b.Op("Optional", nil, addInput(b))
			b.Output("o", o)
			b.Output("has", b.Op("OptionalHasElement", nil, o))
			b.Output("logits", b.Softmax(b.Op("OptionalGetElement", nil, o), 1))
		}, layers: []string{"logits"}, none: []string{"o", "has"}, kind: "probabilities"},
		"an optional sequence": {make: func(b *onnx.Builder) {
			o := b.Op("Optional", nil, split(b))
			s := b.Op("OptionalGetElement", nil, o)
			b.Output("o", o)
			b.Output("s", s)
			b.Output("logits", b.Op("ConcatFromSequence", onnx.Attrs{"axis": 1}, s))
		}, layers: []string{"logits"}, none: []string{"o", "s"}, kind: "logits"},
		"maps": {make: func(b *onnx.Builder) {
			b.NeedDomain("ai.onnx.ml", 3)
			p := b.Softmax(addInput(b), 1)
			b.Output("label", b.Op("ArgMax", onnx.Attrs{"axis": 1, "keepdims": 0}, p))
			b.Output("maps", b.Node("ai.onnx.ml", "ZipMap", 1, onnx.Attrs{"classlabels_strings": []string{"u", "w", "v"}}, p)[0])
		}, none: []string{"label", "maps"}, kind: "probabilities", names: []string{"u", "w", "v"}},
	} {
		m, err := modeltest.Open(t, save(t, c.make), model.Options{Layers: []string{"all"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		layers := onnx.Names(m.Layers())
		for _, l := range c.layers {
			if !slices.Contains(layers, l) {
				t.Errorf("%s: layers %q lack %q", name, layers, l)
			}
		}
		for _, l := range c.none {
			if slices.Contains(layers, l) {
				t.Errorf("%s: layers %q contain %q", name, layers, l)
			}
		}
		names, err := m.ClassNames()
		if m.Scores() != c.kind || err != nil || !slices.Equal(names, c.names) {
			t.Errorf("%s: %s (%s) of classes %q, error %v; want %s of %q", name, m.Scores(), m.ScoresBasis(), names, err, c.kind, c.names)
		}
	}
}
