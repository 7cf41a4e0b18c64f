//go:build cgo

package grad_test

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// reduceCases are of operators that reduce axes. The numbers are versions of the operator set
// (opset): 7, the oldest that is supported, or else the first with the operator, and those in which
// it changed. The methods of generator are in generator_test.go. Those that return operands (inputs
// of the node, with values) draw values at which the derivative does not jump. Those of smooth are
// any, those of distinct differ from each other, and those of nonzero and positive are not near 0.
// attrOrInput adds a list as an attribute or, from an opset on, as an input. trial is the index of
// the case.
var reduceCases = []opCase{
	{"ReduceSum", []int{7, 11, 13}, reduce(13, (*generator).smooth)},
	{"ReduceMean", []int{7, 11, 18}, reduce(18, (*generator).smooth)},
	{"ReduceMax", []int{7, 11, 18, 20}, reduce(18, (*generator).distinct)},
	{"ReduceMin", []int{7, 11, 18, 20}, reduce(18, (*generator).distinct)},
	{"ReduceProd", []int{7, 11, 18}, reduce(18, (*generator).nonzero)},
	{"ReduceL1", []int{7, 11, 18}, reduce(18, (*generator).nonzero)},
	{"ReduceL2", []int{7, 11, 18}, reduce(18, (*generator).positive)},
	{"ReduceLogSum", []int{7, 11, 18}, reduce(18, (*generator).positive)},
	{"ReduceLogSumExp", []int{7, 11, 18}, reduce(18, (*generator).smooth)},
	{"ReduceSumSquare", []int{7, 11, 18}, reduce(18, (*generator).smooth)},
}

// reduce draws a reduction over some axes, all or none. The operator has its axes as an input from
// opset since on, and as an attribute before.
func reduce(since int, values func(*generator, ...int) operand) func(g *generator) testCase {
	return func(g *generator) testCase {
		shape := g.smallShape()
		tc := unary(values(g, shape...), onnx.Attrs{})
		if g.coin() {
			tc.attrs["keepdims"] = g.IntN(2)
		}
		switch g.IntN(4) {
		case 0: // all axes
		case 1:
			if g.opset >= since {
				tc.attrs["noop_with_empty_axes"] = 1
				if g.coin() {
					tc.operands = append(tc.operands, int64Vector().asConstant())
				}
				break
			}
			fallthrough
		default:
			g.attrOrInput(&tc, since, "axes", g.axes(len(shape))...)
			if last := len(tc.operands) - 1; last > 0 && tc.attrs["keepdims"] != 0 {
				// With keepdims the rank is known without the axes.
				tc.operands[last].alwaysConstant = g.coin()
			}
		}
		return tc
	}
}

