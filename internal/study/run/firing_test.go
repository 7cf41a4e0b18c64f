package run_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// firingText is a study with the measure firing: how often a unit (one value of a layer) fires,
// that is, reaches a threshold, on changed versions of the inputs that activate it most, and on all
// inputs. The data "few" have too few samples for it.
const firingText = `name: units
data:
  - {name: gratings, gratings: {size: 16, orientations: [0, 45, 90, 135], channels: 1}}
  - {name: shapes, shapes: {n: 120, size: 16}}
  - {name: few, shapes: {n: 30, size: 16}}
models: [{name: net, onnx: net.onnx, layers: [conv, logits]}]
transforms:
  - {name: turn, rotate: {values: [-20, 0, 20]}}
  - {name: shift, translate: [-0.2, 0.2]}
measures: [firing: {also: [variance, mutual-information], steps: 3}]
trials: 2
`

// TestFiringInAStudy checks that data with trajectories (an input and its changed versions, as of
// gratings in phase or orientation) are measured without transformations, and other data under each
// transformation of the study.
func TestFiringInAStudy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "net", testmodel.Options{})
	out := filepath.Join(dir, "run")
	r := studytest.Run(t, studytest.Parse(t, dir, firingText), out, studytest.Options(t))
	got := map[string]int{}
	for _, row := range r.Rows {
		if row.Trial != 0 {
			continue
		}
		got[strings.Join([]string{row.Data, row.Transform, row.Factor, row.Statistic}, " ")]++
		if row.Depth < 1 || row.Layer == "" || row.Parameter != "" || math.IsNaN(row.Value) {
			t.Errorf("the row %+v", row)
		}
	}
	for _, want := range []string{"gratings  phase invariance", "gratings  orientation invariance", "shapes turn  invariance", "shapes shift  invariance",
		"shapes turn  normalised-variance", "shapes shift  mutual-information", "gratings  phase selective"} {
		if got[want] != 2 {
			t.Errorf("%d rows of %q, want one for each layer", got[want], want)
		}
	}
	if got["shapes   invariance"] > 0 || got["gratings turn phase invariance"] > 0 {
		t.Errorf("rows %v", got)
	}
	if len(r.Record.Skipped) != 1 || !strings.Contains(r.Record.Skipped[0].Why, "too few") {
		t.Errorf("skipped: %+v", r.Record.Skipped)
	}
	checkUnits(t, out)
	checkDamagedUnits(t, out, dir)
}

// TestInformationNeedsNoClassScores checks that the mutual information of firing and labels refers
// to the classes of the data, also if the model's output has another number of values.
func TestInformationNeedsNoClassScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	information := func(name string, o testmodel.Options, model string) float64 {
		testmodel.Write(t, dir, name, o)
		text := "name: units\ndata: [{name: shapes, shapes: {n: 120, size: 16}}]\nmodels: [{name: net, onnx: " + name + ".onnx, layers: conv" + model + "}]\n" +
			"transforms: [{name: turn, rotate: {values: [-20, 20]}}]\nmeasures: [firing: {also: [mutual-information], positions: channels}]\n"
		for _, row := range studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "run-"+name+model), studytest.Options(t)).Rows {
			if row.Statistic == "mutual-information" {
				return row.Value
			}
		}
		t.Fatal("no mutual information")
		return 0
	}
	want := information("net", testmodel.Options{}, ", scores: none")
	if got := information("net", testmodel.Options{Classes: 2}, ""); !(want > 0) || got != want {
		t.Errorf("mutual information %v, want %v", got, want)
	}
}

