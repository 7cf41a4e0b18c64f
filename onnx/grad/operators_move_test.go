//go:build cgo

package grad_test

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

var reduceCases = []opCase{
	{"ReduceSum", []int{7, 11, 13}, reduce(13, (*gen).smooth)},
	{"ReduceMean", []int{7, 11, 18}, reduce(18, (*gen).smooth)},
	{"ReduceMax", []int{7, 11, 18, 20}, reduce(18, (*gen).distinct)},
	{"ReduceMin", []int{7, 11, 18, 20}, reduce(18, (*gen).distinct)},
	{"ReduceProd", []int{7, 11, 18}, reduce(18, (*gen).signless)},
	{"ReduceL1", []int{7, 11, 18}, reduce(18, (*gen).signless)},
	{"ReduceL2", []int{7, 11, 18}, reduce(18, (*gen).positive)},
	{"ReduceLogSum", []int{7, 11, 18}, reduce(18, (*gen).positive)},
	{"ReduceLogSumExp", []int{7, 11, 18}, reduce(18, (*gen).smooth)},
	{"ReduceSumSquare", []int{7, 11, 18}, reduce(18, (*gen).smooth)},
}

// reduce draws a reduction whose axes are an input since an operator set: some axes, all, or, where
// it is asked for, none.
func reduce(since int, values func(*gen, ...int) operand) func(g *gen) trial {
	return func(g *gen) trial {
		shape := g.some()
		tr := unary(values(g, shape...), onnx.Attrs{})
		if g.coin() {
			tr.attrs["keepdims"] = g.IntN(2)
		}
		switch g.IntN(4) {
		case 0: // all axes
		case 1:
			if g.opset >= since {
				tr.attrs["noop_with_empty_axes"] = 1
				if g.coin() {
					tr.operands = append(tr.operands, list().fix())
				}
				break
			}
			fallthrough
		default:
			g.listed(&tr, since, "axes", g.axes(len(shape))...)
			if last := len(tr.operands) - 1; last > 0 && tr.attrs["keepdims"] != 0 {
				tr.operands[last].fixed = g.coin() // axes that are kept may be told when the graph runs
			}
		}
		return tr
	}
}

var moveCases = []opCase{
	{"Identity", []int{7, 13, 16}, func(g *gen) trial { return unary(g.smooth(g.some()...), nil) }},
	{"Cast", []int{7, 9, 13, 19}, func(g *gen) trial { return unary(g.smooth(g.some()...), onnx.Attrs{"to": onnx.Float}) }},
	{"Dropout", []int{7, 10, 12, 13, 22}, drawDropout},
	{"Reshape", []int{7, 13, 14, 19}, drawReshape},
	{"Flatten", []int{7, 9, 11, 13}, func(g *gen) trial {
		shape := g.some()
		return unary(g.smooth(shape...), g.maybe("axis", g.signed(g.IntN(len(shape)), len(shape))))
	}},
	{"Transpose", []int{7, 13}, func(g *gen) trial {
		shape := g.some()
		return unary(g.smooth(shape...), g.maybe("perm", g.Perm(len(shape))))
	}},
	{"Squeeze", []int{7, 11, 13}, drawSqueeze},
	{"Unsqueeze", []int{7, 11, 13}, drawUnsqueeze},
	{"Concat", []int{7, 11, 13}, drawConcat},
	{"Split", []int{7, 11, 13, 18}, drawSplit},
	{"Slice", []int{7, 10, 11, 13}, drawSlice},
	{"Expand", []int{8, 13}, drawExpand},
	{"Tile", []int{7, 13}, func(g *gen) trial {
		shape := g.some()
		return trial{operands: []operand{g.smooth(shape...), list(g.dims(len(shape), 1, 3)...)}}
	}},
	{"Pad", []int{7, 10, 11, 13, 18, 19, 21}, drawPad},
	{"DepthToSpace", []int{7, 11, 13}, func(g *gen) trial {
		n := g.between(1, 3)
		attrs := onnx.Attrs{"blocksize": n}
		if g.opset >= 11 && g.trial%3 > 0 {
			attrs["mode"] = []string{"DCR", "CRD"}[g.trial%2]
		}
		return unary(g.smooth(g.between(1, 2), n*n*g.between(1, 2), g.between(1, 3), g.between(1, 3)), attrs)
	}},
	{"SpaceToDepth", []int{7, 13}, func(g *gen) trial {
		n := g.between(1, 3)
		return unary(g.smooth(g.between(1, 2), g.between(1, 3), n*g.between(1, 3), n*g.between(1, 2)), onnx.Attrs{"blocksize": n})
	}},
	{"CumSum", []int{11, 14}, func(g *gen) trial {
		shape := g.some()
		return trial{
			operands: []operand{g.smooth(shape...), number(g.axis(len(shape))).fix()},
			attrs:    onnx.Attrs{"exclusive": g.IntN(2), "reverse": g.IntN(2)},
		}
	}},
	{"Trilu", []int{14}, func(g *gen) trial {
		tr := unary(g.smooth(g.dims(g.between(2, 4), 1, 4)...), g.maybe("upper", g.IntN(2)))
		if g.coin() {
			tr.operands = append(tr.operands, number(g.between(-2, 2)))
		}
		return tr
	}},
	{"Resize", []int{10, 11, 13, 18, 19}, drawResize},
	{"Upsample", []int{7, 9}, drawUpsample},
}

