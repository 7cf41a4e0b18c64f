package robust_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/proceduretest"
	"github.com/noether-ml/noether/internal/procedure/robust"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// standard returns the settings of AutoAttack.
func standard(norm string, radius float64) robust.Settings {
	s := robust.Defaults()
	s.Attack, s.Norm, s.Radius = "autoattack", norm, radius
	return s
}

// runStandard returns the robust and the clean accuracy, and the fractions that each attack broke.
func runStandard(t testing.TB, s robust.Settings, j *procedure.Job) (robustScore, clean measure.Score, broken map[string]float64) {
	t.Helper()
	p, err := robust.New(s)
	broken = map[string]float64{}
	for _, score := range proceduretest.RunJob(t, p, err, j) {
		switch score.Statistic {
		case "robust":
			robustScore = score.Score
		case "clean":
			clean = score.Score
		case "broken":
			broken[score.Variant] = score.Value
		}
	}
	return robustScore, clean, broken
}

// classifier is a linear classifier of images of 1 x 2 x 2 pixels.
type classifier struct{ weights tensor.Tensor } // 4 x classes

func newClassifier(classes int) classifier {
	c, r := classifier{tensor.New(4, classes)}, seed.Rand(5)
	for i := range c.weights.Data {
		c.weights.Data[i] = float32(r.NormFloat64())
	}
	return c
}

func (c classifier) open(t testing.TB) *model.Model {
	return build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.MatMul(b.Flatten(x, 1), b.Const("w", c.weights))
	})
}

// distance returns the distance of x to the closest other class, in a norm, negative if the label
// is not predicted. No value of x may be so close to 0 or 1.
func (c classifier) distance(x []float32, label int, norm string) float64 {
	closest := math.Inf(1)
	for k := range c.weights.Shape[1] {
		if k == label {
			continue
		}
		var margin, l1, l2 float64
		for i, v := range x {
			d := float64(c.weights.At(i).Data[label]) - float64(c.weights.At(i).Data[k])
			margin, l1, l2 = margin+d*float64(v), l1+math.Abs(d), l2+d*d
		}
		dual := l1
		if norm == "l2" {
			dual = math.Sqrt(l2)
		}
		closest = min(closest, margin/dual)
	}
	return closest
}

// images draws n images with random labels.
func (c classifier) images(n int) source {
	s, r := source{x: tensor.New(n, 1, 2, 2)}, seed.Rand(6)
	for i := range s.x.Data {
		s.x.Data[i] = 0.4 + 0.2*r.Float32()
	}
	for i := range n {
		best := 0
		for k := range c.weights.Shape[1] {
			if c.distance(s.x.At(i).Data, k, "l2") > c.distance(s.x.At(i).Data, best, "l2") {
				best = k
			}
		}
		if i%10 == 0 { // a wrong label
			best = (best + 1) % c.weights.Shape[1]
		}
		s.labels = append(s.labels, best)
	}
	return s
}

// TestStandardLinear compares AutoAttack with the exact robust accuracy of linear classifiers.
func TestStandardLinear(t *testing.T) {
	t.Parallel()
	for _, classes := range []int{2, 3, 5, 12} {
		c := newClassifier(classes)
		const n = 30
		m, src := c.open(t), c.images(n)
		for _, norm := range []string{"l2", "linf"} {
			var distances []float64
			for i, label := range src.labels {
				if d := c.distance(src.x.At(i).Data, label, norm); d > 0 {
					distances = append(distances, d)
				}
			}
			slices.Sort(distances)
			correct, want := len(distances), len(distances)/2
			radius := (distances[correct-want-1] + distances[correct-want]) / 2
			got, clean, broken := runStandard(t, standard(norm, radius), job(m, src))
			if math.Round(n*clean.Value) != float64(correct) || math.Round(n*got.Value) != float64(want) {
				t.Errorf("%d classes, %s: %v of %d are correct and %v robust, want %d and %d", classes, norm, n*clean.Value, n, n*got.Value, correct, want)
			}
			sum := 0.0
			for _, v := range broken {
				sum += v
			}
			if math.Abs(sum-(clean.Value-got.Value)) > 1e-9 {
				t.Errorf("%d classes, %s: attacks broke %v, in all %v; the difference of the accuracies is %v", classes, norm, broken, sum, clean.Value-got.Value)
			}
			_, targeted := broken["apgd-t"]
			warned := strings.Contains(strings.Join(got.Warnings, "; "), "apgd-t needs at least 4 classes")
			if targeted != (classes >= 4) || warned == targeted || len(broken) < 3 {
				t.Errorf("%d classes: fractions %v, warnings %q", classes, broken, got.Warnings)
			}
		}
	}
}

