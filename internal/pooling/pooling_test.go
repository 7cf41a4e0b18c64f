package pooling

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// Pooling, which reduces an activation to a vector, gives the same values as loops over the axes,
// in any order of the axes: samples N, channels C, rows H, columns W, and time or tokens T. Class
// takes the first token, and Patch those of a known grid of patches; both need the axes NTC.
func TestPooling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.SampledFrom([]tensor.Axes{"NCHW", "NHWC", "NTC", "NCT", "NC", "NCTT"}).Draw(t, "axes")
		l := tensor.Layer{Name: "z", Axes: axes}
		for range len(axes) - 1 {
			l.Shape = append(l.Shape, rapid.IntRange(1, 4).Draw(t, "size"))
		}
		p := rapid.SampledFrom(Kinds()).Draw(t, "pooling")
		if p.Check(l) != nil {
			if p != Class && p != Patch || p == Class && axes == "NTC" {
				t.Fatalf("%s of %s: %v", p, axes, p.Check(l))
			}
			return
		}
		z := make([]float32, tensor.Size(l.Shape))
		for i := range z {
			z[i] = rapid.Float32Range(-5, 5).Draw(t, "z")
		}
		got := make([]float32, p.Dim(l))
		for i := range got {
			got[i] = 99 // outside [-5, 5], to find elements that are not written
		}
		p.Pool(l)(got, z)
		want := pooled(p, l, z)
		for i := range want {
			if math.Abs(float64(got[i])-want[i]) > 1e-5 {
				t.Fatalf("%s of %s %v: %v, want %v", p, axes, l.Shape, got, want)
			}
		}
	})
}

// pooled returns what p.Pool(l) should write: it groups the elements by their indices
// along the axes that are kept, and reduces each group.
func pooled(p Kind, l tensor.Layer, z []float32) []float64 {
	groups := map[int][]float64{}
	skipped := 0 // tokens before those of patches
	if m, _ := l.Maps(); p == Patch {
		skipped = l.Shape[0] - m.Grid[0]*m.Grid[1]
	}
	for e, v := range z {
		rest, position, first, patch := e, 0, true, true
		at := make([]int, len(l.Shape))
		for i := len(l.Shape) - 1; i >= 0; i-- {
			at[i], rest = rest%l.Shape[i], rest/l.Shape[i]
		}
		for i, n := range l.Shape {
			if p == Flatten || !strings.Contains("HWT", string(l.Axes[i+1:i+2])) {
				position = position*n + at[i]
			} else {
				first, patch = first && at[i] == 0, patch && at[i] >= skipped
			}
		}
		if (p != Class || first) && (p != Patch || patch) {
			groups[position] = append(groups[position], float64(v))
		}
	}
	out := make([]float64, len(groups))
	for position, values := range groups {
		switch p {
		case Max:
			out[position] = slices.Max(values)
		default:
			for _, v := range values {
				out[position] += v / float64(len(values))
			}
		}
	}
	return out
}

// TestPatchTokens finds the tokens of patches by the layer's layout, or by a square grid; where
// neither is known it says what to set.
func TestPatchTokens(t *testing.T) {
	t.Parallel()
	z := []float32{100, 50, 1, 2, 3, 6} // tokens of one channel
	for _, c := range []struct {
		layout *tensor.Tokens
		n      int
		want   float32
	}{
		{&tensor.Tokens{Prefix: 2, Height: 2, Width: 2}, 6, 3},
		{&tensor.Tokens{Prefix: 2, Height: 1, Width: 4}, 6, 3},
		{nil, 5, 14}, // a class token and 2 x 2 patches
	} {
		l := tensor.Layer{Name: "z", Shape: []int{c.n, 1}, Axes: "NTC", Tokens: c.layout}
		if err := Patch.Check(l); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, 1)
		Patch.Pool(l)(got, z[:c.n])
		if got[0] != c.want {
			t.Errorf("%v, %d tokens: the mean over patches is %v, want %v", c.layout, c.n, got[0], c.want)
		}
	}
	l := tensor.Layer{Name: "z", Shape: []int{6, 1}, Axes: "NTC"}
	if err := Patch.Check(l); err == nil || !strings.Contains(err.Error(), "tokens: {prefix") {
		t.Errorf("six tokens of unknown layout: error %v", err)
	}
	known := tensor.Layer{Name: "z", Shape: []int{6, 1}, Axes: "NTC", Tokens: &tensor.Tokens{Prefix: 2, Height: 2, Width: 2}}
	if Patch.ID(known) == Patch.ID(l) || Mean.ID(known) != Mean.ID(l) {
		t.Error("the identity of patch pooling does not tell layouts apart, or that of the mean does")
	}
}