func drawDropout(g *gen) trial {
	tr := unary(g.smooth(g.some()...), nil)
	switch {
	case g.opset >= 12 && g.trial == 0: // nothing is dropped in training, either
		ratio := operand{shape: []int{}, floats: []float32{0}, given: true, fixed: g.coin()}
		tr.operands = append(tr.operands, ratio, operand{shape: []int{}, bools: []bool{true}, fixed: true})
	case g.opset >= 12 && g.coin():
		tr.operands = append(tr.operands, operand{shape: []int{}, floats: []float32{0.3}, given: true, fixed: true})
		if g.coin() {
			tr.operands = append(tr.operands, operand{shape: []int{}, bools: []bool{false}, fixed: true})
		}
	case g.opset < 12:
		tr.attrs = onnx.Attrs{"ratio": 0.4}
	}
	return tr
}

func drawReshape(g *gen) trial {
	shape := g.dims(4, 1, 4)
	target := [][]int{
		{shape[0], -1}, {-1, shape[2], shape[3]}, {0, 0, shape[3], shape[2]}, {-1}, {shape[1], shape[0], shape[2] * shape[3], 1},
	}[g.IntN(5)]
	tr := trial{operands: []operand{g.smooth(shape...), list(target...)}}
	if g.opset >= 14 && g.coin() && !slices.Contains(target, 0) {
		tr.attrs = onnx.Attrs{"allowzero": 1}
	}
	return tr
}

func drawSqueeze(g *gen) trial {
	shape := g.dims(4, 2, 3)
	ones := g.Perm(4)[:g.between(1, 3)]
	for _, axis := range ones {
		shape[axis] = 1
	}
	tr := unary(g.smooth(shape...), nil)
	if g.coin() {
		tr.known = everything(true) // all axes of size 1 go
		return tr
	}
	slices.Sort(ones) // else the engine leaves some
	for i := range ones {
		ones[i] = g.signed(ones[i], 4)
	}
	g.listed(&tr, 13, "axes", ones...)
	return tr
}

func drawUnsqueeze(g *gen) trial {
	shape := g.some()
	n := g.between(1, 2)
	axes := g.Perm(len(shape) + n)[:n]
	for i := range axes {
		axes[i] = g.signed(axes[i], len(shape)+n)
	}
	if g.opset < 11 {
		slices.Sort(axes)
	}
	tr := unary(g.smooth(shape...), nil)
	g.listed(&tr, 13, "axes", axes...)
	return tr
}

func drawConcat(g *gen) trial {
	shape := g.some()
	axis := g.IntN(len(shape))
	tr := trial{known: everything(g.opset < 10), attrs: onnx.Attrs{"axis": g.signed(axis, len(shape))}}
	for range g.between(1, 4) {
		part := slices.Clone(shape)
		part[axis] = g.between(1, 3)
		tr.operands = append(tr.operands, g.smooth(part...))
	}
	return tr
}

func drawSplit(g *gen) trial {
	parts := g.between(2, 3)
	shape := g.some()
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
	tr := trial{outputs: parts, attrs: onnx.Attrs{"axis": g.signed(axis, len(shape))}}
	uneven := equal && g.opset >= 18 && g.coin() && sizes[0] > 1
	if uneven {
		shape[axis]-- // the last part is smaller
	}
	tr.operands = []operand{g.smooth(shape...)}
	switch {
	case !equal:
		g.listed(&tr, 13, "split", sizes...)
	case g.opset >= 18:
		tr.attrs["num_outputs"] = parts
	}
	if g.coin() {
		tr.loss = g.Perm(parts)[:1] // the others are not used
	}
	return tr
}

func drawSlice(g *gen) trial {
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
				end = -1 << 31
			}
		case g.IntN(3) == 0:
			end = 1<<31 - 1
		case g.coin():
			start -= n
		}
		starts, ends, steps = append(starts, start), append(ends, end), append(steps, stride)
		axes = append(axes, g.signed(axis, len(shape)))
	}
	tr := unary(g.smooth(shape...), onnx.Attrs{})
	tr.known = everything(g.opset < 11)
	if g.opset < 10 {
		tr.attrs = onnx.Attrs{"starts": starts, "ends": ends, "axes": axes}
		return tr
	}
	tr.operands = append(tr.operands, list(starts...), list(ends...), list(axes...).fix(), list(steps...).fix())
	if g.opset < 11 || g.coin() {
		tr.operands[1], tr.operands[2] = tr.operands[1].fix(), tr.operands[2].fix()
	}
	narrow := g.coin()
	for i := range tr.operands[1:] {
		tr.operands[1+i].narrow = narrow
	}
	return tr
}

