//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const cellsColumn = "100,000 cells"

// manyCells returns rows on a study of 100,000 cells: a model under 1,000 values of a
// transformation in 100 trials, on four samples. It was run in two shards, each of one block of two
// samples. The model is so small that most of the time is spent on the cells.
func manyCells() []row {
	var rows []row
	for _, c := range []struct {
		text, folder string
		args         []string
	}{
		{"planned: `run --dry-run`", "shards", []string{"run", "study.yaml", "--dry-run", "-o", "none"}},
		{"two shards merged: `merge`", "shards", []string{"merge", "copy"}},
		{"a finished folder opened: `run`", "finished", []string{"run", "study.yaml", "-o", "copy"}},
		{"a finished folder merged: `merge`", "finished", []string{"merge", "copy"}},
		{"reported: `report`", "finished", []string{"report", "copy"}},
	} {
		from := cellsCommand(c.folder, c.args)
		rows = append(rows, row{text: map[string]string{cellsColumn: c.text}, cells: []cell{
			{column: "time", from: from, metric: "s", unit: "s", memory: "MiB-peak"},
			{column: "processor time", from: from, metric: "cpu-s", unit: "s"},
		}})
	}
	return rows
}

// cellsCommand runs a command of noether with a copy of one of the folders of buildCells.
func cellsCommand(folder string, args []string) *source {
	return &source{func(ctx context.Context, r *runner) (metrics, error) {
		dir, program, err := buildCells(ctx, r)
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(filepath.Join(dir, "copy"))
		if _, _, err := call(ctx, dir, nil, "cp", "-a", folder, "copy"); err != nil {
			return nil, err
		}
		_, used, err := call(ctx, dir, nil, append([]string{program}, args...)...)
		return used, err
	}}
}

// buildCells writes study.yaml and two run folders of it: shards, which is not merged, and
// finished. It returns the folder that holds these three, and the path of the program noether.
func buildCells(ctx context.Context, r *runner) (dir, program string, err error) {
	dir = filepath.Join(r.work, "cells")
	if program, err = r.program(ctx); err != nil || r.built["cells"] {
		return dir, program, err
	}
	net, err := smallNet()
	if err != nil {
		return dir, program, err
	}
	var values []string
	for i := range 1000 {
		values = append(values, fmt.Sprint(float64(i+1)/10))
	}
	text := fmt.Sprintf(`name: cells
data: [{name: shapes, shapes: {n: 4, size: 16}}]
models: [{name: net, onnx: net.onnx, layers: [conv]}]
transforms: [{name: turn, rotate: {values: [%s]}}]
trials: 100
measures: [distance]
`, strings.Join(values, ", "))
	if err := os.Mkdir(dir, 0o777); err != nil {
		return dir, program, err
	}
	for name, content := range map[string][]byte{"net.onnx": net, "study.yaml": []byte(text)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
			return dir, program, err
		}
	}
	for _, command := range [][]string{
		{program, "run", "study.yaml", "-o", "shards", "--shard", "1/2"},
		{program, "run", "study.yaml", "-o", "shards", "--shard", "2/2"},
		{"cp", "-a", "shards", "finished"},
		{program, "merge", "finished"},
	} {
		if _, _, err := call(ctx, dir, nil, command...); err != nil {
			return dir, program, err
		}
	}
	r.built["cells"] = true
	return dir, program, nil
}
