package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// A prober runs the network on samples of noise when a model is opened. The first sample of a run
// is the same in every run of the same number, the others differ.
type prober struct {
	model   *Model
	outputs []engine.Output
	session engine.Session
	size    int // samples of a run
}

// probe runs the network on noise. It judges by the values what the output of the scores holds, and
// finds out whether samples of a batch influence each other. A network that looks activations up, or
// that needs too much memory, is not run. m.unprobed says why there are no values.
func (m *Model) probe(ctx context.Context, outputs map[string][]int) error {
	const samples = 2
	memory := m.net.Limits().Memory
	switch {
	case !m.TakesInput():
		m.unprobed = "recorded activations do not run"
		return nil
	case memory > 0 && samples*m.WorkingBytes() > memory/4:
		m.unprobed = "it was not run on noise, which needs too much memory"
		return nil
	}
	p := &prober{model: m, size: samples}
	if m.batch > 0 {
		p.size = m.batch
	}
	scored := -1
	for _, o := range m.outputs {
		shape := outputs[o.Name]
		if shape == nil || o.Type != engine.Float && o.Type != engine.Double {
			continue
		}
		if o.Name == m.scores.output && m.scores.classes > 0 {
			scored = len(p.outputs)
		}
		p.outputs = append(p.outputs, engine.Output{Name: o.Name, Shape: shape, Convert: true})
	}
	together := p.size > 1 && (m.source == nil || len(m.Graph().RandomNodes()) == 0)
	if len(p.outputs) == 0 || scored < 0 && !together {
		return nil
	}
	one, other, err := p.runTwice(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // a run on the data may fail too, and report it
		m.unprobed = fmt.Sprintf("a run on noise failed (%v)", err)
		return nil
	}
	m.probed = map[string]valueRange{}
	for i, o := range p.outputs {
		m.probed[o.Name] = rangeOf(append(one[i], other[i]...))
	}
	if scored >= 0 && m.options.Scores == "" {
		m.scores.judge(append(one[scored], other[scored]...))
	}
	if !together {
		return nil
	}
	for i, o := range p.outputs {
		if n := tensor.Size(o.Shape); differ(one[i][:n], other[i][:n]) {
			m.mixed = fmt.Sprintf("output %q", o.Name)
			if layer := p.mixingLayer(ctx); layer != "" {
				m.mixed += ", first in " + layer
			}
			return ctx.Err()
		}
	}
	return nil
}

// A valueRange is the least and the largest of some values; NaN: some are not finite.
type valueRange struct{ low, high float64 }

func rangeOf(values []float32) valueRange {
	r := valueRange{math.Inf(1), math.Inf(-1)}
	for _, v := range values {
		v := float64(v)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return valueRange{math.NaN(), math.NaN()}
		}
		r.low, r.high = min(r.low, v), max(r.high, v)
	}
	return r
}

// mixingLayer describes the node that computes the first layer in which a sample depends on the
// others of its batch, or returns "".
func (p *prober) mixingLayer(ctx context.Context) string {
	const most = 256 << 20 // bytes of all layers
	if 2*4*int64(p.size)*p.model.totalElements > most {
		return ""
	}
	q := &prober{model: p.model, size: p.size}
	var layers []tensor.Layer
	for _, l := range p.model.all {
		if l.Shape != nil {
			layers = append(layers, l)
			q.outputs = append(q.outputs, engine.Output{Name: l.Name, Shape: l.Shape})
		}
	}
	if len(layers) == 0 {
		return ""
	}
	one, other, err := q.runTwice(ctx)
	if err != nil {
		return ""
	}
	for i, l := range layers {
		if n := tensor.Size(l.Shape); differ(one[i][:n], other[i][:n]) {
			node := l.Op
			if l.Node != "" {
				node = fmt.Sprintf("%s %q", l.Op, l.Node)
			}
			return fmt.Sprintf("node %s, which computes %q", node, l.Name)
		}
	}
	return ""
}

// runTwice returns the values of the outputs in two runs that have only the first sample in common.
func (p *prober) runTwice(ctx context.Context) (one, other [][]float32, err error) {
	if p.session, err = p.model.net.Open(ctx, engine.Request{Outputs: p.outputs}); err != nil {
		return nil, nil, err
	}
	defer p.session.Close()
	if one, err = p.run(ctx, 1); err == nil {
		other, err = p.run(ctx, 2)
	}
	return one, other, err
}

// run returns the values of the outputs for a batch whose samples after the first are noise of the
// given seed. If a batch is one sample, the seed is that of the sample.
func (p *prober) run(ctx context.Context, seed uint64) (values [][]float32, err error) {
	m := p.model
	var batch engine.Batch
	defer func() {
		for _, a := range append(batch.Inputs, batch.Outputs...) {
			a.Close()
		}
	}()
	byName := map[string]*engine.Array{}
	for _, name := range p.session.Inputs() {
		a, err := m.inputArray(name, p.size)
		if err != nil {
			return nil, err
		}
		byName[name] = a
		batch.Inputs = append(batch.Inputs, a)
		if err := p.session.Bind(a); err != nil {
			return nil, err
		}
	}
	var inputs []*engine.Array // nil where the session does not read it
	for _, name := range m.input.names() {
		inputs = append(inputs, byName[name])
	}
	if m.input.arrays == nil && inputs[0] == nil {
		return nil, fmt.Errorf("the outputs do not depend on the samples")
	}
	samples := make([]tensor.Tensor, p.size)
	for i := range samples {
		s := seed
		if i == 0 && p.size > 1 {
			s = 0
		}
		samples[i] = m.input.noise(s, i)
	}
	m.input.fill(samples, inputs)
	for _, o := range p.outputs {
		t := tensor.New(append([]int{p.size}, o.Shape...)...)
		a := engine.ArrayOf(t)
		values, batch.Outputs = append(values, t.Data), append(batch.Outputs, a)
		if err := p.session.Bind(a); err != nil {
			return nil, err
		}
	}
	return values, p.session.Run(ctx, batch)
}

