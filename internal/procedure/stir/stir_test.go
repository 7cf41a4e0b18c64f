package stir_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/proceduretest"
	"github.com/noether-ml/noether/internal/procedure/stir"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// STIR(b | a), similarity through inverted representations (Nanda et al. 2022), says how far model
// b shares the invariances of the reference model a. For each image x an inversion finds an image
// x' with a(x') near a(x); STIR is the similarity, here linear CKA (centred kernel alignment), of
// b(x) and b(x'). An arbitrary inversion starts from noise. An adversarial one also maximises the
// distance between b(x') and b(x), and a controversial one does so from a start near x. stir.New
// documents the statistics.
//
// Helpers are in helpers_test.go: linear(name, i, j, d) maps the pixels i to j - 1 linearly to d
// numbers, random(n) returns n images of noise, between(a, b, ...) returns the scores of
// STIR(b | a), and value returns one statistic in a variant, of which "" is the default.

const side = 6 // of the images of most models here, in pixels: 36 values

// TestModelWithItself checks that a model shares its own invariances.
func TestModelWithItself(t *testing.T) {
	t.Parallel()
	m := build(t, "m", linear("m", 0, 36, 5))
	for _, s := range []stir.Settings{adam(), stir.Defaults()} {
		if s.Optimiser == "paper" {
			s.Steps, s.StepSize = 300, 0.02
		}
		scores := between(t, m, m, random(40), s)
		if v := value(t, scores, "stir", ""); v.Value < 0.999 || v.N != 40 {
			t.Errorf("%s: STIR of a model with itself is %v, want about 1", s.Optimiser, v)
		}
		if v := value(t, scores, "cka", "").Value; math.Abs(v-1) > 1e-6 {
			t.Errorf("CKA of a model with itself is %v, want 1", v)
		}
		if d := value(t, scores, "representation-distance", ""); d.Value > 0.1 || !(d.Low < d.Value && d.Value < d.High) {
			t.Errorf("representation distance %v, want at most 0.1, within its interval", d)
		}
		if v := value(t, scores, "missed", ""); v.Value != 0 {
			t.Errorf("a fraction of %v of the samples is farther from the reference representation than delta, want 0", v.Value)
		}
		if v := value(t, scores, "agreement", ""); v.Value != 1 {
			t.Errorf("a model agrees with itself on a fraction of %v of the samples, want 1", v.Value)
		}
		if v := value(t, scores, "input-distance", ""); v.Value < 1 || v.Value > 6 {
			t.Errorf("input distance %v, want 1 to 6: pixels that the model ignores should keep their noise", v.Value)
		}
	}
}

// TestConstantModel checks that a constant model shares every invariance of any other model, but
// not the reverse.
func TestConstantModel(t *testing.T) {
	t.Parallel()
	m, c := build(t, "m", linear("m", 0, 36, 5)), build(t, "c", constant)
	x := random(60)
	if v := value(t, between(t, m, c, x, adam()), "stir", ""); v.Value != 1 {
		t.Errorf("STIR(constant | m) is %v, want 1", v.Value)
	}
	back := between(t, c, m, x, adam())
	if v := value(t, back, "stir", ""); v.Value > 0.5 {
		t.Errorf("STIR(m | constant) is %v, want at most 0.5: m should distinguish noise from x", v.Value)
	}
	if v := value(t, back, "representation-distance", ""); v.Value != 0 {
		t.Errorf("the distance for a constant model is %v, want 0", v.Value)
	}
	if v := value(t, back, "cka", ""); v.Value != 0 {
		t.Errorf("CKA with a constant model is %v, want 0", v.Value)
	}
}

