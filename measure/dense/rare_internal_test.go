package dense

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
)

// classMaps returns an accumulator of images in one group each. labels holds the labelled pixels by
// class and image, of which the given fractions are found.
func classMaps(labels [][]int, found [][]float64) *accuracyAccumulator {
	n, classes := len(labels[0]), len(labels)
	a := &accuracyAccumulator{n: n, site: measure.Site{Layout: measure.Layout{N: n, Groups: n, Block: 1}, Output: &decoded.Format{Kind: decoded.ClassMap, Classes: classes}}}
	a.views = [2]evaluation{newEvaluation(a.site), newEvaluation(a.site)}
	v := a.views[cleanView]
	for k := range labels {
		for i, pixels := range labels[k] {
			both := int(found[k][i] * float64(pixels))
			for at, value := range []int{both, both, pixels} {
				v.regions[(i*classes+k)*3+at] = value
			}
			v.squares[k] += float64(pixels * pixels)
		}
	}
	return a
}

// TestRareClasses compares intervals with their definition, worked out by hand for twenty images.
// The first of two classes has the IoU 0.5 in all of them, so that its part is Wilson's of 10 of 20.
func TestRareClasses(t *testing.T) {
	t.Parallel()
	const n = 20
	z2 := 1.959964 * 1.959964
	first := 1.959964 / (1 + z2/n) * math.Sqrt(0.25/n+z2/(4*n*n)) // half-width
	everywhere, half := make([]int, n), make([]float64, n)
	for i := range n {
		everywhere[i], half[i] = 100, 0.5
	}
	for _, c := range []struct {
		name     string
		labels   []int // of the second class
		found    []float64
		want     float64 // half-width
		warnings []string
	}{
		// IoU of 0.49 and 0.51 in two images of equal size: the replicates of the class are 0.51, 0.49
		// and 18 times 0.5, the jackknife's variance 19/20 (0.01^2 + 0.01^2), and Student's t of one
		// degree 12.7062. The class counts for half of the mean.
		{"two images", []int{100, 100}, []float64{0.49, 0.51}, 12.7062 * math.Sqrt(0.95*0.0002) / 2, []string{"1 of 2 classes are in the labels of fewer than 5 samples, which widens the interval: 1"}},
		// At most 1.96 / (2 sqrt 2), the half-width with the largest variance.
		{"two images that differ much", []int{100, 100}, []float64{0.4, 0.6}, 1.959964 / 2 / math.Sqrt2 / 2, []string{"1 of 2 classes"}},
		{"one image", []int{100}, []float64{0.7}, 1.959964 / 2 / 2, []string{"1 of 2 classes"}},
		// Three images without a pixel found: Wilson's upper bound of 0 of 3, z^2 / (3 + z^2).
		{"never found", []int{50, 50, 50}, []float64{0, 0, 0}, 3.841459 / 6.841459 / 2, []string{"1 of 2 classes"}},
		{"none", nil, nil, 0, []string{"the mean is over the 1 classes that the labels have, of 2"}},
		{"all images", everywhere, half, first / 2, nil},
	} {
		labels, found := make([]int, n), make([]float64, n)
		copy(labels, c.labels)
		copy(found, c.found)
		a := classMaps([][]int{everywhere, labels}, [][]float64{half, found})
		all, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		s := all[0]
		want := math.Hypot(c.want, first/2)
		if c.labels == nil {
			want = first // the mean is of one class
		}
		if got := max(s.High-s.Value, s.Value-s.Low); math.Abs(got-want) > 1e-5 {
			t.Errorf("%s: the half-width is %.6f, want %.6f", c.name, got, want)
		}
		s.Warnings = slices.DeleteFunc(s.Warnings, measure.ChangesMeaning)
		if len(s.Warnings) != len(c.warnings) {
			t.Errorf("%s: warnings %q, want %q", c.name, s.Warnings, c.warnings)
		}
		for i, w := range c.warnings {
			if !strings.Contains(strings.Join(s.Warnings, "\n"), w) {
				t.Errorf("%s: warnings %q, want %q", c.name, s.Warnings, c.warnings[i])
			}
		}
	}
}

// TestEffectiveSamples compares with Kish's formula: images of 90, 5 and 5 pixels of a class count
// as 1.23 images.
func TestEffectiveSamples(t *testing.T) {
	t.Parallel()
	a := classMaps([][]int{{90, 5, 5}, {4, 4, 4}}, [][]float64{{1, 1, 1}, {1, 1, 1}})
	for k, want := range []float64{100. * 100 / (90*90 + 25 + 25), 3} {
		if got := a.effectiveSamples(cleanView, k); math.Abs(got-want) > 1e-12 {
			t.Errorf("class %d: %v effective samples, want %v", k, got, want)
		}
	}
}

// TestRareRegions checks the warning on the mean IoU of class maps of two views: class 1 is in four
// of six samples.
func TestRareRegions(t *testing.T) {
	t.Parallel()
	f := &decoded.Format{Kind: decoded.ClassMap, Classes: 3, Names: []string{"road", "bus", "sky"}}
	means := []float64{50, 60, 3600, 2. * 4 / 6, 3. * 4 / 6, 9. * 4 / 6, 0, 0, 0}
	if got := effectiveRegions(means[classSums:], 6); math.Abs(got-4) > 1e-12 {
		t.Errorf("%v effective samples, want 4", got)
	}
	got := rareRegions(f, means, 6)
	if len(got) != 1 || !strings.Contains(got[0], "too narrow: 1 of 2 classes are in fewer than 5 samples: bus") {
		t.Errorf("warnings: %q", got)
	}
}

// TestNoBetterThanAGuess checks the warnings of a model that finds one class everywhere, and of one
// that finds no box at the right place.
func TestNoBetterThanAGuess(t *testing.T) {
	t.Parallel()
	const n = 20
	for background, want := range map[int]bool{80: true, 0: false} { // pixels that are found as the first class, of 20 of the second
		a := classMaps([][]int{slices.Repeat([]int{80}, n), slices.Repeat([]int{20}, n)}, [][]float64{slices.Repeat([]float64{1}, n), slices.Repeat([]float64{0}, n)})
		v := a.views[cleanView]
		for i := range n {
			if at := i * 2 * 3; want {
				v.regions[at+1] = 100 // the whole image
			} else {
				v.regions[at+3], v.regions[at+4] = background+20, 20
			}
		}
		all, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		// One class everywhere has the IoU 0.8 with the first class and 0 with the second.
		if want != (math.Abs(all[0].Value-0.4) < 1e-12) || want != slices.ContainsFunc(all[0].Warnings, measure.ChangesMeaning) {
			t.Errorf("mean IoU %v: warnings %q", all[0].Value, all[0].Warnings)
		}
	}
	a := drawBoxes(rand.New(rand.NewPCG(1, 1)), 100, 2, 0.3)
	for _, found := range []bool{true, false} {
		if !found {
			for _, all := range a.views[cleanView].precision.detections {
				for i := range all {
					all[i].matched = 0
				}
			}
		}
		all, err := a.Scores()
		if err != nil {
			t.Fatal(err)
		}
		if found == slices.ContainsFunc(all[0].Warnings, measure.ChangesMeaning) {
			t.Errorf("mean average precision %v: warnings %q", all[0].Value, all[0].Warnings)
		}
	}
}
