package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/transform"
)

// numbers returns n numbers in [-1, 1) from a linear congruential generator, the same as
// testdata/golden.py.
func numbers(n int, seed uint32) []float64 {
	out := make([]float64, n)
	for i := range out {
		seed = 1664525*seed + 1013904223
		out[i] = float64(seed)/(1<<31) - 1
	}
	return out
}

// goldenRun returns a run, a measure in progress, on the problem of testdata/golden.py: 600 vectors
// of 16 numbers (in), a target to regress (number) and a target of three classes (class). Probes
// are small networks that predict a target from a vector.
func goldenRun(t testing.TB, training *Training) (r *run, in *probeInput, number, class *target) {
	t.Helper()
	const n, d = 600, 16
	x := numbers(n*d, 1)
	noise := numbers(n, 2)
	data := make([]float32, len(x))
	for i, v := range x {
		data[i] = float32(v)
	}
	number, class = &target{name: "y", value: make([]float64, n)}, &target{name: "c", classes: 3, class: make([]int, n)}
	for i := range n {
		v := x[i*d:]
		number.value[i] = 0.5*v[0] + 0.3*v[1]*v[2] + 0.4*math.Abs(v[3]) + 0.1*noise[i]
		if v[0] > 0 {
			class.class[i]++
		}
		if v[1]+v[2] > 0.5 {
			class.class[i]++
		}
	}
	r, in = runOf(t, training, d, data)
	return r, in, number, class
}

// runOf returns a run on vectors of d numbers. The first 400 are for training, the next 100 for
// validation and the rest for the test.
func runOf(t testing.TB, training *Training, d int, data []float32) (*run, *probeInput) {
	t.Helper()
	n := len(data) / d
	k, err := loadCheckpoint(nil, "") // an empty one
	if err != nil {
		t.Fatal(err)
	}
	r := &run{training: training, checkpoint: k, store: &features.Store{Dir: t.TempDir()}, samples: &features.Samples{Positions: make([]int, n)},
		job: &procedure.Job{Graphs: ort.Compiler{Runtime: orttest.Load(t)}, Progress: func(int64, string) {}, A: procedure.Subject{Model: linearModel(t, identity())}}}
	for i := range n {
		r.samples.Positions[i] = i
		switch {
		case i < 400:
			r.split.train = append(r.split.train, i)
		case i < 500:
			r.split.validation = append(r.split.validation, i)
		default:
			r.split.test = append(r.split.test, i)
		}
	}
	return r, newProbeInput("golden", r.samples.Positions, features.NewTable(nil, d, data))
}

