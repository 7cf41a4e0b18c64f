package infer

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A factor is a part of an axis that has one meaning: a letter of Axes, or blank for what has none
// (weights), and how many places it has, -1 if that is unknown.
type factor struct {
	letter byte
	size   int
}

// An axis of a tensor is a product of factors, the first varying slowest. Convolutions make axes of
// one factor; reshaping splits and joins them, and since the factors remember where they come from,
// an axis that is put together again has its meaning back. So the windows of a Swin transformer, (N
// H1 W1) x (H2 W2) x C, become N x H x W x C.
type axis []factor

// A layout is the axes of a tensor; nil if not even their number is known.
type layout []axis

const blank = ' '

func one(letter byte, size int) axis { return axis{{letter, size}} }

// size is the number of places of an axis, -1 if unknown.
func (a axis) size() int {
	n := 1
	for _, f := range a {
		n = times(n, f.size)
	}
	return n
}

// letter is what an axis means as a whole. Positions in both directions together are tokens,
// anything that is flattened with channels is channels, and a batch that is mixed with something
// else (windows, heads) is no longer a batch.
func (a axis) letter() byte {
	var n, c, h, w, t, other bool
	for _, f := range a {
		if f.size == 1 && len(a) > 1 && f.letter != 'N' {
			continue
		}
		switch f.letter {
		case 'N':
			n = true
		case 'C':
			c = true
		case 'H':
			h = true
		case 'W':
			w = true
		case 'T':
			t = true
		default:
			other = true
		}
	}
	switch {
	case n && !(c || h || w || t || other):
		return 'N'
	case n || other:
		return '?'
	case c:
		return 'C'
	case t || h && w:
		return 'T'
	case h:
		return 'H'
	case w:
		return 'W'
	}
	return '?'
}

// resized is an axis of the same meaning with another size; the same axis if the size is the same.
func (a axis) resized(size int) axis {
	if a.size() == size && size >= 0 {
		return a
	}
	if letter := a.letter(); letter != '?' {
		return one(letter, size)
	}
	return one(blank, size)
}

// sizes is the shape, with -1 for what is unknown; nil for an unknown layout.
func (l layout) sizes() []int {
	if l == nil {
		return nil
	}
	sizes := make([]int, len(l))
	for i, a := range l {
		sizes[i] = a.size()
	}
	return sizes
}

// unlabelled is a layout without meaning.
func unlabelled(sizes ...int) layout {
	l := make(layout, len(sizes))
	for i, s := range sizes {
		l[i] = one(blank, s)
	}
	return l
}

// axes spells a layout. Axes of size 1 that were added behind N and C, to multiply a feature map,
// are its space.
func (l layout) axes() onnx.Axes {
	letters := make([]byte, len(l))
	for i, a := range l {
		letters[i] = a.letter()
	}
	space := map[string]onnx.Axes{"NC?": "NCT", "NC??": "NCHW"}
	if full, ok := space[string(letters)]; ok && !slices.ContainsFunc(l[2:], func(a axis) bool { return a.size() != 1 }) {
		return full
	}
	return onnx.Axes(letters)
}

// meaning counts the different letters of a layout, to choose between operands.
func (l layout) meaning() int {
	seen := map[byte]bool{}
	for _, a := range l {
		if letter := a.letter(); letter != '?' {
			seen[letter] = true
		}
	}
	return len(seen)
}

// broadcast is the layout of an element-by-element operator. Each axis is that of an operand that
// fills it, and of the one whose layout means most where several do.
func broadcast(operands ...layout) layout {
	rank := 0
	for _, l := range operands {
		if l == nil {
			return nil
		}
		rank = max(rank, len(l))
	}
	ranked := slices.Clone(operands)
	slices.SortStableFunc(ranked, func(a, b layout) int { return b.meaning() - a.meaning() })
	out := make(layout, rank)
	for i := range out {
		for _, l := range ranked {
			j := i - (rank - len(l))
			if j >= 0 && (out[i] == nil || better(l[j], out[i])) {
				out[i] = l[j]
			}
		}
	}
	return out
}

// better reports whether axis a says more about a broadcast axis than b does.
func better(a, b axis) bool {
	if (a.size() == 1) != (b.size() == 1) {
		return b.size() == 1
	}
	return b.letter() == '?' && a.letter() != '?'
}

// reshape gives a layout other sizes. It takes the factors in order, and splits one where an axis
// ends inside it. Where a boundary fits no factor, the factors of one letter in an axis count as one:
// 7 blocks of 8 rows can be read as 8 blocks of 7. An axis whose boundaries still fit none has no
// meaning, and so have all that follow.
func (l layout) reshape(sizes []int) layout {
	out, ok := regroup(slices.Concat(l...), sizes)
	if !ok {
		var joined []factor
		for _, a := range l {
			joined = append(joined, a.joined()...)
		}
		out, _ = regroup(joined, sizes)
	}
	return out
}

// joined is an axis whose neighbouring factors of one letter are one factor.
func (a axis) joined() axis {
	var out axis
	for _, f := range a {
		if last := len(out) - 1; last >= 0 && out[last].letter == f.letter && f.letter != blank {
			out[last].size *= f.size
			continue
		}
		out = append(out, f)
	}
	return out
}

// regroup distributes factors over axes of the given sizes; ok is false where one fits none.
func regroup(rest []factor, sizes []int) (out layout, ok bool) {
	out = unlabelled(sizes...)
	if slices.ContainsFunc(rest, func(f factor) bool { return f.size <= 0 }) || slices.Min(append(sizes, 1)) <= 0 {
		return out, true
	}
	for i, size := range sizes {
		taken, left, ok := take(rest, size, i == len(sizes)-1)
		if !ok {
			return out, false
		}
		if len(taken) > 0 {
			out[i] = taken
		}
		rest = left
	}
	return out, true
}

// take splits factors that make up an axis of a size off the front of a list. Factors of size 1 go
// with what precedes them if an axis of their own does not follow; the last axis takes all that are
// left.
func take(factors []factor, size int, last bool) (taken axis, rest []factor, ok bool) {
	if size == 1 && !last {
		if len(factors) > 0 && factors[0].size == 1 {
			return axis{factors[0]}, factors[1:], true
		}
		return nil, factors, true
	}
	for size > 1 {
		if len(factors) == 0 {
			return nil, nil, false
		}
		f := factors[0]
		switch {
		case size%f.size == 0:
			taken, factors = append(taken, f), factors[1:]
			size /= f.size
		case f.size%size == 0:
			taken = append(taken, factor{f.letter, size})
			factors = append([]factor{{f.letter, f.size / size}}, factors[1:]...)
			size = 1
		default:
			return nil, nil, false
		}
	}
	if last {
		taken = append(taken, factors...)
		return taken, nil, axis(factors).size() == 1
	}
	return taken, factors, true
}
