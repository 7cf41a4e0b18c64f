package noether_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether"
	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure/distance"
	"github.com/noether-ml/noether/measure/seis"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/transform"
)

// A layer is measured under a rotation by 90 degrees, then a study file is run on its model. The
// layer is a blur, which commutes with the rotation, so its equivariance is 1.
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

	m, err := noether.Open(path, noether.ModelOptions{Layers: []string{"blurred"}})
	if err != nil {
		log.Fatal(err)
	}
	data, err := dataset.OpenShapes(dataset.ShapesOptions{N: 200, Size: 16})
	if err != nil {
		log.Fatal(err)
	}
	quarter := transform.Rotate{Angle: transform.Fixed(90)}
	layers, err := noether.Measure(ctx, m, data, quarter, seis.New(seis.Defaults()), distance.New(distance.Settings{}))
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
	s, err := noether.Load(file, nil)
	if err != nil {
		log.Fatal(err)
	}
	rows, err := noether.Run(ctx, s, filepath.Join(dir, "run"), noether.RunOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range rows {
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