// TestRidge checks that ridge regression finds the weights of an exactly linear target.
func TestRidge(t *testing.T) {
	t.Parallel()
	training := defaultTraining()
	r, in, number, _ := goldenRun(t, &training)
	for i := range number.value { // exactly linear
		var v [16]float32
		if err := in.row(v[:], i); err != nil {
			t.Fatal(err)
		}
		number.value[i] = 3 + float64(v[0]) - 2*float64(v[5])
	}
	p := &probeSpec{kind: Ridge, input: in, target: number, train: r.split.train, validation: r.split.validation}
	w, err := p.ridge()
	if err != nil {
		t.Fatal(err)
	}
	for j, v := range w["layer1.weight"].Data {
		want := map[int]float64{0: 1, 5: -2}[j]
		if math.Abs(float64(v)-want) > 1e-5 {
			t.Errorf("weight %d = %v, want %v", j, v, want)
		}
	}
	if c := w["layer1.bias"].Data[0]; math.Abs(float64(c)-3) > 1e-5 {
		t.Errorf("bias = %v, want 3", c)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	p, y := []float64{1, 2, 4, 4}, []float64{1, 2, 3, 6}
	if got, want := rmse(p, y), math.Sqrt(5.0/4); math.Abs(got-want) > 1e-12 {
		t.Errorf("rmse = %v, want %v", got, want)
	}
	if got, want := r2(p, y), 1-5.0/14; math.Abs(got-want) > 1e-12 {
		t.Errorf("r2 = %v, want %v", got, want)
	}
	if got := r2(p, []float64{7, 7, 7, 7}); !math.IsNaN(got) {
		t.Errorf("r2 of a constant = %v, want NaN", got)
	}
	a, b := []float64{0, 0, 1, 2, 2}, []float64{0, 1, 1, 1, 2}
	if got := accuracy(a, b); got != 0.6 {
		t.Errorf("accuracy = %v, want 0.6", got)
	}
	// By class: TP 1 FP 1 FN 0; TP 1 FP 0 FN 2; TP 1 FP 1 FN 0.
	if got, want := f1(a, b), (2.0/3+0.5+2.0/3)/3; math.Abs(got-want) > 1e-12 {
		t.Errorf("f1 = %v, want %v", got, want)
	}
}

// TestSplit checks that each sample is in exactly one part (training, validation or test), for any
// fractions, and that the parts do not depend on the transformation. The settings Test and
// Validation may name the values of a factor (a known property of a sample) whose samples are in
// that part.
func TestSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(20, 300).Draw(t, "n")
		s := &features.Samples{Positions: make([]int, n), Label: make([]int, n), Factors: map[string][]float64{"digit": make([]float64, n)}}
		for i := range n {
			s.Factors["digit"][i] = float64(i % 10)
		}
		training := defaultTraining()
		a := rapid.Float64Range(0.2, 0.7).Draw(t, "train")
		training.Split = []float64{a, (1 - a) / 2, (1 - a) / 2}
		if rapid.Bool().Draw(t, "named") {
			training.Test = Part{Factor: "digit", Values: []float64{0, 3}}
		}
		if rapid.Bool().Draw(t, "named for validation") {
			training.Validation = Part{Factor: "digit", Values: []float64{5}}
		}
		k := measure.Key{Seed: rapid.Uint64().Draw(t, "seed"), Data: "d", Transform: "one"}
		got, err := training.split(s, nil, k)
		if err != nil {
			t.Fatal(err)
		}
		k.Transform = "two"
		again, _ := training.split(s, nil, k)
		count := make([]int, n)
		for p, part := range [][]int{got.train, got.validation, got.test} {
			for at, i := range part {
				count[i]++
				if [][]int{again.train, again.validation, again.test}[p][at] != i {
					t.Fatal("the split depends on the transformation")
				}
				if training.Test.Factor != "" && (p == 2) != (i%10 == 0 || i%10 == 3) {
					t.Fatalf("sample %d is in part %d, against the setting test", i, p)
				}
				if training.Validation.Factor != "" && (p == 1) != (i%10 == 5) {
					t.Fatalf("sample %d is in part %d, against the setting validation", i, p)
				}
			}
		}
		for i, c := range count {
			if c != 1 {
				t.Fatalf("sample %d is in %d parts, want 1", i, c)
			}
		}
	})
}

