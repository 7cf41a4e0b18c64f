package model_test

import (
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort/orttest"
)

// TestLongChain checks that the time to open a model does not grow with the square of its nodes.
// The bound is six times what 5,000 nodes take, and a sixth of what they would take otherwise.
func TestLongChain(t *testing.T) { // alone: it measures the processor time of the process
	rt := orttest.Load(t)
	path := save(t, func(b *onnx.Builder) {
		v := b.Input("x", onnx.Float, -1, 3, 8, 8)
		for range 5000 {
			v = b.Relu(v)
		}
		b.Output("y", b.ReduceMean(v, false, 2, 3))
	})
	start := machine.CPUTime()
	m, err := model.Open(rt, path, model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.Layers()); n != 5001 {
		t.Errorf("%d layers", n)
	}
	s, err := m.NewSession(m.Layers()[4000:4002], false)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if took := machine.CPUTime() - start; took > 8*time.Second {
		t.Errorf("opening took %v of processor time", took)
	}
}
