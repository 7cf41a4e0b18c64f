package infer

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// The layouts of operators that rearrange elements without arithmetic. x is the layout of the first
// input.

func (op *operation) transpose(x layout) layout {
	perm := onnx.AttrInts(op.node, "perm")
	if perm == nil {
		out := slices.Clone(x)
		slices.Reverse(out)
		return out
	}
	if len(perm) != len(x) {
		return nil
	}
	out := make(layout, len(x))
	for i, p := range perm {
		if p < 0 || p >= len(x) {
			return nil
		}
		out[i] = x[p]
	}
	return out
}

func (op *operation) reshape(x layout) layout {
	sizes := onnx.AttrInts(op.node, "shape")
	if sizes == nil {
		v := op.value(1)
		if v == nil {
			return op.fromShape(1)
		}
		if sizes = requestedSizes(v); len(sizes) > maxRank {
			return nil
		}
	}
	sizes = slices.Clone(sizes)
	known := x.sizes()
	// Index of the size -1; product of the other sizes; elements of x.
	inferred, rest, total := -1, 1, 1
	for i, s := range sizes {
		if s == 0 && onnx.AttrInt(op.node, "allowzero", 0) == 0 && i < len(known) {
			sizes[i] = known[i]
		}
		if s == -1 {
			inferred = i
		} else {
			rest = times(rest, sizes[i])
		}
	}
	for _, s := range known {
		total = times(total, s)
	}
	if inferred >= 0 && x != nil && total > 0 && rest > 0 && total%rest == 0 {
		sizes[inferred] = total / rest
	}
	if x == nil {
		return unlabelled(sizes...)
	}
	return x.reshape(sizes)
}

func requestedSizes(v *array) []int {
	sizes := make([]int, len(v.data))
	for i, d := range v.data {
		sizes[i] = -2
		if d >= -1 && d < 1<<31 {
			sizes[i] = int(d)
		}
	}
	return sizes
}

func (op *operation) flatten(x layout) layout {
	at := onnx.AttrInt(op.node, "axis", 1)
	if at < 0 {
		at += len(x)
	}
	if x == nil || at < 0 || at > len(x) {
		return unknownSizes(2)
	}
	join := func(part layout) axis {
		if len(part) == 0 {
			return newAxis(blank, 1)
		}
		return slices.Concat(part...)
	}
	return layout{join(x[:at]), join(x[at:])}
}

func (op *operation) squeeze(x layout) layout {
	axes, ok := op.list("axes", 1)
	if !ok || x == nil {
		return nil
	}
	var removed []int
	for _, a := range axes {
		if a, ok := normalizeAxis(a, len(x)); ok {
			removed = append(removed, a)
		}
	}
	out := layout{}
	for i, a := range x {
		if axes == nil && op.in.distinctSizes > 0 && op.in.assumedSizes[a.size()] {
			return nil // its size is assumed; it may be 1
		}
		if axes == nil && a.size() == 1 || slices.Contains(removed, i) {
			continue
		}
		out = append(out, a)
	}
	return out
}

func (op *operation) unsqueeze(x layout) layout {
	axes, ok := op.list("axes", 1)
	if !ok || x == nil || len(axes) > maxRank {
		return nil
	}
	out := make(layout, len(x)+len(axes))
	for _, a := range axes {
		a, ok := normalizeAxis(a, len(out))
		if !ok || out[a] != nil {
			return nil
		}
		out[a] = newAxis(blank, 1)
	}
	for i, j := 0, 0; i < len(out); i++ {
		if out[i] == nil {
			out[i] = x[j]
			j++
		}
	}
	return out
}

func (op *operation) concat() layout {
	parts := op.argLayouts()
	out := broadcast(parts...)
	at, ok := op.axisOf(1, len(out))
	if !ok {
		return nil
	}
	total := 0
	meaning := out[at]
	for _, l := range parts {
		if len(l) != len(out) {
			return nil
		}
		if meaning.letter() == '?' {
			meaning = l[at]
		}
		if s := l[at].size(); s < 0 || total < 0 {
			total = -1
		} else {
			total += s
		}
	}
	out[at] = meaning.resized(total)
	return out
}

func (op *operation) split(x layout) []layout {
	parts := make([]layout, len(op.node.Output))
	at, ok := op.axisOf(0, len(x))
	if !ok {
		return parts
	}
	sizes, _ := op.list("split", 1)
	for i := range parts {
		size := -1
		if i < len(sizes) {
			size = sizes[i]
		} else if whole := x[at].size(); whole >= 0 && len(sizes) == 0 {
			each := (whole + len(parts) - 1) / len(parts)
			size = max(min(each, whole-i*each), 0)
		}
		parts[i] = slices.Clone(x)
		parts[i][at] = x[at].resized(size)
	}
	return parts
}

