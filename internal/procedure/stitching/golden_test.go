package stitching

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestGoldenLeastSquares fits stitches, linear maps from a layer of one network to a layer of
// another, by least squares. It compares their predictions with those of NumPy, which
// testdata/leastsquares.py wrote into leastsquares.json.
func TestGoldenLeastSquares(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/leastsquares.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name            string
		P, Q            int       // numbers of columns of X and Y
		X, Y, Predicted []float32 // Predicted: Y predicted from X
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 5 {
		t.Errorf("%d cases, want 5", len(cases))
	}
	for _, c := range cases {
		// Of the network that is stitched there is only the stitch, with zeros as weights.
		b := onnx.NewBuilder(17)
		b.Output("y", b.MatMul(b.Const(weightName, tensor.New(c.Q, c.P)), b.Input("x", onnx.Float, c.P, 1)))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		net := &stitchedNetwork{Model: m, p: c.P, q: c.Q, positions: 1}
		n := len(c.X) / c.P
		x, y := tensor.Tensor{Shape: []int{n, c.P}, Data: c.X}, tensor.Tensor{Shape: []int{n, c.Q}, Data: c.Y}
		// The fit uses the means and second moments of the columns of X and Y, which scatter sums.
		scatter := linalg.NewScatter[float64](c.P + c.Q)
		scatter.Add(linalg.Centre64(net.rows(x, y), c.P+c.Q), nil, new(linalg.Scratch))
		weights, err := net.solve(scatter)
		if err != nil {
			t.Fatal(err)
		}
		w, bias := weights[weightName], weights[biasName]
		var largest, difference float64
		for i := range n {
			for j := range c.Q {
				got := float64(bias.Data[j])
				for k := range c.P {
					got += float64(w.Data[j*c.P+k]) * float64(c.X[i*c.P+k])
				}
				want := float64(c.Predicted[i*c.Q+j])
				largest, difference = max(largest, math.Abs(want)), max(difference, math.Abs(got-want))
			}
		}
		if !(largest > 0 && difference <= 1e-6*largest) {
			t.Errorf("%s: predictions differ by %.2g; the largest is %.2g", c.Name, difference, largest)
		}
	}
}
