//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// runOnCells runs a command of noether with a copy, named copy, of one of the folders of
// buildCells. Arguments are the folder and those of the command.
func runOnCells(ctx context.Context, r *runner, args []string) (metrics, error) {
	dir, err := buildCells(ctx, r)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Join(dir, "copy"))
	if _, _, err := call(ctx, dir, nil, "cp", "-a", args[0], "copy"); err != nil {
		return nil, err
	}
	return r.noether(ctx, dir, args[1:]...)
}

// buildCells writes study.yaml and two run folders of it: shards, which is not merged, and
// finished. It returns the folder that holds these three.
func buildCells(ctx context.Context, r *runner) (dir string, err error) {
	dir = filepath.Join(r.work, "cells")
	if r.built["cells"] {
		return dir, nil
	}
	program, err := r.program(ctx)
	if err != nil {
		return dir, err
	}
	net, err := smallNet()
	if err != nil {
		return dir, err
	}
	text := fmt.Sprintf(`name: cells
data: [{name: shapes, shapes: {n: 4, size: 16}}]
models: [{name: net, onnx: net.onnx, layers: [conv]}]
transforms: [{name: turn, rotate: {values: [%s]}}]
trials: 100
measures: [distance]
`, strings.Join(degrees(1000), ", "))
	if err := os.Mkdir(dir, 0o777); err != nil {
		return dir, err
	}
	for name, content := range map[string][]byte{"net.onnx": net, "study.yaml": []byte(text)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
			return dir, err
		}
	}
	for _, command := range [][]string{
		{program, "run", "study.yaml", "-o", "shards", "--shard", "1/2"},
		{program, "run", "study.yaml", "-o", "shards", "--shard", "2/2"},
		{"cp", "-a", "shards", "finished"},
		{program, "merge", "finished"},
	} {
		if _, _, err := call(ctx, dir, nil, command...); err != nil {
			return dir, err
		}
	}
	r.built["cells"] = true
	return dir, nil
}
