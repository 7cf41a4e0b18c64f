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

// streams are values of one unit in orders that are hard in different ways.
var streams = map[string]func(r *rand.Rand, n int) []float32{
	"no order": normals,
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
	"scene after scene": func(r *rand.Rand, n int) []float32 {
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

// The rate at a sketch's thresholds misses the one asked for by no more than the error that is
// stated.
func TestSketchKeepsItsError(t *testing.T) {
	t.Parallel()
	const units = 60
	for name, stream := range streams {
		for _, c := range []struct {
			n     int
			error float64
		}{{15_000, 0.1}, {25_000, 0.05}, {40_000, 0.02}} {
			t.Run(fmt.Sprint(name, " ", c), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(7, uint64(c.n)))
				k := Rank(c.n, 0.01)
				s := newSketch(units, k, c.error, 0)
				var squares, worst float64
				for u := range units {
					values := stream(r, c.n)
					for _, v := range values {
						s.add(u, v)
					}
					miss := Rate(values, s.threshold(u))*float64(c.n)/float64(k) - 1
					squares += miss * miss
					worst = max(worst, math.Abs(miss))
				}
				if rms := math.Sqrt(squares / units); rms > c.error || worst > 4*c.error {
					t.Errorf("the rate is missed by %.4f in the root mean square and by %.4f at most, with an error of %v", rms, worst, c.error)
				}
			})
		}
	}
}

// What is merged of many parts has the error of a whole.
func TestMergedSketchKeepsItsError(t *testing.T) {
	t.Parallel()
	const units, n, k, relative = 60, 15_000, 150, 0.08
	for _, parts := range []int{2, 7, 300} {
		r := rand.New(rand.NewPCG(3, uint64(parts)))
		whole := newSketch(units, k, relative, 0)
		all := make([][]float32, units)
		for u := range all {
			all[u] = normals(r, n)
		}
		for p := range parts {
			part := newSketch(units, k, relative, 0)
			for u, v := range all {
				for _, x := range v[p*n/parts : (p+1)*n/parts] {
					part.add(u, x)
				}
			}
			whole.merge(part)
		}
		var squares float64
		for u, v := range all {
			miss := Rate(v, whole.threshold(u))*n/k - 1
			squares += miss * miss
		}
		if rms := math.Sqrt(squares / units); rms > relative {
			t.Errorf("merged from %d parts the rate is missed by %.4f in the root mean square, with an error of %v", parts, rms, relative)
		}
	}
}

// A sketch of the sizes that studies have takes the same memory however many inputs there are, and
// less than the values.
func TestSketchIsFlat(t *testing.T) {
	t.Parallel()
	small, large := sketchBytes(1_000, 0.05), sketchBytes(1_000_000, 0.05)
	if small >= 1_100 || large > 2*small {
		t.Errorf("a sketch takes %d bytes for a rank of 1,000 and %d for one of a million", small, large)
	}
	for _, k := range []int{1, 17, 100, 1_000, 1 << 20} {
		for _, e := range []float64{0, 0.001, 0.01, 0.1, 0.5} {
			o := ThresholdOptions{Units: 1, Rank: k, References: 1, sparse: true, Error: e}
			exact := o
			exact.Error = 0
			if o.bytes() > exact.bytes() {
				t.Errorf("rank %d, error %v: %d bytes, and exactly %d", k, e, o.bytes(), exact.bytes())
			}
		}
	}
}

// What was merged from parts, some of them read back from their states, has the error of a whole;
// ties and constant units are told exactly.
func TestSketchMerges(t *testing.T) {
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
			z.Data[i*units+1] = max(0, float32(r.NormFloat64()-3)) // 0 but for one in 740
			z.Data[i*units+2] = 5
		}
		o := ThresholdOptions{Units: units, Rank: Rank(n, 0.03), References: 2, Error: relative}
		whole := NewThresholdEstimator(o)
		for at := 0; at < n; {
			end := min(n, at+rapid.IntRange(100, n/2).Draw(t, "part"))
			part := NewThresholdEstimator(o)
			if err := part.Update(z.Slice(at, end), in[at:end]); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "saved") {
				part = reread(t, part, o)
			}
			if err := whole.Merge(part); err != nil {
				t.Fatal(err)
			}
			at = end
		}
		for _, sign := range []int{1, -1} {
			q, global := whole.Threshold(0, sign)
			if got := Rate(column(z, 0, sign), q); math.Abs(got-0.03) > 0.03*5*relative || !math.IsNaN(global) {
				t.Fatalf("sign %d: a rate of %v, and said to be %v", sign, got, global)
			}
			if q, _ := whole.Threshold(1, sign); q != 0 && q != float32(math.Copysign(0, -1)) {
				t.Fatalf("sign %d: a threshold of %v where nearly all are 0", sign, q)
			}
			if q, _ := whole.Threshold(2, sign); q != float32(5*sign) {
				t.Fatalf("sign %d: a threshold of %v where all are 5", sign, q)
			}
			for u := range units {
				if got, want := whole.Strongest(u, sign), strongestOf(column(z, u, sign), in, 2); !slices.Equal(got, want) {
					t.Fatalf("unit %d, sign %d: strongest %v, want %v", u, sign, got, want)
				}
			}
		}
	})
}

// Sketches of other errors are not merged, and a state with more values than there is room for is
// an error.
func TestSketchRefuses(t *testing.T) {
	t.Parallel()
	o := ThresholdOptions{Units: 1, Rank: 1_000, References: 1, Error: 0.1}
	g := NewThresholdEstimator(o)
	o.Error = 0.02
	if err := g.Merge(NewThresholdEstimator(o)); err == nil {
		t.Error("sketches of other errors were merged")
	}
	g.sides[0].sketch.counts[0] = 1 << 12
	raw, err := g.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	o.Error = 0.1
	if err := NewThresholdEstimator(o).UnmarshalBinary(raw); err == nil {
		t.Error("a level with more values than it has room for was read")
	}
}

// However large rank and error are, what moves up from a level fits above it, at the latest when
// that has moved up itself, which it can.
func TestLevelsFit(t *testing.T) {
	t.Parallel()
	for k := 1; k < 1<<22; k += 1 + k/7 {
		for _, relative := range []float64{0.5, 0.4, 0.3, 0.2, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.003, 0.001} {
			s := newSketch(1, k, relative, 0)
			for h := range s.levels() - 1 {
				up := s.room(h) / 2 >> s.liftShift(h)
				if up < 1 || up > s.room(h+1) {
					t.Fatalf("rank %d, error %v: %d move up from level %d of %v", k, relative, up, h, s.offsets)
				}
				if full := s.room(h+1) - up + 1; h+2 < s.levels() && full/2>>s.liftShift(h+1) < 1 {
					t.Fatalf("rank %d, error %v: %d values at level %d of %v do not move up", k, relative, full, h+1, s.offsets)
				}
			}
		}
	}
}
