package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
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

// A broken is a study in which one thing is wrong.
type broken struct {
	model, data, layers, preprocess, transform, measures, more string
}

func (b broken) study() string {
	or := func(v, otherwise string) string {
		if v == "" {
			return otherwise
		}
		return v
	}
	return fmt.Sprintf("name: broken\ndata: [{name: d, %s}]\nmodels: [{name: m, onnx: %s, layers: [%q]%s}]\ntransforms: [%s]\nmeasures: [%s]\n%s",
		or(b.data, "shapes: {n: 40, size: 16}"), or(b.model, "good.onnx"), or(b.layers, "conv"), b.preprocess,
		or(b.transform, "{rotate: 90}"), or(b.measures, "accuracy, distance"), b.more)
}

// brokenFolder holds a model, data and everything that can be wrong with them.
func brokenFolder(t *testing.T) string {
	dir := t.TempDir()
	good := testmodel.Write(t, dir, "good", testmodel.Options{})
	testmodel.Write(t, dir, "nan", testmodel.Options{Poison: float32(math.NaN())})
	testmodel.Write(t, dir, "three", testmodel.Options{Classes: 3})
	raw, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "cut.onnx", raw[:len(raw)/2])
	write(t, dir, "text.onnx", []byte("this is no model, it is a text\n"))
	b := onnx.NewBuilder(17)
	b.Output("y", b.Relu(b.Input("ids", onnx.Float, -1, 12)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = m.Bytes(); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "table.onnx", raw)
	write(t, dir, "short.bin", make([]byte, 3073*2+5))
	labels := binary.BigEndian.AppendUint32(nil, 0x801)
	labels = append(binary.BigEndian.AppendUint32(labels, 3), 0, 1, 9)
	images := binary.BigEndian.AppendUint32(nil, 0x803)
	for _, v := range []uint32{3, 16, 16} {
		images = binary.BigEndian.AppendUint32(images, v)
	}
	write(t, dir, "t10k-images-idx3-ubyte", append(images, make([]byte, 3*256)...))
	write(t, dir, "t10k-labels-idx1-ubyte", labels)
	for i := range 20 {
		path := write(t, dir, fmt.Sprintf("photos/%02d.png", i), nil)
		if i < 3 {
			continue // three empty files
		}
		f, err := os.Create(path)
		if err == nil {
			err = errors.Join(png.Encode(f, image.NewRGBA(image.Rect(0, 0, 16, 16))), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEachMistakeIsOneClearLine(t *testing.T) {
	dir := brokenFolder(t)
	for name, c := range map[string]struct {
		broken broken
		want   []string
	}{
		"no such model":         {broken{model: "none.onnx"}, []string{"study.yaml:3:", "no such file", "none.onnx"}},
		"truncated model":       {broken{model: "cut.onnx"}, []string{"cut.onnx", "truncated"}},
		"text file":             {broken{model: "text.onnx"}, []string{"text.onnx", "ONNX"}},
		"input is no image":     {broken{model: "table.onnx"}, []string{"table.onnx", "ids", "picture"}},
		"glob matches nothing":  {broken{layers: "convv*"}, []string{"good.onnx", "convv*", "conv"}},
		"images do not decode":  {broken{data: "images: photos", measures: "distance"}, []string{"of 20 samples cannot be read", "1 %", ".png"}},
		"CIFAR of wrong length": {broken{data: "cifar10: short.bin"}, []string{"short.bin", "3073", "6151"}},
		"labels outside":        {broken{data: "idx: t10k-images-idx3-ubyte", model: "three.onnx"}, []string{"10 classes", "3"}},
		"mean of wrong length":  {broken{preprocess: ", preprocess: {mean: [0.5, 0.5]}"}, []string{"mean", "2", "3"}},
		"NaN in a layer":        {broken{model: "nan.onnx"}, []string{"layer conv", "NaN", "sample"}},
		"too many cells":        {broken{more: "trials: 1000000"}, []string{"2000000 cells", "at most"}},
		"unknown key":           {broken{more: "seeed: 3"}, []string{"study.yaml:6:1", `did you mean "seed"?`}},
		"unknown measure":       {broken{measures: "seys"}, []string{"study.yaml:5:", `did you mean "seis"?`}},
		"no picture of size":    {broken{data: "shapes: {n: 40, size: 20}", preprocess: ", preprocess: {crop: 20}"}, []string{"16", "20"}},
		"a measure twice":       {broken{measures: "seis, seis: {variance: 0.9}"}, []string{"study.yaml:5:", "twice"}},
		"half a split":          {broken{data: "shapes: {n: 40, size: 16}, split: {part: 2}"}, []string{"study.yaml:2:", "part 2 of 0"}},
		"wrong classes":         {broken{data: "shapes: {n: 40, size: 16}, classes: [1, 2]", measures: "effective-invariance"}, []string{"2 outputs for the 8 classes"}},
		"nothing applies":       {broken{measures: "seis", layers: "output"}, []string{"nothing to measure", "space"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, dir, "study.yaml", []byte(c.broken.study()))
			code, message := call(t, "run", path, "-o", filepath.Join(t.TempDir(), "run"))
			if code != 1 {
				t.Errorf("exit %d", code)
			}
			if strings.Contains(message, "\n") {
				t.Errorf("more than one line: %q", message)
			}
			for _, want := range c.want {
				if !strings.Contains(message, want) {
					t.Errorf("%q does not say %q", message, want)
				}
			}
		})
	}
}

func TestFolderThatCannotBeWrittenIsFoundBeforeTheWork(t *testing.T) {
	dir := brokenFolder(t)
	path := write(t, dir, "study.yaml", []byte(broken{}.study()))
	blocked := write(t, dir, "file", nil)
	code, message := call(t, "run", path, "-o", filepath.Join(blocked, "run"))
	if code != 1 || !strings.Contains(message, "the run folder") {
		t.Errorf("exit %d: %s", code, message)
	}
}

func TestUsageExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"run", "a", "b"}, {"run", "s.yaml", "--shard", "4/3"}, {"run", "s.yaml", "--nope"},
		{"nonsense"}, {"merge"}, {"inspect"}, {"compare", "a.npy"}, {"compare", "--measure", "x", "a", "b"}, {"run", "s.yaml", "--var", "novalue"}} {
		if code, message := call(t, args...); code != 2 {
			t.Errorf("%q exits with %d: %s", args, code, message)
		}
	}
}

