package model

import (
	"fmt"
	"slices"
	"strconv"
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
	head    head
	classes int     // 0 until findLayers has run, and if there are no classes
	single  bool    // whether the output has one value, the logit or probability of the second of two classes
	total   float64 // sum of the probabilities of a sample, such as 100; 0: 1
	rivals  string  // other outputs that may score classes as well, for a doubt
	by      string  // what says that the values belong to classes; "": nothing does
	basis   string  // how the kind is known
	doubts  []string
}

// checkScores checks the settings of the output that scores classes. A named output is also stated
// as the classifier's: the layer before it then counts as penultimate.
func (m *Model) checkScores() error {
	switch m.options.Scores {
	case "", logits, probabilities, none:
	default:
		return settingError(fmt.Errorf("unknown scores %q: use logits, probabilities or none", m.options.Scores), "scores")
	}
	if len(m.outputs) == 0 {
		return fmt.Errorf("the model has no output")
	}
	name := m.options.Output
	if name == "" {
		return nil
	}
	if !slices.ContainsFunc(m.outputs, func(p engine.Port) bool { return p.Name == name }) {
		return settingError(fmt.Errorf("unknown output %q: it has %s", name, list(m.outputs)), "output")
	}
	if m.source == nil {
		return nil
	}
	return m.rewrite(func(graph *onnx.Model) (*onnx.Model, error) { return graph.WithClassifier(name) })
}

// findScores determines the output that scores classes and its content. shapes are those of one
// sample, by output. setClasses sets the number of classes.
func (m *Model) findScores(shapes map[string][]int) {
	outputs := slices.Clone(m.outputs)
	for i, p := range outputs { // the file may not declare shapes
		if shape := shapes[p.Name]; shape != nil && p.Shape == nil {
			for _, size := range append([]int{-1}, shape...) {
				outputs[i].Shape = append(outputs[i].Shape, engine.Dim{Size: size})
			}
		}
	}
	i := slices.IndexFunc(outputs, func(p engine.Port) bool { return p.Name == m.options.Output })
	var rivals []string
	if m.options.Output == "" {
		i, rivals = findScoresOutput(outputs, m.Graph())
	}
	m.scores = scores{output: outputs[i].Name, typ: outputs[i].Type, kind: m.options.Scores, rivals: strings.Join(rivals, ", ")}
	if m.options.Scores != "" {
		m.scores.by, m.scores.basis = "set by scores", "set by scores"
		return
	}
	if m.options.Output != "" {
		m.scores.by = "set by output"
	}
	if m.source == nil && len(outputs) > 1 && m.options.Output == "" && !scoresByName(m.scores.output) {
		m.scores.head = head{kind: none, why: "several outputs, of which no name is that of scores"}
	} else {
		m.scores.head = headOf(m.Graph(), m.scores.output)
	}
	if m.scores.kind = m.scores.head.kind; m.scores.kind == none {
		m.scores.basis = m.scores.head.why
		return
	}
	if m.scores.basis = "no softmax or sigmoid is before it"; m.scores.head.after != "" {
		m.scores.basis = fmt.Sprintf("a %s is before it", m.scores.head.after)
	}
}

// findScoresOutput returns the index of the output that most likely scores classes. Such an output
// is float, has two axes, and is neither an embedding nor boxes. Its rating is raised by its name,
// by a softmax before or after it, and by a size other than the four coordinates of a box. Of
// outputs with the same rating the first is returned. Those that only their size tells from it are
// rivals, unless nothing but the size speaks for them, or they are auxiliary. If no output
// qualifies, the result is the first output with one value after a sigmoid, else the first float
// output with two axes, or 0.
func findScoresOutput(outputs []engine.Port, graph *onnx.Model) (index int, rivals []string) {
	var nodes []*pb.NodeProto
	if graph != nil {
		nodes = graph.Nodes()
	}
	best, bestRating, fallback, single := -1, -1, -1, -1
	rated := map[int][]string{} // outputs by their rating, without the size
	for i, p := range outputs {
		sizes := p.Sizes()
		if p.Type != engine.Float && p.Type != engine.Double {
			continue
		}
		if single < 0 && (len(sizes) == 1 || len(sizes) == 2 && sizes[1] == 1) && headOf(graph, p.Name).after == "Sigmoid" {
			single = i
		}
		if len(sizes) != 2 || sizes[1] == 0 || sizes[1] == 1 {
			continue
		}
		if fallback < 0 {
			fallback = i
		}
		if headOf(graph, p.Name).kind == none || feedsClassifier(outputs, nodes, p.Name) {
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
		likely := 2 * rating
		if sizes[1] > 0 && sizes[1] != 4 {
			likely++
		}
		if rating > 0 && !containsAny(p.Name, "aux") {
			rated[rating] = append(rated[rating], p.Name)
		}
		if likely > bestRating {
			best, bestRating = i, likely
		}
	}
	switch {
	case best >= 0:
		for _, name := range rated[bestRating/2] {
			if name != outputs[best].Name {
				rivals = append(rivals, strconv.Quote(name))
			}
		}
		return best, rivals
	case single >= 0:
		return single, nil
	}
	return max(fallback, 0), nil
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
// first axis is not the batch. frames reports whether its values are those of frames of audio. If
// there is not one number per class, the kind becomes none; this is an error if the options set the
// kind (explicit).
func (s *scores) setClasses(shape []int, frames, explicit bool) error {
	number := s.typ == engine.Float || s.typ == engine.Double
	one := number && shape != nil && tensor.Size(shape) == 1
	switch {
	case s.kind == none:
	case number && len(shape) > 0 && shape[0] > 1 && tensor.Size(shape) == shape[0]:
		s.classes = shape[0]
	case number && len(shape) > 1 && tensor.Size(shape) == shape[len(shape)-1] && strings.HasSuffix(s.head.after, "Softmax"):
		s.classes = tensor.Size(shape) // channels last, or an axis of one
	case one && (explicit || s.head.after == "Sigmoid" || s.head.after == "HardSigmoid"):
		s.classes, s.single = 2, true
	case explicit:
		return settingError(fmt.Errorf("output %q is set to %s of classes, but a sample is %v of shape %v, not one number per class", s.output, s.kind, s.typ, shape), "scores")
	case one:
		s.none("it is one number, and no sigmoid is before it: if it is a score of two classes, set scores: logits or scores: probabilities")
	case !number && shape != nil && tensor.Size(shape) == 1:
		s.none(fmt.Sprintf("output %q is one %v, which may be the number of a class, and no output has scores of classes", s.output, s.typ))
	case !number && len(shape) == 1:
		s.none(fmt.Sprintf("output %q has values of type %v, and scores of classes are floats: add DequantizeLinear or Cast", s.output, s.typ))
	default:
		s.none("no output has one number per class")
	}
	if frames && s.classes > 0 && !s.single && s.by == "" {
		s.none("its values are those of frames")
	}
	return nil
}

// none states that the model scores no classes, and why.
func (s *scores) none(why string) { s.kind, s.classes, s.single, s.basis = none, 0, false, why }

// width returns the number of values of the output for a sample.
func (s *scores) width() int {
	if s.single {
		return 1
	}
	return s.classes
}

// row returns the scores of sample i, one for each class, in values of the output.
func (s *scores) row(values []float32, i int) []float32 {
	switch {
	case !s.single:
		return values[i*s.classes : (i+1)*s.classes]
	case s.kind == probabilities:
		return []float32{1 - values[i], values[i]}
	}
	return []float32{0, values[i]} // sigmoid(z) is the softmax of 0 and z
}
