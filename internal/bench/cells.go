//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const cellsColumn = "100,000 cells"

// manyCells returns rows of the table of results for a study of 100,000 cells. A cell of a study is
// the scores of one model under one of 1,000 values of a transformation in one of 100 trials
// (repetitions of random draws). The study has four samples. It was run in two shards: each is one
// process that measures a part of the samples, here one block of two (consecutive samples; see
// measure.Layout), and saves its running sums for each cell. Merging adds up those of the shards.
// The model is so small that most of the time is spent on the cells.
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
		// first runs the command; again returns the metrics of the same run.
		first, again := lastOf(cellsCommand(c.folder, c.args))
		rows = append(rows, row{text: map[string]string{cellsColumn: c.text}, cells: []cell{
			{column: "time", from: first, metric: "s", unit: "s", memory: "MiB-peak"},
			{column: "processor time", from: again, metric: "cpu-s", unit: "s"},
		}})
	}
	return rows
}

// cellsCommand runs a command of noether with a copy of one of the folders of buildCells. Its
// metrics are the time ("s"), the processor time ("cpu-s") and the peak of the memory ("MiB-peak").
func cellsCommand(folder string, args []string) source {
	return func(ctx context.Context, r *runner) (metrics, error) {
		dir, program, err := buildCells(ctx, r)
		if err != nil {
			return nil, err
		}
		copied := filepath.Join(dir, "copy")
		defer os.RemoveAll(copied)
		if out, err := exec.CommandContext(ctx, "cp", "-a", filepath.Join(dir, folder), copied).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("copying the folder: %w: %s", err, bytes.TrimSpace(out))
		}
		start := time.Now()
		state, err := runIn(ctx, dir, program, args...)
		if err != nil {
			return nil, err
		}
		return metrics{"s": time.Since(start).Seconds(), "cpu-s": (state.UserTime() + state.SystemTime()).Seconds(), "MiB-peak": peakMiB(state)}, nil
	}
}

// buildCells writes study.yaml and two run folders (folders of results) of it: shards, whose shards
// have not been merged, and finished. It returns the folder that holds these three, and the path of
// the program noether.
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
	for _, args := range [][]string{
		{"run", "study.yaml", "-o", "shards", "--shard", "1/2"},
		{"run", "study.yaml", "-o", "shards", "--shard", "2/2"},
	} {
		if _, err := runIn(ctx, dir, program, args...); err != nil {
			return dir, program, err
		}
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", filepath.Join(dir, "shards"), filepath.Join(dir, "finished")).CombinedOutput(); err != nil {
		return dir, program, fmt.Errorf("copying the folder: %w: %s", err, bytes.TrimSpace(out))
	}
	if _, err := runIn(ctx, dir, program, "merge", "finished"); err != nil {
		return dir, program, err
	}
	r.built["cells"] = true
	return dir, program, nil
}

// runIn runs a command of noether in a folder.
func runIn(ctx context.Context, dir, program string, args ...string) (*os.ProcessState, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("noether %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return c.ProcessState, nil
}
