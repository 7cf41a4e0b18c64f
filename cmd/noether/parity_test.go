package main

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/scores"
)

// writeLabelled writes random images of 8 x 8 pixels in folders 0 to 4, their classes.
func writeLabelled(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	r := seed.Rand(2, "images")
	for i := range n {
		m := image.NewRGBA(image.Rect(0, 0, 8, 8))
		for k := range 64 {
			m.Set(k%8, k/8, color.RGBA{uint8(r.IntN(256)), uint8(r.IntN(256)), uint8(r.IntN(256)), 255})
		}
		folder := filepath.Join(dir, fmt.Sprint(i%5))
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%02d.png", i)))
		if err == nil {
			err = png.Encode(f, m)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return dir
}

// TestParity compares the network of internal/parity with its quantised file. Layers are tested
// there.
func TestParity(t *testing.T) {
	const folder = "../../internal/parity/testdata/"
	original, quantised := folder+"float.onnx", folder+"quantised.onnx"
	data, table := writeLabelled(t, 30), filepath.Join(t.TempDir(), "parity.csv")
	args := []string{"parity", original, quantised, data, "--preprocess", "none"}

	text, err := output(t, append(args, "--transform", "rotate: {values: [90, 180]}", "--json", "--csv", table)...)
	if err != nil {
		t.Fatal(err)
	}
	var r parityReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if r.Samples != 30 || r.Original.Form != "float" || r.Other.Form != "quantised, as QDQ" || len(r.Layers) != 6 || len(r.Unmatched) != 2 {
		t.Errorf("%d samples, %v and %v, %d layers, %v unmatched", r.Samples, r.Original, r.Other, len(r.Layers), r.Unmatched)
	}
	if r.Begins != "relu1" || len(r.Nodes) == 0 || len(r.Leave) == 0 || r.Worst[0] != r.Leave[0] {
		t.Errorf("it begins at %q; to leave in float: %v, nodes %v", r.Begins, r.Leave, r.Nodes)
	}
	if len(r.Predictions) != 3 || r.Predictions[1].Parameter != "90" {
		t.Fatalf("%d comparisons of predictions, want 3: clean and two rotations", len(r.Predictions))
	}
	for _, p := range r.Predictions {
		if p.N != 30 || p.Agreement == nil || p.AccuracyDifference == nil || (p.Transform == "") != (p.InvarianceDifference == nil) {
			t.Fatalf("%+v lacks a statistic", p)
		}
		flips := float64(p.PositiveFlips.Value - p.NegativeFlips.Value)
		difference, d := float64(p.AccuracyOther.Value-p.AccuracyOriginal.Value), p.AccuracyDifference
		if diff := difference - flips; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("under %q the accuracy changes by %g, but flips by %g", p.Transform, difference, flips)
		}
		if !(d.Low <= d.Value && d.Value <= d.High && d.Low < d.High) {
			t.Errorf("under %q the difference is %v", p.Transform, *d)
		}
	}
	raw, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := scores.ReadCSV(strings.NewReader(string(raw)))
	if err != nil || len(rows) < 6*10 {
		t.Errorf("%s has %d rows (%v)", table, len(rows), err)
	}

	for _, c := range []struct {
		args []string
		code int
	}{
		{args, 0},
		{append(args, "--fail-if", "snr < 20"), gateExit},
		{append(args, "--fail-if", "snr/conv2 < 0"), 0},
		{append(args, "--fail-if", "parity.agreement < 0.1"), 0},
		{append(args, "--fail-if", "agreement@rotate < 0.1"), 1}, // no such score
		{append(args, "--fail-if", "agreement"), 2},
		{append(args, "--limit", "1"), 2},
		{append(args, "--layers", "nothing"), 1},
		{[]string{"parity", original, quantised}, 2},
		{[]string{"parity", original, filepath.Join(data, "none.onnx"), data}, 1},
	} {
		var err error
		text, err := output(t, c.args...)
		if code := exitCode(err); code != c.code {
			t.Errorf("%v: exit %d, want %d: %v", c.args, code, c.code, err)
		}
		if c.code == 0 && !strings.Contains(text, "begins: relu1") {
			t.Errorf("%v: no layer where it begins in\n%s", c.args, text)
		}
	}
	text, err = output(t, "parity", original, original, data, "--preprocess", "none")
	if err != nil || !strings.Contains(text, "no layer differs") || strings.Contains(text, "leave in float") {
		t.Errorf("%v: a network differs from itself:\n%s", err, text)
	}
}
