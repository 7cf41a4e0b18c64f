package dataset

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// golden holds images that testdata/synthetic.py computed with NumPy, with their parameters:
// figures (shapes, such as discs) and gratings. The parameters of a figure are those of the type
// Figure.
type golden struct {
	Figures []struct {
		Kind                  string // of shape
		Scale, Rotation, X, Y float64
		Values                []float64
	}
	Gratings []struct {
		Frequency, Orientation, Phase float64
		Values                        []float64
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	data, err := os.ReadFile("testdata/synthetic.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Figures) != len(ShapeKinds()) || len(g.Gratings) == 0 {
		t.Fatalf("the golden file has %d figures and %d gratings", len(g.Figures), len(g.Gratings))
	}
	return g
}

// near checks that the first channel of a square image equals want within the tolerance.
func near(t *testing.T, got tensor.Tensor, want []float64, tolerance float64) {
	t.Helper()
	w := got.Shape[2]
	for i, v := range want {
		if math.Abs(float64(got.Data[i])-v) > tolerance {
			t.Fatalf("row %d, column %d: %g, want %g", i/w, i%w, got.Data[i], v)
		}
	}
}

// rotated90 rotates every channel of a square image by 90 degrees counter-clockwise.
func rotated90(t tensor.Tensor) tensor.Tensor {
	out, n := tensor.New(t.Shape...), t.Shape[1]
	for c := range t.Shape[0] {
		for i := range n {
			for j := range n {
				out.Data[(c*n+n-1-j)*n+i] = t.Data[(c*n+i)*n+j]
			}
		}
	}
	return out
}

// maxDifference returns the largest difference between the values of two images.
func maxDifference(a, b tensor.Tensor) float64 {
	most := 0.0
	for i, v := range a.Data {
		most = max(most, math.Abs(float64(v-b.Data[i])))
	}
	return most
}

// must returns v, or panics if there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
