package dense_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// TestFCN checks that the scores of a fully convolutional network on CIFAR-10 images agree with an
// implementation in NumPy and PyTorch, testdata/fcn.py. The class of each position is the largest
// of the logits. scoresOf, in dense_test.go, returns the scores of outputs for images x and T(x),
// and defaults the settings of a study that sets none.
func TestFCN(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/fcn.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden []struct {
		Transform    string
		Scores, Null map[string]float64
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	data, err := dataset.OpenCIFAR10(t.Context(), dataset.CIFAROptions{Paths: []string{testdata.Path(t, "cifar10", "test_batch.bin")}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := modeltest.Open(t, "testdata/fcn.onnx", model.Options{Decode: output.Setting{ClassMap: "logits"}})
	if err != nil {
		t.Fatal(err)
	}
	const n = 40
	images := make([]tensor.Tensor, n)
	for i := range images {
		s, err := data.At(t.Context(), i, m.Frame())
		if err != nil {
			t.Fatal(err)
		}
		images[i] = s.Input
	}
	session, err := m.NewSession([]tensor.Layer{m.DecodedLayer()}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	outputsOf := func(tr transform.Transform) tensor.Tensor {
		buffers, err := session.NewBuffers(n)
		if err != nil {
			t.Fatal(err)
		}
		transformed := make([]tensor.Tensor, n)
		for i, x := range images {
			transformed[i] = tensor.New(x.Shape...)
			tr.Draw(nil).Apply(transformed[i], x)
		}
		if err := session.Run(t.Context(), transformed, buffers); err != nil {
			t.Fatal(err)
		}
		return buffers.Layer(0)
	}
	format, _ := m.Decoded()
	clean := outputsOf(transform.Identity{})
	transforms := map[string]transform.Transform{
		"quarter": transform.Rotate{Angle: transform.Fixed(90)}, "rotate": transform.Rotate{Angle: transform.Fixed(30)}, "flip": transform.Flip{},
		"shift": transform.Translate{X: transform.Fixed(0.0625), Y: transform.Fixed(-0.125)},
	}
	for _, g := range golden {
		got, _ := scoresOf(t, format, defaults(), transforms[g.Transform], clean, outputsOf(transforms[g.Transform]))
		for statistic, want := range g.Scores {
			if s, ok := got[statistic]; !ok || !(math.Abs(s.Value-want) <= 1e-5) || !(math.Abs(s.Null-g.Null[statistic]) <= 1e-5) {
				t.Errorf("%s: %s is %v with the null %v, want %v and %v", g.Transform, statistic, s.Value, s.Null, want, g.Null[statistic])
			}
		}
	}
	if len(golden) != 4 {
		t.Errorf("%d transformations, want 4", len(golden))
	}
}
