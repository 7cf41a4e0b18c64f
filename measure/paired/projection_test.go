package paired

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// TestProjection checks the projections of activations to a plane. Distances between projections of
// vectors that lie in a plane are those of the vectors, also after one accumulator is serialised
// and merged with another. Only the first site.Project samples have projections. Values of samples
// are named after the view, clean (for the input) or moved (for the transformed input), and the
// coordinate, 1 or 2.
func TestProjection(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layout: measure.Layout{N: 6, Block: 3, Groups: 2}, Project: 4, Layer: tensor.Layer{Shape: []int{3}, Axes: "NC"}}
	// Coordinates (u, v) in the plane of the orthonormal vectors (2, 1, 2)/3 and (-2, 2, 1)/3.
	clean := [][2]float64{{1, 0}, {4, 1}, {-2, 3}, {0, -5}, {9, 9}, {8, 8}}
	transformed := [][2]float64{{2, 0}, {4, 2}, {-2, -3}, {6, -5}, {9, 9}, {8, 8}}
	vector := func(p [2]float64) []float32 {
		return []float32{float32((2*p[0] - 2*p[1]) / 3), float32((p[0] + 2*p[1]) / 3), float32((2*p[0] + p[1]) / 3)}
	}
	// feed returns an accumulator of the samples at some places of the order in which samples are
	// read.
	feed := func(places ...int) *accumulator {
		a := newAccumulator(difference(), site)
		b := &measure.Batch{Clean: tensor.New(len(places), 3), Transformed: tensor.New(len(places), 3)}
		for i, p := range places {
			b.Place, b.Index, b.Label = append(b.Place, p), append(b.Index, 10+p), append(b.Label, -1)
			copy(b.Clean.Data[3*i:], vector(clean[p]))
			copy(b.Transformed.Data[3*i:], vector(transformed[p]))
		}
		if err := a.Update(b); err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := feed(0, 1, 2)
	state, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	merged := newAccumulator(difference(), site)
	if err := merged.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	if err := merged.Merge(feed(3, 4, 5)); err != nil {
		t.Fatal(err)
	}
	got := map[int]map[string]float64{}
	for _, s := range merged.Samples() {
		if got[s.Index] == nil {
			got[s.Index] = map[string]float64{}
		}
		got[s.Index][s.Statistic] = s.Value
	}
	if len(got) != 4 {
		t.Fatalf("%d samples are projected, want 4", len(got))
	}
	projection := func(i int, view string) [2]float64 {
		return [2]float64{got[10+i]["projection-"+view+"-1"], got[10+i]["projection-"+view+"-2"]}
	}
	distance := func(a, b [2]float64) float64 { return math.Hypot(a[0]-b[0], a[1]-b[1]) }
	for i := range 4 {
		for j := range 4 {
			for _, c := range []struct {
				what      string
				got, want float64
			}{
				{"clean to clean", distance(projection(i, "clean"), projection(j, "clean")), distance(clean[i], clean[j])},
				{"clean to transformed", distance(projection(i, "clean"), projection(j, "moved")), distance(clean[i], transformed[j])},
			} {
				if math.Abs(c.got-c.want) > 1e-5 {
					t.Errorf("%s of samples %d and %d: %v, want %v", c.what, i, j, c.got, c.want)
				}
			}
		}
	}
	if n := len(newAccumulator(difference(), measure.Site{Layout: site.Layout, Layer: site.Layer}).Samples()); n != 0 {
		t.Errorf("an accumulator without projections has %d values of samples, want 0", n)
	}
}