// TestNestedInvariances checks that models that read different pixels share no invariance, and that
// a model that reads half of the pixels shares the invariances of a model that reads all, but not
// the reverse.
func TestNestedInvariances(t *testing.T) {
	t.Parallel()
	all, half, other := build(t, "all", linear("a", 0, 36, 36)), build(t, "half", linear("h", 0, 18, 18)), build(t, "other", linear("o", 18, 36, 18))
	x := random(80)
	s := adam()
	s.Steps = 400
	if v := value(t, between(t, all, half, x, s), "stir", ""); v.Value < 0.98 {
		t.Errorf("STIR(half | all) is %v, want about 1", v.Value)
	}
	reverse := value(t, between(t, half, all, x, s), "stir", "").Value
	disjoint := value(t, between(t, half, other, x, s), "stir", "").Value
	if reverse > 0.9 || disjoint > 0.6 || disjoint > reverse {
		t.Errorf("STIR(all | half) is %v, want at most 0.9, and STIR(other | half) %v, want at most 0.6", reverse, disjoint)
	}
}

// TestAdversarialInversion checks that adversarial inversion gives another STIR than arbitrary
// inversion, with images near the reference model's representation, and that controversial stimuli
// (images found by controversial inversion) are nearer to x.
func TestAdversarialInversion(t *testing.T) {
	t.Parallel()
	a, b := build(t, "a", linear("a", 0, 36, 12)), build(t, "b", linear("b", 0, 36, 12))
	s := adam()
	s.Inversions = []string{stir.Arbitrary, stir.Adversarial, stir.Controversial}
	s.Steps = 300
	// Divide distances by the norm of the representation of x, and multiply the distance of b's
	// representations by 0.1.
	s.Normalised, s.Beta = true, 0.1
	scores := between(t, a, b, random(60), s)
	if arbitrary, adversarial := value(t, scores, "stir", ""), value(t, scores, "stir-adversarial", ""); arbitrary.Value == adversarial.Value {
		t.Errorf("STIR is %v with either inversion, want different values", arbitrary.Value)
	}
	if d := value(t, scores, "representation-distance", stir.Adversarial).Value; d > 0.15 {
		t.Errorf("adversarial images are %v from the reference model's representation, want at most 0.15", d)
	}
	if near, far := value(t, scores, "input-distance", stir.Controversial).Value, value(t, scores, "input-distance", stir.Adversarial).Value; near <= 0 || near >= far {
		t.Errorf("controversial stimuli are %v from x, want less than the adversarial ones, %v", near, far)
	}
	// Without normalisation the term of the second model is not bounded, and it dominates the loss.
	s.Normalised, s.Inversions = false, []string{stir.Adversarial}
	plain := between(t, a, b, random(60), s)
	d := value(t, plain, "representation-distance", stir.Adversarial)
	if w := value(t, plain, "stir-adversarial", ""); d.Value < 0.1 || len(w.Warnings) == 0 || !strings.Contains(strings.Join(w.Warnings, " "), "did not get within 0.1") {
		t.Errorf("representation distance %v, warnings %q; want more than 0.1 and a warning", d.Value, w.Warnings)
	}
}

// TestTrainedNetworks checks that CKA is high and STIR much lower for two networks that were
// trained alike, as in the paper on STIR (Nanda et al. 2022).
func TestTrainedNetworks(t *testing.T) {
	t.Parallel()
	a, b := resnet(t, "resnet20"), resnet(t, "resnet32")
	s := adam()
	s.Steps, s.Delta = 25, 0.3
	scores := between(t, a, b, cifar(t, 16), s)
	cka, shared := value(t, scores, "cka", "").Value, value(t, scores, "stir", "").Value
	if !(cka > 0.8 && shared < cka-0.2) {
		t.Errorf("CKA is %v, STIR %v; want more than 0.8, and 0.2 less", cka, shared)
	}
	if v := value(t, scores, "missed", "").Value; v > 0.1 {
		t.Errorf("a fraction of %v of the images is far from the reference model's representation, want at most 0.1", v)
	}
}

// TestMissedDelta checks that there is a warning if too few steps leave images farther than delta,
// the largest relative distance that counts as equal, from the representation.
func TestMissedDelta(t *testing.T) {
	t.Parallel()
	m := build(t, "m", linear("m", 0, 36, 5))
	s := stir.Defaults()
	s.Steps = 1
	scores := between(t, m, m, random(20), s)
	missed := value(t, scores, "missed", "").Value
	w := value(t, scores, "stir", "").Warnings
	if missed == 0 || len(w) == 0 || !strings.Contains(w[len(w)-1], "did not get within 0.1") {
		t.Errorf("missed %v, warnings %q; want above 0, and a warning at the end", missed, w)
	}
}

