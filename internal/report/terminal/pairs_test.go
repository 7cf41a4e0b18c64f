package terminal

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// TestTerminalOfPairs checks that the most similar pair of layers is printed: of a model with
// itself (6 ordered pairs of different layers, of 3), and of two models (9 pairs).
func TestTerminalOfPairs(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 3, Transforms: 1, PairedLayers: 3}.Rows()
	text := printed(t, rows, rec, Options{Width: 160, All: true})
	for _, want := range []string{
		"SIMILARITY linear-cka ↑ · cifar10 · 6 to 9 pairs of layers · n = 2,000",
		"model                  most alike",
		"resnet20 with itself   0.861 [0.841, 0.881]",
		"                       /layer1/layer1.0/relu1/Relu_output_0 ",
		"                       ~ /layer1/layer1.0/relu2/Relu_output_0 ",
		" ~ /layer1/layer1.1/relu1/Relu_output_0\n",
		"resnet20 and resnet56",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestPairsOfOneLayer checks that models compared at one layer each are shown in one table, as in
// Table 1 of the paper on STIR (Nanda et al. 2022), which tells how well a model shares another's
// invariances.
func TestPairsOfOneLayer(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for i, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
		for j, statistic := range []string{"stir", "cka", "agreement"} {
			rows = append(rows, scores.Row{Model: pair[0], OtherModel: pair[1], Data: "d", Layer: "flat", OtherLayer: "flat", Depth: 7,
				Measure: "stir", Statistic: statistic, Value: 0.9 - 0.5*float64(i) + 0.01*float64(j), Low: nan, High: nan, Null: nan, N: 10})
		}
	}
	text := printed(t, rows, scores.Record{Measures: reporttest.Measures()}, Options{Width: 100, All: true})
	for _, want := range []string{"model  stir ↑  cka ↑  agreement ↑\n", "a → b  0.900   0.910  0.920\n", "b → a  0.400   0.410  0.420\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
