package demo

import (
	"math"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

const (
	opset      = 17
	directions = 12 // over half a turn: 15 degrees apart
	// kernel is even, with a stride of 2, so that the grid of responses is centred on the picture: 16 x 16 places, the
	// same under quarter turns.
	kernel  = 12
	stride  = 2
	padding = (kernel - stride) / 2
)

// waves returns the lengths of the filters' waves in pixels.
func waves() []float64 { return []float64{3, 4, 5.5, 7.5, 10} }

// gabor returns the bank's weights, 2 d w x 1 x kernel x kernel: the even (cosine) filters of d directions times w
// wave lengths, the lengths varying fastest, then the odd (sine) ones in the same order. Each even filter sums to
// 0, so that a plain surface gives nothing, and each pair has length 1.
func gabor() tensor.Tensor {
	lengths := waves()
	half := directions * len(lengths)
	bank := tensor.New(2*half, 1, kernel, kernel)
	for d := range directions {
		for w, length := range lengths {
			i := d*len(lengths) + w
			fillPair(bank.At(i).Data, bank.At(half+i).Data, length, 180*float64(d)/directions)
		}
	}
	return bank
}

// fillPair writes an even and an odd filter for waves of a length in pixels that travel in a direction in degrees,
// counter-clockwise from the right. The window is a Gaussian of half the length, cut to the circle that fits.
func fillPair(even, odd []float32, length, degrees float64) {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	const centre = (kernel - 1) / 2.0
	var re, im, window [kernel * kernel]float64
	sumRe, sumWindow := 0.0, 0.0
	for i := range re {
		x, y := float64(i%kernel)-centre, centre-float64(i/kernel)
		r := math.Hypot(x, y)
		window[i] = math.Exp(-2*r*r/(length*length)) * min(1, max(0, kernel/2.0-r))
		s, c := math.Sincos(2 * math.Pi * (x*cos + y*sin) / length)
		re[i], im[i] = window[i]*c, window[i]*s
		sumRe += re[i]
		sumWindow += window[i]
	}
	norm := 0.0
	for i := range re {
		re[i] -= window[i] * sumRe / sumWindow
		norm += re[i]*re[i] + im[i]*im[i]
	}
	norm = math.Sqrt(norm)
	for i := range re {
		even[i], odd[i] = float32(re[i]/norm), float32(im[i]/norm)
	}
}

// oriented returns what the classifier that knows directions sees: b x 180.
func oriented(b *onnx.Builder) onnx.Value { return pool(b, energies(b)) }

// invariant returns what the classifier that forgets directions sees: b x 15.
func invariant(b *onnx.Builder) onnx.Value {
	parts := b.Ops("Split", directions, onnx.Attrs{"axis": 1}, energies(b))
	return pool(b, named(b, "strongest", b.Op("Max", nil, parts...)))
}

// energies is sqrt(even^2 + odd^2) of the bank's responses to the image x, b x 60 x 16 x 16: for each direction, each
// wave length.
func energies(b *onnx.Builder) onnx.Value {
	x := b.Input("x", onnx.Float, -1, 3, side, side)
	// The value of hue, saturation and value: a figure is white, whatever its hue.
	value := named(b, "value", b.ReduceMax(x, true, 1))
	responses := named(b, "gabor", b.Conv(value, b.Const("gabor.weight", gabor()), "",
		onnx.Attrs{"strides": []int{stride, stride}, "pads": []int{padding, padding, padding, padding}}))
	squares := b.Ops("Split", 2, onnx.Attrs{"axis": 1}, b.Mul(responses, responses))
	// The small term keeps the root's slope finite where there is no edge.
	return named(b, "energy", b.Sqrt(b.Add(b.Add(squares[0], squares[1]), b.Scalar(1e-6))))
}

// pool summarises each map of energies, wherever its values lie: by its mean, its root mean square and its maximum.
// Several powers tell a few strong places (corners, ends of bars) from many weaker ones.
func pool(b *onnx.Builder, energy onnx.Value) onnx.Value {
	mean := b.Op("GlobalAveragePool", nil, energy)
	rms := b.Sqrt(b.Op("GlobalAveragePool", nil, b.Mul(energy, energy)))
	most := b.Op("GlobalMaxPool", nil, energy)
	return named(b, "pooled", b.Flatten(b.Concat(1, mean, rms, most), 1))
}

// named gives a tensor a name that reads well in a report. The builder names tensors that are outputs; fit
// takes the outputs back.
func named(b *onnx.Builder, name string, v onnx.Value) onnx.Value {
	b.Output(name, v)
	return onnx.Value(name)
}
