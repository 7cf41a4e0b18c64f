package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/ball"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// A Defence is a loss on adversarial examples x' of the samples x. In the formulas f is the
// network, y the class of x and p the softmax of f.
type Defence string

const (
	// AdversarialTraining minimises the loss of the training at x' (Madry et al. 2018).
	AdversarialTraining Defence = "at"
	// TRADES minimises CE(f(x), y) + beta KL(p(x) || p(x')), where CE is the cross-entropy, KL the
	// Kullback-Leibler divergence, and x' maximises KL (Zhang et al. 2019).
	TRADES Defence = "trades"
	// MART minimises BCE(p(x'), y) + beta KL(p(x) || p(x')) (1 - p_y(x)) with the boosted
	// cross-entropy BCE = -log p_y(x') - log(1 - max_{k != y} p_k(x')) (Wang et al. 2020).
	MART Defence = "mart"
)

// Defences returns all defences.
func Defences() []Defence { return []Defence{AdversarialTraining, TRADES, MART} }

// Adversarial trains on adversarial examples x', which are searched anew in each step with the
// current weights, by projected gradient ascent on Spec.Loss at x', which with MART is the
// cross-entropy alone (TRADES: on the divergence KL(p(x) || p(x'))):
//
//	x' <- P(x' + StepSize u(gradient)).
//
// P projects onto the ball around x and clips to [0, 1]; u divides each sample's gradient by its
// norm (l2) or takes its sign (linf). The search runs in evaluation mode, as in the authors' code:
// with the running statistics of BatchNormalization and without Dropout. In training mode the
// forward passes of TRADES and MART, on x and on x', each normalise by their own batch, and each
// update the running statistics, in the order of the authors' code (MART: x, x'; TRADES: x,
// x', and x again).
type Adversarial struct {
	Defence  Defence
	Norm     string  // of the ball: l2 or linf
	Radius   float64 // for inputs with values in [0, 1]
	Steps    int     // at least 1
	StepSize float64 // length of a step (linf: change of a value); 0: 2.5 Radius / Steps
	// AtX starts the search at x; only AdversarialTraining can. Without AtX the search of
	// AdversarialTraining starts at a point drawn uniformly from the ball, and that of TRADES and
	// MART at x plus normal noise with a standard deviation of 0.001.
	AtX  bool
	Beta float64 // weight of KL in TRADES and MART
}

func (a *Adversarial) ball() ball.Ball { return ball.Ball{Norm: ball.Norm(a.Norm), Radius: a.Radius} }

func (a *Adversarial) stepSize() float64 {
	if a.StepSize > 0 {
		return a.StepSize
	}
	return 2.5 * a.Radius / float64(a.Steps)
}

func (a *Adversarial) check(s Spec) error {
	known := a.Defence == AdversarialTraining || a.Defence == TRADES || a.Defence == MART
	switch inputs := s.Model.Inputs(); {
	case !known:
		return fmt.Errorf("unknown defence %q: it must be one of %v", a.Defence, Defences())
	case a.Radius == 0:
		return errors.New("adversarial training needs a radius")
	case a.Steps < 1 || a.StepSize < 0 || math.IsNaN(a.StepSize):
		return fmt.Errorf("adversarial training with %d steps of size %g: at least 1 step is needed, and a size that is not negative", a.Steps, a.StepSize)
	case a.Beta < 0 || math.IsNaN(a.Beta):
		return fmt.Errorf("beta is %g: it must not be negative", a.Beta)
	case a.AtX && a.Defence != AdversarialTraining:
		return fmt.Errorf("%s cannot start at x, where the divergence has no gradient", a.Defence)
	case a.Defence != AdversarialTraining && s.Loss.Name != CrossEntropy.Name:
		return fmt.Errorf("%s needs the loss %s, not %s", a.Defence, CrossEntropy.Name, s.Loss.Name)
	case len(inputs) == 1 && len(inputs[0].Shape) > 1 && slices.Min(inputs[0].Sizes()[1:]) < 1:
		return fmt.Errorf("adversarial training needs a model with fixed sizes, and the input has shape %v", inputs[0].Sizes())
	case len(inputs) != 1 || inputs[0].Type != onnx.Float || len(inputs[0].Shape) < 2:
		return errors.New("adversarial training needs a model with one float32 input")
	case s.StepsPerRun > 1:
		return errors.New("adversarial training takes one step in a run of the engine")
	}
	return a.ball().Check()
}

// Names of the tensors of adversarial training. prefix keeps them apart from the model's names.
const (
	adversarialName = prefix + "adversarial"      // x' in a training step of TRADES and MART
	centreName      = prefix + "centre"           // x in the search
	foundName       = prefix + "next adversarial" // x' after a step of the search
	cleanLogsName   = prefix + "clean log-probabilities"
)

// hasCleanPass reports whether the loss is computed from a forward pass on x besides that on x'.
func (a *Adversarial) hasCleanPass() bool { return a != nil && a.Defence != AdversarialTraining }

