package demo

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

func TestDiscriminantAgreesWithNormalDensities(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/discriminant.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		X           []float32
		Labels      []int
		Differences []float64 // of each class's log density from that of class 0, n x 3
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	const classes, d = 3, 3
	x, err := tensor.From(golden.X, len(golden.Labels), d)
	if err != nil {
		t.Fatal(err)
	}
	w, bias, err := discriminant(x, golden.Labels, classes)
	if err != nil {
		t.Fatal(err)
	}
	for i := range golden.Labels {
		var z [classes]float64
		for c := range z {
			z[c] = float64(bias.Data[c])
			for j, v := range x.At(i).Data {
				z[c] += float64(v * w.Data[j*classes+c])
			}
		}
		for c := range z {
			if want := golden.Differences[i*classes+c]; math.Abs(z[c]-z[0]-want) > 1e-3 {
				t.Errorf("sample %d, class %d: %g, want %g", i, c, z[c]-z[0], want)
			}
		}
	}
}

func TestDiscriminantErrors(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for want, c := range map[string]struct {
		x      []float32
		labels []int
	}{
		"class 1 has no samples":   {[]float32{1, 2, 3}, []int{0, 0, 0}},
		"2 samples are too few":    {[]float32{1, 2}, []int{0, 1}},
		"constant or not finite":   {[]float32{1, 1, 2, 2}, []int{0, 0, 1, 1}},
		"a feature is constant or": {[]float32{1, 2, 3, nan}, []int{0, 0, 1, 1}},
	} {
		x := tensor.Tensor{Shape: []int{len(c.x), 1}, Data: c.x}
		if _, _, err := discriminant(x, c.labels, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", c.x, err, want)
		}
	}
}
