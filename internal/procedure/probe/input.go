package probe

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/features"
)

// A probeInput holds the input vectors of a probe, or its target vectors (what it learns to
// predict). The vector of a sample is the concatenation of its rows in one or two tables, and
// optionally the parameter of the transformation, such as an angle. Its methods except standardise
// may be called concurrently.
type probeInput struct {
	id        string // identifies the vectors in the hash that identifies a trained probe
	tables    []*features.Table
	rows      [][]int   // of each table, the row of every sample; -1 where it has none
	unit      bool      // whether the vector of each table is scaled to length 1
	condition []float32 // the parameter of every sample, appended to its vector; nil: none
	mean      []float32 // subtracted from each component; nil: vectors are not standardised
	scale     []float32 // multiplied with each component after mean is subtracted
	codebook  []float32 // the codes that the components are; nil: they are numbers. A vector has an indicator of each code at each position
}

func newProbeInput(id string, positions []int, tables ...*features.Table) *probeInput {
	f := &probeInput{id: id, tables: tables}
	for _, t := range tables {
		rowOf := make(map[int]int, t.Len()) // by position
		for row, position := range t.Positions {
			rowOf[position] = row
		}
		rows := make([]int, len(positions))
		for i, position := range positions {
			var ok bool
			if rows[i], ok = rowOf[position]; !ok {
				rows[i] = -1
			}
		}
		f.rows = append(f.rows, rows)
	}
	return f
}

func (f *probeInput) dim() int {
	n := 0
	for _, t := range f.tables {
		n += t.Dim
	}
	return n * max(1, len(f.codebook))
}

func (f *probeInput) width() int {
	if f.condition != nil {
		return f.dim() + 1
	}
	return f.dim()
}

func (f *probeInput) has(i int) bool {
	return !slices.ContainsFunc(f.rows, func(rows []int) bool { return rows[i] < 0 })
}

// row copies a vector to dst, of width elements. A sample without one is an error.
func (f *probeInput) row(dst []float32, i int) error {
	at := 0
	if f.codebook != nil {
		if f.condition != nil {
			dst[f.dim()] = f.condition[i]
		}
		return f.indicators(dst[:f.dim()], i)
	}
	for k, t := range f.tables {
		if f.rows[k][i] < 0 {
			return fmt.Errorf("sample %d has no representation", i)
		}
		part := dst[at : at+t.Dim]
		if err := t.Row(part, f.rows[k][i]); err != nil {
			return err
		}
		if f.unit {
			normalise(part)
		}
		at += t.Dim
	}
	for j := range f.mean {
		dst[j] = (dst[j] - f.mean[j]) * f.scale[j]
	}
	if f.condition != nil {
		dst[at] = f.condition[i]
	}
	return nil
}

func normalise(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	s := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= s
	}
}

// standardise gives each component except the parameter mean 0 and variance 1 over the samples, and
// marks id. A component that does not vary is only centred.
func (f *probeInput) standardise(samples []int) error {
	d := f.dim()
	sum, square := make([]float64, d), make([]float64, d)
	v := make([]float32, f.width())
	for _, i := range samples {
		if err := f.row(v, i); err != nil {
			return err
		}
		for j, x := range v[:d] {
			sum[j] += float64(x)
			square[j] += float64(x) * float64(x)
		}
	}
	n := float64(len(samples))
	f.mean, f.scale = make([]float32, d), make([]float32, d)
	for j := range f.mean {
		mean := sum[j] / n
		variance := square[j]/n - mean*mean
		f.mean[j], f.scale[j] = float32(mean), 1
		if variance > 1e-12*mean*mean { // beyond rounding
			f.scale[j] = float32(1 / math.Sqrt(variance))
		}
	}
	f.id += " standardised"
	return nil
}
