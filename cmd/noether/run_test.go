package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/scores"
)

// brokenFolder returns a folder with the valid model good.onnx and with invalid ones, such as
// cut.onnx (truncated) and nan.onnx (its activations are NaN). smallStudy{}.text() is a valid study
// of good.onnx, here extended by a second entry for the same file.
func TestOneModelFileUnderTwoNames(t *testing.T) {
	dir := brokenFolder(t)
	text := strings.Replace(smallStudy{}.text(), "models: [", "models: [{name: duplicate, onnx: good.onnx, layers: conv}, ", 1)
	study := write(t, dir, "study.yaml", []byte(text))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	values := map[string]map[string]bool{}
	models := map[string]int{} // number of rows
	for _, r := range readScores(t, run) {
		models[r.Model]++
		key := r.Measure + r.Statistic + r.Layer
		if values[key] == nil {
			values[key] = map[string]bool{}
		}
		values[key][fmt.Sprint(r.Value)] = true
	}
	if len(models) != 2 || models["duplicate"] == 0 {
		t.Errorf("rows by model: %v, want two models, one of them duplicate", models)
	}
	for key, v := range values {
		if len(v) != 1 {
			t.Errorf("%s differs between two names of one model: %v", key, v)
		}
	}
}

// TestReportOfUnfinishedRun uses a memory limit so small that the samples are read several times.
func TestReportOfUnfinishedRun(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(smallStudy{transform: "{rotate: {values: [10, 20, 30]}}", more: "memory: 1KiB\n"}.text()))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	// Make it an unfinished run, of which one cell is done. There were six cells, one for each of
	// two measures and three angles.
	cells := cellKeys(t, run)
	if len(cells) != 6 {
		t.Fatalf("%d cells, want 6", len(cells))
	}
	removeCells(t, run, cells[1:]...)
	os.Remove(filepath.Join(run, "scores.csv"))
	record, err := scores.ReadRecord(filepath.Join(run, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	record.Finished, record.Done, record.Keys = nil, 1, cells
	if err := scores.WriteRecord(filepath.Join(run, "run.json"), record); err != nil {
		t.Fatal(err)
	}
	text, err := output(t, "report", run)
	if err != nil || !strings.Contains(text, "1 of 6 cells") || strings.Contains(text, "scores.csv") {
		t.Errorf("report prints %s, error %v; want 1 of 6 cells and no scores.csv", text, err)
	}
	record.Keys = record.Keys[1:] // as if the remaining cell belonged to the study before a change
	if err := scores.WriteRecord(filepath.Join(run, "run.json"), record); err != nil {
		t.Fatal(err)
	}
	before, _ := output(t, "report", run, "--json")
	if strings.Contains(before, `"statistic"`) {
		t.Errorf("a cell of another study is listed: %.300s", before)
	}
}

// The report cannot be written where there is a folder of its name.
func TestReportErrorKeepsScores(t *testing.T) {
	dir := brokenFolder(t)
	file := write(t, dir, "study.yaml", []byte(smallStudy{}.text()))
	run := filepath.Join(dir, "run")
	report := filepath.Join(run, "report.html")
	if _, err := output(t, "run", file, "-o", run); err != nil {
		t.Fatal(err)
	}
	record, err := scores.ReadRecord(filepath.Join(run, "run.json"))
	if err := errors.Join(err, os.Remove(report), os.Mkdir(report, 0o777)); err != nil {
		t.Fatal(err)
	}
	err = showResult(&study.Result{Rows: readScores(t, run), Record: record}, run, printFlags{})
	if err == nil || !strings.Contains(oneLine(err.Error()), report+": it is a folder; the scores are kept, and noether report "+run) {
		t.Errorf("the error is %v, want one that says that %s is a folder and how to make the report", err, report)
	}
	if len(readScores(t, run)) == 0 {
		t.Error("there are no scores")
	}
	if err := os.Remove(report); err != nil {
		t.Fatal(err)
	}
	if text, err := output(t, "report", run); err != nil || !strings.Contains(text, report) {
		t.Errorf("report prints %s, error %v; want %s", text, err, report)
	}
}

// A shard, such as 1/2, is a part of the samples that one process measures.
func TestReportOfShardsSaysHowToMergeThem(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(smallStudy{}.text()))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run, "--shard", "1/2"); code != 0 {
		t.Fatal(message)
	}
	if code, message := call(t, "report", run); code != 1 || !strings.HasSuffix(message, "noether merge "+run) {
		t.Errorf("exit %d: %s", code, message)
	}
	if code, message := call(t, "run", study, "-o", run, "--shard", "2/2"); code != 0 {
		t.Fatal(message)
	}
	if code, message := call(t, "merge", run); code != 0 {
		t.Fatal(message)
	}
	if code, message := call(t, "report", run); code != 0 {
		t.Error(message)
	}
}

