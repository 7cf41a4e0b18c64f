package distance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/distance"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
)

// random returns a tensor of normal values, negative ones replaced by 0 as after a ReLU.
func random(seed uint64, shape ...int) tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, 1))
	t := tensor.New(shape...)
	for i := range t.Data {
		t.Data[i] = max(0, float32(r.NormFloat64()))
	}
	return t
}

// TestContract checks what measuretest.Run demands of every measure, such as scores that do not
// depend on how samples are divided into batches.
func TestContract(t *testing.T) {
	t.Parallel()
	const n = 205
	var label []int
	for i := range n {
		label = append(label, i%3)
	}
	site := measure.Site{
		Layer: tensor.Layer{Shape: []int{2, 3, 2}}, Layout: measure.NewLayout(n), Classes: []string{"a", "b", "c"}, KeepSamples: true,
	}
	measuretest.Run(t, measuretest.Case{
		Measure: distance.New(distance.Settings{PerClass: true}), Site: site,
		Clean: random(1, n, 2, 3, 2), Transformed: random(2, n, 2, 3, 2), Label: label,
	})
}

// TestByHand checks distances that were computed by hand. RelativeL2 is |a - b| divided by the root
// mean square of |a| and |b|.
func TestByHand(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		a, b []float32
		want distance.Distances
	}{
		{"the same", []float32{1, 2, 3, 4, 5}, []float32{1, 2, 3, 4, 5}, distance.Distances{}},
		{"right angle", []float32{1, 0}, []float32{0, 1}, distance.Distances{Cosine: 1, L1: 2, L2: math.Sqrt2, RelativeL2: math.Sqrt2}},
		{"opposite", []float32{0, 3}, []float32{0, -3}, distance.Distances{Cosine: 2, L1: 6, L2: 6, RelativeL2: 2}},
		{"longer", []float32{1, 0, 0}, []float32{7, 0, 0}, distance.Distances{L1: 6, L2: 6, RelativeL2: 6. / 5}},
		{"both zero", []float32{0, 0}, []float32{0, 0}, distance.Distances{}},
		{"one zero", []float32{0, 0}, []float32{3, 4}, distance.Distances{Cosine: 1, L1: 7, L2: 5, RelativeL2: math.Sqrt2}},
		{"tiny", []float32{1e-45, 0}, []float32{1e-45, 0}, distance.Distances{}},
		{"huge", []float32{3e38, 3e38}, []float32{3e38, 3e38}, distance.Distances{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := distance.Between(c.a, c.b); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestAlgebra checks symmetry, the triangle inequality, bounds, and the effect of a common factor.
func TestAlgebra(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "length")
		vector := rapid.SliceOfN(rapid.Float32Range(-1e3, 1e3), n, n)
		a, b, c := vector.Draw(t, "a"), vector.Draw(t, "b"), vector.Draw(t, "c")
		ab, ba, bc, ac := distance.Between(a, b), distance.Between(b, a), distance.Between(b, c), distance.Between(a, c)
		switch {
		case math.Abs(ab.L1-ba.L1)+math.Abs(ab.L2-ba.L2)+math.Abs(ab.Cosine-ba.Cosine)+math.Abs(ab.RelativeL2-ba.RelativeL2) > 1e-9:
			t.Fatalf("not symmetric: %+v and %+v", ab, ba)
		case ac.L1 > (ab.L1+bc.L1)*(1+1e-12) || ac.L2 > (ab.L2+bc.L2)*(1+1e-12):
			t.Fatalf("triangle inequality fails: from a to b %+v, from b to c %+v, from a to c %+v", ab, bc, ac)
		case ab.L2 > ab.L1*(1+1e-12) || ab.L1 > ab.L2*math.Sqrt(float64(n))*(1+1e-12):
			t.Fatalf("l2 <= l1 <= sqrt(n) l2 fails: %+v", ab)
		case ab.Cosine < 0 || ab.Cosine > 2 || ab.RelativeL2 < 0 || ab.RelativeL2 > 2+1e-12:
			t.Fatalf("out of range: %+v", ab)
		}
		factor := float32(math.Exp2(float64(rapid.IntRange(-8, 8).Draw(t, "power of two")))) // scales without rounding
		for i := range a {
			a[i], b[i] = a[i]*factor, b[i]*factor
		}
		scaled := distance.Between(a, b)
		if math.Abs(scaled.Cosine-ab.Cosine) > 1e-9 || math.Abs(scaled.RelativeL2-ab.RelativeL2) > 1e-9 ||
			math.Abs(scaled.L2-float64(factor)*ab.L2) > 1e-9*scaled.L2 {
			t.Fatalf("distances %+v become %+v with a common factor %v: want the same, and l2 times the factor", ab, scaled, factor)
		}
	})
}

// TestGolden checks that scores agree with those of testdata/golden.py, which uses NumPy and SciPy.
func TestGolden(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		N            int
		Shape        []int
		Clean        []float32
		Transformed  []float32 `json:"moved"`
		Scores, Null map[string]float64
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	shape := append([]int{g.N}, g.Shape...)
	clean, err := tensor.From(g.Clean, shape...)
	if err != nil {
		t.Fatal(err)
	}
	transformed, err := tensor.From(g.Transformed, shape...)
	if err != nil {
		t.Fatal(err)
	}
	scores := measured(t, measure.Site{Layer: tensor.Layer{Shape: g.Shape}, Layout: measure.NewLayout(g.N)}, clean, transformed)
	if len(scores) != len(g.Scores) {
		t.Fatalf("%d scores, want %d", len(scores), len(g.Scores))
	}
	for _, s := range scores {
		if math.Abs(s.Value-g.Scores[s.Statistic]) > 1e-9 || math.Abs(s.Null-g.Null[s.Statistic]) > 1e-9 {
			t.Errorf("%s: %v (null %v), want %v (%v)", s.Statistic, s.Value, s.Null, g.Scores[s.Statistic], g.Null[s.Statistic])
		}
		if !(s.Low < s.Value && s.Value < s.High) {
			t.Errorf("%s: no interval around the value: %+v", s.Statistic, s)
		}
	}
}

