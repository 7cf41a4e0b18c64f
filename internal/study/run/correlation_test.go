package run_test

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// correlation is a measure that compares pairs of layers, for tests: the correlation over samples
// of their mean activations.
type correlation struct {
	directed bool   // the score of a pair depends on the order of its layers
	cost     int64  // memory that a pair is said to need, in bytes
	skip     string // pairs whose first layer's name contains this are skipped
}

func (correlation) Name() string                   { return "correlation" }
func (correlation) Descriptor() measure.Descriptor { return measure.Descriptor{Name: "correlation"} }
func (correlation) Version() int                   { return 1 }
func (correlation) Settings() any                  { return nil }
func (c correlation) Directional() bool            { return c.directed }

func (c correlation) Skip(g measure.Grid) string {
	if len(g.Pairs) != 1 || len(g.A) != 1 || len(g.B) != 1 {
		panic("Skip needs a grid of one pair")
	}
	if c.skip != "" && strings.Contains(g.A[0].Name, c.skip) {
		return "its name is " + c.skip
	}
	return ""
}

func (c correlation) Cost(g measure.Grid) int64 { return c.cost * int64(len(g.Pairs)) }

func (c correlation) New(g measure.Grid) (measure.GridAccumulator, error) {
	return &correlationSums{grid: g, Sums: make([][6]float64, len(g.Pairs))}, nil
}

// correlationSums accumulates the sums over samples from which the correlations of a grid, a set of
// pairs of layers, are computed.
type correlationSums struct {
	grid measure.Grid
	Sums [][6]float64 // for each pair (x, y) of means: sums of 1, x, y, x², y² and x y
}

func (c *correlationSums) Update(b *measure.PairBatch) error {
	for i := range b.Place { // for each sample of the batch
		means, err := c.means(measure.SideA, b.A, b.Index, i)
		if err != nil {
			return err
		}
		otherMeans, err := c.means(measure.SideB, b.B, b.Index, i)
		if err != nil {
			return err
		}
		for k, p := range c.grid.Pairs {
			x, y := means[p[0]], otherMeans[p[1]]
			for j, v := range [6]float64{1, x, y, x * x, y * y, x * y} {
				c.Sums[k][j] += v
			}
		}
	}
	return nil
}

// means returns the mean activation of each layer of one side of the pairs for the i-th sample of a
// batch, whose number in the data set is index[i].
func (c *correlationSums) means(side measure.Side, layers []tensor.Tensor, index []int, i int) ([]float64, error) {
	var out []float64
	for layer, z := range layers {
		var sum float64
		for _, v := range z.At(i).Data {
			sum += float64(v)
		}
		if math.IsNaN(sum) {
			return nil, &measure.NonFiniteIn{Side: side, Layer: layer, Index: index[i]}
		}
		out = append(out, sum/float64(len(z.At(i).Data)))
	}
	return out, nil
}

func (c *correlationSums) Merge(other measure.GridAccumulator) error {
	for k, s := range other.(*correlationSums).Sums {
		for j := range s {
			c.Sums[k][j] += s[j]
		}
	}
	return nil
}

func (c *correlationSums) Scores() ([]measure.PairScore, error) {
	var out []measure.PairScore
	for k, p := range c.grid.Pairs {
		s := c.Sums[k]
		cov := func(xy, x, y float64) float64 { return xy/s[0] - x/s[0]*y/s[0] }
		r := cov(s[5], s[1], s[2]) / math.Sqrt(cov(s[3], s[1], s[1])*cov(s[4], s[2], s[2]))
		out = append(out, measure.PairScore{A: p[0], B: p[1], Score: measure.Plain("r", r, int(s[0]))})
	}
	return out, nil
}

func (c *correlationSums) MarshalBinary() ([]byte, error)    { return json.Marshal(c.Sums) }
func (c *correlationSums) UnmarshalBinary(data []byte) error { return json.Unmarshal(data, &c.Sums) }
