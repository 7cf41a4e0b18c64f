package model_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/onnx"
)

// TestLongChain checks that a model of 30,000 nodes in a chain opens with the shape of each.
func TestLongChain(t *testing.T) {
	t.Parallel()
	const nodes = 30_000
	path := save(t, func(b *onnx.Builder) {
		v := b.Input("x", onnx.Float, -1, 3, 8, 8)
		for range nodes {
			v = b.Relu(v)
		}
		b.Output("y", b.ReduceMean(v, false, 2, 3))
	})
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"all"}})
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
}