// TestDroppedSamples checks that samples whose loss becomes NaN are left out, and that a warning
// names the first.
func TestDroppedSamples(t *testing.T) {
	t.Parallel()
	m := build(t, "m", func(b *onnx.Builder, x onnx.Value) onnx.Value {
		// The root of the mean minus 0.44 is NaN for dark images, such as some noise.
		bright := b.Sqrt(b.Sub(b.ReduceMean(b.Flatten(x, 1), true, 1), b.Scalar(0.44)))
		return b.Concat(1, bright, b.Slice(b.Flatten(x, 1), 1, 0, 4, 1))
	})
	x := random(30)
	for i := range x.Data {
		x.Data[i] = 0.5 + x.Data[i]/2
	}
	s := adam()
	s.Steps = 20
	scores := between(t, m, m, x, s)
	v := value(t, scores, "stir", "")
	if v.N >= 30 || v.N < 10 || len(v.Warnings) == 0 || !strings.Contains(v.Warnings[0], "images are left out: their loss became NaN or infinite (the first is image ") {
		t.Errorf("n = %d, warnings %q; want 10 to 29 and a warning", v.N, v.Warnings)
	}
}

// TestNonFiniteImages checks that images for which a model gives NaN are left out of every score.
func TestNonFiniteImages(t *testing.T) {
	t.Parallel()
	flat := func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Flatten(x, 1) }
	plain := build(t, "plain", flat)
	// The root of the first nine values minus 0.3: NaN if one of them is below 0.3.
	rooted := build(t, "rooted", func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Sqrt(b.Add(b.Slice(flat(b, x), 1, 0, 9, 1), b.Scalar(-0.3)))
	})
	x := random(30)
	for i := range 30 {
		for k := range 9 {
			x.At(i).Data[k] = 0.4 + x.At(i).Data[k]/2
		}
	}
	whole := between(t, plain, rooted, x, adam())
	more := tensor.New(append([]int{33}, x.Shape[1:]...)...)
	copy(more.Data, x.Data)
	got := between(t, plain, rooted, more, adam()) // three black images
	for _, name := range []string{"cka", "stir", "missed", "input-distance"} {
		v, want := value(t, got, name, ""), value(t, whole, name, "")
		if v.N != 30 || !strings.Contains(strings.Join(v.Warnings, "; "), "3 of 33 images are left out: a model gives NaN or infinity for them (the first is image 30)") {
			t.Errorf("%s: n = %d, warnings %q; want 30 and a warning about 3 of 33 images", name, v.N, v.Warnings)
		}
		if math.Abs(v.Value-want.Value) > 1e-4 {
			t.Errorf("%s is %v, want %v, as without those images", name, v.Value, want.Value)
		}
	}
	if _, err := stir.Compare(t.Context(), plain, rooted, tensor.New(5, 1, side, side), adam(), 1); err == nil || !strings.Contains(err.Error(), "NaN or infinity") {
		t.Errorf("NaN for all images: error %v, want one about NaN", err)
	}
}

// TestDifferentSizes checks that images are resized for a model of another size.
func TestDifferentSizes(t *testing.T) {
	t.Parallel()
	small := build(t, "small", linear("s", 0, 36, 36))
	large := buildOf(t, "large", onnx.DefaultOpset, 2*side, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Flatten(x, 1) })
	s := adam()
	s.Steps = 600
	if v := value(t, between(t, small, large, random(50), s), "stir", ""); v.Value < 0.97 {
		t.Errorf("STIR(large | small) is %v, want about 1", v.Value)
	}
	s.Inversions, s.Normalised, s.Beta = []string{stir.Adversarial}, true, 0.1
	plain := build(t, "plain", func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Flatten(x, 1) })
	if v := value(t, between(t, plain, large, random(50), s), "stir-adversarial", ""); v.Value < 0.97 {
		t.Errorf("adversarial STIR(large | plain) is %v, want about 1", v.Value)
	}
}

