package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/tensor"
)

// probedOf returns what the values of samples of a shape tell.
func probedOf(values []float32, shape []int) output.Probed {
	const rounding, fewRows = 1e-2, 10 // fewer rows may be ordered by chance
	f := output.Probed{Low: math.Inf(1), High: math.Inf(-1), Sums: -1}
	for _, v := range values {
		v := float64(v)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return output.Probed{Low: math.NaN(), High: math.NaN(), Sums: -1}
		}
		f.Low, f.High = min(f.Low, v), max(f.High, v)
	}
	if f.Fractions() {
		for axis, n := range shape {
			if n > 1 && sumsToOne(values, n, tensor.Size(shape[axis+1:]), rounding) {
				f.Sums = axis
				break
			}
		}
	}
	if len(shape) == 2 && shape[1] == 4 && shape[0] >= fewRows {
		f.Ordered = true
		for row := range slices.Chunk(values, 4) {
			f.Ordered = f.Ordered && row[2] >= row[0] && row[3] >= row[1]
		}
	}
	if len(shape) == 2 {
		for axis, n := range shape {
			if n <= output.MaxRanges {
				f.Ranges[axis] = rangesAlong(values, shape, axis)
			}
		}
	}
	return f
}

// rangesAlong returns the ranges of the values of samples of two axes at each index of an axis.
func rangesAlong(values []float32, shape []int, axis int) []output.Range {
	const rounding = 1e-3
	out := slices.Repeat([]output.Range{{Low: math.Inf(1), High: math.Inf(-1), Whole: true}}, shape[axis])
	size, columns := shape[0]*shape[1], shape[1]
	for i, v := range values {
		v, at := float64(v), i%size/columns
		if axis == 1 {
			at = i % columns
		}
		r := &out[at]
		r.Low, r.High = min(r.Low, v), max(r.High, v)
		r.Whole = r.Whole && math.Abs(v-math.Round(v)) < rounding
	}
	return out
}

// sumsToOne reports whether the sums of n values that are stride apart are all 1.
func sumsToOne(values []float32, n, stride int, tolerance float64) bool {
	for start := range len(values) / n {
		at := start/stride*n*stride + start%stride
		sum := 0.
		for k := range n {
			sum += float64(values[at+k*stride])
		}
		if math.Abs(sum-1) > tolerance {
			return false
		}
	}
	return true
}

// judge decides by rows of values whether the output of the scores holds logits or probabilities,
// where the graph leaves it open, and whether the values look like scores at all.
func (s *scores) judge(values []float32) {
	width := s.width()
	bounds := probedOf(values, []int{width})
	if math.IsNaN(bounds.Low) {
		s.doubt("values of noise are not finite, so that only the graph tells")
		return
	}
	smallest := math.Inf(1) // above 0
	for _, v := range values {
		if v > 0 {
			smallest = min(smallest, float64(v))
		}
	}
	tolerance := 0.01
	if step := quantisation(values, smallest); step > 0 {
		tolerance = max(tolerance, step*float64(width)/2)
	}
	const rounding = 1e-3
	away, first := 0., 0.                   // of the sums of rows: from 1, and the first
	logs, negatives := true, true           // the exponentials of the values, or of the negative values, sum to 1
	logsVary, negativesVary := false, false // more than one value contributes to such a sum
	level := math.Inf(1)                    // the least mean of a row, in standard deviations of the row
	unit := true                            // the rows have the length 1
	rows := len(values) / width
	for i := range rows {
		sum, squares, exps, inverses := 0., 0., 0., 0.
		for _, v := range values[i*width : (i+1)*width] {
			v := float64(v)
			sum += v
			squares += v * v
			exps += math.Exp(v)
			inverses += math.Exp(-v)
			logsVary = logsVary || v < -rounding && v > math.Log(rounding)
			negativesVary = negativesVary || v > rounding && v < -math.Log(rounding)
		}
		if i == 0 {
			first = sum
		}
		away = max(away, math.Abs(sum-1))
		logs, negatives = logs && math.Abs(exps-1) < rounding, negatives && math.Abs(inverses-1) < rounding
		mean := sum / float64(width)
		level = min(level, mean/math.Sqrt(max(squares/float64(width)-mean*mean, 1e-30)))
		unit = unit && math.Abs(squares-1) < rounding
	}
	inside := bounds.Low >= -rounding && bounds.High <= 1+rounding
	const certain = 0.5 // a larger tolerance of sums says nothing
	const far = 2       // logits scatter around 0; ratings lie farther from it than from each other
	const few = 4       // more outputs than this are hardly ratings
	switch fits := inside && away <= tolerance && !s.single; {
	case s.kind == probabilities && !inside:
		s.kind = logits
		s.basis = fmt.Sprintf("a %s is before it, but values of noise range from %.3g to %.3g", s.head.after, bounds.Low, bounds.High)
		s.doubt(s.basis)
	case s.kind == probabilities && s.single:
		s.basis = fmt.Sprintf("a %s is before its single value, the probability of the second of two classes", s.head.after)
	case s.kind == probabilities && fits:
		s.basis = fmt.Sprintf("a %s is before it, and the values of noise sum to 1", s.head.after)
	case s.kind == probabilities && s.head.after == "Softmax":
		s.basis = fmt.Sprintf("a Softmax is before it, but the values of a sample of noise sum to %.3g", first)
		s.doubt(s.basis)
	case s.kind == probabilities:
		s.basis = fmt.Sprintf("a %s is before it", s.head.after)
	case fits && tolerance <= certain:
		s.kind = probabilities
		s.basis = fmt.Sprintf("the values of %d samples of noise are not negative and sum to 1", rows)
		s.by = s.basis
	case logs && logsVary:
		s.basis = "the exponentials of the values of noise sum to 1, so that they are logarithms of probabilities"
		s.by = s.basis
	case negatives && negativesVary:
		s.none("the exponentials of the negative values of noise sum to 1, so that they are negative logarithms of probabilities, and the least is the likeliest: negate them in the model")
	case unit && s.by == "":
		s.none(unitLength + setScores)
	case s.by == "" && s.head.shifted && width <= few && bounds.Low > 0 && level > far && !inside:
		s.none(fmt.Sprintf("the values of noise range from %.3g to %.3g, far above 0, as ratings and measured quantities do%s", bounds.Low, bounds.High, setScores))
	case s.by == "" && inside && cumulative(values, width):
		s.none("the values of each sample of noise rise to 1, as cumulative probabilities do" + setScores)
	case s.by == "" && parallel(values, width):
		s.none("the values of each sample of noise differ from each other by the same amounts, as those of ordinal regression do" + setScores)
	case s.findTotal(values):
		s.kind = probabilities
		s.basis = fmt.Sprintf("the values of noise are between %.3g and %.3g, and each sample's sum is %.3g", bounds.Low, bounds.High, s.total)
		s.doubt(s.basis + ", as of probabilities in another unit, by which they are divided")
	case inside && bounds.High > rounding:
		s.basis = fmt.Sprintf("the values of noise are between %.3g and %.3g, and a sample's sum is %.3g", bounds.Low, bounds.High, first)
		s.doubt(s.basis + ", so they may be probabilities")
	default:
		s.basis = fmt.Sprintf("the values of noise range from %.3g to %.3g", bounds.Low, bounds.High)
		if why := probabilitiesAs(values, width); why != "" && !s.single {
			s.doubt(why + ", so that they are no logits")
		}
	}
}

