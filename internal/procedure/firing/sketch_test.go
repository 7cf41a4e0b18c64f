package firing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// streams generate values of one unit (one value of a layer, over the inputs) in orders that are
// difficult for a sketch in different ways. A sketch stores a sample of the values, to estimate a
// quantile.
var streams = map[string]func(r *rand.Rand, n int) []float32{
	"random": normals,
	"ascending": func(r *rand.Rand, n int) []float32 {
		v := normals(r, n)
		slices.Sort(v)
		return v
	},
	"descending": func(r *rand.Rand, n int) []float32 {
		v := normals(r, n)
		slices.Sort(v)
		slices.Reverse(v)
		return v
	},
	"oscillating": func(r *rand.Rand, n int) []float32 {
		v := normals(r, n)
		for i := range v {
			v[i] += float32(3 * math.Sin(float64(i)/float64(n)*40))
		}
		return v
	},
	"heavy tail": func(r *rand.Rand, n int) []float32 {
		v := normals(r, n)
		for i, x := range v {
			v[i] = x / float32(1e-3+math.Abs(r.NormFloat64()))
		}
		return v
	},
}

func normals(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// A sketch finds the k-th largest value of each unit, its threshold, approximately. The rate at
// which values reach the threshold differs from k / n by at most the given relative error in the
// root mean square, and by at most four times that error at any unit.
func TestSketchError(t *testing.T) {
	t.Parallel()
	const units = 60
	for name, stream := range streams {
		for _, c := range []struct {
			n     int // number of values
			error float64
		}{{15_000, 0.1}, {25_000, 0.05}, {40_000, 0.02}} {
			t.Run(fmt.Sprint(name, " ", c), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(7, uint64(c.n)))
				k := rankOf(c.n, 0.01)
				s := newSketch(units, k, c.error, 0)
				var squares, worst float64
				for u := range units {
					values := stream(r, c.n)
					for _, v := range values {
						s.add(u, v)
					}
					difference := firingRate(values, s.threshold(u))*float64(c.n)/float64(k) - 1
					squares += difference * difference
					worst = max(worst, math.Abs(difference))
				}
				if rms := math.Sqrt(squares / units); rms > c.error || worst > 4*c.error {
					t.Errorf("the rate differs by %.4f in the root mean square and by at most %.4f; the error is %v", rms, worst, c.error)
				}
			})
		}
	}
}

// The memory of a sketch for one unit hardly grows with the rank k, and is at most that of the
// exact values.
func TestSketchBytes(t *testing.T) {
	t.Parallel()
	small, large := sketchBytes(1_000, 0.05), sketchBytes(1_000_000, 0.05)
	if small >= 1_100 || large > 2*small {
		t.Errorf("a sketch takes %d bytes for rank 1,000 and %d for rank 1,000,000, want less than 1,100 and at most twice as many", small, large)
	}
	for _, k := range []int{1, 17, 100, 1_000, 1 << 20} {
		for _, e := range []float64{0, 0.001, 0.01, 0.1, 0.5} {
			o := ThresholdOptions{Units: 1, Rank: k, References: 1, sparse: true, Error: e}
			exact := o
			exact.Error = 0
			if o.bytes() > exact.bytes() {
				t.Errorf("rank %d, error %v: %d bytes, more than the %d of exact values", k, e, o.bytes(), exact.bytes())
			}
		}
	}
}

// A sketch keeps its error when its state (its serialised content) is written and read. Thresholds
// of units whose values tie are exact, and so are the inputs that activate a unit most. Sign -1
// stands for the threshold of the negated values. The rank is 0.03 n, for n inputs.
func TestSketchState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const units, relative = 3, 0.1
		n := rapid.IntRange(6_000, 9_000).Draw(t, "inputs")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		z := tensor.New(n, units)
		in := make([]Input, n)
		for i := range n {
			in[i] = Input{Index: i, Reference: true}
			z.Data[i*units] = float32(r.NormFloat64())
			z.Data[i*units+1] = max(0, float32(r.NormFloat64()-3)) // 0 except for one value in 740
			z.Data[i*units+2] = 5
		}
		o := ThresholdOptions{Units: units, Rank: rankOf(n, 0.03), References: 2, Error: relative}
		estimator := NewThresholdEstimator(o)
		for from := 0; from < n; {
			to := min(n, from+rapid.IntRange(100, n/2).Draw(t, "part"))
			if err := estimator.Update(z.Slice(from, to), in[from:to]); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "saved") {
				estimator = reread(t, estimator, o)
			}
			from = to
		}
		for _, sign := range []int{1, -1} {
			q, reported := estimator.Threshold(0, sign)
			if got := firingRate(column(z, 0, sign), q); math.Abs(got-0.03) > 0.03*5*relative || !math.IsNaN(reported) {
				t.Fatalf("sign %d: the rate is %v, want about 0.03; the reported rate is %v, want NaN, since a sketch does not count it", sign, got, reported)
			}
			if q, _ := estimator.Threshold(1, sign); q != 0 && q != float32(math.Copysign(0, -1)) {
				t.Fatalf("sign %d: the threshold is %v, want 0, since nearly all values are 0", sign, q)
			}
			if q, _ := estimator.Threshold(2, sign); q != float32(5*sign) {
				t.Fatalf("sign %d: the threshold is %v, want %d, since all values are 5", sign, q, 5*sign)
			}
			for u := range units {
				if got, want := estimator.Strongest(u, sign), strongestOf(column(z, u, sign), in, 2); !slices.Equal(got, want) {
					t.Fatalf("unit %d, sign %d: strongest %v, want %v", u, sign, got, want)
				}
			}
		}
	})
}

// A sketch stores values in levels of limited capacity. A state with more values in a level is an
// error.
func TestSketchStateErrors(t *testing.T) {
	t.Parallel()
	o := ThresholdOptions{Units: 1, Rank: 1_000, References: 1, Error: 0.1}
	g := NewThresholdEstimator(o)
	g.sides[0].sketch.counts[0] = 1 << 12
	if err := unmarshal(NewThresholdEstimator(o), marshal(g)); err == nil {
		t.Error("a level with more values than its capacity: no error")
	}
}

// When a level is full it is compacted: some of its values move to the next level. For any rank and
// error, these fit there, if necessary after that level was compacted too.
func TestLevels(t *testing.T) {
	t.Parallel()
	for k := 1; k < 1<<22; k += 1 + k/7 {
		for _, relative := range []float64{0.5, 0.4, 0.3, 0.2, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.003, 0.001} {
			s := newSketch(1, k, relative, 0)
			for h := range s.levels() - 1 {
				up := s.capacity(h) / 2 >> s.compactionShift(h)
				if up < 1 || up > s.capacity(h+1) {
					t.Fatalf("rank %d, error %v: %d move up from level %d of %v", k, relative, up, h, s.offsets)
				}
				if full := s.capacity(h+1) - up + 1; h+2 < s.levels() && full/2>>s.compactionShift(h+1) < 1 {
					t.Fatalf("rank %d, error %v: %d values at level %d of %v do not move up", k, relative, full, h+1, s.offsets)
				}
			}
		}
	}
}

// bytes returns the memory of a ThresholdEstimator.
func (o ThresholdOptions) bytes() int64 {
	return int64(o.Units) * int64(o.signs()) * topValuesBytes(max(o.Rank, 1), max(o.References, 1), o.Error)
}
