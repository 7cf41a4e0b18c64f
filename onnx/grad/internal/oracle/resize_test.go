//go:build cgo

package oracle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Linear and cubic interpolation is what the reference of the ONNX project makes in float64
// (testdata/resize.py).
func TestResize(t *testing.T) {
	t.Parallel()
	var golden struct {
		X     []float32 `json:"x"`
		Cases []struct {
			Mode        string    `json:"mode"`
			Coordinates string    `json:"coordinates"`
			A           float32   `json:"a"`
			Sizes       []int     `json:"sizes"`
			Scales      []float32 `json:"scales"`
			Shape       []int     `json:"shape"`
			Y           []float64 `json:"y"`
		} `json:"cases"`
	}
	raw, err := os.ReadFile("testdata/resize.json")
	if err == nil {
		err = json.Unmarshal(raw, &golden)
	}
	if err != nil || len(golden.Cases) == 0 {
		t.Fatal("no cases", err)
	}
	x := tensor.Tensor{Shape: []int{1, 1, 4, 5}, Data: golden.X}
	for _, c := range golden.Cases {
		for _, free := range []bool{false, true} {
			t.Run(fmt.Sprint(c.Mode, " ", c.Coordinates, c.Sizes, c.Scales, free), func(t *testing.T) {
				attrs := onnx.Attrs{"mode": c.Mode, "coordinate_transformation_mode": c.Coordinates, "cubic_coeff_a": c.A}
				if c.Mode == "outside" {
					attrs["mode"], attrs["exclude_outside"] = "cubic", 1
				}
				checkExact(t, 13, x, free, func(b *onnx.Builder, x onnx.Value) onnx.Value {
					if c.Sizes != nil {
						return b.Op("Resize", attrs, x, "", "", b.Ints(c.Sizes...))
					}
					return b.Op("Resize", attrs, x, "", b.Const("", vectorOf(c.Scales...)))
				}, c.Y, c.Shape...)
			})
		}
	}
}

// The nearest number is taken as it is, in float64.
func TestResizeNearest(t *testing.T) {
	t.Parallel()
	x, tiny := normal(seed.Rand(8), 2, 3), float32(1e-3)
	var want []float64
	for row := range 4 {
		for _, p := range []int{0, 0, 1, 1, 1, 2, 2} { // where the middles of sevenths are in thirds
			want = append(want, 1+float64(tiny)*float64(x.Data[row/2*3+p]))
		}
	}
	for _, free := range []bool{false, true} {
		checkExact(t, 13, x, free, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Resize", nil, b.Add(b.Mul(x, b.Scalar(tiny)), b.Scalar(1)), "", "", b.Ints(4, 7))
		}, want, 4, 7)
	}
}