func drawExpand(g *gen) trial {
	shapes := g.broadcast(2)
	return trial{known: everything(g.opset < 13), operands: []operand{g.smooth(shapes[0]...), list(shapes[1]...)}}
}

func drawPad(g *gen) trial {
	modes := []string{"constant", "reflect", "edge"}
	sized := g.opset < 9
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
	tr := unary(g.smooth(shape...), onnx.Attrs{"mode": mode})
	tr.known = everything(sized)
	if g.opset < 11 {
		tr.attrs["pads"] = pads
		if g.coin() {
			tr.attrs["value"] = 0.5
		}
		return tr
	}
	if g.opset >= 18 && g.coin() { // only the last two axes
		rank := len(shape)
		tr.operands = append(tr.operands, list(append(pads[rank-2:rank:rank], pads[2*rank-2:]...)...).fix(), operand{}, list(-2, rank-1).fix())
		return tr
	}
	tr.operands = append(tr.operands, list(pads...).fix())
	if mode == "constant" && g.coin() {
		tr.operands = append(tr.operands, operand{shape: []int{}, floats: []float32{0.5}})
	}
	return tr
}

func drawUpsample(g *gen) trial {
	mode := []string{"nearest", "linear"}[g.trial%2]
	shape := g.dims(4, 1, 4)
	scales := []float32{1, 1, float32(g.between(2, 6)) / 2, float32(g.between(2, 6)) / 2}
	if g.opset < 9 {
		tr := unary(g.smooth(shape...), onnx.Attrs{"mode": mode, "scales": scales})
		tr.known = everything(true)
		return tr
	}
	return trial{attrs: onnx.Attrs{"mode": mode}, operands: []operand{g.smooth(shape...), {shape: []int{4}, floats: scales, given: true, fixed: true}}}
}

func drawResize(g *gen) trial {
	modes := []string{"nearest", "linear", "cubic"}
	if g.opset < 11 {
		modes = modes[:2]
	}
	mode := modes[g.trial%len(modes)]
	shape := []int{g.between(1, 2), g.between(1, 2), g.between(1, 5), g.between(1, 5)}
	factor := func(n int) float32 { return float32(max(g.between(1, 6), 2/n)) / 2 } // at least one element is left
	scales := operand{shape: []int{4}, floats: []float32{1, 1, factor(shape[2]), factor(shape[3])}, given: true, fixed: true}
	if g.IntN(4) == 0 { // an axis that is resized and keeps its size
		scales.floats[2], scales.floats[3] = 2, 1.2
	}
	attrs := onnx.Attrs{"mode": mode}
	if g.opset < 11 {
		return trial{attrs: attrs, operands: []operand{g.smooth(shape...), scales}}
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
	roi := operand{shape: []int{0}, floats: []float32{}, given: true, fixed: true}
	tr := trial{attrs: attrs, operands: []operand{g.smooth(shape...), roi, scales}}
	if g.opset >= 13 {
		tr.operands[1] = operand{}
	}
	if g.coin() {
		tr.operands[2] = operand{}
		if g.opset < 13 {
			tr.operands[2] = roi
		}
		sizes := []int{shape[0], shape[1], g.between(1, 8), g.between(1, 8)}
		if g.opset >= 18 && g.coin() {
			attrs["axes"] = []int{2, 3}
			sizes = sizes[2:]
		}
		tr.operands = append(tr.operands, list(sizes...).fix())
	}
	if attrs["antialias"] == nil && g.IntN(4) == 0 {
		g.cropped(&tr)
	}
	return tr
}

// cropped makes a Resize that is of a region, part of which may be beyond what is resized.
func (g *gen) cropped(tr *trial) {
	tr.attrs["coordinate_transformation_mode"], tr.attrs["extrapolation_value"] = "tf_crop_and_resize", 0.5
	starts, ends := []float32{0, 0}, []float32{1, 1}
	if tr.attrs["axes"] != nil {
		starts, ends = nil, nil
	}
	for range 2 {
		starts = append(starts, []float32{-0.25, 0, 0.125, 0.5}[g.IntN(4)])
		ends = append(ends, []float32{0.625, 0.75, 1, 1.25}[g.IntN(4)])
	}
	tr.operands[1] = operand{shape: []int{2 * len(starts)}, floats: append(starts, ends...), given: true, fixed: g.coin()}
}