// TestLayerGrid checks that every layer of one model is scored with every layer of the other.
func TestLayerGrid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// "op:Relu" selects the outputs of all ReLUs; each model has one.
	a := open(t, "a", testmodel.Write(t, dir, "a", testmodel.Options{}), "conv", "op:Relu")
	b := open(t, "b", testmodel.Write(t, dir, "b", testmodel.Options{}), "conv", "op:Relu", "logits")
	x, r := tensor.New(12, 3, 16, 16), seed.Rand(2)
	for i := range x.Data {
		x.Data[i] = r.Float32()
	}
	s := adam()
	s.Steps = 5
	seen := map[[2]int]bool{}
	for _, score := range between(t, a, b, x, s) {
		if score.Statistic == "stir" {
			seen[[2]int{score.A, score.B}] = true
			if !(score.Value >= 0 && score.Value <= 1) {
				t.Errorf("STIR of layers %d and %d is %v, want 0 to 1", score.A, score.B, score.Value)
			}
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d pairs of layers have a score, want 6, of 2 and 3 layers", len(seen))
	}
}

// TestResume checks that a resumed job (one run of the measure on two models) gives identical
// scores and repeats no finished work.
func TestResume(t *testing.T) {
	t.Parallel()
	a, b := build(t, "a", linear("a", 0, 36, 12)), build(t, "b", linear("b", 0, 36, 12))
	s := adam()
	s.Steps, s.Inversions = 12, []string{stir.Arbitrary, stir.Adversarial}
	x := random(20)
	want := between(t, a, b, x, s)
	m, err := stir.New(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, stop := range []int64{300, 900, 1300} { // in forward passes of one image, as Job.Progress counts; a step has about 100
		ctx, cancel := context.WithCancel(t.Context())
		j := job(a, b, x)
		steps := 0
		j.Progress = func(done int64, _ string) {
			if done >= stop {
				cancel()
			}
		}
		if _, err := m.Run(ctx, j); !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at %d: error %v, want %v", stop, err, context.Canceled)
		}
		j.Progress = func(done int64, _ string) { steps++ }
		got, err := m.Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if most := 30 - int(stop)/100; steps > most { // a whole job takes about 30 steps
			t.Errorf("stopped at %d: the rest took %d steps, want at most %d", stop, steps, most)
		}
		for i := range want {
			if got[i].Value != want[i].Value || got[i].Statistic != want[i].Statistic {
				t.Errorf("stopped at %d: %v after resuming, want %v", stop, got[i], want[i])
			}
		}
	}
}

// job returns a job that compares the first layers of a and b on the images x. Its checkpoint, from
// which another run of the job continues, is in memory.
func job(a, b procedure.Subject, x tensor.Tensor) *procedure.Job {
	j := proceduretest.Job(a, source{x})
	j.B, j.Pairs = b, [][2]int{{0, 0}}
	return j
}

// A source is a data set of the images x with the labels 0 to 2.
type source struct{ x tensor.Tensor }

func (s source) Len() int            { return s.x.Shape[0] }
func (s source) Classes() []string   { return nil }
func (s source) Factors() []string   { return nil }
func (s source) Fingerprint() string { return "" }
func (s source) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	return dataset.Sample{Index: i, Input: s.x.At(i), Label: i % 3}, nil
}

// TestSharedInversion checks that jobs with different second models share the inversion of the
// first model. They save it in the checkpoint that shared returns for a key.
func TestSharedInversion(t *testing.T) {
	t.Parallel()
	a, b, c := build(t, "a", linear("a", 0, 36, 12)), build(t, "b", linear("b", 0, 36, 12)), build(t, "c", linear("c", 0, 36, 12))
	s := adam()
	s.Steps = 12
	m, err := stir.New(s)
	if err != nil {
		t.Fatal(err)
	}
	x := random(20)
	files := map[string]*checkpoint.Memory{}
	shared := func(key string) state.Checkpoint {
		if files[key] == nil {
			files[key] = &checkpoint.Memory{}
		}
		return files[key]
	}
	for _, other := range []procedure.Subject{b, c} {
		j, steps := job(a, other, x), 0
		j.Shared = shared
		j.Progress = func(int64, string) { steps++ }
		got, err := m.Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if other.Name == "c" && steps > 3 {
			t.Errorf("the inversion was not shared: %d steps, want at most 3", steps)
		}
		for i, want := range between(t, a, other, x, s) {
			if got[i].Value != want.Value {
				t.Errorf("%s: %v with a shared inversion, want %v", other.Name, got[i], want)
			}
		}
	}
	if len(files) != 1 {
		t.Errorf("%d files are shared, want 1", len(files))
	}
}

