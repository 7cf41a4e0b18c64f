package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
)

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
	if got := portsOf(g); got != "x, cotangent/logits -> logits, grad/x" {
		t.Errorf("by default: %s", got)
	}
	if code, message := call(t, "grad", model, "-o", out, "--of", "conv", "--by", "w,b", "--sum", "--json"); code != 0 {
		t.Fatalf("exit %d: %s", code, message)
	}
	if g, err = onnx.Read(out); err != nil {
		t.Fatal(err)
	}
	if got := portsOf(g); got != "x -> logits, grad/w, grad/b" {
		t.Errorf("of a layer by weights: %s", got)
	}
}

// A relu whose input float32 takes for 0 is on where the model is computed in float64.
func TestGradForward(t *testing.T) {
	orttest.Load(t)
	dir := t.TempDir()
	b := onnx.NewBuilder(17)
	b.Output("y", b.Relu(b.Sub(b.Add(b.Input("x", onnx.Float, 2, 3), b.Scalar(1)), b.Scalar(1))))
	model, out := testmodel.Save(t, filepath.Join(dir, "m.onnx"), b), filepath.Join(dir, "g.onnx")
	x := numbers(t, filepath.Join(dir, "x.npy"), func(int) float32 { return 1e-9 }, 2, 3)
	dx := numbers(t, filepath.Join(dir, "dx.npy"), func(int) float32 { return 1 }, 2, 3)
	args := []string{"grad", model, "-o", out, "--sum", "--try", x, "--against", dx}
	if code, message := call(t, args...); code != 1 || !strings.Contains(message, "further off than rounding explains") {
		t.Errorf("in float32: exit %d, %q", code, message)
	}
	text, err := output(t, append(args, "--forward", "float64")...)
	if err != nil || !strings.Contains(text, "as expected") || !strings.Contains(text, "in float64") {
		t.Errorf("in float64: %v, %s", err, text)
	}
	g, err := onnx.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if got := portsOf(g); got != "x -> y, grad/x" {
		t.Errorf("inputs and outputs: %s", got)
	}
}

// The model that was written can be differentiated again.
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
	if got := portsOf(g); got != "x, cotangent/grad/x -> logits, grad/x, grad/grad/x/x, grad/w" {
		t.Errorf("second derivatives: %s", got)
	}
}

func TestDependsOn(t *testing.T) {
	m, err := onnx.Read(testmodel.Write(t, t.TempDir(), "m", testmodel.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for pair, want := range map[[2]string]bool{
		{"logits", "x"}: true, {"logits", "w"}: true, {"conv", "w"}: true, {"x", "x"}: true, {"x", "logits"}: false, {"conv", "logits"}: false, {"x", "w"}: false,
	} {
		if got := dependsOn(m, pair[0], pair[1]); got != want {
			t.Errorf("%s depends on %s: %v", pair[0], pair[1], got)
		}
	}
}

func portsOf(m *onnx.Model) string {
	names := func(ports []onnx.Port) string {
		var list []string
		for _, p := range ports {
			list = append(list, p.Name)
		}
		return strings.Join(list, ", ")
	}
	return names(m.Inputs()) + " -> " + names(m.Outputs())
}

// numbers writes an array of shape with a value for each place.
func numbers(t *testing.T, path string, value func(i int) float32, shape ...int) string {
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

// hinge writes the model y = s relu(x - 1), x: 2 x 3, s: a number.
func hinge(t *testing.T, path string) string {
	t.Helper()
	b := onnx.NewBuilder(17)
	x, s := b.Input("x", onnx.Float, 2, 3), b.Input("s", onnx.Float)
	b.Output("y", b.Mul(b.Relu(b.Sub(x, b.Scalar(1))), s))
	return testmodel.Save(t, path, b)
}

// A relu's input at its kink is told from an error.
func TestGradTry(t *testing.T) {
	orttest.Load(t)
	dir := t.TempDir()
	model, out := hinge(t, filepath.Join(dir, "m.onnx")), filepath.Join(dir, "g.onnx")
	steep := func(at ...int) func(int) float32 {
		return func(i int) float32 {
			if slices.Contains(at, i) {
				return 2
			}
			return 0
		}
	}
	x := numbers(t, filepath.Join(dir, "x.npy"), func(i int) float32 { return float32(i) / 2 }, 2, 3) // the third is at the kink
	s := numbers(t, filepath.Join(dir, "s.npy"), func(int) float32 { return 2 }, 1)
	for name, c := range map[string]struct {
		places []int
		want   string
	}{
		"as here":        {[]int{3, 4, 5}, "as expected"},
		"the other side": {[]int{2, 3, 4, 5}, "kinks alone"},
		"elsewhere":      {[]int{1, 3, 4}, "as far off as rounding moves it"},
	} {
		dx := numbers(t, filepath.Join(dir, "dx.npy"), steep(c.places...), 2, 3)
		text, err := output(t, "grad", model, "-o", out, "--sum", "--by", "x,s", "--try", "x="+x, "--try", "s="+s, "--against", "x="+dx)
		if err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v, %s; want %q", name, err, text, c.want)
		}
	}
	far := numbers(t, filepath.Join(dir, "far.npy"), func(i int) float32 { return float32(i) + 0.5 }, 2, 3) // no kink near
	wrong := numbers(t, filepath.Join(dir, "wrong.npy"), steep(1, 2, 3, 4), 2, 3)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--try", "x=" + far, "--try", "s=" + s, "--against", wrong}, 1, "further off than rounding explains"},
		{[]string{"--against", wrong}, 2, "--try"},
		{[]string{"--try", "x=" + far}, 1, `input "s" has no array`},
		{[]string{"--try", far, "--try", "s=" + s}, 1, "say NAME=FILE"},
		{[]string{"--try", "x=" + far, "--try", "s=" + s, "--try", "x=" + far}, 1, "given twice"},
		{[]string{"--try", "x=" + far, "--try", "z=" + s}, 1, `no "z"`},
		{[]string{"--try", "x=" + far, "--try", "s=" + s, "--against", s}, 1, "has shape"},
		{[]string{"--try", "x=" + s, "--try", "s=" + s}, 1, "x"},
	} {
		code, message := call(t, append([]string{"grad", model, "-o", out, "--sum", "--by", "x"}, c.args...)...)
		if code != c.code || !strings.Contains(message, c.want) || strings.Contains(message, "\n") {
			t.Errorf("%q: exit %d, %q; want %d and one line with %q", c.args, code, message, c.code, c.want)
		}
	}
}

func TestGradErrors(t *testing.T) {
	dir := t.TempDir()
	model := testmodel.Write(t, dir, "m", testmodel.Options{})
	out := filepath.Join(dir, "g.onnx")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{model, 2, "-o"},
		{model + " -o " + out + " --sum --cotangent r", 2, "exclude"},
		{model + " -o " + out + " --forward float16", 2, "float32 or float64"},
		{model + " -o " + out + " --of logitz", 1, `near it: ["logits"`},
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
		t.Error("a model was written where an error was returned")
	}
}
