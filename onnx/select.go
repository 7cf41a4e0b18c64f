package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/spelling"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// Select returns the layers that match any of the patterns, in the order of computation. A pattern
// is
//
//	all           every layer
//	op:TYPE       outputs of operators of the type, for instance op:Relu; case does not matter
//	residual      sums that end residual blocks
//	penultimate   input of the final classifier: see WithClassifier
//	output        the model's outputs
//	a name        the tensor of this name; * stands for any characters (also "/"), ? for one
//
// A pattern that matches nothing is an error that suggests similar names.
func (m *Model) Select(patterns ...string) ([]tensor.Layer, error) {
	layers := m.Layers()
	chosen := map[string]bool{}
	for _, pattern := range patterns {
		names, err := m.match(layers, pattern)
		if err != nil {
			return nil, fmt.Errorf("choosing layers: %w", err)
		}
		for _, name := range names {
			chosen[name] = true
		}
	}
	return slices.DeleteFunc(layers, func(l tensor.Layer) bool { return !chosen[l.Name] }), nil
}

func (m *Model) match(layers []tensor.Layer, pattern string) ([]string, error) {
	switch pattern {
	case "penultimate":
		return m.penultimate(layers)
	case "residual":
		return m.residual(layers)
	case "output":
		return m.outputLayers(layers)
	}
	names, err := matchLayers(layers, pattern)
	if err == nil {
		return names, nil
	}
	aliased := map[string]bool{}
	for alias, name := range m.aliases {
		if alias == pattern || glob(pattern, alias) {
			aliased[name] = true
		}
	}
	for _, l := range layers {
		if aliased[l.Name] {
			names = append(names, l.Name)
		}
	}
	if names != nil {
		return names, nil
	}
	for _, out := range m.proto.Graph.Output {
		if name := out.GetName(); name == pattern || glob(pattern, name) {
			return nil, fmt.Errorf("no layer matches %q: output %q is no float32 tensor that depends on the input, as layers are", pattern, name)
		}
	}
	return nil, err
}

// SelectLayers is Select for one pattern without a graph: outputs names the outputs, residual and
// penultimate match nothing.
func SelectLayers(layers []tensor.Layer, outputs []string, pattern string) ([]tensor.Layer, error) {
	names := outputs
	if pattern != "output" {
		var err error
		if names, err = matchLayers(layers, pattern); err != nil {
			return nil, fmt.Errorf("choosing layers: %w", err)
		}
	}
	return slices.DeleteFunc(slices.Clone(layers), func(l tensor.Layer) bool { return !slices.Contains(names, l.Name) }), nil
}

func matchLayers(layers []tensor.Layer, pattern string) ([]string, error) {
	switch op, isOp := strings.CutPrefix(pattern, "op:"); {
	case pattern == "all" && len(layers) == 0:
		return nil, fmt.Errorf("the model has no layer: no float32 tensor depends on its input")
	case pattern == "all":
		return Names(layers), nil
	case isOp:
		match := func(l tensor.Layer) bool { return strings.EqualFold(l.Op, op) }
		return matching(layers, match, pattern, "op:", func(l tensor.Layer) string { return l.Op })
	}
	match := func(l tensor.Layer) bool { return l.Name == pattern || glob(pattern, l.Name) }
	names, err := matching(layers, match, pattern, "", func(l tensor.Layer) string { return l.Name })
	if known := []string{"all", "residual", "penultimate", "output"}; err != nil && spelling.Distance(pattern, spelling.Nearest(pattern, known, 1)[0]) <= 2 {
		return nil, fmt.Errorf("no layer matches %q: did you mean %q?", pattern, spelling.Nearest(pattern, known, 1)[0])
	}
	return names, err
}

// matching returns the layers that match. The error for none suggests prefix and the words of
// layers most similar to the pattern.
func matching(layers []tensor.Layer, match func(tensor.Layer) bool, pattern, prefix string, word func(tensor.Layer) string) ([]string, error) {
	var names, words []string
	for _, l := range layers {
		words = append(words, word(l))
		if match(l) {
			names = append(names, l.Name)
		}
	}
	if names == nil {
		return nil, fmt.Errorf("no layer matches %q%s", pattern, suggest(strings.TrimPrefix(pattern, prefix), prefix, words))
	}
	return names, nil
}

func (m *Model) outputLayers(layers []tensor.Layer) ([]string, error) {
	var names []string
	for _, out := range m.proto.Graph.Output {
		if slices.ContainsFunc(layers, func(l tensor.Layer) bool { return l.Name == out.GetName() }) {
			names = append(names, out.GetName())
		}
	}
	if names == nil {
		return nil, fmt.Errorf("none of the model's outputs is a float32 tensor that depends on its input")
	}
	return names, nil
}

// WithClassifier states the output in which the classifier ends, for the pattern "penultimate". The
// default is the first output with one; an embedding scaled to unit length has none.
func (m *Model) WithClassifier(output string) (*Model, error) {
	if !slices.ContainsFunc(m.proto.Graph.Output, func(out *pb.ValueInfoProto) bool { return out.GetName() == output }) {
		return nil, fmt.Errorf("the model has no output %q", output)
	}
	c := *m
	c.classifierOutput = output
	return &c, nil
}

// penultimate returns the classifier's input, by default of the first output with a classifier.
func (m *Model) penultimate(layers []tensor.Layer) ([]string, error) {
	outputs, err := m.outputLayers(layers)
	if m.classifierOutput != "" {
		outputs = []string{m.classifierOutput}
	} else if err != nil {
		return nil, err
	}
	for _, output := range outputs {
		if name := m.readByClassifier(layers, output); name != "" {
			return []string{name}, nil
		}
	}
	return nil, fmt.Errorf("output %q has no classifier, so there is no penultimate layer: select a layer by name", outputs[0])
}

// readByClassifier returns the input of the last Gemm, MatMul, Conv or ConvTranspose before an
// output, or "". Between them are only operators with one input that depends on the data.
func (m *Model) readByClassifier(layers []tensor.Layer, name string) string {
	depth := m.depths()
	producers := map[string]*pb.NodeProto{}
	for _, n := range m.proto.Graph.Node {
		for _, out := range n.Output {
			producers[out] = n
		}
	}
	for n := producers[name]; n != nil; n = producers[name] {
		data := slices.DeleteFunc(slices.Clone(n.Input), func(in string) bool { _, ok := depth[in]; return !ok })
		if len(data) != 1 {
			break
		}
		name = data[0]
		if weighted(n) && slices.ContainsFunc(layers, func(l tensor.Layer) bool { return l.Name == name }) {
			return name
		}
	}
	return ""
}

func weighted(n *pb.NodeProto) bool {
	switch n.GetOpType() {
	case "Gemm", "MatMul", "Conv", "ConvTranspose":
		return true
	}
	return false
}

// glob reports whether a name matches a pattern in which * stands for any characters and ? for one.
func glob(pattern, name string) bool {
	star, mark := -1, 0 // index of the last * in pattern; end of its match in name
	p, s := 0, 0
	for s < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, s
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[s]):
			p++
			s++
		case star >= 0:
			mark++
			p, s = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// suggest ends an error with the words most similar to the unknown one, prefixed.
func suggest(word, prefix string, words []string) string {
	if len(words) == 0 {
		return ": the model has no layers"
	}
	words = spelling.Nearest(strings.NewReplacer("*", "", "?", "").Replace(word), words, 3)
	for i, w := range words {
		words[i] = fmt.Sprintf("%q", prefix+w)
	}
	return "; similar names: " + strings.Join(words, ", ")
}
