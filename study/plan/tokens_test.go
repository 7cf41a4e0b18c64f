package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
)

type noSamples struct{ dataset.Source }

func (noSamples) Len() int { return 0 }

// TestTokensAreInTheKey checks that cells of a layer, and those of procedures, depend on the layout
// of its tokens where that does not follow from their number: lie-derivative moves the grid alone.
func TestTokensAreInTheKey(t *testing.T) {
	t.Parallel()
	layer := onnx.Layer{Name: "z", Shape: []int{17, 8}, Axes: "NTC"}
	one := func(tokens *onnx.Tokens) []string {
		l := layer
		l.Tokens = tokens
		return (&siteTarget{site: measure.Site{Layer: l}}).depends()
	}
	ofProcedure := func(tokens *onnx.Tokens) []string {
		l := layer
		l.Tokens = tokens
		job := procedure.Job{A: procedure.Subject{Layers: []onnx.Layer{l}}, Pairs: [][2]int{{0, 0}}, Data: noSamples{}}
		return (&ProcedureRun{Job: job}).depends()
	}
	for name, depends := range map[string]func(*onnx.Tokens) []string{"a layer": one, "a procedure": ofProcedure} {
		guessed := depends(nil)
		if same := depends(&onnx.Tokens{Prefix: 1, Height: 4, Width: 4}); !slices.Equal(same, guessed) {
			t.Errorf("%s: %q with the guessed layout, %q without one", name, same, guessed)
		}
		if other := depends(&onnx.Tokens{Prefix: 5, Height: 3, Width: 4}); slices.Equal(other, guessed) {
			t.Errorf("%s: %q with another layout, want another key", name, other)
		}
	}
}

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
