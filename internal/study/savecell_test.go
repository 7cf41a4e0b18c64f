package study_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// A fixedState is an accumulator (running sums of a measure) with a given state.
type fixedState struct {
	plan.Accumulator
	state string
}

func (f fixedState) MarshalBinary() ([]byte, error) { return []byte(f.state), nil }

// TestSaveAfterDeadlineKeepsTheState checks that a save whose deadline has passed leaves the state
// that was saved last as it was.
func TestSaveAfterDeadlineKeepsTheState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	p, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, studytest.Text), studytest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	folder, err := results.Create(filepath.Join(dir, "run"), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	// A cell is one measure of one model on one data set, under one transformation value, in one trial
	// (repetition of the random draws). Its tasks are its layers, each with an accumulator.
	w, cell := &results.Writer{Plan: p, Folder: folder}, p.Cells[0]
	// save saves a state in which every task has processed a number of samples.
	save := func(ctx context.Context, state string, samples int) error {
		accs := map[*plan.Task]plan.Accumulator{}
		for _, task := range cell.Tasks {
			task.Fed = samples
			accs[task] = fixedState{state: state}
		}
		return w.SaveCell(ctx, cell, accs)
	}
	state := func() string {
		keys := studytest.StoredKeys(t, folder.Path(), "states")
		if len(keys) != len(cell.Tasks) {
			t.Fatalf("%d states, want %d", len(keys), len(cell.Tasks))
		}
		raw, err := studytest.StoredItem(t, folder.Path(), "states", keys[0]).Bytes("state")
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if err := save(t.Context(), "the first state", 1); err != nil {
		t.Fatal(err)
	}
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if err := save(expired, "the second state", 2); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	if state() != "the first state" || cell.Tasks[0].Saved != 1 {
		t.Errorf("the first state was replaced; saved %d, want 1", cell.Tasks[0].Saved)
	}
	if err := save(t.Context(), "the second state", 2); err != nil || state() != "the second state" || cell.Tasks[0].Saved != 2 {
		t.Errorf("saving again: %v, saved %d, want 2", err, cell.Tasks[0].Saved)
	}
}

// TestCellsAreWrittenTogether checks that cells that are scored while others are written wait for
// the disk once: a disk that is busy takes long for each write.
func TestCellsAreWrittenTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	var angles []string
	for i := range 120 {
		angles = append(angles, fmt.Sprint(3*i))
	}
	s := studytest.Parse(t, dir, `name: many
data: [{name: shapes, shapes: {n: 10, size: 16, seed: 2}}]
models: [{name: small, onnx: small.onnx, layers: [output]}]
transforms: [{name: turn, rotate: {values: [`+strings.Join(angles, ", ")+`]}}]
measures: [prediction-divergence]
`)
	out := filepath.Join(dir, "run")
	syncs := 0
	stop, err := filesys.Observe(out, func(c filesys.Change, do func() error) error {
		if c.Op == filesys.OpSync && strings.HasPrefix(c.Path, filepath.Join(out, "cells")) {
			syncs++
			time.Sleep(50 * time.Millisecond)
		}
		return do()
	})
	if err != nil {
		t.Fatal(err)
	}
	studytest.Run(t, s, out, studytest.Options(t))
	stop()
	if n := len(studytest.StoredKeys(t, out, "cells")); n != len(angles) || syncs > n/4 {
		t.Errorf("%d cells were stored in %d syncs, want %d in at most %d", n, syncs, len(angles), len(angles)/4)
	}
}