// TestStandardResume checks that a job that was cancelled and resumed gives the scores of one that
// was not, and so does one with other batches.
func TestStandardResume(t *testing.T) {
	t.Parallel()
	c := newClassifier(5)
	m, src := c.open(t), c.images(12)
	s := standard("linf", 0.05)
	want, _, wantBroken := runStandard(t, s, job(m, src))
	s.Batch = 4
	method, err := robust.New(s)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	j := job(m, src)
	last := int64(0)
	j.Progress = func(done int64, _ string) {
		if calls++; done < last || done > method.Work(j) {
			t.Errorf("progress %d after %d, of %d", done, last, method.Work(j))
		}
		last = done
	}
	got, _, broken := runStandard(t, s, j)
	equal := func(what string) {
		t.Helper()
		if got.Value != want.Value {
			t.Errorf("%s: robust accuracy %v, want %v", what, got.Value, want.Value)
		}
		for name, v := range wantBroken {
			if broken[name] != v {
				t.Errorf("%s: %s broke %v, want %v", what, name, broken[name], v)
			}
		}
	}
	equal("batches of 4")
	total := calls
	for _, share := range []float64{0, 0.1, 0.5, 0.95} { // of the calls of Progress
		ctx, cancel := context.WithCancel(t.Context())
		j, stop := job(m, src), 1+int(share*float64(total))
		memory := &checkpoint.Memory{}
		calls, j.Checkpoint = 0, memory
		j.Progress = func(int64, string) {
			if calls++; calls == stop {
				cancel()
			}
		}
		if _, err := method.Run(ctx, j); !errors.Is(err, context.Canceled) || memory.Saves != 1 {
			t.Fatalf("stopped at %d: error %v, want %v; saved %d times", stop, err, context.Canceled, memory.Saves)
		}
		calls = 0
		j.Progress = func(int64, string) { calls++ }
		got, _, broken = runStandard(t, s, j)
		if equal("resumed"); calls > total-stop+2*110 {
			t.Errorf("stopped at %d of %d: %d more after resuming", stop, total, calls)
		}
	}
}

// TestStandardOrder checks that a sample's result does not depend on the others.
func TestStandardOrder(t *testing.T) {
	t.Parallel()
	c := newClassifier(5)
	m, src := c.open(t), c.images(8)
	all, _, _ := runStandard(t, standard("l2", 0.08), job(m, src))
	sum := 0.0
	for _, ends := range [][2]int{{0, 1}, {1, 8}} {
		part := source{src.x.Slice(ends[0], ends[1]), src.labels[ends[0]:ends[1]]}
		got, _, _ := runStandard(t, standard("l2", 0.08), job(m, part))
		sum += math.Round(got.Value * float64(ends[1]-ends[0]))
	}
	if sum != math.Round(8*all.Value) {
		t.Errorf("%v of 8 images are robust, and %v in two runs", 8*all.Value, sum)
	}
}

// TestStandardMasked checks the warnings for a network whose gradient is zero, and that Square
// breaks it.
func TestStandardMasked(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		v := b.Op("Floor", nil, b.Mul(b.ReduceSum(b.Flatten(x, 1), true, 1), b.Scalar(20)))
		rest := b.Mul(v, b.Scalar(0))
		return b.Concat(1, b.Sub(v, b.Scalar(32.5)), rest, rest, rest)
	})
	x := tensor.New(5, 1, 2, 2)
	for i := range x.Data {
		x.Data[i] = 0.5
	}
	got, clean, broken := runStandard(t, standard("linf", 0.1), job(m, source{x, make([]int, 5)}))
	text := strings.Join(got.Warnings, "; ")
	if clean.Value != 1 || got.Value != 0 || broken["square"] != 1 || !strings.Contains(text, "the gradient of 5 samples is zero") || !strings.Contains(text, "square, without gradients, broke 5 samples") {
		t.Errorf("robust %v, broken %v, warnings %q", got.Value, broken, got.Warnings)
	}
}

