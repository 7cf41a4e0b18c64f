package train

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// prefix keeps the tensors of training apart from a model's: no exporter writes names with spaces.
const prefix = "train "

const (
	targetName  = prefix + "target"
	lossName    = prefix + "loss"
	hitsName    = prefix + "hits"
	marksName   = prefix + "marks"
	penaltyName = prefix + "penalty"
)

func rateName(i int) string           { return fmt.Sprintf("%srate %d", prefix, i) }
func nextName(tensor string) string   { return prefix + "next " + tensor }
func at(step int, name string) string { return fmt.Sprintf("%sstep %d %s", prefix, step, name) }

// A slot is a tensor that lives from step to step: a parameter, or what the optimiser remembers of one.
type slot struct {
	name  string
	shape []int
}

// A program is the graphs of a training.
type program struct {
	spec       Spec
	parameters []slot
	statistics []slot // running means and variances of BatchNormalization; they are trained in training mode alone
	memory     []slot
	norms      []norm // of the graph of a step
	masks      []mask
	inputs     []onnx.Port // of the model itself
	output     onnx.Value
	rates      int
	classes    int // that the output tells apart; -1 where that is not known
}

// newProgram finds out what is trained.
func newProgram(spec Spec) (*program, error) {
	p := &program{spec: spec}
	p.inputs = spec.Model.Inputs()
	outputs := spec.Model.Outputs()
	switch {
	case spec.Output != "":
		p.output = onnx.Value(spec.Output)
	case len(outputs) == 1:
		p.output = onnx.Value(outputs[0].Name)
	default:
		return nil, fmt.Errorf("the model has %d outputs: say which one the loss is of", len(outputs))
	}
	p.rates = len(spec.Optimiser.rates(1, 1))
	p.classes = -1
	if shape := infer.Analyze(spec.Model).Shape(string(p.output)); len(shape) == 2 {
		p.classes = shape[1]
	}
	return p, p.choose()
}

// Parameters lists the weights that training changes where a Spec names none: all that an output (empty: the only one) depends on and
// that have axes, but running statistics.
func Parameters(m *onnx.Model, output string) ([]string, error) {
	p, err := newProgram(Spec{Model: m, Output: output, Optimiser: SGD{Rate: 1}})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(p.parameters))
	for i, s := range p.parameters {
		names[i] = s.name
	}
	return names, nil
}

// checkClasses finds classes that the output does not tell apart.
func (p *program) checkClasses(classes []int) error {
	for _, k := range classes {
		if k < 0 || p.classes >= 0 && k >= p.classes {
			return fmt.Errorf("a sample has the class %d, and the output %q tells classes 0 to %d apart", k, p.output, p.classes-1)
		}
	}
	return nil
}