// probabilitiesAs returns what says that rows of values are computed from probabilities, or "".
func probabilitiesAs(values []float32, width int) string {
	const rounding = 1e-3
	low, high := float64(slices.Min(values)), float64(slices.Max(values))
	twos, tens, sums, first := true, true, true, 0.
	for i := range len(values) / width {
		two, ten, sum := 0., 0., 0.
		for _, v := range values[i*width : (i+1)*width] {
			two, ten, sum = two+math.Exp2(float64(v)), ten+math.Pow(10, float64(v)), sum+float64(v)
		}
		if i == 0 {
			first = sum
		}
		twos, tens = twos && math.Abs(two-1) < rounding, tens && math.Abs(ten-1) < rounding
		sums = sums && math.Abs(sum-first) < rounding*(high-low)
	}
	switch {
	case twos:
		return "the powers of 2 of the values of noise sum to 1, as logarithms to base 2 of probabilities do"
	case tens:
		return "the powers of 10 of the values of noise sum to 1, as logarithms to base 10 of probabilities do"
	case sums && math.Abs(first) > 0.1*(high-low): // logits that are centred sum to 0
		return fmt.Sprintf("the values of each sample of noise sum to %.3g", first)
	}
	return ""
}

// cumulative reports whether the values of each row never fall and end at 1.
func cumulative(values []float32, width int) bool {
	const fewest, rounding = 3, 1e-3
	for row := range slices.Chunk(values, width) {
		if width < fewest || !slices.IsSorted(row) || math.Abs(float64(row[width-1])-1) > rounding {
			return false
		}
	}
	return true
}

// parallel reports whether all rows are the same but for a number that is added to each, which is
// not the same for all rows. The values of a row differ.
func parallel(values []float32, width int) bool {
	const fewest, rounding = 3, 1e-4
	first, shifted := values[:width], false
	scale := float64(slices.Max(values) - slices.Min(values))
	if width < fewest || float64(slices.Max(first)-slices.Min(first)) < 0.01*scale {
		return false
	}
	for row := range slices.Chunk(values, width) {
		shift := float64(row[0] - first[0])
		shifted = shifted || math.Abs(shift) > 0.01*scale
		for k, v := range row {
			if math.Abs(float64(v-first[k])-shift) > rounding*scale {
				return false
			}
		}
	}
	return shifted
}

