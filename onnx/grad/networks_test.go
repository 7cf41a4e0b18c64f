//go:build cgo

package grad_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sbinet/npyio"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/gpu/gputest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// engine loads ONNX Runtime.
func engine(t testing.TB) *ort.Runtime {
	t.Helper()
	path, _, err := ort.Find("")
	if err != nil {
		t.Skip(err)
	}
	rt, err := ort.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// readNpy reads a float32 array and its shape.
func readNpy(t testing.TB, path string) ([]float32, []int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := npyio.NewReader(f)
	if err != nil {
		t.Fatal(path, err)
	}
	var data []float32
	if err := r.Read(&data); err != nil {
		t.Fatal(path, err)
	}
	return data, r.Header.Descr.Shape
}

// relativeError returns the largest absolute difference divided by the largest absolute value of
// want, or NaN if a difference is NaN.
func relativeError(got, want []float32) float64 {
	var worst, largest float64
	for i := range want {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if math.IsNaN(d) {
			return d
		}
		worst, largest = max(worst, d), max(largest, math.Abs(float64(want[i])))
	}
	return worst / largest
}

// TestNetworks compares outputs and input gradients of whole networks, computed in float32 and in
// float64, with those of PyTorch in float64. The error may be three times that of PyTorch in
// float32, or 1e-4 if that is more.
func TestNetworks(t *testing.T) {
	t.Parallel()
	for _, dir := range networkFolders(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Run("float32", func(t *testing.T) { checkNet(t, dir, ort.Options{}, inputGradient) })
			t.Run("float64", func(t *testing.T) {
				checkNet(t, dir, ort.Options{}, func(m *onnx.Model) (*onnx.Model, error) {
					g, err := inputGradient(m)
					if err != nil {
						return nil, err
					}
					return inFloat64(g, "y")
				})
			})
		})
	}
}

// TestNetworksOnWebGPU is TestNetworks on WebGPU, without the networks that take longest on a
// software driver.
func TestNetworksOnWebGPU(t *testing.T) {
	gputest.UseDriver(t)
	for _, dir := range networkFolders(t) {
		switch filepath.Base(dir) {
		case "cifar_resnet20", "mnasnet0_5", "mobilenet_v3_small":
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) { checkNet(t, dir, ort.Options{Device: "webgpu"}, inputGradient) })
	}
}

// networkFolders returns the folders of the networks. Each holds an input x and a cotangent r of
// the output; y and dx, which are the output and the gradient of <r, y> with respect to x, by
// PyTorch in float64; and in gap.json the relative errors of y and dx by PyTorch in float32.
func networkFolders(t *testing.T) []string {
	t.Helper()
	nets := os.Getenv("NOETHER_NETS") // a folder of other networks in the same form
	if nets == "" {
		nets = testdata.Path(t, "nets")
	}
	folders, err := filepath.Glob(filepath.Join(nets, "*", "model.onnx"))
	if err != nil || len(folders) == 0 {
		t.Fatal("no networks", err)
	}
	for i, path := range folders {
		folders[i] = filepath.Dir(path)
	}
	return folders
}

// inputGradient adds the gradient of <r, y>, the sum of r y, with respect to x.
func inputGradient(m *onnx.Model) (*onnx.Model, error) {
	return grad.Add(m, grad.Options{Of: "y", Cotangent: "r", By: []string{"x"}})
}

// checkNet runs the network of a folder with its gradient, which differentiate adds, and compares y
// and dx with those of the folder.
func checkNet(t *testing.T, dir string, o ort.Options, differentiate func(*onnx.Model) (*onnx.Model, error)) {
	rt := engine(t)
	m, err := onnx.Read(filepath.Join(dir, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := differentiate(m)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewSession(g, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	inputs := map[string]*ort.Value{}
	for _, name := range []string{"x", "r"} {
		data, shape := readNpy(t, filepath.Join(dir, name+".npy"))
		if inputs[name], err = ort.Wrap(rt, data, shape...); err != nil {
			t.Fatal(err)
		}
		defer inputs[name].Close()
	}
	out := make([]*ort.Value, 2)
	in := []*ort.Value{}
	for _, name := range s.Inputs() {
		in = append(in, inputs[name])
	}
	if err := s.Run(context.Background(), in, out); err != nil {
		t.Fatal(err)
	}
	var gap map[string]float64
	raw, err := os.ReadFile(filepath.Join(dir, "gap.json"))
	if err == nil {
		err = json.Unmarshal(raw, &gap)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"y", "dx"} {
		defer out[i].Close()
		want, _ := readNpy(t, filepath.Join(dir, name+".npy"))
		got := ort.Data[float32](out[i])
		if len(got) != len(want) {
			t.Fatalf("%s has %d values, want %d", name, len(got), len(want))
		}
		if e, bound := relativeError(got, want), max(1e-4, 3*gap[name]); !(e < bound) {
			t.Errorf("%s is off by %.2g of its largest value, more than %.2g", name, e, bound)
		} else {
			t.Logf("%s: %.2g (PyTorch in float32: %.2g)", name, e, gap[name])
		}
	}
}
