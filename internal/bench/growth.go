//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// runGrowth runs a study that is large in one respect and as small as can be in all others, so that
// what it uses is what this respect costs: the number of samples, which are rendered as they are
// read, of layers, cells or models. Arguments are this respect and its number. The metrics are those
// of call.
func runGrowth(ctx context.Context, r *runner, args []string) (metrics, error) {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	samples, layers, models, values, trials := 4, 1, 1, 1, 1
	switch args[0] {
	case "samples":
		samples = n
	case "layers":
		layers = n
	case "models":
		models = n
	case "cells":
		values = min(n, 1000)
		trials = n / values
	default:
		return nil, fmt.Errorf("growth has no axis %q", args[0])
	}
	dir, err := os.MkdirTemp(r.work, "growth-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	net, err := convolutions(layers)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name: growth\ndata: [{name: shapes, shapes: {n: %d, size: 16}}]\n", samples)
	fmt.Fprintf(&text, "transforms: [{name: turn, rotate: {values: [%s]}}]\n", strings.Join(degrees(values), ", "))
	fmt.Fprintf(&text, "trials: %d\nmeasures: [distance]\nmodels:\n", trials)
	for i := range models {
		fmt.Fprintf(&text, "  - {name: m%05d, onnx: net.onnx, layers: \"op:Conv\"}\n", i+1)
	}
	for name, content := range map[string]string{"net.onnx": string(net), "study.yaml": text.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			return nil, err
		}
	}
	return r.noether(ctx, dir, "run", "study.yaml", "-o", "run")
}

// degrees returns n different angles.
func degrees(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(float64(i+1)/10))
	}
	return out
}

// smallNet returns the file of a model that is one convolution of 54 weights.
func smallNet() ([]byte, error) { return convolutions(1) }

// convolutions returns the file of a chain of n convolutions of images of 16 x 16 pixels. The first
// has stride 4 and 54 weights, and the others have 36.
func convolutions(n int) ([]byte, error) {
	b := onnx.NewBuilder(17)
	weights := func(in int) onnx.Value {
		w := tensor.New(2, in, 3, 3)
		for i := range w.Data {
			w.Data[i] = float32(i%7-3) / float32(9*in)
		}
		return b.Const(fmt.Sprintf("w%d", in), w)
	}
	x := b.Conv(b.Input("x", onnx.Float, -1, 3, 16, 16), weights(3), "", onnx.Attrs{"strides": []int{4, 4}})
	if n > 1 {
		w := weights(2)
		for range n - 1 {
			x = b.Conv(x, w, "", onnx.Attrs{"pads": []int{1, 1, 1, 1}})
		}
	}
	b.Output("conv", x)
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	return m.Bytes()
}
