package invert_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// build opens a model with images 1 x 2 x 2 whose layer and output are "z".
func build(t testing.TB, make func(b *onnx.Builder, x onnx.Value) onnx.Value) *model.Model {
	t.Helper()
	return buildOf(t, onnx.DefaultOpset, -1, make)
}

// buildOf is build for an operator set and a batch size (-1: any).
func buildOf(t testing.TB, opset, batch int, make func(b *onnx.Builder, x onnx.Value) onnx.Value) *model.Model {
	t.Helper()
	b := onnx.NewBuilder(opset)
	b.Output("z", make(b, b.Input("x", onnx.Float, batch, 1, 2, 2)))
	path := testmodel.Save(t, filepath.Join(t.TempDir(), "net.onnx"), b)
	return open(t, path, "z")
}

func open(t testing.TB, path string, layers ...string) *model.Model {
	t.Helper()
	m, err := modeltest.Open(t, path, model.Options{Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// search returns the result of a search: gradient descent on images x', from p.Start, that
// decreases the loss of the objective. For invert.Match, an inversion, this is |f(x') - f(x)|, with
// a layer f and the images x of p. For invert.Misclassify, an adversarial attack, it is the
// log-probability of the correct class; Result.Loss is then the margin, that minus the largest of
// another class.
func search(t testing.TB, objective invert.Objective, o invert.Options, p invert.Problem) *invert.Result {
	t.Helper()
	s, err := invert.New(objective, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	found, err := s.Run(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// matrix returns a constant with the given number of columns and the values v, row by row.
func matrix(b *onnx.Builder, cols int, v ...float32) onnx.Value {
	return b.Const("", tensor.Tensor{Shape: []int{len(v) / cols, cols}, Data: v})
}

// images returns n x 1 x 2 x 2 images with the given pixels.
func images(values ...float32) tensor.Tensor {
	return tensor.Tensor{Shape: []int{len(values) / 4, 1, 2, 2}, Data: values}
}

var (
	targetImages = images(0.2, 0.7, 0.4, 0.6, 0.8, 0.3, 0.5, 0.5)
	startImages  = images(0.5, 0.5, 0.5, 0.5, 0.9, 0.1, 0.2, 0.7)
)

// TestInvertibleLayer checks that the inversion of an injective representation is the image
// itself.
func TestInvertibleLayer(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.MatMul(b.Flatten(x, 1), matrix(b, 4, 2, 1, 0, 0, 0, 1, 1, 0, 0, 0, 3, 1, 1, 0, 0, 1))
	})
	// The default optimiser, invert.Paper, takes steps along gradients of unit length.
	for _, o := range []invert.Options{{StepSize: 0.005, Steps: 400}, {Optimiser: invert.Adam, StepSize: 0.002, Steps: 800}} {
		found := search(t, invert.Match(m, m.Layers()[0]), o, invert.Problem{Images: targetImages, Start: startImages})
		for i, v := range found.Images.Data {
			if math.Abs(float64(v-targetImages.Data[i])) > 0.01 {
				t.Errorf("%s: pixel %d = %v, want %v", o.Optimiser, i, v, targetImages.Data[i])
			}
		}
	}
}

// TestNullSpace checks that pixels that a layer does not depend on keep the values of the start
// exactly.
func TestNullSpace(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.MatMul(b.Flatten(x, 1), matrix(b, 2, 1, 1, 1, -1, 0, 0, 0, 0))
	})
	for _, optimiser := range []invert.Optimiser{invert.Paper, invert.Adam} {
		o := invert.Options{Optimiser: optimiser, StepSize: 0.004, Steps: 300}
		found := search(t, invert.Match(m, m.Layers()[0]), o, invert.Problem{Images: targetImages, Start: startImages})
		for i, v := range found.Images.Data {
			if used := i%4 < 2; used && math.Abs(float64(v-targetImages.Data[i])) > 0.01 {
				t.Errorf("%s: pixel %d = %v, want %v", optimiser, i, v, targetImages.Data[i])
			} else if !used && v != startImages.Data[i] {
				t.Errorf("%s: pixel %d, which the layer does not depend on, changed from %v to %v", optimiser, i, startImages.Data[i], v)
			}
		}
	}
}

// TestConstantLayer checks that the start is a solution for a constant layer, and that a gradient
// of zero is no error.
func TestConstantLayer(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Mul(b.Flatten(x, 1), b.Scalar(0)) })
	found := search(t, invert.Match(m, m.Layers()[0]), invert.Options{Steps: 5}, invert.Problem{Images: targetImages, Start: startImages})
	if !slices.Equal(found.Images.Data, startImages.Data) || !slices.Equal(found.Loss, []float64{0, 0}) || found.Dropped != nil {
		t.Errorf("got %v, want the start with loss 0", found)
	}
}

