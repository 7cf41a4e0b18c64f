package cdbn

import (
	"context"
	"math"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// A layerGraph writes the parts of the graph of a step of contrastive divergence, for batches of a
// fixed size. In comments, n is the size of a batch, K is Settings.Units, h x w the map of the
// hidden units of a group, and f is Settings.Filter. The parameters are the filters W (K x channels
// x f x f), the hidden biases b (K) and the visible biases c (channels).
type layerGraph struct {
	Settings
	b             *onnx.Builder
	channels      int // of the visible units
	height, width int // of the map of hidden units
}

// hiddenGiven returns the probabilities of the hidden units, n x K x h x w, given the visible units
// v, n x channels x image height x image width. Within a block they are a softmax over its units
// and the state in which all are off.
func (m *layerGraph) hiddenGiven(v, w, bias onnx.Value) onnx.Value {
	b, k := m.b, m.Block*m.Block
	units := m.blocks(b.Conv(v, w, bias, nil))
	none := b.Full(0, m.Batch, m.Units, m.height/m.Block, m.width/m.Block, 1)
	return m.unblocks(b.Slice(b.Softmax(b.Concat(4, units, none), 4), 4, 0, k, 1))
}

// blocks reshapes n x K x h x w to n x K x rows of blocks x columns of blocks x units of a block.
func (m *layerGraph) blocks(h onnx.Value) onnx.Value {
	b, k := m.b, m.Block
	split := b.Transpose(b.Reshape(h, m.Batch, m.Units, m.height/k, k, m.width/k, k), 0, 1, 2, 4, 3, 5)
	return b.Reshape(split, m.Batch, m.Units, m.height/k, m.width/k, k*k)
}

func (m *layerGraph) unblocks(h onnx.Value) onnx.Value {
	b, k := m.b, m.Block
	split := b.Reshape(h, m.Batch, m.Units, m.height/k, m.width/k, k, k)
	return b.Reshape(b.Transpose(split, 0, 1, 2, 4, 3, 5), m.Batch, m.Units, m.height, m.width)
}

// sampled samples hidden units, 0 or 1, from their probabilities q, n x K x h x w. u holds a
// uniform random number for each block.
func (m *layerGraph) sampled(q, u onnx.Value) onnx.Value {
	b := m.b
	probability := m.blocks(q)
	upper := b.Op("CumSum", nil, probability, b.Int(4))
	lower := b.Sub(upper, probability)
	on := b.Op("And", nil, b.Op("LessOrEqual", nil, lower, u), b.Op("Less", nil, u, upper))
	return m.unblocks(b.Cast(on, onnx.Float))
}

func (m *layerGraph) visible(h, w, c onnx.Value) onnx.Value {
	b := m.b
	v := b.Op("ConvTranspose", nil, h, w, c)
	if m.Binary {
		return b.Sigmoid(v)
	}
	return v
}

// correlation returns the mean over images and positions of the product of visible units v and
// probabilities q of hidden units: K x channels x f x f, for each weight of the filters.
func (m *layerGraph) correlation(v, q onnx.Value) onnx.Value {
	b := m.b
	// Channels x K x f x f.
	sum := b.Conv(b.Transpose(v, 1, 0, 2, 3), b.Transpose(q, 1, 0, 2, 3), "", nil)
	return b.Mul(b.Transpose(sum, 1, 0, 2, 3), b.Scalar(1/float32(m.Batch*m.height*m.width)))
}

// parameters are the names of the parameters that a step updates. Each has a velocity, the running
// sum of its updates of SGD with momentum.
var parameters = []string{"W", "b", "c"}

// graph returns the graph of a step on images of a shape, channels x height x width. Inputs are v
// (the images), u (a uniform random number for each block), the momentum, the parameters and their
// velocities. Outputs are the error (the mean squared difference between v and its reconstruction),
// the activity (the mean probability of hidden units), and the updated parameters and velocities.
func (m *layerGraph) graph(shape []int) (*onnx.Model, error) {
	b := m.b
	in := map[string]onnx.Value{}
	for _, p := range m.inputs(shape) {
		in[p.name] = b.Input(p.name, onnx.Float, p.shape...)
	}
	w, bias, c := in["W"], in["b"], in["c"]
	q := m.hiddenGiven(in["v"], w, bias)
	reconstruction := m.visible(m.sampled(q, in["u"]), w, c)
	qReconstruction := m.hiddenGiven(reconstruction, w, bias)

	activity := b.ReduceMean(q, false, 0, 2, 3)
	sparsity := b.Mul(b.Sub(b.Scalar(float32(m.Target)), activity), b.Scalar(float32(m.Weight)))
	change := map[string]onnx.Value{
		"W": b.Sub(b.Sub(m.correlation(in["v"], q), m.correlation(reconstruction, qReconstruction)), b.Mul(w, b.Scalar(float32(m.Decay)))),
		"b": b.Add(b.Sub(activity, b.ReduceMean(qReconstruction, false, 0, 2, 3)), sparsity),
		"c": b.ReduceMean(b.Sub(in["v"], reconstruction), false, 0, 2, 3),
	}
	difference := b.Sub(in["v"], reconstruction)
	outputs := []string{"error", "activity"}
	b.Output("error", b.ReduceMean(b.Mul(difference, difference), false))
	b.Output("activity", b.ReduceMean(activity, false))
	for _, name := range parameters {
		velocity := b.Add(b.Mul(in["velocity "+name], in["momentum"]), b.Mul(change[name], b.Scalar(float32(m.Rate))))
		b.Output("next "+name, b.Add(in[name], velocity))
		b.Output("next velocity "+name, velocity)
		outputs = append(outputs, "next "+name, "next velocity "+name)
	}
	graph, err := b.Model()
	if err != nil {
		return nil, err
	}
	return rewrite.WithOutputs(graph, outputs)
}

type tensorInfo struct {
	name  string
	shape []int
}

func (m *layerGraph) inputs(shape []int) []tensorInfo {
	filters := []int{m.Units, m.channels, m.Filter, m.Filter}
	return []tensorInfo{
		{"v", append([]int{m.Batch}, shape...)}, {"u", []int{m.Batch, m.Units, m.height / m.Block, m.width / m.Block, 1}}, {"momentum", nil},
		{"W", filters}, {"b", []int{m.Units}}, {"c", []int{m.channels}},
		{"velocity W", filters}, {"velocity b", []int{m.Units}}, {"velocity c", []int{m.channels}},
	}
}

// A stepper runs steps. It swaps the buffers of old and updated parameters after each step.
type stepper struct {
	Settings
	session *ort.Session
	in, out map[string]*ort.Value
}

func newStepper(rt *ort.Runtime, s Settings, shape []int) (*stepper, error) {
	m := &layerGraph{Settings: s, b: onnx.NewBuilder(onnx.DefaultOpset), channels: shape[0], height: shape[1] - s.Filter + 1, width: shape[2] - s.Filter + 1}
	graph, err := m.graph(shape)
	if err != nil {
		return nil, err
	}
	e := &stepper{Settings: s, in: map[string]*ort.Value{}, out: map[string]*ort.Value{}}
	if e.session, err = rt.NewSession(graph, s.Engine); err != nil {
		return nil, err
	}
	values := append(m.inputs(shape), tensorInfo{name: "error"}, tensorInfo{name: "activity"})
	for _, p := range values {
		if e.in[p.name], err = rt.NewValue(onnx.Float, p.shape...); err != nil {
			e.close()
			return nil, err
		}
	}
	for _, p := range values {
		switch p.name {
		case "v", "u", "momentum":
		case "error", "activity":
			e.out[p.name] = e.in[p.name]
			delete(e.in, p.name)
		default:
			if e.out["next "+p.name], err = rt.NewValue(onnx.Float, p.shape...); err != nil {
				e.close()
				return nil, err
			}
		}
	}
	return e, nil
}

// initialise sets the parameters before the first step. Filters are normal with standard deviation
// 0.1 / f. Hidden biases are such that units without input have the target activation: exp b / (1 +
// m exp b) = target in a block of m units. Visible biases of binary units reproduce the mean of the
// images.
func (e *stepper) initialise(images tensor.Tensor) {
	if e.Binary {
		c := ort.Data[float32](e.in["c"])
		for i, p := range channelMeans(images) {
			p = min(0.999, max(0.001, p))
			c[i] = float32(math.Log(p / (1 - p)))
		}
	}
	none := 1 - float64(e.Block*e.Block)*e.Target // probability that all units of a block are off
	for i := range ort.Data[float32](e.in["b"]) {
		ort.Data[float32](e.in["b"])[i] = float32(math.Log(e.Target / none))
	}
	r, w := seed.Rand(e.Seed, "cdbn: filters"), ort.Data[float32](e.in["W"])
	for i := range w {
		w[i] = float32(0.1 / float64(e.Filter) * r.NormFloat64())
	}
}

func channelMeans(images tensor.Tensor) []float64 {
	n, c, positions := images.Shape[0], images.Shape[1], images.Shape[2]*images.Shape[3]
	means := make([]float64, c)
	for i := range n * c {
		for _, v := range images.Data[i*positions : (i+1)*positions] {
			means[i%c] += float64(v) / float64(n*positions)
		}
	}
	return means
}

// step runs one step on the values of the inputs in e.in. The result has no Step.
func (e *stepper) step(ctx context.Context) (Point, error) {
	in, out := make([]*ort.Value, 0, len(e.in)), make([]*ort.Value, 0, len(e.out))
	for _, name := range e.session.Inputs() {
		in = append(in, e.in[name])
	}
	for _, name := range e.session.Outputs() {
		out = append(out, e.out[name])
	}
	if err := e.session.Run(ctx, in, out); err != nil {
		return Point{}, err
	}
	for _, name := range parameters {
		for _, p := range []string{name, "velocity " + name} {
			e.in[p], e.out["next "+p] = e.out["next "+p], e.in[p]
		}
	}
	return Point{Error: float64(ort.Data[float32](e.out["error"])[0]), Activity: float64(ort.Data[float32](e.out["activity"])[0])}, nil
}

func (e *stepper) value(name string) tensor.Tensor { return e.in[name].Tensor().Clone() }

func (e *stepper) close() {
	for _, values := range []map[string]*ort.Value{e.in, e.out} {
		for _, v := range values {
			if v != nil {
				v.Close()
			}
		}
	}
	e.session.Close()
}
