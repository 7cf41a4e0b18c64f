package infer

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

type fact struct {
	layout         layout // nil if not known
	value          *array // nil if not known
	dependsOnInput bool   // whether the tensor depends on the values of an input of the graph
}

// An inference determines the layouts and the values of shape arithmetic. It assumes sizes for free
// dimensions, so that all shapes are numbers.
type inference struct {
	opset   int
	types   map[string]onnx.Type
	facts   map[string]fact
	symbols map[string]int         // assumed sizes, by name of the dimension
	stated  map[string]tensor.Axes // axes that the caller knows, by tensor
	// distinctSizes is 0 for typical sizes of free dimensions, else 1 plus the number of distinct
	// ones assumed so far.
	distinctSizes int
	assumedSizes  map[int]bool // a known dimension of such a size may in fact be a free one
}

// typicalSize is the assumed size of a free axis, by its letter. N is a prime that other axes are
// unlikely to have; T is one second of audio at 16 kHz.
var typicalSize = map[byte]int{'N': 997, 'C': 3, 'H': 224, 'W': 224, 'T': 16000}

// otherSize is the assumed size of a free axis of unknown meaning.
const otherSize = 16

const (
	withTypicalSizes  = false
	withDistinctSizes = true
)

// stated are axes that the caller knows. Free dimensions get the typical size of their letter or,
// if distinct is set, a different size each.
func infer(m *onnx.Model, stated map[string]tensor.Axes, distinct bool) *inference {
	in := &inference{
		opset: m.Opset(), types: m.ElementTypes(), facts: map[string]fact{}, symbols: map[string]int{}, stated: stated,
		assumedSizes: map[int]bool{},
	}
	if distinct {
		in.distinctSizes = 1
	}
	g := m.Proto().Graph
	for _, t := range g.Initializer {
		in.set(t.GetName(), fact{layout: unlabelled(pbutil.Ints(t.Dims)...), value: constantArray(t)})
	}
	for _, v := range g.Input {
		in.set(v.GetName(), fact{layout: in.inputLayout(g, onnx.ValueInfoOf(v)), dependsOnInput: true})
	}
	declared := map[string]*pb.ValueInfoProto{}
	for _, v := range slices.Concat(g.ValueInfo, g.Output) {
		declared[v.GetName()] = v
	}
	for _, n := range g.Node {
		in.node(n, declared)
	}
	return in
}

// set records a fact, with stated axes. It drops a value whose shape differs from the layout's, and
// limits the size of layouts, since some operators could double it at every node.
func (in *inference) set(name string, f fact) {
	if len(f.layout) > maxRank {
		f.layout = nil
	}
	for i, a := range f.layout {
		if len(a) > maxFactors { // an axis is a product of axes that were joined
			f.layout = slices.Clone(f.layout)
			f.layout[i] = newAxis(a.letter(), a.size())
		}
	}
	if f.value != nil && !slices.Equal(f.value.shape, f.layout.sizes()) {
		f.value = nil
	}
	if axes, ok := in.stated[name]; ok {
		f.layout = f.layout.renamed(axes)
	}
	in.facts[name] = f
}

// renamed returns the layout with other letters; another number of axes has unknown sizes.
func (l layout) renamed(axes tensor.Axes) layout {
	out := make(layout, len(axes))
	for i := range out {
		out[i] = newAxis(axes[i], -1)
		if len(l) == len(axes) {
			out[i] = newAxis(axes[i], l[i].size())
		}
	}
	return out
}

func (in *inference) node(n *pb.NodeProto, declared map[string]*pb.ValueInfoProto) {
	op := &operation{node: n, in: in, args: make([]fact, len(n.Input))}
	for i, name := range n.Input {
		op.args[i] = in.facts[name]
	}
	dependsOnInput := false
	for _, name := range onnx.Reads(n) {
		dependsOnInput = dependsOnInput || in.facts[name].dependsOnInput
	}
	dependsOnInput = dependsOnInput && !onnx.ReadsShapeOnly(n)
	layouts := op.layouts()
	for i, name := range n.Output {
		if name == "" {
			continue
		}
		var inferred layout
		if i < len(layouts) {
			inferred = layouts[i]
		}
		f := fact{dependsOnInput: dependsOnInput, layout: in.mergeDeclared(inferred, declared[name])}
		if !dependsOnInput {
			f.value = op.outputValue(i, inferred.sizes())
		}
		in.set(name, f)
	}
}