// TestStartAtSolution checks that a search that starts at the solution, where the gradient is 0/0,
// does not change the images.
func TestStartAtSolution(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Flatten(x, 1) })
	for _, optimiser := range []invert.Optimiser{invert.Paper, invert.Adam} {
		found := search(t, invert.Match(m, m.Layers()[0]), invert.Options{Optimiser: optimiser, Steps: 5}, invert.Problem{Images: targetImages, Start: targetImages})
		if !slices.Equal(found.Images.Data, targetImages.Data) || found.Dropped != nil {
			t.Errorf("%s: got %v, want the start", optimiser, found)
		}
	}
}

// TestNonFinite checks that a sample whose loss becomes NaN is dropped and that the others are not
// affected.
func TestNonFinite(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Sqrt(b.Sub(b.Flatten(x, 1), b.Scalar(0.25)))
	})
	x := images(0.9, 0.8, 0.7, 0.6, 0.9, 0.8, 0.7, 0.6, 0.9, 0.8, 0.7, 0.6)
	start := images(0.5, 0.5, 0.5, 0.5, 0.1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
	for _, optimiser := range []invert.Optimiser{invert.Paper, invert.Adam} {
		o := invert.Options{Optimiser: optimiser, StepSize: 0.005, Steps: 200}
		found := search(t, invert.Match(m, m.Layers()[0]), o, invert.Problem{Images: x, Start: start})
		if !slices.Equal(found.Dropped, []int{1}) || !math.IsNaN(found.Loss[1]) || found.Loss[0] > 0.02 || found.Loss[2] > 0.02 {
			t.Errorf("%s: dropped %v with losses %v, want sample 1 dropped and small losses of the others", optimiser, found.Dropped, found.Loss)
		}
	}
}

// TestBestBeforeNonFinite checks that a search whose loss becomes NaN returns the best image before
// that step.
func TestBestBeforeNonFinite(t *testing.T) {
	t.Parallel()
	// The layer is the first pixel, and NaN below 0.4.
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		v := b.Slice(b.Flatten(x, 1), 1, 0, 1, 1)
		return b.Add(v, b.Mul(b.Sqrt(b.Sub(v, b.Scalar(0.4))), b.Scalar(0)))
	})
	x := images(0.45, 0.5, 0.5, 0.5)
	o := invert.Options{StepSize: 0.07, Steps: 10} // the first pixel: 0.6, 0.53, 0.46, 0.39
	found := search(t, invert.Match(m, m.Layers()[0]), o, invert.Problem{Images: x, Start: images(0.6, 0.5, 0.5, 0.5)})
	if !slices.Equal(found.Dropped, []int{0}) || math.Abs(found.Loss[0]-0.01) > 1e-5 || math.Abs(float64(found.Images.Data[0])-0.46) > 1e-5 {
		t.Errorf("dropped %v, loss %v, image %v; want the image 0.46 with a loss of 0.01", found.Dropped, found.Loss, found.Images.Data[0])
	}
}

// TestLinearClassifier checks by how much an attack decreases the margin of a linear classifier
// with two classes: by radius times |w0 - w1|_2 in an l2 ball, and by radius times |w0 - w1|_1 in
// an linf ball.
func TestLinearClassifier(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.MatMul(b.Flatten(x, 1), matrix(b, 2, 3, 0, 0, 1, 1, 0, 0, -2))
	})
	x := images(0.5, 0.5, 0.5, 0.5)
	clean := 0.5 * (3 - 1 + 1 + 2)
	for norm, decrease := range map[invert.Norm]float64{invert.L2: math.Sqrt(9 + 1 + 1 + 4), invert.Linf: 3 + 1 + 1 + 2} {
		o := invert.Options{Steps: 20, StepSize: 0.05, Ball: invert.Ball{Norm: norm, Radius: 0.125}}
		found := search(t, invert.Misclassify(m, nil), o, invert.Problem{Images: x, Start: x, Labels: []int{0}})
		if want := clean - 0.125*decrease; math.Abs(found.Loss[0]-want) > 1e-5 {
			t.Errorf("%s: margin = %v, want %v", norm, found.Loss[0], want)
		}
	}
}

