package model

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// A head says what computes an output, as far as its name and the operators before it tell.
type head struct {
	kind  string // logits, probabilities or none
	after string // softmax or sigmoid, of any form, by which it is a head of scores; "": neither
	why   string // for none: why it scores no classes
	// features reports whether the output is not the result of a layer with weights but of a
	// normalisation, a pooling of activations, or a choice of tokens, as features are.
	features bool
	shifted  bool // whether a bias has been added last
}

// headOf returns what computes an output. Logits look like any other vector, so that an output of
// which nothing is known has the kind logits. Operators that keep values, but for rounding and
// their order, are passed.
func headOf(graph *onnx.Model, output string) head {
	switch {
	case containsAny(output, "embed", "feature", "hidden", "pooler"):
		return head{kind: none, why: "its name is that of features"}
	case containsAny(output, "box", "coord", "landmark", "keypoint"):
		return head{kind: none, why: "its name is that of positions in the image"}
	case hasWord(output, "rating", "ratings", "quality", "mos", "regression", "pitch", "age", "gaze", "pose", "depth", "disparity"):
		return head{kind: none, why: "its name is that of a measured quantity"}
	}
	if graph == nil {
		return head{kind: logits}
	}
	return newHeadWalk(graph).from(output)
}

// hasWord reports whether a name has one of the words, which other characters than letters bound.
func hasWord(name string, words ...string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' })
	return slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(words, part) })
}

// A headWalk goes from an output to the operators before it.
type headWalk struct {
	producers map[string]*pb.NodeProto
	computed  map[string]bool // whether a tensor depends on an input of the graph
}

func newHeadWalk(graph *onnx.Model) headWalk {
	w := headWalk{map[string]*pb.NodeProto{}, map[string]bool{}}
	for _, in := range graph.Inputs() {
		w.computed[in.Name] = true
	}
	for _, n := range graph.Nodes() {
		computed := slices.ContainsFunc(onnx.Reads(n), func(name string) bool { return w.computed[name] })
		for _, out := range n.Output {
			w.producers[out], w.computed[out] = n, computed
		}
	}
	return w
}

// from returns the head of an output. The graph has been checked for cycles, and every operator in
// the loop has the inputs that are read.
func (w headWalk) from(output string) head {
	changed, pooled, activated := false, false, false // by the operators that have been passed
	shifted := false
	for name := output; ; {
		n := w.producers[name]
		if n == nil || len(n.Input) == 0 {
			return head{kind: logits}
		}
		computed := name
		name = n.Input[0]
		switch op := n.GetOpType(); op {
		case "Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Clip", "Dropout",
			"QuantizeLinear", "DequantizeLinear", "Resize", "Upsample":
		case "Softmax", "Sigmoid", "HardSigmoid":
			if changed { // such as percentages
				return head{kind: logits}
			}
			return head{kind: probabilities, after: op}
		case "LogSoftmax":
			if changed { // such as logarithms to base 2
				return head{kind: logits}
			}
			return head{kind: logits, after: op}
		case "TopK":
			return head{kind: none, why: "its values are sorted by size (TopK), so that their places are no classes"}
		case "LpNormalization":
			return head{kind: none, why: unitLength}
		case "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization",
			"InstanceNormalization", "GroupNormalization", "Tanh", "Gelu":
			return head{kind: logits, features: true}
		case "Add", "Sub", "Mul", "Div":
			switch b := n.Input[1]; {
			case op == "Div" && w.divides(b, "ReduceL2", "ReduceSumSquare", "Pow"):
				return head{kind: none, why: unitLength}
			case op == "Div" && w.divides(b, "ReduceMean"):
				return head{kind: logits, features: true} // LayerNormalization of older operator sets
			case !w.computed[n.Input[0]]:
				name = b
			case w.computed[b]:
				return head{kind: logits, features: activated}
			}
			changed, shifted = true, shifted || op == "Add"
		case "Gemm", "Conv":
			return head{kind: logits, features: activated, shifted: shifted || len(n.Input) > 2}
		case "GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax", "Gather", "Slice":
			pooled = true
		case "If":
			return w.ofBranches(n, slices.Index(n.Output, computed))
		case "Relu", "LeakyRelu", "Elu", "HardSwish":
			if !pooled {
				return head{kind: logits}
			}
			activated = true
		default:
			return head{kind: logits, features: activated, shifted: shifted}
		}
	}
}

// ofBranches returns the head of output i of a node If, if it is that of both branches.
func (w headWalk) ofBranches(n *pb.NodeProto, i int) head {
	var found []head
	for _, name := range []string{"then_branch", "else_branch"} {
		g := onnx.AttrGraph(n, name)
		if g == nil || i >= len(g.Output) {
			return head{kind: logits}
		}
		inner := headWalk{map[string]*pb.NodeProto{}, map[string]bool{}}
		for _, n := range g.Node {
			constant := n.GetOpType() == "Constant"
			for _, out := range n.Output {
				inner.producers[out], inner.computed[out] = n, !constant
			}
		}
		found = append(found, inner.from(g.Output[i].GetName()))
	}
	if found[0] != found[1] {
		return head{kind: logits}
	}
	return found[0]
}

const unitLength = "it is scaled to unit length, as embeddings are"

// divides reports whether a divisor is made by one of the operators: a norm, as exporters write
// x / max(|x|, epsilon), or a standard deviation.
func (w headWalk) divides(name string, operators ...string) bool {
	for {
		n := w.producers[name]
		if n == nil || len(n.Input) == 0 {
			return false
		}
		switch op := n.GetOpType(); {
		case slices.Contains(operators, op):
			return true
		case slices.Contains([]string{"Expand", "Clip", "Max", "Sqrt", "Add", "Unsqueeze", "ReduceSum"}, op):
			name = n.Input[0]
		default:
			return false
		}
	}
}
