package firing_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/procedure/firing"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// BenchmarkGratings runs both tests with gratings (sinusoidal stripes), along phase and along
// orientation, on every unit (one value of a layer) of every layer of a ResNet-20 for CIFAR-10. A
// job (see newJob) is one run of the measure on a model and its data. The job gives the scores and
// the responses of units to the functions Units and Curves.
func BenchmarkGratings(b *testing.B) {
	machine.BoundGarbage(0)
	m, err := modeltest.Open(b, testdata.Path(b, "models", "resnet20-cifar10.onnx"), model.Options{Layers: []string{"all"}, Preprocess: cifar})
	if err != nil {
		b.Fatal(err)
	}
	gratings, err := dataset.OpenGratings(dataset.GratingsOptions{})
	if err != nil {
		b.Fatal(err)
	}
	units := 0
	for _, l := range m.Layers() {
		units += tensor.Size(l.Shape)
	}
	for b.Loop() {
		j := newJob(m, gratings, nil)
		j.Memory = 256 << 20
		j.Units, j.Curves = func([]measure.UnitScore) error { return nil }, func([]measure.UnitResponse) error { return nil }
		runJob(b, firing.Defaults(), j)
	}
	b.ReportMetric(float64(units), "units")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/run")
	reportMemoryAndCPU(b)
}

// reportMemoryAndCPU reports the peak memory of the process, and its processor time for each
// iteration.
func reportMemoryAndCPU(b *testing.B) {
	b.ReportMetric(float64(machine.PeakMemory())/(1<<20), "MiB-peak")
	b.ReportMetric(machine.CPUTime().Seconds()/float64(b.N), "cpu-s")
}

// BenchmarkInputs measures the ReLU units of all layers, the last stage or one layer of a ResNet-20
// under a rotation by 180 degrees (see turns), for growing numbers of images. memory bounds the
// memory of the job, in bytes. References is the number of inputs, of those that activate a unit
// most, that are rotated to see whether the unit still fires. Run each case in a process of its
// own, whose peak memory is reported.
func BenchmarkInputs(b *testing.B) {
	for _, c := range []struct {
		name, layers string
		memory       int64
		inputs       []int
	}{
		{"all", "op:Relu", 64 << 20, []int{200, 800, 3200, 10_000}}, {"all", "op:Relu", 16 << 20, []int{200, 800, 3200, 10_000}},
		{"last", "/layer3/*/Relu*", 8 << 20, []int{800, 3200, 10_000}}, {"last", "/layer3/*/Relu*", 2 << 20, []int{800, 3200, 10_000}},
		{"first", "/layer1/layer1.0/Relu_output_0", 2 << 20, []int{800, 3200, 10_000}},
	} {
		for _, inputs := range c.inputs {
			b.Run(fmt.Sprintf("%s-%dMiB-%d", c.name, c.memory>>20, inputs), func(b *testing.B) { benchmarkInputs(b, c.layers, c.memory, inputs) })
		}
	}
}

// benchmarkInputs runs one case of BenchmarkInputs.
func benchmarkInputs(b *testing.B, layers string, memory int64, inputs int) {
	machine.BoundGarbage(memory)
	m, err := modeltest.Open(b, testdata.Path(b, "models", "resnet20-cifar10.onnx"), model.Options{Layers: []string{layers}, Preprocess: cifar})
	if err != nil {
		b.Fatal(err)
	}
	images, err := dataset.OpenCIFAR10(b.Context(), dataset.CIFAROptions{Paths: []string{testdata.Path(b, "cifar10", "test_batch.bin")}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		j := newJob(m, dataset.Limit(images, inputs), nil)
		j.Memory, j.Transform, j.Curves, j.Checkpoint = memory, turns(180), nil, checkpoint.File(filepath.Join(b.TempDir(), "state"))
		j.Units = func([]measure.UnitScore) error { return nil }
		s := firing.Defaults()
		s.References = 1
		runJob(b, s, j)
	}
	reportMemoryAndCPU(b)
}

var cifar = model.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}

