package grad_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/noether-ml/noether/internal/keyed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
)

// An operand is an input of the operator under test, with its value. The zero operand is an optional input that is
// left out.
type operand struct {
	shape  []int
	floats []float32 // differentiated by
	ints   []int64
	bools  []bool
	narrow bool // ints are of 32 bits
	double bool // floats are of 64 bits
	given  bool // floats are not differentiated by
	fixed  bool // always a constant of the graph
}

func (o operand) absent() bool { return o.shape == nil }

func (o operand) differentiable() bool { return o.floats != nil && !o.given }

func (o operand) elementType() onnx.Type {
	switch {
	case o.narrow:
		return onnx.Int32
	case o.ints != nil:
		return onnx.Int64
	case o.bools != nil:
		return onnx.Bool
	}
	if o.double {
		return onnx.Double
	}
	return onnx.Float
}

// constant makes the operand a weight of a graph.
func (o operand) constant(b *onnx.Builder, name string) onnx.Value {
	return b.Initializer(o.proto(name))
}

// proto is the operand as a constant in a file.
func (o operand) proto(name string) *pb.TensorProto {
	t := &pb.TensorProto{Name: &name, RawData: []byte{}}
	kind := int32(o.elementType())
	t.DataType = &kind
	for _, d := range o.shape {
		t.Dims = append(t.Dims, int64(d))
	}
	for _, v := range o.floats {
		if o.double {
			t.RawData = binary.LittleEndian.AppendUint64(t.RawData, math.Float64bits(float64(v)))
			continue
		}
		t.RawData = binary.LittleEndian.AppendUint32(t.RawData, math.Float32bits(v))
	}
	for _, v := range o.ints {
		if o.narrow {
			t.RawData = binary.LittleEndian.AppendUint32(t.RawData, uint32(v))
			continue
		}
		t.RawData = binary.LittleEndian.AppendUint64(t.RawData, uint64(v))
	}
	for _, v := range o.bools {
		t.RawData = append(t.RawData, map[bool]byte{true: 1}[v])
	}
	return t
}

func (o operand) value(rt *ort.Runtime) (*ort.Value, error) {
	switch {
	case o.narrow:
		list := make([]int32, len(o.ints))
		for i, v := range o.ints {
			list[i] = int32(v)
		}
		return ort.Wrap(rt, list, o.shape...)
	case o.double:
		list := make([]float64, len(o.floats))
		for i, v := range o.floats {
			list[i] = float64(v)
		}
		return ort.Wrap(rt, list, o.shape...)
	case o.ints != nil:
		return ort.Wrap(rt, o.ints, o.shape...)
	case o.bools != nil:
		return ort.Wrap(rt, o.bools, o.shape...)
	}
	return ort.Wrap(rt, slices.Clone(o.floats), o.shape...) // BatchNormalization in training writes to its inputs
}

// A trial is one node, or a small graph, with drawn attributes and operands.
type trial struct {
	attrs    onnx.Attrs
	operands []operand
	outputs  int                          // 0: 1
	loss     []int                        // the outputs that the loss reads; nil: all
	space    bool                         // of the sizes, only those of batch and space may be free
	known    func(operand, axis int) bool // sizes that are always declared; nil: none has to be

	// graph makes the result in place of one node, the same each time that it is called.
	graph func(b *onnx.Builder, in []onnx.Value) onnx.Value
}

func (tr trial) String() string {
	s := fmt.Sprintf("attributes %v, operands", tr.attrs)
	for _, o := range tr.operands {
		s += fmt.Sprintf(" %v", o.shape)
		if o.ints != nil && len(o.ints) < 10 {
			s += fmt.Sprintf("=%v", o.ints)
		}
	}
	return s
}

// A form is how a trial becomes a graph: which operands are constants of it, and which sizes it declares.
type form struct {
	opset     int
	constants []bool
	byNode    bool // constants are made by nodes
	free      func(operand, axis int) bool
}

// plain declares every size, and makes constants only of what has to be.
func (tr trial) plain(opset int) form {
	f := form{opset: opset, free: func(int, int) bool { return false }}
	for _, o := range tr.operands {
		f.constants = append(f.constants, o.fixed)
	}
	return f
}