// TestSomeOutputs checks that an attack on outputs 0 and 2 of a model ignores output 1.
func TestSomeOutputs(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.MatMul(b.Flatten(x, 1), matrix(b, 3, 3, 9, 0, 0, 9, 1, 1, 9, 0, 0, 9, -2))
	})
	x := images(0.5, 0.5, 0.5, 0.5)
	o := invert.Options{Steps: 20, StepSize: 0.05, Ball: invert.Ball{Norm: invert.L2, Radius: 0.125}}
	found := search(t, invert.Misclassify(m, []int{0, 2}), o, invert.Problem{Images: x, Start: x, Labels: []int{0}})
	// As in TestLinearClassifier, the weights of the two outputs differ by (3, -1, 1, 2).
	if want := 2.5 - 0.125*math.Sqrt(15); math.Abs(found.Loss[0]-want) > 1e-5 {
		t.Errorf("margin = %v, want %v", found.Loss[0], want)
	}
}

// TestProjection checks that results lie in the ball and in [0, 1], for any optimiser and start.
// testmodel.Write makes a small network of images of 3 x 16 x 16 with the layers conv and logits.
func TestProjection(t *testing.T) {
	m := open(t, testmodel.Write(t, t.TempDir(), "net", testmodel.Options{}), "logits")
	rapid.Check(t, func(r *rapid.T) {
		ball := invert.Ball{Norm: rapid.SampledFrom([]invert.Norm{invert.L2, invert.Linf}).Draw(r, "norm"), Radius: rapid.Float64Range(1e-3, 3).Draw(r, "radius")}
		o := invert.Options{Steps: 4, Optimiser: rapid.SampledFrom([]invert.Optimiser{invert.Paper, invert.Adam}).Draw(r, "optimiser"),
			StepSize: rapid.Float64Range(1e-3, 5).Draw(r, "step"), Ball: ball}
		rand := seed.Rand(rapid.Uint64().Draw(r, "seed"))
		x := random(rand, 2, 3, 16, 16)
		start := x.Clone()
		for i := range 2 {
			copy(start.At(i).Data, ball.Draw(x.At(i), rand).Data)
		}
		found := search(t, invert.Misclassify(m, nil), o, invert.Problem{Images: x, Start: start, Labels: []int{1, 2}})
		for i := range 2 {
			var l2, linf float64
			for k, v := range found.Images.At(i).Data {
				if v < 0 || v > 1 {
					r.Fatalf("pixel %d = %v, want a value in [0, 1]", k, v)
				}
				d := math.Abs(float64(v) - float64(x.At(i).Data[k]))
				l2, linf = l2+d*d, max(linf, d)
			}
			got := map[invert.Norm]float64{invert.L2: math.Sqrt(l2), invert.Linf: linf}[ball.Norm]
			if got > ball.Radius*(1+1e-5)+1e-6 {
				r.Fatalf("%s distance = %v, want at most the radius %v", ball.Norm, got, ball.Radius)
			}
		}
	})
}

func random(r *rand.Rand, shape ...int) tensor.Tensor {
	t := tensor.New(shape...)
	for i := range t.Data {
		t.Data[i] = r.Float32()
	}
	return t
}

