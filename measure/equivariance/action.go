package equivariance

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/internal/action"
	"github.com/noether-ml/noether/measure/paired"
	"github.com/noether-ml/noether/tensor"
)

// A layerAction computes the statistics of samples at a layer f: tau z, with z = f(x), against
// f(T(x)). A row of tau z has its values in the layer's order, without those before the first
// position, then for each position 1 if it counts and 0 if not. Positions whose value depends on
// what lies outside the map do not count.
type layerAction struct {
	maps     tensor.Maps
	settings Settings
	fields   *action.Cache // the actions tau
	counted  []action.Run  // counted positions of the row in Pair; reused memory
	pairs    [2]pair       // of the latest sample, and of the one before it
}

func newAction(l tensor.Layer, s Settings, fields *action.Cache) (paired.Action, error) {
	maps, why := l.Maps()
	if why != "" {
		return nil, fmt.Errorf("equivariance-error cannot measure layer %q: %s", l.Name, why)
	}
	return &layerAction{maps: maps, settings: s, fields: fields}, nil
}

func (a *layerAction) Len() int { return (a.maps.Channels + 1) * a.maps.Positions() }

func (a *layerAction) layout() action.Layout {
	return action.Layout{Channels: a.maps.Channels, Planes: a.maps.PositionStep == 1}
}

// Act also sets the column floor of out: the error of tau^-1 tau z. Channels of a group convolution
// are permuted, too.
func (a *layerAction) Act(dst []float32, out []float64, z []float32, move measure.Motion) error {
	h, w, _ := a.maps.Size()
	points, ok := measure.PointMapOf(move, h, w)
	if !ok {
		return paired.ErrLeftOut
	}
	f := a.fields.Of(points, action.Grid{Height: h, Width: w, Margin: a.settings.Margin})
	if f.N == 0 {
		return paired.ErrLeftOut
	}
	steps, err := a.settings.Channels.shift(points)
	if err != nil {
		return err
	}
	n := a.maps.Channels * h * w
	counted := dst[n:]
	clear(counted)
	for _, r := range f.Counted {
		for at := r.From; at < r.To; at++ {
			counted[at] = 1
		}
	}
	var s action.FloorSums
	f.Act(dst[:n], z[a.maps.Base:][:n], a.layout(), a.settings.Channels.destinations(a.maps.Channels, steps), &s)
	if !finite(s.Difference) || !finite(s.Norm) {
		return &measure.NonFinite{View: "clean"}
	}
	out[floor] = relative(s.Difference, s.Norm)
	a.pairs[0], a.pairs[1] = pair{acted: &dst[0], field: f}, a.pairs[0]
	return nil
}

// Pair is called after Act for the latest sample's pair, then for tau z of the previous sample with
// the latest transformed row. If both have the same T, norms are known from their own pairs. At the
// end of a block, the last tau z is paired with the first transformed row.
func (a *layerAction) Pair(out []float64, acted, transformed []float32) error {
	var s action.Sums
	var dot float64
	last, previous := &a.pairs[0], &a.pairs[1]
	switch {
	case &acted[0] == previous.acted && &transformed[0] == last.transformed && previous.field == last.field:
		s.AA, s.BB = previous.sums.AA, last.sums.BB
		dot = a.dot(acted, transformed)
		s.Difference = s.AA + s.BB - 2*dot
		if s.Difference < 1e-3*(s.AA+s.BB) { // cancellation leaves too few digits
			s = a.sums(acted, transformed)
		}
	case &acted[0] == last.acted:
		s = a.sums(acted, transformed)
		last.transformed, last.sums = &transformed[0], s
		dot = s.Dot()
	default:
		s = a.sums(acted, transformed)
		dot = s.Dot()
	}
	if max(s.AA, s.BB) > 100*min(s.AA, s.BB) { // Sums.Dot would lose digits by cancellation
		dot = a.dot(acted, transformed)
	}
	if !finite(s.AA) {
		return &measure.NonFinite{View: "clean"}
	}
	if !finite(s.BB) {
		return &measure.NonFinite{View: "transformed"}
	}
	out[relativeError], out[cosine] = relative(s.Difference, s.AA), cosineOf(s, dot)
	return nil
}

// A pair holds tau z and the transformed row of a sample, and their sums over counted positions: AA
// and BB of squares, Difference of squared differences.
type pair struct {
	acted, transformed *float32 // the first values, by whose addresses a row is recognised
	field              *action.Field
	sums               action.Sums
}

func (a *layerAction) sums(acted, transformed []float32) action.Sums {
	x, y, rows := a.compared(acted, transformed)
	return action.SumsOver(x, y, rows, a.counted)
}

func (a *layerAction) dot(acted, transformed []float32) float64 {
	x, y, rows := a.compared(acted, transformed)
	return action.DotOver(x, y, rows, a.counted)
}

// compared returns the values x of tau z and y of a transformed row, each divided into rows of
// equal length. These are the channels, or one row if every position counts or channels are last.
// It sets a.counted to the runs of values that count in a row.
func (a *layerAction) compared(acted, transformed []float32) (x, y []float32, rows int) {
	positions, channels := a.maps.Positions(), a.maps.Channels
	n := channels * positions
	a.findCounted(acted[n:])
	x, y, rows = acted[:n], transformed[a.maps.Base:][:n], channels
	whole := len(a.counted) == 1 && a.counted[0] == (action.Run{From: 0, To: positions})
	if whole || !a.layout().Planes {
		rows = 1
		for i, r := range a.counted {
			a.counted[i] = action.Run{From: r.From * channels, To: r.To * channels}
		}
	}
	return x, y, rows
}

func (a *layerAction) findCounted(marks []float32) {
	a.counted = a.counted[:0]
	for at := 0; at < len(marks); at++ {
		if marks[at] == 0 {
			continue
		}
		from := at
		for at < len(marks) && marks[at] != 0 {
			at++
		}
		a.counted = append(a.counted, action.Run{From: from, To: at})
	}
}

// relative returns the ratio of two norms, given squares: 0 if the first is 0, 1 if only the second
// is.
func relative(difference, norm float64) float64 {
	switch {
	case difference == 0:
		return 0
	case norm == 0:
		return 1
	}
	return math.Sqrt(difference / norm)
}

// cosineOf returns the cosine of two rows from their sums and dot product: 1 if both are 0, 0 if
// one is.
func cosineOf(s action.Sums, dot float64) float64 {
	switch {
	case s.AA == 0 && s.BB == 0:
		return 1
	case s.AA == 0 || s.BB == 0:
		return 0
	}
	return min(max(dot/math.Sqrt(s.AA)/math.Sqrt(s.BB), -1), 1)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