// shapeCases are of operators that copy, move, drop or resample elements, and of CumSum. Where
// alwaysDeclared is true, the graph must declare the sizes of all axes.
var shapeCases = []opCase{
	{"Identity", []int{7, 13, 16}, func(g *generator) testCase { return unary(g.smooth(g.smallShape()...), nil) }},
	{"Cast", []int{7, 9, 13, 19}, func(g *generator) testCase { return unary(g.smooth(g.smallShape()...), onnx.Attrs{"to": onnx.Float}) }},
	{"CastLike", []int{15, 19, 21}, func(g *generator) testCase {
		return testCase{operands: []operand{g.smooth(g.smallShape()...), g.smooth(2).withoutGradient()}}
	}},
	{"Dropout", []int{7, 10, 12, 13, 22}, drawDropout},
	{"Reshape", []int{7, 13, 14, 19}, drawReshape},
	{"Flatten", []int{7, 9, 11, 13}, func(g *generator) testCase {
		shape := g.smallShape()
		return unary(g.smooth(shape...), g.optionalAttr("axis", g.maybeNegative(g.IntN(len(shape)), len(shape))))
	}},
	{"Transpose", []int{7, 13}, func(g *generator) testCase {
		shape := g.smallShape()
		return unary(g.smooth(shape...), g.optionalAttr("perm", g.Perm(len(shape))))
	}},
	{"Squeeze", []int{7, 11, 13}, drawSqueeze},
	{"Unsqueeze", []int{7, 11, 13}, drawUnsqueeze},
	{"Concat", []int{7, 11, 13}, drawConcat},
	{"Split", []int{7, 11, 13, 18}, drawSplit},
	{"Slice", []int{7, 10, 11, 13}, drawSlice},
	{"Expand", []int{8, 13}, drawExpand},
	{"Tile", []int{7, 13}, func(g *generator) testCase {
		shape := g.smallShape()
		return testCase{operands: []operand{g.smooth(shape...), int64Vector(g.dims(len(shape), 1, 3)...)}}
	}},
	{"Pad", []int{7, 10, 11, 13, 18, 19, 21}, drawPad},
	{"DepthToSpace", []int{7, 11, 13}, func(g *generator) testCase {
		n := g.between(1, 3)
		attrs := onnx.Attrs{"blocksize": n}
		if g.opset >= 11 && g.trial%3 > 0 {
			attrs["mode"] = []string{"DCR", "CRD"}[g.trial%2]
		}
		return unary(g.smooth(g.between(1, 2), n*n*g.between(1, 2), g.between(1, 3), g.between(1, 3)), attrs)
	}},
	{"SpaceToDepth", []int{7, 13}, func(g *generator) testCase {
		n := g.between(1, 3)
		return unary(g.smooth(g.between(1, 2), g.between(1, 3), n*g.between(1, 3), n*g.between(1, 2)), onnx.Attrs{"blocksize": n})
	}},
	{"CumSum", []int{11, 14}, func(g *generator) testCase {
		shape := g.smallShape()
		return testCase{
			operands: []operand{g.smooth(shape...), int64Scalar(g.axis(len(shape))).asConstant()},
			attrs:    onnx.Attrs{"exclusive": g.IntN(2), "reverse": g.IntN(2)},
		}
	}},
	{"Trilu", []int{14}, func(g *generator) testCase {
		tc := unary(g.smooth(g.dims(g.between(2, 4), 1, 4)...), g.optionalAttr("upper", g.IntN(2)))
		if g.coin() {
			tc.operands = append(tc.operands, int64Scalar(g.between(-2, 2)))
		}
		return tc
	}},
	{"Resize", []int{10, 11, 13, 18, 19}, drawResize},
	{"Upsample", []int{7, 9}, drawUpsample},
}

func drawDropout(g *generator) testCase {
	tc := unary(g.smooth(g.smallShape()...), nil)
	switch {
	case g.opset >= 12 && g.trial == 0: // training mode with ratio 0 drops nothing
		ratio := operand{shape: []int{}, floats: []float32{0}, noGradient: true, alwaysConstant: g.coin()}
		tc.operands = append(tc.operands, ratio, operand{shape: []int{}, bools: []bool{true}, alwaysConstant: true})
	case g.opset >= 12 && g.coin():
		tc.operands = append(tc.operands, operand{shape: []int{}, floats: []float32{0.3}, noGradient: true, alwaysConstant: true})
		if g.coin() {
			tc.operands = append(tc.operands, operand{shape: []int{}, bools: []bool{false}, alwaysConstant: true})
		}
	case g.opset < 12:
		tc.attrs = onnx.Attrs{"ratio": 0.4}
	}
	return tc
}

func drawReshape(g *generator) testCase {
	shape := g.dims(4, 1, 4)
	target := [][]int{
		{shape[0], -1}, {-1, shape[2], shape[3]}, {0, 0, shape[3], shape[2]}, {-1}, {shape[1], shape[0], shape[2] * shape[3], 1},
	}[g.IntN(5)]
	tc := testCase{operands: []operand{g.smooth(shape...), int64Vector(target...)}}
	if g.opset >= 14 && g.coin() && !slices.Contains(target, 0) {
		tc.attrs = onnx.Attrs{"allowzero": 1}
	}
	return tc
}

func drawSqueeze(g *generator) testCase {
	shape := g.dims(4, 2, 3)
	ones := g.Perm(4)[:g.between(1, 3)]
	for _, axis := range ones {
		shape[axis] = 1
	}
	tc := unary(g.smooth(shape...), nil)
	if g.coin() {
		tc.alwaysDeclared = always(true) // no axes given: all of size 1 are removed
		return tc
	}
	slices.Sort(ones) // ONNX Runtime leaves some axes in place if they are not sorted
	for i := range ones {
		ones[i] = g.maybeNegative(ones[i], 4)
	}
	g.attrOrInput(&tc, 13, "axes", ones...)
	return tc
}

func drawUnsqueeze(g *generator) testCase {
	shape := g.smallShape()
	n := g.between(1, 2)
	axes := g.Perm(len(shape) + n)[:n]
	for i := range axes {
		axes[i] = g.maybeNegative(axes[i], len(shape)+n)
	}
	if g.opset < 11 {
		slices.Sort(axes)
	}
	tc := unary(g.smooth(shape...), nil)
	g.attrOrInput(&tc, 13, "axes", axes...)
	return tc
}

