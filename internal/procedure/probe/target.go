package probe

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/features"
)

// Label is the name of the factor that is the samples' label.
const Label = "label"

type target struct {
	name     string
	classes  int       // 0: a number
	class    []int     // of each sample; -1: unknown
	value    []float64 // of each sample; NaN: unknown
	warnings []string  // of its scores
}

func (t *target) known(i int) bool {
	if t.classes > 0 {
		return t.class[i] >= 0
	}
	return !math.IsNaN(t.value[i])
}

func (t *target) samplesWithTarget(rows []int) []int {
	var out []int
	for _, i := range rows {
		if t.known(i) {
			out = append(out, i)
		}
	}
	return out
}

// factor returns the values of a factor, NaN for a sample without one.
func factor(s *features.Samples, name string) ([]float64, error) {
	if name == Label {
		out := make([]float64, s.Len())
		for i, l := range s.Label {
			if out[i] = float64(l); l == dataset.NoLabel {
				out[i] = math.NaN()
			}
		}
		return out, nil
	}
	values, ok := s.Factors[name]
	if !ok {
		known := append(slices.Sorted(maps.Keys(s.Factors)), Label)
		return nil, fmt.Errorf("the data have no factor %q: they have %s", name, strings.Join(known, ", "))
	}
	return values, nil
}

// factors returns those of the settings, else all available ones, else the label if labelled.
func (t *Targets) factors(available []string, labelled bool) []string {
	switch {
	case len(t.Factors) > 0:
		return t.Factors
	case len(available) > 0:
		return available
	case labelled:
		return []string{Label}
	}
	return nil
}

// scales are the default divisors of factors: OpenCV's ranges of 8-bit hue, saturation and value.
var scales = map[string]float64{"hue": 180, "saturation": 255, "value": 255}

// target returns a class for the label, for the factors in the setting classes, and for values that
// are names. Otherwise it is the value divided by the scale; an infinite value is unknown.
func (t *Targets) target(src dataset.Source, s *features.Samples, name string) (*target, error) {
	values, err := factor(s, name)
	if err != nil {
		return nil, err
	}
	out := &target{name: name}
	if name == Label || slices.Contains(t.Classes, name) || dataset.Categories(src, name) != nil {
		out.setClasses(values)
		return out, nil
	}
	scale, ok := t.Scale[name]
	if !ok {
		if scale = scales[name]; scale == 0 {
			scale = 1
		}
	}
	out.value = make([]float64, len(values))
	for i, v := range values {
		if out.value[i] = v / scale; math.IsInf(v, 0) {
			out.value[i] = math.NaN()
		}
	}
	return out, nil
}

// Class k is the k-th smallest distinct value; that of NaN is unknown.
func (t *target) setClasses(values []float64) {
	number := map[float64]int{}
	for _, v := range values {
		if !math.IsNaN(v) {
			number[v] = 0
		}
	}
	for k, v := range slices.Sorted(maps.Keys(number)) {
		number[v] = k
	}
	t.classes = max(1, len(number))
	t.class = make([]int, len(values))
	for i, v := range values {
		if t.class[i] = -1; !math.IsNaN(v) {
			t.class[i] = number[v]
		}
	}
}

// maxSpread is the standard deviation of a scaled target above which a warning is given.
const maxSpread = 20

// checkSplit leaves out samples without a target, and warns, for instance if it is constant.
func (t *target) checkSplit(s split) split {
	out := split{t.samplesWithTarget(s.train), t.samplesWithTarget(s.validation), t.samplesWithTarget(s.test)}
	if omitted := len(s.train) + len(s.validation) + len(s.test) - len(out.train) - len(out.validation) - len(out.test); omitted > 0 {
		t.warnings = append(t.warnings, fmt.Sprintf("%d samples have no %s and are left out", omitted, t.name))
	}
	switch {
	case t.classes > 0:
		t.checkClasses(out)
	case t.spread(out.train) == 0:
		t.warnings = append(t.warnings, t.name+" is constant over the training samples")
	case t.spread(out.train) > maxSpread:
		t.warnings = append(t.warnings, fmt.Sprintf("%s has a standard deviation of %.3g: training may need more epochs than are set; set scale: {%[1]s: ...}", t.name, t.spread(out.train)))
	}
	return out
}

// checkClasses adds warnings for classes without a training sample, and for a target of one class.
func (t *target) checkClasses(s split) {
	count := make([]int, t.classes)
	for _, i := range s.train {
		count[t.class[i]]++
	}
	lacking := 0
	for _, n := range count {
		if n == 0 {
			lacking++
		}
	}
	if lacking > 0 {
		t.warnings = append(t.warnings, fmt.Sprintf("%d of %d classes of %s have no training sample and cannot be predicted", lacking, t.classes, t.name))
	}
	if t.classes == 1 {
		t.warnings = append(t.warnings, t.name+" is constant")
	}
}

func (t *target) mean(rows []int) float64 {
	var sum float64
	for _, i := range rows {
		sum += t.value[i]
	}
	return sum / float64(len(rows))
}

func (t *target) spread(rows []int) float64 {
	mean, sum := t.mean(rows), 0.0
	for _, i := range rows {
		sum += (t.value[i] - mean) * (t.value[i] - mean)
	}
	return math.Sqrt(sum / float64(len(rows)))
}

func (t *target) mostFrequent(rows []int) int {
	count := make([]int, t.classes)
	for _, i := range rows {
		count[t.class[i]]++
	}
	best := 0
	for k, n := range count {
		if n > count[best] {
			best = k
		}
	}
	return best
}