// TestResume checks that a resumed job (one run of a measure on a model and its data; see factorJob
// in factors_test.go) gives the scores of an uninterrupted one, with an empty store of
// representations (the vectors of a layer) and another number of threads, that it continues the
// training of the interrupted probe, and that a truncated checkpoint is an error. The probes are of
// the kind slp, a single linear layer.
func TestResume(t *testing.T) {
	t.Parallel()
	s := quickSettings()
	s.Factors, s.Probe, s.Seeds, s.Patience = []string{"x", "y"}, []string{SLP}, 2, 40
	m, err := Informativeness(s)
	if err != nil {
		t.Fatal(err)
	}
	net := linearModel(t, identity())
	uninterrupted := factorJob(t, 300, net, nil)
	uninterrupted.Threads = 1
	want := mustRun(t, m, nil, uninterrupted)
	j := factorJob(t, 300, net, nil)
	saved := &checkpoint.Memory{}
	j.Checkpoint, j.Threads = saved, 2
	ctx, cancel := context.WithCancel(t.Context())
	j.Progress = func(_ int64, note string) {
		if strings.Contains(note, "x slp, seed 2, epoch 8") {
			cancel()
		}
	}
	if _, err := m.Run(ctx, j); !errors.Is(err, context.Canceled) {
		t.Fatalf("Run with a cancelled context: error %v, want %v", err, context.Canceled)
	}
	if saved.State == nil {
		t.Fatal("the interrupted job has not saved a checkpoint")
	}
	firstEpoch := math.MaxInt // that the resumed job reports of the interrupted probe
	j.Progress = func(_ int64, note string) {
		var epoch int
		if _, after, ok := strings.Cut(note, "x slp, seed 2, epoch "); ok {
			if _, err := fmt.Sscanf(after, "%d:", &epoch); err == nil {
				firstEpoch = min(firstEpoch, epoch)
			}
		}
	}
	j.Store = &features.Store{Dir: t.TempDir()}
	got := mustRun(t, m, nil, j)
	if firstEpoch < 9 || firstEpoch == math.MaxInt {
		t.Errorf("the interrupted probe continues with epoch %d, want 9 or later, but not none", firstEpoch)
	}
	for name, w := range want {
		if g := got[name]; g.Value != w.Value || g.Null != w.Null && !math.IsNaN(w.Null) {
			t.Errorf("%s = %v with null %v, want %v with null %v", name, g.Value, g.Null, w.Value, w.Null)
		}
	}
	for cut := 0; cut < len(saved.State); cut += 1 + len(saved.State)/20 {
		if _, err := loadCheckpoint(&checkpoint.Memory{State: saved.State[:cut]}, "300 samples, 1 layers"); err == nil && cut > 0 {
			t.Fatalf("loadCheckpoint accepted %d of %d bytes, want an error", cut, len(saved.State))
		}
	}
}

// TestSharedProbes checks that a measure uses probes that another has trained and saved in the
// store (a folder on disk).
func TestSharedProbes(t *testing.T) {
	t.Parallel()
	s := quickSettings()
	s.Factors, s.Probe = []string{"x"}, []string{SLP}
	inf, err := Informativeness(s)
	if err != nil {
		t.Fatal(err)
	}
	dis, err := Disentanglement(s)
	net := linearModel(t, identity())
	first := factorJob(t, 300, net, nil)
	epochs := 0 // that the first measure reports
	first.Progress = func(_ int64, note string) {
		if strings.Contains(note, "epoch") {
			epochs++
		}
	}
	mustRun(t, inf, nil, first)
	second := factorJob(t, 300, net, shiftOf(0, -1, 1))
	second.Store, second.A = first.Store, first.A
	reports := 0
	second.Progress = func(_ int64, note string) {
		reports++
		if strings.Contains(note, "epoch") {
			t.Errorf("a probe was trained again: %s", note)
		}
	}
	mustRun(t, dis, err, second)
	if epochs == 0 || reports == 0 {
		t.Errorf("%d reports of epochs of training, and %d of the second measure, want some of both", epochs, reports)
	}
}

func TestSettingsErrors(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(*InformativenessSettings){
		"no probe":                func(s *InformativenessSettings) { s.Probe = nil },
		"unknown probe":           func(s *InformativenessSettings) { s.Probe = []string{"svm"} },
		"probe twice":             func(s *InformativenessSettings) { s.Probe = []string{SLP, SLP} },
		"hidden 0":                func(s *InformativenessSettings) { s.Hidden = []int{0} },
		"rate 0":                  func(s *InformativenessSettings) { s.Rate = 0 },
		"rate NaN":                func(s *InformativenessSettings) { s.Rate = math.NaN() },
		"two fractions":           func(s *InformativenessSettings) { s.Split = []float64{0.5, 0.5} },
		"sum of fractions 1.5":    func(s *InformativenessSettings) { s.Split = []float64{0.5, 0.5, 0.5} },
		"no seeds":                func(s *InformativenessSettings) { s.Seeds = 0 },
		"test of no factor":       func(s *InformativenessSettings) { s.Test.Values = []float64{1} },
		"validation of no values": func(s *InformativenessSettings) { s.Validation.Factor = "x" },
		"scale 0":                 func(s *InformativenessSettings) { s.Scale = map[string]float64{"x": 0} },
		"factor twice":            func(s *InformativenessSettings) { s.Factors = []string{"x", "x"} },
	} {
		s := informativenessDefaults()
		invalidate(&s)
		if _, err := Informativeness(s); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line", name, err)
		}
	}
}

