package dense

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/internal/action"
	"github.com/noether-ml/noether/measure/paired"
)

// The columns of a pair of class maps, tau f(x) and f(T(x)): values of the sample, then sums over
// positions. After mapSums come two for each confidence (positions that agree, all), if any, then
// classSums for each class.
const (
	sampleAgreement = iota
	sampleMeanIoU
	agreeing  // number of positions with the same class
	positions // number of positions that tau reads from inside the map
	mapSums   // number of the columns above
)

// The columns of a class.
const (
	intersection = iota
	union
	squaredUnion // of a sample; for the effective number of samples
	classSums    // number of the columns above
)

func addClassMap(spec *paired.Spec, f *decoded.Format, s Settings) {
	columns := make([]paired.Column, mapSums)
	columns[sampleAgreement] = paired.Column{Sample: "pixel-agreement", Transformed: true}
	columns[sampleMeanIoU] = paired.Column{Sample: "miou", Transformed: true}
	classes := mapSums
	if f.Channels > 1 {
		classes += 2 * confidenceSteps
	}
	spec.Derived = []paired.Derived{
		proportion(ratio("pixel-agreement", "", agreeing, positions, "no position is visible")),
		proportion(paired.Derived{Statistic: "miou", Shuffled: true, Undefined: "no position is visible", Of: func(m []float64) float64 { return meanIoU(m[classes:]) },
			Warnings: func(m []float64, n int) []string { return rareRegions(f, m[classes:], n) }}),
	}
	for step := range (classes - mapSums) / 2 {
		at := len(columns)
		columns = append(columns, paired.Column{}, paired.Column{})
		spec.Derived = append(spec.Derived, proportion(ratio("pixel-agreement", confidenceFactor(step), at, at+1, "")))
	}
	for k := range f.ClassLimit() {
		at := len(columns)
		columns = append(columns, make([]paired.Column, classSums)...)
		d := proportion(ratio("miou", "class="+f.ClassName(k), at+intersection, at+union, ""))
		d.Warnings = func(m []float64, n int) []string {
			if effectiveRegions(m[at:], n) < fewSamples {
				return []string{fmt.Sprintf("the interval may be too narrow: the class is in fewer than %d samples", fewSamples)}
			}
			return nil
		}
		spec.Derived = append(spec.Derived, d)
	}
	spec.Columns = columns
	spec.Action = func(measure.Site) (paired.Action, error) {
		n := f.ClassLimit()
		counts := &regions{make([]int, n), make([]int, n), make([]int, n)}
		return &mapAction{format: f, settings: s, classes: classes, regions: counts}, nil
	}
}

// effectiveRegions returns the effective number of samples that have a class, of which m holds the
// mean columns of n samples; see effectiveSamples.
func effectiveRegions(m []float64, n int) float64 {
	if m[union] == 0 {
		return 0
	}
	return float64(n) * m[union] * m[union] / m[squaredUnion]
}

// rareRegions returns a warning if there are classes of few samples.
func rareRegions(f *decoded.Format, m []float64, n int) []string {
	var rare []string
	found := 0
	for k := range f.ClassLimit() {
		v := effectiveRegions(m[k*classSums:], n)
		if v > 0 {
			found++
		}
		if v > 0 && v < fewSamples {
			rare = append(rare, f.ClassName(k))
		}
	}
	if len(rare) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the interval may be too narrow: %d of %d classes are in fewer than %d samples: %s", len(rare), found, fewSamples, list(rare))}
}

