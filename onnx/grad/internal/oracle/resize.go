package oracle

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// A resizing is how Resize interpolates along one axis, the i-th of those that its scales or sizes
// speak of.
type resizing struct {
	*writer
	node    *pb.NodeProto
	i, axis int
	in, out onnx.Value // sizes, int64
}

// resize treats one axis after the other: each place of the output is a weighted sum of some of the
// input. Antialiasing, and what crops or keeps an aspect ratio, have no form.
func resize(w *writer, n *pb.NodeProto) onnx.Value {
	x, y := w.static.Shape(n.Input[0]), w.static.Shape(n.Output[0])
	cropped := onnx.AttrString(n, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
	stretched := onnx.AttrString(n, "keep_aspect_ratio_policy", "stretch") == "stretch"
	if len(x) == 0 || cropped || !stretched || onnx.AttrInt(n, "antialias", 0) != 0 {
		return ""
	}
	axes := onnx.AttrInts(n, "axes")
	if axes == nil {
		for axis := range x {
			axes = append(axes, axis)
		}
	}
	scales, _ := w.static.Values(input(n, 2))
	v := w.x(n, 0)
	for i, axis := range axes {
		if axis < 0 {
			axis += len(x)
		}
		known := len(x) == len(y) && x[axis] >= 0 && y[axis] >= 0
		if len(scales) > i && scales[i] == 1 || input(n, 3) != "" && known && x[axis] == y[axis] {
			continue
		}
		r := resizing{writer: w, node: n, i: i, axis: axis}
		if r.in = w.element(w.Shape(onnx.Value(n.Input[0])), axis); x[axis] >= 0 {
			r.in = w.Int(x[axis])
		}
		if r.out = r.length(); known {
			r.out = w.Int(y[axis])
		}
		if v = r.along(v, len(x)); v == "" {
			return ""
		}
	}
	return w.Identity(v)
}

// input is the name of a node's i-th input, empty where it is absent.
func input(n *pb.NodeProto, i int) string {
	if i < len(n.Input) {
		return n.Input[i]
	}
	return ""
}

// element is the i-th number of a list.
func (w *writer) element(list onnx.Value, i int) onnx.Value { return w.Gather(list, w.Int(i), 0) }

// length is the size of the output, in float32 as engines work it out.
func (r resizing) length() onnx.Value {
	if sizes := input(r.node, 3); sizes != "" {
		return r.element(onnx.Value(sizes), r.i)
	}
	scale := r.element(onnx.Value(r.node.Input[2]), r.i)
	return r.Cast(r.Op("Floor", nil, r.Mul(r.Cast(r.in, onnx.Float), scale)), onnx.Int64)
}

// along interpolates x, of so many axes, along one.
func (r resizing) along(x onnx.Value, rank int) onnx.Value {
	if onnx.AttrString(r.node, "mode", "nearest") == "nearest" {
		return r.Gather(x, r.nearest(), r.axis)
	}
	at := r.coordinates()
	if at == "" {
		return ""
	}
	last := r.Cast(r.Sub(r.in, r.Int(1)), onnx.Double)
	inside := func(v onnx.Value) onnx.Value { return r.Op("Max", nil, r.Op("Min", nil, v, last), r.num(0)) }
	first, weights := 0, r.linear
	if onnx.AttrString(r.node, "mode", "") == "cubic" {
		first, weights = -1, r.cubic
	} else {
		at = inside(at)
	}
	low := r.Op("Floor", nil, at)
	var places, parts []onnx.Value
	for k, weight := range weights(r.Sub(at, low)) {
		place := r.Add(low, r.num(float64(first+k)))
		places = append(places, inside(place))
		if onnx.AttrInt(r.node, "exclude_outside", 0) != 0 {
			weight = r.Where(r.Op("Equal", nil, place, places[k]), weight, r.num(0))
		}
		parts = append(parts, weight)
	}
	total := r.sum(parts)
	terms := make([]onnx.Value, len(parts))
	for k := range terms {
		weight := r.Reshape(r.Div(parts[k], total), append([]int{-1}, ones(rank-r.axis-1)...)...)
		terms[k] = r.Mul(r.Gather(x, r.Cast(places[k], onnx.Int64), r.axis), weight)
	}
	return r.sum(terms)
}

// nearest are the places of the input that the engine takes: it resizes their numbers.
func (r resizing) nearest() onnx.Value {
	numbers := r.Reshape(r.Cast(r.Op("Range", nil, r.Int(0), r.in, r.Int(1)), onnx.Float), 1, 1, -1, 1)
	attrs := onnx.Attrs{}
	for _, name := range []string{"coordinate_transformation_mode", "nearest_mode"} {
		if v := onnx.AttrString(r.node, name, ""); v != "" {
			attrs[name] = v
		}
	}
	one, none := r.Full(1, 1), r.Full(0, 0)
	inputs := []onnx.Value{numbers, none}
	if input(r.node, 3) != "" {
		inputs = append(inputs, none, r.Concat(0, r.Ints(1, 1), r.Unsqueeze(r.out, 0), r.Ints(1)))
	} else {
		scale := r.Unsqueeze(r.element(onnx.Value(r.node.Input[2]), r.i), 0)
		inputs = append(inputs, r.Concat(0, one, one, scale, one))
	}
	return r.Cast(r.Reshape(r.Op("Resize", attrs, inputs...), -1), onnx.Int64)
}

// coordinates are where each place of the output is in the input; empty where the mode is another.
func (r resizing) coordinates() onnx.Value {
	out, in := r.Cast(r.out, onnx.Double), r.Cast(r.in, onnx.Double)
	scale := r.Div(out, in)
	if input(r.node, 3) == "" {
		scale = r.element(r.x(r.node, 2), r.i)
	}
	at, half, one := r.Cast(r.Op("Range", nil, r.Int(0), r.out, r.Int(1)), onnx.Double), r.num(0.5), r.num(1)
	centres := r.Sub(r.Div(r.Add(at, half), scale), half)
	switch onnx.AttrString(r.node, "coordinate_transformation_mode", "half_pixel") {
	case "half_pixel":
		return centres
	case "pytorch_half_pixel":
		return r.Where(r.Op("Greater", nil, out, one), centres, r.num(0))
	case "half_pixel_symmetric": // where the output is cut to a whole number, its middle stays that of the input
		cut := r.Sub(one, r.Div(out, r.Mul(scale, in)))
		return r.Add(centres, r.Mul(r.Mul(in, half), cut))
	case "align_corners":
		return r.Mul(at, r.Div(r.Sub(in, one), r.Op("Max", nil, r.Sub(out, one), one)))
	case "asymmetric":
		return r.Div(at, scale)
	}
	return ""
}

// linear are the weights of the places below and above, given how far it is from the one below.
func (r resizing) linear(f onnx.Value) []onnx.Value {
	return []onnx.Value{r.Sub(r.num(1), f), f}
}

// cubic are the weights of the two places below and the two above: of one at distance d
//
//	(a + 2) d^3 - (a + 3) d^2 + 1          up to 1
//	a d^3 - 5 a d^2 + 8 a d - 4 a          up to 2
func (r resizing) cubic(f onnx.Value) []onnx.Value {
	a := float64(onnx.AttrFloat(r.node, "cubic_coeff_a", -0.75))
	near, far := []float64{a + 2, -a - 3, 0, 1}, []float64{a, -5 * a, 8 * a, -4 * a}
	rest := r.Sub(r.num(1), f)
	weights := []onnx.Value{r.Add(f, r.num(1)), f, rest, r.Add(rest, r.num(1))}
	for i, coefficients := range [][]float64{far, near, near, far} {
		weights[i] = r.polynomial(weights[i], coefficients)
	}
	return weights
}