// checkUnits checks the tables of units and of their tuning curves in a run folder. The score of
// each unit is its local firing rate divided by its global one (package internal/procedure/firing).
// Every layer has units.
func checkUnits(t *testing.T, dir string) {
	t.Helper()
	units, curves := map[string]int{}, 0
	err := parquetfile.ReadFile(filepath.Join(dir, "units.parquet"), parquetfile.ReadUnits, func(u scores.UnitRow) {
		units[strings.Join([]string{u.Data, u.Transform, u.Factor, u.Layer}, " ")]++
		if math.Abs(u.Score-u.Local/u.Global) > 1e-12 || u.Model != "net" || u.Measure != "firing" || u.Layer == "conv" && (u.Row < 0 || u.Column < 0) || u.Layer == "logits" && u.Row != -1 {
			t.Fatalf("the unit %+v", u)
		}
	})
	if err == nil {
		err = parquetfile.ReadFile(filepath.Join(dir, "curves.parquet"), parquetfile.ReadCurves, func(scores.CurveRow) { curves++ })
	}
	if err != nil {
		t.Fatal(err)
	}
	// In 2 trials: conv has 6 channels of 64 positions, logits 8 values. 2 layers along 4 kinds of
	// trajectory: phase and orientation of the gratings, turn and shift of the shapes.
	if units["gratings  phase conv"] != 2*6*64 || units["shapes shift  logits"] != 2*8 || len(units) != 2*4 {
		t.Errorf("units %v", units)
	}
	// In 2 trials, of 2 layers, for the best 4 units: the 41 steps along phase, 81 along
	// orientation, 3 of turn (its values), and 4 of shift (the reference and 3 draws).
	if want := 2 * 2 * 4 * (41 + 81 + 3 + 4); curves != want {
		t.Errorf("%d points of curves, want %d", curves, want)
	}
}

// checkDamagedUnits truncates a table of units. It checks that Check reports it, and that another
// run computes its cell (the scores of one measure, data set, transformation and trial, a
// repetition of the random draws) again.
func checkDamagedUnits(t *testing.T, out, dir string) {
	t.Helper()
	var tables []string
	for _, key := range studytest.StoredKeys(t, out, "cells") {
		if raw, err := studytest.StoredItem(t, out, "cells", key).Bytes("units"); err != nil {
			t.Fatal(err)
		} else if raw != nil {
			tables = append(tables, string(raw))
		}
	}
	if len(tables) != 2*3 { // two trials of the gratings, of turn and of shift
		t.Fatalf("%d tables of units", len(tables))
	}
	studytest.DamageRecord(t, out, "cells", tables[0])
	found, err := study.Check(t.Context(), out, true, studytest.Options(t))
	// The log, and a note that the cell is missing now.
	if err != nil || len(found) != 2 || found[0].Kind != results.Damaged || !found[1].Note {
		t.Errorf("a damaged table: %+v, %v", found, err)
	}
	studytest.Run(t, studytest.Parse(t, dir, firingText), out, studytest.Options(t))
	checkUnits(t, out)
	if found, err := study.Check(t.Context(), out, false, studytest.Options(t)); err != nil || len(found) != 0 {
		t.Errorf("after another run: findings %+v, error %v; want none", found, err)
	}
}

// TestUnitsOfShardsAreMerged checks that the tables of units of shards in different folders are
// merged. A shard is a part of the samples, but the measure firing is a procedure: it reads all
// samples, so each of its cells is computed in one of the shards.
func TestUnitsOfShardsAreMerged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "net", testmodel.Options{})
	o := studytest.Options(t)
	newStudy := func() *study.Study { return studytest.Parse(t, dir, firingText) }
	whole := studytest.Run(t, newStudy(), filepath.Join(dir, "whole"), o)
	var dirs []string
	for i := 1; i <= 2; i++ {
		part := o
		part.Shard = study.Shard{Index: i, Count: 2}
		dirs = append(dirs, filepath.Join(dir, "part", string(rune('0'+i))))
		if _, err := study.Run(t.Context(), newStudy(), dirs[i-1], part); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := study.Merge(t.Context(), newStudy(), dirs, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(merged.Rows) != len(whole.Rows) {
		t.Errorf("%d rows are merged, want %d", len(merged.Rows), len(whole.Rows))
	}
	checkUnits(t, dirs[0])
}