// batch returns all samples as one batch, with their places in the layout. Their indices in the
// data set start at 100, and they have no labels (-1).
func batch(clean, transformed tensor.Tensor) *measure.Batch {
	b := &measure.Batch{Clean: clean, Transformed: transformed}
	for i := range clean.Shape[0] {
		b.Place, b.Index, b.Label = append(b.Place, i), append(b.Index, 100+i), append(b.Label, -1)
	}
	return b
}

// measured returns the scores of the clean and transformed activations of some samples.
func measured(t *testing.T, site measure.Site, clean, transformed tensor.Tensor) []measure.Score {
	t.Helper()
	a, err := distance.New(distance.Settings{}).New(site)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Update(batch(clean, transformed)); err != nil {
		t.Fatal(err)
	}
	scores, err := a.Scores()
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

// TestNonFinite checks that NaN or infinity is an error that names the view (clean or transformed)
// and the sample.
func TestNonFinite(t *testing.T) {
	t.Parallel()
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, view := range []string{"clean", "transformed"} {
			a, err := distance.New(distance.Settings{}).New(measure.Site{Layer: tensor.Layer{Shape: []int{5}}, Layout: measure.NewLayout(3)})
			if err != nil {
				t.Fatal(err)
			}
			b := batch(random(1, 3, 5), random(2, 3, 5))
			bad := b.Clean
			if view == "transformed" {
				bad = b.Transformed
			}
			bad.Data[7] = float32(v) // in the second of three samples of 5 values
			var e *measure.NonFinite
			if err := a.Update(b); !errors.As(err, &e) || e.View != view || e.Index != 101 {
				t.Errorf("%v in the %s view of sample 101: error %v, want one that names the view and the sample", v, view, err)
			}
		}
	}
}

// TestBudget checks that scores have no null, and a warning, if the measure needs more memory than
// the budget, even by one byte.
func TestBudget(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layer: tensor.Layer{Shape: []int{1000}}, Layout: measure.NewLayout(40)}
	site.Budget = distance.New(distance.Settings{}).Cost(site)
	clean, transformed := random(1, 40, 1000), random(2, 40, 1000)
	if s := measured(t, site, clean, transformed)[0]; math.IsNaN(s.Null) || len(s.Warnings) > 0 {
		t.Errorf("within the budget: %+v, want a null and no warning", s)
	}
	site.Budget--
	if s := measured(t, site, clean, transformed)[0]; !math.IsNaN(s.Null) || len(s.Warnings) != 1 {
		t.Errorf("beyond the budget: %+v, want no null and a warning", s)
	}
}

// TestBatches checks that states (serialised accumulators, which hold the running sums of a
// measure) are the same to the bit for batches of any size. The vectors are long enough for the
// sums in C to be used. The layout has blocks of 6 samples, in 4 groups, each of which a jackknife
// leaves out once.
func TestBatches(t *testing.T) {
	t.Parallel()
	const n, values = 23, 5000
	clean, transformed := random(1, n, values), random(2, n, values)
	site := measure.Site{Layer: tensor.Layer{Shape: []int{values}}, Layout: measure.Layout{N: n, Block: 6, Groups: 4}, KeepSamples: true}
	var want []byte
	for _, size := range []int{n, 1, 2, 5, 6, 7, 12} {
		a, err := distance.New(distance.Settings{}).New(site)
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; from < n; from += size {
			to := min(from+size, n)
			b := batch(clean.Slice(from, to), transformed.Slice(from, to))
			for i := range b.Place {
				b.Place[i], b.Index[i] = b.Place[i]+from, b.Index[i]+from
			}
			if err := a.Update(b); err != nil {
				t.Fatal(err)
			}
		}
		state, err := a.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = state
		} else if !bytes.Equal(state, want) {
			t.Errorf("batches of %d: the state differs from that of one batch", size)
		}
	}
}

// TestUpdateErrors checks that batches that do not fit the layer are errors.
func TestUpdateErrors(t *testing.T) {
	t.Parallel()
	a, err := distance.New(distance.Settings{}).New(measure.Site{Layer: tensor.Layer{Shape: []int{6}}, Layout: measure.NewLayout(2)})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*measure.Batch{
		"different shapes":     batch(random(1, 2, 6), random(1, 2, 3, 2)),
		"clean only":           batch(random(1, 2, 6), tensor.Tensor{}),
		"no values":            batch(tensor.New(2, 0), tensor.New(2, 0)),
		"place 5 of 2 samples": {Place: []int{5}, Index: []int{5}, Label: []int{-1}, Clean: random(1, 1, 6), Transformed: random(1, 1, 6)},
	} {
		if err := a.Update(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// BenchmarkUpdate measures an update with 16 samples, for a layer of 512 values and for 64 feature
// maps of 56 x 56.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{512, 64 * 56 * 56} {
		b.Run(fmt.Sprintf("%d values", n), func(b *testing.B) {
			batch := batch(random(1, 16, n), random(2, 16, n))
			a, err := distance.New(distance.Settings{}).New(measure.Site{Layer: tensor.Layer{Shape: []int{n}}, Layout: measure.NewLayout(16)})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(2 * 4 * 16 * n)) // two views, float32, 16 samples
			for b.Loop() {
				if err := a.Update(batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
