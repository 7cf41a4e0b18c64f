package model_test

import (
	"slices"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort/orttest"
)

// TestLongChain checks that the time to open a model does not grow with the square of its nodes.
// 30,000 nodes take 2 s of processor time. They would take 8.5 s if each shape were an output of
// the graph that computes the shapes of layers; joinShapes concatenates them.
func TestLongChain(t *testing.T) { // not parallel: it measures the processor time of the process
	const nodes = 30_000
	rt := orttest.Load(t)
	path := save(t, func(b *onnx.Builder) {
		v := b.Input("x", onnx.Float, -1, 3, 8, 8)
		for range nodes {
			v = b.Relu(v)
		}
		b.Output("y", b.ReduceMean(v, false, 2, 3))
	})
	start := machine.CPUTime()
	m, err := model.Open(rt, path, model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.Layers()); n != nodes+1 {
		t.Errorf("%d layers, want %d ReLUs and the mean", n, nodes)
	}
	for _, l := range m.Layers()[:nodes] {
		if !slices.Equal(l.Shape, []int{3, 8, 8}) {
			t.Fatalf("layer %s has shape %v", l.Name, l.Shape)
		}
	}
	s, err := m.NewSession(m.Layers()[nodes-2:nodes], false)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if took := machine.CPUTime() - start; took > 6*time.Second {
		t.Errorf("opening took %v of processor time, want at most 6 s", took)
	}
}
