package dense

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/measuretest"
)

// drawMaps returns an accumulator of n simulated images of 100 pixels: two frequent classes, and as
// many rare ones as given, each in the given fraction of the images. A part of the pixels of a class
// is found, which varies over images.
func drawMaps(g *rand.Rand, n, rare int, in float64) *accuracyAccumulator {
	classes := 2 + rare
	layout := measure.NewLayout(n)
	a := &accuracyAccumulator{site: measure.Site{Layout: layout, Output: &decoded.Format{Kind: decoded.ClassMap, Classes: classes}}, n: n}
	a.views[cleanView] = newEvaluation(a.site)
	regions, squares := a.views[cleanView].regions, a.views[cleanView].squares
	for place := range n {
		group := layout.Group(place)
		// add adds the labelled pixels of a class, and those that are found; the others are found as
		// another class.
		add := func(class, size, found, other int) {
			at := (group*classes + class) * 3
			regions[at] += found
			regions[at+1] += found
			regions[at+2] += size
			regions[(group*classes+other)*3+1] += size - found
			squares[class] += float64(size * size)
		}
		left := 100
		for k := 2; k < classes; k++ {
			if g.Float64() < in {
				size := min(left, 5+g.IntN(20))
				left -= size
				add(k, size, int(float64(size)*(0.2+0.7*g.Float64())), 0)
			}
		}
		add(0, left/2, left/2, 0)
		add(1, left-left/2, int(float64(left-left/2)*(0.6+0.4*g.Float64())), 0)
	}
	return a
}

// drawBoxes returns an accumulator of n simulated images with an object of each of two frequent
// classes, and of each rare one in the given fraction of the images. Of the objects of an image the
// same fraction is found; boxes without an object have lower scores.
func drawBoxes(g *rand.Rand, n, rare int, in float64) *accuracyAccumulator {
	classes := 2 + rare
	layout := measure.NewLayout(n)
	a := &accuracyAccumulator{site: measure.Site{Layout: layout, Output: &decoded.Format{Kind: decoded.BoxList, Classes: classes}}, n: n}
	a.views = [2]evaluation{newEvaluation(a.site), newEvaluation(a.site)}
	p, squares := a.views[cleanView].precision, a.views[cleanView].squares
	for place := range n {
		group := layout.Group(place)
		for k := range classes {
			add := func(score float64, matched uint64) {
				p.detections[k] = append(p.detections[k], detection{score: score, order: place<<16 | len(p.detections[k]), group: group, matched: matched})
			}
			if k < 2 || g.Float64() < in {
				p.positives[k*len(areaRanges)*layout.Groups+group]++
				squares[k]++
				if g.Float64() < 0.7 {
					add(0.3+0.7*g.Float64(), 1<<(1+g.IntN(iouThresholds))-1) // up to a threshold of IoU
				}
			}
			if g.Float64() < in {
				add(0.8*g.Float64(), 0)
			}
		}
	}
	p.sort()
	return a
}

// rareDraws returns draws of clean-miou or clean-map, less their values of many images, as a mean
// over the classes that the draw has.
func rareDraws(draw func(g *rand.Rand, n, rare int, in float64) *accuracyAccumulator, n, rare int, in float64) func(g *rand.Rand) measuretest.Draw {
	many := draw(rand.New(rand.NewPCG(7, 7)), 50_000, rare, in).classValues(factor{class: -1, threshold: -1}, none)[cleanView]
	return func(g *rand.Rand) measuretest.Draw {
		a := draw(g, n, rare, in)
		all, err := a.Scores()
		if err != nil {
			panic(err)
		}
		var expected []float64
		affected := false
		for k, v := range many {
			m := a.effectiveSamples(cleanView, k)
			if m > 0 {
				expected = append(expected, v)
			}
			affected = affected || m < fewSamples
		}
		s, of := all[0], stat.Mean(expected, nil)
		if affected != (len(s.Warnings) > 0) {
			panic("a warning is not where classes are rare: " + strings.Join(s.Warnings, "; "))
		}
		return measuretest.Draw{Value: s.Value - of, Low: s.Low - of, High: s.High - of, Warned: affected}
	}
}

// TestCoverageWithRareClasses checks that intervals of mIoU and mAP hold, also with classes in few
// images, and that those have a warning. The table of docs/explanation/intervals-and-nulls.md has
// the coverages of 4,000 draws (NOETHER_DRAWS=4000).
func TestCoverageWithRareClasses(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name  string
		draw  func(g *rand.Rand, n, rare int, in float64) *accuracyAccumulator
		draws int
	}{{"clean-miou", drawMaps, testdata.Draws(300)}, {"clean-map", drawBoxes, testdata.Draws(40)}} {
		for _, n := range []int{100, 300, 1000} {
			for _, in := range []float64{0.3, 0.03, 0.01, 0.003} {
				c := measuretest.CoverageOf(of.draws, 1, rareDraws(of.draw, n, 4, in))
				t.Logf("%s, %d images, 4 classes in %v of them: %s", of.name, n, in, c)
				least := 0.95
				if c.Warned == 1 {
					least = 0.91 // the average precision of one object is 0 or 1
				}
				if c.Hold < least-4*math.Sqrt(0.95*0.05/float64(of.draws)) || c.None > 0 { // four standard errors
					t.Errorf("%s, %d images, classes in %v of them: %s", of.name, n, in, c)
				}
			}
		}
	}
}
