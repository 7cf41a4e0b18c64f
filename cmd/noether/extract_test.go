package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/scores"
)

const extractStudy = `name: %s
seed: 4
data: [{name: photos, images: %q}]
models: [{name: net, %s, layers: ["*"]}]
transforms:
  - {name: quarter, rotate: {values: [90, 180]}}
  - {name: jitter, rotate: [-20, 20]}
measures: [accuracy, effective-invariance, distance]
`

// TestExtract checks that a study of extracted activations gives the scores of the model, also
// where one of the images cannot be read.
func TestExtract(t *testing.T) {
	data, dir := writeLabelled(t, 20), t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "2", "02.png"), []byte("\x89PNG\r\n\x1a\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	study := func(name, model string) string {
		path := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(path, fmt.Appendf(nil, extractStudy, name, data, model), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rows := func(path string) map[string]float64 {
		folder := path + ".run"
		if _, err := output(t, "run", path, "-o", folder); err != nil {
			t.Fatal(err)
		}
		table, err := os.ReadFile(filepath.Join(folder, "scores.csv"))
		if err != nil {
			t.Fatal(err)
		}
		list, err := scores.ReadCSV(bytes.NewReader(table))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]float64{}
		for _, r := range list {
			found[fmt.Sprint(r.Layer, r.Transform, r.Parameter, r.Measure, r.Variant, r.Statistic)] = r.Value
		}
		return found
	}
	network, err := filepath.Abs("../../internal/parity/testdata/float.onnx")
	if err != nil {
		t.Fatal(err)
	}
	of := study("model", fmt.Sprintf("onnx: %q, preprocess: none", network))
	want := rows(of)

	out := filepath.Join(dir, "activations")
	text, err := output(t, "extract", of, "-o", out)
	if err != nil || !strings.Contains(text, "net: 19 samples, ") || !strings.Contains(text, ", 4 views") {
		t.Fatalf("%s%v", text, err)
	}
	for name, args := range map[string][]string{"safetensors": nil, "npy": {"--format", "npy"}} {
		folder := filepath.Join(dir, name)
		if _, err := output(t, append([]string{"extract", of, "-o", folder}, args...)...); err != nil {
			t.Fatal(err)
		}
		got := rows(study("of-"+name, fmt.Sprintf("activations: %q", filepath.Join(folder, "net"))))
		if len(got) < 30 {
			t.Errorf("%s: %d scores", name, len(got))
		}
		for key, value := range got {
			if known, ok := want[key]; !ok || math.Abs(known-value) > 1e-12 && !(math.IsNaN(known) && math.IsNaN(value)) {
				t.Errorf("%s: %s is %g, and %g from the model", name, key, value, known)
			}
		}
	}

	if _, err := output(t, "extract", of, "-o", out); err == nil || !strings.Contains(err.Error(), "exists: --force replaces it") {
		t.Errorf("an existing folder: %v", err)
	}
	if _, err := output(t, "extract", of, "-o", out, "--force", "--pool", "mean", "--layers", "output"); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left %v: %v", left, err)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"-o names no folder", nil},
		{`--format is "hdf5"`, []string{"-o", out + "2", "--format", "hdf5"}},
		{`--pool is "median"`, []string{"-o", out + "2", "--pool", "median"}},
		{"no layer matches", []string{"-o", out + "2", "--layers", "nothing*"}},
		{"needs an axis of tokens", []string{"-o", out + "2", "--pool", "class"}},
	} {
		if _, err := output(t, append([]string{"extract", of}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
		if _, err := os.Stat(out + "2"); err == nil {
			t.Errorf("%v: made a folder", c.args)
		}
	}
}

// TestStoppedExtract checks that a command that is stopped while it writes leaves no files.
func TestStoppedExtract(t *testing.T) {
	dir := t.TempDir()
	network, err := filepath.Abs("../../internal/parity/testdata/float.onnx")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "study.yaml")
	text := fmt.Sprintf(extractStudy, "stopped", "photos", fmt.Sprintf("onnx: %q, preprocess: none, scores: none", network))
	text = strings.Replace(text, `images: "photos"`, "shapes: {n: 200000, size: 8}", 1)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // once it writes
		for ctx.Err() == nil {
			if found, _ := filepath.Glob(filepath.Join(dir, ".*", "files", "net", "clean.safetensors")); len(found) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := execute(ctx, []string{"extract", path, "-o", filepath.Join(dir, "activations")}); err == nil || err.Error() != "stopped; nothing was written" {
		t.Errorf("error %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*act*"))
	if hidden, _ := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left)+len(hidden) > 0 {
		t.Errorf("left %v and %v", left, hidden)
	}
}

// TestKilledExtract checks that the next command for the same folder removes what a killed one left.
func TestKilledExtract(t *testing.T) {
	dir := t.TempDir()
	network, err := filepath.Abs("../../internal/parity/testdata/float.onnx")
	if err != nil {
		t.Fatal(err)
	}
	study := func(name string, n int) string {
		text := fmt.Sprintf(extractStudy, name, "photos", fmt.Sprintf("onnx: %q, preprocess: none, scores: none", network))
		text = strings.Replace(text, `images: "photos"`, fmt.Sprintf("shapes: {n: %d, size: 8}", n), 1)
		return write(t, dir, name+".yaml", []byte(text))
	}
	out := filepath.Join(dir, "activations")
	hidden := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, ".*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	program := buildProgram(t)
	killed := exec.CommandContext(t.Context(), program, "extract", study("long", 200_000), "-o", out)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	for len(hidden()) == 0 && killed.ProcessState == nil && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed.Wait()
	if len(hidden()) == 0 {
		t.Fatal("the killed command left nothing")
	}
	// The process of the engine ends shortly after the one that was killed.
	for try := 0; len(hidden()) > 0 && try < 20; try++ {
		if text, err := exec.CommandContext(t.Context(), program, "extract", study("short", 4), "-o", out, "--force").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if left := hidden(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if entries, err := os.ReadDir(filepath.Join(out, "net")); err != nil || len(entries) == 0 {
		t.Errorf("the next command wrote %v: %v", entries, err)
	}
}