// TestResume checks that a resumed search gives identical results, at whichever step it was
// interrupted.
func TestResume(t *testing.T) {
	t.Parallel()
	m := open(t, testmodel.Write(t, t.TempDir(), "net", testmodel.Options{}), "conv")
	x := random(seed.Rand(1), 5, 3, 16, 16)
	start := random(seed.Rand(2), 5, 3, 16, 16)
	for _, optimiser := range []invert.Optimiser{invert.Paper, invert.Adam} {
		o := invert.Options{Optimiser: optimiser, Steps: 10, Batch: 2} // three batches of the five images
		want := search(t, invert.Match(m, m.Layers()[0]), o, invert.Problem{Images: x, Start: start})
		// Runs of ONNX Runtime after which the search is interrupted; a batch has 11 (see below).
		for _, stop := range []int{1, 7, 11, 12, 20, 32} {
			s, err := invert.New(invert.Match(m, m.Layers()[0]), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			saved := &checkpoint.Memory{}
			ctx, cancel := context.WithCancel(t.Context())
			runs := 0
			p := invert.Problem{Images: x, Start: start, Checkpoint: saved, Progress: func(invert.Progress) {
				if runs++; runs == stop {
					cancel()
				}
			}}
			if _, err := s.Run(ctx, p); !errors.Is(err, context.Canceled) {
				t.Fatalf("stopped at %d: error %v, want %v", stop, err, context.Canceled)
			}
			p.Progress = func(p invert.Progress) { runs++ }
			found, err := s.Run(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(found.Images.Data, want.Images.Data) || !slices.Equal(found.Loss, want.Loss) {
				t.Errorf("%s: stopped at %d: resuming gives other images or losses", optimiser, stop)
			}
			if runs != 33 { // three batches of 10 steps, and one more run each for the last images
				t.Errorf("%s: stopped at %d: %d runs of the engine in all, want 33", optimiser, stop, runs)
			}
		}
	}
}

// TestCheckpoint checks that the checkpoint (the saved state) of another search is ignored and that
// a damaged checkpoint is an error.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Flatten(x, 1) })
	// stopped returns the checkpoint of a search that was interrupted after three steps of both
	// samples.
	stopped := func(start tensor.Tensor) *checkpoint.Memory {
		s, err := invert.New(invert.Match(m, m.Layers()[0]), invert.Options{Steps: 9})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		saved := &checkpoint.Memory{}
		ctx, cancel := context.WithCancel(t.Context())
		_, _ = s.Run(ctx, invert.Problem{Images: targetImages, Start: start, Checkpoint: saved, Progress: func(p invert.Progress) {
			if p.Done >= 6 {
				cancel()
			}
		}})
		return saved
	}
	o := invert.Options{Steps: 9}
	want := search(t, invert.Match(m, m.Layers()[0]), o, invert.Problem{Images: targetImages, Start: startImages})
	other := stopped(images(0, 0, 0, 0, 1, 1, 1, 1))
	if other.Saves == 0 {
		t.Fatal("the interrupted search has not saved a checkpoint")
	}
	if found := search(t, invert.Match(m, m.Layers()[0]), o, invert.Problem{Images: targetImages, Start: startImages, Checkpoint: other}); !slices.Equal(found.Loss, want.Loss) {
		t.Errorf("the checkpoint of another search was used")
	}
	s, err := invert.New(invert.Match(m, m.Layers()[0]), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	damaged := stopped(startImages)
	damaged.State[len(damaged.State)/2] ^= 1
	if _, err := s.Run(t.Context(), invert.Problem{Images: targetImages, Start: startImages, Checkpoint: damaged}); err == nil || !strings.Contains(err.Error(), "checkpoint") {
		t.Errorf("Run with a damaged checkpoint: error %v, want one that names the checkpoint", err)
	}
}

// TestFixedBatch checks that a model with a fixed batch size gives the same results as one with a
// variable batch size.
func TestFixedBatch(t *testing.T) {
	t.Parallel()
	linear := func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.MatMul(b.Flatten(x, 1), matrix(b, 2, 1, 2, 3, -1, 0, 1, 2, 2))
	}
	variable, fixed := build(t, linear), buildOf(t, onnx.DefaultOpset, 3, linear)
	x, start := random(seed.Rand(1), 4, 1, 2, 2), random(seed.Rand(2), 4, 1, 2, 2)
	o := invert.Options{Steps: 30, StepSize: 0.05}
	want := search(t, invert.Match(variable, variable.Layers()[0]), o, invert.Problem{Images: x, Start: start})
	got := search(t, invert.Match(fixed, fixed.Layers()[0]), o, invert.Problem{Images: x, Start: start})
	for i, v := range got.Images.Data {
		if math.Abs(float64(v-want.Images.Data[i])) > 1e-5 {
			t.Fatalf("pixel %d = %v, want %v", i, v, want.Images.Data[i])
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	flat := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Flatten(x, 1) })
	// truncated has no gradient, since it converts to integers; old has the operator set 8.
	truncated := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Cast(b.Cast(b.Mul(b.Flatten(x, 1), b.Scalar(10)), onnx.Int64), onnx.Float)
	})
	old := buildOf(t, 8, -1, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Flatten(x, 1) })
	layer := flat.Layers()[0]
	for name, c := range map[string]struct {
		objective invert.Objective
		options   invert.Options
		problem   invert.Problem
		want      string
	}{
		"no gradient":    {invert.Match(truncated, truncated.Layers()[0]), invert.Options{}, invert.Problem{Images: targetImages, Start: startImages}, "has no gradient with respect to the image"},
		"opset":          {invert.Match(old, old.Layers()[0]), invert.Options{}, invert.Problem{Images: targetImages, Start: startImages}, "but a search needs 9 or later"},
		"optimiser":      {invert.Match(flat, layer), invert.Options{Optimiser: "sgd"}, invert.Problem{}, `unknown optimiser "sgd": it must be paper or adam`},
		"steps":          {invert.Match(flat, layer), invert.Options{Steps: -1}, invert.Problem{}, "steps is -1"},
		"step size":      {invert.Match(flat, layer), invert.Options{StepSize: math.NaN()}, invert.Problem{}, "step size NaN"},
		"ball":           {invert.Match(flat, layer), invert.Options{Ball: invert.Ball{Norm: "l1", Radius: 1}}, invert.Problem{}, `norm "l1"`},
		"radius":         {invert.Match(flat, layer), invert.Options{Ball: invert.Ball{Norm: invert.L2}}, invert.Problem{}, "radius 0"},
		"no terms":       {invert.Distances{}, invert.Options{}, invert.Problem{}, "no terms"},
		"shape":          {invert.Match(flat, layer), invert.Options{}, invert.Problem{Images: tensor.New(2, 1, 3, 3), Start: startImages}, "takes n x [1 2 2]"},
		"no images":      {invert.Match(flat, layer), invert.Options{}, invert.Problem{Images: tensor.New(0, 1, 2, 2), Start: tensor.New(0, 1, 2, 2)}, "images have shape"},
		"start":          {invert.Match(flat, layer), invert.Options{}, invert.Problem{Images: targetImages, Start: tensor.New(1, 1, 2, 2)}, "the start has shape"},
		"NaN":            {invert.Match(flat, layer), invert.Options{}, invert.Problem{Images: targetImages, Start: images(0, 0, 0, 0, 0, float32(math.NaN()), 0, 0), Names: []string{"a", "b"}}, "the start of b contains NaN"},
		"labels missing": {invert.Misclassify(flat, nil), invert.Options{}, invert.Problem{Images: targetImages, Start: startImages}, "0 labels for 2 images"},
		"label":          {invert.Misclassify(flat, nil), invert.Options{}, invert.Problem{Images: targetImages, Start: startImages, Labels: []int{0, 4}}, "sample 1 has label 4, but there are 4 classes"},
		"output":         {invert.Misclassify(flat, []int{0, 7}), invert.Options{}, invert.Problem{}, "class 7 is not in the range"},
	} {
		s, err := invert.New(c.objective, c.options)
		if err == nil {
			_, err = s.Run(t.Context(), c.problem)
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", name, err, c.want)
		}
	}
}

func TestCancelledContext(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Flatten(x, 1) })
	s, err := invert.New(invert.Match(m, m.Layers()[0]), invert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Run(ctx, invert.Problem{Images: targetImages, Start: startImages}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// TestTimeLimitOfDifferentiation sets a limit for all models of the process, so it runs alone.
func TestTimeLimitOfDifferentiation(t *testing.T) {
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Flatten(x, 1) })
	rt := orttest.Load(t)
	rt.LimitRuns(time.Nanosecond)
	defer rt.LimitRuns(0)
	_, err := invert.New(invert.Match(m, m.Layers()[0]), invert.Options{})
	if late := (*engine.TimeLimitError)(nil); !errors.As(err, &late) {
		t.Errorf("error %v, want that the time limit has passed", err)
	}
}
