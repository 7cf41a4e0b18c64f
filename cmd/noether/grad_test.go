package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestGrad checks the inputs and outputs of models that noether grad writes. They also compute the
// product of a vector, the input cotangent/..., and the Jacobian, or with --sum the gradient of a
// sum. testmodel.Write writes a network of a layer conv, with the weights w and b, and a linear
// layer.
func TestGrad(t *testing.T) {
	dir := t.TempDir()
	model := testmodel.Write(t, dir, "m", testmodel.Options{})
	out := filepath.Join(dir, "g.onnx")
	if code, message := call(t, "grad", model, "-o", out); code != 0 {
		t.Fatalf("exit %d: %s", code, message)
	}
	g, err := onnx.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if got := signatureOf(g); got != "x, cotangent/logits -> logits, grad/x" {
		t.Errorf("by default: %s, want %s", got, "x, cotangent/logits -> logits, grad/x")
	}
	if code, message := call(t, "grad", model, "-o", out, "--of", "conv", "--by", "w,b", "--sum", "--json"); code != 0 {
		t.Fatalf("exit %d: %s", code, message)
	}
	if g, err = onnx.Read(out); err != nil {
		t.Fatal(err)
	}
	if got := signatureOf(g); got != "x -> logits, grad/w, grad/b" {
		t.Errorf("of a layer by weights: %s, want %s", got, "x -> logits, grad/w, grad/b")
	}
}

// TestGradAgain checks that a written gradient model can be differentiated again.
func TestGradAgain(t *testing.T) {
	dir := t.TempDir()
	model := testmodel.Write(t, dir, "m", testmodel.Options{})
	once, twice := filepath.Join(dir, "once.onnx"), filepath.Join(dir, "twice.onnx")
	if code, message := call(t, "grad", model, "-o", once, "--sum"); code != 0 {
		t.Fatalf("exit %d: %s", code, message)
	}
	if code, message := call(t, "grad", once, "-o", twice, "--of", "grad/x", "--by", "x,w"); code != 0 || message != "" {
		t.Fatalf("exit %d: %s", code, message)
	}
	g, err := onnx.Read(twice)
	if err != nil {
		t.Fatal(err)
	}
	if got := signatureOf(g); got != "x, cotangent/grad/x -> logits, grad/x, grad/grad/x/x, grad/w" {
		t.Errorf("second derivatives: %s, want %s", got, "x, cotangent/grad/x -> logits, grad/x, grad/grad/x/x, grad/w")
	}
}

// TestGradJVP checks models that compute Jacobian-vector products (--jvp).
func TestGradJVP(t *testing.T) {
	dir := t.TempDir()
	model := testmodel.Write(t, dir, "m", testmodel.Options{})
	out := filepath.Join(dir, "j.onnx")
	if code, message := call(t, "grad", model, "-o", out, "--jvp"); code != 0 || message != "" {
		t.Fatalf("exit %d: %s", code, message)
	}
	g, err := onnx.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if got := signatureOf(g); got != "x, tangent/x -> logits, jvp/logits" {
		t.Errorf("by default: %s, want %s", got, "x, tangent/x -> logits, jvp/logits")
	}
	if code, message := call(t, "grad", model, "-o", out, "--jvp", "--of", "conv", "--by", "x,w", "--json"); code != 0 || message != "" {
		t.Fatalf("exit %d: %s", code, message)
	}
	if g, err = onnx.Read(out); err != nil {
		t.Fatal(err)
	}
	if got := signatureOf(g); got != "x, tangent/x, tangent/w -> logits, jvp/conv" {
		t.Errorf("of a layer: %s, want %s", got, "x, tangent/x, tangent/w -> logits, jvp/conv")
	}
}

// TestDependsOn asks whether the first tensor of a pair is computed from the second.
func TestDependsOn(t *testing.T) {
	m, err := onnx.Read(testmodel.Write(t, t.TempDir(), "m", testmodel.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for pair, want := range map[[2]string]bool{
		{"logits", "x"}: true, {"logits", "w"}: true, {"conv", "w"}: true, {"x", "x"}: true, {"x", "logits"}: false, {"conv", "logits"}: false, {"x", "w"}: false,
	} {
		if got := dependsOn(m, pair[0], pair[1]); got != want {
			t.Errorf("%s depends on %s: %v, want %v", pair[0], pair[1], got, want)
		}
	}
}

// signatureOf returns the names of the inputs and outputs of a model, as "x -> y".
func signatureOf(m *onnx.Model) string {
	names := func(values []onnx.ValueInfo) string {
		var list []string
		for _, v := range values {
			list = append(list, v.Name)
		}
		return strings.Join(list, ", ")
	}
	return names(m.Inputs()) + " -> " + names(m.Outputs())
}

// writeNPY writes a .npy file of an array whose element i is value(i), and returns its path.
func writeNPY(t *testing.T, path string, value func(i int) float32, shape ...int) string {
	t.Helper()
	x := tensor.New(shape...)
	for i := range x.Data {
		x.Data[i] = value(i)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := dataset.WriteNPY(f, x); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGradErrors(t *testing.T) {
	dir := t.TempDir()
	model := testmodel.Write(t, dir, "m", testmodel.Options{})
	out := filepath.Join(dir, "g.onnx")
	for _, c := range []struct {
		args string
		code int // exit code: 2 for wrong flags, 1 for other errors
		want string
	}{
		{model, 2, "-o"},
		{model + " -o " + out + " --sum --cotangent r", 2, "exclude"},
		{model + " -o " + out + " --forward float64", 2, "unknown flag"},
		{model + " -o " + out + " --jvp --sum", 2, "no cotangent"},
		{model + " -o " + out + " --jvp --of logitz", 1, `similar names: ["logits"`},
		{model + " -o " + out + " --jvp --by pixels", 1, "no such tensor"},
		{model + " -o " + out + " --of logitz", 1, `similar names: ["logits"`},
		{model + " -o " + model, 1, "another file"},
		{model + " -o " + dir, 1, "is a folder"},
		{filepath.Join(dir, "none.onnx") + " -o " + out, 1, "no such file"},
		{model + " -o " + filepath.Join(dir, "none", "g.onnx"), 1, "no such file"},
	} {
		code, message := call(t, append([]string{"grad"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(message, c.want) || strings.Contains(message, "\n") {
			t.Errorf("grad %s: exit %d, %q; want %d and one line with %q", c.args, code, message, c.code, c.want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a model was written despite an error")
	}
}
