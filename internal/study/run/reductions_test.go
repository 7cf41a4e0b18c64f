package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
)

// distances is a study of distances at two layers and of predictions, of 48 samples, which are read
// in blocks of two.
const distances = `name: sums
samples: true
pictures: 4
data: [{name: shapes, shapes: {n: 48, size: 16, seed: 2}}]
models: [{name: net, onnx: net.onnx, layers: [conv, "op:Relu"]}]
transforms: [{name: turn, rotate: {values: [90, 180]}}, {name: drawn, brightness: [0.2, 1.8]}]
trials: 2
measures: [effective-invariance, {distance: {per-class: true}}]
`

// A damagedSource is a data set one sample of which cannot be read.
type damagedSource struct {
	dataset.Source
	damaged int
}

func (s damagedSource) At(ctx context.Context, i int, f dataset.Frame) (dataset.Sample, error) {
	if i == s.damaged {
		return dataset.Sample{}, &dataset.BadSample{Name: "damaged", Err: errors.New("cut short")}
	}
	return s.Source.At(ctx, i, f)
}

// A testPass says how newTestFeeder runs the study distances.
type testPass struct {
	model    testmodel.Options
	damaged  int // position of the sample that cannot be read
	batch    int // 0: 4
	asDevice bool
}

// newTestFeeder returns a feeder of the study distances on the CPU with empty accumulators (running
// sums). With asDevice it computes sums in the model's graph and has two slots (buffers of
// batches), as for a device other than the CPU.
func newTestFeeder(t *testing.T, c testPass) *feeder {
	t.Helper()
	dir := t.TempDir()
	testmodel.Write(t, dir, "net", c.model)
	s, err := catalog.Parse(filepath.Join(dir, "study.yaml"), []byte(distances), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Batch = cmp.Or(c.batch, 4)
	o := plan.Options{Runtime: orttest.Load(t), Threads: 2}
	p, err := plan.New(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	passes := plan.Passes(p.Cells, plan.Limits{Memory: 1 << 30, Cores: 2}, plan.Shard{})
	if len(passes) != 1 {
		t.Fatalf("%d passes, want 1", len(passes))
	}
	f := &feeder{Pass: passes[0], cores: 2, accs: map[*plan.Task]plan.Accumulator{}, stats: &telemetry.Stats{}}
	f.failCell = func(_ *plan.Cell, layer string, _ []string, cause error) error {
		return fmt.Errorf("%s: %w", layer, cause)
	}
	f.dropLayer = func(*plan.Task, error) bool { return false }
	f.Data().Source = damagedSource{f.Data().Source, f.Data().Order.Range(c.damaged, c.damaged+1)[0]}
	limits, slots, want := plan.DivideMemory(s, &o), 1, 0
	if c.asDevice {
		o.Device = "webgpu"
		limits, slots, want = plan.DivideMemory(s, &o), 2, 2
	}
	f.SetBatch(s, limits)
	m := f.Models[0]
	layers, prediction := f.CopiedLayers(m)
	if f.Batch != s.Batch || len(layers) != 2-want || !prediction {
		t.Fatalf("batches of %d, %d layers are copied (prediction: %v), want %d, %d (true)", f.Batch, len(layers), prediction, s.Batch, 2-want)
	}
	r, err := newReader(m, f.Data(), layers, f.Reductions[m], nil, prediction, f.Batch, slots)
	if err != nil {
		t.Fatal(err)
	}
	f.readers = []*reader{r}
	t.Cleanup(func() {
		if err := f.close(); err != nil {
			t.Error(err)
		}
	})
	for _, task := range f.AllTasks() {
		if f.accs[task], err = task.Open(nil); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// valuesOf returns the scores and the per-sample values of a feeder's tasks, in their order.
func valuesOf(t *testing.T, f *feeder) (values []float64) {
	t.Helper()
	for _, task := range f.AllTasks() {
		out, err := task.Compute(f.accs[task])
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range out.Layers {
			for _, s := range l.Scores {
				values = append(values, float64(s.N), s.Value, s.Low, s.High, s.Null)
			}
		}
		for _, s := range out.Samples {
			values = append(values, float64(s.Index), s.Value)
		}
	}
	return values
}

// TestFeederWithReductions checks that the scores and per-sample values from sums in the model's
// graph, with one batch computed while another one is measured, agree with those from activations.
// One sample cannot be read: the first or last of a block and of a batch, or of all.
func TestFeederWithReductions(t *testing.T) {
	t.Parallel()
	for _, damaged := range []int{0, 1, 3, 4, 47} {
		var results [2][]float64
		for i, asDevice := range []bool{false, true} {
			f := newTestFeeder(t, testPass{damaged: damaged, asDevice: asDevice})
			forwards := 0
			if err := f.run(t.Context(), func(n int) error { forwards += n; return nil }); err != nil {
				t.Fatal(err)
			}
			if want := 47 * 5; forwards != want { // clean, two rotations, and two trials of drawn brightness
				t.Errorf("%d forward passes, want %d", forwards, want)
			}
			results[i] = valuesOf(t, f)
		}
		sameValues(t, fmt.Sprintf("sample %d is damaged", damaged), results[1], results[0])
	}
}

// sameValues compares values of a study with sums in the model's graph with those without.
func sameValues(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) || len(want) < 1000 {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d <= 1e-5*max(1, math.Abs(want[i]))) && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestResumeWithReductions checks a run with sums in the model's graph that continues one without,
// and the reverse. The first run ends within a batch, so that some views have read one batch more:
// the half of the first batch of the second run.
func TestResumeWithReductions(t *testing.T) {
	t.Parallel()
	whole := newTestFeeder(t, testPass{damaged: 13})
	if err := whole.run(t.Context(), func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := valuesOf(t, whole)
	for _, asDevice := range []bool{false, true} {
		before, after := newTestFeeder(t, testPass{damaged: 13, asDevice: asDevice}), newTestFeeder(t, testPass{damaged: 13, batch: 8, asDevice: !asDevice})
		stop, ticks := errors.New("stopped"), 0
		err := before.run(t.Context(), func(int) error {
			if ticks++; ticks == 13 { // two batches, clean and under four views, and two views of the third
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) {
			t.Fatalf("error %v", err)
		}
		fed := map[int]bool{}
		tasks := after.AllTasks()
		for i, task := range before.AllTasks() {
			state, err := before.accs[task].MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if err := after.accs[tasks[i]].UnmarshalBinary(state); err != nil {
				t.Fatal(err)
			}
			tasks[i].Fed = task.Fed
			fed[task.Fed] = true
		}
		if len(fed) != 2 || !fed[8] || !fed[12] {
			t.Errorf("tasks have read %v samples, want 8 and 12", fed)
		}
		if err := after.run(t.Context(), func(int) error { return nil }); err != nil {
			t.Fatal(err)
		}
		sameValues(t, fmt.Sprintf("first with sums: %v", asDevice), valuesOf(t, after), want)
	}
}

// TestSlots checks that a batch that is computed while another one is measured does not use the
// slots of that one, and that a view uses the slot of its clean batch.
func TestSlots(t *testing.T) {
	t.Parallel()
	f := newTestFeeder(t, testPass{asDevice: true})
	ctx, cancel := context.WithCancel(t.Context())
	stream := f.prepare(ctx)
	next, wait := f.computed(ctx, stream)
	clean := -1
	var before *computedBatch // the last one of a view
	for {
		c, ok := next()
		if !ok {
			break
		}
		if c.err != nil {
			t.Fatal(c.err)
		}
		if c.view == plan.CleanView {
			if c.clean == clean {
				t.Errorf("two successive clean batches use slot %d", clean)
			}
			clean = c.clean
			continue
		}
		if c.clean != clean {
			t.Errorf("a view uses slot %d of clean batches, want %d", c.clean, clean)
		}
		if before != nil && before.transformed == c.transformed {
			t.Errorf("two successive batches of views use slot %d", c.transformed)
		}
		c.show(f.readers)
		r := f.readers[0]
		if r.clean.Len() != len(c.positions) || r.transformed.Len() != len(c.positions) || r.clean != r.cleanSlots[c.clean] || r.transformed != r.transformedSlots[c.transformed] {
			t.Errorf("the reader shows batches of %d and %d samples, want %d", r.clean.Len(), r.transformed.Len(), len(c.positions))
		}
		before = c
	}
	cancel()
	wait()
	if before == nil {
		t.Error("no batch of a view")
	}
}

// TestSumsThatOverflow checks that the pass of a layer whose squares a float32 cannot hold ends
// with an error after which it is tried again, and that no cell fails.
func TestSumsThatOverflow(t *testing.T) {
	t.Parallel()
	f := newTestFeeder(t, testPass{model: testmodel.Options{Poison: 1e25}, asDevice: true})
	f.failCell = func(c *plan.Cell, _ string, _ []string, cause error) error {
		t.Errorf("cell %s failed: %v", c.Key, cause)
		return nil
	}
	err := f.run(t.Context(), func(int) error { return nil })
	if !errors.Is(err, measure.ErrNeedsActivations) {
		t.Fatalf("error %v, want ErrNeedsActivations", err)
	}
	for _, task := range f.Tasks[0] {
		fails := task.Name() != "" // a prediction is fed
		if fails != (f.accs[task] == nil) || fails != (task.Fed == 0) {
			t.Errorf("layer %q: an accumulator: %v, after %d samples", task.Name(), f.accs[task] != nil, task.Fed)
		}
	}
	if f.Retry(err) == "" {
		t.Error("the pass is not tried again")
	}
}
