package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// TestMain removes the program that buildProgram has built.
func TestMain(m *testing.M) {
	code := m.Run()
	if programDir != "" {
		os.RemoveAll(programDir)
	}
	os.Exit(code)
}

var programDir string // the folder of the compiled command; empty until buildProgram is called

var compile = sync.OnceValues(func() (program string, err error) {
	if programDir, err = os.MkdirTemp("", "noether-test-*"); err != nil {
		return "", err
	}
	program = filepath.Join(programDir, "noether")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// buildProgram returns the path of the compiled command, which all tests share.
func buildProgram(t *testing.T) string {
	t.Helper()
	program, err := compile()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// call runs the command as a shell would, and returns its exit code and its final message.
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

// TestInitWritesAStudyThatRuns checks that init, run and report work in turn, and that the resolved
// study runs: the study with absolute paths and hashes that run writes into its folder.
func TestInitWritesAStudyThatRuns(t *testing.T) {
	dir := t.TempDir()
	model := testmodel.Write(t, dir, "net", testmodel.Options{})
	// In the npy format 10 bytes precede the header: magic, version, and the header's length, 0x76
	// ("v"). The values of the images are six bytes, repeated.
	npy := "\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (40, 16, 16, 3), }"
	npy += strings.Repeat(" ", 10+0x76-len(npy)-1) + "\n" + strings.Repeat("\x00\x40\x80\xff\x20\x99", 40*16*16*3/6)
	data := write(t, dir, "pictures.npy", []byte(npy))
	out := filepath.Join(dir, "study.yaml")
	if code, message := call(t, "init", model, data, "-o", out); code != 0 {
		t.Fatal(message)
	}
	if code, _ := call(t, "init", model, data, "-o", out); code != 1 {
		t.Error("init overwrites an existing study")
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

// TestInitFitsModelAndData checks that the studies written for unusual models and data run
// unchanged.
func TestInitFitsModelAndData(t *testing.T) {
	dir := t.TempDir()
	classifier := testmodel.Write(t, dir, "net", testmodel.Options{})
	embedder := write(t, dir, "embedder.onnx", twoOutputs(t))
	convolutional := write(t, dir, "convolutional.onnx", anySize(t))
	for i := range 12 {
		write(t, dir, fmt.Sprintf("unlabelled/%02d.png", i), img(t, 16, i))
		write(t, dir, fmt.Sprintf("labelled/%c/%02d.png", 'a'+i%3, i), img(t, 16, i))
		write(t, dir, fmt.Sprintf("sizes/%02d.png", i), img(t, 70+i, i))
	}
	for _, c := range []struct {
		model, data string
		has, lacks  []string // texts that the study must contain, and must not
	}{
		{classifier, "unlabelled", []string{"# shuffle: true", "- effective-invariance"}, []string{"stratified", "accuracy", "classes:"}},
		{classifier, "labelled", []string{"stratified: true", "# classes: [0, 1, 2]", "of the model's 8 outputs", "  # - accuracy"}, []string{"\n  - accuracy"}},
		{embedder, "unlabelled", []string{"preprocess: {resize: 32, crop: 32}", "- effective-invariance", "# activation 1 of 1", "# read by the classifier (4 values)"}, nil},
		{convolutional, "unlabelled", []string{"preprocess: none", "# stem (", "# block 1 of 1 ("}, []string{"resize: 64"}},
		{convolutional, "sizes", []string{"preprocess: {resize: 64, crop: 64}"}, []string{"preprocess: none"}},
	} {
		study := filepath.Join(dir, "study.yaml")
		if code, message := call(t, "init", c.model, filepath.Join(dir, c.data), "--force", "-o", study); code != 0 {
			t.Fatal(message)
		}
		text, err := os.ReadFile(study)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.has {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s on %s: no %q in\n%s", c.model, c.data, want, text)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(string(text), not) {
				t.Errorf("%s on %s: the study has %q, want none\n%s", c.model, c.data, not, text)
			}
		}
		if code, message := call(t, "run", study, "-o", filepath.Join(t.TempDir(), "run")); code != 0 {
			t.Errorf("%s on %s: %s", c.model, c.data, message)
		}
	}
}

// img returns a grey image of side x side pixels as a PNG. Another seed gives other values.
func img(t *testing.T, side, seed int) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, side, side))
	for j := range m.Pix {
		m.Pix[j] = uint8(j * (seed + 3))
	}
	var coded bytes.Buffer
	if err := png.Encode(&coded, m); err != nil {
		t.Fatal(err)
	}
	return coded.Bytes()
}

// anySize returns a fully convolutional model of one residual block, for images of any size.
func anySize(t *testing.T) []byte {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Relu(b.Conv(b.Input("x", onnx.Float, -1, 3, -1, -1), b.Full(0.1, 4, 3, 1, 1), "", onnx.Attrs{"strides": []int{8, 8}}))
	b.Output("maps", b.Relu(b.Add(x, b.Conv(x, b.Full(0.2, 4, 4, 1, 1), "", nil))))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// twoOutputs returns a model with uint8 input that has an embedding of unit length before its class
// scores.
func twoOutputs(t *testing.T) []byte {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Cast(b.Input("x", onnx.Uint8, -1, 3, 32, 32), onnx.Float)
	w, v := tensor.New(4, 3, 3, 3), tensor.New(4, 5)
	for i := range w.Data {
		w.Data[i] = float32(i%7) / 900
	}
	for i := range v.Data {
		v.Data[i] = float32(i%3) - 1
	}
	z := b.Flatten(b.ReduceMean(b.Relu(b.Conv(x, b.Const("w", w), b.Const("b", tensor.New(4)), nil)), true, 2, 3), 1)
	b.Output("vector", b.Div(z, b.Op("ReduceL2", onnx.Attrs{"axes": []int{1}, "keepdims": 1}, z)))
	b.Output("scores", b.MatMul(z, b.Const("v", v)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	for i, out := range m.Proto().Graph.Output { // as exporters declare them
		size := func(n int64) *pb.TensorShapeProto_Dimension {
			return &pb.TensorShapeProto_Dimension{Value: &pb.TensorShapeProto_Dimension_DimValue{DimValue: n}}
		}
		shape := &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dimension{{}, size(int64(4 + i))}}
		out.Type = &pb.TypeProto{Value: &pb.TypeProto_TensorType{TensorType: &pb.TypeProto_Tensor{ElemType: new(int32(onnx.Float)), Shape: shape}}}
	}
	raw, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestCancelledRunReturnsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// The study has no mistake, since no field of smallStudy is set. Of the files in the folder, many
	// of which are invalid, it reads only the model good.onnx, which is valid.
	dir := brokenFolder(t)
	path := write(t, dir, "study.yaml", []byte(smallStudy{}.text()))
	if err := execute(ctx, []string{"run", path, "-o", filepath.Join(dir, "run")}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// output runs the command and returns its standard output.
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

// TestJSONOutput checks that commands with --json print valid JSON, and that the report's has
// scores.
func TestJSONOutput(t *testing.T) {
	dir := brokenFolder(t) // holds the valid model good.onnx and photos, 3 of 20 of them empty files
	study := write(t, dir, "study.yaml", []byte(smallStudy{measures: "accuracy, seis"}.text()))
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
			t.Errorf("%q prints invalid JSON: %.200s", args, text)
		}
	}
	text, err := output(t, "report", run, "--json")
	if err != nil || !strings.Contains(text, `"statistic":"equivariance"`) || !strings.Contains(text, `"sha256"`) {
		t.Errorf("the report lacks scores or the hash of the model: %.300s, %v", text, err)
	}
}

// errorOutput runs the command and returns its standard error and its exit code.
func errorOutput(t *testing.T, args ...string) (string, int) {
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
