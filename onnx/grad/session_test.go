//go:build cgo

package grad_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A session runs a graph on operands, the inputs of an operator under test.
type session struct {
	rt      *ort.Runtime
	session *ort.Session
	inputs  []string
}

// compile returns a session of a model with one thread, closed at the end of the test.
func compile(t testing.TB, m *onnx.Model) *session {
	t.Helper()
	return compileWith(t, m, ort.Options{Threads: 1})
}

func compileWith(t testing.TB, m *onnx.Model, o ort.Options) *session {
	t.Helper()
	rt := orttest.Load(t)
	s, err := rt.NewSession(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	p := &session{rt: rt, session: s}
	for _, in := range m.Inputs() {
		p.inputs = append(p.inputs, in.Name)
	}
	return p
}

// outputs runs the session and returns its outputs, which the caller closes.
func (p *session) outputs(t testing.TB, feed map[string]operand) []*ort.Value {
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
	return out
}

// run returns the outputs that addOutputWithShape added. Operands are fed by input name.
func (p *session) run(t testing.TB, feed map[string]operand) []tensor.Tensor {
	t.Helper()
	out := p.outputs(t, feed)
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

// addOutputWithShape adds two outputs: the elements of a tensor, as a vector, and its shape. The
// binding to ONNX Runtime cannot allocate outputs of rank 0, hence the vector. A 1 comes before the
// shape, so that the shape of a scalar is not an empty output.
func addOutputWithShape(b *onnx.Builder, name string, v onnx.Value) {
	b.Output(name, b.Reshape(v, -1))
	b.Output(name+"/shape", b.Concat(0, b.Ints(1), b.Shape(v)))
}

// feed returns the operands by the names of their inputs: x0, x1 and so on.
func (tc testCase) feed() map[string]operand {
	feed := map[string]operand{}
	for i, o := range tc.operands {
		feed[fmt.Sprintf("x%d", i)] = o
	}
	return feed
}
