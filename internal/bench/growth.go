//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	size := growth{samples: 4, layers: 1, models: 1, values: 1, trials: 1}
	switch args[0] {
	case "samples":
		size.samples = n
	case "layers":
		size.layers = n
	case "models":
		size.models = n
	case "cells":
		size.values = min(n, 1000)
		size.trials = n / size.values
	default:
		return nil, fmt.Errorf("growth has no axis %q", args[0])
	}
	dir, err := size.write(r.work)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return r.noether(ctx, dir, "run", "study.yaml", "-o", "run")
}

// runBillion does a step of a study of a billion samples in a number of shards: "plan" predicts it,
// "task" runs one shard, and "merge" merges as many shards of a hundred samples each, whose files are
// as large. Arguments are the step and the number. The metrics are those of call and the size of the
// run folder, for a merge before it, in "MiB".
func runBillion(ctx context.Context, r *runner, args []string) (metrics, error) {
	shards, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	size := growth{samples: 1_000_000_000, layers: 1, models: 1, values: 1, trials: 1}
	if args[0] == "merge" {
		size.samples = 100 * shards
	}
	dir, err := size.write(r.work)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	shard := func(i int) []string {
		return []string{"run", "study.yaml", "-o", "run", "--shard", fmt.Sprintf("%d/%d", i, shards)}
	}
	command := shard(1)
	switch args[0] {
	case "plan":
		return r.noether(ctx, dir, "run", "study.yaml", "--dry-run")
	case "merge":
		for i := range shards {
			if _, err := r.noether(ctx, dir, shard(i+1)...); err != nil {
				return nil, err
			}
		}
		command = []string{"merge", "run"}
	}
	before, err := folderSize(filepath.Join(dir, "run"))
	if err != nil {
		return nil, err
	}
	used, err := r.noether(ctx, dir, command...)
	if err != nil {
		return nil, err
	}
	if args[0] == "task" {
		before, err = folderSize(filepath.Join(dir, "run"))
	}
	used["MiB"] = float64(before) / (1 << 20)
	return used, err
}

// folderSize returns the bytes of the files of a folder, 0 of one that does not exist.
func folderSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n, err
}

// growth has the numbers of what a study is made of.
type growth struct{ samples, layers, models, values, trials int }

// write writes the study and its network into a new folder.
func (g growth) write(work string) (dir string, err error) {
	if dir, err = os.MkdirTemp(work, "growth-"); err != nil {
		return "", err
	}
	net, err := convolutions(g.layers)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name: growth\ndata: [{name: shapes, shapes: {n: %d, size: 16}}]\n", g.samples)
	fmt.Fprintf(&text, "transforms: [{name: turn, rotate: {values: [%s]}}]\n", strings.Join(degrees(g.values), ", "))
	fmt.Fprintf(&text, "trials: %d\nmeasures: [distance]\nmodels:\n", g.trials)
	for i := range g.models {
		fmt.Fprintf(&text, "  - {name: m%05d, onnx: net.onnx, layers: \"op:Conv\"}\n", i+1)
	}
	for name, content := range map[string]string{"net.onnx": string(net), "study.yaml": text.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			return "", err
		}
	}
	return dir, nil
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
