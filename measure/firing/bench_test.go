package firing_test

import (
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/measure/firing"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
)

// BenchmarkGratings runs both grating tests on every unit of every layer of a ResNet-20 for CIFAR-10.
func BenchmarkGratings(b *testing.B) {
	m, err := model.Open(orttest.Load(b), testdata.Path(b, "models", "resnet20-cifar10.onnx"), model.Options{Layers: []string{"all"}, Preprocess: cifar})
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
		var k kept
		j := newJob(m, gratings, &k)
		j.Memory = 256 << 20
		runJob(b, firing.Defaults(), j)
	}
	b.ReportMetric(float64(units), "units")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/test")
}

var cifar = dataset.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}

// BenchmarkThresholds is the search for thresholds alone, after a ReLU: half of the values are 0.
func BenchmarkThresholds(b *testing.B) {
	const units, inputs, batch = 20_000, 2_000, 20
	r := rand.New(rand.NewPCG(1, 2))
	z := tensor.New(batch, units)
	for i := range z.Data {
		z.Data[i] = max(0, float32(r.NormFloat64()))
	}
	in := make([]firing.Input, batch)
	for b.Loop() {
		g := firing.NewGlobal(firing.GlobalOptions{Units: units, Rank: firing.Rank(inputs, 0.01), References: 10})
		for at := 0; at < inputs; at += batch {
			for i := range in {
				in[i] = firing.Input{Index: at + i, Reference: true}
			}
			if err := g.Update(z, in); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(units*inputs*float64(b.N)/b.Elapsed().Seconds(), "values/s")
}