func (op *operation) slice(x layout) layout {
	if x == nil {
		return nil
	}
	out := slices.Clone(x)
	cuts, ok := op.cuts(x)
	if !ok {
		return out.unsized()
	}
	for _, s := range cuts {
		out[s.axis] = x[s.axis].resized(s.count)
	}
	return out
}

func (l layout) unsized() layout {
	out := make(layout, len(l))
	for i, a := range l {
		out[i] = newAxis(blank, -1)
		if letter := a.letter(); letter != '?' {
			out[i] = newAxis(letter, -1)
		}
	}
	return out
}

// A cut is what Slice takes of one axis: count positions (-1: unknown) from start on, step apart.
type cut struct{ axis, start, step, count int }

// cuts returns the cuts of a Slice node; ok is false if its axes are unknown.
func (op *operation) cuts(x layout) (cuts []cut, ok bool) {
	starts, startsKnown := op.list("starts", 1)
	ends, endsKnown := op.list("ends", 2)
	axes, axesKnown := op.list("axes", 3)
	steps, stepsKnown := op.list("", 4) // never an attribute
	if axes == nil && axesKnown {
		for i := range max(len(starts), len(ends)) {
			axes = append(axes, i)
		}
	}
	if !axesKnown || axes == nil && (!startsKnown || !endsKnown) {
		return nil, false
	}
	for i, a := range axes {
		a, ok := normalizeAxis(a, len(x))
		if !ok {
			return nil, false
		}
		s := cut{axis: a, step: 1, count: -1}
		if steps != nil && i < len(steps) {
			s.step = steps[i]
		}
		known := startsKnown && endsKnown && stepsKnown && i < len(starts) && i < len(ends)
		if size := x[a].size(); known && size >= 0 && s.step != 0 {
			s.start, s.count = bounds(starts[i], ends[i], s.step, size)
			if s.count == 0 && size > 0 && (starts[i] < 0) != (ends[i] < 0) {
				// One bound counts from the start, the other from the end, and the size may be
				// assumed. A longer axis may have positions between them.
				s.count = -1
			}
		}
		cuts = append(cuts, s)
	}
	return cuts, true
}

// bounds returns the first position and the number that Slice takes of an axis; negative bounds
// count from its end.
func bounds(start, end, step, size int) (from, count int) {
	if start < 0 {
		start += size
	}
	if end < 0 {
		end += size
	}
	if step > 0 {
		start, end = max(0, min(start, size)), max(0, min(end, size))
		return start, max(0, (end-start+step-1)/step)
	}
	start, end = max(0, min(start, size-1)), max(-1, min(end, size-1))
	return start, max(0, (start-end-step-1)/-step)
}

// gather replaces one axis of x by the axes of the indices. A vector of indices without a letter
// gets that axis's. The last axis of a constant table, such as embeddings, becomes channels.
func (op *operation) gather(x layout) layout {
	at, ok := op.axisOf(0, len(x))
	indices := op.layout(1)
	if !ok || indices == nil {
		return nil
	}
	picked := slices.Clone(indices)
	if len(picked) == 1 && picked[0].letter() == '?' {
		picked[0] = x[at].resized(indices[0].size())
	}
	out := slices.Insert(slices.Delete(slices.Clone(x), at, at+1), at, picked...)
	if last := len(out) - 1; op.args[1].dependsOnInput && !op.args[0].dependsOnInput && last >= 0 && out[last].letter() == '?' {
		out[last] = newAxis('C', out[last].size())
	}
	return out
}

func (op *operation) pad(x layout) layout {
	if x == nil {
		return nil
	}
	pads, _ := op.list("pads", 1)
	axes, ok := op.list("", 3)
	if axes == nil && ok {
		for i := range x {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) || !ok {
		return x.unsized()
	}
	out := slices.Clone(x)
	for i, a := range axes {
		if a, ok := normalizeAxis(a, len(x)); ok && x[a].size() >= 0 {
			out[a] = x[a].resized(x[a].size() + pads[i] + pads[i+len(axes)])
		}
	}
	return out
}

func (op *operation) topK(x layout) layout {
	at, ok := op.axisOf(-1, len(x))
	if !ok {
		return nil
	}
	k := onnx.AttrInt(op.node, "k", -1)
	if v := op.value(1).ints(); len(v) == 1 {
		k = v[0]
	}
	out := slices.Clone(x)
	out[at] = x[at].resized(k)
	return out
}

func (op *operation) oneHot(x layout) layout {
	at := onnx.AttrInt(op.node, "axis", -1)
	if at < 0 {
		at += len(x) + 1
	}
	if x == nil || at < 0 || at > len(x) {
		return nil
	}
	depth := -1
	if v := op.value(1).ints(); len(v) == 1 {
		depth = v[0]
	}
	return slices.Insert(slices.Clone(x), at, newAxis('C', depth))
}
