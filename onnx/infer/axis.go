package infer

import (
	"slices"

	"github.com/noether-ml/noether/tensor"
)

// A factor is a part of an axis with one meaning; their sizes multiply to that of the axis.
type factor struct {
	letter byte // blank if none, as for weights
	size   int  // -1 if it is unknown
}

// An axis of a tensor is a product of factors; the first varies slowest. Convolutions produce axes
// of one factor. Reshapes split and join axes. The factors keep their letters, so an axis that is
// split and joined again gets its letter back. The windows of a Swin transformer, for instance, are
// (N H1 W1) x (H2 W2) x C, where H1 x W1 counts the windows of an image and H2 x W2 is the size of
// one; they become N x H x W x C again.
type axis []factor

// A layout holds the axes of a tensor. It is nil if even their number is unknown.
type layout []axis

// blank is the letter of a factor whose meaning is unknown.
const blank = ' '

func newAxis(letter byte, size int) axis { return axis{{letter, size}} }

func (a axis) size() int {
	n := 1
	for _, f := range a {
		n = times(n, f.size) // -1 if either is
	}
	return n
}

// letter returns the letter of an axis as a whole, '?' if it is unknown. Height and width together
// are tokens (T). Channels flattened together with space are channels. A batch joined with
// something else (windows, attention heads) is unknown. Factors of size 1 beside others do not
// count, unless they are the batch.
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

func (a axis) resized(size int) axis {
	if a.size() == size && size >= 0 {
		return a
	}
	if letter := a.letter(); letter != '?' {
		return newAxis(letter, size)
	}
	return newAxis(blank, size)
}

// sizes returns the shape, with -1 for unknown sizes.
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

func unlabelled(sizes ...int) layout {
	l := make(layout, len(sizes))
	for i, s := range sizes {
		l[i] = newAxis(blank, s)
	}
	return l
}

// Up to two axes of size 1 without a letter that follow N and C are spatial: they were added to
// broadcast vectors to a feature map.
func (l layout) axes() tensor.Axes {
	letters := make([]byte, len(l))
	for i, a := range l {
		letters[i] = a.letter()
	}
	space := map[string]tensor.Axes{"NC?": "NCT", "NC??": "NCHW"}
	if full, ok := space[string(letters)]; ok && !slices.ContainsFunc(l[2:], func(a axis) bool { return a.size() != 1 }) {
		return full
	}
	return tensor.Axes(letters)
}

func (l layout) distinctLetters() int {
	seen := map[byte]bool{}
	for _, a := range l {
		if letter := a.letter(); letter != '?' {
			seen[letter] = true
		}
	}
	return len(seen)
}

// broadcast returns the layout of an element-wise operator's output. Each axis is that of an
// operand that is not broadcast along it. Of several, the operand with the most distinct letters
// counts or, without a letter there, one with a letter.
func broadcast(operands ...layout) layout {
	rank := 0
	for _, l := range operands {
		if l == nil {
			return nil
		}
		rank = max(rank, len(l))
	}
	ranked := slices.Clone(operands)
	slices.SortStableFunc(ranked, func(a, b layout) int { return b.distinctLetters() - a.distinctLetters() })
	out := make(layout, rank)
	for i := range out {
		for _, l := range ranked {
			j := i - (rank - len(l))
			if j >= 0 && (out[i] == nil || isMoreSpecific(l[j], out[i])) {
				out[i] = l[j]
			}
		}
	}
	return out
}

// isMoreSpecific reports whether axis a determines a broadcast axis rather than b.
func isMoreSpecific(a, b axis) bool {
	if (a.size() == 1) != (b.size() == 1) {
		return b.size() == 1
	}
	return b.letter() == '?' && a.letter() != '?'
}

// reshape distributes the factors over new axes in order, splitting one if an axis ends inside it.
// If that fails, it merges neighbouring factors of the same letter first. If that fails too, that
// axis and all later ones have no letter.
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

// joined returns the axis after merging neighbouring factors of the same letter.
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

// regroup distributes factors over axes of the given sizes; ok is false if some factor fits no
// axis. With an unknown size or 0, axes have no letters.
func regroup(factors []factor, sizes []int) (out layout, ok bool) {
	out = unlabelled(sizes...)
	if slices.ContainsFunc(factors, func(f factor) bool { return f.size <= 0 }) || slices.Min(append(sizes, 1)) <= 0 {
		return out, true
	}
	for i, size := range sizes {
		taken, rest, ok := takeFactors(factors, size, i == len(sizes)-1)
		if !ok {
			return out, false
		}
		if len(taken) > 0 {
			out[i] = taken
		}
		factors = rest
	}
	return out, true
}

// takeFactors takes the factors of an axis of the given size from the front of a list. A following
// factor of size 1 is left for the next axis. An axis of size 1 takes at most one factor, the last
// axis takes all.
func takeFactors(factors []factor, size int, last bool) (taken axis, rest []factor, ok bool) {
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