func TestOutsideAStudyToo(t *testing.T) {
	dir := brokenFolder(t)
	for _, args := range [][]string{
		{"run", filepath.Join(dir, "none.yaml")}, {"inspect", filepath.Join(dir, "text.onnx")}, {"inspect", filepath.Join(dir, "none.onnx")},
		{"report", dir}, {"merge", dir}, {"init", filepath.Join(dir, "good.onnx"), filepath.Join(dir, "none")},
		{"compare", filepath.Join(dir, "text.onnx"), filepath.Join(dir, "text.onnx")}, {"doctor", "--onnxruntime", filepath.Join(dir, "text.onnx")},
	} {
		code, message := call(t, args...)
		if code != 1 || strings.Contains(message, "\n") || len(message) < 20 {
			t.Errorf("%q exits with %d: %q", args, code, message)
		}
	}
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

func TestOneFileUnderTwoNames(t *testing.T) {
	dir := brokenFolder(t)
	text := strings.Replace(broken{}.study(), "models: [", "models: [{name: twin, onnx: good.onnx, layers: conv}, ", 1)
	study := write(t, dir, "study.yaml", []byte(text))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	values := map[string]map[string]bool{}
	for _, r := range readScores(t, run) {
		key := r.Measure + r.Statistic + r.Layer
		if values[key] == nil {
			values[key] = map[string]bool{}
		}
		values[key][fmt.Sprint(r.Value)] = true
	}
	for key, v := range values {
		if len(v) != 1 {
			t.Errorf("%s differs between two names of one model: %v", key, v)
		}
	}
}

func TestReportOfAHalfFinishedRun(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(broken{transform: "{rotate: {values: [10, 20, 30]}}", more: "memory: 1KiB\n"}.study()))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	// Back to the middle: one cell and the record of a run on its way.
	cells, err := filepath.Glob(filepath.Join(run, "cells", "*.json"))
	if err != nil || len(cells) != 6 {
		t.Fatalf("%d cells, %v", len(cells), err)
	}
	for _, c := range cells[1:] {
		os.Remove(c)
	}
	os.Remove(filepath.Join(run, "scores.csv"))
	record, err := scores.ReadRecord(filepath.Join(run, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	record.Finished, record.Done, record.Keys = nil, 1, nil
	for _, c := range cells {
		record.Keys = append(record.Keys, strings.TrimSuffix(filepath.Base(c), ".json"))
	}
	if err := scores.WriteRecord(filepath.Join(run, "run.json"), record); err != nil {
		t.Fatal(err)
	}
	text, err := output(t, "report", run)
	if err != nil || !strings.Contains(text, "1 of 6 cells") || strings.Contains(text, "scores.csv") {
		t.Errorf("%v: %s", err, text)
	}
	record.Keys = record.Keys[1:] // as if the cell that is left were of the study before it was changed
	if err := scores.WriteRecord(filepath.Join(run, "run.json"), record); err != nil {
		t.Fatal(err)
	}
	before, _ := output(t, "report", run, "--json")
	if strings.Contains(before, `"statistic"`) {
		t.Errorf("a cell of another study is listed: %.300s", before)
	}
}

func TestReportOfShardsSaysHowToMergeThem(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(broken{}.study()))
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

func TestSkipsAreGroupedByTheirReason(t *testing.T) {
	t.Parallel()
	var skips []scores.Skip
	for i := range 5 {
		skips = append(skips, scores.Skip{Model: "net", Layer: fmt.Sprintf("fc%d", i), Data: "d", Measure: "seis", Why: "it has no space"})
	}
	skips = append(skips, scores.Skip{Model: "net", Layer: "gap", Data: "d", Measure: "seis", Why: "it has a single position"},
		scores.Skip{Model: "net", Data: "d", Measure: "accuracy", Why: "the data have no labels"})
	want := []string{
		"seis of net at 5 layers (fc0, fc1, fc2, ...) on d: it has no space",
		"seis of net at gap on d: it has a single position",
		"accuracy of net on d: the data have no labels",
	}
	if got := skipLines(skips); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestFailuresAreListedAndTheRestIsDone(t *testing.T) {
	dir := brokenFolder(t)
	text := strings.Replace(broken{}.study(), "models: [", "models: [{name: cut, onnx: cut.onnx}, ", 1)
	study := write(t, dir, "study.yaml", []byte(text))
	run := filepath.Join(dir, "run")
	text, err := output(t, "run", study, "-o", run)
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"2 of 2 cells are done, with 1 failure", "Failed", "model cut", "truncated", "scores.csv"} {
		if !strings.Contains(text, want) {
			t.Errorf("the output does not say %q:\n%s", want, text)
		}
	}
	if len(readScores(t, run)) == 0 {
		t.Error("the model that can be read has no scores")
	}
	if code, message := call(t, "run", study, "-o", filepath.Join(dir, "fast"), "--fail-fast"); code != 1 || !strings.Contains(message, "cut.onnx") {
		t.Errorf("exit %d: %s", code, message)
	}
	if _, err := os.Stat(filepath.Join(dir, "fast", "scores.csv")); err == nil {
		t.Error("fail-fast went on")
	}
	if code, _ := call(t, "run", study, "--dry-run", "-o", run); code != 0 {
		t.Error("a dry run wants every model")
	}
	if page, err := os.ReadFile(filepath.Join(run, "report.html")); err != nil || !strings.Contains(string(page), "<h3>Failed</h3>") {
		t.Errorf("the report does not list failures: %v", err)
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

func TestLogIsJSONToItsLastLine(t *testing.T) {
	dir := brokenFolder(t)
	text := strings.Replace(broken{}.study(), "models: [", "models: [{name: nan, onnx: nan.onnx, layers: conv}, ", 1)
	study := write(t, dir, "study.yaml", []byte(text))
	log, code := caught(t, "run", study, "-o", filepath.Join(dir, "run"), "--log", "json", "--metrics", "localhost:0")
	if code != 1 {
		t.Errorf("exit %d", code)
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
		if _, code := caught(t, append([]string{"run", study}, flags...)...); code != 2 {
			t.Errorf("%v exits with %d", flags, code)
		}
	}
	if text, code := caught(t, "run", study, "--metrics", "nowhere:x"); code != 1 || !strings.Contains(text, "metrics") {
		t.Errorf("exit %d: %s", code, text)
	}
}

func TestCheckExitsByWhatItLeaves(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(broken{}.study()))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	if text, err := output(t, "check", run); err != nil || !strings.Contains(text, "as it should be") {
		t.Errorf("%v: %s", err, text)
	}
	write(t, run, "cells/nonsense", nil)
	text, err := output(t, "check", run, "--json")
	if err == nil || !json.Valid([]byte(text)) || !strings.Contains(text, `"foreign"`) {
		t.Errorf("%v: %s", err, text)
	}
	if code, message := call(t, "check", run, "--fix"); code != 0 {
		t.Error(message)
	}
	if code, message := call(t, "check", run); code != 0 {
		t.Error(message)
	}
	if code, message := call(t, "check", dir); code != 1 || !strings.Contains(message, "no run folder") {
		t.Errorf("exit %d: %s", code, message)
	}
}
