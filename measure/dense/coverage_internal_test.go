package dense

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/measuretest"
)

// rareDraw returns the mean IoU of n simulated images of 100 pixels: two frequent classes, and as
// many rare ones as given, each in the given fraction of the images. A part of the pixels of a class
// is found, which varies over images.
func rareDraw(n, rare int, in float64) func(g *rand.Rand) measuretest.Draw {
	classes := 2 + rare
	layout := measure.NewLayout(n)
	return func(g *rand.Rand) measuretest.Draw {
		a := &accuracyAccumulator{site: measure.Site{Layout: layout, Output: &decoded.Format{Kind: decoded.ClassMap, Classes: classes}}, n: n}
		a.views[cleanView] = newEvaluation(a.site)
		regions := a.views[cleanView].regions
		for place := range n {
			group := layout.Group(place)
			region := func(class int) []int { return regions[(group*classes+class)*3:] }
			left := 100
			for k := 2; k < classes; k++ {
				if g.Float64() < in {
					size := min(left, 5+g.IntN(20))
					left -= size
					found := int(float64(size) * (0.2 + 0.7*g.Float64()))
					region(k)[0] += found
					region(k)[1] += found
					region(k)[2] += size
					region(0)[1] += size - found
				}
			}
			first := left / 2
			found := int(float64(left-first) * (0.6 + 0.4*g.Float64()))
			region(0)[0] += first
			region(0)[1] += first + left - first - found
			region(0)[2] += first
			region(1)[0] += found
			region(1)[1] += found
			region(1)[2] += left - first
		}
		all, err := a.Scores()
		if err != nil {
			panic(err)
		}
		s := all[0]
		return measuretest.Draw{Value: s.Value, Low: s.Low, High: s.High, Warned: strings.Contains(strings.Join(s.Warnings, ""), "too narrow")}
	}
}

// TestCoverageWithRareClasses checks that intervals of mIoU hold where classes are not rare, and
// that rare ones have the warning. The table of docs/explanation/intervals-and-nulls.md has the
// coverages of 4,000 draws (NOETHER_DRAWS=4000).
func TestCoverageWithRareClasses(t *testing.T) {
	t.Parallel()
	draws := testdata.Draws(300)
	for _, n := range []int{100, 300, 1000} {
		for _, in := range []float64{0.3, 0.03, 0.01, 0.003} {
			c := measuretest.CoverageOf(draws, 1, rareDraw(n, 4, in))
			t.Logf("%d images, 4 classes in %v of them: %s", n, in, c)
			if c.Warned < 0.05 && c.Hold < 0.95-4*0.0126 { // four standard errors of 300 draws
				t.Errorf("%d images, classes in %v of them, without a warning: %s", n, in, c)
			}
			if n*int(1000*in) <= 1000 && c.Warned < 0.5 {
				t.Errorf("%d images, classes in %v of them: %s", n, in, c)
			}
		}
	}
}
