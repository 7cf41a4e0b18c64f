package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// The content of an output.
const (
	logits        = "logits"
	probabilities = "probabilities"
	none          = "none"
)

// scores describes the output that scores classes, with a logit or probability for each. A model
// without class scores has kind none.
type scores struct {
	output  string // name of the tensor
	typ     engine.Type
	kind    string // logits, probabilities or none
	after   string // operator that makes them probabilities; "": none was found
	classes int    // 0 until findLayers has run, and if there are no classes
	basis   string // how the kind is known
	doubt   string // why the kind is doubtful; "": it is not
}

// findScores determines the output that scores classes and its content. A named output is also
// stated as the classifier's: the layer before it then counts as penultimate. findLayers sets the
// number of classes.
func (m *Model) findScores() error {
	switch m.options.Scores {
	case "", logits, probabilities, none:
	default:
		return settingError(fmt.Errorf("unknown scores %q: use logits, probabilities or none", m.options.Scores), "scores")
	}
	outputs := m.outputs
	if len(outputs) == 0 {
		return fmt.Errorf("the model has no output")
	}
	i := 0
	if name := m.options.Output; name != "" {
		if i = slices.IndexFunc(outputs, func(p engine.Port) bool { return p.Name == name }); i < 0 {
			return settingError(fmt.Errorf("unknown output %q: it has %s", name, list(outputs)), "output")
		}
	}
	if m.options.Output == "" {
		i = findScoresOutput(outputs, m.nodes())
	} else if m.source != nil {
		err := m.rewrite(func(graph *onnx.Model) (*onnx.Model, error) { return graph.WithClassifier(m.options.Output) })
		if err != nil {
			return err
		}
	}
	m.scores = scores{output: outputs[i].Name, typ: outputs[i].Type, kind: m.options.Scores}
	if m.scores.kind == "" && m.source == nil && len(outputs) > 1 && m.options.Output == "" && !scoresByName(m.scores.output) {
		m.scores.kind = none
	}
	if m.scores.kind == "" {
		m.scores.kind, m.scores.after = guessScores(m.nodes(), m.scores.output)
		if m.scores.basis = "no softmax or sigmoid is before it"; m.scores.after != "" {
			m.scores.basis = fmt.Sprintf("a %s is before it", m.scores.after)
		}
	}
	return nil
}

// findScoresOutput returns the index of the output that most likely scores classes. Such an output
// is float, has two axes, and is neither an embedding nor boxes. Its rating is raised by its name,
// by a softmax before or after it, and by a size other than the four coordinates of a box. Of
// outputs with the same rating the first is returned. If no output qualifies, the result is the
// first float output with two axes, or 0.
func findScoresOutput(outputs []engine.Port, nodes []*pb.NodeProto) int {
	best, bestRating, fallback := -1, -1, -1
	for i, p := range outputs {
		sizes := p.Sizes()
		if len(sizes) != 2 || sizes[1] == 0 || sizes[1] == 1 || p.Type != engine.Float && p.Type != engine.Double {
			continue
		}
		if fallback < 0 {
			fallback = i
		}
		if kind, _ := guessScores(nodes, p.Name); kind == none || feedsClassifier(outputs, nodes, p.Name) {
			continue
		}
		rating := 0
		if scoresByName(p.Name) {
			rating += 4
		}
		for _, n := range nodes {
			switch op := n.GetOpType(); {
			case op != "Softmax" && op != "LogSoftmax":
			case slices.Contains(n.Input, p.Name):
				rating += 3 // logits
			case slices.Contains(n.Output, p.Name):
				rating += 2
			}
		}
		if sizes[1] > 0 && sizes[1] != 4 {
			rating++
		}
		if rating > bestRating {
			best, bestRating = i, rating
		}
	}
	if best < 0 {
		best = max(fallback, 0)
	}
	return best
}

// scoresByName reports whether the name of an output is usual for class scores.
func scoresByName(name string) bool {
	return containsAny(name, "logit", "prob", "class", "score", "cls", "label", "softmax", "pred")
}

// containsAny reports whether a name contains one of the words.
func containsAny(name string, words ...string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

// feedsClassifier reports whether another output is computed from this one by a layer with weights,
// as a classifier is computed from an embedding. An output that only rescales this one, as
// probabilities rescale logits, does not count.
func feedsClassifier(outputs []engine.Port, nodes []*pb.NodeProto, output string) bool {
	// layered has the tensors that are computed from the output: true if a layer with weights is
	// between.
	layered := map[string]bool{output: false}
	for _, n := range nodes {
		for _, in := range n.Input {
			behind, ok := layered[in]
			if !ok {
				continue
			}
			switch n.GetOpType() {
			case "Gemm", "MatMul", "Conv":
				behind = true
			}
			for _, out := range n.Output {
				layered[out] = layered[out] || behind
			}
		}
	}
	return slices.ContainsFunc(outputs, func(p engine.Port) bool { return layered[p.Name] })
}

// setClasses sets the number of classes. shape is that of one sample of the output, nil if its
// first axis is not the batch. If the output is not one number for each of at least two classes,
// the kind becomes none; this is an error if the options set the kind (explicit).
func (s *scores) setClasses(shape []int, explicit bool) error {
	number := s.typ == engine.Float || s.typ == engine.Double
	switch {
	case s.kind == none:
	case number && len(shape) > 0 && shape[0] > 1 && tensor.Size(shape) == shape[0]:
		s.classes = shape[0]
	case explicit:
		return settingError(fmt.Errorf("output %q is set to %s of classes, but a sample is %v of shape %v, not one number per class", s.output, s.kind, s.typ, shape), "scores")
	default:
		s.kind = none
	}
	return nil
}

// guessScores returns the content of an output, judged by its name and the operators that compute
// it: none if its name is that of an embedding or of positions in the image, or if it is scaled to
// unit length; probabilities after a softmax or sigmoid, whose operator is the result after; else
// logits, since logits look like any other vector. Operators that keep values, but for rounding and
// their order, are passed.
func guessScores(nodes []*pb.NodeProto, output string) (kind, after string) {
	producers := map[string]*pb.NodeProto{}
	for _, n := range nodes {
		for _, out := range n.Output {
			producers[out] = n
		}
	}
	if containsAny(output, "embed", "feature", "hidden", "pooler", "box", "coord", "landmark", "keypoint") {
		return none, ""
	}
	// The graph has been checked for cycles, and every operator in this loop has the inputs that
	// are read.
	for name := output; ; {
		n := producers[name]
		if n == nil {
			return logits, ""
		}
		switch n.GetOpType() {
		case "Softmax", "Sigmoid", "HardSigmoid":
			return probabilities, n.GetOpType()
		case "LpNormalization":
			return none, ""
		case "Div":
			if isNorm(n.Input[1], producers) {
				return none, ""
			}
			return logits, ""
		case "Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Clip", "Dropout",
			"QuantizeLinear", "DequantizeLinear":
			name = n.Input[0]
		default:
			return logits, ""
		}
	}
}

// isNorm reports whether a divisor is a norm. Exporters write x / max(|x|, epsilon).
func isNorm(name string, producers map[string]*pb.NodeProto) bool {
	for {
		n := producers[name]
		if n == nil {
			return false
		}
		switch n.GetOpType() {
		case "ReduceL2", "ReduceSumSquare", "Pow":
			return true
		case "Expand", "Clip", "Max", "Sqrt", "Add", "Unsqueeze", "ReduceSum":
			name = n.Input[0]
		default:
			return false
		}
	}
}
