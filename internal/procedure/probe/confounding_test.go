package probe

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// TestConfounding compares with numpy, which fits each probe anew without each sample, see
// testdata/confounding.py: with more samples than dimensions, and with fewer.
func TestConfounding(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/confounding.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Vectors       [][]float32
		Class, Group  []int
		Neighbours    int
		Values, Nulls map[string]float64
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		got, err := confound(t.Context(), c.Vectors, c.Class, c.Group, c.Neighbours, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range got.estimates() {
			s := e.score()
			if math.Abs(s.Value-c.Values[s.Statistic]) > 1e-9 || math.Abs(s.Null-c.Nulls[s.Statistic]) > 1e-9 {
				t.Errorf("case %d: %s is %v with null %v, want %v and %v", i, s.Statistic, s.Value, s.Null, c.Values[s.Statistic], c.Nulls[s.Statistic])
			}
			if !(s.Low <= s.Value && s.Value <= s.High) || s.Low == s.High {
				t.Errorf("case %d: %s has the interval [%v, %v] of %v", i, s.Statistic, s.Low, s.High, s.Value)
			}
		}
	}
}

// TestConfoundingKnows checks vectors that hold only the class, only the site, and neither.
func TestConfoundingKnows(t *testing.T) {
	t.Parallel()
	var class, site []int
	for i := range 80 {
		class, site = append(class, i%2), append(site, i/2%2)
	}
	for name, c := range map[string]struct {
		vector func(i int) []float32
		// The index, and the accuracies of the class and of the site.
		index, ofClass, ofSite float64
	}{
		"class": {func(i int) []float32 { return []float32{float32(class[i]), float32(1 - class[i])} }, 1, 1, -1},
		"site":  {func(i int) []float32 { return []float32{float32(site[i]), float32(1 - site[i])} }, 0, -1, 1},
	} {
		var vectors [][]float32
		for i := range class {
			vectors = append(vectors, c.vector(i))
		}
		got, err := confound(t.Context(), vectors, class, site, 10, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range got.estimates() {
			s := e.score()
			want := map[string]float64{"robustness-index": c.index, "knn-class": c.ofClass, "probe-class": c.ofClass, "knn-factor": c.ofSite, "probe-factor": c.ofSite}[s.Statistic]
			if want >= 0 && s.Value != want || want < 0 && s.Value > 0.6 {
				t.Errorf("%s: %s is %v, want %v (-1: about chance)", name, s.Statistic, s.Value, want)
			}
			if s.Statistic == "robustness-index" && s.Null != 0.5 {
				t.Errorf("%s: the null of the index is %v, want 0.5 of a balanced design", name, s.Null)
			}
		}
	}
	// All vectors are equal: no probe knows anything, and no score is NaN but by definition.
	equal := make([][]float32, len(class))
	for i := range equal {
		equal[i] = []float32{1, 1}
	}
	got, err := confound(t.Context(), equal, class, site, 10, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range got.estimates() {
		if s := e.score(); math.IsNaN(s.Value) {
			t.Errorf("equal vectors: %s is NaN", s.Statistic)
		}
	}
}

func TestConfoundingSettings(t *testing.T) {
	t.Parallel()
	for _, s := range []ConfoundingSettings{
		{Neighbours: 1, Penalty: 1}, {Factors: []string{Label}, Neighbours: 1, Penalty: 1},
		{Factors: []string{"site"}, Penalty: 1}, {Factors: []string{"site"}, Neighbours: 1},
	} {
		if _, err := Confounding(s); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}
