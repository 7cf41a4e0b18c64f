package model_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/tensor"
)

// TestReloadWeights checks that a model whose weights are freed and read again computes the same
// results, and returns an error if its file has changed.
func TestReloadWeights(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// A small network for images of 3 x 16 x 16, with random weights and the layer conv.
	path := testmodel.Write(t, dir, "m", testmodel.Options{})
	compute := func(reload bool) []float32 {
		m, err := modeltest.Open(t, path, model.Options{Layers: []string{"conv"}}, ort.NetworkOptions{ReloadWeights: reload})
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.NewSession(m.Layers(), true)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		buf, err := s.NewBuffers(1)
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.New(3, 16, 16)
		for i := range x.Data {
			x.Data[i] = float32(i%7) / 7
		}
		if err := s.Run(t.Context(), []tensor.Tensor{x}, buf); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(buf.Layer(0).Data)
	}
	if want, got := compute(false), compute(true); !slices.Equal(want, got) {
		t.Error("weights that were read again give other activations")
	}

	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"conv"}}, ort.NetworkOptions{ReloadWeights: true})
	if err != nil {
		t.Fatal(err)
	}
	// Replace the model's file by one that differs in one weight.
	other := testmodel.Write(t, t.TempDir(), "m", testmodel.Options{Poison: 1})
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if _, err := m.NewSession(m.Layers(), false); err == nil || !strings.Contains(err.Error(), "has changed") || !strings.Contains(err.Error(), filepath.Base(path)) {
		t.Errorf("a file that has changed: %v", err)
	}
}