func TestSettingsErrors(t *testing.T) {
	t.Parallel()
	// "beta is 0.5": Beta has no effect unless Normalised is set.
	for want, change := range map[string]func(*stir.Settings){
		`inversion "fast"`:    func(s *stir.Settings) { s.Inversions = []string{"fast"} },
		"listed twice":        func(s *stir.Settings) { s.Inversions = []string{"arbitrary", "arbitrary"} },
		"no inversions":       func(s *stir.Settings) { s.Inversions = nil },
		`similarity "cosine"`: func(s *stir.Settings) { s.Similarity = []string{"cosine"} },
		"no similarity":       func(s *stir.Settings) { s.Similarity = nil },
		"images is 1":         func(s *stir.Settings) { s.Images = 1 },
		`start "dream"`:       func(s *stir.Settings) { s.Start = "dream" },
		"delta is 0":          func(s *stir.Settings) { s.Delta = 0 },
		"beta is 0.5":         func(s *stir.Settings) { s.Beta = 0.5 },
		"beta is -1":          func(s *stir.Settings) { s.Normalised, s.Beta = true, -1 },
		`optimiser "sgd"`:     func(s *stir.Settings) { s.Optimiser = "sgd" },
		"steps is -3":         func(s *stir.Settings) { s.Steps = -3 },
	} {
		s := stir.Defaults()
		change(&s)
		if _, err := stir.New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: error %v, want %q in it", err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	m := build(t, "m", linear("m", 0, 36, 5))
	if _, err := stir.Compare(t.Context(), m, m, random(1), adam(), 1); err == nil || !strings.Contains(err.Error(), "needs at least two images") {
		t.Errorf("one image: error %v, want one about two images", err)
	}
	if _, err := stir.Compare(t.Context(), m, m, tensor.New(4, 3, 6, 6), adam(), 1); err == nil || !strings.Contains(err.Error(), "takes n x [1 6 6]") {
		t.Errorf("images of another shape: error %v, want one about the shape", err)
	}
	// A cast to integers has no gradient, which an inversion needs.
	rounded := build(t, "rounded", func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Cast(b.Cast(b.Mul(b.Flatten(x, 1), b.Scalar(9)), onnx.Int64), onnx.Float)
	})
	if _, err := stir.Compare(t.Context(), rounded, m, random(5), adam(), 1); err == nil || !strings.Contains(err.Error(), "has no gradient with respect to the image") {
		t.Errorf("a layer without a gradient: error %v, want one about the gradient", err)
	}
	// Adversarial inversion joins both models in one graph, which has one operator set (opset).
	old := buildOf(t, "old", 12, side, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Softmax", nil, b.Flatten(x, 1)) })
	s := adam()
	s.Inversions = []string{stir.Adversarial}
	if _, err := stir.Compare(t.Context(), m, old, random(5), s, 1); err == nil || !strings.Contains(err.Error(), "opset 12, and node") {
		t.Errorf("two operator sets: error %v, want one about opset 12", err)
	}
	infinite := build(t, "infinite", func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Log(b.Sub(b.Flatten(x, 1), b.Scalar(2)))
	})
	if _, err := stir.Compare(t.Context(), m, infinite, random(5), adam(), 1); err == nil || !strings.Contains(err.Error(), `model infinite, layer "z": NaN or infinity`) {
		t.Errorf("NaN in a layer: error %v, want one that names the layer", err)
	}
}
