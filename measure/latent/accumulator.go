package latent

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/internal/action"
	"github.com/noether-ml/noether/tensor"
)

// An accumulator holds the second moments of channels for each fold.
type accumulator struct {
	setup
	site    measure.Site // what is measured: a layer of a model under a transformation
	folds   []fold
	leftOut int // number of samples without a position known to be inside the map before and after T
	scratch linalg.Scratch
	block   rows      // observations that are not in a fold yet
	acted   []float32 // tau f(x) of a sample
}

// A fold holds second moments over samples and positions p: of (f(x)_p, f(Tx)_p) and, if positions
// move, of ((tau f(x))_p, f(Tx)_p).
type fold struct {
	samples     int // number of its samples
	same, moved *linalg.Scatter[float64]
}

// rows buffers observations of one fold before they are added to its moments. same and moved are n
// x 2C: the channels of the clean maps, then of the transformed ones.
type rows struct {
	fold, n     int // index of the fold, and number of observations
	same, moved []float32
}

// blockRows is the number of buffered observations at which they are added to their fold.
const blockRows = 2048

func newAccumulator(s setup, site measure.Site) *accumulator {
	a := &accumulator{setup: s, site: site, folds: make([]fold, s.foldCount)}
	for i := range a.folds {
		a.folds[i].same = linalg.NewScatter[float64](2 * s.maps.Channels)
		if s.movesPositions {
			a.folds[i].moved = linalg.NewScatter[float64](2 * s.maps.Channels)
		}
	}
	return a
}

// For NaN and infinity the error is a *measure.NonFinite.
func (a *accumulator) Update(b *measure.Batch) error {
	if err := a.check(b); err != nil {
		return err
	}
	defer func() { a.block, a.acted, a.scratch = rows{}, nil, linalg.Scratch{} }() // free the memory that Borrowed reports
	for i, place := range b.Place {
		// Folds consist of whole jackknife groups.
		if f := a.site.Layout.Group(place) % a.foldCount; f != a.block.fold || a.block.n >= blockRows {
			a.flush()
			a.block.fold = f
		}
		for _, v := range []struct {
			name string
			z    tensor.Tensor
		}{{"clean", b.Clean}, {"transformed", b.Transformed}} {
			if v.z.At(i).FirstNonFinite() >= 0 {
				return &measure.NonFinite{View: v.name, Index: b.Index[i]}
			}
		}
		var move measure.Motion
		if len(b.Motions) > 0 {
			move = b.Motions[i]
		}
		a.addSample(b.Clean.At(i).Data, b.Transformed.At(i).Data, move)
	}
	a.flush()
	return nil
}

func (a *accumulator) check(b *measure.Batch) error {
	n := len(b.Place)
	for _, z := range []tensor.Tensor{b.Clean, b.Transformed} {
		if z.Rank() == 0 || z.Shape[0] != n || !slices.Equal(z.Shape[1:], a.site.Layer.Shape) {
			return fmt.Errorf("latent-operator: the activations of %d samples have shape %v; layer %q has %v for each sample", n, z.Shape, a.site.Layer.Name, a.site.Layer.Shape)
		}
	}
	if a.movesPositions && len(b.Motions) != n {
		return fmt.Errorf("latent-operator needs the transformation of each sample, but the batch has %d of %d", len(b.Motions), n)
	}
	for i, p := range b.Place {
		if p < 0 || p >= a.site.Layout.N || i > 0 && p <= b.Place[i-1] {
			return fmt.Errorf("latent-operator: place %d in a layout of %d samples: places must be ascending and in its range", p, a.site.Layout.N)
		}
	}
	return nil
}

// maps.Base is the number of values before the first position.
func (a *accumulator) addSample(clean, transformed []float32, move measure.Motion) {
	positions, c := a.maps.Positions(), a.maps.Channels
	n := positions * c
	counted := []action.Run{{From: 0, To: positions}}
	clean, transformed = clean[a.maps.Base:][:n], transformed[a.maps.Base:][:n]
	if a.plane && !a.movesPositions && a.margin > 0 {
		f := a.fields.Of(measure.StillPoints(a.h, a.w), action.Grid{Height: a.h, Width: a.w, Margin: a.margin})
		if f.N == 0 {
			a.leftOut++
			return
		}
		counted = f.Counted
	}
	if a.movesPositions {
		points, ok := measure.PointMapOf(move, a.h, a.w)
		f := a.fields.Of(points, action.Grid{Height: a.h, Width: a.w, Margin: a.margin})
		if !ok || f.N == 0 {
			a.leftOut++
			return
		}
		counted = f.Counted
		if a.acted == nil {
			a.acted = make([]float32, n)
		}
		f.Act(a.acted, clean, action.Layout{Channels: c, Planes: a.planes()}, nil, nil) // nil: channels stay, no errors of interpolation
		a.block.moved = a.appendRows(a.block.moved, counted, a.acted, transformed)
	}
	a.block.same = a.appendRows(a.block.same, counted, clean, transformed)
	a.block.n = len(a.block.same) / (2 * c)
	a.folds[a.block.fold].samples++
}

