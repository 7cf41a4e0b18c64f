package firing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/tensor"
)

// The threshold q, at which a unit (one value of a layer) fires, is the ceil(0.01 n)-th largest of
// its n values over the inputs, and global the fraction of values of at least q. That rank is k.
func TestThreshold(t *testing.T) {
	t.Parallel()
	up := make([]float32, 700)
	for i := range up {
		up[i] = float32(i)
	}
	for _, c := range []struct {
		name   string
		values []float32
		q      float32
		global float64
	}{
		{"all different", up, 693, 0.01},
		{"rank 7 of 601", up[:601], 594, 7.0 / 601},
		{"fewer than a hundred values", up[:30], 29, 1.0 / 30},
		{"constant", make([]float32, 500), 0, 1},
		{"ties at the threshold raise the rate", slices.Concat(make([]float32, 150), slices.Repeat([]float32{2}, 50)), 2, 0.25},
		{"ties below the threshold", slices.Concat(make([]float32, 198), []float32{3}, []float32{4}), 3, 0.01},
		{"rank 2 is one of the ties", slices.Concat(make([]float32, 199), []float32{3}), 0, 1},
	} {
		q, global := Threshold(c.values, 0.01)
		if q != c.q || global != c.global {
			t.Errorf("%s: threshold %v with a rate of %v, want %v and %v", c.name, q, global, c.q, c.global)
		}
	}
	if k := rankOf(700, 0.01); k != 7 {
		t.Errorf("rankOf(700, 0.01) = %d, want 7", k)
	}
}

// The network score is the mean of the highest scores: of the proportion p of them.
func TestNetworkScore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scores []float64
		p      float64
		want   float64
	}{
		{[]float64{1, 5, 3, 4, 2}, 0.4, 4.5},
		{[]float64{1, 5, 3}, 1, 3},
		{[]float64{1, 5, 3}, 0.01, 5},
	} {
		if got := NetworkScore(c.scores, c.p); got != c.want {
			t.Errorf("the network score of the top proportion %v of %v is %v, want %v", c.p, c.scores, got, c.want)
		}
	}
}

// inputs draws responses with many ties, n x units, and which of the inputs can be reference
// stimuli, as the inputs that activate a unit most are called.
func inputs(t *rapid.T) (responses tensor.Tensor, in []Input) {
	units, n := rapid.IntRange(1, 7).Draw(t, "units"), rapid.IntRange(1, 60).Draw(t, "inputs")
	responses = tensor.New(n, units)
	for i := range responses.Data {
		responses.Data[i] = float32(rapid.IntRange(-4, 4).Draw(t, "response"))
	}
	order := rapid.Permutation(seq(n)).Draw(t, "order")
	for _, index := range order {
		in = append(in, Input{Index: index, Reference: rapid.IntRange(0, 3).Draw(t, "reference") > 0})
	}
	return responses, in
}

// seq returns 0 to n-1.
func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// A ThresholdEstimator, which finds thresholds and reference stimuli batch by batch, agrees with
// sorting all values, for any batches, and after its state (its serialised content) has been
// written and read. For sign -1 a unit fires at low values: all values are negated. With the option
// sparse only sign 1 is considered.
func TestThresholdEstimator(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		responses, in := inputs(t)
		n, units := responses.Shape[0], responses.Shape[1]
		rate := rapid.Float64Range(0.01, 1).Draw(t, "rate")
		o := ThresholdOptions{Units: units, Rank: rankOf(n, rate), References: rapid.IntRange(1, 5).Draw(t, "references"), sparse: rapid.Bool().Draw(t, "sparse")}
		estimator := NewThresholdEstimator(o)
		for at := 0; at < n; {
			end := min(n, at+rapid.IntRange(1, 9).Draw(t, "batch"))
			if err := estimator.Update(responses.Slice(at, end), in[at:end]); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "saved") {
				estimator = reread(t, estimator, o)
			}
			at = end
		}
		for u := range units {
			for _, sign := range []int{1, -1}[:o.signs()] {
				values := column(responses, u, sign)
				q, global := estimator.Threshold(u, sign)
				if wantQ, want := Threshold(values, rate); q != wantQ || global != want {
					t.Fatalf("unit %d, sign %d: threshold %v with a global rate of %v, want %v and %v; values %v", u, sign, q, global, wantQ, want, values)
				}
				if got, want := estimator.Strongest(u, sign), strongestOf(values, in, o.References); !slices.Equal(got, want) {
					t.Fatalf("unit %d, sign %d: strongest inputs %v, want %v; values %v of inputs %v", u, sign, got, want, values, in)
				}
			}
		}
	})
}

// unmarshal reads the state of an estimator with the same options.
func unmarshal(e *ThresholdEstimator, raw []byte) error {
	return state.Unmarshal(raw, "test", 1, e.Code)
}

// marshal returns the state of an estimator.
func marshal(e *ThresholdEstimator) []byte {
	raw, err := state.Marshal("test", 1, e.Code)
	if err != nil {
		panic(err)
	}
	return raw
}

// reread returns an estimator with the state of e.
func reread(t *rapid.T, e *ThresholdEstimator, o ThresholdOptions) *ThresholdEstimator {
	out := NewThresholdEstimator(o)
	if err := unmarshal(out, marshal(e)); err != nil {
		t.Fatal(err)
	}
	return out
}

