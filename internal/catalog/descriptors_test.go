package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
)

// TestDescriptorsAreComplete checks that the descriptor of every measure has a title, a question,
// an explanation (Reading), a level (what one score describes, such as a layer) and statistics with
// ranges, and that its name is that of the method (the measure with its settings) that a study
// makes with default settings. The statistics of python and python-set are functions of the user.
// Methods that have no complete defaults are not made.
func TestDescriptorsAreComplete(t *testing.T) {
	t.Parallel()
	var seen []string
	for _, f := range Measures() {
		d := f.Descriptor
		if d.Title == "" || d.Reading == "" || d.Level == "" || len(d.Statistics) == 0 && !strings.HasPrefix(d.Name, "python") || !strings.HasSuffix(d.Question, "?") {
			t.Errorf("the descriptor of %s is incomplete: %+v", d.Name, d)
		}
		if slices.Contains(seen, d.Name) {
			t.Errorf("two measures are named %s", d.Name)
		}
		seen = append(seen, d.Name)
		for i, s := range d.Statistics {
			if s.Name == "" || s.Title == "" || s.About == "" || s.Range.Low >= s.Range.High {
				t.Errorf("%s: the descriptor of statistic %d, %q, is incomplete", d.Name, i, s.Name)
			}
			if other, _ := d.Statistic(s.Name); other.Title != s.Title {
				t.Errorf("%s has two statistics named %s", d.Name, s.Name)
			}
		}
		if method, err := f.Default(); err == nil && (method.Name() != f.Descriptor.Name || method.Descriptor().Name != f.Descriptor.Name) {
			t.Errorf("the method of %s names itself %s, and its descriptor %s", f.Descriptor.Name, method.Name(), method.Descriptor().Name)
		}
	}
}

// A statistic is directional if it changes when the two models are exchanged.
func TestDirectionalStatistics(t *testing.T) {
	t.Parallel()
	directional := map[string][]string{}
	for _, d := range Descriptors() {
		for _, s := range d.Statistics {
			if s.Directional {
				directional[d.Name] = append(directional[d.Name], s.Name)
			}
		}
	}
	if got := directional["similarity"]; !slices.Equal(got, []string{"pwcca", "linear-regression", "ridge-predictivity", "pls-predictivity"}) {
		t.Errorf("the directional statistics of similarity are %v, want pwcca and those of three regressions", got)
	}
	if slices.Contains(directional["stir"], "cka") || !slices.Contains(directional["stir"], "stir") {
		t.Errorf("the directional statistics of stir are %v, want stir among them and not cka", directional["stir"])
	}
	for name := range directional {
		i := slices.IndexFunc(Descriptors(), func(d measure.Descriptor) bool { return d.Name == name })
		if Descriptors()[i].Level != measure.PairLevel {
			t.Errorf("%s has directional statistics and does not compare pairs of models", name)
		}
	}
}
