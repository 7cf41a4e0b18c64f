package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// pairRow returns a row with the similarity of a layer of a model and a layer of another one.
func pairRow(model, other, layer, otherLayer string, depth int, value float64) scores.Row {
	return scores.Row{Model: model, OtherModel: other, Data: "d", Layer: layer, OtherLayer: otherLayer, Depth: depth,
		Measure: "similarity", Statistic: "linear-cka", Value: value, Low: nan, High: nan, Null: nan, N: 10}
}

// TestFindingsOfPairs checks the findings, sentences about the scores, on pairs of layers of two
// models.
func TestFindingsOfPairs(t *testing.T) {
	t.Parallel()
	// grid returns the similarities of each layer of a, x and y, with each layer of b.
	grid := func(a, b string, values ...float64) []scores.Row {
		layers := [][2]string{{"x", "x"}, {"x", "y"}, {"y", "x"}, {"y", "y"}}
		var rows []scores.Row
		for i, v := range values {
			rows = append(rows, pairRow(a, b, layers[i][0], layers[i][1], i/2, v))
		}
		return rows
	}
	// The null, what chance alone gives, is above one of the values.
	withNull := grid("a", "b", 0.9, 0.3, 0.5, 0.6)
	for i := range withNull {
		withNull[i].Null = 0.4
	}
	for _, c := range []struct {
		name string
		rows []scores.Row
		want string
	}{
		{"grid", grid("a", "b", 0.9, 0.3, 0.5, 0.6), "Linear CKA is highest between x and x (0.900) and lowest between x and y (0.300)."},
		{"one pair below the null", withNull, "Linear CKA is highest between x and x (0.900) and lowest between x and y (0.300); at 1 of 4 pairs it is no better than chance."},
		{"constant grid", grid("a", "b", 0.9, 0.89, 0.91, 0.9), "Linear CKA stays between 0.890 and 0.910 for all 4 pairs of layers."},
		{"model with itself, without the pairs of a layer with itself", grid("a", "a", 1, 0.3, 0.5, 1), "Linear CKA is highest between y and x (0.500) and lowest between x and y (0.300)."},
		{"one pair for each layer", []scores.Row{pairRow("a", "b", "x", "u", 0, 0.9), pairRow("a", "b", "y", "v", 1, 0.7), pairRow("a", "b", "z", "w", 2, 0.2)},
			"Linear CKA falls from 0.900 at x to 0.200 at z."},
	} {
		if got := Findings(c.rows, reporttest.Measures(), nil); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLabelsOfModels checks the label for the models of a row. An arrow tells that the statistic of
// (a, b) differs from that of (b, a).
func TestLabelsOfModels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		row  scores.Row
	}{
		{"a", scores.Row{Model: "a"}},
		{"a and b", scores.Row{Model: "a", OtherModel: "b", Measure: "similarity", Statistic: "linear-cka"}},
		{"a → b", scores.Row{Model: "a", OtherModel: "b", Measure: "similarity", Statistic: "pwcca"}},
		{"a → b", scores.Row{Model: "a", OtherModel: "b", Measure: "similarity", Statistic: "linear-regression"}},
		{"a → b", scores.Row{Model: "a", OtherModel: "b", Measure: "stir", Statistic: "stir"}},
		{"a with itself", scores.Row{Model: "a", OtherModel: "a", Measure: "stir", Statistic: "stir"}},
	} {
		if got := Describe([]scores.Row{c.row}, reporttest.Measures()).ModelLabel(&c.row); got != c.want {
			t.Errorf("%s: %q, want %q", c.row.Statistic, got, c.want)
		}
	}
}

// Models that are compared at one layer each are compared in one sentence, as in Table 1 of the
// paper on STIR (Nanda et al. 2022), which tells how well a model shares another's invariances.
func TestPairsAtOneLayer(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for i, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
		for j, statistic := range []string{"stir", "cka", "agreement"} {
			r := pairRow(pair[0], pair[1], "flat", "flat", 7, 0.9-0.5*float64(i)+0.01*float64(j))
			r.Measure, r.Statistic = "stir", statistic
			rows = append(rows, r)
		}
	}
	if got, want := Findings(rows, reporttest.Measures(), nil), []string{"STIR is highest for a → b (0.900) and lowest for b → a (0.400)."}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTiesCountForNeitherModel checks the sentence that says under how many of three
// transformations one of two models, m and k, is above the other. Equal values count for neither.
// The last argument of predictionRow is half the width of the interval.
func TestTiesCountForNeitherModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m, k [3]float64 // values of the models, by transformation
		want string     // the end of the sentence
	}{
		{[3]float64{.5, .5, .9}, [3]float64{.5, .5, .8}, "m is above the other in 1 of 3, in 1 of them by more than chance."},
		{[3]float64{.5, .5, .8}, [3]float64{.5, .5, .9}, "k is above the other in 1 of 3, in 1 of them by more than chance."},
		{[3]float64{.5, .70, .9}, [3]float64{.5, .71, .8}, "Each is above the other in 1 of 3."},
		{[3]float64{.5, .6, .7}, [3]float64{.5, .6, .7}, "lowest for m, gray (0.500)."},
	} {
		var rows []scores.Row
		for i, transform := range []string{"gray", "turn", "tilt"} {
			rows = append(rows, predictionRow("m", transform, "accuracy", "moved", c.m[i], 0.02), predictionRow("k", transform, "accuracy", "moved", c.k[i], 0.02))
		}
		var sentences []string
		for _, s := range Statements(rows, reporttest.Measures(), nil) {
			if s.Kind == ExtremesStatement && len(s.Rows) == len(rows) {
				sentences = append(sentences, s.Text)
			}
		}
		if !slices.ContainsFunc(sentences, func(text string) bool { return strings.HasSuffix(text, c.want) }) {
			t.Errorf("m %v, k %v: the sentences are %q; want one that ends with %q", c.m, c.k, sentences, c.want)
		}
	}
}

// TestEqualValues checks that the sentence on rows of equal values names none as the highest.
func TestEqualValues(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for _, transform := range []string{"gray", "turn", "tilt"} {
		rows = append(rows, predictionRow("m", transform, "accuracy", "moved", 0, 0.02))
	}
	found := false
	for _, s := range Statements(rows, reporttest.Measures(), nil) {
		if s.Kind == ExtremesStatement && len(s.Rows) == len(rows) {
			found = found || s.Text == "It is 0.000 for all 3."
			if strings.Contains(s.Text, "highest") {
				t.Errorf("the sentence is %q", s.Text)
			}
		}
	}
	if !found {
		t.Error("no sentence says that the value is 0.000 for all 3")
	}
}