// mergeDeclared completes a layout by the rank and sizes that the file declares. An unknown axis
// whose dimension is named as an input's batch is the batch.
func (in *inference) mergeDeclared(l layout, v *pb.ValueInfoProto) layout {
	if v == nil || v.GetType().GetTensorType().GetShape() == nil {
		return l
	}
	shape := onnx.ValueInfoOf(v).Shape
	if len(shape) != len(l) || l == nil {
		l = make(layout, len(shape))
		for i := range l {
			l[i] = newAxis(blank, -1)
		}
	}
	l = slices.Clone(l)
	for i, d := range shape {
		size := d.Size
		if known, ok := in.symbols[d.Symbol]; ok && size < 0 {
			size = known
			if l[i].letter() == '?' && known == typicalSize['N'] {
				l[i] = newAxis('N', size)
			}
		}
		if l[i].size() < 0 && size >= 0 {
			l[i] = l[i].resized(size)
		}
	}
	return l
}

// inputLayout returns the layout of an input, by stated or guessed axes (inputAxes).
func (in *inference) inputLayout(g *pb.GraphProto, input onnx.ValueInfo) layout {
	if input.Shape == nil {
		return nil
	}
	axes, ok := in.stated[input.Name]
	if !ok || len(axes) != len(input.Shape) {
		axes = inputAxes(g, input)
	}
	l := make(layout, len(input.Shape))
	for i, d := range input.Shape {
		size := d.Size
		if size < 0 {
			size = in.assumedSize(d.Symbol, axes[i])
		}
		l[i] = newAxis(axes[i], size)
	}
	return l
}

// assumedSize returns the size of a free dimension by its name, if any, and its letter; one name
// has one size.
func (in *inference) assumedSize(symbol string, letter byte) int {
	if size, ok := in.symbols[symbol]; ok {
		return size
	}
	size, ok := typicalSize[letter]
	if !ok {
		size = otherSize
	}
	if in.distinctSizes > 0 {
		in.distinctSizes++
		// 352, 416, ...: rare in models, and can be halved five times.
		size = 32 * (2*in.distinctSizes + 7)
	}
	in.assumedSizes[size] = true
	if symbol != "" {
		in.symbols[symbol] = size
	}
	return size
}

// inputAxes guesses the axes of an input. Channels come before space, unless only the last axis of
// an image has a size that channels can have. Integers of rank 2 are tokens. See sequenceAxes for
// rank 3.
func inputAxes(g *pb.GraphProto, input onnx.ValueInfo) tensor.Axes {
	isChannels := func(d onnx.Dim) bool { return d.Size == 1 || d.Size == 3 || d.Size == 4 }
	switch rank := len(input.Shape); {
	case rank == 1:
		return "N"
	case rank == 2 && (input.Type == onnx.Int64 || input.Type == onnx.Int32):
		return "NT"
	case rank == 2:
		return "NC"
	case rank == 3:
		return sequenceAxes(g, input.Name)
	case rank == 4 && isChannels(input.Shape[3]) && !isChannels(input.Shape[1]):
		return "NHWC"
	case rank == 4:
		return "NCHW"
	case rank == 5:
		return "NCTHW"
	}
	return tensor.Axes("N" + strings.Repeat("?", max(len(input.Shape)-1, 0)))[:len(input.Shape)]
}

// sequenceAxes guesses the axes of an input of rank 3 from the first operator that depends on it: a
// convolution reads NCT, a matrix product NTC, a recurrent operator TNC, or NTC if nodes lie
// between, which are assumed to transpose. Without any they are NCT.
func sequenceAxes(g *pb.GraphProto, input string) tensor.Axes {
	reached := map[string]bool{input: true}
	for _, n := range g.Node {
		if !slices.ContainsFunc(n.Input, func(in string) bool { return reached[in] }) {
			continue
		}
		switch n.GetOpType() {
		case "Conv":
			return "NCT"
		case "MatMul":
			return "NTC"
		case "LSTM", "GRU", "RNN":
			if n.Input[0] == input {
				return "TNC"
			}
			return "NTC"
		}
		for _, out := range n.Output {
			reached[out] = true
		}
	}
	return "NCT"
}