// findTotal finds out whether the rows of values have one sum other than 1 and are not negative, as
// percentages are, and sets the total by which they are divided.
func (s *scores) findTotal(values []float32) bool {
	const rounding = 1e-3
	width := s.width()
	first, spread, whole := 0., 0., true
	for i := range len(values) / width {
		sum := 0.
		for _, v := range values[i*width : (i+1)*width] {
			if !(v >= 0) {
				return false
			}
			sum += float64(v)
			whole = whole && v == float32(math.Trunc(float64(v)))
		}
		if i == 0 {
			first = sum
		}
		spread = max(spread, math.Abs(sum-first))
	}
	allowed := rounding * first
	if whole { // rounded to whole numbers
		allowed = max(allowed, float64(width))
	}
	const most = 0.1 // a larger part of the total is not rounding
	if s.single || s.kind == none || !(first > 0) || spread > allowed || allowed > most*first || math.Abs(first-1) <= 0.01 {
		return false
	}
	s.total = first
	return true
}

// doubt adds why it is doubtful that the output has logits or probabilities, whichever is assumed.
func (s *scores) doubt(why string) {
	s.doubts = append(s.doubts, fmt.Sprintf("output %q is taken for %s: %s: set scores: %s or scores: %s", s.output, s.kind, why, logits, probabilities))
}

// quantisation returns the step of which all values are multiples, at most 1/16, or 0 if they have
// none. smallest is the least value above 0.
func quantisation(values []float32, smallest float64) float64 {
	const coarsest, finest, rounding = 1. / 16, 1. / (1 << 16), 1e-2
	for divisor := 1.; divisor <= 4; divisor++ {
		step := smallest / divisor
		if step > coarsest || step < finest {
			continue
		}
		multiples := true
		for _, v := range values {
			k := float64(v) / step
			if math.Abs(k-math.Round(k)) > rounding {
				multiples = false
				break
			}
		}
		if multiples {
			return step
		}
	}
	return 0
}

// ScoresBasis returns how it is known what the output that scores classes holds, or why no output
// scores classes.
func (m *Model) ScoresBasis() string {
	s := m.scores
	if s.classes == 0 || s.by == "" || s.by == s.basis || s.by == s.head.after || strings.HasPrefix(s.by, "set by") {
		return s.basis
	}
	return s.basis + "; that they are of classes follows from " + s.by
}

// Doubts returns what is doubtful about the model's scores, a sentence each. labels is that of
// DoubtsOf.
func (m *Model) Doubts(labels int) []string {
	out := m.DoubtsOf(true, false, labels)
	if m.unprobed != "" && m.source != nil {
		out = append(out, m.unprobed+": whether samples of a batch influence each other, and what the outputs hold, is known from the graph alone")
	}
	return out
}

// DecodedDoubts returns what is doubtful about the decoded output.
func (m *Model) DecodedDoubts() []string {
	if m.decoder == nil || m.decoder.Doubt == "" {
		return nil
	}
	return []string{m.decoder.Doubt}
}

// DoubtsOf returns what is doubtful about the scores of a measure that reads predictions or the
// decoded output or neither, on data whose labels are of a number of classes; 0: they have none.
func (m *Model) DoubtsOf(predictions, decoded bool, labels int) (out []string) {
	s := m.scores
	if decoded {
		out = m.DecodedDoubts()
	}
	if predictions && s.classes > 0 {
		out = append(out, s.doubts...)
		if s.rivals != "" && labels != s.classes {
			out = append(out, fmt.Sprintf("output %q is taken for the scores of classes, and %s may be so too: set output: {scores: NAME}", s.output, s.rivals))
		}
		if strings.HasSuffix(s.head.after, "Sigmoid") && s.by != configBeside && !s.single && labels != s.classes {
			by := s.by
			if by == s.head.after {
				by = "nothing else"
			}
			out = append(out, fmt.Sprintf("a %s is before the %d values of output %q, and %s says that they score classes, which then may not exclude each other: set scores: %s if they do, or scores: %s",
				s.head.after, s.classes, s.output, by, s.kind, none))
		}
		if s.by == "" && labels != s.classes {
			out = append(out, fmt.Sprintf("nothing says that the %d values of output %q score classes, neither a softmax nor a name: set scores: %s if they do, or scores: %s", s.classes, s.output, s.kind, none))
		}
		stated := m.options.Scores != "" || containsAny(s.output, "logit")
		if s.kind == logits && s.head.after == "" && m.unprobed != "" && !stated {
			out = append(out, fmt.Sprintf("output %q is taken for logits from the graph alone: %s: set scores: %s or scores: %s", s.output, m.unprobed, logits, probabilities))
		}
	}
	if m.mixed != "" {
		advice := "export the model for inference, or with a batch of 1"
		if m.source == nil {
			advice = "the server or the function must give each sample its own values"
		}
		out = append(out, m.mixed+", so that every score depends on the order and the size of batches: "+advice)
	}
	return out
}