// choose lists the parameters: those that are named, or all weights that the output depends on, but single numbers and running
// statistics.
func (p *program) choose() error {
	cut, err := rewrite.WithOutputs(p.spec.Model, []string{string(p.output)})
	if err != nil {
		return err
	}
	weights := cut.Weights()
	if err := p.findNorms(onnx.Extend(cut).Nodes(), weights); err != nil {
		return err
	}
	isStatistic := func(name string) bool {
		return slices.ContainsFunc(p.statistics, func(s slot) bool { return s.name == name })
	}
	names := p.spec.Parameters
	if len(names) == 0 {
		for _, w := range weights {
			if len(w.Shape) > 0 && !isStatistic(w.Name) {
				names = append(names, w.Name)
			}
		}
	}
	for i, name := range names {
		at := slices.IndexFunc(weights, func(w onnx.Port) bool { return w.Name == name })
		if at < 0 {
			return fmt.Errorf("there are no weights %q that the output depends on", name)
		}
		if isStatistic(name) {
			return fmt.Errorf("the weights %q are running statistics, which have no gradients", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("the weights %q are named twice", name)
		}
		p.parameters = append(p.parameters, slot{name, weights[at].Sizes()})
	}
	if len(p.parameters) == 0 {
		return fmt.Errorf("the model has no weights to train")
	}
	if !p.spec.TrainingMode {
		p.statistics = nil
	}
	return nil
}

// weights are what training changes of the model: parameters, and statistics.
func (p *program) weights() []slot { return slices.Concat(p.parameters, p.statistics) }

// begin starts a graph: the model with what changes as inputs, the loss of each sample and, where targets are classes, whether
// each is hit.
func (p *program) begin(training bool) (b *onnx.Builder, losses, hits onnx.Value, err error) {
	var names []string
	for _, s := range p.weights() {
		names = append(names, s.name)
	}
	m, err := rewrite.WeightsAsInputs(p.spec.Model, names...)
	if err != nil {
		return nil, "", "", err
	}
	b = onnx.Extend(m)
	if training && p.spec.TrainingMode {
		if err := p.trainingMode(b); err != nil {
			return nil, "", "", err
		}
	}
	if p.spec.Loss.Target == onnx.Float {
		target := infer.InputLike(b, targetName, p.output)
		return b, p.spec.Loss.write(b, p.output, target), "", b.Err()
	}
	target := b.Input(targetName, p.spec.Loss.Target, -1)
	hit := b.Op("Equal", nil, b.Op("ArgMax", onnx.Attrs{"axis": 1, "keepdims": 0}, p.output), target)
	return b, p.spec.Loss.write(b, p.output, target), b.Cast(hit, onnx.Float), b.Err()
}

// marks are what a step says of itself: the mean loss and, of classes, the accuracy.
func (p *program) marks() int {
	if p.spec.Loss.Target == onnx.Float {
		return 1
	}
	return 2
}

// evaluation is the graph of the losses, b values, of the hits and of the penalty.
func (p *program) evaluation() (*onnx.Model, error) {
	b, losses, hits, err := p.begin(false)
	if err != nil {
		return nil, err
	}
	b.Output(lossName, losses)
	outputs := []string{lossName}
	if hits != "" {
		b.Output(hitsName, hits)
		outputs = append(outputs, hitsName)
	}
	if p.spec.Penalty != nil {
		b.Output(penaltyName, b.Reshape(p.spec.Penalty(b), 1))
		outputs = append(outputs, penaltyName)
	}
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	return rewrite.WithOutputs(m, outputs)
}

// step is the graph of one step.
func (p *program) step() (*onnx.Model, error) {
	b, losses, hits, err := p.begin(true)
	if err != nil {
		return nil, err
	}
	b = b.Sharing()
	loss := b.ReduceMean(losses, false)
	if p.spec.Penalty != nil {
		loss = b.Add(loss, p.spec.Penalty(b))
	}
	var by []onnx.Value
	for _, s := range p.parameters {
		by = append(by, onnx.Value(s.name))
	}
	gradients, err := grad.Of(b, loss, "", by...)
	if err != nil {
		return nil, err
	}
	if p.spec.Clip > 0 {
		gradients = clipped(b, gradients, p.spec.Clip)
	}
	rates := make([]onnx.Value, p.rates)
	for i := range rates {
		rates[i] = b.Input(rateName(i), onnx.Float)
	}
	p.memory = nil
	outputs := []string{marksName}
	for i, s := range p.parameters {
		slots := &slots{b: b, rate: func(i int) onnx.Value { return rates[i] }, memory: func(name string) (onnx.Value, func(onnx.Value)) {
			m := slot{prefix + name + " " + s.name, s.shape}
			p.memory = append(p.memory, m)
			now := b.Input(m.name, onnx.Float, m.shape...)
			return now, func(v onnx.Value) { infer.OutputLike(b, nextName(m.name), v, now) }
		}}
		infer.OutputLike(b, nextName(s.name), p.spec.Optimiser.update(slots, by[i], gradients[i]), by[i])
	}
	for _, n := range p.norms {
		mean, variance := n.becomes(b)
		b.Output(nextName(n.mean), mean)
		b.Output(nextName(n.variance), variance)
	}
	marks := b.Reshape(loss, 1)
	if hits != "" {
		marks = b.Concat(0, marks, b.Reshape(b.ReduceMean(hits, false), 1))
	}
	b.Output(marksName, marks)
	for _, s := range p.slots() {
		outputs = append(outputs, nextName(s.name))
	}
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	return rewrite.WithOutputs(m, outputs)
}

// slots are all that lives from step to step.
func (p *program) slots() []slot { return slices.Concat(p.parameters, p.statistics, p.memory) }

// clipped scales all gradients together so that their norm is at most most.
func clipped(b *onnx.Builder, gradients []onnx.Value, most float64) []onnx.Value {
	var sum onnx.Value
	for _, g := range gradients {
		square := b.ReduceSum(b.Mul(g, g), false)
		if sum == "" {
			sum = square
		} else {
			sum = b.Add(sum, square)
		}
	}
	scale := b.Op("Min", nil, b.Scalar(1), b.Div(b.Scalar(float32(most)), b.Add(b.Sqrt(sum), b.Scalar(1e-6))))
	out := make([]onnx.Value, len(gradients))
	for i, g := range gradients {
		out[i] = b.Mul(g, scale)
	}
	return out
}

// unrolled is the graph of several steps in a row, each with its own batch and rates; the marks are those of one after the
// other.
func (p *program) unrolled(step *onnx.Model, k int) (*onnx.Model, error) {
	b := onnx.NewBuilder(step.Opset())
	now := map[string]onnx.Value{}
	for _, s := range p.slots() {
		now[s.name] = b.Input(s.name, onnx.Float, s.shape...)
	}
	var marks []onnx.Value
	for i := range k {
		fed := map[string]onnx.Value{}
		for _, port := range step.Inputs() {
			if v, ok := now[port.Name]; ok {
				fed[port.Name] = v
			} else {
				fed[port.Name] = b.Input(at(i, port.Name), port.Type, port.Sizes()...)
			}
		}
		values := b.Scope(fmt.Sprintf("step %d", i)).Include(step, fed)
		marks = append(marks, values[0])
		for j, s := range p.slots() {
			now[s.name] = values[1+j]
		}
	}
	b.Output(marksName, b.Concat(0, marks...))
	for _, s := range p.slots() {
		infer.OutputLike(b, nextName(s.name), now[s.name], onnx.Value(s.name))
	}
	return b.Model()
}
