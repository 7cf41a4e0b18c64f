package dense_test

import (
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
)

// agreementOf returns the scores of dense-agreement of two models by statistic and factor, and the
// agreement of each sample. a and b are their outputs for the same images.
func agreementOf(t *testing.T, f *decoded.Format, a, b tensor.Tensor) (map[string]measure.Score, map[int]float64) {
	t.Helper()
	n := a.Shape[0]
	acc, err := dense.Agreement().New(measure.Site{Layout: measure.NewLayout(n), Output: f, KeepSamples: true})
	if err != nil {
		t.Fatal(err)
	}
	batch := &measure.Batch{Clean: a, Transformed: b}
	for i := range n {
		batch.Place, batch.Index, batch.Label = append(batch.Place, i), append(batch.Index, i), append(batch.Label, measure.NoLabel)
	}
	if err := acc.Update(batch); err != nil {
		t.Fatal(err)
	}
	scores, err := acc.Scores()
	if err != nil {
		t.Fatal(err)
	}
	out, samples := map[string]measure.Score{}, map[int]float64{}
	for _, s := range scores {
		out[strings.TrimSpace(s.Statistic+" "+s.Factor)] = s
	}
	for _, s := range acc.(measure.Sampler).Samples() {
		if s.Statistic == "agreement" {
			samples[s.Index] = s.Value
		}
	}
	return out, samples
}

// TestBoxesAgree checks the agreement of two detectors by hand: 2 pairs of the same class / boxes of
// both.
func TestBoxesAgree(t *testing.T) {
	t.Parallel()
	f := boxFormat()
	as := func(b decoded.Box, class int, score float64) decoded.Box {
		b.Class, b.Score = class, score
		return b
	}
	one, two := box(0, 0, 4, 4), box(5, 5, 9, 9)
	over := decoded.Box{Left: -0.1, Top: 0.2, Right: 0.1, Bottom: 0.4, Score: 0.9} // half of it is outside
	for name, c := range map[string]struct {
		a, b []decoded.Box
		want map[string]float64
	}{
		"identical":      {[]decoded.Box{one, as(two, 1, 0.8), over}, []decoded.Box{one, as(two, 1, 0.8), over}, map[string]float64{"agreement": 1, "iou": 1, "class-flips": 0, "agreement class=0": 1, "agreement class=1": 1}},
		"swapped":        {[]decoded.Box{one, as(two, 1, 0.9)}, []decoded.Box{as(one, 1, 0.9), two}, map[string]float64{"agreement": 0, "iou": 1, "class-flips": 1, "agreement class=0": 0, "agreement class=1": 0}},
		"one missing":    {[]decoded.Box{one, two}, []decoded.Box{one}, map[string]float64{"agreement": 2. / 3, "iou": 1}},
		"one flips":      {[]decoded.Box{one, two}, []decoded.Box{one, as(two, 1, 0.9)}, map[string]float64{"agreement": 0.5, "class-flips": 0.5, "agreement class=0": 2. / 3, "agreement class=1": 0}},
		"shifted":        {[]decoded.Box{one}, []decoded.Box{box(1, 0, 5, 4)}, map[string]float64{"agreement": 1, "iou": 0.6}},
		"too far":        {[]decoded.Box{one}, []decoded.Box{box(2, 0, 6, 4)}, map[string]float64{"agreement": 0}},
		"weak box":       {[]decoded.Box{one, as(two, 0, 0.4)}, []decoded.Box{one}, map[string]float64{"agreement": 1}},
		"less confident": {[]decoded.Box{one}, []decoded.Box{as(one, 0, 0.6)}, map[string]float64{"agreement": 1, "confidence-change": -0.3}},
	} {
		a, b := boxRows(f, c.a, nil), boxRows(f, c.b, nil) // an image without boxes says nothing
		got, samples := agreementOf(t, f, a, b)
		for statistic, want := range c.want {
			if s, ok := got[statistic]; !ok || !(math.Abs(s.Value-want) <= 1e-6) {
				t.Errorf("%s: %s is %v, want %v", name, statistic, s.Value, want)
			}
		}
		if v := samples[0]; !(math.Abs(v-c.want["agreement"]) <= 1e-6) || !math.IsNaN(samples[1]) {
			t.Errorf("%s: the samples agree by %v, want %v and NaN", name, samples, c.want["agreement"])
		}
	}
}

// TestMapsAgree checks the agreement of two segmenters by hand.
func TestMapsAgree(t *testing.T) {
	t.Parallel()
	f := mapFormat(2, 2)
	rows := func(maps ...[4]float32) tensor.Tensor {
		out := tensor.New(len(maps), 1, 2, 2)
		for i, m := range maps {
			copy(out.At(i).Data, m[:])
		}
		return out
	}
	a := rows([4]float32{0, 0, 1, 1}, [4]float32{0, 0, 0, 1})
	for name, c := range map[string]struct {
		b                tensor.Tensor
		agreement, miou  float64
		first, secondOne float64
	}{
		"identical": {a, 1, 1, 1, 1},
		"swapped":   {rows([4]float32{1, 1, 0, 0}, [4]float32{1, 1, 1, 0}), 0, 0, 0, 0},
		// Class 0: 4 of 5 + 1 positions; class 1: 2 of 3 + 1.
		"two differ": {rows([4]float32{0, 1, 1, 1}, [4]float32{0, 0, 0, 0}), 6. / 8, (4./6 + 2./4) / 2, 3. / 4, 3. / 4},
	} {
		got, samples := agreementOf(t, f, a, c.b)
		near(t, name+": agreement", got["agreement"].Value, c.agreement)
		near(t, name+": miou", got["miou"].Value, c.miou)
		near(t, name+": first sample", samples[0], c.first)
		near(t, name+": second sample", samples[1], c.secondOne)
	}
}

// TestAgreementContract checks what holds for every measure, of boxes and of class maps.
func TestAgreementContract(t *testing.T) {
	t.Parallel()
	const n = 70
	f, m := boxFormat(), mapFormat(3, 2)
	var a, b [][]decoded.Box
	maps, others := tensor.New(n, 1, 2, 2), tensor.New(n, 1, 2, 2)
	for i := range n {
		x := box(float64(i%5), 1, float64(i%5)+3, 5)
		y := x
		x.Class, y.Class = i%3, i%2
		a, b = append(a, []decoded.Box{x}), append(b, []decoded.Box{y})
	}
	for i := range maps.Data {
		maps.Data[i], others.Data[i] = float32(i%3), float32(i*i%3)
	}
	for name, c := range map[string]measuretest.Case{
		"boxes": {Measure: dense.Agreement(), Clean: boxRows(f, a...), Transformed: boxRows(f, b...), Site: measure.Site{Layout: measure.NewLayout(n), Output: f}},
		"maps":  {Measure: dense.Agreement(), Clean: maps, Transformed: others, Site: measure.Site{Layout: measure.NewLayout(n), Output: m}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			measuretest.Run(t, c)
		})
	}
}
