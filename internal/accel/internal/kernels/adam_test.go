//go:build !noaccel && amd64

package kernels_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// update runs an operator whose inputs are the arrays and then the scalars, and returns its
// outputs. For Adam the arrays are parameter, gradient and two moments; the scalars are step,
// epsilon and the factor of weight decay. TestAdam has the formulas.
func update(t testing.TB, op string, attrs onnx.Attrs, threads, outputs int, arrays [][]float32, scalars ...float32) ([][]float32, error) {
	t.Helper()
	var in []tensor.Tensor
	for _, a := range arrays {
		in = append(in, tensor.Tensor{Shape: []int{len(a)}, Data: a})
	}
	for _, r := range scalars {
		in = append(in, tensor.Tensor{Data: []float32{r}})
	}
	out, err := run(t, op, attrs, threads, outputs, in...)
	var results [][]float32
	for _, y := range out {
		results = append(results, y.Data)
	}
	return results, err
}

// A node is a session for a graph of one node, with its inputs and outputs.
type node struct {
	session *ort.Session
	in, out []*ort.Value
	err     error // of making the session
}

// newNode makes the session of a node with the given number of outputs.
func newNode(t testing.TB, domain, op string, attrs onnx.Attrs, threads, outputs int, tensors ...tensor.Tensor) node {
	t.Helper()
	rt := orttest.Load(t)
	b := onnx.NewBuilder(onnx.DefaultOpset)
	b.NeedDomain("noether", 1)
	var n node
	var names []onnx.Value
	for i, x := range tensors {
		names = append(names, b.Input(fmt.Sprintf("x%d", i), onnx.Float, x.Shape...))
		value, err := ort.Wrap(rt, slices.Clone(x.Data), x.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		n.in = append(n.in, value)
	}
	for i, v := range b.Node(domain, op, outputs, attrs, names...) {
		b.Output(fmt.Sprintf("y%d", i), v)
		n.out = append(n.out, nil)
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	n.session, n.err = rt.NewSession(m, ort.Options{Threads: threads})
	return n
}

func (n *node) close() {
	n.session.Close()
	for _, v := range n.out {
		v.Close()
	}
}

// run executes one node of a native operator: one of package kernels, written in C, in the ONNX
// domain "noether".
func run(t testing.TB, op string, attrs onnx.Attrs, threads, outputs int, tensors ...tensor.Tensor) ([]tensor.Tensor, error) {
	t.Helper()
	n := newNode(t, "noether", op, attrs, threads, outputs, tensors...)
	if n.err != nil {
		return nil, n.err
	}
	defer n.close()
	if err := n.session.Run(t.Context(), n.in, n.out); err != nil {
		return nil, err
	}
	var outputTensors []tensor.Tensor
	for _, v := range n.out {
		outputTensors = append(outputTensors, v.Tensor().Clone())
	}
	return outputTensors, nil
}

// random returns k arrays of n normal values; those of the last, a second moment, are squared.
func random(key uint64, k, n int) [][]float32 {
	r, out := seed.Rand(key, "kernels"), make([][]float32, k)
	for i := range out {
		out[i] = make([]float32, n)
		for j := range out[i] {
			out[i][j] = float32(r.NormFloat64())
			if i == k-1 {
				out[i][j] *= out[i][j]
			}
		}
	}
	return out
}

// assertNear compares element i of the output of the given name.
func assertNear(t *rapid.T, name string, i int, got float32, want float64) {
	if d := math.Abs(float64(got) - want); !(d <= 2e-6*max(1, math.Abs(want))) {
		t.Fatalf("%s[%d] is %g, want %g", name, i, got, want)
	}
}

// lengths are around those of SIMD vectors (8 values) and of the blocks that threads share out.
var lengths = rapid.OneOf(rapid.IntRange(1, 40), rapid.SampledFrom([]int{1 << 14, 1<<14 + 5, 1 << 15, 1<<15 + 9, 100000}))

// TestAdam compares with the formulas in float64: p is the parameter, m and v are the moments.
func TestAdam(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		x := random(uint64(rapid.IntRange(0, 1000).Draw(r, "seed")), 4, lengths.Draw(r, "n"))
		const beta1, beta2, step, epsilon = 0.9, 0.999, 0.125, 1e-3
		decay := rapid.SampledFrom([]float32{1, 0.75}).Draw(r, "decay")
		got, err := update(t, "Adam", onnx.Attrs{"beta1": beta1, "beta2": beta2}, 2, 3, x, step, epsilon, decay)
		if err != nil {
			r.Fatal(err)
		}
		for i := range x[0] {
			p, g := float64(x[0][i]), float64(x[1][i])
			m, v := beta1*float64(x[2][i])+g, beta2*float64(x[3][i])+g*g
			assertNear(r, "m", i, got[1][i], m)
			assertNear(r, "v", i, got[2][i], v)
			assertNear(r, "p", i, got[0][i], float64(decay)*p-step*m/(math.Sqrt(v)+epsilon))
		}
	})
}

// The result does not depend on the number of threads.
func TestAdamThreads(t *testing.T) {
	x := random(1, 4, 1<<16+13)
	one, err1 := update(t, "Adam", onnx.Attrs{"beta1": 0.9, "beta2": 0.999}, 1, 3, x, 0.1, 1e-8, 1)
	two, err2 := update(t, "Adam", onnx.Attrs{"beta1": 0.9, "beta2": 0.999}, 2, 3, x, 0.1, 1e-8, 1)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for i := range one {
		if !slices.Equal(one[i], two[i]) {
			t.Errorf("output %d differs between one thread and two", i)
		}
	}
}

// NaN and infinity are kept, and tensors may be empty.
func TestAdamNonFinite(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	got, err := update(t, "Adam", nil, 1, 3, [][]float32{{inf, 1}, {1, nan}, {0, 0}, {0, 0}}, 1, 1, 1)
	if err != nil || got[0][0] != inf || got[0][1] == got[0][1] {
		t.Error(got, err)
	}
	if got, err = update(t, "Adam", nil, 1, 3, [][]float32{{}, {}, {}, {}}, 1, 1, 1); err != nil || len(got[0]) != 0 {
		t.Error(got, err)
	}
}

func TestAdamShapeErrors(t *testing.T) {
	x := func(n int) []float32 { return make([]float32, n) }
	for _, arrays := range [][][]float32{{x(5), x(4), x(5), x(5)}, {x(5), x(5), x(5), x(6)}} {
		_, err := update(t, "Adam", nil, 1, 3, arrays, 1, 1, 1)
		if err == nil || !strings.Contains(err.Error(), "differs in size from its parameter") || strings.Contains(err.Error(), "\n") {
			t.Errorf("a gradient or a moment of another size: error %v", err)
		}
	}
}

// filled returns a tensor of normal values.
func filled(key uint64, shape ...int) tensor.Tensor {
	return tensor.Tensor{Shape: shape, Data: random(key, 2, tensor.Size(shape))[0]}
}
