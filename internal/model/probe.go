package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/tensor"
)

// A prober runs the network on samples of noise when a model is opened.
type prober struct {
	model   *Model
	outputs []engine.Output
	session engine.Session
	size    int // samples of a run
}

// probe runs the network on noise. It judges by the values what the output of the scores holds, and
// finds out whether samples of a batch influence each other. A network that looks activations up,
// or that needs too much memory, is not run. m.unprobed says why there are no values.
func (m *Model) probe(ctx context.Context, shapes map[string][]int) error {
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
		shape := shapes[o.Name]
		if shape == nil || o.Type != engine.Float && o.Type != engine.Double {
			continue
		}
		if o.Name == m.scores.output && m.scores.classes > 0 {
			scored = len(p.outputs)
		}
		p.outputs = append(p.outputs, engine.Output{Name: o.Name, Shape: shape, Convert: true})
	}
	if len(p.outputs) == 0 {
		return nil
	}
	together := m.source == nil || len(m.Graph().RandomNodes()) == 0
	runs, err := p.runAll(ctx, together)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // a run on the data may fail too, and report it
		m.unprobed = fmt.Sprintf("a run on noise failed (%v)", err)
		return nil
	}
	m.probed = map[string]*output.Probed{}
	for i, o := range p.outputs {
		probed := probedOf(runs.samples(i), o.Shape)
		m.probed[o.Name] = &probed
	}
	if scored >= 0 {
		values := runs.samples(scored)
		if m.options.Scores == "" {
			m.scores.judge(values)
		} else {
			m.scores.findTotal(values)
		}
	}
	for i, o := range p.outputs {
		if by := runs.influence(i, tensor.Size(o.Shape)); by != "" {
			m.mixed = fmt.Sprintf("output %q", o.Name)
			if layer := p.mixingLayer(ctx, by); layer != "" {
				m.mixed += ", first in " + layer
			}
			m.mixed += ": a sample's values depend on " + by
			return ctx.Err()
		}
	}
	return nil
}

// mixingLayer describes the node that computes the first layer in which a sample depends on what an
// output depends on (see probes.influence), or returns "".
func (p *prober) mixingLayer(ctx context.Context, by string) string {
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
	runs, err := q.runAll(ctx, true)
	if err != nil {
		return ""
	}
	for i, l := range layers {
		if runs.influence(i, tensor.Size(l.Shape)) == by {
			node := l.Op
			if l.Node != "" {
				node = fmt.Sprintf("%s %q", l.Op, l.Node)
			}
			if node == "" { // of a server
				return fmt.Sprintf("layer %q", l.Name)
			}
			return fmt.Sprintf("node %s, which computes %q", node, l.Name)
		}
	}
	return ""
}

// The seeds of the samples of noise that a prober runs. Samples of below are smaller than those of
// above, and one of between lies between, so that also the least and the largest value of a batch
// depend on the seeds.
const (
	between = iota
	below
	above
)

// manySamples are more than servers often run at once when each request is small.
const manySamples = 8

// probes holds the values of each output in runs on noise. The runs differ in the seeds of the
// samples, of which those in between have the seed of the last.
type probes struct {
	one    [][]float32 // between, below; or one sample, below
	other  [][]float32 // between, above; or one sample, above
	third  [][]float32 // above, below; nil: not run
	single [][]float32 // between alone; nil: not run
	many   [][]float32 // between, below several times: of a server, which may divide batches; nil: not run
}

// samples returns the values of the samples of an output in the first two runs.
func (r probes) samples(output int) []float32 {
	return slices.Concat(r.one[output], r.other[output])
}

// influence returns what a sample of n values depends on besides itself, or "". Whether values
// differ by rounding is less certain in another place or batch, where other code may compute them.
func (r probes) influence(output, n int) string {
	const same, elsewhere = 1e-3, 0.02
	if r.third == nil {
		return ""
	}
	one, other, third := r.one[output], r.other[output], r.third[output]
	last := len(one) - n
	switch {
	case differ(one[:n], other[:n], same), differ(one[last:], third[last:], same):
		return "the other samples of its batch"
	case differ(other[last:], third[:n], elsewhere):
		return "its place among the samples of its batch"
	case r.single != nil && differ(one[:n], r.single[output], elsewhere):
		return "the number of samples of its batch"
	case r.many == nil:
		return ""
	}
	many := r.many[output]
	if differ(one[:n], many[:n], elsewhere) || differ(one[last:], many[len(many)-n:], elsewhere) {
		return "the number of samples of its batch, or its place among them"
	}
	return ""
}

// runAll returns the values of the outputs in runs on noise. together says that the runs are done
// by which samples that influence each other are found.
func (p *prober) runAll(ctx context.Context, together bool) (r probes, err error) {
	if p.session, err = p.model.net.Open(ctx, engine.Request{Outputs: p.outputs}); err != nil {
		return r, err
	}
	defer p.session.Close()
	first := uint64(between)
	if p.size == 1 {
		first = below
	}
	if r.one, err = p.run(ctx, p.size, first, below); err != nil {
		return r, err
	}
	if p.size == 1 {
		first = above
	}
	if r.other, err = p.run(ctx, p.size, first, above); err != nil || p.size == 1 || !together {
		return r, err
	}
	if r.third, err = p.run(ctx, p.size, above, below); err != nil || p.model.batch > 0 {
		return r, err
	}
	if r.single, err = p.run(ctx, 1, between, between); err != nil && ctx.Err() == nil {
		r.single, err = nil, nil // it takes several samples only
	}
	if p.model.source == nil && ctx.Err() == nil {
		if r.many, err = p.run(ctx, manySamples, between, below); err != nil && ctx.Err() == nil {
			r.many, err = nil, nil // it takes few only
		}
	}
	return r, err
}

// run returns the values of the outputs for n samples of noise: one of seed first, and others of
// seed rest. Samples of one seed are equal.
func (p *prober) run(ctx context.Context, n int, first, rest uint64) (values [][]float32, err error) {
	m := p.model
	var batch engine.Batch
	defer func() {
		for _, a := range append(batch.Inputs, batch.Outputs...) {
			a.Close()
		}
	}()
	byName := map[string]*engine.Array{}
	for _, name := range p.session.Inputs() {
		a, err := m.inputArray(name, n)
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
	samples := []tensor.Tensor{m.input.noise(first)}
	for range n - 1 {
		samples = append(samples, m.input.noise(rest))
	}
	m.input.fill(samples, inputs)
	for _, o := range p.outputs {
		t := tensor.New(append([]int{n}, o.Shape...)...)
		a := engine.ArrayOf(t)
		values, batch.Outputs = append(values, t.Data), append(batch.Outputs, a)
		if err := p.session.Bind(a); err != nil {
			return nil, err
		}
	}
	return values, p.session.Run(ctx, batch)
}

// noise returns a sample: pixels in [0, 1], values of a waveform in [-1, 1], or numbers 0 and 1 for
// arrays, which may be the indices of a vocabulary.
func (p input) noise(seed uint64) tensor.Tensor {
	random := rand.New(rand.NewPCG(seed, 0))
	t := tensor.New(p.shape()...)
	low := []float32{between: 0.25, below: 0, above: 0.5}[seed]
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

// differ reports whether the values of a sample in two runs differ by more than rounding, as a
// fraction of the largest.
func differ(a, b []float32, rounding float64) bool {
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
