package firing

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// tiedStreams generate values of one unit (one value of a layer, over the inputs) with ties, which
// are difficult for a sketch: a sample of the values, to estimate a quantile. (streams, in
// sketch_test.go, have none.)
var tiedStreams = map[string]func(r *rand.Rand, n int) []float32{
	"few values": func(r *rand.Rand, n int) []float32 {
		v := normals(r, n)
		for i := range v {
			v[i] = float32(math.Round(4*float64(v[i])) / 4)
		}
		return v
	},
	"after a ReLU": func(r *rand.Rand, n int) []float32 {
		v := normals(r, n)
		for i := range v {
			v[i] = max(0, v[i]-2)
		}
		return v
	},
	"all equal": func(_ *rand.Rand, n int) []float32 { return slices.Repeat([]float32{3}, n) },
	"ascending twice": func(r *rand.Rand, n int) []float32 {
		v := normals(r, n)
		slices.Sort(v[:n/2])
		slices.Sort(v[n/2:])
		return v
	},
	"zeros of both signs": func(r *rand.Rand, n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Copysign(0, float64(r.IntN(2))-0.5))
		}
		return v
	},
}

// drawInputs draws responses z, n x units, the values of each unit from one of streams or
// tiedStreams, and the n inputs in random order. Reference says whether an input is among those of
// which the strongest are sought.
func drawInputs(t *rapid.T, n int) (z tensor.Tensor, in []Input) {
	kinds := maps.Clone(streams)
	maps.Copy(kinds, tiedStreams)
	names := slices.Sorted(maps.Keys(kinds))
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
	units := rapid.IntRange(1, 11).Draw(t, "units")
	z = tensor.New(n, units)
	for u := range units {
		for i, v := range kinds[rapid.SampledFrom(names).Draw(t, "kind")](r, n) {
			z.Data[i*units+u] = v
		}
	}
	for _, index := range r.Perm(n) {
		in = append(in, Input{Index: index, Reference: r.IntN(5) > 0})
	}
	return z, in
}

// update updates an estimator in batches of random sizes, at most most inputs each.
func update(t *rapid.T, g *ThresholdEstimator, z tensor.Tensor, in []Input, most int) {
	for at := 0; at < len(in); {
		end := min(len(in), at+rapid.IntRange(1, most).Draw(t, "batch"))
		if err := g.Update(z.Slice(at, end), in[at:end]); err != nil {
			t.Fatal(err)
		}
		at = end
	}
}

// With and without ties, about k values reach a threshold, the k-th largest value: k may be wrong
// by five times the allowed relative error. The strongest inputs, which have the largest values,
// are exact. For sign -1 all values are negated.
func TestSketchThresholds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const relative = 0.1
		n := rapid.IntRange(3_000, 9_000).Draw(t, "inputs")
		z, in := drawInputs(t, n)
		o := ThresholdOptions{Units: z.Shape[1], Rank: rankOf(n, 0.05), References: 3, Error: relative}
		g := NewThresholdEstimator(o)
		update(t, g, z, in, 500)
		for u := range o.Units {
			for _, sign := range []int{1, -1} {
				values := column(z, u, sign)
				q, _ := g.Threshold(u, sign)
				above, reached := 0, 0
				for _, v := range values {
					if v > q {
						above++
					}
					if v >= q {
						reached++
					}
				}
				if k := float64(o.Rank); float64(above) > k*(1+5*relative) || float64(reached) < k*(1-5*relative) {
					t.Fatalf("unit %d, sign %d: %d values are above %v and %d reach it, want about %v", u, sign, above, q, reached, k)
				}
				if got, want := g.Strongest(u, sign), strongestOf(values, in, 3); !slices.Equal(got, want) {
					t.Fatalf("unit %d, sign %d: strongest %v, want %v", u, sign, got, want)
				}
			}
		}
	})
}

// The serialised state does not depend on batches, on whether values are added one by one or in
// blocks of units, or on writing and reading it in between. The option first is the index of the
// first unit in its layer, which seeds random choices. A side is one of the signs 1 and -1.
func TestSketchBatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2_000, 6_000).Draw(t, "inputs")
		z, in := drawInputs(t, n)
		o := ThresholdOptions{Units: z.Shape[1], Rank: rankOf(n, 0.1), References: rapid.IntRange(1, 3).Draw(t, "references"),
			Error: rapid.SampledFrom([]float64{0.3, 0.1, 0.05}).Draw(t, "error"), first: rapid.IntRange(0, 99).Draw(t, "first")}
		whole := NewThresholdEstimator(o)
		update(t, whole, z, in, 300)
		single := NewThresholdEstimator(o)
		for i := range in {
			for side, s := range single.sides {
				for u := range o.Units {
					if v := signs[side] * z.At(i).Data[u]; v >= s.bound[u] {
						s.add(u, v, s.n, s.eligible, int32(in[i].Index), in[i].Reference)
					}
				}
			}
			single.count(in[i : i+1])
		}
		if single.sides[0].sketch != nil {
			normaliseState(whole)
			normaliseState(single)
		}
		if !bytes.Equal(marshal(whole), marshal(single)) {
			t.Fatal("the state differs if values are added one by one")
		}
		stopped := NewThresholdEstimator(o)
		half := rapid.IntRange(0, n).Draw(t, "stop")
		update(t, stopped, z.Slice(0, half), in[:half], 300)
		stopped = reread(t, stopped, o)
		update(t, stopped, z.Slice(half, n), in[half:], 300)
		if stopped.sides[0].sketch != nil {
			normaliseState(stopped)
		}
		if !bytes.Equal(marshal(whole), marshal(stopped)) {
			t.Fatal("the state differs if it is written and read in between")
		}
	})
}

// normaliseState sorts the values of a sketch, and clears unused memory and the signs of zeros, so
// that equal states have equal bytes.
func normaliseState(g *ThresholdEstimator) {
	for _, t := range g.sides {
		s := t.sketch
		for u := range s.units {
			for h := range s.levels() {
				v := s.level(u, h)
				slices.Sort(v)
				clear(v[len(v):s.capacity(h)])
				for i := range v {
					v[i] += 0 // -0 becomes 0
				}
			}
		}
		for i := range s.bound {
			s.bound[i] += 0
		}
	}
}

// A sketch drops NaN. Of the numbers below 1000 that are no multiple of 3, the largest is 998 and
// the 200th largest 700. The option sparse leaves out sign -1.
func TestSketchNaN(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	o := ThresholdOptions{Units: 1, Rank: 200, References: 1, Error: 0.1, sparse: true}
	g := NewThresholdEstimator(o)
	for i := range 1000 {
		z := tensor.Tensor{Shape: []int{1, 1}, Data: []float32{float32(i)}}
		if i%3 == 0 {
			z.Data[0] = nan
		}
		if err := g.Update(z, []Input{{Index: i, Reference: true}}); err != nil {
			t.Fatal(err)
		}
	}
	if q, _ := g.Threshold(0, 1); !(q > 600 && q < 800) || g.Strongest(0, 1)[0] != 998 {
		t.Errorf("the threshold is %v, want 600 to 800, and the strongest input %v, want 998", q, g.Strongest(0, 1))
	}
}
