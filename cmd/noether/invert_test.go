package main

import (
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testmodel"
)

// randomImages writes an array of 20 images of random pixels and returns its path.
func randomImages(t *testing.T, dir string) string {
	t.Helper()
	r := seed.Rand(1)
	return writeNPY(t, filepath.Join(dir, "images.npy"), func(int) float32 { return r.Float32() }, 20, 3, 16, 16)
}

// TestInvert checks the files of an inversion: gradient descent on an input x' until a layer has
// the values that it has for x. The distance is that of these values, the relative one is divided
// by their norm for x. With --against, x' also differs from x for a second model.
func TestInvert(t *testing.T) {
	dir := t.TempDir()
	model, other, data := testmodel.Write(t, dir, "a", testmodel.Options{}), testmodel.Write(t, dir, "b", testmodel.Options{}), randomImages(t, dir)
	out := filepath.Join(dir, "out")
	if code, message := call(t, "invert", model, "--data", data, "-o", out, "--limit", "5", "--layer", "logits", "--preprocess", "none", "--steps", "60"); code != 0 {
		t.Fatal(message)
	}
	var s inversionSummary
	raw, err := os.ReadFile(filepath.Join(out, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Samples) != 5 || s.Layer != "logits" || s.Steps != 60 || s.Optimiser != "adam" || s.StepSize != 0.01 {
		t.Errorf("the summary is %+v; want 5 samples of layer logits, 60 steps of adam with step size 0.01", s)
	}
	for _, sample := range s.Samples {
		if sample.Relative == nil || *sample.Relative > 0.2 || sample.Distance <= 0 || sample.Input < 1 || sample.Dropped {
			t.Errorf("%s: %+v; want a relative distance up to 0.2, a distance above 0, an input distance of at least 1, and a sample that is not dropped", sample.Name, sample)
		}
	}
	x, err := dataset.ReadArray(t.Context(), filepath.Join(out, "x.npy"), "")
	if err != nil {
		t.Fatal(err)
	}
	inverted, err := dataset.ReadArray(t.Context(), filepath.Join(out, "inverted.npy"), "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x.Shape, []int{5, 3, 16, 16}) || !slices.Equal(inverted.Shape, x.Shape) || slices.Equal(x.Data, inverted.Data) {
		t.Errorf("x.npy has shape %v and inverted.npy %v; want [5 3 16 16] for both, and different values", x.Shape, inverted.Shape)
	}
	f, err := os.Open(filepath.Join(out, "contact.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
	if code, message := call(t, "invert", model, "--data", data, "-o", filepath.Join(dir, "two"), "--limit", "3", "--preprocess", "{resize: 16, crop: 16}", "--steps", "5",
		"--against", other, "--controversial", "--norm", "l2", "--radius", "1"); code != 0 {
		t.Fatal(message)
	}
}

// TestInvertResumes checks that an interrupted inversion leaves a checkpoint and no results, and
// that the same command resumes from it and writes the files of an uninterrupted inversion. The
// optimiser "paper" takes steps of fixed length along the gradient.
func TestInvertResumes(t *testing.T) {
	dir := t.TempDir()
	model, data := testmodel.Write(t, dir, "a", testmodel.Options{}), randomImages(t, dir)
	args := func(out string) []string {
		return []string{"invert", model, "--data", data, "-o", out, "--layer", "conv", "--preprocess", "none", "--steps", "3000", "--optimiser", "paper"}
	}
	stopped, uninterrupted := filepath.Join(dir, "stopped"), filepath.Join(dir, "uninterrupted")
	checkpoint := filepath.Join(stopped, "checkpoint.bin")
	checkpointExists := func() bool {
		_, err := os.Stat(checkpoint)
		return err == nil
	}
	for timeout := 200 * time.Millisecond; !checkpointExists(); { // until the timeout ends the inversion in the middle
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		err := execute(ctx, args(stopped))
		cancel()
		switch {
		case err == nil: // it finished before the timeout
			timeout -= timeout / 4
			if err := os.RemoveAll(stopped); err != nil {
				t.Fatal(err)
			}
		case errors.Is(err, context.DeadlineExceeded):
			timeout += timeout / 2
		default:
			t.Fatalf("interrupted after %v: %v; want context.DeadlineExceeded", timeout, err)
		}
	}
	for _, name := range []string{"summary.json", "x.npy", "inverted.npy", "contact.png"} {
		if _, err := os.Stat(filepath.Join(stopped, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s after the interruption: %v; want no such file", name, err)
		}
	}
	for _, out := range []string{stopped, uninterrupted} {
		if code, message := call(t, args(out)...); code != 0 {
			t.Fatal(message)
		}
	}
	if checkpointExists() {
		t.Error("the finished inversion left its checkpoint")
	}
	for _, name := range []string{"inverted.npy", "contact.png"} {
		a, err := os.ReadFile(filepath.Join(stopped, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(uninterrupted, name))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a, b) {
			t.Errorf("%s of the resumed inversion differs from that of the uninterrupted one", name)
		}
	}
}

func TestInvertErrors(t *testing.T) {
	dir := t.TempDir()
	model, data := testmodel.Write(t, dir, "a", testmodel.Options{}), randomImages(t, dir)
	out := filepath.Join(dir, "out")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{model, "-o", out}, 2, "--data is missing"},
		{[]string{model, "--data", data}, 2, "--out is missing"},
		{[]string{model, "--data", data, "-o", out, "--start", "dream"}, 2, "--start \"dream\": it must be one of"},
		{[]string{model, "--data", data, "-o", out, "--optimiser", "sgd"}, 2, `optimiser "sgd"`},
		{[]string{model, "--data", data, "-o", out, "--limit", "0"}, 2, "--limit is 0"},
		{[]string{model, "--data", data, "-o", out, "--steps", "0"}, 2, "--steps is 0"},
		{[]string{model, "--data", data, "-o", out, "--step-size", "0"}, 2, "--step-size is 0"},
		{[]string{model, "--data", data, "-o", out, "--controversial"}, 2, "--against"},
		{[]string{model, "--data", data, "-o", out, "--norm", "l2"}, 2, "radius"},
		{[]string{model, "--data", data, "-o", out, "--radius", "1"}, 2, "without --norm"},
		{[]string{model, "--data", data, "-o", out, "--against-layer", "conv"}, 2, "without --against"},
		{[]string{model, "--data", data, "-o", out, "--against", model, "--beta", "0.5"}, 2, "without --normalised"},
		{[]string{model, "--data", data, "-o", out, "--against", model, "--controversial", "--start", "white"}, 2, "starts near x"},
		{[]string{model, "--data", dir + "/nothing", "-o", out, "--preprocess", "none"}, 1, "no such file"},
		{[]string{model, "--data", data, "-o", out, "--preprocess", "none", "--layer", "con"}, 1, "con"},
		{[]string{model, "--data", data, "-o", out, "--preprocess", "none", "--layer", "all"}, 1, "set one layer"},
		{[]string{model, "--data", data, "-o", out, "--preprocess", "cub"}, 1, `unknown preset "cub"`},
		{[]string{model, "--data", data, "-o", out, "--preprocess", "{men: [0.5]}"}, 1, `unknown key "men"; did you mean "mean"?`},
		{[]string{model, "--data", data, "-o", out, "--preprocess", "none", "--against", dir + "/b.onnx"}, 1, "b.onnx"},
	} {
		code, message := call(t, append([]string{"invert"}, c.args...)...)
		if code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: %d, %q; want %d, %q", c.args, code, message, c.code, c.want)
		}
	}
}
