package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
)

// call runs the command as a shell would, and returns its exit code and what it says on the way out.
func call(t *testing.T, args ...string) (code int, message string) {
	t.Helper()
	err := execute(t.Context(), args)
	if err == nil {
		return 0, ""
	}
	var usage *usageError
	if errors.As(err, &usage) {
		return 2, err.Error()
	}
	return 1, err.Error()
}

// write writes a file and returns its path.
func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInitWritesAStudyThatRuns(t *testing.T) {
	dir := t.TempDir()
	model := testmodel.Write(t, dir, "net", testmodel.Options{})
	npy := "\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (40, 16, 16, 3), }"
	npy += strings.Repeat(" ", 10+0x76-len(npy)-1) + "\n" + strings.Repeat("\x00\x40\x80\xff\x20\x99", 40*16*16*3/6)
	data := write(t, dir, "pictures.npy", []byte(npy))
	out := filepath.Join(dir, "study.yaml")
	if code, message := call(t, "init", model, data, "-o", out); code != 0 {
		t.Fatal(message)
	}
	if code, _ := call(t, "init", model, data, "-o", out); code != 1 {
		t.Error("init writes over a study that exists")
	}
	if code, message := call(t, "run", out, "--dry-run"); code != 0 {
		t.Error(message)
	}
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", out, "-o", run); code != 0 {
		t.Fatal(message)
	}
	for _, name := range []string{"scores.csv", "scores.parquet", "report.html", "run.json", "study.yaml"} {
		if info, err := os.Stat(filepath.Join(run, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if code, message := call(t, "report", run); code != 0 {
		t.Error(message)
	}
	if code, message := call(t, "run", filepath.Join(run, "study.yaml"), "-o", run); code != 0 {
		t.Errorf("the resolved study does not run: %s", message)
	}
}

func TestCancelledRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := brokenFolder(t)
	path := write(t, dir, "study.yaml", []byte(broken{}.study()))
	if err := execute(ctx, []string{"run", path, "-o", filepath.Join(dir, "run")}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// output runs the command with standard output caught.
func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stdout := os.Stdout
	os.Stdout = file
	err = execute(t.Context(), args)
	os.Stdout = stdout
	raw, readErr := os.ReadFile(file.Name())
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(raw), err
}

func TestJSONIsJSON(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(broken{measures: "accuracy, seis"}.study()))
	run := filepath.Join(dir, "run")
	for _, args := range [][]string{
		{"run", study, "-o", run, "--json"}, {"report", run, "--json"}, {"run", study, "--dry-run", "--json"},
		{"inspect", filepath.Join(dir, "good.onnx"), "--json"}, {"doctor", "--json"}, {"schema"}, {"version", "--json"},
		{"init", filepath.Join(dir, "good.onnx"), filepath.Join(dir, "photos"), "--json"},
	} {
		text, err := output(t, args...)
		if err != nil {
			t.Errorf("%q: %v", args, err)
		} else if !json.Valid([]byte(text)) {
			t.Errorf("%q prints no JSON: %.200s", args, text)
		}
	}
	text, err := output(t, "report", run, "--json")
	if err != nil || !strings.Contains(text, `"statistic":"equivariance"`) || !strings.Contains(text, `"sha256"`) {
		t.Errorf("the report lacks scores or the run: %.300s, %v", text, err)
	}
}

// caught runs the command with standard error caught.
func caught(t *testing.T, args ...string) (string, int) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "err")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stderr := os.Stderr
	os.Stderr = file
	code := exitCode(execute(t.Context(), args))
	os.Stderr = stderr
	raw, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), code
}
