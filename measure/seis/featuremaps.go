package seis

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A featureMaps describes a layer's observations: one for each channel, of d values (positions
// after pooling). Channel c at position i, row by row, has index base + c channelStep + i
// positionStep. Before base are tokens without a position.
type featureMaps struct {
	channels                        int
	grid                            []int // height and width, or the length of one-dimensional maps
	pooled                          []int // the grid after pooling; equal to grid without pooling
	base, channelStep, positionStep int
}

func (p featureMaps) positions() int { return tensor.Size(p.pooled) }

func (p featureMaps) isPooled() bool { return tensor.Size(p.pooled) < tensor.Size(p.grid) }

func (p featureMaps) poolingWarning() string {
	if !p.isPooled() {
		return ""
	}
	return fmt.Sprintf("average-pooled from %s to %s positions", formatGrid(p.grid), formatGrid(p.pooled))
}

// featureMapsOf finds a layer's feature maps, pooled to at most limit positions, or says why it has
// none.
func featureMapsOf(l tensor.Layer, limit int) (p featureMaps, why string) {
	m, why := l.Maps()
	if why != "" {
		return p, why
	}
	return featureMaps{
		channels: m.Channels, grid: m.Grid, pooled: pooledGrid(m.Grid, limit),
		base: m.Base, channelStep: m.ChannelStep, positionStep: m.PositionStep,
	}, ""
}

// pooledGrid returns a grid of at most limit positions and about the same aspect ratio. Even sides
// are halved until it fits, so that ranges do not overlap, if the result has three quarters of the
// limit. Otherwise rows = sqrt(limit h / w), rounded down, and as many columns as fit.
func pooledGrid(grid []int, limit int) []int {
	if tensor.Size(grid) <= limit {
		return grid
	}
	if len(grid) == 1 {
		return []int{limit}
	}
	h, w := grid[0], grid[1]
	for m, n := h, w; m%2 == 0 && n%2 == 0; {
		if m, n = m/2, n/2; m*n <= limit {
			if 4*m*n >= 3*limit {
				return []int{m, n}
			}
			break
		}
	}
	rows := int(math.Sqrt(float64(limit) * float64(h) / float64(w)))
	rows = min(max(rows, 1), h, limit)
	return []int{rows, min(w, limit/rows)}
}

// observe writes the observations of (z, z') of sample i, 2 d values for each channel, and adds
// them to sum. The sum is tested for NaN and infinity, faster than each value.
func (p featureMaps) observe(rows []float32, sum []float64, b *measure.Batch, i int) error {
	stride := 2 * p.positions()
	clean, transformed := b.Clean.At(i), b.Transformed.At(i)
	p.rows(rows, stride, clean.Data)
	p.rows(rows[stride/2:], stride, transformed.Data)
	linalg.SumRows(sum, rows)
	if p.base == 0 && finite(sum) { // no token without a position is left out
		return nil
	}
	if clean.FirstNonFinite() >= 0 {
		return &measure.NonFinite{View: "clean", Index: b.Index[i]}
	}
	if transformed.FirstNonFinite() >= 0 {
		return &measure.NonFinite{View: "transformed", Index: b.Index[i]}
	}
	return nil // all values are finite; the method subspaces returns an error if an average overflows
}

func finite(x []float64) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// rows writes a sample's observations, d values for each channel, to rows of stride values.
func (p featureMaps) rows(dst []float32, stride int, sample []float32) {
	if p.isPooled() {
		p.pool(dst, stride, sample)
		return
	}
	d := p.positions()
	if p.positionStep == 1 {
		for c := range p.channels {
			at := p.base + c*p.channelStep
			copy(dst[c*stride:c*stride+d], sample[at:at+d])
		}
		return
	}
	for i := range d {
		at := p.base + i*p.positionStep
		for c, v := range sample[at : at+p.channels] {
			dst[c*stride+i] = v
		}
	}
}

// pool is rows with averages over cells: cell i of m over n positions spans floor(i n / m) to
// ceil((i + 1) n / m), as in PyTorch's AdaptiveAvgPool2d.
func (p featureMaps) pool(dst []float32, stride int, sample []float32) {
	h, w, m, n := 1, p.grid[0], 1, p.pooled[0]
	if len(p.grid) == 2 {
		h, w, m, n = p.grid[0], p.grid[1], p.pooled[0], p.pooled[1]
	}
	if p.positionStep == 1 && h == 2*m && w == 2*n {
		for c := range p.channels {
			at := p.base + c*p.channelStep
			halve(dst[c*stride:c*stride+m*n], sample[at:at+h*w], n)
		}
		return
	}
	rows, columns := cells(h, m), cells(w, n)
	if p.positionStep == 1 {
		line := make([]float32, w)
		for c := range p.channels {
			at := p.base + c*p.channelStep
			poolPlane(dst[c*stride:c*stride+m*n], sample[at:at+h*w], rows, columns, line)
		}
		return
	}
	sum := make([]float32, p.channels)
	for i, y := range rows {
		for j, x := range columns {
			clear(sum)
			for row := y.from; row < y.to; row++ {
				for column := x.from; column < x.to; column++ {
					at := p.base + (row*w+column)*p.positionStep
					addAll(sum, sample[at:at+p.channels], 1) // 1: the factor
				}
			}
			scale := 1 / float32((y.to-y.from)*(x.to-x.from))
			for c, v := range sum {
				dst[c*stride+i*n+j] = v * scale
			}
		}
	}
}

// poolPlane averages over the cells of an h x w plane; line is memory for w values.
func poolPlane(dst, plane []float32, rows, columns []cell, line []float32) {
	w := len(line)
	for i, y := range rows {
		copy(line, plane[y.from*w:])
		for row := y.from + 1; row < y.to; row++ {
			addAll(line, plane[row*w:(row+1)*w], 1) // 1: the factor
		}
		out := dst[i*len(columns) : (i+1)*len(columns)]
		for j, x := range columns {
			var sum float32
			for _, v := range line[x.from:x.to] {
				sum += v
			}
			out[j] = sum / float32((y.to-y.from)*(x.to-x.from))
		}
	}
}

// halve writes the means of the 2 x 2 cells of a channel. n is the number of cells in a row.
func halve(dst, plane []float32, n int) {
	for ; len(dst) > 0; dst, plane = dst[n:], plane[4*n:] {
		top, bottom := plane[:2*n], plane[2*n:4*n]
		for j := range dst[:n] {
			dst[j] = (top[2*j] + top[2*j+1] + bottom[2*j] + bottom[2*j+1]) / 4
		}
	}
}

type cell struct{ from, to int }

// cells returns m cells that cover n positions. Neighbours overlap if m does not divide n.
func cells(n, m int) []cell {
	out := make([]cell, m)
	for i := range out {
		out[i] = cell{i * n / m, ((i+1)*n + m - 1) / m}
	}
	return out
}
