package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/spelling"
	"github.com/noether-ml/noether/onnx/pb"
)

// Select chooses layers: the union of what the patterns match, in the order of computation. A
// pattern is
//
//	all           every layer
//	op:TYPE       what operators of the type produce, for instance op:Relu; case does not matter
//	residual      the sums that end residual blocks
//	penultimate   the representation that the final classifier reads: see WithClassifier
//	output        the model's outputs
//	a name        of a tensor, where * stands for any characters (also "/") and ? for one
//
// A pattern that matches nothing is an error that names what is near.
func (m *Model) Select(patterns ...string) ([]Layer, error) {
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
	return slices.DeleteFunc(layers, func(l Layer) bool { return !chosen[l.Name] }), nil
}

func (m *Model) match(layers []Layer, pattern string) ([]string, error) {
	switch op, isOp := strings.CutPrefix(pattern, "op:"); {
	case pattern == "all" && len(layers) == 0:
		return nil, fmt.Errorf("the model has no layer: no float32 tensor depends on its input")
	case pattern == "all":
		return Names(layers), nil
	case pattern == "penultimate":
		return m.penultimate(layers)
	case pattern == "residual":
		return m.residual(layers)
	case pattern == "output":
		return m.outputLayers(layers)
	case isOp:
		match := func(l Layer) bool { return strings.EqualFold(l.Op, op) }
		return matching(layers, match, pattern, "op:", func(l Layer) string { return l.Op })
	}
	match := func(l Layer) bool { return l.Name == pattern || glob(pattern, l.Name) }
	names, err := matching(layers, match, pattern, "", func(l Layer) string { return l.Name })
	if known := []string{"all", "residual", "penultimate", "output"}; err != nil && spelling.Distance(pattern, spelling.Nearest(pattern, known, 1)[0]) <= 2 {
		return nil, fmt.Errorf("no layer matches %q: did you mean %q?", pattern, spelling.Nearest(pattern, known, 1)[0])
	}
	return names, err
}

// matching are the names of the layers that match; if none does, an error that offers the nearest
// words.
func matching(layers []Layer, match func(Layer) bool, pattern, prefix string, word func(Layer) string) ([]string, error) {
	var names, words []string
	for _, l := range layers {
		words = append(words, word(l))
		if match(l) {
			names = append(names, l.Name)
		}
	}
	if names == nil {
		return nil, fmt.Errorf("no layer matches %q%s", pattern, offer(strings.TrimPrefix(pattern, prefix), prefix, words))
	}
	return names, nil
}

// outputLayers are the layers among the model's outputs.
func (m *Model) outputLayers(layers []Layer) ([]string, error) {
	var names []string
	for _, out := range m.proto.Graph.Output {
		if slices.ContainsFunc(layers, func(l Layer) bool { return l.Name == out.GetName() }) {
			names = append(names, out.GetName())
		}
	}
	if names == nil {
		return nil, fmt.Errorf("none of the model's outputs is a float32 tensor that depends on its input")
	}
	return names, nil
}

// WithClassifier returns a model whose penultimate layer is looked for before the named output.
// Without it, it is that of the first output that has one: of an embedding that is scaled to unit
// length there is none.
func (m *Model) WithClassifier(output string) (*Model, error) {
	if !slices.ContainsFunc(m.proto.Graph.Output, func(out *pb.ValueInfoProto) bool { return out.GetName() == output }) {
		return nil, fmt.Errorf("the model has no output %q", output)
	}
	c := *m
	c.final = output
	return &c, nil
}

// penultimate is what the classifier before the chosen output reads, else the first output that has
// one.
func (m *Model) penultimate(layers []Layer) ([]string, error) {
	outputs, err := m.outputLayers(layers)
	if m.final != "" {
		outputs = []string{m.final}
	} else if err != nil {
		return nil, err
	}
	for _, output := range outputs {
		if name := m.readByClassifier(layers, output); name != "" {
			return []string{name}, nil
		}
	}
	return nil, fmt.Errorf("no classifier is found before output %q, so there is no penultimate layer: choose it by name", outputs[0])
}

// readByClassifier walks back from an output, past what only reshapes, pools, scales or squashes,
// to the last operator with weights (Gemm, MatMul, Conv), and takes what it reads; "" where there
// is no such operator.
func (m *Model) readByClassifier(layers []Layer, name string) string {
	depth := m.depths()
	makers := map[string]*pb.NodeProto{}
	for _, n := range m.proto.Graph.Node {
		for _, out := range n.Output {
			makers[out] = n
		}
	}
	for n := makers[name]; n != nil; n = makers[name] {
		data := slices.DeleteFunc(slices.Clone(n.Input), func(in string) bool { _, ok := depth[in]; return !ok })
		if len(data) != 1 {
			break
		}
		name = data[0]
		if weighted(n) && slices.ContainsFunc(layers, func(l Layer) bool { return l.Name == name }) {
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

// glob reports whether a name fits a pattern in which * stands for any characters and ? for one.
func glob(pattern, name string) bool {
	star, mark := -1, 0 // where the last * is, and where in name its match ends
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

// offer phrases which of the words are nearest to one that was not found.
func offer(word, prefix string, words []string) string {
	if len(words) == 0 {
		return ": the model has no layers"
	}
	words = spelling.Nearest(strings.NewReplacer("*", "", "?", "").Replace(word), words, 3)
	for i, w := range words {
		words[i] = fmt.Sprintf("%q", prefix+w)
	}
	return "; near it: " + strings.Join(words, ", ")
}
