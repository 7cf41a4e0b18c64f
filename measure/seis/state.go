package seis

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/state"
)

// stateVersion is the version of the state's format. It was that of the scores up to 6.
const stateVersion = 8

// MarshalBinary returns the state, an unfinished segment included.
func (a *accumulator) MarshalBinary() ([]byte, error) {
	var out bytes.Buffer
	err := a.WriteState(&out)
	return out.Bytes(), err
}

func (a *accumulator) WriteState(to io.Writer) error {
	w := state.Stream(to, "seis", stateVersion)
	w.Ints([]int{a.maps.channels, a.total.P, a.groups.len(), a.site.Layout.N, a.site.Layout.Block, a.site.Layout.Groups})
	w.Bool(a.null != nil)    // the moments of shuffled pairs
	if a.groups.len() == 0 { // else groups of samples hold the moments of the total
		a.total.Write(w)
	}
	if a.null != nil {
		writeNull(w, a.null)
	}
	if err := a.groups.write(w); err != nil {
		return err
	}
	c := a.segment
	w.Ints(c.counts)
	if c.samples > 0 {
		w.Int(c.last)
		w.Float32s(c.rows[:c.samples*a.maps.channels*a.total.P])
	}
	return w.Close()
}

// UnmarshalBinary leaves an accumulator that must not be used after an error.
func (a *accumulator) UnmarshalBinary(data []byte) error {
	r, err := state.NewReader(data, "seis", stateVersion)
	if err != nil {
		return fmt.Errorf("seis: %w", err)
	}
	header := r.Ints()
	want := []int{a.maps.channels, a.total.P, a.groups.len(), a.site.Layout.N, a.site.Layout.Block, a.site.Layout.Groups}
	null := r.Bool()
	if fmt.Sprint(header) != fmt.Sprint(want) || null != (a.null != nil) {
		r.Fail(fmt.Errorf("the state has channels, variables, groups, samples, block and groups of the layout %v (null: %v), not %v (%v)", header, null, want, a.null != nil))
		return fmt.Errorf("seis: %w", r.Close())
	}
	if a.groups.len() == 0 {
		a.total.Read(r)
	}
	if a.null != nil {
		readNull(r, a.null)
	}
	if a.groups.len() > 0 {
		if err := a.groups.read(r); err != nil {
			return err
		}
	}
	a.readSegment(r)
	if err := r.Close(); err != nil {
		return fmt.Errorf("seis: %w", err)
	}
	return nil
}

// readSegment reads an unfinished segment: samples of each part, the last place, and observations
// of P values, both views.
func (a *accumulator) readSegment(r *state.Reader) {
	a.segment = segment{}
	counts := r.Ints()
	if len(counts) == 0 {
		return
	}
	last := r.Int()
	rows := r.Float32s()
	size := a.maps.channels * a.total.P
	c := segment{last: last, counts: counts, sum: make([]float64, a.total.P)}
	valid := last >= 0 && last < a.site.Layout.N
	if valid {
		c.from, c.to = a.parts.segment(last)
		valid = len(counts) == a.parts.count(c.from, c.to) && slices.Max(counts) <= a.site.Layout.Block && slices.Min(counts) >= 0
	}
	for _, n := range counts {
		c.samples += n
	}
	if !valid || c.samples == 0 || c.samples > c.to-c.from || len(rows) != c.samples*size {
		r.Fail(fmt.Errorf("the state has a segment of %d samples of parts of blocks, of which the last is at place %d, which does not fit the layout", counts, last))
		return
	}
	c.rows = make([]float32, a.valuesOf(a.parts.longest()))
	copy(c.rows, rows)
	a.segment = c
	for i := range c.samples {
		linalg.SumRows(a.segment.sum, rows[i*size:(i+1)*size])
	}
}

// Both means are written as one array.
func writeNull(w *state.Writer, null *linalg.CrossScatter[float64]) {
	w.Int(null.N)
	w.Floats(slices.Concat(null.MeanX, null.MeanY))
	w.Floats(null.Data)
}

func readNull(r *state.Reader, null *linalg.CrossScatter[float64]) {
	if null.N = r.Int(); null.N < 0 {
		r.Fail(fmt.Errorf("the state has %d shuffled pairs", null.N))
		return
	}
	mean := make([]float64, null.P+null.Q)
	r.FloatsInto(mean)
	null.MeanX, null.MeanY = mean[:null.P:null.P], mean[null.P:]
	r.FloatsInto(null.Data)
}