// noise returns a sample: pixels in [0, 1], values of a waveform in [-1, 1], or numbers 0 and 1 for
// arrays, which may be the indices of a vocabulary. Samples of seed 1 are below those of seed 2, and
// one of seed 0 lies between, so that also the least and the largest of a batch depend on the seed.
func (p input) noise(seed uint64, index int) tensor.Tensor {
	random := rand.New(rand.NewPCG(seed, uint64(index)))
	t := tensor.New(p.shape()...)
	low := []float32{0.25, 0, 0.5}[seed]
	for i := range t.Data {
		switch v := low + 0.5*random.Float32(); {
		case p.arrays != nil:
			t.Data[i] = float32(math.Round(float64(v)))
		case p.audio:
			t.Data[i] = 2*v - 1
		default:
			t.Data[i] = v
		}
	}
	return t
}

// differ reports whether the values of a sample in two runs differ by more than rounding.
func differ(a, b []float32) bool {
	const rounding = 1e-3
	largest, most := 0., 0.
	for i, v := range a {
		w := float64(b[i])
		if d := math.Abs(float64(v) - w); d > most { // false for NaN
			most = d
		}
		if size := max(math.Abs(float64(v)), math.Abs(w)); size > largest && !math.IsInf(size, 0) {
			largest = size
		}
	}
	return most > rounding*largest
}

// judge decides by rows of values whether the output of the scores holds logits or probabilities,
// where the graph leaves it open, and whether the values look like scores at all.
func (s *scores) judge(values []float32) {
	width := s.width()
	bounds := rangeOf(values)
	if math.IsNaN(bounds.low) {
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
	away, spread, first := 0., 0., 0. // of the sums of rows: from 1, and from that of the first
	level := math.Inf(1)              // the least mean of a row, in standard deviations of the row
	unit := true                      // the rows have the length 1
	rows := len(values) / width
	for i := range rows {
		sum, squares := 0., 0.
		for _, v := range values[i*width : (i+1)*width] {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		if i == 0 {
			first = sum
		}
		away, spread = max(away, math.Abs(sum-1)), max(spread, math.Abs(sum-first))
		mean := sum / float64(width)
		level = min(level, mean/math.Sqrt(max(squares/float64(width)-mean*mean, 1e-30)))
		unit = unit && math.Abs(squares-1) < rounding
	}
	inside := bounds.low >= -rounding && bounds.high <= 1+rounding
	const certain = 0.5 // a larger tolerance of sums says nothing
	const far = 2       // logits scatter around 0; ratings lie farther from it than from each other
	const few = 4       // more outputs than this are hardly ratings
	switch fits := inside && away <= tolerance && !s.single; {
	case s.kind == probabilities && !inside:
		s.kind = logits
		s.basis = fmt.Sprintf("a %s is before it, but values of noise range from %.3g to %.3g", s.head.after, bounds.low, bounds.high)
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
	case unit && s.by == "":
		s.none(unitLength + setScores)
	case s.by == "" && s.head.shifted && width <= few && bounds.low > 0 && level > far && !inside:
		s.none(fmt.Sprintf("the values of noise range from %.3g to %.3g, far above 0, as ratings and measured quantities do%s", bounds.low, bounds.high, setScores))
	case inside && bounds.high > rounding || bounds.low >= 0 && first > 0 && spread <= rounding*first:
		s.basis = fmt.Sprintf("the values of noise are between %.3g and %.3g, and a sample's sum is %.3g", bounds.low, bounds.high, first)
		s.doubt(s.basis + ", so they may be probabilities")
	default:
		s.basis = fmt.Sprintf("the values of noise range from %.3g to %.3g", bounds.low, bounds.high)
	}
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
	out := m.DoubtsOf(true, labels)
	if m.unprobed != "" && m.source != nil {
		out = append(out, m.unprobed+": whether samples of a batch influence each other, and what the outputs hold, is known from the graph alone")
	}
	return out
}

// DoubtsOf returns what is doubtful about the scores of a measure that reads predictions or not, on
// data whose labels are of a number of classes; 0: they have none.
func (m *Model) DoubtsOf(predictions bool, labels int) (out []string) {
	s := m.scores
	if predictions && s.classes > 0 {
		out = append(out, s.doubts...)
		if s.by == "" && labels != s.classes {
			out = append(out, fmt.Sprintf("nothing says that the %d values of output %q score classes, neither a softmax nor a name: set scores: %s if they do, or scores: %s", s.classes, s.output, s.kind, none))
		}
		stated := m.options.Scores != "" || containsAny(s.output, "logit")
		if s.kind == logits && s.head.after == "" && m.unprobed != "" && !stated {
			out = append(out, fmt.Sprintf("output %q is taken for logits from the graph alone: %s: set scores: %s or scores: %s", s.output, m.unprobed, logits, probabilities))
		}
	}
	if m.mixed != "" {
		out = append(out, m.mixed+": a sample's values depend on the other samples of its batch, so that every score depends on the order and the size of batches: export the model for inference, or with a batch of 1")
	}
	return out
}
