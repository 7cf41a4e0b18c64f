package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// noSamples is an empty data set.
type noSamples struct{ dataset.Source }

func (noSamples) Len() int { return 0 }

// TestKeyDependsOnTokenLayout checks that the cache keys of scores, of a layer and of a procedure
// (a measure that reads the samples several times), depend on the layout of the layer's tokens (how
// many have no position, and the grid of the others) if it is not the one that would be guessed
// from their number. Measures such as lie-derivative transform the grid only.
func TestKeyDependsOnTokenLayout(t *testing.T) {
	t.Parallel()
	layer := tensor.Layer{Name: "z", Shape: []int{17, 8}, Axes: "NTC"} // 17 tokens of 8 channels
	ofLayer := func(tokens *tensor.Tokens) []string {
		l := layer
		l.Tokens = tokens
		// depends is the part of the key that depends on the layer.
		return (&siteTarget{site: measure.Site{Layer: l}}).depends()
	}
	ofProcedure := func(tokens *tensor.Tokens) []string {
		l := layer
		l.Tokens = tokens
		// Pairs are the compared layers by index: layer 0 with itself.
		job := procedure.Job{A: procedure.Subject{Layers: []tensor.Layer{l}}, Pairs: [][2]int{{0, 0}}, Data: noSamples{}}
		return (&ProcedureRun{Job: job}).depends()
	}
	for name, depends := range map[string]func(*tensor.Tokens) []string{"a layer": ofLayer, "a procedure": ofProcedure} {
		guessed := depends(nil) // without a known layout, it is guessed from the number of tokens
		if same := depends(&tensor.Tokens{Prefix: 1, Height: 4, Width: 4}); !slices.Equal(same, guessed) {
			t.Errorf("%s: %q with the layout that would be guessed, want %q, as without one", name, same, guessed)
		}
		if other := depends(&tensor.Tokens{Prefix: 5, Height: 3, Width: 4}); slices.Equal(other, guessed) {
			t.Errorf("%s: %q with another layout too, want a difference", name, other)
		}
	}
}

// TestGuessedTokens checks the warning about layers whose layout of tokens is guessed from their
// number alone.
func TestGuessedTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		layer tensor.Layer
		want  string
	}{
		{tensor.Layer{Name: "z", Shape: []int{17, 8}, Axes: "NTC"}, "the 17 tokens of layer z are taken for 1 without a position and a grid of 4 x 4"},
		{tensor.Layer{Name: "z", Shape: []int{16, 8}, Axes: "NTC"}, "0 without a position and a grid of 4 x 4"},
		{tensor.Layer{Name: "z", Shape: []int{12, 8}, Axes: "NTC"}, "a sequence of 12, from their number alone: set tokens: {prefix: ..., grid: [rows, columns]}"},
		{tensor.Layer{Name: "z", Shape: []int{17, 8}, Axes: "NTC", Tokens: &tensor.Tokens{Prefix: 5, Height: 3, Width: 4}}, ""},
		{tensor.Layer{Name: "z", Shape: []int{8, 4, 4}, Axes: "NCHW"}, ""},
	} {
		if got := guessedTokens([]tensor.Layer{c.layer}); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("guessedTokens(%+v) = %q, want %q", c.layer, got, c.want)
		}
	}
}
