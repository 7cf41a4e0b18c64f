package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine"
)

// TestConstantInputs checks the values of inputs with the batch in different places, for two
// samples.
func TestConstantInputs(t *testing.T) {
	t.Parallel()
	free, fixed := engine.Dim{Size: -1, Symbol: "batch"}, func(n int) engine.Dim { return engine.Dim{Size: n} }
	unnamed := engine.Dim{Size: -1}
	wave := engine.Port{Name: "input", Type: engine.Float, Shape: []engine.Dim{free, {Size: -1, Symbol: "samples"}}}
	for name, c := range map[string]struct {
		shape  []engine.Dim
		values []float64
		want   []float32
	}{
		"batch first":           {[]engine.Dim{free, fixed(2)}, []float64{1, 2}, []float32{1, 2, 1, 2}},
		"batch second":          {[]engine.Dim{fixed(2), free, fixed(2)}, []float64{1, 2, 3, 4}, []float32{1, 2, 1, 2, 3, 4, 3, 4}},
		"batch last":            {[]engine.Dim{fixed(2), free}, []float64{1, 2}, []float32{1, 1, 2, 2}},
		"one number, unnamed":   {[]engine.Dim{fixed(2), unnamed, fixed(1)}, []float64{7}, []float32{7, 7, 7, 7}},
		"no batch":              {nil, []float64{3}, []float32{3}},
		"size from the values":  {[]engine.Dim{free, unnamed}, []float64{1, 2, 3}, []float32{1, 2, 3, 1, 2, 3}},
		"size before the batch": {[]engine.Dim{{Size: -1, Symbol: "layers"}, free}, []float64{1, 2}, []float32{1, 1, 2, 2}},
	} {
		in := engine.Port{Name: "state", Type: engine.Float, Shape: c.shape}
		if c.shape == nil {
			in.Shape = []engine.Dim{}
		}
		found, err := constantInputs([]engine.Port{wave, in}, []string{"input"}, map[string][]float64{"state": c.values}, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		a, err := found[0].value(2)
		if err != nil || !slices.Equal(a.Data.([]float32), c.want) {
			t.Errorf("%s: %v, %v; want %v", name, a, err, c.want)
		}
	}
	state := engine.Port{Name: "state", Type: engine.Float, Shape: []engine.Dim{fixed(2), free, fixed(8)}}
	inputs := []engine.Port{wave, state, {Name: "sr", Type: engine.Int64, Shape: []engine.Dim{}}}
	_, err := constantInputs(inputs, []string{"input"}, nil, nil)
	for _, want := range []string{`"state"`, `"sr"`, "set inputs: {state: 0, sr: 16000}"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without values: %v, want %s", err, want)
		}
	}
	if found, layout, ok := findAudioInput(inputs, Options{}); !ok || found.Name != "input" || layout != layoutWave {
		t.Errorf("waveforms enter %s, %s", found.Name, layout)
	}
}

// TestSizeInputs checks the values that are proposed for the inputs by which detectors return pixels.
func TestSizeInputs(t *testing.T) {
	t.Parallel()
	port := func(name string, typ engine.Type, sizes ...int) engine.Port {
		p := engine.Port{Name: name, Type: typ}
		for _, n := range sizes {
			p.Shape = append(p.Shape, engine.Dim{Size: n})
		}
		return p
	}
	for _, c := range []struct {
		image engine.Port
		want  string
	}{
		{port("images", engine.Float, -1, 3, 480, 640), "{orig_target_sizes: [640, 480], im_shape: [480, 640], scale_factor: 1}"},
		{port("images", engine.Uint8, 1, 480, 640, 3), "{orig_target_sizes: [640, 480], im_shape: [480, 640], scale_factor: 1}"},
		{port("images", engine.Float, -1, 3, -1, -1), "{orig_target_sizes: 640, im_shape: 640, scale_factor: 1}"},
	} {
		inputs := []engine.Port{c.image, port("orig_target_sizes", engine.Int64, -1, 2), port("im_shape", engine.Float, -1, 2), port("scale_factor", engine.Float, -1, 2)}
		if _, err := constantInputs(inputs, []string{"images"}, nil, nil); err == nil || !strings.Contains(err.Error(), "set inputs: "+c.want) {
			t.Errorf("%v: %v, want %s", c.image, err, c.want)
		}
	}
}