// TestStandardNaN checks that there is no value where all attacks ended in NaN, and that it is told.
func TestStandardNaN(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		v := b.Slice(b.Flatten(x, 1), 1, 0, 1, 1)
		nan := b.Mul(b.Sqrt(b.Sub(v, b.Scalar(0.45))), b.Scalar(0))
		rest := b.Mul(v, b.Scalar(0))
		return b.Concat(1, b.Add(b.Add(v, b.Scalar(3)), nan), rest, rest, rest)
	})
	x := tensor.New(5, 1, 2, 2)
	for i := range x.Data {
		x.Data[i] = 0.5
	}
	got, _, _ := runStandard(t, standard("linf", 0.1), job(m, source{x, make([]int, 5)}))
	if !math.IsNaN(got.Value) || !strings.Contains(strings.Join(got.Warnings, "; "), "the attacks on all 5 samples that withstood them ended in NaN or infinity") {
		t.Errorf("robust %v, warnings %q", got.Value, got.Warnings)
	}
}

// TestStandardWork checks the predicted cost: the passes of the four attacks.
func TestStandardWork(t *testing.T) {
	t.Parallel()
	m, err := robust.New(standard("l2", 0.5))
	if err != nil {
		t.Fatal(err)
	}
	for classes, want := range map[int]int64{2: 1 + 303 + 400 + 5000, 5: 1 + 303 + 4*303 + 4*400 + 5000, 12: 1 + 303 + 9*303 + 9*400 + 5000} {
		c := newClassifier(classes)
		if got := m.Work(job(c.open(t), c.images(3))); got != 3*want {
			t.Errorf("%d classes: work %d, want %d", classes, got, 3*want)
		}
	}
}

// TestStandardErrors checks settings that have no effect, and damaged checkpoints.
func TestStandardErrors(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*robust.Settings){
		func(s *robust.Settings) { s.Steps = 10 },
		func(s *robust.Settings) { s.StepSize = 0.1 },
		func(s *robust.Settings) { s.Restarts = 2 },
		func(s *robust.Settings) { s.Random = false },
	} {
		s := standard("l2", 0.5)
		change(&s)
		if _, err := robust.New(s); err == nil || !strings.Contains(err.Error(), "autoattack has its own") {
			t.Errorf("New: error %v", err)
		}
	}
	s := robust.Defaults()
	s.Attack = "auto"
	if _, err := robust.New(s); err == nil || !strings.Contains(err.Error(), `unknown attack "auto"`) {
		t.Errorf("New: error %v", err)
	}
	c := newClassifier(5)
	j := job(c.open(t), c.images(10))
	memory := &checkpoint.Memory{}
	j.Checkpoint = memory
	ctx, cancel := context.WithCancel(t.Context())
	j.Progress = func(int64, string) { cancel() }
	m, err := robust.New(standard("l2", 0.08))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Run(ctx, j); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	j.Progress = func(int64, string) {}
	for i, state := range [][]byte{memory.State[:len(memory.State)-9], memory.State[:20], append(slices.Clone(memory.State), 0)} {
		j.Checkpoint = &checkpoint.Memory{State: state}
		if _, err := m.Run(t.Context(), j); err == nil || !strings.Contains(err.Error(), "reading the checkpoint") {
			t.Errorf("damaged checkpoint %d: error %v", i, err)
		}
	}
	damaged := slices.Clone(memory.State)
	damaged[len(damaged)-20] ^= 1
	j.Checkpoint = &checkpoint.Memory{State: damaged}
	if _, err := m.Run(t.Context(), j); err == nil {
		t.Error("a checkpoint with another value: no error")
	}
}

// TestStandardServed compares the attacks on a network that is no graph with those on its graph.
func TestStandardServed(t *testing.T) {
	t.Parallel()
	c := newClassifier(5)
	b := onnx.NewBuilder(onnx.DefaultOpset)
	b.Output("logits", b.MatMul(b.Flatten(b.Input("x", onnx.Float, -1, 1, 2, 2), 1), b.Const("w", c.weights)))
	net, err := orttest.Load(t).OpenNetwork(testmodel.Save(t, filepath.Join(t.TempDir(), "net.onnx"), b), ort.NetworkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served, err := model.Open(t.Context(), struct{ engine.Differentiable }{net}, model.Options{Scores: "logits"})
	if err != nil {
		t.Fatal(err)
	}
	src := c.images(20)
	want, _, _ := runStandard(t, standard("l2", 0.08), job(c.open(t), src))
	j := job(served, src)
	j.Graphs = ort.Compiler{Runtime: orttest.Load(t)}
	got, _, _ := runStandard(t, standard("l2", 0.08), j)
	if served.Graph() != nil || got.Value != want.Value {
		t.Errorf("served: robust accuracy %v, want %v", got.Value, want.Value)
	}
}
