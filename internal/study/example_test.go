package study_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/measure/distance"
	"github.com/noether-ml/noether/measure/seis"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/transform"
)

// The example loads a model, measures one of its layers under a rotation by 90 degrees, and runs a
// study file on it. The layer is a blur, which commutes with this rotation, so its equivariance is
// 1: a statistic of the measure seis, high if f(T(x)) is a linear function of f(x).
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "noether")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "blur.onnx")
	if err := writeBlur(path); err != nil { // in place of your own model
		log.Fatal(err)
	}

	library, _, err := ort.Find("")
	if err != nil {
		log.Fatal(err)
	}
	rt, err := ort.Load(library)
	if err != nil {
		log.Fatal(err)
	}
	net, err := rt.OpenNetwork(path, ort.NetworkOptions{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := model.Open(context.Background(), net, model.Options{Layers: []string{"blurred"}})
	if err != nil {
		log.Fatal(err)
	}
	data, err := dataset.OpenShapes(dataset.ShapesOptions{N: 200, Size: 16})
	if err != nil {
		log.Fatal(err)
	}
	quarter := transform.Rotate{Angle: transform.Fixed(90)}
	layers, err := study.Measure(ctx, m, data, quarter, seis.New(seis.Defaults()), distance.New(distance.Settings{}))
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range layers[0].Scores {
		if s.Statistic == "equivariance" {
			fmt.Printf("%s at %s: %.2f\n", s.Statistic, layers[0].Layer.Name, s.Value)
		}
	}

	file := filepath.Join(dir, "study.yaml")
	err = os.WriteFile(file, []byte(`
name: blur
data: [{name: shapes, shapes: {n: 200, size: 16}}]
models: [{name: blur, onnx: blur.onnx, layers: blurred}]
transforms: [{name: quarter, rotate: 90}]
measures: [seis, distance]
`), 0o666)
	if err != nil {
		log.Fatal(err)
	}
	s, err := study.Load(file, nil)
	if err != nil {
		log.Fatal(err)
	}
	result, err := study.Run(ctx, s, filepath.Join(dir, "run"), study.Options{Runtime: rt})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range result.Rows {
		if row.Statistic == "equivariance" {
			fmt.Printf("%s of %s under %s: %.2f\n", row.Statistic, row.Layer, row.Transform, row.Value)
		}
	}
	// Output:
	// equivariance at blurred: 1.00
	// equivariance of blurred under quarter: 1.00
}

// writeBlur writes a model of one averaging convolution.
func writeBlur(path string) error {
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	b.Output("blurred", b.Op("AveragePool", onnx.Attrs{"kernel_shape": []int{3, 3}, "pads": []int{1, 1, 1, 1}, "count_include_pad": 1}, x))
	m, err := b.Model()
	if err != nil {
		return err
	}
	raw, err := m.Bytes()
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o666)
}
