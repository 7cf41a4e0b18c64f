package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// A Normalisation is the mean and standard deviation, per channel or for all, that a model's first
// nodes apply.
type Normalisation struct {
	Mean, Std []float32
	Range     [2]float32 // values of black and white in the model's input: [0, 1] or [0, 255]
}

// findNormalisation follows the input through nodes that scale and shift it by constants: Sub, Div,
// Mul, Add and BatchNormalization. It returns nil if the result does not look like a normalised
// image (see affineWalk.normalisation).
func findNormalisation(graph *onnx.Model, input string, channels int) *Normalisation {
	w := affineWalk{graph: graph, channels: channels, scale: slices.Repeat([]float64{1}, channels), shift: make([]float64, channels)}
	readers := map[string][]*pb.NodeProto{}
	for _, n := range graph.Nodes() {
		if onnx.ReadsShapeOnly(n) {
			continue
		}
		for _, in := range onnx.Reads(n) {
			readers[in] = append(readers[in], n)
		}
	}
	for name := input; len(readers[name]) == 1 && w.apply(readers[name][0], name); {
		name = readers[name][0].Output[0]
	}
	if !w.changes() {
		return nil
	}
	return w.normalisation()
}

// An affineWalk is the affine function of the first nodes: scale[c] x + shift[c] for channel c.
type affineWalk struct {
	graph        *onnx.Model
	info         *infer.Info // values that are known before a run; nil until needed
	channels     int
	scale, shift []float64
}

// apply adds node n, which reads x, and reports whether n only transposes, converts, scales or
// shifts values.
func (w *affineWalk) apply(n *pb.NodeProto, x string) bool {
	switch op := n.GetOpType(); op {
	case "Identity", "Cast", "Transpose":
		return true
	case "Add", "Sub", "Mul", "Div":
		first := n.Input[0] == x
		other := n.Input[0]
		if first {
			other = n.Input[1]
		}
		c, ok := w.perChannel(other)
		if !ok || op == "Div" && !first {
			return false
		}
		w.arithmetic(op, first, c)
	case "BatchNormalization":
		if len(n.Input) < 5 {
			return false
		}
		var p [4][]float64 // scale, bias, mean, variance
		for i := range p {
			var ok bool
			if p[i], ok = w.perChannel(n.Input[i+1]); !ok {
				return false
			}
		}
		epsilon := float64(onnx.AttrFloat(n, "epsilon", 1e-5))
		for c := range w.scale {
			k := p[0][c] / math.Sqrt(p[3][c]+epsilon)
			w.scale[c], w.shift[c] = w.scale[c]*k, (w.shift[c]-p[2][c])*k+p[1][c]
		}
	default:
		return false
	}
	return true
}

// first reports whether the tensor is the first operand and the constant the second.
func (w *affineWalk) arithmetic(op string, first bool, constant []float64) {
	for i, v := range constant {
		switch op {
		case "Add":
			w.shift[i] += v
		case "Sub":
			if w.shift[i] -= v; !first {
				w.scale[i], w.shift[i] = -w.scale[i], -w.shift[i]
			}
		case "Mul":
			w.scale[i], w.shift[i] = w.scale[i]*v, w.shift[i]*v
		case "Div":
			w.scale[i], w.shift[i] = w.scale[i]/v, w.shift[i]/v
		}
	}
}

// perChannel returns a constant as one value for each channel.
func (w *affineWalk) perChannel(name string) (constant []float64, ok bool) {
	var values []float64
	if t, err := w.graph.Tensor(name); err == nil {
		for _, v := range t.Data[:min(len(t.Data), w.channels+1)] {
			values = append(values, float64(v))
		}
	} else {
		if w.info == nil {
			w.info = infer.Analyze(w.graph)
		}
		values, _ = w.info.Values(name)
	}
	switch len(values) {
	case w.channels:
		return values, true
	case 1:
		return slices.Repeat([]float64{values[0]}, w.channels), true
	}
	return nil, false
}