// search returns the graph of one step of the search for x'. The graph's inputs are x' (by the name
// of the model's input), x, the weights, and the targets or, with TRADES, log p(x). lossGraph
// starts a graph with the loss of each sample; InputLike declares an input of the type and shape of
// another tensor.
func (p *program) search() (*onnx.Model, error) {
	a := p.spec.Adversarial
	b, losses, _, err := p.lossGraph(forEvaluation)
	if err != nil {
		return nil, err
	}
	x := onnx.Value(p.inputs[0].Name)
	if a.Defence == TRADES {
		losses = divergence(b, b.Input(cleanLogsName, onnx.Float, -1, p.classes), b.LogSoftmax(p.output, 1))
	}
	gradients, err := grad.Of(b, b.ReduceSum(losses, false), "", x)
	if err != nil {
		return nil, err
	}
	shape := p.inputs[0].Sizes()[1:] // of a sample
	var direction onnx.Value
	if ball.Norm(a.Norm) == ball.Linf {
		direction = b.Sign(gradients[0])
	} else {
		direction, _ = ball.Normalise(b, gradients[0], shape)
	}
	centre := infer.InputLike(b, centreName, x)
	next := a.ball().Project(b, b.Add(x, b.Mul(direction, b.Scalar(float32(a.stepSize())))), centre, shape)
	infer.OutputLike(b, foundName, next, x)
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	return rewrite.WithOutputs(m, []string{foundName})
}

func (p *program) cleanLogs() (*onnx.Model, error) {
	b, _, _, err := p.lossGraph(forEvaluation)
	if err != nil {
		return nil, err
	}
	b.Output(cleanLogsName, b.LogSoftmax(p.output, 1))
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	return rewrite.WithOutputs(m, []string{cleanLogsName})
}

// includeAdversarial adds to b a forward pass of the model m on x' that shares the weights of that
// on x, and returns its output.
func (p *program) includeAdversarial(b *onnx.Builder, m *onnx.Model) (onnx.Value, error) {
	cut, err := rewrite.WithOutputs(m, []string{string(p.output)})
	if err != nil {
		return "", err
	}
	x := p.inputs[0].Name
	inputs := map[string]onnx.Value{}
	for _, input := range cut.Inputs() {
		inputs[input.Name] = onnx.Value(input.Name)
	}
	inputs[x] = infer.InputLike(b, adversarialName, onnx.Value(x))
	return b.Scope("adversarial").Include(cut, inputs)[0], b.Err()
}

// adversarialLosses returns the loss of TRADES or MART for each sample, from the logits on x
// (clean) and on x' (adversarial).
func (a *Adversarial) adversarialLosses(b *onnx.Builder, clean, adversarial, target onnx.Value) onnx.Value {
	beta := b.Scalar(float32(a.Beta))
	logClean, logAdversarial := b.LogSoftmax(clean, 1), b.LogSoftmax(adversarial, 1)
	if a.Defence == TRADES {
		return b.Add(CrossEntropy.write(b, clean, target), b.Mul(beta, divergence(b, logClean, logAdversarial)))
	}
	const tiny = 1e-12 // this, 1.0001 and 1.0000001 are those of the authors' code
	p := b.Exp(logAdversarial)
	depth := b.Gather(b.Shape(p), b.Int(1), 0)
	hot := b.Op("OneHot", onnx.Attrs{"axis": 1}, target, depth, b.Const("", tensor.Tensor{Shape: []int{2}, Data: []float32{0, 2}}))
	// other is the largest probability of another class: hot subtracts 2 from that of the target.
	other := b.ReduceMax(b.Sub(p, hot), false, 1)
	margin := b.Neg(b.Log(b.Add(b.Sub(b.Scalar(1.0001), other), b.Scalar(tiny))))
	pTarget := b.Exp(b.Neg(CrossEntropy.write(b, clean, target)))
	weight := b.Sub(b.Scalar(1.0000001), pTarget)
	kl := divergence(b, logClean, b.Log(b.Add(p, b.Scalar(tiny))))
	return b.Add(b.Add(CrossEntropy.write(b, adversarial, target), margin), b.Mul(beta, b.Mul(kl, weight)))
}

// divergence returns KL(p || q) of each sample, given log p and log q, batch x classes.
func divergence(b *onnx.Builder, logP, logQ onnx.Value) onnx.Value {
	return b.ReduceSum(b.Mul(b.Exp(logP), b.Sub(logP, logQ)), false, 1)
}

func (t *Trainer) openSearch() error {
	graph, err := engine.Within(t.runtime.RunLimit(), t.program.search)
	if err != nil {
		return fmt.Errorf("the search for adversarial examples: %w", err)
	}
	if t.search, err = t.newBoundSession(graph); err != nil || t.program.spec.Adversarial.Defence != TRADES {
		return err
	}
	if graph, err = t.program.cleanLogs(); err != nil {
		return err
	}
	t.clean, err = t.newBoundSession(graph)
	return err
}

