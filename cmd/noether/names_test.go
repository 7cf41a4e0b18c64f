package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestNamesWithControlCharacters checks that commands quote control characters in the names of
// layers, classes, samples, columns, models and data, and in errors that contain them, and that
// files and JSON keep the names.
func TestNamesWithControlCharacters(t *testing.T) {
	t.Parallel()
	program, dir := buildProgram(t), t.TempDir()
	const evil = "a\x1b[31m\a\u009b1m\tb"
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	flat := b.ReduceMean(x, false, 2, 3)
	b.Output("layer "+evil, flat)
	weights := tensor.New(3, 2)
	copy(weights.Data, []float32{1, -1, 2, 0, 0, 3})
	b.Output("y "+evil, b.Op("MatMul", nil, flat, b.Const("W", weights)))
	model := testmodel.Save(t, filepath.Join(dir, "model.onnx"), b)
	for i, class := range []string{"class " + evil, "class two"} {
		for k := range 3 {
			file := filepath.Join(dir, "photos", class, fmt.Sprintf("image%d%s.png", k, evil))
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Dir(file), filepath.Base(file), img(t, 16, i+2*k))
		}
	}
	photos := filepath.Join(dir, "photos")
	write(t, filepath.Join(photos, "class two"), "bad"+evil+".png", []byte("no image"))
	study := write(t, dir, "study.yaml", fmt.Appendf(nil, "name: %q\ndata: [{name: %q, images: photos}]\nmodels: [{name: %q, onnx: model.onnx, layers: [all]}, {name: missing, onnx: %q}]\n"+
		"transforms: [{name: %q, rotate: {values: [90]}}]\nmeasures: [accuracy, distance]\nsamples: true\n", "s"+evil, "d"+evil, "m"+evil, "none"+evil+".onnx", "t"+evil))
	out, copied := filepath.Join(dir, "out"), filepath.Join(dir, "copied")
	table := write(t, dir, "table.csv", []byte("model,accuracy "+evil+"\nm1,1\nm2,2\n"))
	for _, args := range [][]string{
		{"inspect", model},
		{"inspect", model + evil},
		{"run", study, "--dry-run", "-o", out},
		{"run", study, "-o", out, "--all"},
		{"run", study, "-o", out, "--log", "text"},
		{"run", study, "-o", out, "--only", evil},
		{"run", study, "-o", copied},
		{"report", out},
		{"diff", out, copied, "--all"},
		{"diff", out, copied, "--fail-if", "accuracy.moved < 1!"},
		{"diff", out, out, "--models", "m" + evil + "=m" + evil},
		{"breaking-point", out, "--tolerance", "accuracy.moved >= 0.5"},
		{"breaking-point", out, "--tolerance", "accuracy.moved >= 0.5", "--neutral", "0"},
		{"check", out},
		{"check", out + evil},
		{"correlate", out, "--with", table},
		{"grad", model, "-o", filepath.Join(dir, "grad"+evil+".onnx")},
		{"init", model, photos, "-o", filepath.Join(dir, "init.yaml")},
		{"compare", evil + ".npy", evil + ".npy"},
		{evil},
	} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		var printed bytes.Buffer
		cmd.Stdout, cmd.Stderr = &printed, &printed
		_ = cmd.Run() // some fail, which is not the point
		text := printed.String()
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); i >= 0 {
			t.Errorf("%.60q prints a control character: %q", args, text[max(0, i-60):min(len(text), i+60)])
		}
		if args[0] == "inspect" && args[1] == model && !strings.Contains(text, `layer a\x1b[31m\a\u009b1m\tb`) {
			t.Errorf("inspect does not quote the layer: %s", text)
		}
	}
	f, err := os.Open(filepath.Join(out, "scores.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 || rows[1][1] != "m"+evil {
		t.Errorf("scores.csv has %d rows, %v, of the model %q", len(rows), err, rows[1][1])
	}
	if found, err := exec.CommandContext(t.Context(), program, "inspect", model, "--json").Output(); err != nil || !strings.Contains(string(found), `layer a\u001b[31m\u0007`) {
		t.Errorf("inspect --json: %v: %s", err, found)
	}
}