// BenchmarkThresholds measures the threshold estimator alone, exactly or by a quantile sketch, on
// random values after a ReLU. A unit fires where its value reaches the threshold, here its k-th
// largest value, with k (Rank) a hundredth of the inputs. relative is the allowed relative error of
// k; 0: exact.
func BenchmarkThresholds(b *testing.B) {
	for _, c := range []struct {
		name                 string
		units, inputs, batch int
		relative             float64
	}{{"exact", 20_000, 2_000, 20, 0}, {"sketch", 2_000, 100_000, 32, 0.1}} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			z := tensor.New(10*c.batch, c.units)
			for i := range z.Data {
				z.Data[i] = max(0, float32(r.NormFloat64()))
			}
			in := make([]firing.Input, c.batch)
			for b.Loop() {
				estimator := firing.NewThresholdEstimator(firing.ThresholdOptions{Units: c.units, Rank: c.inputs / 100, References: 10, Error: c.relative})
				for first := 0; first < c.inputs; first += c.batch {
					for i := range in {
						in[i] = firing.Input{Index: first + i, Reference: true}
					}
					from := r.IntN(9 * c.batch * c.units)
					batch := tensor.Tensor{Shape: []int{c.batch, c.units}, Data: z.Data[from:][:c.batch*c.units]}
					if err := estimator.Update(batch, in); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(c.units*c.inputs)*float64(b.N)/b.Elapsed().Seconds(), "values/s")
			b.ReportMetric(float64(machine.CPUTime().Nanoseconds())/(float64(b.N)*float64(c.units*c.inputs)), "cpu-ns/value")
		})
	}
}

// BenchmarkMillionUnits measures a layer of a million units, 64 channels of 125 x 125, for several
// numbers of inputs, with a checkpoint in a file, with exact thresholds or those of a quantile
// sketch. Run each case in a process of its own, whose peak memory is reported.
func BenchmarkMillionUnits(b *testing.B) {
	for _, c := range []struct {
		inputs     int
		thresholds string
		memory     int64
	}{{1_000, firing.Exact, 256 << 20}, {10_000, firing.Exact, 256 << 20}, {100_000, firing.Sketched, 256 << 20}, {100_000, firing.Sketched, 1280 << 20}} {
		b.Run(fmt.Sprintf("%d-%s-%dMiB", c.inputs, c.thresholds, c.memory>>20), func(b *testing.B) {
			machine.BoundGarbage(c.memory)
			m := millionUnits(b)
			s := firing.Defaults()
			s.Thresholds, s.References = c.thresholds, 1
			if c.thresholds == firing.Sketched {
				s.Error = 0.1
			}
			for b.Loop() {
				rows := 0
				j := newJob(m, noiseImages(c.inputs), nil)
				j.Memory, j.Transform, j.Curves, j.Checkpoint = c.memory, turns(180), nil, checkpoint.File(filepath.Join(b.TempDir(), "state"))
				j.Units = func(u []measure.UnitScore) error { rows += len(u); return nil }
				j.Progress = logProgress(c.inputs)
				runJob(b, s, j)
				if rows != 1_000_000 {
					b.Fatalf("%d units, want %d", rows, 1_000_000)
				}
			}
			reportMemoryAndCPU(b)
		})
	}
}

// logProgress returns a function that logs the progress of a long benchmark at every hundredth of
// its inputs.
func logProgress(inputs int) func(int64, string) {
	var next int64
	return func(done int64, note string) {
		if done >= next && testing.Verbose() {
			next = done + int64(inputs)/100
			fmt.Printf("%d images, %s, %.0f s of processor time, at most %d MiB\n", done, note, machine.CPUTime().Seconds(), machine.PeakMemory()>>20)
		}
	}
}

// millionUnits returns a model that is a convolution of one channel to 64, on 125 x 125 pixels.
func millionUnits(b *testing.B) *model.Model {
	r := rand.New(rand.NewPCG(3, 4))
	w := tensor.New(64, 1, 3, 3)
	for i := range w.Data {
		w.Data[i] = float32(r.NormFloat64())
	}
	g := onnx.NewBuilder(onnx.DefaultOpset)
	g.Output("units", g.Conv(g.Input("x", onnx.Float, -1, 1, 125, 125), g.Const("w", w), "", onnx.Attrs{"pads": []int{1, 1, 1, 1}}))
	path := testmodel.Save(b, filepath.Join(b.TempDir(), "million.onnx"), g)
	m, err := modeltest.Open(b, path, model.Options{Layers: []string{"all"}, Scores: "none"})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// noiseImages is a source of so many images of uniform noise.
type noiseImages int

func (n noiseImages) Len() int            { return int(n) }
func (noiseImages) Classes() []string     { return nil }
func (noiseImages) Factors() []string     { return nil }
func (n noiseImages) Fingerprint() string { return fmt.Sprint("noise images ", int(n)) }

func (noiseImages) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	r, t := rand.NewPCG(uint64(i), 1), tensor.New(1, 125, 125)
	for at := 0; at < len(t.Data); {
		// A random number gives four pixels, of 16 bits each.
		for bits := r.Uint64(); bits != 0 && at < len(t.Data); bits >>= 16 {
			t.Data[at] = float32(bits&0xffff) / 0xffff
			at++
		}
	}
	return dataset.Sample{Index: i, Input: t, Label: dataset.NoLabel}, nil
}
