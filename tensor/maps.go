package tensor

import (
	"fmt"
	"math"
	"strings"
)

// Maps describes the positions of the feature maps of one sample among the values of a layer.
// Positions are numbered row by row. Channel c at position i is value
//
//	Base + c ChannelStep + i PositionStep.
type Maps struct {
	Channels     int
	Grid         []int // height and width, or length
	Base         int   // number of values before the first position, such as those of a class token
	ChannelStep  int
	PositionStep int
}

// Positions returns the number of positions.
func (m Maps) Positions() int {
	n := 1
	for _, side := range m.Grid {
		n *= side
	}
	return n
}

// Size returns the height and the width of the maps, and whether they have two dimensions. A
// sequence of length n has height 1 and width n.
func (m Maps) Size() (h, w int, plane bool) {
	if len(m.Grid) == 2 {
		return m.Grid[0], m.Grid[1], true
	}
	return 1, m.Grid[0], false
}

// Maps returns where the layer's feature maps are among the values of a sample (l.Shape has no
// batch), or why it has none; why is "" if it has some.
func (l Layer) Maps() (m Maps, why string) {
	axes := string(l.Axes)
	if len(axes) != len(l.Shape)+1 || strings.Contains(axes, "?") || !strings.HasPrefix(axes, "N") {
		return m, fmt.Sprintf("its axes are not known (%s, shape %v); they can be set in the study", axes, l.Shape)
	}
	for _, n := range l.Shape {
		if n < 1 || n > math.MaxInt32 {
			return m, fmt.Sprintf("its shape %v is not known", l.Shape)
		}
	}
	s := l.Shape
	switch axes {
	case "NCHW":
		m = Maps{Channels: s[0], Grid: s[1:], ChannelStep: s[1] * s[2], PositionStep: 1}
	case "NHWC":
		m = Maps{Channels: s[2], Grid: s[:2], ChannelStep: 1, PositionStep: s[2]}
	case "NCT":
		m = Maps{Channels: s[0], Grid: s[1:], ChannelStep: s[1], PositionStep: 1}
	case "NTC":
		m = l.tokenMaps(s[0], s[1])
	case "NC":
		return m, "the layer has no positions"
	default:
		return m, fmt.Sprintf("feature maps (NCHW, NHWC), tokens (NTC) or 1-D maps (NCT) are needed, not %s", axes)
	}
	if m.Positions() < 2 {
		return m, "the layer has a single position"
	}
	return m, ""
}

// tokenMaps returns the maps of t tokens of c channels. If l.Tokens does not state their grid, it
// is guessed: if t - 1 is a square, the first token is taken for a class token, and the others for
// a square grid; if t is a square, all are a grid; otherwise they are a sequence.
func (l Layer) tokenMaps(t, c int) Maps {
	m := Maps{Channels: c, Grid: []int{t}, ChannelStep: 1, PositionStep: c}
	if k := l.Tokens; k != nil && k.Prefix+k.Height*k.Width == t {
		m.Grid, m.Base = []int{k.Height, k.Width}, k.Prefix*c
	} else if side, ok := squareRoot(t - 1); ok {
		m.Grid, m.Base = []int{side, side}, c
	} else if side, ok := squareRoot(t); ok {
		m.Grid = []int{side, side}
	}
	return m
}

// squareRoot returns the square root of n, and reports whether it is a whole number.
func squareRoot(n int) (int, bool) {
	r := int(math.Sqrt(float64(n)))
	return r, r*r == n
}
