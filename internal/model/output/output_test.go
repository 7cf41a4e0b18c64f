package output

import (
	"slices"
	"testing"
)

// TestParseNames checks names of classes as exporters write them into a model's metadata: a
// dictionary by class index or a list, in the syntax of Python or JSON. Other texts give nil.
func TestParseNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{0: 'person', 1: "driver's cab", 2: 'a, b: c'}`: {"person", "driver's cab", "a, b: c"},
		`{1: 'b', 0: 'a'}`:       {"a", "b"},
		`["a", 'b\'s']`:          {"a", "b's"},
		`{"0": "a", "1": "b"}`:   {"a", "b"},
		`{0: 'a', 2: 'b'}`:       nil,
		`{0: 'a`:                 nil,
		`{x: 'a'}`:               nil,
		`person`:                 nil,
		``:                       nil,
		`{`:                      nil,
		`{0: a}`:                 nil,
		`{0: 'a', 0: 'b'}`:       {"b"},
		"{0: 'tench',\n 1: 'x'}": {"tench", "x"},
	} {
		if got := ParseNames(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func FuzzParseNames(f *testing.F) {
	for _, text := range []string{`{0: 'person', 1: "driver's cab"}`, `['a']`, `{0: '\\'}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if names := ParseNames(text); len(names) > len(text) {
			t.Errorf("%d names from %d bytes", len(names), len(text))
		}
	})
}
