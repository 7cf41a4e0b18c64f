//go:build cgo

package grad_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// benchNets returns the folders of the networks to time, each with a file model.onnx, and their
// batch sizes: networks of the test data, and the folders of the environment variable
// NOETHER_BENCH_NETS, a list separated as PATH is, with batches of 8.
func benchNets(b *testing.B) map[string]int {
	nets := map[string]int{}
	for name, batch := range map[string]int{"cifar_resnet20": 32, "squeezenet1_1": 8, "mobilenet_v3_small": 8, "tiny_vit": 32} {
		nets[testdata.Path(b, "nets", name)] = batch
	}
	for _, dir := range filepath.SplitList(os.Getenv("NOETHER_BENCH_NETS")) {
		nets[dir] = 8
	}
	return nets
}

// BenchmarkInputGradient times a forward pass alone, and with the gradient with respect to the
// input.
func BenchmarkInputGradient(b *testing.B) {
	for dir, batch := range benchNets(b) {
		m, err := onnx.Read(filepath.Join(dir, "model.onnx"))
		if err != nil {
			b.Fatal(err)
		}
		graphs := map[string]*onnx.Model{"forward": m}
		g, err := grad.Add(m, grad.Options{By: []string{m.Inputs()[0].Name}})
		if err != nil {
			b.Fatal(err)
		}
		graphs["gradient"] = g
		for kind, graph := range graphs {
			b.Run(filepath.Base(dir)+"/"+kind, func(b *testing.B) { timeGraph(b, graph, batch) })
		}
	}
}

// timeGraph reports images per second. With Spin, threads wait for work in a busy loop.
func timeGraph(b *testing.B, m *onnx.Model, batch int) {
	rt := engine(b)
	s, err := rt.NewSession(m, ort.Options{Spin: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var in []*ort.Value
	for _, p := range m.Inputs() {
		shape := p.Sizes()
		shape[0] = batch
		v, err := rt.NewValue(p.Type, shape...)
		if err != nil {
			b.Fatal(err)
		}
		defer v.Close()
		for i, data := 0, ort.Data[float32](v); i < len(data); i++ {
			data[i] = float32(i%251) / 250 // any values in [0, 1]
		}
		in = append(in, v)
	}
	out := make([]*ort.Value, len(m.Outputs()))
	// The first run makes the outputs, and warms up.
	if err := s.Run(context.Background(), in, out); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := s.Run(context.Background(), in, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(batch)*float64(b.N)/b.Elapsed().Seconds(), "images/s")
	for _, v := range out {
		v.Close()
	}
}
