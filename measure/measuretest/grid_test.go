package measuretest

import (
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// product is a simple measure.Comparison, a measure of pairs of layers, that passes the checks of
// RunGrid. Its score for a pair is the mean, over samples, of the product of the sums of their
// activations. A side is a model on its inputs.
type product struct{}

func (product) Name() string                   { return "product" }
func (product) Descriptor() measure.Descriptor { return measure.Descriptor{Name: "product"} }
func (product) Version() int                   { return 1 }
func (product) Settings() any                  { return nil }
func (product) Directional() bool              { return false }
func (product) Skip(measure.Grid) string       { return "" }
func (product) Cost(g measure.Grid) int64 {
	return int64(16 * len(g.Pairs))
}

func (product) New(g measure.Grid) (measure.GridAccumulator, error) {
	return &products{grid: g, sums: make([]float64, len(g.Pairs))}, nil
}

// products accumulates the sums of product, one for each pair of layers of the grid.
type products struct {
	grid measure.Grid
	n    int
	sums []float64
}

func (p *products) Update(b *measure.PairBatch) error {
	for i := range b.Place { // b.Place has an element for each sample
		p.n++
		for k, pair := range p.grid.Pairs {
			p.sums[k] += sum(b.A[pair[0]].At(i)) * sum(b.B[pair[1]].At(i))
		}
	}
	return nil
}

func sum(z tensor.Tensor) (total float64) {
	for _, v := range z.Data {
		total += float64(v)
	}
	return total
}

func (p *products) Merge(other measure.GridAccumulator) error {
	o := other.(*products)
	p.n += o.n
	for k := range p.sums {
		p.sums[k] += o.sums[k]
	}
	return nil
}

func (p *products) Scores() ([]measure.PairScore, error) {
	if p.n == 0 {
		return nil, measure.ErrTooFew
	}
	var out []measure.PairScore
	for k, pair := range p.grid.Pairs {
		out = append(out, measure.PairScore{A: pair[0], B: pair[1], Score: measure.Plain("product", p.sums[k]/float64(p.n), p.n)})
	}
	return out, nil
}

func (p *products) Code(c *state.Codec) {
	c.Values(&p.n, &p.sums)
	c.Check(p.n >= 0 && len(p.sums) == len(p.grid.Pairs), "%d sums of %d samples", len(p.sums), p.n)
}

func (p *products) MarshalBinary() ([]byte, error) { return state.Marshal("product", 1, p.Code) }

func (p *products) UnmarshalBinary(data []byte) error {
	return state.Unmarshal(data, "product", 1, p.Code)
}

// TestRunGrid checks that RunGrid passes product, for two models and for one that is both sides
// (Self). Pairs holds the indices of the compared layers in A and B.
func TestRunGrid(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	random := func(shape ...int) tensor.Tensor {
		z := tensor.New(shape...)
		for i := range z.Data {
			z.Data[i] = r.Float32()
		}
		return z
	}
	layer := func(name string) tensor.Layer { return tensor.Layer{Name: name} }
	const n = 70
	x, y, z := random(n, 3), random(n, 2, 2), random(n, 4)
	layout := measure.NewLayout(n) // divides the samples into blocks of consecutive ones
	t.Run("two models", func(t *testing.T) {
		RunGrid(t, GridCase{Comparison: product{}, A: []tensor.Tensor{x, y}, B: []tensor.Tensor{z, x},
			Grid: measure.Grid{A: []tensor.Layer{layer("x"), layer("y")}, B: []tensor.Layer{layer("z"), layer("x")}, Pairs: [][2]int{{0, 0}, {1, 0}, {1, 1}}, Layout: layout}})
	})
	t.Run("one model", func(t *testing.T) {
		RunGrid(t, GridCase{Comparison: product{}, A: []tensor.Tensor{x, y}, B: []tensor.Tensor{x, y},
			Grid: measure.Grid{A: []tensor.Layer{layer("x"), layer("y")}, B: []tensor.Layer{layer("x"), layer("y")}, Pairs: [][2]int{{0, 0}, {0, 1}, {1, 1}}, Layout: layout, Self: true}})
	})
}
