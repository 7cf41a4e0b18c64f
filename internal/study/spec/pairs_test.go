package spec_test

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
)

// parsePairs parses a study of the given models with the measure similarity and its settings, in
// line 1, and returns the error.
func parsePairs(settings string, models ...string) error {
	text := "{measures: [similarity: {" + settings + "}], name: s, data: {name: d, images: d/}, models: ["
	for _, name := range models {
		text += "{name: " + name + ", onnx: " + name + ".onnx}, "
	}
	_, err := catalog.Parse("study.yaml", []byte(text+"]}"), nil)
	return err
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
		err := parsePairs(settings, "one", "two", "big")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "study.yaml:1:") {
			t.Errorf("%s gives %v, want %q with its position", settings, err, want)
		}
	}
	if err := parsePairs("between: all", "one"); err == nil || !strings.Contains(err.Error(), "at least two models") {
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
		_, err := catalog.Parse("study.yaml", []byte(text), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", entries, err, want)
		}
	}
}
