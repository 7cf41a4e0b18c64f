package functions

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
)

// meanProduct is the mean over samples of the first value on x times that on T(x).
func meanProduct(inputs []*engine.Array, _ string) (tensor.Tensor, error) {
	x, y := inputs[0].Data.([]float32), inputs[1].Data.([]float32)
	n, width := inputs[0].Shape[0], inputs[0].Shape[1]
	sum := 0.0
	for i := range n {
		sum += float64(x[i*width]) * float64(y[i*width])
	}
	out := tensor.New(1)
	out.Data[0] = float32(sum / float64(n))
	return out, nil
}

func setOf(t *testing.T, samples int, f func([]*engine.Array, string) (tensor.Tensor, error)) measure.Measure {
	t.Helper()
	m, err := SetMeasure(SetSettings{MeasureSettings{Function: "mine:f"}, samples})
	if err != nil {
		t.Fatal(err)
	}
	m.(*setMeasure).functions[0].call = f
	return m
}

// batchOf returns samples at the given places, whose values on x and T(x) are z and z + 1.
func batchOf(z []float32, places ...int) *measure.Batch {
	b := &measure.Batch{Place: places, Index: places, Clean: tensor.New(len(places), 2), Transformed: tensor.New(len(places), 2)}
	for i, p := range places {
		b.Clean.Data[2*i], b.Transformed.Data[2*i] = z[p], z[p]+1
	}
	return b
}

// TestSet checks value, interval and null of a function of a set against those computed directly,
// also where accumulators for parts of the samples are merged and saved.
func TestSet(t *testing.T) {
	t.Parallel()
	const n = 100
	r := rand.New(rand.NewPCG(1, 2))
	z := make([]float32, n)
	for i := range z {
		z[i] = float32(r.NormFloat64())
	}
	for _, c := range []struct {
		name          string
		samples, kept int
	}{{"all", 0, n}, {"some", 60, 60}} {
		site := measure.Site{Layer: tensor.Layer{Name: "a", Shape: []int{2}, Axes: "NC"}, Layout: measure.NewLayout(n), Key: measure.Key{Seed: 3}}
		m := setOf(t, c.samples, meanProduct)
		var parts []measure.Accumulator
		for _, half := range [][2]int{{50, 100}, {0, 50}} { // the later places first
			a, err := m.New(site)
			if err != nil {
				t.Fatal(err)
			}
			var places []int
			for p := half[0]; p < half[1]; p++ {
				places = append(places, p)
			}
			if err := a.Update(batchOf(z, places...)); err != nil {
				t.Fatal(err)
			}
			raw, err := a.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := m.New(site)
			if err == nil {
				err = loaded.UnmarshalBinary(raw)
			}
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, loaded)
		}
		if err := parts[0].Merge(parts[1]); err != nil {
			t.Fatal(err)
		}
		got, err := parts[0].Scores()
		if err != nil || len(got) != 1 {
			t.Fatalf("%d scores: %v", len(got), err)
		}
		mean := func(keep func(place int) bool) (float64, int) {
			sum, count := 0.0, 0
			for p := range c.kept {
				if keep(p) {
					sum, count = sum+float64(z[p])*float64(z[p]+1), count+1
				}
			}
			return sum / float64(count), count
		}
		want, _ := mean(func(int) bool { return true })
		var replicates []measure.Replicate
		for g := range site.Layout.Groups {
			if v, left := mean(func(p int) bool { return site.Layout.Group(p) != g }); left < c.kept {
				replicates = append(replicates, measure.Replicate{Value: v, Left: c.kept - left})
			}
		}
		low, high := resample.Jackknife(want, c.kept, replicates)
		s := got[0]
		if s.Statistic != "f" || s.N != c.kept || math.Abs(s.Value-want) > 1e-5 || math.Abs(s.Low-low) > 1e-4 || math.Abs(s.High-high) > 1e-4 {
			t.Errorf("%s: %s %g [%g, %g] of %d samples, want f %g [%g, %g] of %d", c.name, s.Statistic, s.Value, s.Low, s.High, s.N, want, low, high, c.kept)
		}
		// Of unrelated samples the mean product is about E z (E z + 1), which is near 0.
		if math.Abs(s.Null) > 0.35 || s.Null == 0 {
			t.Errorf("%s: null %g", c.name, s.Null)
		}
		if warned := len(s.Warnings) > 0; warned != (c.kept < n) {
			t.Errorf("%s: warnings %q", c.name, s.Warnings)
		}
	}
}

// TestSetThatFails checks the errors of functions of sets, and of what they are given.
func TestSetThatFails(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layer: tensor.Layer{Name: "a", Shape: []int{2}, Axes: "NC"}, Layout: measure.NewLayout(10)}
	z := make([]float32, 10)
	returns := func(values ...float32) func([]*engine.Array, string) (tensor.Tensor, error) {
		return func([]*engine.Array, string) (tensor.Tensor, error) {
			return tensor.Tensor{Shape: []int{len(values)}, Data: values}, nil
		}
	}
	for _, c := range []struct {
		f    func([]*engine.Array, string) (tensor.Tensor, error)
		want string
	}{
		{returns(1, 2), "must return one number"},
		{returns(float32(math.NaN())), "NaN or infinity"},
		{func([]*engine.Array, string) (tensor.Tensor, error) { return tensor.Tensor{}, errors.New("no luck") }, "no luck"},
	} {
		a, err := setOf(t, 0, c.f).New(site)
		if err == nil {
			err = a.Update(batchOf(z, 0, 1, 2))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Scores(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	a, err := setOf(t, 0, returns(1)).New(site)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := a.Scores(); err != nil || !math.IsNaN(s[0].Value) || len(s[0].Warnings) != 1 {
		t.Errorf("without samples: %v, %v", s, err)
	}
	bad := batchOf([]float32{1, float32(math.Inf(1))}, 0, 1)
	var nonFinite *measure.NonFinite
	if err := a.Update(bad); !errors.As(err, &nonFinite) || nonFinite.Index != 1 {
		t.Errorf("infinity: %v", err)
	}
	raw, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.UnmarshalBinary(raw[:len(raw)-1]); err == nil {
		t.Error("a truncated state is read")
	}
	for want, settings := range map[string]SetSettings{
		"function is missing": {},
		"names no function":   {MeasureSettings{Functions: []string{"a/b"}}, 0},
		"at least 2":          {MeasureSettings{Function: "mine:f"}, 1},
	} {
		if _, err := SetMeasure(settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
