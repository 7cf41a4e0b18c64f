package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
)

// A broken is a study with one mistake: a field that is not empty replaces the valid text of a small
// study. Tests that need that study itself leave the fields empty, or set them to valid texts.
type broken struct {
	model, data, layers, preprocess, transform, measures, more string
}

// study returns the text of the study file.
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

// brokenFolder returns a folder with the valid model good.onnx, and with models and data of which each
// has a mistake.
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
	write(t, dir, "short.bin", make([]byte, 3073*2+5)) // two images of CIFAR-10 and 5 bytes
	// IDX files: 0x801 begins one of bytes in one dimension (labels), 0x803 in three (images).
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
		"input is no image":     {broken{model: "table.onnx"}, []string{"table.onnx", "ids", "image"}},
		"glob matches nothing":  {broken{layers: "convv*"}, []string{"good.onnx", "convv*", "conv"}},
		"images do not decode":  {broken{data: "images: photos", measures: "distance"}, []string{"of 20 samples cannot be read", "1 %", ".png"}},
		"CIFAR of wrong length": {broken{data: "cifar10: short.bin"}, []string{"short.bin", "3073", "6151"}},
		"labels outside":        {broken{data: "idx: t10k-images-idx3-ubyte", model: "three.onnx"}, []string{"10 classes", "3"}},
		"mean of wrong length":  {broken{preprocess: ", preprocess: {mean: [0.5, 0.5]}"}, []string{"mean", "2", "3"}},
		"NaN in a layer":        {broken{model: "nan.onnx"}, []string{"layer conv", "NaN", "sample"}},
		"too many cells":        {broken{more: "trials: 1000000"}, []string{"2000000 cells", "the limit is 100000"}},
		"unknown key":           {broken{more: "seeed: 3"}, []string{"study.yaml:6:1", `did you mean "seed"?`}},
		"unknown measure":       {broken{measures: "seys"}, []string{"study.yaml:5:", `did you mean "seis"?`}},
		"no image of size":      {broken{data: "shapes: {n: 40, size: 20}", preprocess: ", preprocess: {crop: 20}"}, []string{"16", "20"}},
		"a measure twice":       {broken{measures: "seis, seis: {variance: 0.9}"}, []string{"study.yaml:5:", "twice"}},
		"a factor of 1e40":      {broken{transform: "{brightness: 1e40}"}, []string{"study.yaml:4:", "factor must be at most 1e+30"}},
		"half a split":          {broken{data: "shapes: {n: 40, size: 16}, split: {part: 2}"}, []string{"study.yaml:2:", "part 2 of 0"}},
		"wrong classes":         {broken{data: "shapes: {n: 40, size: 16}, classes: [1, 2]", measures: "effective-invariance"}, []string{"2 outputs for the 8 classes"}},
		"nothing applies":       {broken{measures: "seis", layers: "output"}, []string{"nothing to measure", "positions"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, dir, "study.yaml", []byte(c.broken.study()))
			code, message := call(t, "run", path, "-o", filepath.Join(t.TempDir(), "run"))
			if code != 1 {
				t.Errorf("exit %d, want 1", code)
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
		t.Errorf("exit %d: %s, want exit 1 and a message with %q", code, message, "the run folder")
	}
}

func TestUsageExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"run", "a", "b"}, {"run", "s.yaml", "--shard", "4/3"}, {"run", "s.yaml", "--nope"},
		{"nonsense"}, {"merge"}, {"inspect"}, {"compare", "a.npy"}, {"compare", "--measure", "x", "a", "b"}, {"run", "s.yaml", "--var", "novalue"},
		{"run", "s.yaml", "--complete"}, {"run", "s.yaml", "--save-every", "-5s"}, {"inspect", "m.onnx", "--size", "-1"},
		{"invert", "m.onnx"}, {"invert", "m.onnx", "--data", "d", "-o", "out", "--size", "-5"}} {
		if code, message := call(t, args...); code != 2 {
			t.Errorf("%q exits with %d, want 2: %s", args, code, message)
		}
	}
}

func TestErrorsOutsideAStudyAreOneLine(t *testing.T) {
	dir := brokenFolder(t)
	for _, args := range [][]string{
		{"run", filepath.Join(dir, "none.yaml")}, {"inspect", filepath.Join(dir, "text.onnx")}, {"inspect", filepath.Join(dir, "none.onnx")},
		{"report", dir}, {"merge", dir}, {"init", filepath.Join(dir, "good.onnx"), filepath.Join(dir, "none")}, {"init", filepath.Join(dir, "good.onnx"), t.TempDir()},
		{"compare", filepath.Join(dir, "text.onnx"), filepath.Join(dir, "text.onnx")}, {"doctor", "--onnxruntime", filepath.Join(dir, "text.onnx")},
	} {
		code, message := call(t, args...)
		if code != 1 || strings.Contains(message, "\n") || len(message) < 20 {
			t.Errorf("%q exits with %d and prints %q, want 1 and one line of at least 20 characters", args, code, message)
		}
	}
}

// TestFolderOfTensorFlow checks that the folder of a SavedModel gives the line that exports it.
func TestFolderOfTensorFlow(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "saved_model.pb", []byte{8, 1})
	data := numbers(t, filepath.Join(dir, "images.npy"), func(int) float32 { return 0.5 }, 2, 3, 16, 16)
	for _, args := range [][]string{{"inspect", dir}, {"init", dir, data}} {
		if code, message := call(t, args...); code != 1 || !strings.Contains(message, "python -m tf2onnx.convert --saved-model "+dir) {
			t.Errorf("%q: exit %d, %q", args, code, message)
		}
	}
}
