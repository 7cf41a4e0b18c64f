package dataset

import (
	"math"
	"strings"
	"testing"
)

// LabelNoise draws a wrong label with probability p. The number of wrong labels is binomial, and
// they are uniform over the other classes.
func TestLabelNoise(t *testing.T) {
	t.Parallel()
	const n, p, seed = 20_000, 0.3, 7
	src := mustShapes(t, n)
	noisy, err := LabelNoise(src, p, seed)
	if err != nil {
		t.Fatal(err)
	}
	k := len(src.Classes())
	changes := make([][]float64, k) // number of wrong labels, by true and by noisy label
	for i := range changes {
		changes[i] = make([]float64, k)
	}
	labels := make([]int, n)
	wrong := 0.0
	for i := range n {
		_, truth := src.Figure(i) // the shape and the true label
		s, err := Describe(t.Context(), noisy, i)
		if err != nil {
			t.Fatal(err)
		}
		labels[i] = s.Label
		if s.Label != truth {
			wrong++
			changes[truth][s.Label]++
		}
	}
	if d := (wrong - n*p) / math.Sqrt(n*p*(1-p)); math.Abs(d) > 4 {
		t.Errorf("%g of %d labels are wrong, %.1f standard deviations from %g", wrong, n, d, n*p)
	}
	var chi2 float64
	want := n * p / float64(k*(k-1))
	for truth, row := range changes {
		for label, c := range row {
			if label != truth {
				chi2 += (c - want) * (c - want) / want
			}
		}
	}
	if degrees := float64(k*(k-1) - 1); chi2 > degrees+4*math.Sqrt(2*degrees) {
		t.Errorf("chi-squared of the wrong labels is %g over %g degrees of freedom", chi2, degrees)
	}

	// A sample has the same noisy label in a subset, in another order of access, and if At reads it
	// rather than Describe.
	part, err := Subset(src, []int{19, 3, 400})
	if err != nil {
		t.Fatal(err)
	}
	noisyPart, err := LabelNoise(part, p, seed)
	if err != nil {
		t.Fatal(err)
	}
	for at, i := range []int{19, 3, 400} {
		s, err := noisyPart.At(t.Context(), at, Frame{})
		if err != nil || s.Label != labels[i] {
			t.Errorf("sample %d has label %d in a subset, %d in the whole, %v", i, s.Label, labels[i], err)
		}
	}
	other, _ := LabelNoise(src, p, seed+1)
	// A fingerprint is a hash of the samples and their labels.
	if a, b := noisy.Fingerprint(), other.Fingerprint(); a == b || a == src.Fingerprint() {
		t.Error("the fingerprint does not depend on the noise")
	}
}

func mustShapes(t *testing.T, n int) *Shapes {
	t.Helper()
	s, err := OpenShapes(ShapesOptions{N: n, Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLabelNoiseErrors(t *testing.T) {
	t.Parallel()
	oneClass, err := OpenShapes(ShapesOptions{N: 4, Size: 8, Kinds: []string{"disc"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []float64{0, -1, 1.5, math.NaN()} {
		if _, err := LabelNoise(mustShapes(t, 4), p, 1); err == nil || !strings.Contains(err.Error(), "probability") {
			t.Errorf("probability %g: %v", p, err)
		}
	}
	if _, err := LabelNoise(oneClass, 0.5, 1); err == nil || !strings.Contains(err.Error(), "two are needed") {
		t.Errorf("one class: %v", err)
	}
}

// Of two random subsets with the same seed the larger contains the smaller, stratified (by class)
// or not. The Index of a sample is that in src.
func TestNestedSubsets(t *testing.T) {
	t.Parallel()
	src := mustShapes(t, 500)
	for _, stratified := range []bool{false, true} {
		larger := map[int]bool{}
		for _, n := range []int{400, 200, 50} {
			part, err := RandomSubset(t.Context(), src, n, SplitOptions{Seed: 3, Stratified: stratified})
			if err != nil {
				t.Fatal(err)
			}
			current := map[int]bool{}
			for i := range n {
				s, err := part.At(t.Context(), i, Frame{})
				if err != nil {
					t.Fatal(err)
				}
				if current[s.Index] = true; len(larger) > 0 && !larger[s.Index] {
					t.Fatalf("stratified %v: sample %d is among %d, but not in the larger subset", stratified, s.Index, n)
				}
			}
			larger = current
		}
	}
}
