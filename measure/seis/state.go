package seis

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/state"
)

// stateVersion is the version of the state's format. It was that of the scores up to 6.
const stateVersion = 8

// MarshalBinary returns the state, an unfinished segment included.
func (a *accumulator) MarshalBinary() ([]byte, error) {
	return state.Marshal("seis", stateVersion, a.Code)
}

func (a *accumulator) WriteState(to io.Writer) error {
	return state.Stream(to, "seis", stateVersion, a.Code)
}

// UnmarshalBinary leaves an accumulator that must not be used after an error.
func (a *accumulator) UnmarshalBinary(data []byte) error {
	if err := state.Unmarshal(data, "seis", stateVersion, a.Code); err != nil {
		return fmt.Errorf("seis: %w", err)
	}
	return nil
}

func (a *accumulator) Code(c *state.Codec) {
	want := []int{a.maps.channels, a.total.P, a.groups.len(), a.site.Layout.N, a.site.Layout.Block, a.site.Layout.Groups}
	header, null := slices.Clone(want), a.null != nil // the moments of shuffled pairs
	if c.Values(&header, &null); !slices.Equal(header, want) || null != (a.null != nil) {
		c.Fail(fmt.Errorf("the state has channels, variables, groups, samples, block and groups of "+
			"the layout %v (null: %v), not %v (%v)", header, null, want, a.null != nil))
		return
	}
	if a.groups.len() == 0 { // else groups of samples hold the moments of the total
		c.Values(a.total)
	}
	if a.null != nil {
		codeNull(c, a.null)
	}
	if a.groups.len() > 0 {
		a.groups.code(c)
	}
	if c.Reads() {
		a.readSegment(c)
		return
	}
	s := a.segment
	c.Values(&s.counts)
	if s.samples > 0 {
		c.Values(&s.last, s.rows[:s.samples*a.maps.channels*a.total.P])
	}
}

// readSegment reads an unfinished segment: samples of each part, the last place, and observations
// of P values, both views.
func (a *accumulator) readSegment(r *state.Codec) {
	a.segment = segment{}
	c := segment{sum: make([]float64, a.total.P)}
	if r.Values(&c.counts); len(c.counts) == 0 {
		return
	}
	var rows []float32
	r.Values(&c.last, &rows)
	size := a.maps.channels * a.total.P
	valid := c.last >= 0 && c.last < a.site.Layout.N
	if valid {
		c.from, c.to = a.parts.segment(c.last)
		valid = len(c.counts) == a.parts.count(c.from, c.to) &&
			slices.Max(c.counts) <= a.site.Layout.Block && slices.Min(c.counts) >= 0
	}
	for _, n := range c.counts {
		c.samples += n
	}
	if !valid || c.samples == 0 || c.samples > c.to-c.from || len(rows) != c.samples*size {
		r.Fail(fmt.Errorf("the state has a segment of %d samples of parts of blocks, of which the "+
			"last is at place %d, which does not fit the layout", c.counts, c.last))
		return
	}
	c.rows = make([]float32, a.valuesOf(a.parts.longest()))
	copy(c.rows, rows)
	a.segment = c
	for i := range c.samples {
		linalg.SumRows(a.segment.sum, rows[i*size:(i+1)*size])
	}
}

// Both means are one array.
func codeNull(c *state.Codec, null *linalg.CrossScatter[float64]) {
	mean := slices.Concat(null.MeanX, null.MeanY)
	c.Len(&null.N, math.MaxInt)
	if c.Values(mean, null.Data); c.Reads() {
		null.MeanX, null.MeanY = mean[:null.P:null.P], mean[null.P:]
	}
}
