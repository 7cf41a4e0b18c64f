package run_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sbinet/npyio/npy"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// textGolden is testdata/text/golden.json: outputs of a text encoder by PyTorch, and scores by
// numpy. Beside it are text.py, which made it, the encoder, and 30 texts as arrays of tokens and
// masks: clean.npz, and moved.npz, in which one word of each text is replaced.
type textGolden struct {
	Hidden [][][]float64      // of the first texts, a vector for each token
	Pooled [][]float64        // of all texts, the mean over tokens
	Logits [][]float64        // of all texts
	Scores map[string]float64 // by "measure layer statistic"; without a layer, "measure statistic"
}

func readTextGolden(t *testing.T) (g textGolden) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "text", "golden.json"))
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTextEncoder compares the layers of a text encoder, whose attention is masked, with PyTorch.
func TestTextEncoder(t *testing.T) {
	t.Parallel()
	g := readTextGolden(t)
	texts, err := dataset.OpenRawArrays(t.Context(), dataset.RawArraysOptions{Inputs: filepath.Join("testdata", "text", "clean.npz")})
	if err != nil {
		t.Fatal(err)
	}
	defer texts.Close()
	names := []string{"hidden", "pooled", "logits"}
	m, err := modeltest.Open(t, filepath.Join("testdata", "text", "encoder.onnx"), model.Options{Layers: names, Arrays: texts.Describe(0).Arrays})
	if err != nil {
		t.Fatal(err)
	}
	if l := m.Layers()[0]; !m.TakesArrays() || l.Axes != "NTC" || l.Shape[0] != 12 || l.Shape[1] != 16 || m.Classes() != 3 {
		t.Errorf("layer %+v of a model of %d classes, want 12 tokens x 16 channels, and 3 classes", l, m.Classes())
	}
	session, err := m.NewBatchSession(m.Layers(), true, 20, nil) // true: with class scores; 20: samples of a batch
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	buffers, err := session.NewBuffers(20)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < texts.Len(); from += 20 { // two batches of different sizes
		var inputs []tensor.Tensor
		for i := from; i < min(from+20, texts.Len()); i++ {
			s, err := texts.At(t.Context(), i, m.Frame())
			if err != nil {
				t.Fatal(err)
			}
			inputs = append(inputs, s.Input)
		}
		if err := session.Run(t.Context(), inputs, buffers); err != nil {
			t.Fatal(err)
		}
		for i := range inputs {
			if at := from + i; at < len(g.Hidden) {
				for k, token := range g.Hidden[at] {
					sameVector(t, buffers.Layer(0).At(i).Data[16*k:][:16], token)
				}
			}
			sameVector(t, buffers.Layer(1).At(i).Data, g.Pooled[from+i])
			sameVector(t, buffers.Layer(2).At(i).Data, g.Logits[from+i])
		}
	}
}

// sameVector compares the first values of a slice with all wanted ones.
func sameVector(t *testing.T, got []float32, want []float64) {
	t.Helper()
	for i, v := range want {
		if math.Abs(float64(got[i])-v) > 1e-5 {
			t.Fatalf("value %d is %v, want %v", i, got[i], v)
		}
	}
}

// textStudy is a study with measures of arrays, and with two of images, which give no scores. The
// layout raw means that arrays are given to the model as they are. The layer residual stands for
// all sums of two branches of a network.
const textStudy = `name: text
data: [{name: words, pairs: {clean: clean.npz, moved: moved.npz, layout: raw}}]
models: [{name: encoder, onnx: encoder.onnx, layers: [hidden, pooled, residual]}]
measures: [accuracy, effective-invariance, prediction-divergence, distance, retrieval, invariance, seis, similarity: {statistics: [linear-cka, debiased-cka]}, latent-operator, equivariance-error, robust-accuracy]
`

// TestTextStudy measures a text encoder on pairs of texts of which one word differs. Every measure
// that needs no images gives scores.
func TestTextStudy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("testdata", "text")
	r := studytest.Run(t, studytest.Parse(t, dir, textStudy), filepath.Join(t.TempDir(), "run"), studytest.Options(t))
	want, seen := readTextGolden(t).Scores, map[string]bool{}
	for _, row := range r.Rows {
		seen[row.Measure] = true
		key := strings.Join(strings.Fields(strings.Join([]string{row.Measure, row.Layer, row.Statistic}, " ")), " ")
		if v, ok := want[key]; ok && row.Variant == "" && row.Parameter == "" {
			if math.Abs(row.Value-v) > 1e-5 || row.N != 30 || row.Transform != "pair" {
				t.Errorf("%s: %+v, want %v", key, row, v)
			}
			delete(want, key)
		}
	}
	if len(want) > 0 {
		t.Errorf("no scores of %v", want)
	}
	for _, name := range strings.Fields("accuracy effective-invariance prediction-divergence distance retrieval invariance seis similarity latent-operator") {
		if !seen[name] {
			t.Errorf("no scores of %s", name)
		}
	}
	for _, name := range []string{"equivariance-error", "robust-accuracy"} {
		if seen[name] {
			t.Errorf("%s has scores, but it needs images", name)
		}
	}
}