// drawn is another form of the same trial.
func (tr trial) drawn(opset int, r *rand.Rand) form {
	f := tr.plain(opset)
	f.byNode = r.IntN(3) == 0
	for i := range f.constants {
		f.constants[i] = f.constants[i] || i > 0 && r.IntN(2) == 0
	}
	batch := func(operand int) bool { // a free first axis is called batch, and all of that name are as long
		s := tr.operands[operand].shape
		return len(tr.operands[0].shape) > 0 && len(s) > 0 && s[0] == tr.operands[0].shape[0]
	}
	switch r.IntN(3) {
	case 0:
		f.free = func(operand, axis int) bool { return axis == 0 && batch(operand) }
	case 1:
		f.free = func(operand, axis int) bool { return axis > 0 || batch(operand) }
		if tr.space { // weights are known, and how much a stride leaves over can be cut off since opset 10
			f.free = func(operand, axis int) bool { return operand == 0 && (axis == 0 || axis > 1 && opset > 10) }
		}
	}
	if free := f.free; tr.known != nil {
		f.free = func(operand, axis int) bool { return free(operand, axis) && !tr.known(operand, axis) }
	}
	return f
}

// everything declares every size, where that is asked for.
func everything(is bool) func(operand, axis int) bool {
	return func(int, int) bool { return is }
}

// node adds the operands and the node to a graph.
func (tr trial) node(b *onnx.Builder, op string, f form) (in, out []onnx.Value) {
	in = make([]onnx.Value, len(tr.operands))
	for i, o := range tr.operands {
		name := fmt.Sprintf("x%d", i)
		switch {
		case o.absent():
		case f.constants[i] && f.byNode:
			in[i] = b.Op("Constant", onnx.Attrs{"value": o.proto(name)})
		case f.constants[i]:
			in[i] = o.constant(b, name)
		default:
			shape := slices.Clone(o.shape)
			for axis := range shape {
				if f.free(i, axis) {
					shape[axis] = -1
				}
			}
			in[i] = b.Input(name, o.elementType(), shape...)
		}
	}
	if tr.graph != nil {
		return in, []onnx.Value{tr.graph(b, in)}
	}
	return in, b.Ops(op, max(1, tr.outputs), tr.attrs, in...)
}

func (tr trial) read() []int {
	if tr.loss != nil {
		return tr.loss
	}
	all := make([]int, max(1, tr.outputs))
	for i := range all {
		all[i] = i
	}
	return all
}

// A program is a graph that can be run on operands.
type program struct {
	rt      *ort.Runtime
	session *ort.Session
	inputs  []string
}

