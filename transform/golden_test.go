package transform

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/sbinet/npyio/npz"

	"github.com/noether-ml/noether/tensor"
)

// A goldenCase is a transformation of an image by torchvision: an element of testdata/golden.json,
// which testdata/golden.py writes.
type goldenCase struct {
	Golden string         // the result: the name of an array of testdata/golden.npz
	Kind   string         // of transformation, as in study files
	Args   map[string]any // its parameters: numbers or options
	Image  string         `json:"Picture"` // the name of the array with the input image
}

func TestAgreesWithTorchvision(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	arrays, err := npz.Open("testdata/golden.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer arrays.Close()
	if len(cases) == 0 {
		t.Fatal("no golden values")
	}
	for _, c := range cases {
		src, want := readArray(t, arrays, c.Image), readArray(t, arrays, c.Golden)
		op := mustMake(t, c.Kind, argsOf(c.Args)).Draw(nil)
		if d := distance(apply(op, src), want); !(d < 3e-6) {
			t.Errorf("%s: %s %v on %s: off by %g", c.Golden, c.Kind, c.Args, c.Image, d)
		}
	}
}

func readArray(t *testing.T, r *npz.Reader, name string) tensor.Tensor {
	t.Helper()
	var data []float32
	if err := r.Read(name+".npy", &data); err != nil {
		t.Fatal(err)
	}
	x, err := tensor.From(data, r.Header(name+".npy").Descr.Shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func argsOf(m map[string]any) Args {
	args := Args{}
	for name, v := range m {
		switch v := v.(type) {
		case float64:
			args[name] = Fixed(v)
		case string:
			args[name] = Option(v)
		}
	}
	return args
}

func mustMake(t testing.TB, kind string, args Args) Transform {
	t.Helper()
	k, ok := Lookup(kind)
	if !ok {
		t.Fatalf("unknown kind %q", kind)
	}
	tr, err := k.Make(args)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// apply applies op to a destination full of NaN, so that values that Apply does not write are
// found.
func apply(op Op, src tensor.Tensor) tensor.Tensor {
	dst := tensor.New(src.Shape...)
	for i := range dst.Data {
		dst.Data[i] = float32(math.NaN())
	}
	op.Apply(dst, src)
	return dst
}

// distance returns the largest absolute difference, NaN if a tensor contains NaN.
func distance(a, b tensor.Tensor) float64 {
	var d float64
	for i := range a.Data {
		d = max(d, math.Abs(float64(a.Data[i]-b.Data[i])))
	}
	return d
}
