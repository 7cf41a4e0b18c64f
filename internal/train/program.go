package train

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// prefix starts the names of the tensors of training. Exporters do not usually write names with
// spaces, so these names do not collide with the model's.
const prefix = "train "

const (
	targetName    = prefix + "target"
	lossName      = prefix + "loss"
	correctName   = prefix + "correct"
	metricsName   = prefix + "metrics"
	penaltyName   = prefix + "penalty"
	predictedName = prefix + "predicted"      // class of each position of a map
	partnerName   = prefix + "partner target" // target of the sample that is mixed in (mixup)
	lambdaName    = prefix + "lambda"         // weight of mixup
)

func scalarName(i int) string       { return fmt.Sprintf("%sscalar %d", prefix, i) }
func nextName(tensor string) string { return prefix + "next " + tensor }
func unrolledName(step int, name string) string {
	return fmt.Sprintf("%sstep %d %s", prefix, step, name)
}

// A stateTensor is a tensor that a step updates: a parameter, a running statistic, or the
// optimiser's state for a parameter.
type stateTensor struct {
	name  string
	shape []int
}

// A program builds the graphs of a training, which a Spec describes: of a step, of several steps
// and of an evaluation.
type program struct {
	spec       Spec
	parameters []stateTensor
	// running means and variances of BatchNormalization; empty unless in training mode
	statistics     []stateTensor
	optimiserState []stateTensor
	// norms and masks are those of the BatchNormalization and Dropout nodes in the graph of a step.
	// With TRADES and MART, losses of adversarial training, the forward pass on the samples comes
	// before that on their adversarial examples.
	norms       []batchNorm
	masks       []mask
	inputs      []onnx.ValueInfo // of the model
	output      onnx.Value       // that the loss is computed from
	scalars     int              // number of the optimiser's scalars, such as the learning rate
	classes     int              // number of classes of the output; -1 if unknown
	taskClasses []int            // numbers of classes of the outputs of Spec.Tasks; -1 if unknown
}

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
		return nil, fmt.Errorf("the model has %d outputs: set the output that the loss is computed from", len(outputs))
	}
	p.scalars = len(spec.Optimiser.scalars(1, 1))
	p.classes = -1
	info := infer.Analyze(spec.Model)
	if spec.Loss.perPosition {
		p.classes = positionClasses(info, string(p.output))
	} else if shape := info.Shape(string(p.output)); len(shape) == 2 {
		p.classes = shape[1]
	}
	for _, task := range spec.Tasks {
		p.taskClasses = append(p.taskClasses, positionClasses(info, task.Output))
	}
	return p, p.chooseParameters()
}

// Parameters returns the names of the weights that are trained if a Spec names none: all on which
// the output depends and which have at least one axis, except running statistics. output is the
// name of the output; "": the only one. It is an error if there are no such weights.
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

// checkClasses returns an error if one of classes is not a class of an output that has the given
// number of classes; -1: unknown.
func checkClasses(classes []int, number int, output string) error {
	for _, k := range classes {
		if k < 0 || number >= 0 && k >= number {
			return fmt.Errorf("a sample has class %d, but the output %q has classes 0 to %d", k, output, number-1)
		}
	}
	return nil
}

