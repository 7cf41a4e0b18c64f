//go:build cgo

package grad_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
)

// A program is a graph that can be run on operands.
type program struct {
	rt      *ort.Runtime
	session *ort.Session
	inputs  []string
}

func compile(t testing.TB, m *onnx.Model) *program {
	t.Helper()
	return compileWith(t, m, ort.Options{Threads: 1})
}

func compileWith(t testing.TB, m *onnx.Model, o ort.Options) *program {
	t.Helper()
	rt := orttest.Load(t)
	s, err := rt.NewSession(m, o)
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

// observe makes a tensor an output of a graph: its elements, and its shape after a one. The
// engine's binding cannot make room by itself for what has no axes.
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
