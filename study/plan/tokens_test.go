package plan

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// A layout of tokens that follows from their number alone is warned of.
func TestGuessedTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		layer onnx.Layer
		want  string
	}{
		{onnx.Layer{Name: "z", Shape: []int{17, 8}, Axes: "NTC"}, "the 17 tokens of layer z are taken for 1 without a position and a grid of 4 x 4"},
		{onnx.Layer{Name: "z", Shape: []int{16, 8}, Axes: "NTC"}, "0 without a position and a grid of 4 x 4"},
		{onnx.Layer{Name: "z", Shape: []int{12, 8}, Axes: "NTC"}, "a sequence of 12, from their number alone: set tokens: {prefix: ..., grid: [rows, columns]}"},
		{onnx.Layer{Name: "z", Shape: []int{17, 8}, Axes: "NTC", Tokens: &onnx.Tokens{Prefix: 5, Height: 3, Width: 4}}, ""},
		{onnx.Layer{Name: "z", Shape: []int{8, 4, 4}, Axes: "NCHW"}, ""},
	} {
		if got := guessedTokens([]onnx.Layer{c.layer}); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", c.layer, got, c.want)
		}
	}
}
