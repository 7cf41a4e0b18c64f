package paired

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A projection stores vectors of the first samples, clean and transformed, for the plane of their
// first two principal components. A vector is an activation averaged over positions.
type projection struct {
	pool   func(dst, z []float32) // writes to dst the means over positions of the channels of z
	pooled []float32              // scratch
	dim    int                    // length of a stored vector

	index              []int     // of the samples in the data set
	clean, transformed []float32 // len(index) x dim
}

// maxStored is the longest stored vector; longer ones are reduced by a count sketch, which
// preserves expected squared distances.
const maxStored = 512

func newProjection(l tensor.Layer) *projection {
	dim := pooling.Mean.Dim(l)
	return &projection{pool: pooling.Mean.Pool(l), pooled: make([]float32, dim), dim: min(dim, maxStored)}
}

// projectionCost bounds the bytes for n samples; slices may have twice the capacity needed.
func projectionCost(l tensor.Layer, n int) int64 {
	dim := pooling.Mean.Dim(l)
	return int64(n)*(8+2*2*4*int64(min(dim, maxStored))) + 4*int64(dim)
}

func (p *projection) add(index int, clean, transformed []float32) {
	p.index = append(p.index, index)
	p.pool(p.pooled, clean)
	p.clean = p.vector(p.clean, p.pooled)
	p.pool(p.pooled, transformed)
	p.transformed = p.vector(p.transformed, p.pooled)
}

// addPooled is add for means over positions: the clean ones, then the transformed ones.
func (p *projection) addPooled(index int, pooled []float32) {
	p.index = append(p.index, index)
	p.clean = p.vector(p.clean, pooled[:len(pooled)/2])
	p.transformed = p.vector(p.transformed, pooled[len(pooled)/2:])
}

// vector appends a pooled vector, reduced to dim components, to a slice.
func (p *projection) vector(to, pooled []float32) []float32 {
	if len(pooled) == p.dim {
		return append(to, pooled...)
	}
	at := len(to)
	to = append(to, make([]float32, p.dim)...)
	for i, v := range pooled {
		if uint32(i)*2654435761>>31 == 1 { // a random sign: multiplicative hash by 2^32 / golden ratio
			v = -v
		}
		to[at+i%p.dim] += v
	}
	return to
}

func (p *projection) merge(o *projection) {
	p.index = append(p.index, o.index...)
	p.clean, p.transformed = append(p.clean, o.clean...), append(p.transformed, o.transformed...)
}

// code writes or reads a projection of at most n samples.
func (p *projection) code(c *state.Codec, n int) {
	c.Values(&p.index, &p.clean, &p.transformed)
	c.Check(len(p.index) <= n && len(p.clean) == len(p.index)*p.dim &&
		len(p.transformed) == len(p.clean), "%w", errOtherSite)
}

// Per-sample values: coordinates along components 1 and 2, clean and moved.
var projectionNames = []string{"projection-clean-1", "projection-clean-2", "projection-moved-1", "projection-moved-2"}

// samples returns the coordinates by index; nil for fewer than two samples or a failed
// decomposition.
func (p *projection) samples() []measure.SampleScore {
	k := len(p.index)
	if k < 2 {
		return nil
	}
	n := 2 * k
	rows := make([][]float64, n)
	mean := make([]float64, p.dim)
	for i := range rows {
		from := p.clean
		if i >= k {
			from = p.transformed
		}
		rows[i] = make([]float64, p.dim)
		for j, v := range from[i%k*p.dim : (i%k+1)*p.dim] {
			rows[i][j] = float64(v)
			mean[j] += float64(v) / float64(n)
		}
	}
	for _, row := range rows {
		for j := range row {
			row[j] -= mean[j]
		}
	}
	gram := make([]float64, n*n)
	for i := range n {
		for j := i; j < n; j++ {
			for c, v := range rows[i] {
				gram[i*n+j] += v * rows[j][c]
			}
		}
	}
	values, vectors, err := linalg.LeadingEigen(gram, n, func([]float64) int { return 2 })
	if err != nil || vectors == nil {
		return nil
	}
	var axes [2][]float64
	for a := range axes {
		axes[a] = make([]float64, n)
		singular := math.Sqrt(max(0, values[a])) // singular value of rows
		largest := 0.0
		for i := range n {
			v := vectors.At(i, a) * singular // the coordinate of row i along component a
			axes[a][i] = v
			if math.Abs(v) > math.Abs(largest) {
				largest = v
			}
		}
		if largest < 0 { // the sign of a component is arbitrary
			for i := range axes[a] {
				axes[a][i] = -axes[a][i]
			}
		}
	}
	order := indices(k)
	slices.SortFunc(order, func(i, j int) int { return p.index[i] - p.index[j] })
	var out []measure.SampleScore
	for _, i := range order {
		for c, v := range []float64{axes[0][i], axes[1][i], axes[0][k+i], axes[1][k+i]} {
			out = append(out, measure.SampleScore{Index: p.index[i], Statistic: projectionNames[c], Value: v})
		}
	}
	return out
}