func drawConcat(g *generator) testCase {
	shape := g.smallShape()
	axis := g.IntN(len(shape))
	tc := testCase{alwaysDeclared: always(g.opset < 10), attrs: onnx.Attrs{"axis": g.maybeNegative(axis, len(shape))}}
	for range g.between(1, 4) {
		part := slices.Clone(shape)
		part[axis] = g.between(1, 3)
		tc.operands = append(tc.operands, g.smooth(part...))
	}
	return tc
}

func drawSplit(g *generator) testCase {
	parts := g.between(2, 3)
	shape := g.smallShape()
	axis := g.IntN(len(shape))
	sizes := g.dims(parts, 1, 3)
	equal := g.coin()
	shape[axis] = 0
	for i := range sizes {
		if equal {
			sizes[i] = sizes[0]
		}
		shape[axis] += sizes[i]
	}
	tc := testCase{outputs: parts, attrs: onnx.Attrs{"axis": g.maybeNegative(axis, len(shape))}}
	smallerLast := equal && g.opset >= 18 && g.coin() && sizes[0] > 1
	if smallerLast {
		shape[axis]--
	}
	tc.operands = []operand{g.smooth(shape...)}
	switch {
	case !equal:
		g.attrOrInput(&tc, 13, "split", sizes...)
	case g.opset >= 18:
		tc.attrs["num_outputs"] = parts
	}
	if g.coin() {
		tc.loss = g.Perm(parts)[:1] // the loss does not depend on the other parts
	}
	return tc
}

func drawSlice(g *generator) testCase {
	shape := g.dims(g.between(1, 4), 2, 6)
	var starts, ends, axes, steps []int
	for _, axis := range g.Perm(len(shape))[:g.between(1, len(shape))] {
		n := shape[axis]
		start := g.IntN(n)
		end := start + 1 + g.IntN(n-start)
		stride := 1
		if g.opset >= 10 {
			stride = g.between(1, 3)
		}
		switch {
		case g.opset >= 11 && g.IntN(3) == 0: // backwards
			first := end - 1
			end, start, stride = start-1, first, -stride
			if end < 0 {
				end = -1 << 31 // -1 would be the last element; this is before the first
			}
		case g.IntN(3) == 0:
			end = 1<<31 - 1 // to the end of the axis
		case g.coin():
			start -= n
		}
		starts, ends, steps = append(starts, start), append(ends, end), append(steps, stride)
		axes = append(axes, g.maybeNegative(axis, len(shape)))
	}
	tc := unary(g.smooth(shape...), onnx.Attrs{})
	tc.alwaysDeclared = always(g.opset < 11)
	if g.opset < 10 {
		tc.attrs = onnx.Attrs{"starts": starts, "ends": ends, "axes": axes}
		return tc
	}
	tc.operands = append(tc.operands, int64Vector(starts...), int64Vector(ends...), int64Vector(axes...).asConstant(), int64Vector(steps...).asConstant())
	if g.opset < 11 || g.coin() {
		tc.operands[1], tc.operands[2] = tc.operands[1].asConstant(), tc.operands[2].asConstant()
	}
	isInt32 := g.coin()
	for i := range tc.operands[1:] {
		tc.operands[1+i].isInt32 = isInt32
	}
	return tc
}

func drawExpand(g *generator) testCase {
	shapes := g.broadcast(2)
	return testCase{alwaysDeclared: always(g.opset < 13), operands: []operand{g.smooth(shapes[0]...), int64Vector(shapes[1]...)}}
}

func drawPad(g *generator) testCase {
	modes := []string{"constant", "reflect", "edge"}
	if g.opset >= 19 {
		modes = append(modes, "wrap")
	}
	mode := modes[g.trial%len(modes)]
	shape := g.dims(g.between(2, 4), 4, 5)
	pads := make([]int, 2*len(shape))
	for i := range pads {
		if i%len(shape) >= len(shape)-2 {
			pads[i] = g.between(-1, 2)
			if mode == "constant" || mode == "edge" {
				pads[i] = g.between(-1, 4)
			}
		}
	}
	tc := unary(g.smooth(shape...), onnx.Attrs{"mode": mode})
	tc.alwaysDeclared = always(g.opset < 9)
	if g.opset < 11 {
		tc.attrs["pads"] = pads
		if g.coin() {
			tc.attrs["value"] = 0.5
		}
		return tc
	}
	if g.opset >= 18 && g.coin() { // only the last two axes
		rank := len(shape)
		tc.operands = append(tc.operands, int64Vector(append(pads[rank-2:rank:rank], pads[2*rank-2:]...)...).asConstant(), operand{}, int64Vector(-2, rank-1).asConstant())
		return tc
	}
	tc.operands = append(tc.operands, int64Vector(pads...).asConstant())
	if mode == "constant" && g.coin() {
		tc.operands = append(tc.operands, operand{shape: []int{}, floats: []float32{0.5}})
	}
	return tc
}