// TestSkipAndErrors checks which jobs are skipped or fail. A transformation is drawn for each
// sample, or, with PerTrial, once for a trial (a repetition of all random draws). A probe can
// predict its parameter only if that varies between samples.
func TestSkipAndErrors(t *testing.T) {
	t.Parallel()
	net := linearModel(t, identity())
	s := quickSettings()
	s.Probe = []string{Ridge}
	inf, _ := Informativeness(s)
	if why := inf.Skip(factorJob(t, 5, net, nil)); !strings.Contains(why, "too few") {
		t.Errorf("Skip of five samples = %q, want too few", why)
	}
	s.Factors = []string{"depth"}
	inf, _ = Informativeness(s)
	if _, err := inf.Run(t.Context(), factorJob(t, 50, net, nil)); err == nil || !strings.Contains(err.Error(), `no factor "depth": they have hue, rotation, x, y, label`) {
		t.Errorf("Run with an unknown factor: error %v, want one that lists the factors", err)
	}
	s.Factors = []string{Label}
	inf, _ = Informativeness(s)
	unlabelled := factorJob(t, 50, net, nil)
	read := unlabelled.Read
	unlabelled.Read = func(ctx context.Context, positions []int, f dataset.Frame) ([]dataset.Sample, error) {
		samples, err := read(ctx, positions, f)
		for i := range samples {
			samples[i].Label = dataset.NoLabel
		}
		return samples, err
	}
	if _, err := inf.Run(t.Context(), unlabelled); err == nil || !strings.Contains(err.Error(), "no sample has a label") {
		t.Errorf("Run on samples without labels: error %v, want one about labels", err)
	}
	s.Factors, s.Test = []string{"x"}, Part{Factor: "label", Values: []float64{7}}
	inf, _ = Informativeness(s)
	if _, err := inf.Run(t.Context(), factorJob(t, 50, net, nil)); !errors.Is(err, measure.ErrTooFew) {
		t.Errorf("Run without test samples: error %v, want %v", err, measure.ErrTooFew)
	}
	e := equivarianceDefaults()
	par, _ := ParameterEquivariance(e)
	for want, tr := range map[string]*procedure.Transform{
		"once for a trial":            {Name: "t", PerTrial: true, Values: []procedure.Value{{Transform: addToPixel{0, transform.Uniform(0, 1)}}}, Range: &transform.Distribution{Low: 0, High: 1}},
		"no parameter that varies":    {Name: "t", Values: []procedure.Value{{Transform: swap{0, 1}}}},
		"5 samples are too few":       shiftOf(0, 0, 1),
		"at least 10 are needed":      shiftOf(0, 0, 1),
		"t has no parameter that var": {Name: "t", Values: []procedure.Value{{Transform: addToPixel{0, transform.Fixed(1)}}}, Range: &transform.Distribution{Low: 1, High: 1}},
	} {
		if why := par.Skip(factorJob(t, 5, net, tr)); !strings.Contains(why, want) {
			t.Errorf("Skip = %q, want %q in it", why, want)
		}
	}
}

