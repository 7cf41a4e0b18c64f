package plan

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
)

// onePass returns the only pass of a study of one model with the layers conv and its ReLU, on 47 or
// 48 samples, which are read in blocks of two.
func onePass(t *testing.T, samples int, o testmodel.Options, more string) (*spec.Study, *Pass) {
	t.Helper()
	dir := t.TempDir()
	testmodel.Write(t, dir, "net", o)
	s, err := catalog.Parse(filepath.Join(dir, "study.yaml"), fmt.Appendf(nil, `name: sums
data: [{name: shapes, shapes: {n: %d, size: 16}}]
models: [{name: net, onnx: net.onnx, layers: [conv, "op:Relu"]}]
%s
`, samples, more), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(t.Context(), s, Options{Runtime: orttest.Load(t), Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	passes := Passes(p.Cells, Limits{Memory: 1 << 30, Cores: 2}, Shard{})
	if len(passes) != 1 {
		t.Fatalf("%d passes, want 1", len(passes))
	}
	return s, passes[0]
}

// onDevice are the limits of a pass on a device, which computes one batch while another one is
// measured.
var onDevice = MemoryLimits{activations: 1 << 30, images: 1 << 30, batch: maxDeviceBatch, cores: 2, slots: 2, keeps: true}

// TestReductions checks for which layers a device computes sums: those that only distances read,
// under transformations of the input, if batches have whole blocks of two samples.
func TestReductions(t *testing.T) {
	t.Parallel()
	onCPU := onDevice
	onCPU.slots, onCPU.keeps = 1, false
	const quarter = "transforms: [{name: quarter, rotate: {values: [90, 180]}}]\n"
	const distances = quarter + "measures: [effective-invariance, distance]"
	for _, c := range []struct {
		name, study string
		model       testmodel.Options
		fed         [2]int // samples that tasks of predictions and of layers have read
		limits      MemoryLimits
		want        int // number of layers
		batch       int
	}{
		{"distances", distances, testmodel.Options{}, [2]int{}, onDevice, 2, 48},
		{"per class", quarter + "measures: [{distance: {per-class: true}}]", testmodel.Options{}, [2]int{}, onDevice, 2, 48},
		{"on the CPU", distances, testmodel.Options{}, [2]int{}, onCPU, 0, 48},
		{"another measure", quarter + "measures: [distance, seis]", testmodel.Options{}, [2]int{}, onDevice, 0, 48},
		{"transformed activations", "transforms: [{name: quarter, on: activations, rotate: {values: [90]}}]\nmeasures: [distance]", testmodel.Options{}, [2]int{}, onDevice, 0, 48},
		{"a fixed number of images", distances, testmodel.Options{Batch: 4}, [2]int{}, onDevice, 0, 48},
		{"an odd batch", distances + "\nbatch: 5", testmodel.Options{}, [2]int{}, onDevice, 2, 4},
		{"a batch below the block", distances + "\nbatch: 1", testmodel.Options{}, [2]int{}, onDevice, 0, 1},
		{"a resumed run", distances, testmodel.Options{}, [2]int{6, 6}, onDevice, 2, 48},
		{"a resumed run within a block", distances, testmodel.Options{}, [2]int{5, 5}, onDevice, 0, 48},
		{"a prediction that has read less", distances, testmodel.Options{}, [2]int{0, 6}, onDevice, 2, 48},
		{"a prediction within a block", distances, testmodel.Options{}, [2]int{5, 6}, onDevice, 0, 48},
		{"layers within a block", distances, testmodel.Options{}, [2]int{4, 5}, onDevice, 0, 48},
		{"a last block of one sample", distances, testmodel.Options{}, [2]int{}, onDevice, 2, 47},
		{"a last block that was read", distances, testmodel.Options{}, [2]int{0, 47}, onDevice, 2, 47},
	} {
		samples := 48
		if c.batch == 47 {
			samples = 47
		}
		s, p := onePass(t, samples, c.model, c.study)
		for _, task := range p.AllTasks() {
			task.Fed = c.fed[1]
			if task.ScoredLayer().Name == "" {
				task.Fed = c.fed[0]
			}
		}
		p.SetBatch(s, c.limits)
		m := p.Models[0]
		if got := len(p.Reductions[m].List); got != c.want || p.Batch != c.batch {
			t.Errorf("%s: %d reductions and batches of %d, want %d and %d", c.name, got, p.Batch, c.want, c.batch)
		}
		copied, prediction := p.CopiedLayers(m)
		if wantPrediction := strings.Contains(c.study, "effective-invariance"); len(copied) != 2-c.want || prediction != wantPrediction {
			t.Errorf("%s: %d layers are copied (prediction: %v), want %d (%v)", c.name, len(copied), prediction, 2-c.want, wantPrediction)
		}
	}
}

// TestReductionsFitMemory checks that batches are small enough for the values of reductions, of two
// clean and two transformed batches, to fit in the memory for activations, and for activations that
// stay on the device to fit in its memory.
func TestReductionsFitMemory(t *testing.T) {
	t.Parallel()
	s, p := onePass(t, 48, testmodel.Options{}, "transforms: [{name: quarter, rotate: {values: [90]}}]\nmeasures: [distance]\n")
	small := onDevice
	small.activations = minWorkingMemory * 40 // the layers would need 1.5 times as much for each sample
	if p.SetBatch(s, small); p.Batch != 40 {
		t.Errorf("batches of %d with layers that stay on the device, want 40", p.Batch)
	}
	m := p.Models[0]
	r := p.Reductions[m].List[:1]
	r[0].Values = &measure.Reduction{Width: 1 << 16}
	p.Reductions[m] = Reductions{List: r}
	small.activations = 4 * 4 << 16 * 17
	if got := BatchSize(s, p, small); got != 16 { // whole blocks of two
		t.Errorf("batches of %d in %d bytes, want 16", got, small.activations)
	}
	r[0].Values.Width, r[0].Layer.Shape = 1, []int{1 << 22}
	small = onDevice
	small.device = (2 + 4) * 4 << 22 * 9 // two batches of the clean layer, and four tensors for the reduction
	if got := BatchSize(s, p, small); got != 8 {
		t.Errorf("batches of %d in %d bytes of the device, want 8", got, small.device)
	}
}

// TestRetry checks what changes after each error of a pass with reductions: batches become smaller,
// whoever chose their size, until activations are copied.
func TestRetry(t *testing.T) {
	t.Parallel()
	type attempt struct {
		batch, layers int
		text          string
	}
	memory := fmt.Errorf("running: %w", engine.ErrDeviceMemory)
	for more, attempts := range map[string][]attempt{
		"":           {{48, 2, "running 24 at a time"}, {24, 2, "running 12 at"}, {12, 2, "running 6 at"}, {6, 2, "running 2 at"}, {2, 2, "copied to the CPU"}, {48, 0, ""}},
		"batch: 9\n": {{8, 2, "running 4 at a time"}, {4, 2, "running 2 at"}, {2, 2, "copied to the CPU"}, {9, 0, ""}},
	} {
		s, p := onePass(t, 48, testmodel.Options{}, "transforms: [{name: quarter, rotate: {values: [90]}}]\nmeasures: [distance]\n"+more)
		for i, want := range attempts {
			p.SetBatch(s, onDevice)
			if got := len(p.Reductions[p.Models[0]].List); p.Batch != want.batch || got != want.layers {
				t.Errorf("%sattempt %d: %d layers in batches of %d, want %d of %d", more, i, got, p.Batch, want.layers, want.batch)
			}
			if text := p.Retry(memory); want.text == "" && text != "" || !strings.Contains(text, want.text) {
				t.Errorf("%sattempt %d: %q, want %q", more, i, text, want.text)
			}
		}
	}
	s, p := onePass(t, 48, testmodel.Options{}, "transforms: [{name: quarter, rotate: {values: [90]}}]\nmeasures: [distance]\n")
	p.SetBatch(s, onDevice)
	if text := p.Retry(fmt.Errorf("sample 3: %w", measure.ErrNeedsActivations)); !strings.Contains(text, "copied to the CPU") {
		t.Errorf("%q", text)
	}
	if p.SetBatch(s, onDevice); len(p.Reductions) > 0 || p.Batch != 48 {
		t.Errorf("%d models with reductions in batches of %d after values that do not suffice", len(p.Reductions), p.Batch)
	}
	if text := p.Retry(memory); text != "" {
		t.Errorf("%q without reductions", text)
	}
}