func drawUpsample(g *generator) testCase {
	mode := []string{"nearest", "linear"}[g.trial%2]
	shape := g.dims(4, 1, 4)
	scales := []float32{1, 1, float32(g.between(2, 6)) / 2, float32(g.between(2, 6)) / 2}
	if g.opset < 9 {
		tc := unary(g.smooth(shape...), onnx.Attrs{"mode": mode, "scales": scales})
		tc.alwaysDeclared = always(true)
		return tc
	}
	return testCase{attrs: onnx.Attrs{"mode": mode}, operands: []operand{g.smooth(shape...), {shape: []int{4}, floats: scales, noGradient: true, alwaysConstant: true}}}
}

func drawResize(g *generator) testCase {
	modes := []string{"nearest", "linear", "cubic"}
	if g.opset < 11 {
		modes = modes[:2]
	}
	mode := modes[g.trial%len(modes)]
	shape := []int{g.between(1, 2), g.between(1, 2), g.between(1, 5), g.between(1, 5)}
	// At least one element is left.
	factor := func(n int) float32 { return float32(max(g.between(1, 6), 2/n)) / 2 }
	scales := operand{shape: []int{4}, floats: []float32{1, 1, factor(shape[2]), factor(shape[3])}, noGradient: true, alwaysConstant: true}
	if g.IntN(4) == 0 { // a width of at most 4, times 1.2 and rounded down, stays as it is
		scales.floats[2], scales.floats[3] = 2, 1.2
	}
	attrs := onnx.Attrs{"mode": mode}
	if g.opset < 11 {
		return testCase{attrs: attrs, operands: []operand{g.smooth(shape...), scales}}
	}
	coordinates := []string{"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}
	if g.opset >= 19 {
		coordinates = append(coordinates, "half_pixel_symmetric")
	}
	attrs["coordinate_transformation_mode"] = coordinates[g.IntN(len(coordinates))]
	if mode == "nearest" {
		attrs["nearest_mode"] = []string{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}[g.IntN(4)]
	}
	if mode == "cubic" && g.coin() {
		attrs["exclude_outside"], attrs["cubic_coeff_a"] = 1, -0.5
	}
	if g.opset >= 18 && mode != "nearest" && g.coin() {
		attrs["antialias"] = 1
	}
	roi := operand{shape: []int{0}, floats: []float32{}, noGradient: true, alwaysConstant: true}
	tc := testCase{attrs: attrs, operands: []operand{g.smooth(shape...), roi, scales}}
	if g.opset >= 13 {
		tc.operands[1] = operand{}
	}
	if g.coin() {
		tc.operands[2] = operand{}
		if g.opset < 13 {
			tc.operands[2] = roi
		}
		sizes := []int{shape[0], shape[1], g.between(1, 8), g.between(1, 8)}
		if g.opset >= 18 && g.coin() {
			attrs["axes"] = []int{2, 3}
			sizes = sizes[2:]
		}
		tc.operands = append(tc.operands, int64Vector(sizes...).asConstant())
	}
	if attrs["antialias"] == nil && g.IntN(4) == 0 {
		g.cropRegion(&tc)
	}
	return tc
}

// cropRegion makes a Resize crop a region, which may extend beyond the image.
func (g *generator) cropRegion(tc *testCase) {
	tc.attrs["coordinate_transformation_mode"], tc.attrs["extrapolation_value"] = "tf_crop_and_resize", 0.5
	starts, ends := []float32{0, 0}, []float32{1, 1}
	if tc.attrs["axes"] != nil {
		starts, ends = nil, nil
	}
	for range 2 {
		starts = append(starts, []float32{-0.25, 0, 0.125, 0.5}[g.IntN(4)])
		ends = append(ends, []float32{0.625, 0.75, 1, 1.25}[g.IntN(4)])
	}
	tc.operands[1] = operand{shape: []int{2 * len(starts)}, floats: append(starts, ends...), noGradient: true, alwaysConstant: g.coin()}
}
