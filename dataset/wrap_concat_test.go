package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sampleList is a source of the given samples. A factor is a known property of a sample; its
// categories, if it is not a number, are the texts that its values are indices of.
type sampleList struct {
	samples    []Sample
	classes    []string
	factors    []string
	categories map[string][]string
}

func (l sampleList) Len() int              { return len(l.samples) }
func (l sampleList) Classes() []string     { return l.classes }
func (l sampleList) Factors() []string     { return l.factors }
func (l sampleList) Notes() []string       { return []string{"one note"} }
func (l sampleList) Describe(i int) Sample { return l.samples[i] }
func (l sampleList) Fingerprint() string {
	return fmt.Sprint(l.samples, l.classes)
}
func (l sampleList) factorCategories(name string) []string { return l.categories[name] }
func (l sampleList) At(_ context.Context, i int, _ Frame) (Sample, error) {
	if l.samples[i].Name == "bad" {
		return l.samples[i], &BadSample{Name: "bad", Err: errors.New("damaged")}
	}
	return l.samples[i], nil
}

// TestCategoriesOfPairs checks that pairs (of a clean and a transformed sample, here those of the
// same row) have the categories of factors, and the notes, of the clean source.
func TestCategoriesOfPairs(t *testing.T) {
	t.Parallel()
	a, b := twoParts()
	p, err := Pair(t.Context(), a, b, "row")
	if err != nil {
		t.Fatal(err)
	}
	if got := Categories(p, "speaker"); !slices.Equal(got, []string{"ann", "bob"}) || len(Notes(p)) != 1 {
		t.Errorf("speakers %q, notes %q", got, Notes(p))
	}
}

// twoParts returns two sources to concatenate. They share the class dog and the factors speaker and
// x. The first alone has the factor "only"; sample 1 of the second cannot be read.
func twoParts() (a, b sampleList) {
	a = sampleList{classes: []string{"cat", "dog"}, factors: []string{"only", "speaker", "x"}, categories: map[string][]string{"speaker": {"ann", "bob"}},
		samples: []Sample{{Index: 7, Name: "a", Label: 1, Factors: map[string]float64{"only": 1, "speaker": 1, "x": 0.5}}, {Index: 3, Name: "b", Label: NoLabel, Factors: map[string]float64{"only": 1, "speaker": 0, "x": 2}}}}
	b = sampleList{classes: []string{"dog", "emu"}, factors: []string{"speaker", "x"}, categories: map[string][]string{"speaker": {"bob", "cy"}},
		samples: []Sample{{Index: 7, Name: "a", Label: 1, Factors: map[string]float64{"speaker": 1, "x": 4}}, {Index: 1, Name: "bad", Label: 0, Factors: map[string]float64{"speaker": 0, "x": 5}}}}
	return a, b
}

// TestConcat checks that a concatenation merges the classes and the categories of its parts, keeps
// the factors that all parts have, and adds the factor part.
func TestConcat(t *testing.T) {
	t.Parallel()
	a, b := twoParts()
	joined, err := Concat([]string{"train", "test"}, []Source{a, b})
	if err != nil {
		t.Fatal(err)
	}
	if joined.Len() != 4 || !slices.Equal(joined.Classes(), []string{"cat", "dog", "emu"}) || !slices.Equal(joined.Factors(), []string{"part", "speaker", "x"}) {
		t.Errorf("%d samples with the classes %v and the factors %v", joined.Len(), joined.Classes(), joined.Factors())
	}
	if got := Categories(Limit(joined, 3), "speaker"); !slices.Equal(got, []string{"ann", "bob", "cy"}) {
		t.Errorf("speakers are %v", got)
	}
	if got := Categories(joined, partFactor); !slices.Equal(got, []string{"train", "test"}) {
		t.Errorf("parts are %v", got)
	}
	for i, want := range []Sample{
		{Index: 0, Name: "train/a", Label: 1, Factors: map[string]float64{"part": 0, "speaker": 1, "x": 0.5}},
		{Index: 1, Name: "train/b", Label: NoLabel, Factors: map[string]float64{"part": 0, "speaker": 0, "x": 2}},
		{Index: 2, Name: "test/a", Label: 2, Factors: map[string]float64{"part": 1, "speaker": 2, "x": 4}},
		{Index: 3, Name: "test/bad", Label: 1, Factors: map[string]float64{"part": 1, "speaker": 1, "x": 5}},
	} {
		got, err := joined.At(t.Context(), i, Frame{})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("sample %d is %v, want %v", i, got, want)
		}
		if described, err := Describe(t.Context(), joined, i); err != nil || fmt.Sprint(described) != fmt.Sprint(want) {
			t.Errorf("sample %d is described as %v, %v", i, described, err)
		}
		if bad := (*BadSample)(nil); i == 3 && (!errors.As(err, &bad) || bad.Name != "test/bad") || i < 3 && err != nil {
			t.Errorf("sample %d: %v", i, err)
		}
	}
	if notes := Notes(joined); len(notes) != 2 || notes[1] != "test: one note" {
		t.Errorf("notes are %q", notes)
	}
	if a.samples[0].Factors["part"] != 0 || len(a.samples[0].Factors) != 3 {
		t.Error("Concat changes a part")
	}
	reversed, err := Concat([]string{"test", "train"}, []Source{b, a})
	if err != nil || reversed.Fingerprint() == joined.Fingerprint() {
		t.Errorf("the parts in the other order have the same fingerprint, or error %v", err)
	}
	chosen, err := Where(t.Context(), joined, map[string]Condition{partFactor: {Values: []string{"test"}}})
	if err != nil || chosen.Len() != 2 {
		t.Errorf("the part test is %v, error %v; want two samples", chosen, err)
	}
}

func TestConcatErrors(t *testing.T) {
	t.Parallel()
	a, b := twoParts()
	numbers := b
	numbers.categories = nil
	withPart := b
	withPart.factors = []string{"part"}
	for want, parts := range map[string][]Source{
		"two parts or more":        {a},
		"speaker is a number":      {a, numbers},
		`a factor "part" of their`: {a, withPart},
	} {
		if _, err := Concat([]string{"one", "two"}[:len(parts)], parts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := Concat([]string{"one", "one"}, []Source{a, b}); err == nil || !strings.Contains(err.Error(), "called") {
		t.Errorf("two parts of one name: error %v", err)
	}
	b.classes = nil
	joined, err := Concat([]string{"one", "two"}, []Source{a, b})
	if err != nil || joined.Classes() != nil || !strings.Contains(fmt.Sprint(joined.Notes()), "the labels of one are left out") {
		t.Errorf("a part without labels: notes %v, error %v", joined.Notes(), err)
	}
	if s, err := joined.At(t.Context(), 0, Frame{}); err != nil || s.Label != NoLabel {
		t.Errorf("with a part without labels a sample is %v, error %v; want no label", s, err)
	}
}
