package dataset

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/transform"
)

// TestCorrupt checks that a sample has the same noise whenever it is read, also in a subset, and
// other noise under another name of the corruption. Label, index and name of the sample stay. The
// fingerprint (a hash of the samples) depends on the name, the severity and the seed.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	src, err := OpenShapes(ShapesOptions{N: 6, Size: 16, Channels: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	noise := transform.Corrupt{Kind: "gaussian-noise", Severity: transform.Fixed(3)} // severity 3
	a, b := Corrupt(src, noise, 1, "a"), Corrupt(src, noise, 1, "b")                 // seed 1
	at := func(s Source, i int) Sample {
		t.Helper()
		// A Frame is the size in which a model takes an image; the zero one: as it is stored.
		x, err := s.At(t.Context(), i, Frame{})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	clean, once, again := at(src, 2), at(a, 2), at(a, 2)
	if !slices.Equal(once.Input.Data, again.Input.Data) {
		t.Error("a sample is corrupted differently when it is read again")
	}
	if slices.Equal(once.Input.Data, clean.Input.Data) || slices.Equal(once.Input.Data, at(b, 2).Input.Data) {
		t.Error("the corruption does not depend on its name, or has no effect")
	}
	if once.Label != clean.Label || once.Index != 2 || once.Name != clean.Name {
		t.Errorf("the corrupted sample has another label, index or name: %+v", once)
	}
	picked, err := Subset(a, []int{5, 2})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(at(picked, 1).Input.Data, once.Input.Data) {
		t.Error("the corruption depends on the index in a subset")
	}
	heavier := transform.Corrupt{Kind: "gaussian-noise", Severity: transform.Fixed(4)}
	fingerprints := []string{src.Fingerprint(), a.Fingerprint(), b.Fingerprint(), Corrupt(src, heavier, 1, "a").Fingerprint(), Corrupt(src, noise, 2, "a").Fingerprint()}
	slices.Sort(fingerprints)
	if len(slices.Compact(fingerprints)) != 5 {
		t.Error("different sources have the same fingerprint")
	}
	if described, err := Describe(t.Context(), a, 2); err != nil || described.Label != clean.Label {
		t.Errorf("the corrupted sample is described as %+v, error %v", described, err)
	}
}
