package ort_test

import (
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// largeWeightsModel returns a graph with large initializers: a table that Gather reads at indices,
// a matrix, and an addend. It maps x, 2 x 1024, to Gather(table, indices) + x matrix + addend.
func largeWeightsModel(t testing.TB) *onnx.Model {
	t.Helper()
	const n = 1024
	matrix, addend, table := make([]float32, n*n), make([]float32, n), make([]float32, 2*n)
	for i := range matrix {
		matrix[i] = float32(i%7) - 3
	}
	for i := range n {
		addend[i], table[i], table[n+i] = float32(i), 0.25*float32(i), -float32(i)
	}
	indices := make([]byte, 8*n)
	for i := range n {
		binary.LittleEndian.PutUint64(indices[8*i:], uint64((i*37)%(2*n)))
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, 2, n)
	at := b.Initializer(&pb.TensorProto{Dims: []int64{n}, DataType: new(int32(onnx.Int64)), RawData: indices})
	largest := b.Op("ReduceMax", onnx.Attrs{"keepdims": 0}, x)
	zero := b.Op("Cast", onnx.Attrs{"to": int(onnx.Int64)}, b.Op("Sub", nil, largest, largest)) // so that nothing is computed in advance
	gathered := b.Op("Gather", nil, b.Const("table", tensor.Tensor{Shape: []int{2 * n}, Data: table}), b.Op("Add", nil, at, zero))
	y := b.Add(gathered, b.MatMul(x, b.Const("matrix", tensor.Tensor{Shape: []int{n, n}, Data: matrix})))
	b.Output("y", b.Add(y, b.Const("addend", tensor.Tensor{Shape: []int{n}, Data: addend})))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runLargeWeights returns the output y of the model for one x. value (which closes a tensor at the
// end of the test) and run are in session_test.go.
func runLargeWeights(t testing.TB, rt *ort.Runtime, s *ort.Session) []float32 {
	t.Helper()
	x := make([]float32, 2*1024)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	in, err := ort.Wrap(rt, x, 2, 1024)
	in = value(t, in, err)
	out, err := rt.NewValue(onnx.Float, 2, 1024)
	out = value(t, out, err)
	run(t, s, []*ort.Value{in}, []*ort.Value{out})
	return slices.Clone(ort.Data[float32](out))
}

// TestWeightsAreShared checks that sessions, also with Verbatim (no node is fused or computed in
// advance), use the weights in the memory of the model. Their results equal those of a session of
// the serialised graph, which has a copy, also after another session of the model was closed. A
// change of the table in the model then changes the results of a session.
func TestWeightsAreShared(t *testing.T) {
	rt := orttest.Load(t)
	m := largeWeightsModel(t)
	data, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []ort.Options{{}, {Verbatim: true}, {Threads: 1}} {
		copied, err := rt.NewSessionFromBytes(data, []string{"x"}, []string{"y"}, o)
		if err != nil {
			t.Fatal(err)
		}
		want := runLargeWeights(t, rt, copied)
		copied.Close()
		first, err := rt.NewSession(m, o)
		if err != nil {
			t.Fatal(err)
		}
		second, err := rt.NewSession(m, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := runLargeWeights(t, rt, first); !slices.Equal(got, want) {
			t.Errorf("%+v: results differ from those of the serialised graph", o)
		}
		first.Close()
		runtime.GC()
		if got := runLargeWeights(t, rt, second); !slices.Equal(got, want) {
			t.Errorf("%+v: results differ after another session was closed", o)
		}
		second.Close()
	}

	shared, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	want := runLargeWeights(t, rt, shared)
	for _, w := range m.Proto().Graph.Initializer {
		if w.GetName() == "table" {
			clear(w.RawData)
		}
	}
	got := runLargeWeights(t, rt, shared)
	for i := range got {
		at := i % 1024 * 37 % 2048
		gathered := 0.25 * float32(at)
		if at >= 1024 {
			gathered = -float32(at - 1024)
		}
		if math.Abs(float64(got[i]+gathered-want[i])) > 1e-3*math.Max(1, math.Abs(float64(want[i]))) {
			t.Fatalf("y[%d] is %v after the table was cleared, and %v before, want a difference of %v: the session has a copy", i, got[i], want[i], gathered)
		}
	}
}

// transposedConstant returns the graph y = T(op(T(x), c)), where T swaps the last two axes. The
// engine's optimiser moves the first T past the operator, removes it with the second and swaps the
// axes of c. x is 1 x columns x rows, and c is 1 x rows x columns.
func transposedConstant(t *testing.T, op string, rows, columns int) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	swap := func(v onnx.Value) onnx.Value { return b.Op("Transpose", onnx.Attrs{"perm": []int{0, 2, 1}}, v) }
	c := tensor.New(1, rows, columns)
	for i := range c.Data {
		c.Data[i] = float32(i) + 1
	}
	x, constant := swap(b.Input("x", onnx.Float, 1, columns, rows)), b.Const("c", c)
	switch op {
	case "Where":
		b.Output("y", swap(b.Op(op, nil, b.Op("Greater", nil, x, b.Const("zero", tensor.New(1))), x, constant)))
	case "Concat":
		b.Output("y", swap(b.Op(op, onnx.Attrs{"axis": 2}, x, constant)))
	default:
		b.Output("y", swap(b.Op(op, nil, x, constant)))
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTransposedConstant checks constants that are large enough to be shared, and that the engine's
// optimiser transposes: results are those without optimiser.
func TestTransposedConstant(t *testing.T) {
	rt := orttest.Load(t)
	for _, op := range []string{"Add", "Mul", "Where", "Concat"} {
		for _, shape := range [][2]int{{40, 40}, {16, 100}} {
			rows, columns := shape[0], shape[1]
			m := transposedConstant(t, op, rows, columns)
			compute := func(o ort.Options) []float32 {
				s, err := rt.NewSession(m, o)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				x := make([]float32, rows*columns)
				for i := range x {
					x[i] = float32(i%3) - 1
				}
				in, err := ort.Wrap(rt, x, 1, columns, rows)
				in = value(t, in, err)
				size := columns
				if op == "Concat" {
					size *= 2
				}
				out, err := rt.NewValue(onnx.Float, 1, size, rows)
				out = value(t, out, err)
				run(t, s, []*ort.Value{in}, []*ort.Value{out})
				return slices.Clone(ort.Data[float32](out))
			}
			if got, want := compute(ort.Options{Threads: 1}), compute(ort.Options{Threads: 1, Verbatim: true}); !slices.Equal(got, want) {
				t.Errorf("%s of %d x %d: the results differ from those without optimiser", op, rows, columns)
			}
		}
	}
}

// TestLargeGemmIsNotCopied clears the weight of a fully connected layer, 64 MiB, after the session
// is made: its results are then those of a weight of zeros, since the session has no copy.
func TestLargeGemmIsNotCopied(t *testing.T) {
	rt := orttest.Load(t)
	const n = 4096
	b := onnx.NewBuilder(onnx.DefaultOpset)
	weight := slices.Repeat([]float32{0.5}, n*n)
	x := b.Input("x", onnx.Float, 1, n)
	b.Output("y", b.Op("Gemm", nil, x, b.Const("w", tensor.Tensor{Shape: []int{n, n}, Data: weight})))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := ort.Wrap(rt, slices.Repeat([]float32{1}, n), 1, n)
	in = value(t, in, err)
	out, err := rt.NewValue(onnx.Float, 1, n)
	out = value(t, out, err)
	for _, want := range []float32{n / 2, 0} {
		run(t, s, []*ort.Value{in}, []*ort.Value{out})
		if got := ort.Data[float32](out); got[0] != want || got[n-1] != want {
			t.Errorf("y is %v to %v, want %v", got[0], got[n-1], want)
		}
		clear(m.Proto().Graph.Initializer[0].RawData)
	}
}

// TestInputWithDefault checks a large initializer that is also an input, and so only its default
// value: it is not shared, and a run uses the value that it is given. Detached(1) returns the
// initializers of at least one byte that a session would share.
func TestInputWithDefault(t *testing.T) {
	rt := orttest.Load(t)
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, 2048)
	half := slices.Repeat([]float32{0.5}, 2048)
	b.Output("y", b.Add(x, b.Const("w", tensor.Tensor{Shape: []int{2048}, Data: half})))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	m.Proto().Graph.Input = append(m.Proto().Graph.Input, onnx.ValueInfo{Name: "w", Type: onnx.Float, Shape: onnx.Dims([]int64{2048})}.Proto())
	if _, weights, err := m.Detached(1); err != nil || len(weights) != 0 {
		t.Errorf("%d weights are detached, %v", len(weights), err)
	}
	s, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in := func(v []float32) *ort.Value {
		w, err := ort.Wrap(rt, v, 2048)
		return value(t, w, err)
	}
	out, err := rt.NewValue(onnx.Float, 2048)
	out = value(t, out, err)
	run(t, s, []*ort.Value{in(half), in(slices.Repeat([]float32{1.5}, 2048))}, []*ort.Value{out})
	if got := ort.Data[float32](out); got[0] != 2 || got[2047] != 2 {
		t.Errorf("0.5 + 1.5 is %v to %v, want 2", got[0], got[2047])
	}
}