// normalisation computes mean and standard deviation from scale and shift. It assumes the range of
// input values, [0, 1] or [0, 255], whose centre the nodes map closer to zero, relative to the
// spread. It returns nil unless the results look like normalised values: black is at most about 0,
// white is above 0, and the difference of the two is from 0.5 to 16, or more if only a mean is
// subtracted. Images of GoogLeNet and Inception v3 are normalised before their first nodes.
func (w *affineWalk) normalisation() *Normalisation {
	var out *Normalisation
	nearest := math.Inf(1)
	for _, high := range []float64{1, 255} {
		offset, fits := 0.0, true
		for c, k := range w.scale {
			low, spread := w.shift[c], k*high // the result for black; that for white minus that for black
			fits = fits && spread >= 0.5 && (spread < 16 || k == 1) && low <= 0.01*spread && low+spread > 0
			offset = max(offset, math.Abs(low/spread+0.5))
		}
		if !fits || offset >= nearest {
			continue
		}
		nearest = offset
		out = &Normalisation{Range: [2]float32{0, float32(high)}}
		for c, k := range w.scale {
			out.Mean = append(out.Mean, float32(-w.shift[c]/k))
			out.Std = append(out.Std, float32(1/k))
		}
	}
	return out
}

func (w *affineWalk) changes() bool {
	differs := func(want float64) func(float64) bool {
		return func(v float64) bool { return math.Abs(v-want) > 1e-4 }
	}
	return slices.ContainsFunc(w.scale, differs(1)) || slices.ContainsFunc(w.shift, differs(0))
}

// Normalisation returns the normalisation by the first nodes of the model, or nil if there is none.
func (m *Model) Normalisation() *Normalisation { return m.normalisation }

// findQuantised returns the least and the largest value that the QuantizeLinear which reads the input
// keeps, or nil if there is none. They are those of the images that the file was calibrated on.
func findQuantised(graph *onnx.Model, input string) *[2]float64 {
	w := affineWalk{graph: graph, channels: 1}
	for _, n := range graph.Nodes() {
		if n.GetOpType() != "QuantizeLinear" || n.Input[0] != input {
			continue
		}
		low, high, zero := 0., 255., 0
		if len(n.Input) > 2 && n.Input[2] != "" {
			z, typ, ok := graph.ZeroPoint(n.Input[2])
			if !ok {
				return nil
			}
			if zero = z; typ == onnx.Int8 {
				low, high = -128, 127
			}
		}
		scale, ok := w.perChannel(n.Input[1])
		if !ok {
			return nil
		}
		return &[2]float64{(low - float64(zero)) * scale[0], (high - float64(zero)) * scale[0]}
	}
	return nil
}

// QuantisedConflict describes how images with a mean and a standard deviation for each channel, and
// low and high for black and white before these, contradict the range of values that the model's
// first node quantises, or returns "".
func (m *Model) QuantisedConflict(mean, std []float32, low, high float32) string {
	if m.quantised == nil {
		return ""
	}
	least, largest := math.Inf(1), math.Inf(-1)
	for c := range max(len(mean), len(std), 1) {
		shift, scale := 0., 1.
		if len(mean) > 0 {
			shift = float64(mean[min(c, len(mean)-1)])
		}
		if len(std) > 0 {
			scale = float64(std[min(c, len(std)-1)])
		}
		least, largest = min(least, (float64(low)-shift)/scale), max(largest, (float64(high)-shift)/scale)
	}
	const beyond, within = 0.25, 0.25 // of the range: images in calibration lack few values
	from, to := m.quantised[0], m.quantised[1]
	span := to - from
	if least >= from-beyond*span && largest <= to+beyond*span && largest-least >= within*span {
		return ""
	}
	return fmt.Sprintf("its first node quantises images with values from %.3g to %.3g, and preprocess gives them values from %.3g to %.3g: check mean, std and range", from, to, least, largest)
}

// PreprocessConflict describes how the preprocessing of images contradicts the normalisation or
// quantisation by the model's first nodes, or returns "" if it does not.
func (m *Model) PreprocessConflict() string {
	n, p := m.normalisation, m.input.preprocess
	if n == nil {
		low, high := p.Bounds()
		return m.QuantisedConflict(p.Mean, p.Std, low, high)
	}
	low, high := p.Bounds() // the values of black and white before mean and std are applied
	switch {
	case len(p.Mean) > 0 || len(p.Std) > 0:
		return "its first nodes normalise images already, and mean and std of preprocess are applied before them: leave these out"
	case low == 0 && high == 1 && n.Range[1] == 255:
		return "its first nodes normalise images with values in [0, 255]: set preprocess: {..., range: [0, 255]}"
	case low == 0 && high == 255 && n.Range[1] == 1:
		return "its first nodes normalise images with values in [0, 1]: leave range out of preprocess"
	}
	return ""
}