func (s setup) planes() bool { return s.maps.PositionStep == 1 && s.maps.Positions() > 1 }

// appendRows appends a row of 2C values for each counted position: the channels of x, then of y.
func (a *accumulator) appendRows(to []float32, counted []action.Run, x, y []float32) []float32 {
	c, positions := a.maps.Channels, a.maps.Positions()
	for _, r := range counted {
		at, n := len(to), r.To-r.From
		to = slices.Grow(to, 2*c*n)[:at+2*c*n]
		rows := to[at:]
		if !a.planes() {
			for p := range n {
				copy(rows[2*c*p:], x[(r.From+p)*c:(r.From+p+1)*c])
				copy(rows[2*c*p+c:], y[(r.From+p)*c:(r.From+p+1)*c])
			}
			continue
		}
		for k := range c {
			from := k*positions + r.From
			for p, v := range x[from : from+n] {
				rows[2*c*p+k] = v
			}
			for p, v := range y[from : from+n] {
				rows[2*c*p+c+k] = v
			}
		}
	}
	return to
}

func (a *accumulator) flush() {
	if a.block.n == 0 {
		return
	}
	f := &a.folds[a.block.fold]
	f.same.Add(linalg.Centre(a.block.same, f.same.P), nil, &a.scratch)
	if a.movesPositions {
		f.moved.Add(linalg.Centre(a.block.moved, f.moved.P), nil, &a.scratch)
	}
	a.block.n, a.block.same, a.block.moved = 0, a.block.same[:0], a.block.moved[:0]
}

func (a *accumulator) Merge(other measure.Accumulator) error {
	o, ok := other.(*accumulator)
	if !ok || o.maps.Channels != a.maps.Channels || o.movesPositions != a.movesPositions || o.site.Layout != a.site.Layout || o.foldCount != a.foldCount {
		return fmt.Errorf("latent-operator: merging states of different layers, layouts or settings")
	}
	a.leftOut += o.leftOut
	for i := range a.folds {
		a.folds[i].samples += o.folds[i].samples
		a.folds[i].same.Merge(o.folds[i].same)
		if a.movesPositions {
			a.folds[i].moved.Merge(o.folds[i].moved)
		}
	}
	return nil
}

func (a *accumulator) Code(c *state.Codec) {
	c.Values(&a.leftOut)
	valid := a.leftOut >= 0
	for i := range a.folds {
		f := &a.folds[i]
		c.Values(&f.samples, f.same)
		valid = valid && f.samples >= 0 && f.same.N >= f.samples
		if a.movesPositions {
			c.Values(f.moved)
			valid = valid && f.moved.N == f.same.N
		}
	}
	c.Check(valid, "the state belongs to another layer or study")
}

func (a *accumulator) MarshalBinary() ([]byte, error) {
	return state.Marshal("latent-operator", 1, a.Code)
}

// UnmarshalBinary leaves the accumulator unchanged after an error.
func (a *accumulator) UnmarshalBinary(data []byte) error {
	b := newAccumulator(a.setup, a.site)
	if err := state.Unmarshal(data, "latent-operator", 1, b.Code); err != nil {
		return err
	}
	*a = *b
	return nil
}

func (a *accumulator) samples() (n int) {
	for _, f := range a.folds {
		n += f.samples
	}
	return n
}

func (a *accumulator) Scores() ([]measure.Score, error) {
	if a.samples() == 0 && a.leftOut == 0 {
		return nil, measure.ErrTooFew
	}
	operators := []operator{{name: "identity", moments: sameMoments}, {name: "channels", moments: sameMoments, fitted: true}}
	if a.movesPositions {
		operators = slices.Insert(operators, 1, operator{name: "place", moments: movedMoments})
		operators = append(operators, operator{name: "both", moments: movedMoments, fitted: true})
	}
	var out []measure.Score
	for _, o := range operators {
		out = append(out, a.score(o))
	}
	return out, nil
}

func sameMoments(f fold) *linalg.Scatter[float64]  { return f.same }
func movedMoments(f fold) *linalg.Scatter[float64] { return f.moved }
