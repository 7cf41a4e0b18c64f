package plan

import (
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
)

// TestRangeOfTransformations checks the range of the parameter over all values of a transformation.
func TestRangeOfTransformations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"brightness: {values: [0.25, 3, 0.5]}":                      "[0.25, 3]",
		"brightness: [0.2, 0.8]":                                    "[0.2, 0.8]",
		"{name: x, rotate: {range: [-15, 15]}}":                     "[-15, 15]",
		"affine: {rotate: [-10, 10]}":                               "none",
		"grayscale":                                                 "none",
		"sequence: [{brightness: [0.2, 0.8]}, {rotate: [-10, 10]}]": "none",
	} {
		s, err := catalog.Parse("s.yaml", []byte("name: range\ndata: {name: d, shapes: {n: 4}}\nmodels: {name: m, onnx: m.onnx}\nmeasures: [distance]\ntransforms:\n  - "+text+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if r := allValues(&s.Transforms[0]).Range; r != nil {
			got = r.String()
		}
		if got != want {
			t.Errorf("%s: the range is %s, want %s", text, got, want)
		}
	}
}