// meanIoU returns the mean IoU over classes with a union above 0 (NaN: none). m holds the columns of
// each class.
func meanIoU(m []float64) float64 {
	sum, n := 0.0, 0
	for k := 0; k < len(m); k += classSums {
		if m[k+union] > 0 {
			sum += m[k+intersection] / m[k+union]
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

type regions struct {
	Intersection, A, B []int // positions with the class in both, in the first, and in the second
}

func (r *regions) clear() {
	clear(r.Intersection)
	clear(r.A)
	clear(r.B)
}

func (r *regions) union(class int) int { return r.A[class] + r.B[class] - r.Intersection[class] }

// A row of tau f(x) is the moved map, with class -1 where tau reads from outside, then, with two
// channels, the moved map of confidences.
type mapAction struct {
	format   *decoded.Format
	settings Settings
	classes  int              // first column of the classes
	regions  *regions         // of the last pair; memory that each pair reuses
	points   measure.PointMap // of the last sample
	sources  []int32          // the position that each position is read from, or -1
}

func (a *mapAction) Len() int { return a.format.Channels * a.format.Height * a.format.Width }

func (a *mapAction) Act(dst []float32, _ []float64, z []float32, move measure.Motion) error {
	f := a.format
	p, ok := measure.PointMapOf(move, f.Height, f.Width)
	if !ok {
		return paired.ErrLeftOut // the sample has no values
	}
	a.findSources(p)
	n, visible := f.Height*f.Width, false
	for at, from := range a.sources {
		if from < 0 {
			dst[at] = -1
			continue
		}
		visible = true
		dst[at] = z[from]
		if f.Channels > 1 {
			dst[n+at] = z[n+int(from)]
		}
	}
	if !visible {
		return paired.ErrLeftOut
	}
	for _, v := range z[:n] {
		if err := a.check(v, "clean"); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error for a value that is not a class.
func (a *mapAction) check(v float32, view string) error {
	if v >= 0 && v < float32(len(a.regions.A)) {
		return nil
	}
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return &measure.NonFinite{View: view}
	}
	return classError(int(v), a.format)
}

// findSources sets for each position the one nearest to that which tau reads, or -1 outside of the
// map or in its margin.
func (a *mapAction) findSources(p measure.PointMap) {
	if a.sources != nil && p == a.points {
		return
	}
	h, w := a.format.Height, a.format.Width
	a.points, a.sources = p, make([]int32, h*w)
	top, left := a.settings.Margin*float64(h), a.settings.Margin*float64(w)
	inside := func(i, j float64) bool {
		return i >= top-0.5 && i < float64(h)-top-0.5 && j >= left-0.5 && j < float64(w)-left-0.5
	}
	for at := range a.sources {
		i, j := at/w, at%w
		row, column := p.Source(i, j)
		if p.Wrap {
			row, column = action.Modulo(row, h), action.Modulo(column, w)
		}
		// Ties, as of a translation by half a position, are read from above and left.
		row, column = math.Ceil(tidy(row)-0.5), math.Ceil(tidy(column)-0.5)
		if p.Wrap {
			row, column = action.Modulo(row, h), action.Modulo(column, w)
		}
		a.sources[at] = -1
		if inside(float64(i), float64(j)) && inside(row, column) && row >= 0 && row < float64(h) && column >= 0 && column < float64(w) {
			a.sources[at] = int32(int(row)*w + int(column))
		}
	}
}

func (a *mapAction) Pair(out []float64, acted, transformed []float32) error {
	clear(out)
	a.regions.clear()
	r, n := a.regions, a.format.Height*a.format.Width
	var agree, count [confidenceSteps + 1]int // by tenths of confidence; the first is below 0.1
	for at, v := range acted[:n] {
		if v < 0 {
			continue
		}
		u := transformed[at]
		if err := a.check(u, "transformed"); err != nil {
			return err
		}
		bin := 0
		if a.format.Channels > 1 {
			bin = min(max(int(10*acted[n+at]+1e-5), 0), confidenceSteps) // 0.3 in float32 is in bin 3
		}
		count[bin]++
		r.A[int(v)]++
		r.B[int(u)]++
		if v == u {
			r.Intersection[int(v)]++
			agree[bin]++
		}
	}
	if a.format.Channels > 1 {
		for step := confidenceSteps - 1; step >= 0; step-- {
			at := mapSums + 2*step
			out[at], out[at+1] = float64(agree[step+1]), float64(count[step+1])
			if step < confidenceSteps-1 { // positions of higher confidence count too
				out[at], out[at+1] = out[at]+out[at+2], out[at+1]+out[at+3]
			}
		}
	}
	for k := range r.A {
		of, all := out[a.classes+classSums*k:], float64(r.union(k))
		of[intersection], of[union], of[squaredUnion] = float64(r.Intersection[k]), all, all*all
		out[agreeing] += float64(r.Intersection[k])
		out[positions] += float64(r.A[k])
	}
	out[sampleAgreement], out[sampleMeanIoU] = out[agreeing]/out[positions], meanIoU(out[a.classes:])
	return nil
}
