package demo

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// built are the two classifiers as files, and test figures that neither has seen.
type built struct {
	rt   *ort.Runtime
	test sample
}

func TestBuild(t *testing.T) {
	rt := orttest.Load(t)
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	files, err := Build(ctx, rt, dir)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(files.Study); err != nil || !strings.Contains(string(text), "oriented.onnx") {
		t.Errorf("the study: %v", err)
	}
	test, err := upright(ctx, 400, 2)
	if err != nil {
		t.Fatal(err)
	}
	w := built{rt, test}
	for _, c := range []struct {
		path            string
		lowest, highest float64 // mean effective invariance under turns
	}{{files.Oriented, 0.4, 0.8}, {files.Invariant, 0.97, 1}} {
		t.Run(filepath.Base(c.path), func(t *testing.T) {
			m, err := onnx.Read(c.path)
			if err != nil {
				t.Fatal(err)
			}
			if out := m.Outputs(); len(out) != 1 || out[0].Name != "logits" || len(out[0].Shape) != 2 || out[0].Shape[1].Size != test.classes {
				t.Errorf("outputs %+v, want logits, batch x %d", out, test.classes)
			}
			clean := w.logits(t, m, test.images)
			if a := accuracy(clean, test.labels); a < 0.97 {
				t.Errorf("accuracy %.3f on upright figures", a)
			}
			sum, turns := 0.0, 0.0
			for degrees := 15.0; degrees < 360; degrees += 15 {
				moved := w.logits(t, m, turned(test.images, degrees))
				ei := effectiveInvariance(clean, moved)
				t.Logf("%3.0f degrees: accuracy %.3f, effective invariance %.3f", degrees, accuracy(moved, test.labels), ei)
				sum, turns = sum+ei, turns+1
				if math.Mod(degrees, 90) == 0 && c.lowest > 0.9 {
					if d := widest(clean, moved); d > 0.02 {
						t.Errorf("a turn by %.0f degrees moves a logit by %g; it is exact by construction", degrees, d)
					}
				}
			}
			if mean := sum / turns; mean < c.lowest || mean > c.highest {
				t.Errorf("mean effective invariance %.3f, want %g to %g", mean, c.lowest, c.highest)
			}
		})
	}
}

func TestBuildErrors(t *testing.T) {
	rt := orttest.Load(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(context.Background(), rt, file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file in place of the folder: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Build(ctx, rt, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func (w built) logits(t *testing.T, m *onnx.Model, images tensor.Tensor) tensor.Tensor {
	t.Helper()
	z, err := run(context.Background(), w.rt, m, "logits", images)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// turned rotates images counter-clockwise, bilinear, filled with black.
func turned(images tensor.Tensor, degrees float64) tensor.Tensor {
	op := transform.Rotate{Angle: transform.Fixed(degrees)}.Draw(nil)
	out := tensor.New(images.Shape...)
	for i := range images.Shape[0] {
		op.Apply(out.At(i), images.At(i))
	}
	return out
}

func accuracy(logits tensor.Tensor, labels []int) float64 {
	right := 0.0
	for i, label := range labels {
		if class, _ := prediction(logits.At(i).Data); class == label {
			right++
		}
	}
	return right / float64(len(labels))
}

func effectiveInvariance(clean, moved tensor.Tensor) float64 {
	sum := 0.0
	for i := range clean.Shape[0] {
		a, p := prediction(clean.At(i).Data)
		if b, q := prediction(moved.At(i).Data); a == b {
			sum += math.Sqrt(p * q)
		}
	}
	return sum / float64(clean.Shape[0])
}

// prediction returns the class of the largest logit and its softmax.
func prediction(logits []float32) (int, float64) {
	most := slices.Max(logits)
	sum := 0.0
	for _, z := range logits {
		sum += math.Exp(float64(z - most))
	}
	return slices.Index(logits, most), 1 / sum
}

func widest(a, b tensor.Tensor) float64 {
	most := 0.0
	for i, v := range a.Data {
		most = max(most, math.Abs(float64(v-b.Data[i])))
	}
	return most
}