// column returns the responses of unit u, each times sign.
func column(responses tensor.Tensor, u, sign int) []float32 {
	var out []float32
	for i := range responses.Shape[0] {
		out = append(out, float32(sign)*responses.At(i).Data[u])
	}
	return out
}

// strongestOf returns, by sorting, the indices of the possible reference stimuli with the largest
// values, at most limit of them.
func strongestOf(values []float32, in []Input, limit int) []int {
	var places []int
	for p := range in {
		if in[p].Reference {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b int) int {
		if values[a] != values[b] {
			return cmp.Compare(values[b], values[a])
		}
		return in[a].Index - in[b].Index
	})
	var out []int
	for _, p := range places[:min(limit, len(places))] {
		out = append(out, in[p].Index)
	}
	return out
}

func TestThresholdEstimatorErrors(t *testing.T) {
	t.Parallel()
	o := ThresholdOptions{Units: 3, Rank: 2, References: 1}
	e := NewThresholdEstimator(o)
	if err := e.Update(tensor.New(2, 4), make([]Input, 2)); err == nil {
		t.Error("responses of another number of units: no error")
	}
	raw := marshal(e)
	for i := range raw {
		if err := unmarshal(NewThresholdEstimator(o), raw[:i]); err == nil {
			t.Fatalf("a state cut at %d of %d bytes: no error", i, len(raw))
		}
	}
	if err := unmarshal(NewThresholdEstimator(ThresholdOptions{Units: 4, Rank: 2, References: 1}), raw); err == nil {
		t.Error("the state of another number of units: no error")
	}
}

// The score is the firing rate along trajectories of transformed reference stimuli, divided by the
// global rate. A constant unit fires everywhere.
func TestScore(t *testing.T) {
	t.Parallel()
	if s := Score(1, 0.01); math.Abs(s-100) > 1e-12 {
		t.Errorf("a unit that fires on its whole trajectories, and at 0.01 of all inputs, scores %v, want 100", s)
	}
	if s := Score(1, 1); s != 1 {
		t.Errorf("a constant unit scores %v, want 1", s)
	}
}

// Reading arbitrary bytes as a state succeeds or returns an error.
func FuzzThresholdEstimatorState(f *testing.F) {
	o := ThresholdOptions{Units: 3, Rank: 2, References: 2}
	e := NewThresholdEstimator(o)
	if err := e.Update(tensor.New(4, 3), []Input{{0, true}, {1, false}, {2, true}, {3, true}}); err != nil {
		f.Fatal(err)
	}
	f.Add(marshal(e))
	f.Add([]byte("noether\x01")) // the bytes that begin a state, and no more
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		back := NewThresholdEstimator(o)
		if unmarshal(back, data) == nil {
			back.Threshold(1, -1)
			back.Strongest(2, 1)
		}
	})
}

// groups assigns each unit of all layers to one group, and no group has more units than the limit.
// A group consists of chunks, ranges lo to hi (exclusive) of the units of a layer.
func TestGroups(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(1, 2000), 1, 9).Draw(t, "layers")
		limit := rapid.IntRange(1, 900).Draw(t, "limit")
		next := make([]int, len(counts))
		for _, g := range groups(counts, limit) {
			size := 0
			for _, c := range g {
				if c.lo != next[c.layer] || c.hi <= c.lo {
					t.Fatalf("chunk %+v, want one that begins at unit %d", c, next[c.layer])
				}
				next[c.layer] = c.hi
				size += c.count()
			}
			if size > limit {
				t.Fatalf("a group of %d units, want at most %d", size, limit)
			}
		}
		if !slices.Equal(next, counts) {
			t.Fatalf("%v units are assigned, want %v", next, counts)
		}
	})
}

// Update adds the responses of all units to b inputs: b x units, finite, which is not checked.
func (g *ThresholdEstimator) Update(responses tensor.Tensor, inputs []Input) error {
	if len(inputs) != responses.Shape[0] || responses.Len() != len(inputs)*g.units {
		return fmt.Errorf("firing: responses of shape %v to %d inputs, for %d units", responses.Shape, len(inputs), g.units)
	}
	g.updateUnits(responses.Data, g.units, 0, g.units, inputs)
	g.count(inputs)
	return nil
}

// Threshold returns the q of unit u: it fires where sign h >= q, sign 1 or -1. global is the
// fraction of inputs at which it fires; NaN with a sketch, so that it must be counted in a second
// reading.
func (g *ThresholdEstimator) Threshold(u, sign int) (q float32, global float64) {
	t := g.side(sign)
	q, count := t.threshold(u)
	if t.sketch != nil {
		return q, math.NaN()
	}
	return q, float64(count) / float64(t.n)
}

// Strongest returns the reference stimuli of unit u for a sign of 1 or -1, the strongest first.
func (g *ThresholdEstimator) Strongest(u, sign int) []int {
	var out []int
	for _, i := range g.side(sign).strongest(u) {
		out = append(out, int(i))
	}
	return out
}

func (g *ThresholdEstimator) side(sign int) *topValues {
	if sign < 0 {
		return g.sides[1]
	}
	return g.sides[0]
}