func (a *Adversarial) start(x tensor.Tensor, draw *rand.Rand) tensor.Tensor {
	start := tensor.New(x.Shape...)
	for i := range x.Shape[0] {
		image := x.At(i)
		switch {
		case a.AtX:
			copy(start.At(i).Data, image.Data)
		case a.Defence == AdversarialTraining:
			copy(start.At(i).Data, a.ball().Draw(image, draw).Data)
		default:
			for j, v := range image.Data {
				start.At(i).Data[j] = v + float32(0.001*draw.NormFloat64())
			}
		}
	}
	return start
}

// attack returns adversarial examples of a batch for the current weights. The next call overwrites
// them. draw is the random generator of the starting points. Inputs outside [0, 1] are an error.
func (t *Trainer) attack(ctx context.Context, b *Batch, draw *rand.Rand) (*ort.Value, error) {
	if err := t.feed(t.search, b, notUnrolled); err != nil {
		return nil, err
	}
	x := b.Inputs[0]
	const rounding = 1e-3 // augmentations may leave [0, 1] by rounding
	if i := firstOutside(x, -rounding, 1+rounding); i >= 0 {
		return nil, fmt.Errorf("adversarial training needs inputs with values in [0, 1], and sample %d of a batch has %g: make the normalisation part of the model", i/(x.Len()/x.Shape[0]), x.Data[i])
	}
	if err := t.search.setFloats(centreName, x); err != nil {
		return nil, err
	}
	for i, s := range t.program.weights() {
		t.search.bind(s.name, t.state[0][i])
	}
	if t.clean != nil {
		if err := t.bindCleanLogs(ctx, b); err != nil {
			return nil, err
		}
	}
	input := t.program.inputs[0].Name
	now, err := t.search.buffer(adversarialName, onnx.Float, x.Shape...)
	if err != nil {
		return nil, err
	}
	next, err := t.search.buffer(foundName, onnx.Float, x.Shape...)
	if err != nil {
		return nil, err
	}
	copy(ort.Data[float32](now), t.startImages(x, draw).Data)
	for range t.program.spec.Adversarial.Steps {
		t.search.bind(input, now)
		if err := t.search.session.Run(ctx, t.search.in, []*ort.Value{next}); err != nil {
			return nil, fmt.Errorf("searching adversarial examples: %w", err)
		}
		now, next = next, now
	}
	return now, nil
}

// startImages returns the images that a search starts from. Tests set fixedStart.
func (t *Trainer) startImages(x tensor.Tensor, draw *rand.Rand) tensor.Tensor {
	if t.fixedStart != nil {
		return t.fixedStart(x)
	}
	return t.program.spec.Adversarial.start(x, draw)
}

// bindCleanLogs computes log p(x) and makes it an input of the search.
func (t *Trainer) bindCleanLogs(ctx context.Context, b *Batch) error {
	if err := t.feed(t.clean, b, notUnrolled); err != nil {
		return err
	}
	for i, s := range t.program.weights() {
		t.clean.bind(s.name, t.state[0][i])
	}
	logs, err := t.clean.buffer(cleanLogsName, onnx.Float, b.len(), t.program.classes)
	if err != nil {
		return err
	}
	if err := t.clean.session.Run(ctx, t.clean.in, []*ort.Value{logs}); err != nil {
		return err
	}
	t.search.bind(cleanLogsName, logs)
	return nil
}

// bindAdversarial searches adversarial examples and makes them an input of t.single, the session of
// one training step. The random generator is seeded by the number of the step, counting those that
// were rolled back.
func (t *Trainer) bindAdversarial(ctx context.Context, b *Batch) error {
	a := t.program.spec.Adversarial
	found, err := t.attack(ctx, b, seed.Rand(t.program.spec.Seed, "train: adversarial start", t.done+1+t.rolledBack))
	if err != nil {
		return err
	}
	if a.hasCleanPass() {
		t.single.bind(adversarialName, found)
	} else {
		t.single.bind(t.program.inputs[0].Name, found)
	}
	return nil
}

// firstOutside returns the index of the first value that is NaN or outside [low, high], or -1 if
// there is none.
func firstOutside(x tensor.Tensor, low, high float32) int {
	for i, v := range x.Data {
		if !(v >= low && v <= high) {
			return i
		}
	}
	return -1
}

// EvaluateRobust returns the fraction of samples whose class is predicted correctly at an
// adversarial example, which is searched as in training. It is an upper bound of the accuracy under
// stronger attacks. Spec.Adversarial must be set, and targets must be classes. batch is the number
// of samples in a batch.
func (t *Trainer) EvaluateRobust(ctx context.Context, src Source, batch int) (float64, error) {
	n, correct, number := src.Len(), 0.0, 0
	for b, err := range batches(ctx, src, 0, dataset.Indices(n), batch) {
		if err != nil {
			return math.NaN(), err
		}
		number++
		found, err := t.attack(ctx, &b, seed.Rand(t.program.spec.Seed, "train: adversarial evaluation", number))
		if err != nil {
			return math.NaN(), err
		}
		result, err := t.evaluateBatch(ctx, b, found)
		if err != nil {
			return math.NaN(), err
		}
		for _, yes := range result.correct {
			correct += yes
		}
	}
	return correct / float64(n), ctx.Err()
}
