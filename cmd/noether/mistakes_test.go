package main

import (
	"cmp"
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

// A smallStudy is the file of a small study. Empty fields stand for valid text; a field that is set
// replaces the text of its key. Tests set fields to other valid text, or to a mistake.
type smallStudy struct {
	model, data, layers, preprocess, transform, measures string
	more                                                 string // further lines of the file
}

// text returns the content of the study file.
func (s smallStudy) text() string {
	return fmt.Sprintf("name: broken\ndata: [{name: d, %s}]\nmodels: [{name: m, onnx: %s, layers: [%q]%s}]\ntransforms: [%s]\nmeasures: [%s]\n%s",
		cmp.Or(s.data, "shapes: {n: 40, size: 16}"), cmp.Or(s.model, "good.onnx"), cmp.Or(s.layers, "conv"), s.preprocess,
		cmp.Or(s.transform, "{rotate: 90}"), cmp.Or(s.measures, "accuracy, distance"), s.more)
}

// brokenFolder returns a folder with the valid model good.onnx, and with invalid models and data:
// each of these files has one mistake. A weight of nan.onnx is NaN; three.onnx has three classes.
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
	b := onnx.NewBuilder(17) // of table.onnx, whose input has 12 values and is no image
	b.Output("y", b.Relu(b.Input("ids", onnx.Float, -1, 12)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = m.Bytes(); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "table.onnx", raw)
	write(t, dir, "short.bin", make([]byte, 3073*2+5)) // two images of CIFAR-10, each 1 + 3072 bytes, and 5 bytes
	// Files in the IDX format of MNIST. 0x800 + n begins an array of bytes with n dimensions, whose
	// sizes follow.
	labels := binary.BigEndian.AppendUint32(nil, 0x801)
	labels = append(binary.BigEndian.AppendUint32(labels, 3), 0, 1, 9)
	images := binary.BigEndian.AppendUint32(nil, 0x803)
	for _, v := range []uint32{3, 16, 16} {
		images = binary.BigEndian.AppendUint32(images, v)
	}
	write(t, dir, "t10k-images-idx3-ubyte", append(images, make([]byte, 3*256)...))
	write(t, dir, "t10k-labels-idx1-ubyte", labels)
	write(t, dir, "texts/a.png", []byte("this is no image"))
	for i := range 20 {
		path := write(t, dir, fmt.Sprintf("photos/%02d.png", i), nil)
		if i < 3 {
			continue // leaves three empty files, which are no images
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

// TestEachMistakeIsOneClearLine checks that each mistake in a study gives an error of one line that
// contains some texts, such as the position in the file (FILE:LINE:). The key classes lists the
// model's output for each class of the data, which here has eight. The measure seis needs layers
// with spatial positions.
func TestEachMistakeIsOneClearLine(t *testing.T) {
	dir := brokenFolder(t)
	for name, c := range map[string]struct {
		study smallStudy
		want  []string
	}{
		"no such model":         {smallStudy{model: "none.onnx"}, []string{"study.yaml:3:", "no such file", "none.onnx"}},
		"truncated model":       {smallStudy{model: "cut.onnx"}, []string{"cut.onnx", "truncated"}},
		"text file":             {smallStudy{model: "text.onnx"}, []string{"text.onnx", "ONNX"}},
		"input is no image":     {smallStudy{model: "table.onnx"}, []string{"table.onnx", "ids", "image"}},
		"glob matches nothing":  {smallStudy{layers: "convv*"}, []string{"good.onnx", "convv*", "conv"}},
		"images do not decode":  {smallStudy{data: "images: texts", measures: "distance"}, []string{"1 of 1 samples cannot be read", "more than half", "a.png"}},
		"CIFAR of wrong length": {smallStudy{data: "cifar10: short.bin"}, []string{"short.bin", "3073", "6151"}},
		"labels above 2":        {smallStudy{data: "idx: t10k-images-idx3-ubyte", model: "three.onnx"}, []string{"10 classes", "3"}},
		"mean of wrong length":  {smallStudy{preprocess: ", preprocess: {mean: [0.5, 0.5]}"}, []string{"mean", "2", "3"}},
		"NaN in a layer":        {smallStudy{model: "nan.onnx"}, []string{"layer conv", "NaN", "sample"}},
		"too many cells":        {smallStudy{more: "trials: 1000000"}, []string{"2000000 cells", "the limit is 100000"}},
		"unknown key":           {smallStudy{more: "seeed: 3"}, []string{"study.yaml:6:1", `did you mean "seed"?`}},
		"unknown measure":       {smallStudy{measures: "seys"}, []string{"study.yaml:5:", `did you mean "seis"?`}},
		"wrong image size":      {smallStudy{data: "shapes: {n: 40, size: 20}", preprocess: ", preprocess: {crop: 20}"}, []string{"16", "20"}},
		"a measure twice":       {smallStudy{measures: "seis, seis: {variance: 0.9}"}, []string{"study.yaml:5:", "twice"}},
		"a factor of 1e40":      {smallStudy{transform: "{brightness: 1e40}"}, []string{"study.yaml:4:", "factor must be at most 1e+30"}},
		"part of no split":      {smallStudy{data: "shapes: {n: 40, size: 16}, split: {part: 2}"}, []string{"study.yaml:2:", "part 2 of 0"}},
		"too few classes":       {smallStudy{data: "shapes: {n: 40, size: 16}, classes: [1, 2]", measures: "effective-invariance"}, []string{"2 outputs for the 8 classes"}},
		"no spatial layer":      {smallStudy{measures: "seis", layers: "output"}, []string{"nothing to measure", "positions"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, dir, "study.yaml", []byte(c.study.text()))
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
	path := write(t, dir, "study.yaml", []byte(smallStudy{}.text()))
	blocked := write(t, dir, "file", nil) // a file, where a folder is needed
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

// TestFolderOfTensorFlow checks that the error for the folder of a SavedModel, TensorFlow's format,
// contains the command that converts it to ONNX.
func TestFolderOfTensorFlow(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "saved_model.pb", []byte{8, 1}) // the field saved_model_schema_version, 1
	data := writeNPY(t, filepath.Join(dir, "images.npy"), func(int) float32 { return 0.5 }, 2, 3, 16, 16)
	for _, args := range [][]string{{"inspect", dir}, {"init", dir, data}} {
		if code, message := call(t, args...); code != 1 || !strings.Contains(message, "python -m tf2onnx.convert --saved-model "+dir) {
			t.Errorf("%q: exit %d, %q; want 1 and the command", args, code, message)
		}
	}
}