// chooseParameters sets the parameters: those that the Spec names, or all weights on which the
// output depends and which have at least one axis, except running statistics.
func (p *program) chooseParameters() error {
	cut, err := rewrite.WithOutputs(p.spec.Model, p.outputs())
	if err != nil {
		return err
	}
	weights := cut.Weights()
	if err := p.findStatistics(onnx.Extend(cut).Nodes(), weights); err != nil {
		return err
	}
	isStatistic := func(name string) bool {
		return slices.ContainsFunc(p.statistics, func(s stateTensor) bool { return s.name == name })
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
		at := slices.IndexFunc(weights, func(w onnx.ValueInfo) bool { return w.Name == name })
		if at < 0 {
			return fmt.Errorf("unknown parameter %q: the output %q depends on no weight of this name", name, p.output)
		}
		if isStatistic(name) {
			return fmt.Errorf("the weights %q are running statistics, which have no gradient", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("the weights %q are named twice", name)
		}
		p.parameters = append(p.parameters, stateTensor{name, weights[at].Sizes()})
	}
	if len(p.parameters) == 0 {
		return fmt.Errorf("the model has no weights to train")
	}
	if !p.spec.TrainingMode {
		p.statistics = nil
	}
	return nil
}

// weights returns the tensors of the model that training changes: parameters and running
// statistics.
func (p *program) weights() []stateTensor { return slices.Concat(p.parameters, p.statistics) }

const (
	forTraining   = true
	forEvaluation = false
)

// lossGraph starts a graph: the model with its trained tensors as inputs, the loss of each sample
// (those of Spec.Tasks added) and, if targets are classes, whether the largest output is the class.
// training asks for the graph of a training step, with Spec.TrainingMode, Spec.Mixup and the loss
// of Spec.Adversarial.
func (p *program) lossGraph(training bool) (b *onnx.Builder, losses, correct onnx.Value, err error) {
	var names []string
	for _, s := range p.weights() {
		names = append(names, s.name)
	}
	m, err := rewrite.WeightsAsInputs(p.spec.Model, names...)
	if err != nil {
		return nil, "", "", err
	}
	b = onnx.Extend(m)
	var adversarial onnx.Value
	// The losses of TRADES and MART need a forward pass on the samples besides that on their
	// adversarial examples.
	if training && p.spec.Adversarial.hasCleanPass() {
		if adversarial, err = p.includeAdversarial(b, m); err != nil {
			return nil, "", "", err
		}
	}
	if training && p.spec.TrainingMode {
		if err := p.applyTrainingMode(b); err != nil {
			return nil, "", "", err
		}
	}
	if p.spec.Loss.TargetType == onnx.Float {
		losses = p.spec.Loss.write(b, p.output, target(b, p.spec.Loss, targetName, p.output))
		if p.mixes(training) {
			partner := infer.InputLike(b, partnerName, p.output)
			losses = mixed(b, b.Input(lambdaName, onnx.Float), losses, p.spec.Loss.write(b, p.output, partner))
		}
		return b, p.addTasks(b, losses), "", b.Err()
	}
	truth := target(b, p.spec.Loss, targetName, p.output)
	predicted := b.Op("ArgMax", onnx.Attrs{"axis": 1, "keepdims": 0}, p.output)
	if p.spec.Loss.perPosition {
		correct = correctPositions(b, predicted, truth)
		b.Output(predictedName, predicted)
	} else {
		correct = b.Cast(b.Op("Equal", nil, predicted, truth), onnx.Float)
	}
	if adversarial != "" {
		losses = p.spec.Adversarial.adversarialLosses(b, p.output, adversarial, truth)
	} else {
		losses = p.spec.Loss.write(b, p.output, truth)
	}
	if p.mixes(training) {
		partner, lambda := b.Input(partnerName, p.spec.Loss.TargetType, -1), b.Input(lambdaName, onnx.Float)
		losses = mixed(b, lambda, losses, p.spec.Loss.write(b, p.output, partner))
		correct = mixed(b, lambda, correct, b.Cast(b.Op("Equal", nil, predicted, partner), onnx.Float))
	}
	return b, p.addTasks(b, losses), correct, b.Err()
}

// metricCount returns the number of metrics of a step: the mean loss and, for classes, the
// accuracy.
func (p *program) metricCount() int {
	if p.spec.Loss.TargetType == onnx.Float {
		return 1
	}
	return 2
}

// evaluation returns the graph of an evaluation of a batch. Its outputs are the loss of each
// sample; if targets are classes, for each sample 1 if its prediction is correct, else 0, or the
// fraction of positions where it is correct; if there is a class for each position, the classes
// that are predicted there; and the penalty (Spec.Penalty) if there is one.
func (p *program) evaluation() (*onnx.Model, error) {
	b, losses, correct, err := p.lossGraph(forEvaluation)
	if err != nil {
		return nil, err
	}
	b.Output(lossName, losses)
	outputs := []string{lossName}
	if correct != "" {
		b.Output(correctName, correct)
		outputs = append(outputs, correctName)
	}
	if p.spec.Loss.perPosition {
		outputs = append(outputs, predictedName)
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

// step returns the graph of one step. Its outputs are the metrics and the updated state.
func (p *program) step() (*onnx.Model, error) {
	b, losses, correct, err := p.lossGraph(forTraining)
	if err != nil {
		return nil, err
	}
	b = b.Sharing() // gradient and update have equal nodes, which are written once
	loss := b.ReduceMean(losses, false)
	if p.spec.Penalty != nil {
		loss = b.Add(loss, p.spec.Penalty(b))
	}
	var parameters []onnx.Value
	for _, s := range p.parameters {
		parameters = append(parameters, onnx.Value(s.name))
	}
	gradients, err := grad.Of(b, loss, "", parameters...)
	if err != nil {
		return nil, err
	}
	if p.spec.Clip > 0 {
		gradients = clipped(b, gradients, p.spec.Clip)
	}
	scalars := make([]onnx.Value, p.scalars)
	for i := range scalars {
		scalars[i] = b.Input(scalarName(i), onnx.Float)
	}
	p.optimiserState = nil
	outputs := []string{metricsName}
	for i, s := range p.parameters {
		u := &updater{b: b, scalar: func(i int) onnx.Value { return scalars[i] }, state: func(name string) (onnx.Value, func(onnx.Value)) {
			m := stateTensor{prefix + name + " " + s.name, s.shape}
			p.optimiserState = append(p.optimiserState, m)
			now := b.Input(m.name, onnx.Float, m.shape...)
			return now, func(v onnx.Value) { infer.OutputLike(b, nextName(m.name), v, now) }
		}}
		infer.OutputLike(b, nextName(s.name), p.spec.Optimiser.update(u, parameters[i], gradients[i]), parameters[i])
	}
	p.outputStatistics(b)
	metrics := b.Reshape(loss, 1)
	if correct != "" {
		metrics = b.Concat(0, metrics, b.Reshape(b.ReduceMean(correct, false), 1))
	}
	b.Output(metricsName, metrics)
	for _, s := range p.stateTensors() {
		outputs = append(outputs, nextName(s.name))
	}
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	return rewrite.WithOutputs(m, outputs)
}

func (p *program) stateTensors() []stateTensor {
	return slices.Concat(p.parameters, p.statistics, p.optimiserState)
}

// clipped scales all gradients by one factor so that their joint norm is at most maxNorm. Like
// PyTorch's clip_grad_norm_ it adds 1e-6 to the norm.
func clipped(b *onnx.Builder, gradients []onnx.Value, maxNorm float64) []onnx.Value {
	var sum onnx.Value
	for _, g := range gradients {
		square := b.ReduceSum(b.Mul(g, g), false)
		if sum == "" {
			sum = square
		} else {
			sum = b.Add(sum, square)
		}
	}
	scale := b.Op("Min", nil, b.Scalar(1), b.Div(b.Scalar(float32(maxNorm)), b.Add(b.Sqrt(sum), b.Scalar(1e-6))))
	out := make([]onnx.Value, len(gradients))
	for i, g := range gradients {
		out[i] = b.Mul(g, scale)
	}
	return out
}

// unrolled returns the graph of k steps in sequence, each with its own batch and scalars. The
// metrics of the steps are concatenated.
func (p *program) unrolled(step *onnx.Model, k int) (*onnx.Model, error) {
	b := onnx.NewBuilder(step.Opset())
	current := map[string]onnx.Value{}
	for _, s := range p.stateTensors() {
		current[s.name] = b.Input(s.name, onnx.Float, s.shape...)
	}
	var metrics []onnx.Value
	for i := range k {
		inputs := map[string]onnx.Value{}
		for _, input := range step.Inputs() {
			if v, ok := current[input.Name]; ok {
				inputs[input.Name] = v
			} else {
				inputs[input.Name] = b.Input(unrolledName(i, input.Name), input.Type, input.Sizes()...)
			}
		}
		values := b.Scope(fmt.Sprintf("step %d", i)).Include(step, inputs)
		metrics = append(metrics, values[0])
		for j, s := range p.stateTensors() {
			current[s.name] = values[1+j]
		}
	}
	b.Output(metricsName, b.Concat(0, metrics...))
	for _, s := range p.stateTensors() {
		infer.OutputLike(b, nextName(s.name), current[s.name], onnx.Value(s.name))
	}
	return b.Model()
}
