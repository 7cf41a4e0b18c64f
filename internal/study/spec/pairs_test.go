package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
)

// comparison is a measure that compares models, of which only Directional is called. A directional
// measure scores (a, b) and (b, a) differently.
type comparison struct {
	measure.Comparison
	directional bool
}

func (c comparison) Directional() bool { return c.directional }

// decodePairs decodes the entry of the measure similarity, in a study file, with the given
// settings.
func decodePairs(settings string) (m MeasureSpec, err error) {
	n, err := config.Parse("study.yaml", []byte("similarity: {"+settings+"}"), nil)
	if err == nil {
		err = m.DecodeNode(n)
	}
	return m, err
}

// TestPairsOfDirectionalMeasures checks that only directional measures compare each pair in both
// orders.
func TestPairsOfDirectionalMeasures(t *testing.T) {
	t.Parallel()
	models := []Model{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for _, c := range []struct {
		directional bool
		want        string // indices of the models of each pair
	}{{false, "[[0 1] [0 2] [1 2]]"}, {true, "[[0 1] [0 2] [1 0] [1 2] [2 0] [2 1]]"}} {
		m, err := decodePairs("between: all")
		if err != nil {
			t.Fatal(err)
		}
		m.Method = comparison{directional: c.directional}
		pairs := m.ModelPairs(models)
		if got := fmt.Sprint(pairs); got != c.want || int(m.countPairs(3)) != len(pairs) {
			t.Errorf("directional %v: pairs %s, counted as %v; want %s", c.directional, got, m.countPairs(3), c.want)
		}
	}
}

func TestPairErrors(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{
		"between: [one]":                            "a pair is two models",
		"between: [one, two, big]":                  "a pair is two models, such as [a, b]; several pairs are [[a, b], [a, c]]",
		"between: one":                              "between must be",
		"between: []":                               "between must be",
		"between: [[one, two], one]":                "a pair is two models",
		"between: [one, tow]":                       `unknown model "tow"; did you mean "two"?`,
		"between: [[one, two], [one, two]]":         "the pair [one, two] occurs twice",
		"between: [one, two], layers: diagonal":     "unknown way to pair layers",
		"between: [one, two], layers: sam":          `did you mean "same"?`,
		"layers: same":                              "set between",
		"between: [one, {}]":                        "expected text",
		"between: [one, two], betwen: [one, two]":   `unknown key "betwen"`,
		"between: [[one, two], [two, one], [1, 2]]": `unknown model "1"`,
	} {
		m, err := decodePairs(settings)
		if err == nil {
			err = m.Between.check([]Model{{Name: "one"}, {Name: "two"}, {Name: "big"}})
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "study.yaml:1:") {
			t.Errorf("%s gives %v, want %q with its position", settings, err, want)
		}
	}
	alone, err := decodePairs("between: all")
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Between.check([]Model{{Name: "one"}}); err == nil || !strings.Contains(err.Error(), "at least two models") {
		t.Errorf("all pairs of one model: error %v, want one that asks for two models", err)
	}
}

// TestSeveralComparisons checks that a study may compute a statistic of similarity once between
// models and once between samples x and transformed ones T(x). The statistics may be spread over
// several entries of the measure.
func TestSeveralComparisons(t *testing.T) {
	t.Parallel()
	for entries, want := range map[string]string{
		"{between: all, statistics: [linear-cka, rsa]}; {between: [[a, b]], statistics: [pwcca]}":    "",
		"{statistics: [linear-cka]}; {between: all, statistics: [linear-cka]}":                       "",
		"{between: all, statistics: [linear-cka]}; {between: [b, a], statistics: [rsa, linear-cka]}": `the name "linear-cka of similarity between models" occurs twice`,
		"{statistics: [rsa]}; {statistics: [rsa], pool: mean}":                                       `the name "rsa of similarity" occurs twice`,
	} {
		text := "name: s\ndata: {name: d, images: d/}\nmodels: [{name: a, onnx: a.onnx, layers: [x]}, {name: b, onnx: b.onnx, layers: [x]}]\nmeasures:\n"
		for entry := range strings.SplitSeq(entries, "; ") {
			text += "  - similarity: " + entry + "\n"
		}
		_, err := Parse("study.yaml", []byte(text), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", entries, err, want)
		}
	}
}
