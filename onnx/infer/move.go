package infer

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// The layouts of operators that move elements without computing with them.

func (c *node) transpose(x layout) layout {
	perm := onnx.AttrInts(c.node, "perm")
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

func (c *node) reshape(x layout) layout {
	sizes := onnx.AttrInts(c.node, "shape")
	if sizes == nil {
		v := c.val(1)
		if v == nil {
			return c.fromShape(1)
		}
		if sizes = asked(v); len(sizes) > maxRank {
			return nil
		}
	}
	sizes = slices.Clone(sizes)
	known := x.sizes()
	free, rest, total := -1, 1, 1
	for i, s := range sizes {
		if s == 0 && onnx.AttrInt(c.node, "allowzero", 0) == 0 && i < len(known) {
			sizes[i] = known[i]
		}
		if s == -1 {
			free = i
		} else {
			rest = times(rest, sizes[i])
		}
	}
	for _, s := range known {
		total = times(total, s)
	}
	if free >= 0 && x != nil && total > 0 && rest > 0 && total%rest == 0 {
		sizes[free] = total / rest
	}
	if x == nil {
		return unlabelled(sizes...)
	}
	return x.reshape(sizes)
}

// asked is the shape that Reshape is given: -1 stays, and what is not known is -2.
func asked(v *array) []int {
	sizes := make([]int, len(v.data))
	for i, d := range v.data {
		sizes[i] = -2
		if d >= -1 && d < 1<<31 {
			sizes[i] = int(d)
		}
	}
	return sizes
}

func (c *node) flatten(x layout) layout {
	at := onnx.AttrInt(c.node, "axis", 1)
	if at < 0 {
		at += len(x)
	}
	if x == nil || at < 0 || at > len(x) {
		return unknowns(2)
	}
	join := func(part layout) axis {
		if len(part) == 0 {
			return one(blank, 1)
		}
		return slices.Concat(part...)
	}
	return layout{join(x[:at]), join(x[at:])}
}

func (c *node) squeeze(x layout) layout {
	axes, ok := c.list("axes", 1)
	if !ok || x == nil {
		return nil
	}
	var gone []int
	for _, a := range axes {
		if a, ok := front(a, len(x)); ok {
			gone = append(gone, a)
		}
	}
	out := layout{}
	for i, a := range x {
		if axes == nil && c.in.distinct > 0 && c.in.free[a.size()] {
			return nil // it may be 1, and gone
		}
		if axes == nil && a.size() == 1 || slices.Contains(gone, i) {
			continue
		}
		out = append(out, a)
	}
	return out
}

func (c *node) unsqueeze(x layout) layout {
	axes, ok := c.list("axes", 1)
	if !ok || x == nil || len(axes) > maxRank {
		return nil
	}
	out := make(layout, len(x)+len(axes))
	for _, a := range axes {
		a, ok := front(a, len(out))
		if !ok || out[a] != nil {
			return nil
		}
		out[a] = one(blank, 1)
	}
	for i, j := 0, 0; i < len(out); i++ {
		if out[i] == nil {
			out[i] = x[j]
			j++
		}
	}
	return out
}

func (c *node) concat() layout {
	parts := c.argLayouts()
	out := broadcast(parts...)
	at, ok := c.axisOf("axis", 1, len(out))
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

func (c *node) split(x layout) []layout {
	parts := make([]layout, len(c.node.Output))
	at, ok := c.axisOf("axis", 0, len(x))
	if !ok {
		return parts
	}
	sizes, _ := c.list("split", 1)
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

func (c *node) slice(x layout) layout {
	if x == nil {
		return nil
	}
	out := slices.Clone(x)
	spans, ok := c.spans(x)
	if !ok {
		return out.unsized()
	}
	for _, s := range spans {
		out[s.axis] = x[s.axis].resized(s.count)
	}
	return out
}

// unsized is a layout of the same meaning and unknown sizes.
func (l layout) unsized() layout {
	out := make(layout, len(l))
	for i, a := range l {
		out[i] = one(blank, -1)
		if letter := a.letter(); letter != '?' {
			out[i] = one(letter, -1)
		}
	}
	return out
}

// A cut is what Slice takes along an axis: count places from start by step; count is -1 if it is
// not known.
type cut struct{ axis, start, step, count int }

// spans are the cuts of a Slice; ok is false where not even its axes are known.
func (c *node) spans(x layout) (cuts []cut, ok bool) {
	starts, known1 := c.list("starts", 1)
	ends, known2 := c.list("ends", 2)
	axes, known3 := c.list("axes", 3)
	steps, known4 := c.list("", 4)
	if axes == nil && known3 {
		for i := range max(len(starts), len(ends)) {
			axes = append(axes, i)
		}
	}
	if !known3 || axes == nil && (!known1 || !known2) {
		return nil, false
	}
	for i, a := range axes {
		a, ok := front(a, len(x))
		if !ok {
			return nil, false
		}
		s := cut{axis: a, step: 1, count: -1}
		if steps != nil && i < len(steps) {
			s.step = steps[i]
		}
		if size := x[a].size(); known1 && known2 && known4 && i < len(starts) && i < len(ends) && size >= 0 && s.step != 0 {
			s.start, s.count = bounds(starts[i], ends[i], s.step, size)
			if s.count == 0 && size > 0 && (starts[i] < 0) != (ends[i] < 0) {
				s.count = -1 // from a place counted from one end to a place counted from the other: a longer axis may have more
			}
		}
		cuts = append(cuts, s)
	}
	return cuts, true
}

// bounds works out, as Slice does, where a cut of an axis of some size begins and how many places
// it takes.
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

// gather replaces an axis by those of the indices. One row of indices keeps the meaning of the
// axis; looking vectors up in a table makes channels.
func (c *node) gather(x layout) layout {
	at, ok := c.axisOf("axis", 0, len(x))
	indices := c.arg(1)
	if !ok || indices == nil {
		return nil
	}
	picked := slices.Clone(indices)
	if len(picked) == 1 && picked[0].letter() == '?' {
		picked[0] = x[at].resized(indices[0].size())
	}
	out := slices.Insert(slices.Delete(slices.Clone(x), at, at+1), at, picked...)
	if last := len(out) - 1; c.args[1].data && !c.args[0].data && last >= 0 && out[last].letter() == '?' {
		out[last] = one('C', out[last].size())
	}
	return out
}

func (c *node) pad(x layout) layout {
	if x == nil {
		return nil
	}
	pads, _ := c.list("pads", 1)
	axes, ok := c.list("", 3)
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
		if a, ok := front(a, len(x)); ok && x[a].size() >= 0 {
			out[a] = x[a].resized(x[a].size() + pads[i] + pads[i+len(axes)])
		}
	}
	return out
}

func (c *node) topK(x layout) layout {
	at, ok := c.axisOf("axis", -1, len(x))
	if !ok {
		return nil
	}
	k := onnx.AttrInt(c.node, "k", -1)
	if v := c.val(1).ints(); len(v) == 1 {
		k = v[0]
	}
	out := slices.Clone(x)
	out[at] = x[at].resized(k)
	return out
}

func (c *node) oneHot(x layout) layout {
	at := onnx.AttrInt(c.node, "axis", -1)
	if at < 0 {
		at += len(x) + 1
	}
	if x == nil || at < 0 || at > len(x) {
		return nil
	}
	depth := -1
	if v := c.val(1).ints(); len(v) == 1 {
		depth = v[0]
	}
	return slices.Insert(slices.Clone(x), at, one('C', depth))
}
