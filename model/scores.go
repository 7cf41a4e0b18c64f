package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// What an output holds.
const (
	logits        = "logits"
	probabilities = "probabilities"
	none          = "none"
)

// scores is the output that scores classes.
type scores struct {
	output  string // tensor
	typ     onnx.Type
	kind    string
	classes int // 0 until the probe, and where there are none
}

// findScores decides which output scores classes and what it holds; the probe adds how many classes there are.
func (m *Model) findScores() error {
	switch m.options.Scores {
	case "", logits, probabilities, none:
	default:
		return settingError(fmt.Errorf("scores %q: they are logits, probabilities or none", m.options.Scores), "scores")
	}
	outputs := m.graph.Outputs()
	if len(outputs) == 0 {
		return fmt.Errorf("has no output")
	}
	i := 0
	if name := m.options.Output; name != "" {
		if i = slices.IndexFunc(outputs, func(p onnx.Port) bool { return p.Name == name }); i < 0 {
			return settingError(fmt.Errorf("has no output %q: it has %s", name, list(outputs)), "output")
		}
	}
	if m.options.Output == "" {
		i = findScoresOutput(m.graph)
	} else {
		var err error
		if m.graph, err = m.graph.WithClassifier(m.options.Output); err != nil {
			return err
		}
	}
	m.scores = scores{output: outputs[i].Name, typ: outputs[i].Type, kind: m.options.Scores}
	if m.scores.kind == "" {
		m.scores.kind = guessScores(m.graph, m.scores.output)
	}
	return nil
}

// findScoresOutput returns the index of the output that most likely scores classes: float, of two
// axes, no embedding and no boxes. Its name, a softmax before or after it, and a size other than the
// four coordinates of a box speak for it; of equals it is the first. If no
// output qualifies it returns the first with two axes, or 0.
func findScoresOutput(graph *onnx.Model) int {
	best, most, fallback := -1, -1, -1
	for i, p := range graph.Outputs() {
		sizes := p.Sizes()
		if len(sizes) != 2 || sizes[1] == 0 || sizes[1] == 1 || p.Type != onnx.Float && p.Type != onnx.Double {
			continue
		}
		if fallback < 0 {
			fallback = i
		}
		if guessScores(graph, p.Name) == none || feedsClassifier(graph, p.Name) {
			continue
		}
		rating := 0
		if named(p.Name, "logit", "prob", "class", "score", "cls", "label", "softmax", "pred") {
			rating += 4
		}
		for _, n := range graph.Nodes() {
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
		if rating > most {
			best, most = i, rating
		}
	}
	if best < 0 {
		best = max(fallback, 0)
	}
	return best
}

// named reports whether a name contains one of the words.
func named(name string, words ...string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

// feedsClassifier reports whether a layer with weights computes another output from this one, as a
// classifier does from an embedding. Scores that are only scaled into another output, as logits are
// into probabilities, do not.
func feedsClassifier(graph *onnx.Model, output string) bool {
	layered := map[string]bool{output: false} // of what is computed from it, whether a layer with weights is between
	for _, n := range graph.Nodes() {
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
	return slices.ContainsFunc(graph.Outputs(), func(p onnx.Port) bool { return layered[p.Name] })
}

// setClasses takes the shape of one sample of the output, nil where its first axis is not the batch. What is not one number
// for each of two classes or more scores none, unless the caller has stated that it does.
func (s *scores) setClasses(shape []int, stated bool) error {
	number := s.typ == onnx.Float || s.typ == onnx.Double
	switch {
	case s.kind == none:
	case number && len(shape) > 0 && shape[0] > 1 && tensor.Size(shape) == shape[0]:
		s.classes = shape[0]
	case stated:
		return settingError(fmt.Errorf("output %q is to hold %s of classes, but a sample of it is %v of shape %v, not one number for each class", s.output, s.kind, s.typ, shape), "scores")
	default:
		s.kind = none
	}
	return nil
}

// guessScores tells what an output holds from the operators that end in it. Logits look like any other vector, so an
// output that ends otherwise counts as logits, unless it is scaled to unit length or named as an
// embedding or as places in the image.
func guessScores(graph *onnx.Model, output string) string {
	makers := map[string]*pb.NodeProto{}
	for _, n := range graph.Nodes() {
		for _, out := range n.Output {
			makers[out] = n
		}
	}
	if named(output, "embed", "feature", "hidden", "pooler", "box", "coord", "landmark", "keypoint") {
		return none
	}
	// A graph has been checked to have no cycle, and every operator below has the inputs that are read here.
	for name := output; ; {
		n := makers[name]
		if n == nil {
			return logits
		}
		switch n.GetOpType() {
		case "Softmax", "Sigmoid", "HardSigmoid":
			return probabilities
		case "LpNormalization":
			return none
		case "Div":
			if isNorm(n.Input[1], makers) {
				return none
			}
			return logits
		case "Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze":
			name = n.Input[0]
		default:
			return logits
		}
	}
}

// isNorm follows a divisor to a norm, as exporters write x / max(|x|, epsilon).
func isNorm(name string, makers map[string]*pb.NodeProto) bool {
	for {
		n := makers[name]
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