// Studies of a text encoder and of data that do not fit it fail with one line.
func TestTextErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"clean.npz", "moved.npz", "encoder.onnx"} {
		raw, err := os.ReadFile(filepath.Join("testdata", "text", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	saveGraph(t, filepath.Join(dir, "short.onnx"), func(b *onnx.Builder) {
		b.Output("y", b.Cast(b.Input("input_ids", onnx.Int64, -1, 8), onnx.Float))
	})
	saveGraph(t, filepath.Join(dir, "image.onnx"), func(b *onnx.Builder) {
		b.Output("y", b.Relu(b.Input("x", onnx.Float, -1, 3, 8, 8)))
	})
	const base = "name: bad\ndata: [DATA]\nmodels: [{name: m, onnx: MODEL}]\nmeasures: [distance]\n"
	pairs := "{name: words, pairs: {clean: clean.npz, moved: moved.npz, layout: raw}}"
	for _, c := range []struct{ data, model, transforms, want string }{
		{"{name: words, arrays: {inputs: clean.npz, key: input_ids}}", "encoder.onnx", "", "an array of shape [30 12] does not hold images, which are N x H x W x C, N x C x H x W or N x H x W: set layout: raw"},
		{pairs, "short.onnx", "", `input "input_ids" (int64[batch 8]) does not take array "input_ids" of shape [samples 12]`},
		{pairs, "image.onnx", "", "no input takes arrays of attention_mask [12] and input_ids [12]: the model has x float[batch 3 8 8]"},
		{"{name: words, arrays: {inputs: clean.npz, key: input_ids, layout: raw}}", "encoder.onnx", "", `input "attention_mask" (int64[batch tokens]) needs values`},
		{"{name: words, arrays: {inputs: clean.npz, layout: raw, max: 3}}", "encoder.onnx", "", "max is the value of white of images"},
		{pairs, "encoder.onnx, preprocess: {mean: 0.5}", "", "preprocess is for images and audio"},
		{pairs, "encoder.onnx, output: {boxes: detr}", "", "only a model of images has an output with a place in an image"},
		{"{name: words, arrays: {inputs: clean.npz, layout: raw}}", "encoder.onnx", "transforms: [{name: turn, rotate: 90}]\n", "transformation turn applies to images or audio, but model m takes arrays: give transformed arrays as pairs"},
		{pairs + ", {name: shapes, shapes: {n: 30, size: 8}}", "encoder.onnx", "", "model m takes arrays, but data shapes are images"},
	} {
		s, err := study.Parse(filepath.Join(dir, "study.yaml"), []byte(strings.NewReplacer("DATA", c.data, "MODEL", c.model).Replace(base)+c.transforms), nil)
		var p *study.Plan
		if err == nil {
			p, err = study.NewPlan(t.Context(), s, studytest.Options(t))
		}
		if err == nil {
			if len(p.Failures.Causes) > 0 {
				err = p.Failures.Causes[0]
			}
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s of %s: %v, want %q", c.model, c.data, err, c.want)
		}
	}
	// A constant can be given for an input that the data lack: here a mask of ones for all texts.
	s := studytest.Parse(t, dir, "name: ones\ndata: [{name: words, arrays: {inputs: clean.npz, key: input_ids, layout: raw}}]\nmodels: [{name: m, onnx: encoder.onnx, inputs: {attention_mask: 1}, layers: [pooled]}]\nmeasures: [accuracy]\n")
	p, err := study.NewPlan(t.Context(), s, studytest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
}

// TestLieDerivativeSkipsArrays measures a network on arrays of float32: there is no Lie derivative,
// whose transformations are of images.
func TestLieDerivativeSkipsArrays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "x.npy"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(npy.Write(f, [20][3][4][4]float32{}), f.Close()); err != nil {
		t.Fatal(err)
	}
	saveGraph(t, filepath.Join(dir, "net.onnx"), func(b *onnx.Builder) {
		b.Output("y", b.Relu(b.Input("x", onnx.Float, -1, 3, 4, 4)))
	})
	const text = "name: arrays\ndata: [{name: x, arrays: {inputs: x.npy, layout: raw}}]\nmodels: [{name: net, onnx: net.onnx, layers: [y]}]\nmeasures: [lie-derivative]\n"
	_, err = study.Run(t.Context(), studytest.Parse(t, dir, text), filepath.Join(dir, "run"), studytest.Options(t))
	if err == nil || err.Error() != "there is nothing to measure: lie-derivative: it takes arrays, but the transformations are of images" {
		t.Errorf("error %v", err)
	}
}
