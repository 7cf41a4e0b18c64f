package lie

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A field says how a layer's values lie on an image: as maps of h x w positions, or not at all.
type field struct {
	maps tensor.Maps // channels and positions; without meaning for a vector
	axes tensor.Axes
	h, w int // 0: a vector, which no transformation moves
}

// fieldOf returns false if the layer cannot be measured. Maps of a single position are a vector.
func fieldOf(l tensor.Layer) (field, bool) {
	f := field{axes: l.Axes}
	if string(l.Axes) == "NC" {
		return f, true
	}
	maps, why := l.Maps()
	if why != "" {
		single := len(maps.Grid) == 2 && maps.Positions() == 1
		return f, single
	}
	var plane bool
	f.maps = maps
	f.h, f.w, plane = maps.Size()
	return f, plane
}

func imageField(shape []int) field {
	return field{maps: tensor.Maps{Channels: shape[0], Grid: shape[1:]}, axes: "NCHW", h: shape[1], w: shape[2]}
}

// generate adds X z, the generator applied to the values z of a layer on n samples, to the graph. X
// is the derivative of a family of transformations with respect to its parameter t at t = 0. A nil
// Velocity moves no positions. generate returns "" if X z is zero.
func (f field) generate(b *onnx.Builder, g transform.Generator, slopes string, n int, z onnx.Value) onnx.Value {
	if g.Velocity == nil || f.h == 0 {
		return ""
	}
	switch string(f.axes) {
	case "NHWC":
		return b.Transpose(f.along(b, *g.Velocity, slopes, b.Transpose(z, 0, 3, 1, 2)), 0, 2, 3, 1)
	case "NTC":
		c := f.maps.Channels
		prefix := f.maps.Base / c
		tokens := z
		if prefix > 0 {
			tokens = b.Slice(z, 1, prefix, prefix+f.h*f.w, 1)
		}
		planes := b.Transpose(b.Reshape(tokens, n, f.h, f.w, c), 0, 3, 1, 2)
		out := b.Reshape(b.Transpose(f.along(b, *g.Velocity, slopes, planes), 0, 2, 3, 1), n, f.h*f.w, c)
		if prefix > 0 { // tokens without a position, such as a class token, do not move
			out = b.Concat(1, b.Full(0, n, prefix, c), out)
		}
		return out
	}
	return f.along(b, *g.Velocity, slopes, z)
}

// along adds the derivative of planes z, n x c x h x w, along the velocity v: v_x dz/dx + v_y
// dz/dy, where v_x = v[0] x + v[1] y + v[2] w, and v_y likewise from v[3:] with h in place of w
// (from the centre: see transform.Generator.Velocity). An axis is differentiated by a product with
// a matrix.
func (f field) along(b *onnx.Builder, v [6]float64, slopes string, z onnx.Value) onnx.Value {
	var sum onnx.Value
	const transposed = true
	if v[0] != 0 || v[1] != 0 || v[2] != 0 {
		d := b.MatMul(z, b.Const("", slopeMatrix(slopes, f.w, transposed)))
		sum = b.Mul(d, b.Const("", f.speed(v[0], v[1], v[2], slopes, f.w)))
	}
	if v[3] != 0 || v[4] != 0 || v[5] != 0 {
		d := b.MatMul(b.Const("", slopeMatrix(slopes, f.h, !transposed)), z)
		d = b.Mul(d, b.Const("", f.speed(v[3], v[4], v[5], slopes, f.h)))
		if sum != "" {
			d = b.Add(sum, d)
		}
		sum = d
	}
	return sum
}

// speed returns a component of the velocity, a x + b y + c side, in positions, as h x w. With
// Forward slopes, coordinates run from -1 to 1 between the centres of the outermost positions, as
// with align_corners in PyTorch, so a translation by t = 1 moves by half their distance.
func (f field) speed(a, b, c float64, slopes string, side int) tensor.Tensor {
	t := tensor.New(f.h, f.w)
	cx, cy := float64(f.w-1)/2, float64(f.h-1)/2
	for i := range f.h {
		for j := range f.w {
			x, y := float64(j)-cx, float64(i)-cy
			v := a*x + b*y + c*float64(side)
			if slopes == Forward {
				v = (a*ratio(x, cx) + b*ratio(y, cy) + c) * float64(side-1) / 2
			}
			t.Data[i*f.w+j] = float32(v)
		}
	}
	return t
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// slopeMatrix returns the n x n matrix D that differentiates an axis: D z, or z D if transposed. It
// takes half the difference of both neighbours (Central; at the border the difference to the only
// one), the same with the last and first as neighbours (Circular), or the difference to the next
// (Forward).
func slopeMatrix(slopes string, n int, transposed bool) tensor.Tensor {
	t := tensor.New(n, n)
	set := func(at, from int, weight float32) {
		if transposed {
			at, from = from, at
		}
		t.Data[at*n+from] += weight
	}
	for i := range n {
		low, high := i-1, i+1
		switch {
		case n == 1:
			continue
		case slopes == Circular:
			low, high = (low+n)%n, high%n
		case slopes == Forward:
			low = i
			if high == n { // the map is reflected about its last position
				high = n - 2
			}
		default:
			low, high = max(low, 0), min(high, n-1)
		}
		weight := float32(0.5)
		if slopes == Forward || slopes == Central && high-low == 1 {
			weight = 1
		}
		set(i, high, weight)
		set(i, low, -weight)
	}
	return t
}

// generateImage adds X x for values in [0, 1], before normalisation. For a change of colour, X x is
// x minus transform.Invariant.
func generateImage(b *onnx.Builder, g transform.Generator, slopes string, n int, shape []int, x onnx.Value) onnx.Value {
	if g.Velocity != nil {
		return imageField(shape).generate(b, g, slopes, n, x)
	}
	if g.Invariant == transform.Black {
		return x
	}
	c := shape[0]
	grey := b.Conv(x, b.Const("", tensor.Tensor{Shape: []int{1, c, 1, 1}, Data: transform.GreyWeights(c)}), "", nil)
	if g.Invariant == transform.MeanGrey {
		grey = b.ReduceMean(grey, true, 1, 2, 3) // true: the axes keep length 1
	}
	return b.Sub(x, grey)
}