func compile(t testing.TB, m *onnx.Model) *program {
	t.Helper()
	rt := orttest.Load(t)
	s, err := rt.NewSession(m, ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	p := &program{rt: rt, session: s}
	for _, in := range m.Inputs() {
		p.inputs = append(p.inputs, in.Name)
	}
	return p
}

// run returns the outputs of a program. What it is fed is found by name.
func (p *program) run(t testing.TB, feed map[string]operand) []tensor.Tensor {
	t.Helper()
	in := make([]*ort.Value, len(p.inputs))
	out := make([]*ort.Value, len(p.session.Outputs()))
	for i, name := range p.inputs {
		v, err := feed[name].value(p.rt)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		in[i] = v
	}
	if err := p.session.Run(context.Background(), in, out); err != nil {
		t.Fatal(err)
	}
	results := make([]tensor.Tensor, len(out)/2)
	for i := range results {
		data, shape := out[2*i], out[2*i+1]
		results[i].Data = slices.Clone(data.Tensor().Data)
		for _, d := range ort.Data[int64](shape)[1:] {
			results[i].Shape = append(results[i].Shape, int(d))
		}
		data.Close()
		shape.Close()
	}
	return results
}

// observe makes a tensor an output of a graph: its elements, and its shape after a one. The engine's binding cannot make
// room by itself for what has no axes.
func observe(b *onnx.Builder, name string, v onnx.Value) {
	b.Output(name, b.Reshape(v, -1))
	b.Output(name+"/shape", b.Concat(0, b.Ints(1), b.Shape(v)))
}

func (tr trial) feed() map[string]operand {
	feed := map[string]operand{}
	for i, o := range tr.operands {
		feed[fmt.Sprintf("x%d", i)] = o
	}
	return feed
}

// forward is the program that computes the outputs that the loss reads. It executes every node as it stands.
func (tr trial) forward(t testing.TB, op string, opset int) *program {
	t.Helper()
	b := onnx.NewBuilder(opset)
	_, out := tr.node(b, op, tr.plain(opset))
	for _, i := range tr.read() {
		observe(b, fmt.Sprintf("y%d", i), out[i])
	}
	return compile(t, build(t, b))
}

func build(t testing.TB, b *onnx.Builder) *onnx.Model {
	t.Helper()
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// backward is the program that computes the gradient of sum_i <r_i, y_i> by each operand that is differentiable.
func (tr trial) backward(t testing.TB, op string, f form, cotangents []tensor.Tensor) (*program, error) {
	t.Helper()
	b := onnx.NewBuilder(f.opset)
	in, out := tr.node(b, op, f)
	var by []onnx.Value
	for i, o := range tr.operands {
		if o.differentiable() {
			by = append(by, in[i])
		}
	}
	y, dy := tr.total(b, out, cotangents)
	dx, err := grad.Of(b, y, dy, by...)
	if err != nil {
		return nil, err
	}
	for i, v := range dx {
		observe(b, fmt.Sprintf("grad%d", i), v)
	}
	return compile(t, build(t, b)), nil
}

// total is what is differentiated, and its cotangent: the output itself, or the sum over several.
func (tr trial) total(b *onnx.Builder, out []onnx.Value, cotangents []tensor.Tensor) (y, dy onnx.Value) {
	read := tr.read()
	if len(read) == 1 {
		return out[read[0]], b.Input("r0", onnx.Float, cotangents[0].Shape...)
	}
	for k, i := range read {
		r := b.Input(fmt.Sprintf("r%d", k), onnx.Float, cotangents[k].Shape...)
		term := b.ReduceSum(b.Mul(out[i], r), false)
		if y == "" {
			y = term
		} else {
			y = b.Add(y, term)
		}
	}
	return y, b.Scalar(1)
}

// check compares the gradients of a trial with central differences along random directions.
func (tr trial) check(t *testing.T, op string, opset int, r *rand.Rand) {
	t.Helper()
	run := tr.forward(t, op, opset)
	clean := run.run(t, tr.feed())
	cotangents := make([]tensor.Tensor, len(clean))
	feed := tr.feed()
	for i, y := range clean {
		cotangents[i] = tensor.New(y.Shape...)
		for k := range cotangents[i].Data {
			cotangents[i].Data[k] = float32(r.NormFloat64())
		}
		feed[fmt.Sprintf("r%d", i)] = operand{shape: y.Shape, floats: cotangents[i].Data, given: true}
	}
	plain, err := tr.backward(t, op, tr.plain(opset), cotangents)
	if err != nil {
		t.Fatalf("%v: %v", tr, err)
	}
	gradients := plain.run(t, feed)
	tr.checkShapes(t, gradients)
	tr.checkDirections(t, run, clean, cotangents, gradients, r)
	tr.checkForm(t, op, tr.drawn(opset, r), feed, cotangents, gradients)
	if t.Failed() {
		t.Logf("%v", tr)
	}
}

func (tr trial) checkShapes(t *testing.T, gradients []tensor.Tensor) {
	t.Helper()
	k := 0
	for i, o := range tr.operands {
		if !o.differentiable() {
			continue
		}
		if !slices.Equal(gradients[k].Shape, o.shape) {
			t.Fatalf("the gradient by operand %d has shape %v, and the operand %v: %v", i, gradients[k].Shape, o.shape, tr)
		}
		k++
	}
}

// Inputs are multiples of 2^-10 below 2^6 and directions multiples of 2^-4 up to 1, so that x + h v is exact for these
// steps, and the differences have no other error than the operator's own rounding and their order: h^4 after Richardson's
// extrapolation.
const (
	step       = 1.0 / 32
	directions = 3
)

// checkDirections takes one operand at a time, so that none hides behind another.
func (tr trial) checkDirections(t *testing.T, run *program, clean, cotangents, gradients []tensor.Tensor, r *rand.Rand) {
	t.Helper()
	rounding := roundingOf(clean, cotangents)
	k := 0
	for i, o := range tr.operands {
		if !o.differentiable() {
			continue
		}
		g := gradients[k]
		k++
		for range directions {
			v := direction(len(o.floats), r)
			slope := func(h float64) float64 {
				return (tr.loss1(t, run, i, v, h, cotangents) - tr.loss1(t, run, i, v, -h, cotangents)) / (2 * h)
			}
			wide, narrow := slope(step), slope(step/2)
			numeric := (4*narrow - wide) / 3
			var analytic float64
			for e, d := range v {
				analytic += d * float64(g.Data[e])
			}
			size := math.Sqrt(dot(g.Data, g.Data))
			worst := max(1e-3*size, 20*rounding/step)
			if math.Abs(wide-narrow) > 0.05*size+20*rounding/step {
				t.Fatalf("the differences of two steps by operand %d do not agree, %g and %g: the trial is at a kink: %v", i, wide, narrow, tr)
			}
			if !(math.Abs(numeric-analytic) <= worst) {
				t.Errorf("the derivative by operand %d is %g by differences and %g by gradient (bound %g)", i, numeric, analytic, worst)
			}
		}
	}
}

// roundingOf estimates the rounding error of the loss: that of the outputs, which are independent.
func roundingOf(y, r []tensor.Tensor) float64 {
	var square float64
	for i := range y {
		for k, v := range y[i].Data {
			e := float64(v) * float64(r[i].Data[k])
			square += e * e
		}
	}
	return math.Sqrt(square) * 0x1p-23
}

func direction(n int, r *rand.Rand) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(1+r.IntN(16)) / 16
		if r.IntN(2) == 0 {
			v[i] = -v[i]
		}
	}
	return v
}