// TestTargetWarnings checks the warnings for a constant factor ("same"), classes of one sample
// ("rare") and unknown values ("gaps").
func TestTargetWarnings(t *testing.T) {
	t.Parallel()
	samples := &features.Samples{Positions: make([]int, 100), Label: make([]int, 100), Factors: map[string][]float64{"same": make([]float64, 100), "rare": make([]float64, 100), "gaps": make([]float64, 100)}}
	r := &run{samples: samples}
	for i := range 100 {
		samples.Label[i] = dataset.NoLabel
		samples.Factors["rare"][i] = float64(i)
		samples.Factors["gaps"][i] = float64(i)
		if i%3 == 0 {
			samples.Factors["gaps"][i] = math.NaN()
		}
	}
	training := defaultTraining()
	var err error
	if r.split, err = training.split(samples, nil, measure.Key{}); err != nil {
		t.Fatal(err)
	}
	s := Targets{Classes: []string{"rare"}}
	for name, want := range map[string]string{"same": "same is constant", "rare": "20 of 100 classes of rare have no training sample", "gaps": "34 samples have no gaps"} {
		got, err := s.target(nil, samples, name)
		if err != nil {
			t.Fatal(err)
		}
		parts := got.checkSplit(r.split)
		if len(got.warnings) == 0 || !strings.Contains(strings.Join(got.warnings, "; "), want) {
			t.Errorf("warnings for %s = %q, want %q", name, got.warnings, want)
		}
		for _, i := range parts.train {
			if !got.known(i) {
				t.Errorf("%s: sample %d without a value is used for training", name, i)
			}
		}
	}
	if got, err := s.target(nil, samples, Label); err != nil || len(got.checkSplit(r.split).train) != 0 {
		t.Errorf("target of labels that no sample has: error %v, want none and no training samples", err)
	}
}

// TestConstantFactor checks that a label with one value gives a warning, and that fewer samples
// than a batch are accepted.
func TestConstantFactor(t *testing.T) {
	t.Parallel()
	s := quickSettings()
	s.Factors, s.Probe, s.Epochs = []string{Label, "x"}, []string{SLP, Ridge}, 3
	m, err := Informativeness(s)
	found := mustRun(t, m, err, factorJob(t, 24, linearModel(t, identity()), nil))
	a := found["accuracy slp label"]
	if a.Value != 1 || len(a.Warnings) != 1 || a.Warnings[0] != "label is constant" {
		t.Errorf("accuracy with one class = %+v, want 1 with a warning", a)
	}
	if x := found["rmse ridge x"]; x.N != 2 || x.Value > 1e-3 {
		t.Errorf("rmse of ridge = %+v, want 0 with n = 2", x)
	}
}

// TestNullIsAMeanOverSeeds checks that the statistic is a mean over networks with different seeds,
// and its null a mean over as many networks, each trained on its own shuffle of the targets.
func TestNullIsAMeanOverSeeds(t *testing.T) {
	t.Parallel()
	// The null of a statistic is its value by chance, that of networks for shuffled targets.
	// Networks 0, 1 and 2 score 0, 0.1 and 0.2, and their nulls, -1, -2 and -3, score -0.1 to -0.3.
	e := estimate{name: "r2", n: 40, seeds: 3, max: 1, compute: func(network int, _ []int) float64 { return 0.1 * float64(network) }}
	if s := e.score(); math.Abs(s.Value-0.1) > 1e-12 || math.Abs(s.Null+0.2) > 1e-12 {
		t.Errorf("value %v and null %v, want 0.1 and -0.2", s.Value, s.Null)
	}
	r := &run{training: &Training{Seeds: 3}, job: &procedure.Job{}, samples: &features.Samples{Positions: make([]int, 30)}}
	seeds, nulls, _ := r.seedsAndNulls(probeSpec{name: "p", kind: MLP, train: dataset.Indices(30)}, "x")
	if len(seeds) != 3 || len(nulls) != 3 {
		t.Fatalf("%d probes and %d nulls, want 3 of each", len(seeds), len(nulls))
	}
	for i, p := range nulls {
		if p.seed != seeds[i].seed || slices.Equal(p.targetSample, nulls[(i+1)%3].targetSample) || seeds[i].targetSample != nil {
			t.Errorf("null %d has the seed %d and the targets %v, want the seed %d and its own shuffle", i, p.seed, p.targetSample, seeds[i].seed)
		}
	}
}