// A skip is a score that cannot be computed, and the reason: skips that differ in the layer alone
// share a line.
func TestSkipsAreGroupedByTheirReason(t *testing.T) {
	t.Parallel()
	var skips []scores.Skip
	for i := range 5 {
		skips = append(skips, scores.Skip{Model: "net", Layer: fmt.Sprintf("fc%d", i), Data: "d", Measure: "seis", Why: "the layer has no positions"})
	}
	skips = append(skips, scores.Skip{Model: "net", Layer: "gap", Data: "d", Measure: "seis", Why: "the layer has a single position"},
		scores.Skip{Model: "net", Data: "d", Measure: "accuracy", Why: "the data have no labels"})
	want := []string{
		"seis of net at 5 layers (fc0, fc1, fc2, ...) on d: the layer has no positions",
		"seis of net at gap on d: the layer has a single position",
		"accuracy of net on d: the data have no labels",
	}
	if got := skipLines(skips); !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
}

func TestFailuresAreListedAndTheRestIsDone(t *testing.T) {
	dir := brokenFolder(t)
	text := strings.Replace(smallStudy{}.text(), "models: [", "models: [{name: cut, onnx: cut.onnx}, ", 1)
	study := write(t, dir, "study.yaml", []byte(text))
	run := filepath.Join(dir, "run")
	text, err := output(t, "run", study, "-o", run)
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one of one line", err)
	}
	for _, want := range []string{"1 failure; 2 of 2 planned cells are done", "Failed", "model cut", "truncated", "scores.csv"} {
		if !strings.Contains(text, want) {
			t.Errorf("the output does not say %q:\n%s", want, text)
		}
	}
	if len(readScores(t, run)) == 0 {
		t.Error("the valid model has no scores")
	}
	if code, message := call(t, "run", study, "-o", filepath.Join(dir, "fast"), "--fail-fast"); code != 1 || !strings.Contains(message, "cut.onnx") {
		t.Errorf("exit %d: %s, want exit 1 and a message with %q", code, message, "cut.onnx")
	}
	if _, err := os.Stat(filepath.Join(dir, "fast", "scores.csv")); err == nil {
		t.Error("the run continued despite fail-fast")
	}
	if code, _ := call(t, "run", study, "--dry-run", "-o", run); code != 0 {
		t.Error("a dry run fails if a model is invalid")
	}
	if page, err := os.ReadFile(filepath.Join(run, "report.html")); err != nil || !strings.Contains(string(page), "<h3>Failed</h3>") {
		t.Errorf("the report does not list failures: %v", err)
	}
}

// With --log json each line of standard error is a JSON object, the errors included.
func TestLogIsJSONToItsLastLine(t *testing.T) {
	dir := brokenFolder(t)
	text := strings.Replace(smallStudy{}.text(), "models: [", "models: [{name: nan, onnx: nan.onnx, layers: conv}, ", 1)
	study := write(t, dir, "study.yaml", []byte(text))
	log, code := errorOutput(t, "run", study, "-o", filepath.Join(dir, "run"), "--log", "json", "--metrics", "localhost:0")
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	seen := map[string]string{}
	for line := range strings.Lines(log) {
		var l struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen[l.Msg] = l.Level
	}
	if seen["pass"] != "INFO" || seen["failed"] != "ERROR" || seen["cell finished"] != "INFO" || !strings.Contains(log, "NaN") || !strings.Contains(log, "/metrics") {
		t.Errorf("the log lacks something:\n%s", log)
	}
	for _, flags := range [][]string{{"--log", "xml"}, {"--log", "json", "--log-level", "loud"}} {
		if _, code := errorOutput(t, append([]string{"run", study}, flags...)...); code != 2 {
			t.Errorf("%v exits with %d, want 2", flags, code)
		}
	}
	if text, code := errorOutput(t, "run", study, "--metrics", "nowhere:x"); code != 1 || !strings.Contains(text, "metrics") {
		t.Errorf("exit %d: %s, want exit 1 and a message with %q", code, text, "metrics")
	}
}

// check fails if problems are left: a foreign file, which is not of the run, is one until --fix
// moves it away.
func TestCheckExitCodes(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(smallStudy{}.text()))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	if text, err := output(t, "check", run); err != nil || !strings.Contains(text, "no problems were found") {
		t.Errorf("check prints %s, error %v; want no problems", text, err)
	}
	write(t, run, "cells/nonsense", nil)
	text, err := output(t, "check", run, "--json")
	if err == nil || !json.Valid([]byte(text)) || !strings.Contains(text, `"foreign"`) {
		t.Errorf("check --json prints %s, error %v; want a foreign file and an error", text, err)
	}
	if code, message := call(t, "check", run, "--fix"); code != 0 {
		t.Error(message)
	}
	if code, message := call(t, "check", run); code != 0 {
		t.Error(message)
	}
	if code, message := call(t, "check", dir); code != 1 || !strings.Contains(message, "not a run folder") {
		t.Errorf("exit %d: %s, want exit 1 and a message with %q", code, message, "not a run folder")
	}
}