// loss1 is the loss where operand i is moved by h v.
func (tr trial) loss1(t *testing.T, run *program, i int, v []float64, h float64, cotangents []tensor.Tensor) float64 {
	t.Helper()
	moved := tr.operands[i]
	moved.floats = slices.Clone(moved.floats)
	for e := range v {
		moved.floats[e] = float32(float64(moved.floats[e]) + h*v[e])
	}
	feed := tr.feed()
	feed[fmt.Sprintf("x%d", i)] = moved
	var loss float64
	for k, y := range run.run(t, feed) {
		loss += dot(y.Data, cotangents[k].Data)
	}
	return loss
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// checkForm compares the gradients that another form of the graph has with those of the plain one.
func (tr trial) checkForm(t *testing.T, op string, f form, feed map[string]operand, cotangents, want []tensor.Tensor) {
	t.Helper()
	other, err := tr.backward(t, op, f, cotangents)
	if err != nil {
		t.Fatalf("with constants %v: %v: %v", f.constants, err, tr)
	}
	for k, g := range other.run(t, feed) {
		if !slices.Equal(g.Shape, want[k].Shape) {
			t.Fatalf("gradient %d has shape %v where constants are %v, else %v", k, g.Shape, f.constants, want[k].Shape)
		}
		if d, size := distance(g.Data, want[k].Data), largest(want[k].Data); !(d <= 2e-5*size+1e-7) {
			t.Errorf("gradient %d where constants are %v is off by %g of %g", k, f.constants, d, size)
		}
	}
}

func distance(a, b []float32) float64 {
	var d float64
	for i := range a {
		if e := math.Abs(float64(a[i] - b[i])); !(e <= d) {
			d = e
		}
	}
	return d
}

func largest(a []float32) float64 {
	var m float64
	for _, v := range a {
		m = max(m, math.Abs(float64(v)))
	}
	return m
}

// trials is how many trials an operator has at each operator set; NOETHER_TRIALS asks for more.
func trials() int {
	if n, err := strconv.Atoi(os.Getenv("NOETHER_TRIALS")); err == nil && n > 0 {
		return n
	}
	return 3
}

func TestOperators(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.op, func(t *testing.T) {
			t.Parallel()
			for _, opset := range c.opsets {
				for i := range trials() {
					t.Run(fmt.Sprintf("opset%d/%d", opset, i), func(t *testing.T) {
						g := &gen{Rand: keyed.Rand(11, c.op, opset, i), opset: opset, trial: i}
						c.draw(g).check(t, c.op, opset, g.Rand)
					})
				}
			}
		})
	}
}

// runPlain returns the elements of the outputs of a program, all of them float32.
func (p *program) runPlain(t testing.TB, feed map[string]operand) [][]float32 {
	t.Helper()
	in := make([]*ort.Value, len(p.inputs))
	out := make([]*ort.Value, len(p.session.Outputs()))
	for i, name := range p.inputs {
		v, err := feed[name].value(p.rt)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		in[i] = v
	}
	if err := p.session.Run(context.Background(), in, out); err != nil {
		t.Fatal(err)
	}
	results := make([][]float32, len(out))
	for i, v := range out {
		results[i] = slices.Clone(v.Tensor().Data)
		v.Close()
	}
	return results
}
